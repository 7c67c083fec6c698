//! The log as those who tell, those who read and the next start see it.

use std::{fs, fs::File, path::Path};

use bodkin_arrowhead::audit::AuditQuery;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const LIMITS: AuditLimits = AuditLimits { bytes_max: 1 << 30, age_max: Duration::from_secs(3600) };

struct Bench {
    directory: TempDir,
    log: AuditLog,
    thread: AuditThread,
}

fn at() -> UtcTime {
    UtcTime::from_system_time(std::time::SystemTime::now()).unwrap()
}

fn open(directory: &Path, limits: AuditLimits, checkpoint: Option<Head>) -> (AuditLog, AuditThread) {
    AuditLog::open(directory, limits, checkpoint, at(), Event::own(Kind::Start, "start")).unwrap()
}

fn change(what: &str) -> Event {
    Event::new(Kind::Change, "anonymous", None, what).answered(201)
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

impl Bench {
    fn new(limits: AuditLimits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (log, thread) = open(directory.path(), limits, None);
        Self { directory, log, thread }
    }

    /// With this many changes, each of which is on disk.
    fn with_changes(limits: AuditLimits, count: usize) -> Self {
        let bench = Self::new(limits);
        (0..count).for_each(|number| bench.record(&format!("change {number}")));
        bench
    }

    fn record(&self, what: &str) {
        wait(self.log.record(at(), change(what))).unwrap();
    }

    /// Ends as after a stop; gives the directory and the last entry.
    fn stop(self) -> (TempDir, Head) {
        let head = self.thread.close(at(), Event::own(Kind::Stop, "stop"));
        (self.directory, head)
    }
}

fn kinds(directory: &Path) -> Vec<Kind> {
    let read = AuditReader::new(directory).first(&AuditQuery::default(), usize::MAX).unwrap();
    read.into_iter().map(|read| read.entry.event.kind).collect()
}

fn only_file(directory: &Path) -> PathBuf {
    let names = segment::names(directory).unwrap();
    assert_eq!(names.len(), 1, "{names:?}");
    names[0].1.clone()
}

#[track_caller]
fn whole(directory: &Path, checkpoint: Option<Head>) -> Verification {
    let found = verify(directory, None, checkpoint).unwrap();
    assert_eq!(found.wrong, None);
    found
}

#[track_caller]
fn wrong(directory: &Path, checkpoint: Option<Head>) -> (u64, Fault) {
    let (place, fault) = verify(directory, None, checkpoint).unwrap().wrong.expect("something is wrong");
    (place.line, fault)
}

/// Makes a file another one, line by line.
fn edit(path: &Path, edit: impl FnOnce(&mut Vec<String>)) {
    let text = fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    edit(&mut lines);
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

#[test]
fn what_was_recorded_is_on_disk_and_in_order() {
    let bench = Bench::with_changes(LIMITS, 3);
    assert_eq!(bench.log.head().number, 4);
    let read = bench.log.reader().first(&AuditQuery { kind: Some(Kind::Change), ..AuditQuery::default() }, 10).unwrap();
    let told: Vec<_> = read.iter().map(|read| (read.entry.number, read.entry.event.what.as_str())).collect();
    assert_eq!(told, [(2, "change 0"), (3, "change 1"), (4, "change 2")]);
    let (directory, head) = bench.stop();
    assert_eq!(kinds(directory.path()), [Kind::Start, Kind::Change, Kind::Change, Kind::Change, Kind::Stop]);
    let found = whole(directory.path(), Some(head));
    assert_eq!((found.entries, found.first, found.head, found.torn_bytes), (5, Some(1), head, 0));
}

#[test]
fn what_was_noted_is_written_soon_and_in_the_order_of_the_queue() {
    let bench = Bench::new(LIMITS);
    wait(async {
        for number in 0..100 {
            bench.log.note(at(), Event::new(Kind::Orchestration, "a", None, &number.to_string())).await;
        }
        bench.log.record(at(), change("last")).await.unwrap();
    });
    let read = bench.log.reader().last(&AuditQuery::default(), 101).unwrap();
    let whats: Vec<_> = read.iter().map(|read| read.entry.event.what.clone()).collect();
    assert_eq!(whats, (0..100).map(|number| number.to_string()).chain(["last".to_owned()]).collect::<Vec<_>>());
}

#[test]
fn more_than_the_queue_holds_waits_and_none_is_dropped() {
    const TELLERS: usize = 8;
    const EACH: usize = QUEUE_ENTRIES_MAX / 4;
    let bench = Bench::new(LIMITS);
    std::thread::scope(|scope| {
        for _ in 0..TELLERS {
            scope.spawn(|| {
                wait(async {
                    for _ in 0..EACH {
                        bench.log.note(at(), change("x")).await;
                    }
                });
            });
        }
    });
    let (directory, _) = bench.stop();
    assert_eq!(whole(directory.path(), None).entries as usize, TELLERS * EACH + 2);
}

#[test]
fn the_chain_goes_on_after_a_restart() {
    let (directory, head) = Bench::with_changes(LIMITS, 2).stop();
    let (log, thread) = open(directory.path(), LIMITS, Some(head));
    wait(log.record(at(), change("later"))).unwrap();
    thread.close(at(), Event::own(Kind::Stop, "stop"));
    whole(directory.path(), Some(head));
    let expected = [Kind::Start, Kind::Change, Kind::Change, Kind::Stop, Kind::Start, Kind::Change, Kind::Stop];
    assert_eq!(kinds(directory.path()), expected);
    only_file(directory.path());
}

#[test]
fn a_torn_line_is_taken_out_and_told() {
    let (directory, _) = Bench::with_changes(LIMITS, 2).stop();
    let path = only_file(directory.path());
    let bytes = fs::metadata(&path).unwrap().len();
    File::options().write(true).open(&path).unwrap().set_len(bytes - 10).unwrap();
    assert!(whole(directory.path(), None).torn_bytes > 10, "a line that is being written is no fault");
    let (_, thread) = open(directory.path(), LIMITS, None);
    thread.close(at(), Event::own(Kind::Stop, "stop"));
    let expected = [Kind::Start, Kind::Change, Kind::Change, Kind::Torn, Kind::Start, Kind::Stop];
    assert_eq!(kinds(directory.path()), expected);
    let found = AuditReader::new(directory.path()).first(&AuditQuery { kind: Some(Kind::Torn), ..AuditQuery::default() }, 1).unwrap();
    assert!(found[0].entry.event.detail["text"].as_str().unwrap().contains("\"kind\":\"stop\""), "{found:?}");
    assert_eq!(whole(directory.path(), None).torn_bytes, 0);
}

#[test]
fn a_file_that_was_begun_and_never_written_is_gone_on_with() {
    let (directory, head) = Bench::with_changes(LIMITS, 1).stop();
    segment::create(directory.path(), head.number + 1).unwrap();
    let (_, thread) = open(directory.path(), LIMITS, Some(head));
    thread.close(at(), Event::own(Kind::Stop, "stop"));
    assert_eq!(whole(directory.path(), Some(head)).entries, head.number + 2);
}

#[test]
fn every_line_that_is_changed_is_found() {
    let (directory, head) = Bench::with_changes(LIMITS, 4).stop();
    let path = only_file(directory.path());
    let text = fs::read_to_string(&path).unwrap();
    for at in 0..text.lines().count() {
        edit(&path, |lines| lines[at] = lines[at].replace("\"caller\":\"", "\"caller\":\"x"));
        let (line, fault) = wrong(directory.path(), Some(head));
        match fault {
            // The last line is followed by none: the checkpoint tells.
            Fault::Checkpoint { number } => assert_eq!((number, at + 1), (head.number, text.lines().count())),
            Fault::Previous { .. } => assert_eq!(line, at as u64 + 2, "the line behind the changed one"),
            fault => panic!("{fault}"),
        }
        fs::write(&path, &text).unwrap();
    }
    whole(directory.path(), Some(head));
}

#[test]
fn lines_that_are_removed_doubled_or_made_up_are_found() {
    let (directory, head) = Bench::with_changes(LIMITS, 4).stop();
    let path = only_file(directory.path());
    let text = fs::read_to_string(&path).unwrap();
    let check = |change: fn(&mut Vec<String>), expected_line: u64, expected: fn(&Fault) -> bool| {
        edit(&path, change);
        let (line, fault) = wrong(directory.path(), Some(head));
        assert!(line == expected_line && expected(&fault), "line {line}: {fault}");
        fs::write(&path, &text).unwrap();
    };
    check(|lines| drop(lines.remove(2)), 3, |fault| matches!(fault, Fault::Number { expected: 3, found: 4 }));
    check(|lines| lines.insert(3, lines[2].clone()), 4, |fault| matches!(fault, Fault::Number { expected: 4, found: 3 }));
    check(|lines| lines[1] = "{}".into(), 2, |fault| matches!(fault, Fault::NoEntry(_)));
    check(|lines| lines.truncate(3), 3, |fault| *fault == Fault::End { expected: 6, found: 3 });
    check(|lines| drop(lines.drain(..2)), 1, |fault| *fault == Fault::FileName { expected: 1, found: 3 });
    fs::remove_file(&path).unwrap();
    assert_eq!(wrong(directory.path(), Some(head)).1, Fault::End { expected: 6, found: 0 });
}

#[test]
fn a_chain_that_is_written_anew_differs_from_the_checkpoint() {
    let (directory, head) = Bench::with_changes(LIMITS, 3).stop();
    let path = only_file(directory.path());
    let mut forged = Vec::new();
    let mut anew = Head::default();
    for line in fs::read_to_string(&path).unwrap().lines() {
        let entry = bodkin_arrowhead::audit::Entry::parse(line.as_bytes()).unwrap();
        let event = Event { caller: "somebody else".into(), ..entry.event };
        anew.extend(entry.at, &event, &mut forged);
    }
    fs::write(&path, forged).unwrap();
    whole(directory.path(), None);
    assert_eq!(wrong(directory.path(), Some(head)).1, Fault::Checkpoint { number: 5 });
    let (_, thread) = open(directory.path(), LIMITS, Some(head));
    thread.close(at(), Event::own(Kind::Stop, "stop"));
    assert!(matches!(wrong(directory.path(), None).1, Fault::Told(_)), "the start has told it, and the log keeps that");
}

#[test]
fn a_missing_end_is_told_at_the_start_and_stays_told() {
    let (directory, head) = Bench::with_changes(LIMITS, 3).stop();
    edit(&only_file(directory.path()), |lines| lines.truncate(2));
    let (log, thread) = open(directory.path(), LIMITS, Some(head));
    let later = thread.close(at(), Event::own(Kind::Stop, "stop"));
    assert_eq!(kinds(directory.path()), [Kind::Start, Kind::Change, Kind::Truncated, Kind::Start, Kind::Stop]);
    let (line, fault) = wrong(directory.path(), Some(later));
    assert!(line == 3 && fault.to_string().contains("entry 5"), "{fault}");
    drop(log);
}

#[test]
fn behind_damage_a_new_file_is_begun_and_nothing_is_overwritten() {
    let (directory, _) = Bench::with_changes(LIMITS, 3).stop();
    let path = only_file(directory.path());
    edit(&path, |lines| lines[1] = lines[1].replace("change 0", "change 9"));
    let before = fs::read(&path).unwrap();
    let (log, thread) = open(directory.path(), LIMITS, None);
    wait(log.record(at(), change("later"))).unwrap();
    thread.close(at(), Event::own(Kind::Stop, "stop"));
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(kinds(directory.path())[5..], [Kind::Damaged, Kind::Start, Kind::Change, Kind::Stop]);
    assert!(matches!(wrong(directory.path(), None), (3, Fault::Previous { .. })));
    let behind = verify(directory.path(), Some(7), None).unwrap();
    assert_eq!((behind.first, behind.wrong), (Some(7), None), "what was written since can be verified");
}

#[test]
fn the_oldest_files_go_and_what_is_left_can_be_verified() {
    let limits = AuditLimits { bytes_max: 300_000, ..LIMITS };
    let bench = Bench::new(limits);
    for _ in 0..60 {
        wait(async {
            for number in 0..50 {
                bench.log.note(at(), change(&format!("{number:0>200}"))).await;
            }
            bench.log.record(at(), change("x")).await.unwrap();
        });
    }
    let (directory, head) = bench.stop();
    let found = whole(directory.path(), Some(head));
    assert!(found.first.unwrap() > 500 && found.files > 2 && found.head.number > 3060, "{found:?}");
    let names = segment::names(directory.path()).unwrap();
    let bytes: u64 = names.iter().map(|(_, path)| fs::metadata(path).unwrap().len()).sum();
    assert!(bytes < 300_000 + 2 * 65_536, "{bytes}");
    fs::remove_file(&names[0].1).unwrap();
    assert_eq!(wrong(directory.path(), Some(head)).1, Fault::Beginning { first: names[1].0 }, "no entry tells of this removal");
    let last = AuditReader::new(directory.path()).last(&AuditQuery::default(), 300).unwrap();
    let numbers: Vec<u64> = last.iter().map(|read| read.entry.number).collect();
    assert_eq!(numbers, (head.number - 299..=head.number).collect::<Vec<_>>());
}

#[test]
fn a_cursor_follows_the_log_from_file_to_file() {
    let bench = Bench::new(AuditLimits { bytes_max: 1 << 20, ..LIMITS });
    let mut cursor = bench.log.reader().cursor(3);
    let mut read = Vec::new();
    for _ in 0..10 {
        for number in 0..60 {
            wait(bench.log.note(at(), change(&format!("{number:0>300}"))));
        }
        bench.record("x");
        while let Some(line) = cursor.read().unwrap() {
            read.push(line.entry.number);
        }
    }
    assert_eq!(read, (3..=bench.log.head().number).collect::<Vec<_>>());
    assert_eq!(cursor.unreadable(), 0);
    assert!(segment::names(bench.directory.path()).unwrap().len() > 2);
}

#[test]
fn only_the_owner_may_look_into_it() {
    use std::os::unix::fs::MetadataExt;
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("audit");
    open(&place, LIMITS, None).1.close(at(), Event::own(Kind::Stop, "stop"));
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&place), mode(&only_file(&place))), (0o700, 0o600));
}

