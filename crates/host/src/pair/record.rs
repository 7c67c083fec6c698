//! The member's record on the disk: what it has promised must outlive it.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
};

use bodkin_broker::wire::{Record, WireError};

use super::Message;
use crate::inbox::Inbox;

const RECORD_FILE: &str = "member";
const WRITTEN_FILE: &str = "member.written";

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file cannot be read or written.
    #[error("cannot use the record {file} of what this node has promised: {error}")]
    File {
        /// Which.
        file: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// The file is damaged: who takes part without knowing its promises could vote twice.
    #[error("the record {file} is damaged: {error}. Give the node a new --data, wait for one lease, and let it join as a new one.")]
    Damaged {
        /// Which.
        file: PathBuf,
        /// What is wrong.
        error: WireError,
    },
}

/// Reads the record in `directory`, which is made if it is not there; a node without one is new.
pub fn read(directory: &Path) -> Result<Record, RecordError> {
    let file = directory.join(RECORD_FILE);
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    match made.and_then(|()| fs::read(&file)) {
        Ok(bytes) => Record::decode(&bytes).map_err(|error| RecordError::Damaged { file, error }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Record::NEW),
        Err(error) => Err(RecordError::File { file, error }),
    }
}

/// Writes it so that a power failure leaves the one before or this one.
fn write(directory: &Path, record: Record) -> io::Result<()> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    let written = directory.join(WRITTEN_FILE);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&written)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::rename(&written, directory.join(RECORD_FILE))?;
    File::open(directory)?.sync_all()
}

/// Starts the thread that writes records, so that grants do not wait for the disk. It ends with the sender. A disk that takes no record stops the process: it
/// could not keep what it promises.
pub(super) fn start(directory: PathBuf, inbox: Arc<Inbox<Message>>) -> io::Result<mpsc::Sender<Record>> {
    let (sender, records) = mpsc::channel();
    std::thread::Builder::new().name("pair-record".into()).spawn(move || {
        for record in records {
            if let Err(error) = write(&directory, record) {
                panic!("the record of what this node has promised cannot be written to {}: {error}", directory.display());
            }
            inbox.post(Message::Persisted);
        }
    })?;
    Ok(sender)
}

#[cfg(test)]
mod tests {
    use bodkin_broker::Epoch;

    use super::*;

    #[test]
    fn a_record_is_found_again_and_a_damaged_one_keeps_its_node_out() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("new");
        assert_eq!(read(&directory).unwrap(), Record::NEW);
        let voted = Record { epoch: Epoch(7), ..Record::NEW };
        write(&directory, voted).unwrap();
        assert_eq!(read(&directory).unwrap(), voted);
        fs::write(directory.join(RECORD_FILE), b"x").unwrap();
        assert!(matches!(read(&directory), Err(RecordError::Damaged { .. })));
    }
}
