//! How far events of other nodes have come, over a restart: noted now and then, and behind that said by the event log.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use bodkin_arrowhead::utc::UtcTime;
use bodkin_broker::Incarnation;
use bodkin_nats::intake::Memory;
use bodkin_store::event_log::{EventLogReader, LogId, Position};

use super::lanes::{Lanes, Reached};
use crate::fleet::replace;

/// The version of the file's form.
const FORM: &str = "2";
/// The form of releases before, which names neither the begin nor the event log.
const FORM_BEFORE: &str = "1";
/// How much earlier than its start a new node begins: clocks of nodes and NATS servers may differ by this much.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(2);

/// How far this node has taken events of others, as its data directory has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    /// Events that are put into the stream before this time are not taken: a little before the first start, in nanoseconds since 1970.
    since_ns: u64,
    /// When the stream was made, in nanoseconds since 1970; 0: no stream was reached yet.
    stream: u64,
    /// Everything up to this sequence of it is done.
    floor: u64,
    /// The event log that positions are of.
    log: u64,
    /// Where the event log goes on behind what is noted.
    from: Position,
    lanes: BTreeMap<u64, Reached>,
}

/// What is known of former runs.
pub struct Recall {
    path: PathBuf,
    log: EventLogReader,
    noted: Note,
    stream: Incarnation,
}

impl Recall {
    /// Reads what was noted in this directory, and how far each node's events have come, by the note and the event log behind it.
    ///
    /// A node without a note begins at `now_ns`, and so does one whose event log is another one than the note speaks of. That
    /// is noted at once: whatever other nodes accept from then on comes, whenever NATS is reached.
    ///
    /// # Errors
    /// Returns an error if the note or the log cannot be read, or the note cannot be written.
    pub fn open(directory: &Path, own: u64, log: EventLogReader, now_ns: u64) -> io::Result<(Self, Lanes)> {
        let (path, LogId(log_id)) = (directory.join("taken"), log.identity());
        let found = Note::read(&path, log_id)?;
        if found.as_ref().is_some_and(|note| note.log != log_id) {
            tracing::error!(file = %path.display(), "the event log is not the one that events of other nodes were taken into: this node begins with the present");
        }
        let noted = match found.filter(|note| note.log == log_id) {
            Some(note) => note,
            None => {
                let since_ns = now_ns.saturating_sub(u64::try_from(CLOCK_DIFFERENCE_MAX.as_nanos()).expect("seconds"));
                let note = Note { since_ns, stream: 0, floor: 0, log: log_id, from: log.end(), lanes: BTreeMap::new() };
                replace(&path, &note.text())?;
                note
            }
        };
        let mut lanes = Lanes::new(noted.lanes.clone());
        let mut cursor = log.cursor(noted.from);
        while let Some(record) = cursor.read()? {
            lanes.recall(own, &record);
        }
        Ok((Self { path, log, noted, stream: Incarnation(0) }, lanes))
    }

    /// Time from which on this node takes events of others, in nanoseconds since 1970.
    pub fn since_ns(&self) -> u64 {
        self.noted.since_ns
    }

    /// Returns what was taken of the stream that was made then. All of another stream than the known one is new.
    pub fn memory(&mut self, stream: Incarnation) -> Memory {
        let is_another = self.noted.stream != 0 || !matches!(self.stream, Incarnation(0)) && self.stream != stream;
        self.stream = stream;
        if self.noted.stream == stream.0 {
            Memory::new(Some(self.noted.floor), [])
        } else if is_another {
            Memory::new(Some(0), [])
        } else {
            Memory::since(UtcTime::from_unix_nanos(self.noted.since_ns).to_string())
        }
    }

    /// Notes that everything up to `floor` is done, and in the event log.
    ///
    /// # Errors
    /// The disk's.
    pub fn note(&mut self, floor: u64, lanes: &Lanes) -> io::Result<()> {
        let note = Note { stream: self.stream.0, floor, from: self.log.end(), lanes: lanes.reached().collect(), ..self.noted };
        if self.noted == note || self.stream.0 == 0 {
            return Ok(());
        }
        replace(&self.path, &note.text())?;
        self.noted = note;
        Ok(())
    }
}

impl Note {
    fn text(&self) -> String {
        let Self { since_ns, stream, floor, log, from, lanes } = self;
        let head = format!("{FORM} {since_ns} {stream} {floor} {log} {}\n", from.0);
        let line = |(node, reached): (&u64, &Reached)| {
            let Reached { epoch, lane, position, time_ns } = reached;
            format!("{node:016x} {epoch} {lane} {} {time_ns}\n", position.0)
        };
        head + &lanes.iter().map(line).collect::<String>()
    }

    fn read(path: &Path, log_now: u64) -> io::Result<Option<Self>> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, log_now).map(Some).ok_or_else(|| {
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

    fn parse(text: &str, log_now: u64) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let mut words = lines.next()?.split(' ');
        let form = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let (since_ns, stream, floor, log, from) = match form {
            FORM => (number()?, number()?, number()?, number()?, Position(number()?)),
            FORM_BEFORE => (0, number()?, number()?, log_now, Position(number()?)),
            _ => return None,
        };
        if words.next().is_some() {
            return None;
        }
        let lanes = lines.map(line).collect::<Option<_>>()?;
        Some(Self { since_ns, stream, floor, log, from, lanes })
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
    use std::time::Instant;

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
        let open = || Recall::open(place.path(), 0xc, reader.clone(), TIME_NS).expect("it is read");
        let (mut recall, lanes) = open();
        assert_eq!(
            (recall.memory(Incarnation(5)), lanes.clone()),
            (Memory::since(UtcTime::from_unix_nanos(TIME_NS - 2_000_000_000).to_string()), Lanes::default()),
            "a new node begins a little before its start"
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
        fs::write(&path, "1 5 3 9\n").expect("written");
        let before = Note { since_ns: 0, stream: 5, floor: 3, log: 77, from: Position(9), lanes: BTreeMap::new() };
        assert_eq!(Note::read(&path, 77).expect("it is read"), Some(before), "of the release before");
        for text in ["", "2 1 2 3 4 5", "1 1 1\n", "3 1 1 1 1 1\n", "2 1 1 1 1 1 1\n", "2 1 1 1 1 1\nx 1 1 1 1\n", "2 1 1 1 1 1\na 1 1 1\n"]
        {
            fs::write(&path, text).expect("written");
            assert!(Note::read(&path, 77).is_err_and(|error| error.to_string().contains("remove it")), "{text:?}");
        }
    }
}
