//! How far events of other nodes have come, over a restart: noted now and then, and behind that said by the event log.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use bodkin_broker::Incarnation;
use bodkin_nats::intake::Memory;
use bodkin_store::event_log::{EventLogReader, Position};

use super::lanes::{Lanes, Reached};
use crate::fleet::replace;

/// The version of the file's form.
const FORM: &str = "1";

/// What is on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    /// Which stream: when it was made, in nanoseconds since 1970.
    stream: u64,
    /// Everything up to this sequence of it is done.
    floor: u64,
    /// Where the event log goes on behind what is noted.
    from: Position,
    lanes: BTreeMap<u64, Reached>,
}

/// What is known of former runs.
pub struct Recall {
    path: PathBuf,
    log: EventLogReader,
    noted: Option<Note>,
    stream: Incarnation,
}

impl Recall {
    /// Reads what was noted in this directory; with it how far each node's events have come, by the note and the event log behind it.
    ///
    /// # Errors
    /// Neither can be read.
    pub fn open(directory: &Path, own: u64, log: EventLogReader) -> io::Result<(Self, Lanes)> {
        let path = directory.join("taken");
        let noted = Note::read(&path)?;
        let mut lanes = Lanes::new(noted.iter().flat_map(|note| note.lanes.clone()));
        if let Some(note) = &noted {
            let mut cursor = log.cursor(note.from);
            while let Some(record) = cursor.read()? {
                lanes.recall(own, &record);
            }
        }
        Ok((Self { path, log, noted, stream: Incarnation(0) }, lanes))
    }

    /// What was taken of the stream that was made then. Of another one than was known all is new; who has known none begins with the present.
    pub fn memory(&mut self, stream: Incarnation) -> Memory {
        let is_another = self.noted.is_some() || !matches!(self.stream, Incarnation(0)) && self.stream != stream;
        self.stream = stream;
        match &self.noted {
            Some(note) if note.stream == stream.0 => Memory::new(Some(note.floor), []),
            _ if is_another => Memory::new(Some(0), []),
            _ => Memory::new(None, []),
        }
    }

    /// Notes that everything up to `floor` is done, and in the event log.
    ///
    /// # Errors
    /// The disk's.
    pub fn note(&mut self, floor: u64, lanes: &Lanes) -> io::Result<()> {
        let note = Note { stream: self.stream.0, floor, from: self.log.end(), lanes: lanes.reached().collect() };
        if self.noted.as_ref() == Some(&note) || self.stream.0 == 0 {
            return Ok(());
        }
        replace(&self.path, &note.text())?;
        self.noted = Some(note);
        Ok(())
    }
}

impl Note {
    fn text(&self) -> String {
        let head = format!("{FORM} {} {} {}\n", self.stream, self.floor, self.from.0);
        let line = |(node, reached): (&u64, &Reached)| {
            let Reached { epoch, lane, position, time_ns } = reached;
            format!("{node:016x} {epoch} {lane} {} {time_ns}\n", position.0)
        };
        head + &self.lanes.iter().map(line).collect::<String>()
    }

    fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).map(Some).ok_or_else(|| {
                let told = format!(
                    "{} does not say how far events of other nodes have come; remove it, and they come from the present on",
                    path.display()
                );
                io::Error::new(io::ErrorKind::InvalidData, told)
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let mut words = lines.next()?.split(' ');
        if words.next() != Some(FORM) {
            return None;
        }
        let mut number = || words.next()?.parse::<u64>().ok();
        let (stream, floor, from) = (number()?, number()?, Position(number()?));
        if words.next().is_some() {
            return None;
        }
        let lanes = lines.map(line).collect::<Option<_>>()?;
        Some(Self { stream, floor, from, lanes })
    }
}

fn line(text: &str) -> Option<(u64, Reached)> {
    let mut words = text.split(' ');
    let node = u64::from_str_radix(words.next()?, 16).ok()?;
    let mut number = || words.next()?.parse().ok();
    let reached = Reached { epoch: number()?, lane: number()?, position: Position(number()?), time_ns: number()? };
    words.next().is_none().then_some((node, reached))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use bodkin_store::event_log::{EventLog, EventLogLimits, Origin};

    use super::*;

    const TIME_NS: u64 = 1_800_000_000_000_000_000;

    #[test]
    fn what_was_taken_is_known_by_the_note_and_by_the_log_behind_it() {
        let place = tempfile::tempdir().expect("a directory");
        let limits = EventLogLimits { bytes_max: 64 << 20, age_max: Duration::from_secs(3600) };
        let (mut log, reader) =
            EventLog::open(&place.path().join("events"), limits, Position(0), TIME_NS, Box::new(|_, _| {})).expect("a log");
        let mut append = |node, lane| {
            let origin = Origin { node, position: Position(100 + lane), epoch: 1, lane };
            let id = "1-2-3-4".parse().expect("an id");
            log.append_from(Some(origin), TIME_NS + lane, id, "T", "{}", Instant::now());
            log.write(Instant::now());
        };
        let open = || Recall::open(place.path(), 0xc, reader.clone()).expect("it is read");
        let (mut recall, lanes) = open();
        assert_eq!(
            (recall.memory(Incarnation(5)), lanes.clone()),
            (Memory::new(None, []), Lanes::default()),
            "who is new remembers nothing"
        );
        recall.note(3, &lanes).expect("noted");
        append(0xa, 7);
        append(0xb, 1);
        let reached = |lane| Reached { epoch: 1, lane, position: Position(100 + lane), time_ns: TIME_NS + lane };
        let (mut recall, lanes) = open();
        assert_eq!(lanes, Lanes::new([(0xa, reached(7)), (0xb, reached(1))]));
        assert_eq!(recall.memory(Incarnation(5)), Memory::new(Some(3), []));
        recall.note(9, &lanes).expect("noted");
        append(0xa, 8);
        let (mut recall, lanes) = open();
        assert_eq!(lanes, Lanes::new([(0xa, reached(8)), (0xb, reached(1))]));
        assert_eq!(recall.memory(Incarnation(6)), Memory::new(Some(0), []), "all of a stream that was made anew is new");
        recall.note(1, &lanes).expect("noted");
        assert_eq!(open().0.memory(Incarnation(6)), Memory::new(Some(1), []));
    }

    #[test]
    fn a_note_that_is_none_is_told() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("taken");
        for text in ["", "1 2 3", "2 1 1 1\n", "1 1 1 1 1\n", "1 1 1 1\nx 1 1 1 1\n", "1 1 1 1\na 1 1 1\n"] {
            fs::write(&path, text).expect("written");
            assert!(Note::read(&path).is_err_and(|error| error.to_string().contains("remove it")), "{text:?}");
        }
    }
}
