//! Files that somebody removes while the log runs, and logs that lack what the database knows.

use super::*;

impl Bench {
    /// Writes events until the log has lost so many, or too many attempts were made.
    fn write_until_lost(&mut self, lost: u64) -> u64 {
        let mut sequence = 1_000;
        while self.reader.state().lost < lost && sequence < 3_000 {
            self.fill(sequence..sequence + 1);
            // Of the removed file it is an error.
            let _ = self.sync();
            sequence += 1;
            std::thread::sleep(Duration::from_millis(5));
        }
        sequence
    }
}

#[test]
fn removed_file_is_reported_and_another_begun() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(1..4);
    assert_eq!(bench.sync().1, Ok(()));
    fs::remove_file(&bench.log.shared.segments.load()[0].path).unwrap();
    bench.fill(4..5);
    let (_, result) = bench.sync();
    assert!(result.is_err_and(|error| error.contains("removed")), "a durable event of a removed file is not acknowledged");
    bench.write_until_lost(4);
    let state = bench.reader.state();
    assert!(state.lost == 4 && state.first == Position(4) && !bench.log.is_suspended(), "{state:?}");
    assert_eq!(bench.sync().1, Ok(()));
    assert_eq!(all(&bench.reader).first(), Some(&1_000), "what follows is kept");
    let kept = all(&bench.reader);
    assert_eq!(all(&bench.restart().reader), kept);
}

#[test]
fn removed_directory_is_made_again_with_its_identity() {
    let mut bench = Bench::new(LIMITS);
    let (identity, directory) = (bench.reader.identity(), bench.directory.path().to_owned());
    bench.fill(1..4);
    assert_eq!(bench.sync().1, Ok(()));
    fs::remove_dir_all(&directory).unwrap();
    bench.write_until_lost(4);
    assert!(bench.reader.state().lost >= 4, "{:?}", bench.reader.state());
    assert_eq!(bench.sync().1, Ok(()));
    let kept = all(&bench.reader);
    let bench = bench.restart();
    assert_eq!((bench.reader.identity(), all(&bench.reader)), (identity, kept));
}

#[test]
fn removed_older_file_is_counted() {
    let mut bench = Bench::new(EventLogLimits { bytes_max: 1 << 20, ..LIMITS });
    bench.fill_files(1..2_000);
    let segments = bench.log.shared.segments.load_full();
    assert!(segments.len() > 2, "{}", segments.len());
    let expected = segments[2].first.0 - segments[1].first.0;
    fs::remove_file(&segments[1].path).unwrap();
    bench.write_until_lost(expected);
    assert_eq!(bench.reader.state().lost, expected);
    assert_eq!(bench.log.shared.segments.load().iter().filter(|segment| segment.number == segments[1].number).count(), 0);
}

#[test]
fn events_that_only_the_database_knows_are_lost() {
    let bench = Bench::new(LIMITS);
    let Bench { directory, log, .. } = bench;
    drop(log);
    for (from, lost) in [(0, 0), (7, 7), (3, 0), (9, 1)] {
        let on_sync = Box::new(|_, _| ());
        let (mut log, reader) = EventLog::open(directory.path(), LIMITS, Position(from), now_ns(), on_sync).unwrap();
        assert_eq!(reader.state().lost, lost, "the database knows {from} events");
        if from > 0 && lost > 0 {
            // A position is given only to a record that is written.
            log.append(now_ns(), id(from), "T", "{}", Instant::now());
            log.write(Instant::now());
        }
    }
}
