//! A clock that is set while the log is written.

use super::*;

const HOUR_NS: u64 = 3_600_000_000_000;

impl Bench {
    /// As [`Bench::fill_files`], with events of this time.
    fn fill_files_at(&mut self, time_ns: u64, sequences: std::ops::Range<u64>) {
        for sequence in sequences {
            self.log.append(time_ns, id(sequence), "T", &format!("{sequence:0>50}"), Instant::now());
            if sequence % 100 == 99 {
                self.log.write(Instant::now());
                self.sync().1.unwrap();
            }
        }
    }
}

#[test]
fn an_event_is_found_although_the_clock_was_set_back() {
    let mut bench = Bench::new(EventLogLimits { bytes_max: 1 << 20, ..LIMITS });
    // The run is named after a time that its events never reach, and so is the next run.
    let now_ns = now_ns();
    let in_run = |run: u64, sequence| EventId { incarnation: Incarnation(run), ..id(sequence) };
    let (former, present) = (now_ns + HOUR_NS, now_ns + HOUR_NS / 2);
    for (run, range) in [(former, 0..2000), (present, 2000..4000)] {
        for sequence in range {
            bench.log.append(now_ns - sequence, in_run(run, sequence), "T", &format!("{sequence:0>50}"), Instant::now());
            if sequence % 100 == 99 {
                bench.log.write(Instant::now());
                bench.sync().1.unwrap();
            }
        }
    }
    assert!(bench.reader.state().segments > 4);
    for (run, sequence) in [(former, 0), (former, 1999), (present, 2000), (present, 3999)] {
        assert_eq!(bench.reader.behind("T", in_run(run, sequence)).unwrap(), Some(Position(sequence + 1)), "{sequence}");
    }
    assert_eq!(bench.reader.behind("T", in_run(present, 1999)).unwrap(), None);
    assert_eq!(bench.reader.behind("T", in_run(1, 7)).unwrap(), None);
}

#[test]
fn a_time_is_looked_for_in_front_of_events_of_an_earlier_time() {
    let limits = EventLogLimits { bytes_max: 1 << 20, ..LIMITS };
    let mut bench = Bench::new(limits);
    let begun_ns = now_ns();
    let day = |hours: u64| begun_ns + hours * HOUR_NS;
    bench.fill_files_at(day(1), 0..1000);
    bench.fill_files_at(day(3), 1000..2000);
    bench.fill_files_at(day(2), 2000..4000);
    bench.fill_files_at(day(4), 4000..5000);
    assert!(bench.reader.state().segments > 4);
    for _ in 0..2 {
        for (hours, expected) in [(1, 0), (2, 1000), (3, 1000), (4, 4000), (5, 5000)] {
            assert_eq!(bench.reader.since(day(hours)).unwrap(), Position(expected), "{hours} h");
        }
        bench = bench.restart_with(limits);
    }
}

#[test]
fn events_are_not_old_because_the_clock_is_set_forward() {
    let mut bench = Bench::new(EventLogLimits { bytes_max: 1 << 20, age_max: Duration::from_secs(3600) });
    bench.fill_files_at(now_ns() - 10 * HOUR_NS, 0..3000);
    bench.sync().1.unwrap();
    bench.sync().1.unwrap();
    assert_eq!(all(&bench.reader), (0..3000).collect::<Vec<_>>());
    assert!(bench.reader.state().segments > 3);
}
