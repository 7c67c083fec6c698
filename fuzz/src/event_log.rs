//! A file of the event log as damage or another program left it, and records as another node sends them.

use std::fs;
use std::time::{Duration, Instant};

use bodkin_arrowhead::utc::UtcTime;
use bodkin_store::event_log::{EventLog, EventLogLimits, EventLogReader, Position, batch};

/// The first bytes of a file: magic, version, first position, time.
const HEADER_BYTES: usize = 32;
/// The byte that a batch begins with.
const FORM_BYTES: usize = 1;
/// Length and checksum in front of a record.
const PREFIX_BYTES: usize = 8;

/// A byte that says what is put right, then the file, or with its third bit the batch. Without that byte's help nearly every input would stop at a checksum.
pub fn event_log(bytes: &[u8]) {
    let Some((&help, bytes)) = bytes.split_first() else { return };
    if help & 4 != 0 {
        return records(bytes.to_vec(), help & 2 != 0);
    }
    let mut file = if help & 1 == 0 { bytes.to_vec() } else { [header(), bytes.to_vec()].concat() };
    if help & 2 != 0 {
        correct_checksums(&mut file, HEADER_BYTES);
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("0000000000000001.events"), &file).expect("the file is written");
    let limits = EventLogLimits { bytes_max: 1 << 20, age_max: Duration::MAX };
    let now_ns = UtcTime::from_unix_seconds(1_900_000_000).unix_nanos();
    // What cannot be opened is told to the operator.
    let Ok((mut log, reader)) = EventLog::open(directory.path(), limits, Position(0), now_ns, Box::new(|_, _| ())) else { return };
    let held = positions(&reader);
    assert!(held.windows(2).all(|pair| pair[0] < pair[1]), "positions do not ascend: {held:?}");
    assert!(held.iter().all(|position| *position < log.next_position()), "{held:?} is not in front of {:?}", log.next_position());
    let mut cursor = reader.cursor(Position(0));
    let Ok(Some(first)) = cursor.read() else { return };
    let (topic, id) = (first.topic.to_owned(), first.id);
    if let Ok(behind) = reader.behind(&topic, id) {
        assert!(behind.is_some(), "{id:?} of {topic} is there and not found");
    }
    let position = log.append(now_ns, id, "T", "{}", Instant::now());
    log.write(Instant::now());
    let after = positions(&reader);
    assert_eq!(after.last(), Some(&position), "what is appended is read");
    assert_eq!(after.len(), held.len() + 1, "an append costs what was there");
}

/// A batch is refused, or it is what its records are written as.
fn records(mut bytes: Vec<u8>, is_put_right: bool) {
    if is_put_right {
        correct_checksums(&mut bytes, FORM_BYTES);
    }
    let Ok(records) = batch::records(&bytes) else { return };
    let mut again = bytes[..FORM_BYTES].to_vec();
    records.iter().for_each(|record| batch::push(record, &mut again));
    assert_eq!(again, bytes, "what is read has one form only");
}

fn header() -> Vec<u8> {
    let mut header = b"BODKINEV".to_vec();
    for number in [1_u64, 0, 1_800_000_000_000_000_000] {
        header.extend_from_slice(&number.to_le_bytes());
    }
    assert_eq!(header.len(), HEADER_BYTES);
    header
}

/// Gives every whole record from there on the checksum of its bytes.
fn correct_checksums(file: &mut [u8], from: usize) {
    let mut at = from;
    while let Some(length) = file.get(at..at + 4) {
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        let Some(body) = file.get(at + PREFIX_BYTES..).and_then(|rest| rest.get(..length)) else { return };
        let checksum = crc32fast::hash(body);
        file[at + 4..at + PREFIX_BYTES].copy_from_slice(&checksum.to_le_bytes());
        at += PREFIX_BYTES + length;
    }
}

fn positions(reader: &EventLogReader) -> Vec<Position> {
    let mut cursor = reader.cursor(Position(0));
    let mut positions = Vec::new();
    while let Ok(Some(record)) = cursor.read() {
        assert!(record.topic.len() <= usize::from(u16::MAX), "a topic's name is short");
        positions.push(record.position);
    }
    positions
}
