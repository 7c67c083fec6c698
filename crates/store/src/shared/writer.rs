//! The thread that writes into a shared database: as `crate::writer`, but before each group it takes its turn among the nodes, and takes in what they have
//! committed. So an operation is decided on the database as it is, and its caller reads what it has written. A turn is two messages and their answers, three
//! where other nodes have committed meanwhile, and one more for each statement that the node's mirror cannot decide ([`super::turn`]).

use std::{
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use bodkin_arrowhead::snapshot::Snapshot;
use tokio::sync::{mpsc, watch};

use super::{
    Shared,
    change::{self, COMMIT, Commit, Shown, Touched},
    copy::{Begun, Copy},
    session::Session,
    turn::Turn,
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

/// Round trip from which on a node pauses behind its turn while other nodes commit too.
const PAUSE_ROUND_TRIP_MIN: Duration = Duration::from_millis(20);
/// That pause, in times of the turn: such a node has at most a tenth of the time.
const PAUSE_FACTOR: u32 = 9;
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Tries to begin a turn with a copy of the tables that is read again before each further one.
const BEGIN_TRIES: usize = 3;

/// The writer's state.
pub(super) struct Writer {
    pub shared: Arc<Shared>,
    pub queue: mpsc::Receiver<Order>,
    pub session: Option<Session>,
    /// What it knows of the database; read when it is needed, and again behind a failure that leaves it in doubt.
    pub copy: Option<Copy>,
    /// Before that it leaves the turn to other nodes.
    pub next_turn: Instant,
    pub retry_at: Instant,
    pub refusals: Refusals,
    /// Ends the thread that follows the other nodes.
    pub follower: (watch::Sender<()>, JoinHandle<()>),
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
        std::thread::sleep(self.next_turn.saturating_duration_since(Instant::now()));
        match self.begun() {
            Ok((session, copy, begun)) => {
                self.group(&session, copy, begun, first);
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
    fn begun(&mut self) -> Result<(Session, Copy, Begun), StoreError> {
        let is_kept = self.session.as_ref().is_some_and(Session::is_usable);
        let session = self.connected()?;
        match self.begin(&session) {
            Ok((copy, begun)) => return Ok((session, copy, begun)),
            Err(error) => self.give_up(session, &error, !is_kept)?,
        }
        let session = self.connected()?;
        match self.begin(&session) {
            Ok((copy, begun)) => Ok((session, copy, begun)),
            Err(error) => Err(self.give_up(session, &error, true).err().unwrap_or_else(|| refused(&error))),
        }
    }

    /// Takes this node's turn, with a copy of the tables that shows what there is.
    fn begin(&mut self, session: &Session) -> DatabaseResult<(Copy, Begun)> {
        let mut setbacks = self.shared.shown().setbacks;
        for _ in 0..BEGIN_TRIES {
            let mut copy = match self.copy.take() {
                Some(copy) => copy,
                None => Copy::read(&self.shared, session, setbacks)?,
            };
            match copy.begin(&self.shared, session) {
                Ok(Ok(begun)) => return Ok((copy, begun)),
                Ok(Err(outdated)) => {
                    setbacks = outdated.setbacks;
                    session.batch("ROLLBACK")?;
                }
                Err(error) => {
                    self.copy = Some(copy).filter(|copy| copy.is_whole);
                    return Err(error);
                }
            }
        }
        Err(DatabaseError::Diverged("other nodes change it faster than it is read".to_owned()))
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
    fn group(&mut self, session: &Session, copy: Copy, begun: Begun, first: Work) {
        let mut waiting = Vec::new();
        let carried = self.carry_out(session, &copy, begun.deadline, first, &mut waiting).map_err(Failure::Refused);
        match carried.and_then(|carried| commit(session, copy.shown.commit, carried)) {
            Ok((commit, snapshot)) => {
                self.refusals.end();
                let shown = Shown { commit, ..copy.shown };
                if copy.mirror.end(true).is_ok() {
                    self.copy = Some(Copy { snapshot: snapshot.clone(), shown, ..copy });
                }
                self.shared.publish(shown, snapshot);
                waiting.into_iter().for_each(|answer| answer(Ok(())));
            }
            Err(failure) => self.lose(session, copy, waiting, &failure),
        }
        if begun.is_contended && self.shared.standings.told().round_trip >= Some(PAUSE_ROUND_TRIP_MIN) {
            self.next_turn = Instant::now() + (begun.at.elapsed() * PAUSE_FACTOR).min(PAUSE_MAX);
        }
    }

    /// Carries out the first operation and those that wait. Who is to be answered with the commit is in `waiting`.
    fn carry_out(
        &mut self,
        session: &Session,
        copy: &Copy,
        deadline: Instant,
        first: Work,
        waiting: &mut Vec<Answer>,
    ) -> DatabaseResult<Carried> {
        let turn = Turn::new(session, &copy.mirror, deadline);
        let mut snapshot = copy.snapshot.clone();
        let mut draft = Draft::shared(Database::Turn(&turn), &mut snapshot, now(), &self.shared.own_core);
        let mut next = Some(Order::Work(first));
        for _ in 0..GROUP_OPERATIONS_MAX {
            let Some(Order::Work(work)) = next.take().or_else(|| self.queue.try_recv().ok()) else { break };
            match work(Ok(&mut draft)) {
                Executed::Waiting(answer) => waiting.push(answer),
                Executed::Answered => {}
                Executed::Failed(answer, error) => {
                    waiting.push(Box::new(move |lost| lost.err().map_or((), answer)));
                    return Err(error);
                }
            }
        }
        let touched = draft.into_touched();
        turn.remaining()?;
        Ok(Carried { snapshot, touched, script: turn.into_script()? })
    }

    /// The group was not committed, or it is not known whether it was.
    fn lose(&mut self, session: &Session, copy: Copy, waiting: Vec<Answer>, failure: &Failure) {
        let (Failure::Refused(error) | Failure::InDoubt(error)) = failure;
        self.refusals.note(&error.to_string(), waiting.len());
        take_back(session);
        if !session.is_usable() {
            self.shared.standings.away(&error.to_string());
        }
        let why = match failure {
            Failure::Refused(error) => refused(error),
            Failure::InDoubt(error) => StoreError::Unavailable(format!(
                "The database did not answer: {error}. It is not known whether the change counts: look, then try again."
            )),
        };
        // What is in doubt is not in the copy, nor is what the copy has wrong found in it: it is read again.
        if matches!(failure, Failure::Refused(error) if !error.is_divergence()) && copy.mirror.end(false).is_ok() {
            self.copy = Some(copy);
        }
        waiting.into_iter().for_each(|answer| answer(Err(why.clone())));
    }
}

/// A group that is carried out, and not sent as a whole.
struct Carried {
    snapshot: Snapshot,
    touched: Touched,
    /// What is to be sent before the commit.
    script: String,
}

/// Why a group was not committed.
enum Failure {
    /// The database has taken it back.
    Refused(DatabaseError),
    /// The commit was not answered: it may be there or not.
    InDoubt(DatabaseError),
}

/// Sends what is left of the group, and commits behind `last`; gives the last commit that there is then.
fn commit(session: &Session, last: Commit, carried: Carried) -> Result<(Commit, Snapshot), Failure> {
    let Carried { snapshot, touched, script } = carried;
    let failed = |error: DatabaseError| {
        // An error that leaves the connection usable was found before the commit.
        if error.state().is_some() && session.is_usable() { Failure::Refused(error) } else { Failure::InDoubt(error) }
    };
    if touched.is_empty() {
        session.batch(&format!("{script}{COMMIT}")).map_err(failed)?;
        return Ok((last, snapshot));
    }
    let number = last.number + 1;
    let [at_us] = session.batch_numbers(&format!("{script}{}", change::commit(number, &touched))).map_err(failed)?;
    Ok((Commit { number, at_us }, snapshot))
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
