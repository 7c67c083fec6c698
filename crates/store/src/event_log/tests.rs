//! The log as its shard, its readers and the next start see it.

mod clock;
mod damage;
mod divergence;
mod faults;
mod of_nodes;
mod removed;

use std::sync::mpsc::{Receiver, channel};

use bodkin_broker::{Incarnation, PublisherId, Sequence, TopicId};
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const LIMITS: EventLogLimits = EventLogLimits { bytes_max: 1 << 30, age_max: Duration::from_secs(3600) };

/// What a sync has told.
type Synced = (Position, Result<(), String>);

struct Bench {
    directory: TempDir,
    synced: Receiver<Synced>,
    log: EventLog,
    reader: EventLogReader,
}

fn open(directory: &Path, limits: EventLogLimits) -> (EventLog, EventLogReader, Receiver<Synced>) {
    let (told, synced) = channel();
    // The receiver may be gone at the last sync.
    let on_sync = Box::new(move |end, result| drop(told.send((end, result))));
    let (log, reader) = EventLog::open(directory, limits, Position(0), now_ns(), on_sync).unwrap();
    (log, reader, synced)
}

fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos()).unwrap()
}

impl Bench {
    fn new(limits: EventLogLimits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (log, reader, synced) = open(directory.path(), limits);
        Self { directory, synced, log, reader }
    }

    fn restart(self) -> Self {
        self.restart_with(LIMITS)
    }

    fn restart_with(self, limits: EventLogLimits) -> Self {
        let Self { directory, log, .. } = self;
        drop(log);
        let (log, reader, synced) = open(directory.path(), limits);
        Self { directory, synced, log, reader }
    }

    fn append(&mut self, sequence: u64, event: &str) -> Position {
        self.log.append(now_ns(), id(sequence), "T", event, Instant::now())
    }

    /// Appends this many events of about a hundred bytes, a write each.
    fn fill(&mut self, sequences: std::ops::Range<u64>) {
        for sequence in sequences {
            self.append(sequence, &format!("{sequence:0>50}"));
            self.log.write(Instant::now());
        }
    }

    /// As [`Self::fill`], waiting for the keeper now and then, so that it has a file ahead when one is due.
    fn fill_files(&mut self, sequences: std::ops::Range<u64>) {
        for begin in sequences.clone().step_by(100) {
            self.fill(begin..sequences.end.min(begin + 100));
            self.sync().1.unwrap();
        }
    }

    /// Asks for a sync and waits for what it tells.
    fn sync(&self) -> Synced {
        self.log.sync();
        self.synced.recv_timeout(Duration::from_secs(10)).unwrap()
    }
}

fn id(sequence: u64) -> EventId {
    EventId { publisher: PublisherId(1), incarnation: Incarnation(5), topic: TopicId(0), sequence: Sequence(sequence) }
}

fn sequences(cursor: &mut Cursor) -> Vec<u64> {
    let mut read = Vec::new();
    while let Some(record) = cursor.read().unwrap() {
        read.push(record.id.sequence.0);
    }
    read
}

fn all(reader: &EventLogReader) -> Vec<u64> {
    sequences(&mut reader.cursor(Position(0)))
}

#[test]
fn what_is_written_is_read_while_the_log_goes_on() {
    let mut bench = Bench::new(LIMITS);
    let mut cursor = bench.reader.cursor(Position(0));
    assert!(sequences(&mut cursor).is_empty());
    bench.append(1, "a");
    assert!(sequences(&mut cursor).is_empty(), "a turn's events are written at its end");
    bench.append(2, "b");
    bench.log.write(Instant::now());
    assert_eq!(sequences(&mut cursor), [1, 2]);
    bench.fill(3..50);
    assert_eq!(sequences(&mut cursor), (3..50).collect::<Vec<_>>());
    assert_eq!(cursor.position(), bench.log.next_position());
    assert_eq!(sequences(&mut bench.reader.cursor(Position(47))), [48, 49]);
}

#[test]
fn a_restart_goes_on_where_the_log_ended_and_cuts_a_torn_end_off() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(1..10);
    let path = bench.log.shared.segments.load()[0].path.clone();
    let mut bench = bench.restart();
    assert_eq!(bench.log.next_position(), Position(9));
    bench.fill(10..12);
    drop(bench.log);
    let whole = fs::metadata(&path).unwrap().len();
    for torn in [1, 5, 30, 100] {
        File::options().write(true).open(&path).unwrap().set_len(whole - torn).unwrap();
        let (mut log, reader, _synced) = open(bench.directory.path(), LIMITS);
        assert_eq!(log.next_position(), Position(10), "{torn} bytes are missing");
        assert_eq!(log.append(now_ns(), id(11), "T", &format!("{:0>50}", 11), Instant::now()), Position(10));
        log.write(Instant::now());
        assert_eq!(all(&reader), (1..12).collect::<Vec<_>>());
    }
}

