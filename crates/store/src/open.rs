//! Opening the data directory: lock, database, snapshot, writer thread.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use bodkin_arrowhead::snapshot::Snapshot;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::mpsc;

use crate::{
    Source, Store, WRITE_QUEUE_OPERATIONS_MAX,
    database::{Database, DatabaseError},
    database_choice, followed,
    following::{self, Following, Reporter},
    identity::{DirectoryIdentity, IdentityError},
    load,
    refusal::Refusals,
    replica::Replica,
    replication::Outlet,
    schema::{self, SchemaError},
    shared::Shared,
    writer::{Order, Writer},
};

/// The database in the data directory.
pub(crate) const DATABASE_FILE: &str = "bodkin.sqlite";

/// How long a lock that this process held itself is waited for.
const OWN_LOCK_WAIT_MAX: Duration = Duration::from_secs(1);

/// Rights of a data directory that is made here: events and the registry are its owner's business. One that is there keeps its own.
const OWN_RIGHTS: u32 = 0o700;

/// Why the data directory cannot be used. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory or a file in it cannot be made or written.
    #[error("cannot use the data directory {directory}: {error}. Give a writable directory with --data.")]
    Directory {
        /// The data directory.
        directory: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// Another process holds the lock.
    #[error(
        "the data directory {directory} is in use by another bodkin{holder}. Stop that one, or give this one its own directory with --data."
    )]
    InUse {
        /// The data directory.
        directory: PathBuf,
        /// ` (pid N)` where it is known.
        holder: String,
    },
    /// The file is no database, or a broken one.
    #[error(
        "the database {file} is damaged: {error}. It was left as it is. Restore it from a backup, or move it away (with its -wal file) to start empty."
    )]
    Damaged {
        /// The database.
        file: PathBuf,
        /// The database's words.
        error: DatabaseError,
    },
    /// The database and the files beside it do not belong together.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The cloud was moved to a shared database, and none is named.
    #[error(
        "the cloud of {directory} was moved to a shared database, and none is named: name it (--database, BODKIN_DATABASE). \
        To undo the move, stop all nodes of the shared database and rename {file} to bodkin.sqlite"
    )]
    Moved {
        /// The data directory.
        directory: PathBuf,
        /// The database from before the move.
        file: PathBuf,
    },
    /// The directory belongs to a node of a shared database, and none is named.
    #[error(
        "the data directory {directory} belongs to a node of the shared database{database}, and none is named: name it (--database, BODKIN_DATABASE), \
        or give a cloud by itself a data directory of its own (--data)"
    )]
    OfShared {
        /// The data directory.
        directory: PathBuf,
        /// A space and the database's identity, if the directory names it.
        database: String,
    },
    /// The shared database cannot be used.
    #[error("cannot use the database {place}: {error}.")]
    Shared {
        /// Where it is, and as whom it is used.
        place: String,
        /// What is wrong.
        error: String,
    },
    /// The database cannot be opened, read or brought up to date.
    #[error("cannot open the database {file}: {error}.")]
    Database {
        /// The database.
        file: PathBuf,
        /// What is wrong.
        error: String,
    },
}

/// An open store: the handle for everybody, and what only its owner may do.
pub struct Opened {
    /// The handle.
    pub store: Store,
    writer: JoinHandle<()>,
    lock: File,
}

impl Opened {
    /// Of a database that is shared with other nodes.
    pub(crate) fn shared(
        shared: Arc<Shared>,
        published: Arc<ArcSwap<Snapshot>>,
        sender: mpsc::Sender<Order>,
        writer: JoinHandle<()>,
        refusals: Refusals,
        (lock, identity): (File, Arc<DirectoryIdentity>),
    ) -> Self {
        let leads = Arc::new(AtomicBool::new(true));
        Self { store: Store { source: Source::Shared(shared), published, writer: sender, refusals, leads, identity }, writer, lock }
    }

    /// Waits until what was sent to the writer is durable, and releases the directory. Call it when every other handle is
    /// dropped or idle, [`Following`] too: the writer ends when the last handle is gone, and until then works on.
    pub fn close(self) {
        drop(self.store);
        if self.writer.join().is_err() {
            tracing::error!("the database writer had stopped before");
        }
        drop(self.lock);
    }
}

pub(crate) fn open(directory: &Path, outlet: Option<Outlet>) -> Result<Opened, OpenError> {
    let lock = take(directory)?;
    database_choice::refuse_elsewhere(directory)?;
    database_choice::refuse_missing(directory)?;
    let file = directory.join(DATABASE_FILE);
    let (connection, published) = load(&file)?;
    // From here on this node writes changes of its own, so it cannot continue behind a former leader.
    followed::forget(&connection).map_err(|error| OpenError::Database { file, error: error.to_string() })?;
    let leads = Arc::new(AtomicBool::new(true));
    start(directory, lock, leads, published, |queue, published, refusals| {
        Writer { connection, published, queue, refusals, outlet }.run();
    })
}

