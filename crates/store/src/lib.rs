//! Durable state: one writer with group commit, immutable snapshots for every reader; the [`event_log`]; and the [`audit`] log.
//!
//! An operation is answered after the commit that holds it and after the published snapshot shows it, so that a kill at
//! any instant loses nothing that was answered. Conflicts are decided by the database's constraints, never by a look at
//! the snapshot. Readers take [`Store::snapshot`] and are never blocked.
//!
//! The database is a file of this node (SQLite), or one that several nodes share ([`shared`], PostgreSQL).

mod accepted_event;
pub mod audit;
mod authorization;
pub mod certificate_line;
mod cloud;
mod database;
pub mod database_choice;
pub mod delivery;
mod draft;
pub mod event_log;
mod flexible_store;
mod followed;
pub mod following;
mod graph;
pub mod identity;
pub mod import;
pub mod inspection;
pub mod leader;
mod load;
mod log;
pub mod onboarding;
mod open;
mod orchestrator_store;
mod refusal;
mod relay;
pub mod replica;
pub mod replication;
mod reservation;
pub mod safety_copy;
mod schema;
mod service_registry;
pub mod shared;
mod subscription;
mod table;
mod topic;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Acquire},
    },
};

use arc_swap::{ArcSwap, Guard};
use bodkin_arrowhead::{
    error::ArrowheadError,
    log::{LogEntryView, LogQuery},
    page::Page,
    snapshot::Snapshot,
};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    database::Database,
    following::{Following, Reporter},
    identity::DirectoryIdentity,
    refusal::Refusals,
    replication::Outlet,
    shared::{AuditCopy, DatabasePlace, Exchange, NodePlace, Shared, Standing},
    writer::Order,
};

pub use crate::{
    database::DatabaseError,
    draft::{Draft, OperationError},
    graph::GraphMoves,
    open::{OpenError, Opened},
    service_registry::{REMOVAL_ROWS_MAX, UnreachableEntry},
};

/// Operations that may wait for the writer; the next one is refused with 503.
pub const WRITE_QUEUE_OPERATIONS_MAX: usize = 32_768;

/// Why an operation was not carried out. Nothing of it was kept.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The operation breaks a rule.
    #[error(transparent)]
    Refused(#[from] ArrowheadError),
    /// The disk or the database does not do its work; the text says what and what to do.
    #[error("{0}")]
    Unavailable(String),
}

/// The handle everybody holds.
#[derive(Clone)]
pub struct Store {
    source: Source,
    published: Arc<ArcSwap<Snapshot>>,
    writer: mpsc::Sender<Order>,
    refusals: Refusals,
    /// Whether this node writes; while it follows another one it does not.
    leads: Arc<AtomicBool>,
    identity: Arc<DirectoryIdentity>,
}

/// Where what the snapshot does not hold is read.
#[derive(Clone)]
enum Source {
    /// SQLite's file.
    File(Arc<Path>),
    /// PostgreSQL.
    Shared(Arc<Shared>),
}

impl Store {
    /// Opens (or makes) the database in `directory`, loads it and starts the writer thread.
    ///
    /// The directory is locked against a second process until the returned [`Opened`] is closed or dropped.
    pub fn open(directory: &Path) -> Result<Opened, OpenError> {
        open::open(directory, None)
    }

    /// As [`Self::open`], for a database whose commits another node repeats: each goes through `outlet`, which has it answered.
    pub fn open_replicated(directory: &Path, outlet: Outlet) -> Result<Opened, OpenError> {
        open::open(directory, Some(outlet))
    }

    /// Opens the database in `directory` to follow another node: what is in it is served until a copy of the other one's has come, and writes
    /// are refused until [`Following::promote`]. `report` is told what has become of what the other node has sent.
    pub fn follow(directory: &Path, report: Reporter) -> Result<(Opened, Following), OpenError> {
        open::follow(directory, report)
    }

    /// Opens a database that other nodes share, and loads it. `directory` is this node's own: it has the node's name, and files beside the database.
    pub fn share(directory: &Path, place: &DatabasePlace) -> Result<Opened, OpenError> {
        shared::open(directory, place)
    }

    /// Which data directory this is, and which start of it.
    pub fn identity(&self) -> &Arc<DirectoryIdentity> {
        &self.identity
    }

    /// Tells why this process may not serve any more, once another process has its node's name; `None`: the database is its own.
    pub fn displaced(&self) -> Option<watch::Receiver<Option<String>>> {
        match &self.source {
            Source::File(_) => None,
            Source::Shared(shared) => Some(shared.displaced()),
        }
    }

    /// How this node stands with the database that it shares; `None`: the database is its own.
    pub fn standing(&self) -> Option<Standing> {
        match &self.source {
            Source::File(_) => None,
            Source::Shared(shared) => Some(shared.standing()),
        }
    }

    /// Tells that something beside the snapshot has got through to the other nodes, or is about to for the first time ([`Standing`]).
    pub fn exchanged(&self, what: Exchange) {
        if let Source::Shared(shared) = &self.source {
            shared.exchanged(what);
        }
    }

    /// Has the other nodes of a shared database told where this one is; without others there is nobody to tell.
    pub fn introduce(&self, place: NodePlace) {
        if let Source::Shared(shared) = &self.source {
            shared.introduce(place);
        }
    }

    /// What this node is called among those that share the database, and their cloud among all; `None`: the database is its own.
    pub fn shared_names(&self) -> Option<(&str, &str)> {
        match &self.source {
            Source::File(_) => None,
            Source::Shared(shared) => Some(shared.names()),
        }
    }

