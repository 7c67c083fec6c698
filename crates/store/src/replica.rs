//! A database that repeats another node's: a copy, then the operations behind it. The snapshot shows each commit.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_swap::ArcSwap;
use bodkin_arrowhead::snapshot::Snapshot;
use rusqlite::{
    Connection,
    backup::{Backup, StepResult},
};

use crate::{
    OpenError, audit, certificate_line,
    database::{Database, DatabaseError},
    database_choice,
    followed::{self, Followed},
    identity::{self, IdentityError},
    load,
    open::{self, DATABASE_FILE},
    replication::{NoOperation, Operation, Touched},
    schema::{self, SchemaError},
    topic,
};

/// The copy that is being received.
const RECEIVED_FILE: &str = "bodkin.sqlite.received";

/// Why the other node's state could not be taken over.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The directory or database cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The copy cannot be written.
    #[error("the copy of the other node's database cannot be written: {0}")]
    Write(#[from] io::Error),
    /// The copy is none that this Bodkin can work with.
    #[error("the copy of the other node's database cannot be used: {0}")]
    Copy(String),
    /// An operation does here what it did not do there.
    #[error("an operation of the other node cannot be repeated: {0}. A new copy is needed.")]
    Repeat(#[from] DatabaseError),
    /// An operation that is none.
    #[error("{0}. A new copy is needed.")]
    Unreadable(#[from] NoOperation),
    /// The copy is of another database than the events of this node.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Bytes that belong to nothing.
    #[error("{0} came where a copy or an operation behind one was expected")]
    OutOfPlace(&'static str),
}

impl From<rusqlite::Error> for ReplicaError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Repeat(error.into())
    }
}

/// A topic that was declared anew or forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicChange {
    /// Its event type.
    pub event_type: Box<str>,
    /// Its declaration, in JSON; `None`: it is forgotten.
    pub declaration: Option<String>,
}

/// The database of a node that repeats.
pub struct Replica {
    directory: PathBuf,
    /// Held as long as this lives.
    lock: File,
    connection: Connection,
    published: Arc<ArcSwap<Snapshot>>,
    receiving: Option<File>,
    /// Whether the database is what another node has sent, so that its operations may follow.
    is_copy: bool,
    /// How far it has what its leader has committed, if it knows.
    followed: Option<Followed>,
    /// The number of the newest line of certificate ledgers at the last look.
    last_line: Option<i64>,
}

