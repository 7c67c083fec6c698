//! Which messages of the fleet were taken: said by the event log, from a place on that is noted now and then.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use bodkin_arrowhead::record::SystemId;
use bodkin_broker::Incarnation;
use bodkin_nats::intake::{Memory, Noted, Recall};
use bodkin_store::event_log::{EventLogReader, Position};

use super::super::checkpoint::Checkpoint;
use crate::replay::source;

/// Messages that are remembered one by one; of more the oldest ones count as taken, with all in front of them. Far more than a consumer lets be under way.
const REMEMBERED_MAX: usize = 65_536;

/// What is known of former runs: a note in the data directory, and the event log behind it.
pub(super) struct TakenLog {
    path: PathBuf,
    log: EventLogReader,
    source: SystemId,
    recall: Recall,
}

/// Where it is noted below a data directory. No lane's file has this ending.
fn path_of(data: &Path) -> PathBuf {
    data.join("fleet").join("from-fleet.taken")
}

impl TakenLog {
    pub fn open(data: &Path, log: EventLogReader, source: SystemId) -> io::Result<Self> {
        let path = path_of(data);
        let noted = Checkpoint::read(&path)?;
        let noted = noted.map(|Checkpoint { epoch, position, from }| Noted { stream: epoch, floor: position, from: from.0 });
        Ok(Self { path, log, source, recall: Recall::new(noted) })
    }

    /// The stream that was asked for last.
    pub fn incarnation(&self) -> Incarnation {
        Incarnation(self.recall.stream().unwrap_or_default())
    }

    /// Where the event log ends.
    pub fn end(&self) -> Position {
        self.log.end()
    }

    /// What was taken of a stream. Reads the event log from the noted place on: of a node of a pair that has not led yet, all of it.
    pub fn memory(&mut self, stream: Incarnation) -> io::Result<Memory> {
        let from = self.recall.begin(stream.0);
        Ok(self.recall.memory(self.taken(stream, Position(from))?))
    }

    fn taken(&self, stream: Incarnation, from: Position) -> io::Result<BTreeSet<u64>> {
        let (mut taken, mut cursor) = (BTreeSet::new(), self.log.cursor(from));
        while let Some(record) = cursor.read()? {
            if record.origin.is_none() && record.id.incarnation == stream && source(record.id) == Some(self.source) {
                taken.insert(record.id.sequence.0);
                if taken.len() > REMEMBERED_MAX {
                    taken.pop_first();
                }
            }
        }
        Ok(taken)
    }

    /// Notes how far a taker that remembers this has come; of what is not done, the log has nothing in front of `oldest`.
    pub fn note(&mut self, memory: &Memory, oldest: Option<Position>) -> io::Result<()> {
        let Some(noted) = self.recall.next(memory, oldest.map(|oldest| oldest.0), self.log.end().0) else { return Ok(()) };
        Checkpoint { epoch: noted.stream, position: noted.floor, from: Position(noted.from) }.write(&self.path)?;
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
        let mut append = |publisher, incarnation, sequence| {
            let id = EventId {
                publisher: PublisherId(publisher),
                incarnation: Incarnation(incarnation),
                topic: TopicId(0),
                sequence: Sequence(sequence),
            };
            log.append(TIME_NS, id, "T", "{}", Instant::now());
            log.write(Instant::now());
        };
        let open = || TakenLog::open(place.path(), reader.clone(), SystemId(4)).expect("it is read");
        assert_eq!(open().memory(Incarnation(5)).expect("read"), Memory::new(None, []), "who is new remembers nothing");
        // Others' events, another stream's, and ours.
        for (publisher, incarnation, sequence) in [(3, 5, 1), (4, 6, 2), (4, 5, 7), (4, 5, 9)] {
            append(publisher, incarnation, sequence);
        }
        let mut recall = open();
        assert_eq!(recall.memory(Incarnation(5)).expect("read"), Memory::new(Some(6), [7, 9]));
        assert_eq!(recall.memory(Incarnation(9)).expect("read"), Memory::new(Some(0), []), "it was made anew before anything was noted");
        assert_eq!(open().memory(Incarnation(5)).expect("read"), Memory::new(Some(6), [7, 9]));
        let mut recall = open();
        recall.memory(Incarnation(5)).expect("read");
        // 9 is not done: the log is read from there on.
        recall.note(&Memory::new(Some(8), []), Some(Position(3))).expect("noted");
        append(4, 5, 12);
        let mut recall = open();
        assert_eq!(recall.memory(Incarnation(5)).expect("read"), Memory::new(Some(8), [9, 12]));
        assert_eq!(recall.memory(Incarnation(8)).expect("read"), Memory::new(Some(0), []), "all of a new stream is new");
        // It has come here anew, and nothing that it knows behind the floor was brought again.
        let mut recall = open();
        recall.memory(Incarnation(5)).expect("read");
        recall.note(&Memory::new(Some(8), [9]), None).expect("noted");
        assert_eq!(open().memory(Incarnation(5)).expect("read"), Memory::new(Some(8), [9, 12]), "the log is read again from where it was");
        recall.note(&Memory::new(Some(12), []), None).expect("noted");
        assert_eq!(open().memory(Incarnation(5)).expect("read"), Memory::new(Some(12), []));
    }
}
