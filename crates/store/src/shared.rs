//! One cloud of several nodes: its state is in a PostgreSQL database that they share (`docs/design/shared-database.md`).

mod audit_line;
mod change;
mod claim;
mod copy;
mod follower;
mod look;
mod migrate;
mod mirror;
mod node;
mod own_core;
mod place;
mod reader;
mod schema;
mod script;
pub(crate) mod session;
mod standing;
mod tls;
mod turn;
mod writer;

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use arc_swap::ArcSwap;
use bodkin_arrowhead::snapshot::Snapshot;
use tokio::sync::{mpsc, watch};

use self::change::{Commit, Shown};
pub use self::{
    audit_line::{AUDIT_LINES_KEPT, AuditCopy, NodeChain, NodeEntries, NodeEntry, audit_at, audit_chains_at},
    look::{Look, look},
    migrate::{MigrateError, Migrated, migrate},
    node::{NodePlace, NodeRow, Nodes, SILENT_AFTER},
    place::{DatabasePlace, NoPlace, Secrecy},
    standing::{Exchange, Standing},
};
pub(crate) use self::{change::Touched, own_core::OwnCore, script::DIVERGED, turn::Turn};
use self::{reader::Reader, session::Session, standing::Standings, writer::Writer};
use crate::{
    OpenError,
    audit::Head,
    database::{Database, DatabaseResult},
    database_choice,
    draft::{Draft, OperationError},
    identity::DirectoryIdentity,
    open::Opened,
    refusal::Refusals,
    writer::{self as own_writer, Order},
};

/// How long a node may hold its turn: then the server takes its transaction back, also if the node's network is cut.
pub(crate) const TURN_TIME_MAX: Duration = Duration::from_secs(3);

/// File of a data directory with the name of its node.
pub(crate) const NODE_FILE: &str = "node";

/// What the threads that work on a shared database have in common.
pub(crate) struct Shared {
    place: DatabasePlace,
    node: String,
    /// Drawn once for the database: 32 hexadecimal digits.
    cloud: String,
    /// What the published snapshot shows. Held while one is published.
    shown: Mutex<Shown>,
    snapshot: Arc<ArcSwap<Snapshot>>,
    standings: Standings,
    /// Told when the account of certificates may have new lines.
    certificates: watch::Sender<()>,
    own_core: OwnCore,
    /// What the other nodes are told of this one, and when it was started.
    place_told: OnceLock<(NodePlace, SystemTime)>,
    /// The connection of those who read what the snapshot does not hold.
    reader: Reader,
    /// The connection that brings the audit log, beside the writers' turns.
    copier: Mutex<Option<Session>>,
    identity: Arc<DirectoryIdentity>,
    /// Why this process may not serve any more, once another one has its node's name.
    displaced: watch::Sender<Option<String>>,
}

impl Shared {
    fn connect(&self, role: &str) -> DatabaseResult<Session> {
        Session::connect(&self.place, &self.node, role)
    }

    /// The published snapshot, and what it shows.
    fn published(&self) -> (Shown, Snapshot) {
        let shown = self.shown();
        (*shown, Snapshot::clone(&self.snapshot.load()))
    }

