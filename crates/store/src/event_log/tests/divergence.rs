//! Two nodes find out where their logs part.

use std::collections::BTreeSet;

use super::*;

fn durable() -> BTreeSet<Box<str>> {
    BTreeSet::from(["T".into()])
}

/// The names that one node sends the other.
fn names(bench: &Bench) -> BTreeSet<RecordName> {
    bench.reader.newest(&durable()).unwrap().into_iter().collect()
}

/// The numbers of the durable events that `leader` finds to be lacking at `other`.
fn lacking(leader: &Bench, other: &Bench) -> Vec<u64> {
    let end = leader.log.next_position();
    let Some(first) = leader.reader.first_lacking(&names(other), &durable(), end).unwrap() else { return Vec::new() };
    let mut cursor = leader.reader.cursor(first);
    let mut sequences = Vec::new();
    while let Some(record) = cursor.read_before(end).unwrap() {
        if record.topic == "T" {
            sequences.push(record.id.sequence.0);
        }
    }
    sequences
}

/// Appends what the leader has from a position on to a log that follows it: durable events only.
fn copy(leader: &Bench, from: Position, until: Position, to: &mut Bench) {
    let mut cursor = leader.reader.cursor(from);
    while let Some(record) = cursor.read_before(until).unwrap() {
        if record.topic == "T" {
            to.log.append(record.time_ns, record.id, record.topic, record.event, Instant::now());
        }
    }
    to.log.write(Instant::now());
}

/// A log of several files, in which every third event is durable.
fn mixed(events: u64) -> Bench {
    let mut bench = Bench::new(EventLogLimits { bytes_max: 1 << 20, ..LIMITS });
    for begin in (0..events).step_by(100) {
        for sequence in begin..events.min(begin + 100) {
            let topic = if sequence % 3 == 0 { "T" } else { "ANY" };
            bench.log.append(now_ns(), id(sequence), topic, &format!("{sequence:0>200}"), Instant::now());
            bench.log.write(Instant::now());
        }
        bench.sync().1.unwrap();
    }
    bench
}

#[test]
fn who_was_away_lacks_what_is_behind_its_newest_record_wherever_the_files_end() {
    let leader = mixed(900);
    assert!(leader.reader.state().segments > 2, "{:?}", leader.reader.state());
    let end = leader.log.next_position();
    for until in [0, 1, 2, 30, 298, 450, 898, 900] {
        let mut other = Bench::new(LIMITS);
        copy(&leader, Position(0), Position(until), &mut other);
        let expected: Vec<u64> = (until..900).filter(|sequence| sequence % 3 == 0).collect();
        assert_eq!(lacking(&leader, &other), expected, "it has what is in front of {until}");
        let first = expected.first().map(|sequence| Position(*sequence));
        copy(&leader, first.unwrap_or(end), end, &mut other);
        assert_eq!(lacking(&leader, &other), [0; 0], "now it has all");
        // What it accepts when it leads, and the one that it has followed then lacks.
        other.fill(1_000..1_003);
        assert_eq!(lacking(&other, &leader), [1_000, 1_001, 1_002]);
    }
}

#[test]
fn what_a_node_had_not_answered_when_it_stopped_leading_is_no_part_of_what_it_lacks() {
    let mut first = Bench::new(LIMITS);
    first.fill(0..10);
    let mut second = Bench::new(LIMITS);
    copy(&first, Position(0), Position(8), &mut second);
    // The first one dies with two that nobody has been answered, and the second one leads.
    second.fill(20..25);
    assert_eq!(lacking(&second, &first), [20, 21, 22, 23, 24]);
    copy(&second, Position(8), Position(11), &mut first);
    assert_eq!(lacking(&second, &first), [23, 24], "found behind what only it has");
    copy(&second, Position(11), Position(13), &mut first);
    let (mut first, second) = (first.restart(), second.restart());
    first.fill(30..32);
    assert_eq!(lacking(&first, &second), [30, 31], "and in the other direction");
}

#[test]
fn places_after_records_are_found_in_the_other_log() {
    let leader = mixed(900);
    let mut other = Bench::new(EventLogLimits { bytes_max: 1 << 20, ..LIMITS });
    copy(&leader, Position(0), Position(900), &mut other);
    let mut names = Vec::new();
    let mut cursor = leader.reader.cursor(Position(0));
    while let Some(record) = cursor.read().unwrap() {
        names.push(RecordName::of(&record));
    }
    let places = |asked: &[usize]| -> Vec<u64> {
        let places = other.reader.places_after(&asked.iter().map(|at| names[*at]).collect()).unwrap();
        asked.iter().map(|at| places[&names[*at]].0).collect()
    };
    assert_eq!(places(&[0, 3, 450, 897]), [1, 2, 151, 300], "each third record is here");
    assert_eq!(places(&[1, 449, 898]), [1, 150, 300], "of one that is not, what came later follows");
    let before = RecordName { time_ns: names[0].time_ns - 1, id: id(7) };
    assert_eq!(other.reader.places_after(&BTreeSet::from([before])).unwrap()[&before], Position(0));
    assert_eq!(RecordName::from_bytes(names[7].to_bytes()), names[7]);
}

#[test]
fn newest_shared_record_is_known_when_it_is_written() {
    let mut bench = Bench::new(LIMITS);
    assert_eq!(bench.reader.end_and_shared(), (Position(0), None));
    bench.append(1, "shared");
    let name = RecordName { time_ns: 5, id: id(1) };
    bench.log.is_shared(name);
    bench.append(2, "own");
    assert_eq!(bench.reader.end_and_shared(), (Position(0), None));
    bench.log.write(Instant::now());
    assert_eq!(bench.reader.end_and_shared(), (Position(2), Some(name)));
}

#[test]
fn the_same_event_accepted_at_another_time_is_another_record() {
    let (mut leader, mut other) = (Bench::new(LIMITS), Bench::new(LIMITS));
    leader.fill(0..3);
    std::thread::sleep(Duration::from_micros(1));
    other.fill(0..3);
    assert_eq!(lacking(&leader, &other), [0, 1, 2]);
}

#[test]
fn so_many_records_are_named_and_none_of_a_file_that_may_not_be_on_the_disk() {
    let mut bench = Bench::new(LIMITS);
    bench.fill(0..NAMES_MAX as u64 + 5);
    let names = bench.reader.newest(&durable()).unwrap();
    assert_eq!((names.len(), names[0].id, names[NAMES_MAX - 1].id), (NAMES_MAX, id(NAMES_MAX as u64 + 4), id(5)));
    assert_eq!(bench.reader.newest(&BTreeSet::new()).unwrap(), []);
    let failed = FailedSync { file: 1, error: "the disk".into(), is_removed: false };
    bench.log.shared.failed_sync.store(Some(Arc::new(failed)));
    assert_eq!(bench.reader.newest(&durable()).unwrap(), []);
}
