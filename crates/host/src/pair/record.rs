//! The member's record on the disk: what it has promised must outlive it.
//!
//! Two files of a fixed size are written in place and by turns, so that a full disk takes records too. Each has a number and a
//! checksum: the newest valid one counts, and a write that is cut off leaves the one before.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    time::Duration,
};

use aws_lc_rs::digest::{SHA256, digest};
use bodkin_broker::wire::{Record, WireError};

use super::{Leadership, Message, Trouble, room};
use crate::{inbox::Inbox, seldom::Seldom};

/// The one file of versions that renamed a new one into its place.
const FORMER_FILE: &str = "member";
const FILES: [&str; 2] = ["member.0", "member.1"];
/// Bytes of each file: a magic, a number, a length, the record, and a checksum over all of it.
const FILE_BYTES: usize = 512;
const MAGIC: &[u8; 8] = b"bodkin-m";
const HEAD_BYTES: usize = MAGIC.len() + 8 + 2;
const SUM_BYTES: usize = 32;
/// Pause between two attempts to write a record that the disk does not take.
const RETRY: Duration = Duration::from_millis(500);
/// Pause between two tests of the disk while no record is to be written. A voter whose disk fails is reported before its vote is needed.
const TEST_PERIOD: Duration = Duration::from_secs(10);

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file cannot be read or written.
    #[error("cannot use the record {file} of what this node has promised: {error}. Make room on the disk, or look at its permissions.")]
    File {
        /// Which.
        file: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// Another process has the record, and could promise something else.
    #[error(
        "another process uses the record {file} of what this node has promised. Stop one of the two. A node of another pair needs another --data."
    )]
    InUse {
        /// The locked file.
        file: PathBuf,
    },
    /// The file is damaged: who takes part without knowing its promises could vote twice.
    #[error("the record {file} is damaged: {error}. Give the node a new --data, wait for one lease, and let it join as a new one.")]
    Damaged {
        /// Which.
        file: PathBuf,
        /// What is wrong.
        error: WireError,
    },
    /// Both files are damaged.
    #[error(
        "the records {} and {} in {directory} are damaged. Give the node a new --data, wait for one lease, and let it join as a new one.",
        FILES[0], FILES[1]
    )]
    BothDamaged {
        /// The data directory.
        directory: PathBuf,
    },
}

/// The two files.
#[derive(Debug)]
pub struct RecordFiles {
    /// Locked until this is dropped or the process ends.
    _lock: File,
    files: [File; 2],
    /// The number of the newest record; its last bit names its file.
    number: u64,
}

fn encode(number: u64, record: &Record) -> Vec<u8> {
    let mut body = Vec::new();
    record.encode(&mut body);
    let length = u16::try_from(body.len()).expect("a record has some tens of bytes");
    let mut bytes = [&MAGIC[..], &number.to_be_bytes(), &length.to_be_bytes(), &body].concat();
    assert!(bytes.len() + SUM_BYTES <= FILE_BYTES, "a record of {} bytes does not fit into {FILE_BYTES}", bytes.len());
    bytes.extend_from_slice(digest(&SHA256, &bytes).as_ref());
    bytes.resize(FILE_BYTES, 0);
    bytes
}

/// The number and the record of a file; `None` if it holds none, or was cut off in the middle of a write.
fn decode(bytes: &[u8]) -> Option<(u64, Record)> {
    let number = u64::from_be_bytes(bytes.strip_prefix(MAGIC)?.first_chunk().copied()?);
    let length = u16::from_be_bytes(bytes.get(HEAD_BYTES - 2..HEAD_BYTES)?.try_into().ok()?);
    let end = HEAD_BYTES + usize::from(length);
    let sum = bytes.get(end..end + SUM_BYTES)?;
    if digest(&SHA256, &bytes[..end]).as_ref() != sum {
        return None;
    }
    Some((number, Record::decode(&bytes[HEAD_BYTES..end]).ok()?))
}