    /// Publishes a snapshot, unless a later one is published already.
    fn publish(&self, shown: Shown, snapshot: Snapshot) {
        let mut published = self.shown();
        if shown > *published {
            *published = shown;
            self.snapshot.store(Arc::new(snapshot));
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How this node stands with the database.
    pub(crate) fn standing(&self) -> Standing {
        self.standings.told()
    }

    /// Something beside the snapshot has got through, or is about to for the first time.
    pub(crate) fn exchanged(&self, what: Exchange) {
        self.standings.exchanged(what);
    }

    /// Tells why this process may not serve any more, once another one has its node's name.
    pub(crate) fn displaced(&self) -> watch::Receiver<Option<String>> {
        self.displaced.subscribe()
    }

    /// What this node is called, and its cloud.
    pub(crate) fn names(&self) -> (&str, &str) {
        (&self.node, &self.cloud)
    }

    /// Has the other nodes told of this one; what is said first counts.
    pub(crate) fn introduce(&self, place: NodePlace) {
        self.place_told.get_or_init(|| (place, SystemTime::now()));
    }

    /// Tells when the account of certificates may have new lines, and that it may have now.
    pub(crate) fn certificates(&self) -> watch::Receiver<()> {
        let mut news = self.certificates.subscribe();
        news.mark_changed();
        news
    }

    /// Whether this node does what is to be done once in the cloud.
    pub(crate) fn is_keeper(&self) -> bool {
        self.standings.is_keeper()
    }

    /// Reads in a transaction that changes nothing. On a thread of its own, which may wait wherever the caller is.
    pub(crate) fn read<T: Send>(&self, read: impl FnOnce(&mut Draft<'_>) -> Result<T, OperationError> + Send) -> Result<T, OperationError> {
        let outcome = std::thread::scope(|scope| scope.spawn(|| self.read_waiting(read)).join());
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Where the copy of this node's audit log ends, at a start: what is too much of all nodes' goes. `is_there` says whether the log has a line, which it has
    /// unless it is another one than before.
    pub(crate) fn begin_audit(&self, is_there: impl FnOnce(Head) -> bool + Send) -> DatabaseResult<u64> {
        self.beside(|session| {
            audit_line::forget(session)?;
            match audit_line::reached(session, &self.node)? {
                None => Ok(0),
                Some(reached) if is_there(reached) => Ok(reached.number),
                Some(_) => audit_line::retire(session, &self.node).map(|()| 0),
            }
        })
    }

    /// Has a copy of lines of this node's audit log, for the others.
    pub(crate) fn bring_audit(&self, copies: &[AuditCopy]) -> DatabaseResult<()> {
        self.beside(|session| audit_line::bring(session, &self.node, copies))
    }

    /// Works with a connection of its own, on a thread that may wait. One that has failed is not used again.
    fn beside<T: Send>(&self, work: impl FnOnce(&Session) -> DatabaseResult<T> + Send) -> DatabaseResult<T> {
        let work = || {
            let mut kept = self.copier.lock().unwrap_or_else(PoisonError::into_inner);
            let session = match kept.take().filter(Session::is_usable) {
                Some(session) => session,
                None => self.connect("copies")?,
            };
            let answer = work(&session)?;
            *kept = Some(session);
            Ok(answer)
        };
        let outcome = std::thread::scope(|scope| scope.spawn(work).join());
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn read_waiting<T>(&self, read: impl FnOnce(&mut Draft<'_>) -> Result<T, OperationError>) -> Result<T, OperationError> {
        let reading = self.reader.begin(|| self.connect("reads"))?;
        let session = &reading.session;
        let (_, mut snapshot) = self.published();
        let answer = read(&mut Draft::shared(Database::Postgres(session), &mut snapshot, own_writer::now(), &self.own_core));
        reading.end()?;
        answer
    }
}

/// Connects, makes the tables that are missing, reads everything, and starts the threads. `directory` has the node's name and lock.
pub(crate) fn open(directory: &Path, place: &DatabasePlace) -> Result<Opened, OpenError> {
    // Sessions wait on threads that may, wherever the caller is.
    let opened = std::thread::scope(|scope| scope.spawn(|| open_waiting(directory, place)).join());
    opened.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn open_waiting(directory: &Path, place: &DatabasePlace) -> Result<Opened, OpenError> {
    let lock = crate::open::take(directory)?;
    let in_directory = |error| OpenError::Directory { directory: directory.to_owned(), error };
    let name = NodeName::of(directory).map_err(in_directory)?;
    let node = name.name.clone();
    let identity = crate::open::begin(directory)?;
    let refused = |error: &dyn std::fmt::Display| OpenError::Shared { place: place.to_string(), error: error.to_string() };
    let session = Session::connect(place, &node, "follows").map_err(|error| {
        refused(&format_args!(
            "{error}. See that PostgreSQL runs and is reached from here, and takes host, port, user, password and database of its URL; bodkin doctor with the same options looks"
        ))
    })?;
    let cloud = schema::cloud(&session).map_err(|error| refused(&error))?;
    database_choice::refuse_other_shared(directory, cloud.as_ref())?;
    name.keep(directory).map_err(in_directory)?;
    schema::prepare(&session, &node).map_err(|error| refused(&error))?;
    claim::take(&session, &node, &identity).map_err(|error| refused(&error))?;
    match place.secrecy() {
        Some(Secrecy::None) => tracing::warn!("the way to the shared database is not protected: say sslmode=verify-full in its URL"),
        Some(Secrecy::Unverified) => {
            tracing::warn!("whoever answers is believed to be the shared database: say sslmode=verify-full in its URL")
        }
        Some(Secrecy::Verified) | None => {}
    }
    let cloud = session.one("SELECT cloud FROM shared", ()).map_err(|error| refused(&error))?.unwrap_or_default();
    let own_core = OwnCore::default();
    let (commit, snapshot) = begin(&session, &own_core).map_err(|error| refused(&error))?;
    let snapshot = Arc::new(ArcSwap::from_pointee(snapshot));
    let (standings, certificates) = (Standings::default(), watch::Sender::new(()));
    let (reader, copier) = (Reader::default(), Mutex::default());
    let shown = Mutex::new(Shown { setbacks: 0, commit });
    let (place, place_told) = (place.clone(), OnceLock::new());
    let shared = Arc::new(Shared {
        place,
        node,
        cloud,
        shown,
        snapshot: snapshot.clone(),
        standings,
        certificates,
        own_core,
        place_told,
        reader,
        copier,
        identity: identity.clone(),
        displaced: watch::Sender::new(None),
    });
    let (refusals, (stop, stopped)) = (Refusals::default(), watch::channel(()));
    let following = shared.clone();
    let follower = std::thread::Builder::new().name("database-news".into());
    let follower = follower.spawn(move || follower::run(&following, Some(session), stopped)).map_err(in_directory)?;
    let (sender, queue) = mpsc::channel::<Order>(crate::WRITE_QUEUE_OPERATIONS_MAX);
    let follower = (stop, follower);
    let writer = Writer {
        shared: shared.clone(),
        queue,
        session: None,
        copy: None,
        next_turn: Instant::now(),
        retry_at: Instant::now(),
        refusals: refusals.clone(),
        follower,
    };
    let thread = std::thread::Builder::new().name("database".into()).spawn(move || writer.run()).map_err(in_directory)?;
    Ok(Opened::shared(shared, snapshot, sender, thread, refusals, (lock, identity)))
}

/// Listens first, so that nothing that is committed behind the reading is missed.
fn begin(session: &Session, own_core: &OwnCore) -> DatabaseResult<(Commit, Snapshot)> {
    follower::listen(session)?;
    session.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    let read = change::read_all(session, own_core)?;
    session.batch("COMMIT")?;
    Ok(read)
}

/// The name of a node in its shared database: drawn once, and kept in its data directory.
struct NodeName {
    name: String,
    is_kept: bool,
}

impl NodeName {
    /// Reads the name of a directory's node, or draws one.
    fn of(directory: &Path) -> io::Result<Self> {
        let file = directory.join(NODE_FILE);
        match fs::read_to_string(&file) {
            Ok(name) if is_node(name.trim()) => Ok(Self { name: name.trim().to_owned(), is_kept: true }),
            Ok(_) => Err(io::Error::other(format!("{} names no node: 16 digits and letters from a to f are expected", file.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let mut drawn = [0; 8];
                aws_lc_rs::rand::fill(&mut drawn).map_err(|_| io::Error::other("the system gives no random bytes"))?;
                Ok(Self { name: format!("{:016x}", u64::from_be_bytes(drawn)), is_kept: false })
            }
            Err(error) => Err(error),
        }
    }

    /// Writes a drawn name into the directory, which then counts as a directory of the shared database. Blocks until the name is on the disk.
    fn keep(&self, directory: &Path) -> io::Result<()> {
        if self.is_kept {
            return Ok(());
        }
        // Whole or not at all, also after a power failure: a node with an empty name does not start.
        let next = directory.join(format!("{NODE_FILE}.next"));
        let mut to = File::create(&next)?;
        to.write_all(format!("{}\n", self.name).as_bytes())?;
        to.sync_all()?;
        fs::rename(&next, directory.join(NODE_FILE))?;
        File::open(directory)?.sync_all()
    }
}

fn is_node(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