#[test]
fn no_position_is_given_twice() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(0..3);
    drop(bench.log);
    // The database knows of events that the machine's fall has taken.
    let opened = |from| EventLog::open(bench.directory.path(), LIMITS, Position(from), now_ns(), Box::new(|_, _| ())).unwrap();
    let (mut log, reader) = opened(7);
    assert_eq!((log.next_position(), reader.end()), (Position(7), Position(7)));
    assert_eq!(log.append(now_ns(), id(7), "T", "{}", Instant::now()), Position(7));
    log.write(Instant::now());
    assert_eq!(all(&reader), [0, 1, 2, 7]);
    drop(log);
    let (log, reader) = opened(5);
    assert_eq!((log.next_position(), all(&reader)), (Position(8), vec![0, 1, 2, 7]));
    drop(log);
    // The operator has moved the log away.
    fs::remove_dir_all(bench.directory.path()).unwrap();
    let (log, reader) = opened(8);
    assert_eq!((log.next_position(), reader.state().first, reader.cursor(Position(0)).position()), (Position(8), Position(8), Position(8)));
}

#[test]
fn files_follow_each_other_and_the_oldest_go() {
    let limits = EventLogLimits { bytes_max: 300_000, ..LIMITS };
    let mut bench = Bench::new(limits);
    let mut cursor = bench.reader.cursor(Position(0));
    let mut read = Vec::new();
    for part in 0..60 {
        bench.fill_files(part * 100..part * 100 + 100);
        read.extend(sequences(&mut cursor));
    }
    assert_eq!(read, (0..6000).collect::<Vec<_>>(), "a reader that keeps up misses nothing");
    bench.sync().1.unwrap();
    let state = bench.reader.state();
    assert!(state.bytes < 300_000 + 2 * 65_536 && state.segments > 2, "{state:?}");
    let kept = all(&bench.reader);
    assert!(kept.len() < 5000 && *kept.last().unwrap() == 5999 && kept.windows(2).all(|pair| pair[1] == pair[0] + 1), "{state:?}");
    assert_eq!(kept[0], state.first.0);
    let bench = bench.restart();
    assert_eq!((all(&bench.reader), bench.log.next_position()), (kept, Position(6000)));
}

#[test]
fn old_files_go_and_the_newest_stays() {
    let mut bench = Bench::new(EventLogLimits { bytes_max: 1 << 20, age_max: Duration::from_secs(1) });
    bench.fill_files(0..3000);
    let begun = Instant::now();
    while bench.reader.state().segments > 1 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(bench.reader.state().segments, 1);
    assert!(!all(&bench.reader).is_empty());
}

#[test]
fn event_is_found_although_runs_of_other_publishers_lie_between() {
    let mut bench = Bench::new(EventLogLimits { bytes_max: 1 << 20, ..LIMITS });
    let of_run = |run: u64, sequence| EventId { incarnation: Incarnation(run), ..id(sequence) };
    for sequence in 1..1500 {
        for run in [5, 9] {
            bench.log.append(now_ns(), of_run(run, sequence), "T", &format!("{sequence:0>50}"), Instant::now());
        }
        if sequence % 100 == 99 {
            bench.log.write(Instant::now());
            bench.sync().1.unwrap();
        }
    }
    assert!(bench.reader.state().segments > 3);
    for sequence in 1..1400 {
        for (run, behind) in [(5, 2 * sequence - 1), (9, 2 * sequence)] {
            assert_eq!(bench.reader.behind("T", of_run(run, sequence)).unwrap(), Some(Position(behind)), "{run} {sequence}");
        }
    }
}

