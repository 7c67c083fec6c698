//! Which messages of the fleet were taken: said by the event log, from a place on that is noted now and then.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use bodkin_arrowhead::{record::SystemId, utc::UtcTime};
use bodkin_broker::Incarnation;
use bodkin_nats::intake::{Memory, Noted, Recall};
use bodkin_store::event_log::{EventLogReader, Position};

use super::{
    super::checkpoint::{read_numbers, write_numbers},
    reading::lost_of,
};
use crate::replay::source;

/// Messages that are remembered one by one; of more the oldest ones count as taken, with all in front of them. Far more than a consumer lets be under way.
const REMEMBERED_MAX: usize = 65_536;

/// What is known of former runs: a note in the data directory, and the event log behind it.
pub(super) struct TakenLog {
    path: PathBuf,
    log: EventLogReader,
    source: SystemId,
    recall: Recall,
    /// Messages from this time on are for an edge that has taken none, in nanoseconds since 1970.
    since_ns: u64,
}

/// How much earlier than its first start an edge begins: its clock and the NATS server's may differ by this much.
const CLOCK_DIFFERENCE_MAX_NS: u64 = 2_000_000_000;

/// What is told of a note that cannot be read.
const DAMAGED: &str = "does not say what was taken from the fleet; remove it, and all of the event log is read for that";

/// Where it is noted below a data directory. No lane's file has this ending.
fn path_of(data: &Path) -> PathBuf {
    data.join("fleet").join("from-fleet.taken")
}

impl TakenLog {
    /// Reads the note. An edge that starts for the first time notes that it begins at `now_ns`: whatever is sent to it from then on comes,
    /// whenever NATS is reached.
    ///
    /// # Errors
    /// Returns an error if a note cannot be read or written.
    pub fn open(data: &Path, log: EventLogReader, source: SystemId, now_ns: u64) -> io::Result<Self> {
        let path = path_of(data);
        let begin = path.with_extension("begin");
        let since_ns = match read_numbers(&begin, DAMAGED)?.as_deref() {
            Some(&[since_ns]) => since_ns,
            Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{} {DAMAGED}", begin.display()))),
            None => {
                let since_ns = now_ns.saturating_sub(CLOCK_DIFFERENCE_MAX_NS);
                write_numbers(&begin, &[since_ns])?;
                since_ns
            }
        };
        let noted = match read_numbers(&path, DAMAGED)?.as_deref() {
            None => None,
            // Of the release before.
            Some(&[stream, floor, from]) => Some(Noted { stream, floor, from, lost: 0, seen: floor }),
            Some(&[stream, floor, from, lost, seen]) => Some(Noted { stream, floor, from, lost, seen }),
            Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{} {DAMAGED}", path.display()))),
        };
        Ok(Self { path, log, source, recall: Recall::new(noted), since_ns })
    }

    /// The stream that was asked for last.
    pub fn incarnation(&self) -> Incarnation {
        Incarnation(self.recall.stream().unwrap_or_default())
    }

    /// Where the event log ends.
    pub fn end(&self) -> Position {
        self.log.end()
    }

    /// What was taken of a stream, how many of its messages were lost in front, and up to where that was looked at. Reads the event log from the noted place on: of a node of a pair that has not led yet, all of it.
    pub fn memory(&mut self, stream: Incarnation) -> io::Result<(Memory, (u64, u64))> {
        let from = self.recall.begin(stream.0);
        let (taken, lost) = self.taken(stream, Position(from))?;
        let (noted, seen) = self.recall.lost();
        let memory = self.recall.memory(taken);
        let memory = if memory.floor().is_some() { memory } else { Memory::since(UtcTime::from_unix_nanos(self.since_ns).to_string()) };
        Ok((memory, (lost.max(noted), seen)))
    }

    fn taken(&self, stream: Incarnation, from: Position) -> io::Result<(BTreeSet<u64>, u64)> {
        let (mut taken, mut lost, mut cursor) = (BTreeSet::new(), 0, self.log.cursor(from));
        while let Some(record) = cursor.read()? {
            if record.origin.is_none() && record.id.incarnation == stream && source(record.id) == Some(self.source) {
                taken.insert(record.id.sequence.0);
                lost = lost.max(lost_of(record.event));
                if taken.len() > REMEMBERED_MAX {
                    taken.pop_first();
                }
            }
        }
        Ok((taken, lost))
    }

