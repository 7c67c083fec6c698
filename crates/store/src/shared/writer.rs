//! The thread that writes into a shared database: as `crate::writer`, but in front of each group it takes its turn among the nodes, and takes in what
//! they have committed. So an operation is decided on the database as it is, and its caller reads what it has written.

use std::{
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use bodkin_arrowhead::snapshot::Snapshot;
use tokio::sync::{mpsc, watch};

use super::{
    Shared,
    change::{self, Commit, Shown, Touched},
    session::Session,
};
use crate::{
    StoreError,
    database::{Database, DatabaseError, DatabaseResult},
    draft::Draft,
    refusal::Refusals,
    writer::{Answer, Executed, Order, Work, now},
};

/// Operations of one commit at the most: other nodes wait meanwhile.
const GROUP_OPERATIONS_MAX: usize = 64;
/// Between two tries to connect; who comes meanwhile is refused.
const RETRY_TIME: Duration = Duration::from_millis(250);

/// The writer's state.
pub(super) struct Writer {
    pub shared: Arc<Shared>,
    pub queue: mpsc::Receiver<Order>,
    pub session: Option<Session>,
    pub retry_at: Instant,
    pub refusals: Refusals,
    /// Ends the thread that follows the other nodes.
    pub follower: (watch::Sender<()>, JoinHandle<()>),
}

/// A group whose transaction is open.
struct Begun {
    snapshot: Snapshot,
    /// What the snapshot shows.
    shown: Shown,
}

impl Writer {
    /// Runs until every [`crate::Store`] handle is gone.
    pub fn run(mut self) {
        while let Some(order) = self.queue.blocking_recv() {
            match order {
                Order::Work(first) => self.turn(first),
                Order::Try => self.try_again(),
                Order::Copy(_) => tracing::error!("a shared database is not copied to another node"),
            }
        }
        let (stop, follower) = self.follower;
        drop(stop);
        if follower.join().is_err() {
            tracing::error!("who follows the shared database had stopped before");
        }
    }

    /// Carries out what is waiting, with a connection or, where there is none, without.
    fn turn(&mut self, first: Work) {
        match self.begun() {
            Ok((session, begun)) => {
                self.group(&session, begun, first);
                self.session = Some(session).filter(Session::is_usable);
            }
            Err(why) => {
                self.refusals.note(&why.to_string(), 1);
                first(Err(why.clone()));
                // Whoever waits behind would only be told the same, later.
                while let Ok(Order::Work(work)) = self.queue.try_recv() {
                    work(Err(why.clone()));
                }
            }
        }
    }

    /// Finds out whether a database that has refused a commit takes one again. A database that is not reached stays refused.
    fn try_again(&mut self) {
        if self.refusals.reason().is_none() {
            return;
        }
        let Ok(session) = self.connected() else { return };
        match session.batch(TRY) {
            Ok(()) => self.refusals.end(),
            Err(error) => {
                take_back(&session);
                self.refusals.note(&error.to_string(), 0);
            }
        }
        self.session = Some(session).filter(Session::is_usable);
    }

    /// An open transaction. That the connection has ended since it was used last is found out by using it: then a new one is made.
    fn begun(&mut self) -> Result<(Session, Begun), StoreError> {
        let is_kept = self.session.as_ref().is_some_and(Session::is_usable);
        let session = self.connected()?;
        match begin(&self.shared, &session) {
            Ok(begun) => return Ok((session, begun)),
            Err(error) => self.give_up(session, &error, !is_kept)?,
        }
        let session = self.connected()?;
        match begin(&self.shared, &session) {
            Ok(begun) => Ok((session, begun)),
            Err(error) => Err(self.give_up(session, &error, true).err().unwrap_or_else(|| refused(&error))),
        }
    }

    /// The transaction could not be begun: gives the refusal, unless another connection may do better.
    fn give_up(&mut self, session: Session, error: &DatabaseError, is_last: bool) -> Result<(), StoreError> {
        take_back(&session);
        let is_usable = session.is_usable();
        self.session = Some(session).filter(|_| is_usable);
        if !is_usable && !is_last {
            return Ok(());
        }
        if !is_usable {
            self.shared.standings.away(&error.to_string());
        }
        Err(refused(error))
    }

    /// The connection, or a new one.
    fn connected(&mut self) -> Result<Session, StoreError> {
        if let Some(session) = self.session.take().filter(Session::is_usable) {
            return Ok(session);
        }
        if Instant::now() < self.retry_at {
            return Err(StoreError::Unavailable(AWAY.to_owned()));
        }
        let connected = self.shared.connect("writes");
        self.retry_at = Instant::now() + RETRY_TIME;
        connected.map_err(|error| {
            self.shared.standings.away(&error.to_string());
            refused(&error)
        })
    }

    /// Carries out the group, commits once, publishes the snapshot, answers.
    fn group(&mut self, session: &Session, begun: Begun, first: Work) {
        let Begun { mut snapshot, shown } = begun;
        let mut draft = Draft::shared(Database::Postgres(session), &mut snapshot, now(), &self.shared.own_core);
        let mut waiting: Vec<Answer> = Vec::new();
        let mut next = Some(Order::Work(first));
        for _ in 0..GROUP_OPERATIONS_MAX {
            let Some(Order::Work(work)) = next.take().or_else(|| self.queue.try_recv().ok()) else { break };
            match work(Ok(&mut draft)) {
                Executed::Waiting(answer) => waiting.push(answer),
                Executed::Answered => {}
                Executed::Failed(answer, error) => {
                    answer(refused(&error));
                    take_back(session);
                    self.refusals.note(&error.to_string(), waiting.len() + 1);
                    return waiting.into_iter().for_each(|answer| answer(Err(refused(&error))));
                }
            }
        }
        match commit(session, shown.commit, &draft.into_touched()) {
            Ok(commit) => {
                self.refusals.end();
                self.shared.publish(Shown { commit, ..shown }, snapshot);
                waiting.into_iter().for_each(|answer| answer(Ok(())));
            }
            Err(error) => self.in_doubt(session, waiting, &error),
        }
    }

    /// The commit was not answered: it may be there or not.
    fn in_doubt(&self, session: &Session, waiting: Vec<Answer>, error: &DatabaseError) {
        take_back(session);
        self.refusals.note(&error.to_string(), waiting.len());
        let why = format!("The database did not answer: {error}. It is not known whether the change counts: look, then try again.");
        waiting.into_iter().for_each(|answer| answer(Err(StoreError::Unavailable(why.clone()))));
        if !session.is_usable() {
            self.shared.standings.away(&error.to_string());
        }
    }
}

/// Takes this node's turn, and takes in what the others have committed.
fn begin(shared: &Shared, session: &Session) -> DatabaseResult<Begun> {
    let [number, at_us] = session.batch_numbers(&format!("BEGIN; SELECT FROM shared FOR UPDATE; {}", change::LAST))?;
    let (mut shown, mut snapshot) = shared.published();
    if shown.commit != (Commit { number, at_us }) {
        shown = change::catch_up(session, &mut snapshot, shown, &shared.own_core)?.shown;
    }
    Ok(Begun { snapshot, shown })
}

/// Commits behind `last`; gives the last commit that there is then.
fn commit(session: &Session, last: Commit, touched: &Touched) -> DatabaseResult<Commit> {
    if touched.is_empty() {
        return session.batch("COMMIT").map(|()| last);
    }
    let number = last.number + 1;
    let [at_us] = session.batch_numbers(&change::commit(number, touched))?;
    Ok(Commit { number, at_us })
}

/// Ends a transaction that failed. Where that fails too, the connection's end ends it.
fn take_back(session: &Session) {
    if session.is_usable()
        && let Err(error) = session.batch("ROLLBACK")
    {
        tracing::warn!(%error, "the shared database did not take a rollback");
    }
}

/// Writes 32 KiB that do not compress into the turn's transaction, and removes them again. A full disk refuses them before it refuses a change, which may
/// fit into pages that are there.
const TRY: &str = "BEGIN; SELECT FROM shared FOR UPDATE; UPDATE shared SET number = number;
    INSERT INTO change (number, touched) SELECT -1, array_agg((random() * 9e18)::bigint) FROM generate_series(1, 4096);
    DELETE FROM change WHERE number = -1; COMMIT";

const AWAY: &str =
    "The shared database is not reached. Nothing was changed; try again later. What was last read from it is served meanwhile.";

fn refused(error: &DatabaseError) -> StoreError {
    StoreError::Unavailable(format!("The shared database cannot write: {error}. Nothing was changed; try again later."))
}