pub(crate) fn follow(directory: &Path, report: Reporter) -> Result<(Opened, Following), OpenError> {
    let replica = Replica::open(directory)?;
    let lock = replica.lock().map_err(|error| OpenError::Directory { directory: directory.to_owned(), error })?;
    let (leads, published) = (Arc::new(AtomicBool::new(false)), replica.published().clone());
    let (following, follower) = following::ends(replica, report, leads.clone());
    let opened = start(directory, lock, leads, published, |queue, published, refusals| {
        if let Some((connection, outlet)) = follower.run() {
            Writer { connection, published, queue, refusals, outlet: Some(outlet) }.run();
        }
    })?;
    Ok((opened, following))
}

/// Starts the thread that writes, with its queue and where it publishes.
fn start(
    directory: &Path,
    lock: File,
    leads: Arc<AtomicBool>,
    published: Arc<ArcSwap<Snapshot>>,
    run: impl FnOnce(mpsc::Receiver<Order>, Arc<ArcSwap<Snapshot>>, Refusals) + Send + 'static,
) -> Result<Opened, OpenError> {
    let (sender, queue) = mpsc::channel(WRITE_QUEUE_OPERATIONS_MAX);
    let (source, refusals) = (Source::File(directory.join(DATABASE_FILE).into()), Refusals::default());
    let identity = begin(directory)?;
    let store = Store { source, published: published.clone(), writer: sender, refusals: refusals.clone(), leads, identity };
    let writer = std::thread::Builder::new().name("database".into()).spawn(|| run(queue, published, refusals));
    let writer = writer.map_err(|error| OpenError::Directory { directory: directory.to_owned(), error })?;
    Ok(Opened { store, writer, lock })
}

/// Begins a new incarnation of a directory whose lock is held.
pub(crate) fn begin(directory: &Path) -> Result<Arc<DirectoryIdentity>, OpenError> {
    let begun = DirectoryIdentity::begin(directory);
    begun.map(Arc::new).map_err(|error| OpenError::Directory { directory: directory.to_owned(), error })
}

/// Makes the directory, if it is not there, and takes its lock.
pub(crate) fn take(directory: &Path) -> Result<File, OpenError> {
    let made = fs::DirBuilder::new().recursive(true).mode(OWN_RIGHTS).create(directory);
    made.map_err(|error| OpenError::Directory { directory: directory.to_owned(), error })?;
    lock(directory)
}

/// Opens a database and reads it.
pub(crate) fn load(file: &Path) -> Result<(Connection, Arc<ArcSwap<Snapshot>>), OpenError> {
    let connection = connect(file)?;
    let snapshot = load::load(Database::Sqlite(&connection)).map_err(|error| damaged_or(file, error.into()))?;
    Ok((connection, Arc::new(ArcSwap::from_pointee(snapshot))))
}

/// Folds the write-ahead log into the database.
pub(crate) fn fold(connection: &Connection) {
    if let Err(error) = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
        tracing::warn!(%error, "the write-ahead log could not be folded into the database; the next start will do it");
    }
}

/// Opens a database and brings its tables up to date.
fn connect(file: &Path) -> Result<Connection, OpenError> {
    let mut connection = Connection::open(file).map_err(|error| damaged_or(file, error.into()))?;
    schema::prepare(&mut connection).map_err(|error| damaged_or(file, error))?;
    Ok(connection)
}

/// Opens a database for a look at it that waits for nobody, and nobody for it.
pub(crate) fn reader(file: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

fn damaged_or(file: &Path, error: SchemaError) -> OpenError {
    match error {
        SchemaError::Database(error) if error.is_damage() => OpenError::Damaged { file: file.to_owned(), error },
        error => OpenError::Database { file: file.to_owned(), error: error.to_string() },
    }
}

/// Takes the directory's lock, which the system releases however this process ends.
fn lock(directory: &Path) -> Result<File, OpenError> {
    let in_directory = |error| OpenError::Directory { directory: directory.to_owned(), error };
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(directory.join("lock")).map_err(in_directory)?;
    let begun = Instant::now();
    loop {
        let mut pid = String::new();
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {
                // The holder's number is a courtesy; without it the message still says what to do.
                let _ = file.rewind().and_then(|()| file.read_to_string(&mut pid));
            }
            Err(TryLockError::Error(error)) => return Err(in_directory(error)),
        }
        // This process has released it: a child that it has just forked holds it until it runs its program.
        if pid.trim() != std::process::id().to_string() || begun.elapsed() >= OWN_LOCK_WAIT_MAX {
            let holder = if pid.trim().is_empty() { String::new() } else { format!(" (pid {})", pid.trim()) };
            return Err(OpenError::InUse { directory: directory.to_owned(), holder });
        }
        std::thread::sleep(OWN_LOCK_WAIT_MAX / 100);
    }
    file.rewind().map_err(in_directory)?;
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(in_directory)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_new_directory_is_its_owners_and_one_that_is_there_keeps_its_rights() {
        let place = tempfile::tempdir().unwrap();
        let rights = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let (new, there) = (place.path().join("a/b"), place.path().join("there"));
        fs::create_dir(&there).unwrap();
        fs::set_permissions(&there, fs::Permissions::from_mode(0o755)).unwrap();
        for directory in [&new, &there] {
            open(directory, None).unwrap().close();
        }
        assert_eq!((rights(&new), rights(&there)), (0o700, 0o755));
    }
}