#[test]
fn an_event_is_found_by_its_identity_and_by_its_time() {
    let mut bench = Bench::new(EventLogLimits { bytes_max: 1 << 20, ..LIMITS });
    let before = now_ns();
    bench.fill_files(1..2000);
    let between = now_ns();
    bench.fill(2000..2500);
    for sequence in [1, 700, 1999, 2499] {
        assert_eq!(bench.reader.behind("T", id(sequence)).unwrap(), Some(Position(sequence)));
    }
    // Heard, and never written: what followed its predecessor is what it is followed by.
    assert_eq!(bench.reader.behind("T", id(2500)).unwrap(), Some(Position(2499)));
    assert_eq!(bench.reader.behind("U", id(7)).unwrap(), None);
    let other_run = EventId { incarnation: Incarnation(6), ..id(7) };
    assert_eq!(bench.reader.behind("T", other_run).unwrap(), None);
    assert_eq!(bench.reader.since(0).unwrap(), Position(0));
    assert_eq!(bench.reader.since(before).unwrap(), Position(0));
    assert_eq!(bench.reader.since(between).unwrap(), Position(1999));
    assert_eq!(bench.reader.since(now_ns()).unwrap(), Position(2499));
}

#[test]
fn a_sync_that_is_asked_for_is_told() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(1..3);
    assert_eq!(bench.sync(), (Position(2), Ok(())));
    assert_eq!(bench.reader.state().synced, Position(2));
}

#[test]
fn the_recent_events_are_at_hand() {
    let mut bench = Bench::new(LIMITS);
    let recent =
        |log: &EventLog, from| log.recent(Position(from)).map(|records| records.map(|record| record.id.sequence.0).collect::<Vec<_>>());
    assert_eq!(recent(&bench.log, 0), Some(vec![]));
    bench.fill(0..3);
    assert_eq!(recent(&bench.log, 0), Some(vec![0, 1, 2]));
    assert_eq!(recent(&bench.log, 2), Some(vec![2]));
    assert_eq!(recent(&bench.log, 3), Some(vec![]));
    let large = "x".repeat(700_000);
    for sequence in 3..8 {
        bench.append(sequence, &large);
    }
    bench.log.write(Instant::now());
    assert_eq!(recent(&bench.log, 0), None);
    assert_eq!(recent(&bench.log, 5), Some(vec![5, 6, 7]));
    assert_eq!(all(&bench.reader), (0..8).collect::<Vec<_>>());
}

/// Appends, writes, restarts and reads as a script says, and then reads to the end: gives what was read of how many events.
fn play(limits: EventLogLimits, script: &[(u64, u8)]) -> (Bench, Vec<u64>, u64) {
    let mut bench = Bench::new(limits);
    let mut cursor = bench.reader.cursor(Position(0));
    let (mut next, mut read) = (0, Vec::new());
    for &(count, then) in script {
        for sequence in next..next + count {
            bench.append(sequence, &format!("{sequence:0>500}"));
            if sequence % 7 == 0 {
                bench.log.write(Instant::now());
            }
        }
        next += count;
        match then {
            0 => bench.log.write(Instant::now()),
            1 => {
                // A rest may come in the middle of what was read ahead.
                let some = cursor.read().unwrap().map(|record| record.id.sequence.0);
                cursor.rest();
                read.extend(some.into_iter().chain(sequences(&mut cursor)));
            }
            2 => {
                bench = bench.restart_with(limits);
                let from = cursor.position();
                cursor = bench.reader.cursor(from);
            }
            3 => cursor.rest(),
            _ => {}
        }
    }
    bench.log.write(Instant::now());
    read.extend(sequences(&mut cursor));
    (bench, read, next)
}

fn scripts() -> impl Strategy<Value = Vec<(u64, u8)>> {
    prop::collection::vec((1u64..400, 0u8..5), 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever the turns, the restarts and the reader's pace: nothing is lost, doubled or out of order. The limit is above what
    /// the longest script appends, some 2.5 MB.
    #[test]
    fn a_reader_sees_every_event_once(script in scripts()) {
        let (_bench, read, next) = play(EventLogLimits { bytes_max: 4 << 20, ..LIMITS }, &script);
        prop_assert_eq!(read, (0..next).collect::<Vec<_>>());
    }

    /// Where retention is faster than the reader, what is missing is old: it lies in front of what the log still keeps.
    #[test]
    fn a_slow_reader_misses_the_oldest_only(script in scripts()) {
        let (bench, read, next) = play(EventLogLimits { bytes_max: 128 << 10, ..LIMITS }, &script);
        let kept_from = bench.reader.state().first.0;
        let mut expected = 0;
        for sequence in read {
            prop_assert!(sequence >= expected, "{} comes behind {}", sequence, expected);
            prop_assert!(sequence == expected || sequence <= kept_from, "{} to {} are missing", expected, sequence);
            expected = sequence + 1;
        }
        prop_assert_eq!(expected, next);
    }
}