impl RecordFiles {
    /// Locks and opens the files in `directory`, which is made if it is not there, and returns the newest record. A node without one is new.
    ///
    /// # Errors
    /// Returns [`RecordError`] if the files cannot be read, another process uses them, or both are damaged.
    pub fn open(directory: &Path) -> Result<(Self, Record), RecordError> {
        let failed = |file: &str, error| RecordError::File { file: directory.join(file), error };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| failed("", error))?;
        let lock = lock(&directory.join(FILES[0]))?;
        let found: Vec<Option<Vec<u8>>> =
            FILES.iter().map(|name| read(directory, name)).collect::<Result<_, _>>().map_err(|(name, error)| failed(name, error))?;
        let newest = found.iter().flatten().filter_map(|bytes| decode(bytes)).max_by_key(|(number, _)| *number);
        // A file of zeros was made, and its node died before it wrote.
        let was_written = found.iter().flatten().any(|bytes| bytes.iter().any(|byte| *byte != 0));
        let (number, record) = match newest {
            Some(newest) => newest,
            None if was_written => return Err(RecordError::BothDamaged { directory: directory.to_owned() }),
            None => (0, former(directory)?),
        };
        let open = |name: &'static str| preallocated(&directory.join(name)).map_err(|error| failed(name, error));
        let mut files = Self { _lock: lock, files: [open(FILES[0])?, open(FILES[1])?], number };
        if newest.is_none() {
            files.write(record).map_err(|error| failed(FILES[1], error))?;
        }
        // Only behind the write: the names of new files are on the disk, and the former record is not needed any more.
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(|error| failed("", error))?;
        match fs::remove_file(directory.join(FORMER_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(FORMER_FILE, error)),
            _ => Ok((files, record)),
        }
    }

    /// Writes a record in place of the older one, so that a power failure leaves the newer one or this one.
    fn write(&mut self, record: Record) -> io::Result<()> {
        let number = self.number + 1;
        let file = &self.files[(number % 2) as usize];
        file.write_all_at(&encode(number, &record), 0)?;
        file.sync_data()?;
        self.number = number;
        Ok(())
    }
}