#[test]
fn what_comes_behind_the_end_is_told_so() {
    let Bench { directory: _directory, log, thread } = Bench::new(LIMITS);
    thread.close(at(), Event::own(Kind::Stop, "stop"));
    assert!(wait(log.record(at(), change("late"))).is_err());
}

#[test]
fn the_checkpoint_is_read_with_the_database_open_or_not() {
    let data = tempfile::tempdir().unwrap();
    assert_eq!(checkpoint_of(data.path()).unwrap(), None);
    let opened = crate::Store::open(data.path()).unwrap();
    assert_eq!(checkpoint_of(data.path()).unwrap(), None);
    let head = Head { number: 7, hash: bodkin_arrowhead::audit::LineHash([9; 32]) };
    wait(opened.store.write(move |draft| draft.note_audit_checkpoint(head), |_, ()| ())).unwrap();
    assert_eq!(checkpoint_of(data.path()).unwrap(), Some(head));
    assert_eq!(wait(opened.store.write(|draft| draft.audit_checkpoint(), |_, head| head)).unwrap(), Some(head));
    opened.close();
    assert_eq!(checkpoint_of(data.path()).unwrap(), Some(head));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Whatever byte of the files is changed, or however many are cut off behind a checkpoint: it is found.
    #[test]
    fn no_change_of_a_byte_goes_unseen(place in any::<prop::sample::Index>(), flip in 1u8..=255) {
        let (directory, head) = Bench::with_changes(LIMITS, 3).stop();
        let path = only_file(directory.path());
        let mut bytes = fs::read(&path).unwrap();
        let place = place.index(bytes.len());
        bytes[place] ^= flip;
        fs::write(&path, bytes).unwrap();
        prop_assert!(verify(directory.path(), None, Some(head)).unwrap().wrong.is_some(), "byte {} ^ {}", place, flip);
    }

    /// Whatever a kill or a power failure has left of the newest file: the log starts, and what it writes then is a chain.
    #[test]
    fn any_end_can_be_gone_on_behind(kept in any::<prop::sample::Index>(), garbage in prop::collection::vec(any::<u8>(), 0..80)) {
        let (directory, _) = Bench::with_changes(LIMITS, 3).stop();
        let path = only_file(directory.path());
        let mut bytes = fs::read(&path).unwrap();
        bytes.truncate(kept.index(bytes.len()));
        bytes.extend(garbage);
        fs::write(&path, bytes).unwrap();
        let (log, thread) = open(directory.path(), LIMITS, None);
        wait(log.record(at(), change("later"))).unwrap();
        let first = log.head().number;
        thread.close(at(), Event::own(Kind::Stop, "stop"));
        let found = verify(directory.path(), Some(first), None).unwrap();
        prop_assert_eq!((found.wrong, found.entries), (None, 2));
    }
}
