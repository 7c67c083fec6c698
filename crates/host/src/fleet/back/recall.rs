//! Which messages of the fleet were taken: said by the event log, from a place on that is noted now and then.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use bodkin_arrowhead::record::SystemId;
use bodkin_broker::Incarnation;
use bodkin_nats::intake::Memory;
use bodkin_store::event_log::{EventLogReader, Position};

use super::super::checkpoint::Checkpoint;
use crate::replay::source;

/// Messages that are remembered one by one; of more the oldest ones count as taken, with all in front of them. Far more than a consumer lets be under way.
const REMEMBERED_MAX: usize = 65_536;

/// What is known of former runs.
pub(super) struct Recall {
    path: PathBuf,
    log: EventLogReader,
    source: SystemId,
    /// The stream, by when it was made, everything up to which sequence is done, and where the log goes on behind that.
    noted: Option<Checkpoint>,
    incarnation: Incarnation,
}

/// Where it is noted below a data directory. No lane's file has this ending.
fn path_of(data: &Path) -> PathBuf {
    data.join("fleet").join("from-fleet.taken")
}

impl Recall {
    pub fn open(data: &Path, log: EventLogReader, source: SystemId) -> io::Result<Self> {
        let path = path_of(data);
        let noted = Checkpoint::read(&path)?;
        Ok(Self { path, log, source, noted, incarnation: Incarnation(0) })
    }

    /// The stream that was asked for last.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Where the event log ends.
    pub fn end(&self) -> Position {
        self.log.end()
    }

    /// What was taken of a stream. Reads the event log from the noted place on: of a node of a pair that has not led yet, all of it.
    pub fn memory(&mut self, incarnation: Incarnation) -> io::Result<Memory> {
        let before = std::mem::replace(&mut self.incarnation, incarnation);
        let is_another = self.noted.is_some() || !matches!(before, Incarnation(0)) && before != incarnation;
        let of_this = self.noted.filter(|noted| noted.epoch == incarnation.0);
        let taken = self.taken(incarnation, of_this.map_or(Position(0), |noted| noted.from))?;
        let floor = match of_this {
            Some(noted) => Some(noted.position),
            // Another stream than was known has taken its name since: all of it is new.
            None if is_another => Some(0),
            // What is in front of the oldest one that is known has been taken, or was not for this edge.
            None => taken.first().map(|first| first - 1),
        };
        Ok(Memory::new(floor, taken))
    }

    fn taken(&self, incarnation: Incarnation, from: Position) -> io::Result<BTreeSet<u64>> {
        let (mut taken, mut cursor) = (BTreeSet::new(), self.log.cursor(from));
        while let Some(record) = cursor.read()? {
            if record.id.incarnation == incarnation && source(record.id) == Some(self.source) {
                taken.insert(record.id.sequence.0);
                if taken.len() > REMEMBERED_MAX {
                    taken.pop_first();
                }
            }
        }
        Ok(taken)
    }

    /// Notes that everything up to `floor` is done; of what is not, the log has nothing in front of `oldest`. Where some behind the floor are done (`is_whole` is false), only the log knows of
    /// them, and is read again from where it was read before.
    pub fn note(&mut self, floor: u64, is_whole: bool, oldest: Option<Position>) -> io::Result<()> {
        let end = oldest.unwrap_or_else(|| self.log.end());
        let before = self.noted.filter(|noted| noted.epoch == self.incarnation.0).map_or(Position(0), |noted| noted.from);
        let from = if is_whole { end } else { end.min(before) };
        let place = Checkpoint { epoch: self.incarnation.0, position: floor, from };
        if self.noted == Some(place) || self.incarnation.0 == 0 {
            return Ok(());
        }
        place.write(&self.path)?;
        self.noted = Some(place);
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
        let open = || Recall::open(place.path(), reader.clone(), SystemId(4)).expect("it is read");
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
        recall.note(8, true, Some(Position(3))).expect("noted");
        append(4, 5, 12);
        let mut recall = open();
        assert_eq!(recall.memory(Incarnation(5)).expect("read"), Memory::new(Some(8), [9, 12]));
        assert_eq!(recall.memory(Incarnation(8)).expect("read"), Memory::new(Some(0), []), "all of a new stream is new");
        // It has come here anew, and nothing that it knows behind the floor was brought again.
        let mut recall = open();
        recall.memory(Incarnation(5)).expect("read");
        recall.note(8, false, None).expect("noted");
        assert_eq!(open().memory(Incarnation(5)).expect("read"), Memory::new(Some(8), [9, 12]), "the log is read again from where it was");
        recall.note(12, true, None).expect("noted");
        assert_eq!(open().memory(Incarnation(5)).expect("read"), Memory::new(Some(12), []));
    }
}