/// Locks a file, which is made if it is not there.
fn lock(path: &Path) -> Result<File, RecordError> {
    let failed = |error| RecordError::File { file: path.to_owned(), error };
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RecordError::InUse { file: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn read(directory: &Path, name: &'static str) -> Result<Option<Vec<u8>>, (&'static str, io::Error)> {
    match fs::read(directory.join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err((name, error)),
    }
}

/// The record of a version before; a node without one is new.
fn former(directory: &Path) -> Result<Record, RecordError> {
    let file = directory.join(FORMER_FILE);
    match fs::read(&file) {
        Ok(bytes) => Record::decode(&bytes).map_err(|error| RecordError::Damaged { file, error }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Record::NEW),
        Err(error) => Err(RecordError::File { file, error }),
    }
}

/// Opens a file with all of its blocks, so that later writes need no room.
fn preallocated(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    if file.metadata()?.len() < FILE_BYTES as u64 {
        file.set_len(0)?;
        file.write_all(&[0; FILE_BYTES])?;
        file.sync_all()?;
    }
    Ok(file)
}

/// Writes a node's records, on a thread of its own, so that grants do not wait for the disk.
pub(super) struct RecordThread {
    /// The files of the data directory.
    pub files: RecordFiles,
    /// The newest record in them.
    pub record: Record,
    /// The data directory.
    pub directory: PathBuf,
    /// Whether the node keeps changes and events there, as a candidate does and a witness does not.
    pub keeps_data: bool,
    /// Where the state of the disk is reported.
    pub leadership: Arc<Leadership>,
    /// Receives [`Message::Persisted`].
    pub inbox: Arc<Inbox<Message>>,
}

impl RecordThread {
    /// Starts the thread. It ends with the sender. While the disk takes no record, the node stays up and votes for no node, because the member waits for
    /// [`Message::Persisted`]; the record is written as soon as the disk takes it. Between records the disk is tested each [`TEST_PERIOD`].
    pub fn start(mut self) -> io::Result<mpsc::Sender<Record>> {
        let (sender, records) = mpsc::channel();
        std::thread::Builder::new().name("pair-record".into()).spawn(move || {
            let (record_limiter, room_limiter) = (Seldom::default(), Seldom::default());
            let mut wait = Duration::ZERO;
            loop {
                match records.recv_timeout(wait) {
                    Ok(record) => {
                        self.record = record;
                        while !self.write(&record_limiter) {
                            if let Err(RecvTimeoutError::Disconnected) = records.recv_timeout(RETRY) {
                                return;
                            }
                        }
                        self.inbox.post(Message::Persisted);
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        let is_written = self.write(&record_limiter);
                        let has_room = !self.keeps_data || self.test_room(&room_limiter);
                        wait = if is_written && has_room { TEST_PERIOD } else { RETRY };
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        Ok(sender)
    }

    /// Writes the record once more or for the first time; false if the disk does not take it, which is reported.
    fn write(&mut self, limiter: &Seldom) -> bool {
        if let Err(error) = self.files.write(self.record) {
            report(&error, &self.directory, &self.leadership, limiter);
            return false;
        }
        if self.leadership.troubles().clear(Trouble::Record) {
            tracing::info!("the record of what this node has promised is written again");
        }
        true
    }

    /// Tests whether the disk takes new data; false if it does not, which is reported.
    fn test_room(&self, limiter: &Seldom) -> bool {
        let (directory, troubles) = (self.directory.display(), self.leadership.troubles());
        let Err(error) = room::test(&self.directory) else {
            if troubles.clear(Trouble::Disk) {
                tracing::info!(%directory, "the disk of this node takes new data again");
            }
            return true;
        };
        let text =
            format!("the disk of {directory} takes no new data: {error}. This node cannot keep changes and events: make room on the disk");
        troubles.set(Trouble::Disk, text, None);
        if let Some(times) = limiter.due() {
            tracing::error!(%error, %directory, times, "the disk of this node takes no new data");
        }
        false
    }
}

fn report(error: &io::Error, directory: &Path, leadership: &Leadership, seldom: &Seldom) {
    let directory = directory.display();
    let text = format!(
        "the record of what this node has promised cannot be written to {directory}: {error}. It votes for no node until then: make room on the disk"
    );
    leadership.troubles().set(Trouble::Record, text, None);
    if let Some(times) = seldom.due() {
        tracing::error!(%error, %directory, times, "the record of what this node has promised cannot be written: it votes for no node");
    }
}

#[cfg(test)]
mod tests {
    use bodkin_broker::Epoch;

    use super::*;

    fn voted(epoch: u64) -> Record {
        Record { epoch: Epoch(epoch), ..Record::NEW }
    }

    #[test]
    fn newest_record_is_read_after_restart() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("new");
        let mut expected = Record::NEW;
        for epoch in 1..6 {
            let (mut files, record) = RecordFiles::open(&directory).unwrap();
            assert_eq!(record, expected);
            expected = voted(epoch);
            files.write(expected).unwrap();
        }
        for name in FILES {
            assert_eq!(fs::metadata(directory.join(name)).unwrap().len(), FILE_BYTES as u64);
        }
    }

    #[test]
    fn record_of_running_process_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let (mut files, _) = RecordFiles::open(place.path()).unwrap();
        files.write(voted(1)).unwrap();
        assert!(matches!(RecordFiles::open(place.path()), Err(RecordError::InUse { .. })));
        files.write(voted(2)).unwrap();
        drop(files);
        assert_eq!(RecordFiles::open(place.path()).unwrap().1, voted(2));
    }

    #[test]
    fn torn_write_leaves_the_record_before() {
        let place = tempfile::tempdir().unwrap();
        let (mut files, _) = RecordFiles::open(place.path()).unwrap();
        files.write(voted(1)).unwrap();
        files.write(voted(2)).unwrap();
        let newest = place.path().join(FILES[(files.number % 2) as usize]);
        drop(files);
        let whole = fs::read(&newest).unwrap();
        for cut in 0..whole.len() {
            let mut torn = whole.clone();
            torn[cut..].iter_mut().for_each(|byte| *byte ^= 0x55);
            fs::write(&newest, &torn).unwrap();
            let read = RecordFiles::open(place.path()).unwrap().1;
            let is_whole = cut >= HEAD_BYTES + encode_length() + SUM_BYTES;
            assert_eq!(read, voted(if is_whole { 2 } else { 1 }), "torn from byte {cut} on");
        }
        FILES.iter().for_each(|name| fs::write(place.path().join(name), b"x").unwrap());
        assert!(matches!(RecordFiles::open(place.path()), Err(RecordError::BothDamaged { .. })));
    }

    fn encode_length() -> usize {
        let mut body = Vec::new();
        voted(2).encode(&mut body);
        body.len()
    }

    #[test]
    fn former_record_is_taken_over() {
        let place = tempfile::tempdir().unwrap();
        let mut bytes = Vec::new();
        voted(7).encode(&mut bytes);
        fs::write(place.path().join(FORMER_FILE), &bytes).unwrap();
        assert_eq!(RecordFiles::open(place.path()).unwrap().1, voted(7));
        assert!(!place.path().join(FORMER_FILE).exists());
        assert_eq!(RecordFiles::open(place.path()).unwrap().1, voted(7));
        let damaged = tempfile::tempdir().unwrap();
        fs::write(damaged.path().join(FORMER_FILE), b"x").unwrap();
        assert!(matches!(RecordFiles::open(damaged.path()), Err(RecordError::Damaged { .. })));
    }

    #[test]
    fn disk_that_takes_no_record_is_reported_and_retried() {
        let place = tempfile::tempdir().unwrap();
        let (files, _) = RecordFiles::open(place.path()).unwrap();
        // The system's device for a disk that is always full.
        let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut blocked = RecordFiles { _lock: full(), files: [full(), full()], number: files.number };
        assert_eq!(blocked.write(voted(1)).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(blocked.number, files.number, "the next attempt goes to the same file");
        let poll = mio::Poll::new().unwrap();
        let inbox = Arc::new(Inbox::new(mio::Waker::new(poll.registry(), super::super::node::WAKER).unwrap()));
        let leadership = Arc::new(Leadership::default());
        let directory = place.path().to_owned();
        let keeps_data = true;
        let thread = RecordThread { files: blocked, record: Record::NEW, directory, keeps_data, leadership: leadership.clone(), inbox };
        let sender = thread.start().unwrap();
        // Nothing is to be written yet: the disk is tested before a vote is needed.
        while !leadership.troubles().has(Trouble::Record) {
            std::thread::yield_now();
        }
        assert!(leadership.troubles().texts()[0].contains("votes for no node"));
        assert!(!leadership.troubles().has(Trouble::Disk), "the directory has room");
        drop(sender);
    }
}
