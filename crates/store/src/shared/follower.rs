//! The thread that has the snapshot follow what other nodes commit, and says how this node stands with the database.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::watch;

use super::{
    Shared,
    change::{self, CHANGES_KEPT},
    claim::{self, ClaimError},
    node::{self, BEAT_TIME, Beat},
    session::{CERTIFICATES, CHANNEL, Session},
};
use crate::database::{DatabaseError, DatabaseResult};

/// The longest between two looks at the database, without a notification: so a connection that is cut off without a word is noticed.
const LOOK_TIME: Duration = Duration::from_secs(1);
/// Between two tries to connect.
const RETRY_TIME: Duration = Duration::from_millis(500);
/// Looks between two removals of changes that nobody needs.
const LOOKS_PER_CLEANING: u32 = 60;
/// Held by the connection of the one node that does what is to be done once.
const KEEPER_LOCK: i64 = 0x626f_646b_696e_0002;

/// Runs until `stop` is dropped.
pub(super) fn run(shared: &Arc<Shared>, mut session: Option<Session>, mut stop: watch::Receiver<()>) {
    loop {
        let followed = match session.take() {
            Some(session) => follow(shared, &session, &mut stop),
            None => shared.connect("follows").and_then(|session| {
                if !keeps_name(shared, &session)? {
                    return Ok(());
                }
                listen(&session)?;
                follow(shared, &session, &mut stop)
            }),
        };
        let Err(error) = followed else { break };
        shared.standings.keep(false);
        shared.standings.away(&error.to_string());
        if !pause(&mut stop) {
            break;
        }
    }
    shared.standings.keep(false);
}

/// Takes this node's name again on another session; returns false if another process has it, which ends this one.
fn keeps_name(shared: &Shared, session: &Session) -> DatabaseResult<bool> {
    match claim::keep(session, &shared.node, &shared.identity) {
        Ok(()) => Ok(true),
        Err(ClaimError::Database(error)) => Err(error),
        Err(displaced) => {
            tracing::error!(node = shared.node, "this process stops serving: {displaced}");
            shared.standings.away(&displaced.to_string());
            shared.displaced.send_replace(Some(displaced.to_string()));
            Ok(false)
        }
    }
}

/// Has notifications come.
pub(super) fn listen(session: &Session) -> DatabaseResult<()> {
    session.batch(&format!("LISTEN {CHANNEL}; LISTEN {CERTIFICATES}"))
}

/// Follows while the connection lasts, or until it is to stop.
fn follow(shared: &Shared, session: &Session, stop: &mut watch::Receiver<()>) -> DatabaseResult<()> {
    let mut next_beat = Instant::now();
    // What has come while there was no connection is not told.
    shared.certificates.send_replace(());
    // Prepares its statement, so that the round trips that are measured are one message each.
    change::last(session)?;
    for look in 0_u32.. {
        let reached = look_for_changes(shared, session)?;
        shared.standings.reached(reached);
        if !shared.standings.is_keeper() {
            let locked = session.one("SELECT pg_try_advisory_lock(?1)", [KEEPER_LOCK])?;
            shared.standings.keep(locked == Some(true));
        } else if look.is_multiple_of(LOOKS_PER_CLEANING) {
            session.run("DELETE FROM change WHERE number <= (SELECT number FROM shared) - ?1", [CHANGES_KEPT])?;
        }
        if Instant::now() >= next_beat && tell_nodes(shared, session)? {
            next_beat = Instant::now() + BEAT_TIME;
        }
        if !session.sleep(LOOK_TIME, stop) {
            if let Err(error) = node::leave(session, &shared.node) {
                tracing::info!(%error, "the other nodes are not told that this one ends");
            }
            return Ok(());
        }
        if session.take_certificates() {
            shared.certificates.send_replace(());
        }
        if !session.is_usable() {
            return Err(DatabaseError::Lost);
        }
    }
    Ok(())
}

/// Tells the other nodes of this one, and learns of them; false while it is not known yet what there is to tell.
fn tell_nodes(shared: &Shared, session: &Session) -> DatabaseResult<bool> {
    let Some((place, started)) = shared.place_told.get() else { return Ok(false) };
    let (commit, is_keeper) = (shared.shown().commit.number, shared.standings.is_keeper());
    shared.standings.nodes(node::beat(session, &Beat { name: &shared.node, place, started: *started, commit, is_keeper })?);
    Ok(true)
}

/// Takes in what is new.
fn look_for_changes(shared: &Shared, session: &Session) -> DatabaseResult<change::Reached> {
    let asked = Instant::now();
    let commit = change::last(session)?;
    shared.standings.round_trip(asked.elapsed());
    let (from, mut snapshot) = shared.published();
    if commit == from.commit {
        return Ok(change::Reached { shown: from, age_us: None });
    }
    session.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    let reached = change::catch_up(session, &mut snapshot, from, &shared.own_core);
    let ended = session.batch("COMMIT");
    let reached = reached?;
    ended?;
    shared.publish(reached.shown, snapshot);
    Ok(reached)
}

/// Waits before the next try; gives false if it is to stop.
fn pause(stop: &mut watch::Receiver<()>) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let Ok(runtime) = runtime else { return false };
    runtime.block_on(async { tokio::time::timeout(RETRY_TIME, stop.changed()).await.is_err() })
}
