//! A database that repeats another node's: a copy, then the operations behind it.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use crate::{
    OpenError,
    open::{self, DATABASE_FILE},
};

/// The copy that is being received.
const RECEIVED_FILE: &str = "bodkin.sqlite.received";

/// Says that the database is another node's, so that what it tells about that node's own files is not believed here.
const MARK_FILE: &str = "replica";

/// Why the other node's state could not be taken over.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The directory or database cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The copy cannot be written.
    #[error("the copy of the other node's database cannot be written: {0}")]
    Write(#[from] io::Error),
    /// An operation does here what it did not do there.
    #[error("an operation of the other node cannot be repeated: {0}. A new copy is needed.")]
    Repeat(#[from] rusqlite::Error),
    /// Bytes that belong to nothing.
    #[error("{0} came where a copy or an operation behind one was expected")]
    OutOfPlace(&'static str),
}

/// The data directory of a node that repeats.
pub struct Replica {
    directory: PathBuf,
    /// Held as long as this lives.
    _lock: File,
    receiving: Option<File>,
    connection: Option<Connection>,
}

impl Replica {
    /// Takes a directory. What is in it stays until a whole copy has come.
    pub fn open(directory: &Path) -> Result<Self, ReplicaError> {
        Ok(Self { directory: directory.to_owned(), _lock: open::take(directory)?, receiving: None, connection: None })
    }

    /// A copy begins; one that was under way is dropped.
    pub fn begin_copy(&mut self) -> Result<(), ReplicaError> {
        self.receiving = Some(File::create(self.directory.join(RECEIVED_FILE))?);
        Ok(())
    }

    /// The next piece of the copy.
    pub fn part(&mut self, part: &[u8]) -> Result<(), ReplicaError> {
        Ok(self.receiving.as_mut().ok_or(ReplicaError::OutOfPlace("a piece of a copy"))?.write_all(part)?)
    }

    /// The copy is whole: it replaces what was here before, on the disk.
    pub fn end_copy(&mut self) -> Result<(), ReplicaError> {
        let received = self.receiving.take().ok_or(ReplicaError::OutOfPlace("the end of a copy"))?;
        received.sync_all()?;
        let database = self.directory.join(DATABASE_FILE);
        // The old one's write-ahead log must not be taken for the new one's: closing folds it in and removes it.
        match self.connection.take() {
            Some(connection) => drop(connection),
            None if database.exists() => drop(open::connect(&database)?),
            None => {}
        }
        File::create(self.directory.join(MARK_FILE))?.sync_all()?;
        fs::rename(self.directory.join(RECEIVED_FILE), &database)?;
        File::open(&self.directory)?.sync_all()?;
        self.connection = Some(open::connect(&database)?);
        Ok(())
    }

    /// Repeats operations, all of them or none; when it returns they are on the disk.
    pub fn apply<'o>(&mut self, operations: impl IntoIterator<Item = &'o [u8]>) -> Result<(), ReplicaError> {
        let connection = self.connection.as_mut().ok_or(ReplicaError::OutOfPlace("an operation"))?;
        let transaction = connection.transaction()?;
        for operation in operations {
            let text = std::str::from_utf8(operation).map_err(|_| ReplicaError::OutOfPlace("what is no text"))?;
            transaction.execute_batch(text)?;
        }
        Ok(transaction.commit()?)
    }
}

/// Whether the database of a directory is another node's.
pub fn is_marked(directory: &Path) -> bool {
    directory.join(MARK_FILE).exists()
}

/// The database is this node's own from now on: what it said of the other one's files is forgotten.
pub fn unmark(directory: &Path) -> io::Result<()> {
    fs::remove_file(directory.join(MARK_FILE))
}
