//! A node's name belongs to one process: the one whose session holds the name's advisory lock.
//!
//! A second process of the name (a copied data directory, a cloned machine) is refused at its start. A process that was cut off
//! from the database and finds the name taken stops serving. Which start of which directory held the name last is in the
//! table `node_start`, so that a restored directory is noticed.

use std::time::{Duration, Instant};

use super::{
    node::{BEAT_TIME, SILENT_AFTER},
    session::Session,
};
use crate::{
    database::{DatabaseError, DatabaseResult, params},
    identity::{DirectoryIdentity, Incarnation, Lineage},
};

/// First key of the advisory lock of a node's name.
const LOCK_CLASS: i64 = 0x626f_646b;
/// How long a holder that renews no row is waited for, before its session is ended.
const WAIT_MAX: Duration = SILENT_AFTER.saturating_add(BEAT_TIME);
/// Between two tries to get the lock.
const RETRY_TIME: Duration = Duration::from_millis(500);
/// How long the server may take to end a session.
const END_TIME_MAX: Duration = Duration::from_secs(3);

/// Which directories and starts there were of each node.
pub(super) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS bodkin.node_start (name TEXT PRIMARY KEY, lineage TEXT NOT NULL, incarnation TEXT NOT NULL, address TEXT,
    started_at TIMESTAMPTZ NOT NULL, restored_at TIMESTAMPTZ);
";

/// Why a process does not get its node's name.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClaimError {
    /// Another process serves under the name.
    #[error(
        "node {node} is served by another process, incarnation {incarnation}, started {started} at {address}; this one is incarnation {own}. Both work on copies of one data directory, \
        which have one identity: stop one of them. A node of its own starts with an empty --data"
    )]
    InUse { node: String, incarnation: String, started: String, address: String, own: Incarnation },
    /// The name was drawn for another directory.
    #[error(
        "node {node} is the data directory {found}, and this is directory {own}: the file `node` here was copied from there. Remove the file here, and this directory gets a name of its own"
    )]
    OtherDirectory { node: String, found: String, own: Lineage },
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Takes the name for this process at its start.
///
/// Blocks for up to 15 s where a session of the name is left over from a host that is gone.
///
/// # Errors
/// Returns an error if another process serves under the name, or another directory has it.
pub(super) fn take(session: &Session, node: &str, identity: &DirectoryIdentity) -> Result<(), ClaimError> {
    // Before the lock: the node whose name this is may run, and a stalled one would lose its session to this process.
    refuse_other_directory(session, node, identity)?;
    wait_for_lock(session, node, identity)?;
    // Again: the other directory may have started for the first time meanwhile.
    refuse_other_directory(session, node, identity)?;
    let last = last_start(session, node)?;
    let is_restored = last.is_some_and(|last| !identity.descends_from(last));
    if let (Some(last), true) = (last, is_restored) {
        tracing::error!(
            node,
            last_incarnation = %last,
            incarnation = %identity.incarnation,
            "this data directory was restored or copied: the node was started since then from another copy, and this event log may lack events"
        );
    }
    note(session, node, identity, is_restored)?;
    Ok(())
}

/// Takes the name again on another session of the same process.
///
/// # Errors
/// Returns [`ClaimError::InUse`] if another process has served under the name since.
pub(super) fn keep(session: &Session, node: &str, identity: &DirectoryIdentity) -> Result<(), ClaimError> {
    let is_locked = try_lock(session, node)?;
    let last = last_start(session, node)?;
    let is_own = last.is_none_or(|last| last == identity.incarnation || identity.descends_from(last));
    if !is_own {
        return Err(in_use(session, node, identity)?);
    }
    if !is_locked {
        // It is a session of this process, which the server has not given up yet.
        end_holder(session, node)?;
        if !lock_within(session, node, END_TIME_MAX)? {
            return Err(in_use(session, node, identity)?);
        }
    }
    // A standby that was promoted may lack it.
    if last != Some(identity.incarnation) {
        note(session, node, identity, false)?;
    }
    Ok(())
}