    /// Tells when other nodes may have brought lines of the cloud's account of certificates; `None`: the database is its own, and so is the account.
    pub fn certificate_news(&self) -> Option<watch::Receiver<()>> {
        match &self.source {
            Source::File(_) => None,
            Source::Shared(shared) => Some(shared.certificates()),
        }
    }

    /// Where the copy of this node's audit log ends that other nodes read, at a start; `None`: there are no others. `is_there` says whether the log has a
    /// line: if not, it is another log than before, whose copy begins anew. Waits for the database.
    pub fn begin_audit(&self, is_there: impl FnOnce(audit::Head) -> bool + Send) -> Result<Option<u64>, StoreError> {
        match &self.source {
            Source::File(_) => Ok(None),
            Source::Shared(shared) => shared.begin_audit(is_there).map(Some).map_err(not_brought),
        }
    }

    /// Has a copy of lines of this node's audit log, for the others. Waits for the database.
    pub fn bring_audit(&self, copies: &[AuditCopy]) -> Result<(), StoreError> {
        match &self.source {
            Source::File(_) => Ok(()),
            Source::Shared(shared) => shared.bring_audit(copies).map_err(not_brought),
        }
    }

    /// Whether this node does what is to be done once in the cloud, now and then.
    pub fn is_keeper(&self) -> bool {
        match &self.source {
            Source::File(_) => true,
            Source::Shared(shared) => shared.is_keeper(),
        }
    }

    /// Has the database copied into a file that is not there yet. The outlet is told when it is, between the commits that are in the copy
    /// and those that are not.
    pub fn copy_to(&self, path: PathBuf) -> Result<(), StoreError> {
        self.order(Order::Copy(path))
    }

    /// The local cloud as last committed.
    pub fn snapshot(&self) -> Guard<Arc<Snapshot>> {
        self.published.load()
    }

    /// A page of the log; waits for the disk, so call it where that is no harm.
    pub fn log(&self, query: &LogQuery) -> Result<Page<LogEntryView>, StoreError> {
        self.read_now(|draft| draft.log_page(query))
    }

    /// Reads what the snapshot does not hold as it was last committed, while this node leads and while it follows. On a connection of its own,
    /// which refuses what changes something; it waits for the disk, so call it where that is no harm.
    pub fn read_now<T: Send>(&self, read: impl FnOnce(&mut Draft<'_>) -> Result<T, OperationError> + Send) -> Result<T, StoreError> {
        let answer = match &self.source {
            Source::File(file) => {
                let mut snapshot = Snapshot::clone(&self.snapshot());
                open::reader(file)
                    .map_err(|error| OperationError::Database(error.into()))
                    .and_then(|connection| read(&mut Draft::new(Database::Sqlite(&connection), &mut snapshot, writer::now(), None)))
            }
            Source::Shared(shared) => shared.read(read),
        };
        answer.map_err(|error| match error {
            OperationError::Refused(refusal) => refusal.into(),
            OperationError::Database(error) => StoreError::Unavailable(format!("The database cannot be read: {error}.")),
        })
    }

    /// As [`Self::read_now`], on a thread that may wait. Must be called within a tokio runtime.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut Draft<'_>) -> Result<T, OperationError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let store = self.clone();
        let answer = tokio::task::spawn_blocking(move || store.read_now(read)).await;
        answer.unwrap_or_else(|_| Err(StoreError::Unavailable("The local cloud is shutting down.".into())))
    }

    /// Carries an operation out and waits until it is durable and visible.
    ///
    /// `operation` runs on the writer thread inside a savepoint; `view` then renders its result from the snapshot that
    /// holds it.
    pub async fn write<I, T, O, V>(&self, operation: O, view: V) -> Result<T, StoreError>
    where
        I: Send + 'static,
        T: Send + 'static,
        O: FnOnce(&mut Draft<'_>) -> Result<I, OperationError> + Send + 'static,
        V: FnOnce(&Snapshot, I) -> T + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let work = writer::work(operation, view, answer);
        self.order(Order::Work(work))?;
        answered.await.unwrap_or_else(|_| Err(StoreError::Unavailable("The local cloud is shutting down.".into())))
    }

    /// Returns why the database did not take the last change, in its words, or `None` since it has taken one.
    pub fn refusal(&self) -> Option<Arc<String>> {
        self.refusals.reason()
    }

    /// Returns the number of commits that the database has refused since the start.
    pub fn refused_commits(&self) -> u64 {
        self.refusals.count()
    }

    /// Has a database that did not take the last change tried with a write that changes nothing; [`Self::refusal`] says what has come of it. Otherwise, and
    /// while another node leads, nothing is done.
    pub fn try_again(&self) {
        if self.refusal().is_some() {
            // With orders waiting there is something to try.
            let _ = self.order(Order::Try);
        }
    }

    fn order(&self, order: Order) -> Result<(), StoreError> {
        if !self.leads.load(Acquire) {
            return Err(StoreError::Unavailable("Another node of the pair leads; nothing was changed. Send it to that one.".into()));
        }
        self.writer.try_send(order).map_err(refused)
    }
}

fn not_brought(error: DatabaseError) -> StoreError {
    StoreError::Unavailable(format!("The audit log is not copied for the other nodes: {error}."))
}

fn refused<T>(error: mpsc::error::TrySendError<T>) -> StoreError {
    StoreError::Unavailable(match error {
        mpsc::error::TrySendError::Full(_) => {
            format!("{WRITE_QUEUE_OPERATIONS_MAX} operations are waiting for the database. Try again later.")
        }
        mpsc::error::TrySendError::Closed(_) => "The local cloud is shutting down.".into(),
    })
}
