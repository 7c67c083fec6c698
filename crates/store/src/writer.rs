//! The one thread that writes: operations in savepoints, commits in groups.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use arc_swap::ArcSwap;
use bodkin_arrowhead::{snapshot::Snapshot, utc::UtcTime};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::{
    StoreError,
    database::{Database, DatabaseError},
    draft::{Draft, OperationError},
    open,
    refusal::Refusals,
    replication::{Committed, Journal, Outlet},
};

/// Operations of one commit at the most: what a waiting operation may have in front of it in a group.
pub(crate) const GROUP_OPERATIONS_MAX: usize = 512;

/// An operation on its way to the writer: carried out on a draft, or answered with the reason why there is none.
pub(crate) type Work = Box<dyn FnOnce(Result<&mut Draft<'_>, StoreError>) -> Executed + Send>;

/// What the writer is asked to do.
pub(crate) enum Order {
    /// To carry an operation out.
    Work(Work),
    /// To write a copy of the database as it is between two commits.
    Copy(PathBuf),
    /// To find out whether a database that did not take the last change takes one again.
    Try,
}

/// What became of one operation within its group.
pub(crate) enum Executed {
    /// Carried out; answered when the group is committed.
    Waiting(Answer),
    /// Rolled back or not begun, and answered already.
    Answered,
    /// The database failed: the group cannot be committed.
    Failed(Box<dyn FnOnce(StoreError) + Send>, DatabaseError),
}

/// Sends the answer, or the reason why the group was lost.
pub(crate) type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Packs an operation, its view and its answer.
pub(crate) fn work<I, T, O, V>(operation: O, view: V, answer: oneshot::Sender<Result<T, StoreError>>) -> Work
where
    T: Send + 'static,
    O: FnOnce(&mut Draft<'_>) -> Result<I, OperationError> + Send + 'static,
    V: FnOnce(&Snapshot, I) -> T + Send + 'static,
{
    // A caller that is gone needs no answer, so failed sends are ignored.
    Box::new(move |draft| {
        // On a shared database a refusal counts only if the node still has its turn, as its commit shows.
        let (result, is_shared) = match draft {
            Ok(draft) => (draft.savepoint(operation).map(|id| view(draft.snapshot(), id)), draft.own_core().is_some()),
            Err(error) => {
                drop(answer.send(Err(error)));
                return Executed::Answered;
            }
        };
        match result {
            Ok(result) => Executed::Waiting(Box::new(move |committed| drop(answer.send(committed.map(|()| result))))),
            Err(OperationError::Refused(refusal)) if is_shared => {
                Executed::Waiting(Box::new(move |committed| drop(answer.send(committed.and(Err(refusal.into()))))))
            }
            Err(OperationError::Refused(refusal)) => {
                drop(answer.send(Err(refusal.into())));
                Executed::Answered
            }
            Err(OperationError::Database(error)) => Executed::Failed(Box::new(move |lost| drop(answer.send(Err(lost)))), error),
        }
    })
}

/// The writer's state.
pub(crate) struct Writer {
    pub connection: Connection,
    pub published: Arc<ArcSwap<Snapshot>>,
    pub queue: mpsc::Receiver<Order>,
    pub refusals: Refusals,
    /// Where commits go before they are answered; `None` where nobody repeats them.
    pub outlet: Option<Outlet>,
}

impl Writer {
    /// Runs until every [`crate::Store`] handle is gone, then folds the write-ahead log into the database.
    pub(crate) fn run(mut self) {
        while let Some(order) = self.queue.blocking_recv() {
            let mut next = Some(order);
            // What ends a group is not part of it.
            while let Some(order) = next.take() {
                match order {
                    Order::Work(first) => next = self.group(first),
                    Order::Copy(path) => self.copy(path),
                    Order::Try => self.try_again(),
                }
            }
        }
        open::fold(&self.connection);
    }

    /// Copies the database; who follows the commits is told between the two that it lies between.
    fn copy(&mut self, path: PathBuf) {
        let text = path.to_string_lossy();
        let result = self.connection.execute("VACUUM INTO ?1", [&*text]).map(|_| path.clone());
        if result.is_err() {
            // A partial copy would keep the disk full. It may not exist.
            for file in [&path, Path::new(&format!("{text}-journal"))] {
                let _ = fs::remove_file(file);
            }
        }
        if let Some(outlet) = &mut self.outlet {
            outlet(Committed::Copy(result.map_err(|error| format!("the database could not be copied to {text}: {error}"))));
        }
    }

    /// Writes one page as it is, unless a change was taken in the meantime.
    fn try_again(&self) {
        if self.refusals.reason().is_none() {
            return;
        }
        let version = self.connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0));
        let write = |version| self.connection.execute_batch(&format!("BEGIN IMMEDIATE; PRAGMA user_version = {version}; COMMIT"));
        match version.and_then(write) {
            Ok(()) => self.refusals.end(),
            Err(error) => self.take_back(&error.into(), 0),
        }
    }

    /// Carries out what is waiting, commits once, publishes the snapshot, answers. Gives the order that it has stopped at.
    fn group(&mut self, first: Work) -> Option<Order> {
        if let Err(error) = self.connection.execute_batch("BEGIN IMMEDIATE") {
            let error = error.into();
            first(Err(unavailable(&error)));
            self.refusals.note(&error.to_string(), 1);
            return None;
        }
        let mut snapshot = Snapshot::clone(&self.published.load());
        let mut draft = Draft::new(Database::Sqlite(&self.connection), &mut snapshot, now(), self.outlet.is_some().then(Journal::default));
        let mut waiting: Vec<Answer> = Vec::new();
        let mut next = Some(Order::Work(first));
        for _ in 0..GROUP_OPERATIONS_MAX {
            let Some(order) = next.take().or_else(|| self.queue.try_recv().ok()) else { break };
            let work = match order {
                Order::Work(work) => work,
                other @ (Order::Copy(_) | Order::Try) => {
                    next = Some(other);
                    break;
                }
            };
            match work(Ok(&mut draft)) {
                Executed::Waiting(answer) => waiting.push(answer),
                Executed::Answered => {}
                Executed::Failed(answer, error) => {
                    answer(unavailable(&error));
                    self.lose(waiting, &error);
                    return None;
                }
            }
        }
        let journal = draft.into_journal();
        match self.connection.execute_batch("COMMIT") {
            Ok(()) => {
                self.published.store(Arc::new(snapshot));
                self.refusals.end();
                match (&mut self.outlet, journal) {
                    (Some(outlet), Some(journal)) => outlet(journal.committed(waiting)),
                    _ => waiting.into_iter().for_each(|answer| answer(Ok(()))),
                }
            }
            Err(error) => self.lose(waiting, &error.into()),
        }
        next
    }

    /// Takes the group back and tells everybody in it. The published snapshot was not touched.
    fn lose(&self, waiting: Vec<Answer>, error: &DatabaseError) {
        self.take_back(error, waiting.len() + 1);
        waiting.into_iter().for_each(|answer| answer(Err(unavailable(error))));
    }

    /// Ends the transaction that was not taken, and notes why.
    fn take_back(&self, error: &DatabaseError, operations: usize) {
        self.refusals.note(&error.to_string(), operations);
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "the database refused a rollback");
        }
    }
}

/// The time that operations are carried out at.
pub(crate) fn now() -> UtcTime {
    UtcTime::from_system_time(SystemTime::now()).expect("the clock shows a year from 1970 to 9999")
}

fn unavailable(error: &DatabaseError) -> StoreError {
    StoreError::Unavailable(format!(
        "The database cannot write: {error}. Nothing was changed; make room or repair the disk, then try again."
    ))
}