    /// Notes how far a taker that remembers this, and has lost so many up to where it has looked, has come; of what is not done, the log has nothing in front of `oldest`.
    pub fn note(&mut self, memory: &Memory, lost: (u64, u64), oldest: Option<Position>) -> io::Result<()> {
        let Some(noted) = self.recall.next(memory, lost, oldest.map(|oldest| oldest.0), self.log.end().0) else { return Ok(()) };
        write_numbers(&self.path, &[noted.stream, noted.floor, noted.from, noted.lost, noted.seen])?;
        self.recall.is_noted(noted);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use bodkin_broker::{EventId, PublisherId, Sequence, TopicId};
    use bodkin_store::event_log::{EventLog, EventLogLimits};

    use super::*;

    const TIME_NS: u64 = 1_800_000_000_000_000_000;

    #[test]
    fn what_the_event_log_has_is_known_again_from_the_noted_place_on() {
        let place = tempfile::tempdir().expect("a directory");
        let limits = EventLogLimits { bytes_max: 64 << 20, age_max: Duration::from_secs(3600) };
        let (mut log, reader) =
            EventLog::open(&place.path().join("events"), limits, Position(0), TIME_NS, Box::new(|_, _| {})).expect("a log");
        let mut append = |publisher, incarnation, sequence, event: &str| {
            let id = EventId {
                publisher: PublisherId(publisher),
                incarnation: Incarnation(incarnation),
                topic: TopicId(0),
                sequence: Sequence(sequence),
            };
            log.append(TIME_NS, id, "T", event, Instant::now());
            log.write(Instant::now());
        };
        let open = || TakenLog::open(place.path(), reader.clone(), SystemId(4), TIME_NS).expect("it is read");
        let again = |stream: u64| open().memory(Incarnation(stream)).expect("read");
        let begin = UtcTime::from_unix_nanos(TIME_NS - CLOCK_DIFFERENCE_MAX_NS).to_string();
        assert_eq!(again(5), (Memory::since(begin), (0, 0)), "a new edge begins a little before its start");
        // Others' events, another stream's, and ours.
        for (publisher, incarnation, sequence) in [(3, 5, 1), (4, 6, 2), (4, 5, 7), (4, 5, 9)] {
            append(publisher, incarnation, sequence, "{}");
        }
        let mut taken_log = open();
        assert_eq!(taken_log.memory(Incarnation(5)).expect("read"), (Memory::new(Some(6), [7, 9]), (0, 0)));
        assert_eq!(
            taken_log.memory(Incarnation(9)).expect("read"),
            (Memory::new(Some(0), []), (0, 0)),
            "it was made anew before anything was noted"
        );
        let mut taken_log = open();
        taken_log.memory(Incarnation(5)).expect("read");
        // 9 is not done: the log is read from there on.
        taken_log.note(&Memory::new(Some(8), []), (2, 13), Some(Position(3))).expect("noted");
        append(4, 5, 12, "{}");
        assert_eq!(again(5), (Memory::new(Some(8), [9, 12]), (2, 13)));
        assert_eq!(again(8), (Memory::new(Some(0), []), (0, 0)), "all of a new stream is new");
        let mut taken_log = open();
        taken_log.memory(Incarnation(5)).expect("read");
        taken_log.note(&Memory::new(Some(8), [9]), (2, 13), None).expect("noted");
        assert_eq!(again(5), (Memory::new(Some(8), [9, 12]), (2, 13)), "the log is read again from where it was");
        // What was lost in front of an event is in the log with it, of whatever node.
        append(4, 5, 20, r#"{"eventType":"T","payload":"\"fleetLost\":\"99\"","metaData":{"fleet":"5-20","fleetLost":"7"}}"#);
        assert_eq!(again(5), (Memory::new(Some(8), [9, 12, 20]), (7, 13)));
        let mut taken_log = open();
        taken_log.memory(Incarnation(5)).expect("read");
        taken_log.note(&Memory::new(Some(20), []), (7, 20), None).expect("noted");
        assert_eq!(again(5), (Memory::new(Some(20), []), (7, 20)));
        // A note of an earlier release has no such number, and one that says anything else is not believed.
        std::fs::write(path_of(place.path()), "1 5 20 3\n").expect("written");
        assert_eq!(again(5), (Memory::new(Some(20), []), (7, 20)));
        std::fs::write(path_of(place.path()), "1 5 20\n").expect("written");
        let error = TakenLog::open(place.path(), reader.clone(), SystemId(4), TIME_NS).err().expect("it is not believed");
        assert!(error.to_string().contains("remove it"), "{error}");
    }
}