impl Replica {
    /// Locks a directory and loads its database, which stays until a whole copy of the leader's has come.
    ///
    /// # Errors
    /// Returns an error if the directory or its database cannot be used, or the event log or audit log belongs to another database.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        let lock = open::take(directory)?;
        database_choice::refuse_elsewhere(directory)?;
        let file = directory.join(DATABASE_FILE);
        let (connection, published) = open::load(&file)?;
        let database =
            identity::of_database(&connection).map_err(|error| OpenError::Database { file: file.clone(), error: error.to_string() })?;
        // The leader may send changes without a copy of its database, and a standby looks at nothing else before it leads.
        if let Some(database) = database {
            identity::bind_parts(directory, &database)?;
        }
        let followed = followed::prepare(&connection).and_then(|()| followed::read(&connection));
        let followed = followed.map_err(|error| OpenError::Database { file, error: error.to_string() })?;
        Ok(Self {
            directory: directory.to_owned(),
            lock,
            connection,
            published,
            receiving: None,
            is_copy: false,
            followed,
            last_line: None,
        })
    }

    /// How far the database has what its leader has committed, if it knows.
    pub fn followed(&self) -> Option<Followed> {
        self.followed
    }

    /// What the database has is what its leader has sent before: operations follow.
    pub fn resume(&mut self) {
        self.is_copy = true;
    }

    /// Where the snapshot of each commit appears.
    pub(crate) fn published(&self) -> &Arc<ArcSwap<Snapshot>> {
        &self.published
    }

    /// The directory's lock, to be held beyond this value's life.
    pub(crate) fn lock(&self) -> io::Result<File> {
        self.lock.try_clone()
    }

    /// The database, for who repeats no more.
    pub(crate) fn into_connection(self) -> Connection {
        self.connection
    }

    /// A copy begins; one that was under way is dropped.
    pub fn begin_copy(&mut self) -> Result<(), ReplicaError> {
        self.is_copy = false;
        self.receiving = Some(File::create(self.directory.join(RECEIVED_FILE))?);
        Ok(())
    }

    /// The next piece of the copy.
    pub fn part(&mut self, part: &[u8]) -> Result<(), ReplicaError> {
        Ok(self.receiving.as_mut().ok_or(ReplicaError::OutOfPlace("a piece of a copy"))?.write_all(part)?)
    }

    /// The copy is whole: it replaces what was here before, on the disk and in the snapshot.
    ///
    /// It is loaded first: one that cannot be leaves everything as it is. It then comes into this database in one transaction: a kill leaves
    /// all of it or nothing, whoever reads the database meanwhile. What the database keeps for this node alone stays. It has its leader's operations up to
    /// `followed`, if that is known.
    pub fn end_copy(&mut self, followed: Option<Followed>) -> Result<(), ReplicaError> {
        let unusable = |error: SchemaError| ReplicaError::Copy(error.to_string());
        drop(self.receiving.take().ok_or(ReplicaError::OutOfPlace("the end of a copy"))?);
        let file = self.directory.join(RECEIVED_FILE);
        let copy = open_copy(&file).map_err(unusable)?;
        let database = identity::of_database(&copy).map_err(|error| unusable(error.into()))?;
        if let Some(database) = &database {
            identity::check_parts(&self.directory, database)?;
        }
        keep_own(&copy, &self.directory.join(DATABASE_FILE)).map_err(|error| unusable(error.into()))?;
        let noted = followed::prepare(&copy).and_then(|()| followed::write(&copy, followed));
        noted.map_err(|error| unusable(error.into()))?;
        let snapshot = load::load(Database::Sqlite(&copy)).map_err(|error| unusable(error.into()))?;
        match Backup::new(&copy, &mut self.connection)?.step(-1)? {
            StepResult::Done => {}
            other => return Err(ReplicaError::Copy(format!("another process works on this node's database ({other:?})"))),
        }
        if let Some(database) = &database {
            identity::bind_parts(&self.directory, database)?;
        }
        self.published.store(Arc::new(snapshot));
        (self.is_copy, self.followed) = (true, followed);
        drop(copy);
        // The log is as long as the copy now, and would stay so.
        open::fold(&self.connection);
        Ok(fs::remove_file(file)?)
    }

    /// Returns true if the database has lines of certificate ledgers that it did not have at the last call.
    pub fn has_new_lines(&mut self) -> Result<bool, ReplicaError> {
        let last = certificate_line::last(Database::Sqlite(&self.connection))?;
        Ok(std::mem::replace(&mut self.last_line, last) != last)
    }

    /// The declarations of all topics, in JSON.
    pub fn declarations(&self) -> Result<Vec<String>, ReplicaError> {
        Ok(topic::declarations(Database::Sqlite(&self.connection))?)
    }

    /// Repeats operations, all of them or none; when it returns they are on the disk and in the snapshot. It costs what they change, however
    /// much the database holds. Gives the topics that they have declared or forgotten, the last state of one last.
    ///
    /// With each comes which one of its leader's it is, if that is known: one that was repeated before is passed over.
    pub fn apply<'o>(
        &mut self,
        operations: impl IntoIterator<Item = (Option<Followed>, &'o [u8])>,
    ) -> Result<Vec<TopicChange>, ReplicaError> {
        if !self.is_copy {
            return Err(ReplicaError::OutOfPlace("an operation"));
        }
        let transaction = self.connection.transaction()?;
        let mut snapshot = Snapshot::clone(&self.published.load());
        let mut topics = Vec::new();
        let mut reached = self.followed;
        for (followed, operation) in operations {
            let is_behind = |new: Followed| reached.is_none_or(|reached| new.epoch != reached.epoch || new.number > reached.number);
            if followed.is_none_or(is_behind) {
                repeat(&transaction, operation, &mut snapshot, &mut topics)?;
                reached = followed;
            }
        }
        if reached != self.followed {
            followed::write(&transaction, reached)?;
        }
        transaction.commit()?;
        self.followed = reached;
        self.published.store(Arc::new(snapshot));
        Ok(topics)
    }
}

/// Runs an operation's statements, and reads again what they have changed.
///
/// The rows are read behind each operation, so that the snapshot goes through the same states as the leader's.
fn repeat(connection: &Connection, operation: &[u8], snapshot: &mut Snapshot, topics: &mut Vec<TopicChange>) -> Result<(), ReplicaError> {
    let Operation { touched, statements } = Operation::parse(operation)?;
    connection.execute_batch(statements)?;
    let database = Database::Sqlite(connection);
    for touched in touched {
        match touched {
            Touched::Row(kind, id) => kind.read_one(database, id)?.into_iter().for_each(|change| snapshot.apply(change)),
            Touched::Topic(event_type) => {
                let declaration = topic::declaration(database, &event_type)?;
                topics.push(TopicChange { event_type, declaration });
            }
        }
    }
    Ok(())
}

/// Opens a received file and brings its tables up to date. No file is made beside it, which the next copy could be taken to belong to, and
/// nothing is synced: a kill drops it.
fn open_copy(file: &Path) -> Result<Connection, SchemaError> {
    let mut copy = Connection::open(file)?;
    copy.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))?;
    copy.pragma_update(None, "synchronous", "OFF")?;
    schema::migrate(&mut copy)?;
    Ok(copy)
}

/// Puts what `database` keeps for this node alone in the place of what the copy says of the node that it comes from.
fn keep_own(copy: &Connection, database: &Path) -> rusqlite::Result<()> {
    copy.execute("ATTACH ?1 AS own", [&*database.to_string_lossy()])?;
    for table in audit::OWN_TABLES {
        copy.execute_batch(&format!("DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM own.{table};"))?;
    }
    copy.execute_batch("DETACH own")
}
