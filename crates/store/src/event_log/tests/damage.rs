//! Files that are damaged or missing.

use super::*;

#[test]
fn a_file_that_is_gone_is_passed_over() {
    let mut bench = Bench::new(EventLogLimits { bytes_max: 1 << 20, ..LIMITS });
    bench.fill_files(0..3000);
    let segments = bench.log.shared.segments.load_full();
    let first = |number: usize| segments[number].first.0;
    // As a reader finds them that has looked at the list just before retention.
    fs::remove_file(&segments[0].path).unwrap();
    assert_eq!(all(&bench.reader), (first(1)..3000).collect::<Vec<_>>());
    fs::remove_file(&segments[2].path).unwrap();
    assert_eq!(all(&bench.reader), (first(1)..first(2)).chain(first(3)..3000).collect::<Vec<_>>());
    assert_eq!(sequences(&mut bench.reader.cursor(segments[2].first)), (first(3)..3000).collect::<Vec<_>>());
}

/// Flips a bit of a file.
fn hit(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 4;
    fs::write(path, bytes).unwrap();
}

#[test]
fn damage_costs_what_it_hits() {
    let mut bench = Bench::new(EventLogLimits { bytes_max: 1 << 20, ..LIMITS });
    bench.fill_files(0..3000);
    let segments = bench.log.shared.segments.load_full();
    assert!(segments.len() > 2);
    let bytes = fs::metadata(&segments[0].path).unwrap().len() as usize;
    hit(&segments[0].path, bytes / 2);
    let read = all(&bench.reader);
    assert!(read.len() == 2999 && read.is_sorted() && read[0] == 0 && read[2998] == 2999, "{} events", read.len());
}

#[test]
fn a_start_keeps_what_follows_damage() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(0..100);
    let path = bench.log.shared.segments.load()[0].path.clone();
    let record_bytes = (bench.log.file_bytes - segment::HEADER_BYTES) as usize / 100;
    let kept = |until: u64| (0..until).filter(|sequence| *sequence != 50).collect::<Vec<_>>();
    let whole = fs::read(&path).unwrap();
    drop(bench.log);
    // Length, checksum, position, event.
    for at in [0, 2, 3, 5, 8, 15, record_bytes - 1] {
        fs::write(&path, &whole).unwrap();
        hit(&path, segment::HEADER_BYTES as usize + 50 * record_bytes + at);
        let damaged = fs::read(&path).unwrap();
        let (mut log, reader, _synced) = open(bench.directory.path(), LIMITS);
        assert_eq!((all(&reader), log.next_position()), (kept(100), Position(100)), "byte {at}");
        log.append(now_ns(), id(100), "T", "{}", Instant::now());
        log.write(Instant::now());
        assert_eq!((all(&reader), reader.state().segments), (kept(101), 2), "byte {at}");
        drop(log);
        assert_eq!(fs::read(&path).unwrap(), damaged, "byte {at}");
        let (log, reader, _synced) = open(bench.directory.path(), LIMITS);
        assert_eq!((all(&reader), log.next_position()), (kept(101), Position(101)), "byte {at}");
        drop(log);
        fs::remove_file(segment::path_of(bench.directory.path(), 2)).unwrap();
    }
}

#[test]
fn zeros_that_a_power_failure_has_left_do_not_keep_the_log_from_starting() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(0..10);
    let (path, empty) = (bench.log.shared.segments.load()[0].path.clone(), segment::path_of(bench.directory.path(), 9));
    drop(bench.log);
    fs::write(&empty, [0; 4096]).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[..segment::HEADER_BYTES as usize].fill(0);
    bytes.extend([0; 4096]);
    fs::write(&path, bytes).unwrap();
    for _ in 0..2 {
        let (log, reader, _synced) = open(bench.directory.path(), LIMITS);
        assert_eq!((all(&reader), log.next_position()), ((0..10).collect(), Position(10)));
        assert!(!empty.exists());
    }
}

/// Opens a log with this first file, which is to be refused. Returns the reason.
fn refusal(first_file: &[u8]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = segment::path_of(directory.path(), 1);
    fs::write(&path, first_file).unwrap();
    let error = EventLog::open(directory.path(), LIMITS, Position(0), now_ns(), Box::new(|_, _| ())).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), first_file, "a refused file is left alone");
    error.to_string()
}

#[test]
fn foreign_file_is_refused_and_left_alone() {
    let told = refusal(&[7; 100]);
    assert!(told.contains("is not a file of an event log") && told.contains("bodkin db discard-events"), "{told}");
}

#[test]
fn log_of_another_version_names_the_remedy() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(0..10);
    let mut bytes = fs::read(&bench.log.shared.segments.load()[0].path).unwrap();
    // The version follows eight bytes that name the format.
    bytes[8] = 9;
    let told = refusal(&bytes);
    let expected = "has version 9 of the event log, and this build reads version 1: start the build that wrote the file";
    assert!(told.contains(expected) && told.contains("bodkin db discard-events"), "{told}");
}
