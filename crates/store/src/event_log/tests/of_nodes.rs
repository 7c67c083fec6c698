//! Events of other nodes among the own ones.

use super::*;

const FROM: Origin = Origin { node: 0xa1, position: Position(70), epoch: 2, lane: 9 };

fn of_other_run(sequence: u64) -> EventId {
    EventId { incarnation: Incarnation(9), ..id(sequence) }
}

impl Bench {
    fn append_from(&mut self, sequence: u64, event: &str) {
        self.log.append_from(Some(FROM), now_ns(), of_other_run(sequence), "T", event, Instant::now());
        self.log.write(Instant::now());
    }
}

#[test]
fn where_they_are_from_is_read_again_behind_a_restart() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(1..3);
    bench.append_from(1, "{}");
    bench.append_from(2, "3");
    let bench = bench.restart();
    let (mut cursor, mut read) = (bench.reader.cursor(Position(0)), Vec::new());
    while let Some(record) = cursor.read().unwrap() {
        read.push((record.id.sequence.0, record.origin, record.topic.to_owned(), record.event.len()));
    }
    let own = |sequence| (sequence, None, "T".to_owned(), 50);
    assert_eq!(read, [own(1), own(2), (1, Some(FROM), "T".to_owned(), 2), (2, Some(FROM), "T".to_owned(), 1)]);
}

#[test]
fn what_follows_an_event_is_found_whoever_has_accepted_it() {
    let mut bench = Bench::new(EventLogLimits { bytes_max: 1 << 20, ..LIMITS });
    bench.append_from(1, "{}");
    bench.fill(1..10);
    // Each of the next files begins with one of another node.
    for begin in [10, 1000, 2000] {
        bench.fill_files(begin..begin + 900);
        bench.append_from(begin, "{}");
    }
    assert!(bench.reader.state().segments > 3);
    for (id, behind) in [(id(3), 4), (id(500), 501), (of_other_run(1), 1), (of_other_run(10), 911)] {
        assert_eq!(bench.reader.behind("T", id).unwrap(), Some(Position(behind)), "{id}");
    }
}