/// Returns [`ClaimError::OtherDirectory`] if the name was drawn for another directory.
fn refuse_other_directory(session: &Session, node: &str, identity: &DirectoryIdentity) -> Result<(), ClaimError> {
    let found: Option<String> = session.one("SELECT lineage FROM node_start WHERE name = ?1", [node])?;
    match found.filter(|found| *found != identity.lineage.to_string()) {
        Some(found) => Err(ClaimError::OtherDirectory { node: node.to_owned(), found, own: identity.lineage }),
        None => Ok(()),
    }
}

fn wait_for_lock(session: &Session, node: &str, identity: &DirectoryIdentity) -> Result<(), ClaimError> {
    let begun = Instant::now();
    let mut first_seen = None;
    while !try_lock(session, node)? {
        let seen: Option<i64> = session.one("SELECT (extract(epoch FROM seen_at) * 1000000)::bigint FROM node WHERE name = ?1", [node])?;
        if *first_seen.get_or_insert(seen) != seen {
            return Err(in_use(session, node, identity)?);
        }
        if begun.elapsed() >= WAIT_MAX {
            tracing::warn!(
                node,
                "the session of a former process of this node is ended: it has renewed nothing for {} s",
                WAIT_MAX.as_secs()
            );
            end_holder(session, node)?;
            if lock_within(session, node, END_TIME_MAX)? {
                return Ok(());
            }
            return Err(in_use(session, node, identity)?);
        }
        std::thread::sleep(RETRY_TIME);
    }
    Ok(())
}

fn lock_within(session: &Session, node: &str, time_max: Duration) -> DatabaseResult<bool> {
    let begun = Instant::now();
    while !try_lock(session, node)? {
        if begun.elapsed() >= time_max {
            return Ok(false);
        }
        std::thread::sleep(RETRY_TIME / 5);
    }
    Ok(true)
}

fn try_lock(session: &Session, node: &str) -> DatabaseResult<bool> {
    let locked = session.one("SELECT pg_try_advisory_lock(?1::bigint::int, ?2::bigint::int)", [LOCK_CLASS, key_of(node)])?;
    Ok(locked == Some(true))
}

fn end_holder(session: &Session, node: &str) -> DatabaseResult<()> {
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND classid = ?1::bigint::oid
        AND objid = ?2::bigint::oid AND pid <> pg_backend_pid() AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    session.one::<i64>(end, [LOCK_CLASS, key_of(node)]).map(drop)
}

/// The last start of the node that any process has noted.
fn last_start(session: &Session, node: &str) -> DatabaseResult<Option<Incarnation>> {
    let last: Option<String> = session.one("SELECT incarnation FROM node_start WHERE name = ?1", [node])?;
    Ok(last.and_then(|last| last.parse().ok()))
}

fn note(session: &Session, node: &str, identity: &DirectoryIdentity, is_restored: bool) -> DatabaseResult<()> {
    let (lineage, incarnation) = (identity.lineage.to_string(), identity.incarnation.to_string());
    session
        .run(
            "INSERT INTO node_start (name, lineage, incarnation, address, started_at, restored_at)
            VALUES (?1, ?2, ?3, host(inet_client_addr()), clock_timestamp(), CASE WHEN ?4 THEN clock_timestamp() END)
            ON CONFLICT (name) DO UPDATE SET lineage = excluded.lineage, incarnation = excluded.incarnation, address = excluded.address,
            started_at = excluded.started_at, restored_at = coalesce(excluded.restored_at, node_start.restored_at)",
            params![node, &*lineage, &*incarnation, is_restored],
        )
        .map(drop)
}

fn in_use(session: &Session, node: &str, identity: &DirectoryIdentity) -> DatabaseResult<ClaimError> {
    let rows = session.rows(
        "SELECT incarnation, to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), coalesce(address, 'this machine') FROM node_start WHERE name = ?1",
        [node],
    )?;
    let text = |column: usize| rows.first().and_then(|row| row.try_get::<_, String>(column).ok()).unwrap_or_else(|| "unknown".to_owned());
    let (incarnation, started, address) = (text(0), text(1), text(2));
    Ok(ClaimError::InUse { node: node.to_owned(), incarnation, started, address, own: identity.incarnation })
}

/// Second key of the advisory lock of a node's name: a positive number of 31 bits.
fn key_of(node: &str) -> i64 {
    let number = u64::from_str_radix(node, 16).expect("a node's name is 16 hexadecimal digits");
    i64::from((number ^ number >> 32) as u32 & 0x7fff_ffff)
}
