//! What a file says, and where it is wrong.

use bodkin_broker::{
    timing::Nanos,
    topic::{LossTolerance, Period},
};

use super::*;

#[track_caller]
fn wrong(text: &str, expected: &str) {
    let found = parse(text).err().unwrap_or_else(|| panic!("{text} is read"));
    let told = Mistakes { path: PathBuf::from("t.toml"), text: text.to_owned(), found }.to_string();
    assert_eq!(told, expected);
}

#[test]
fn a_file_of_topics_is_read_in_its_order() {
    let text = "[platform]\nfailover_ms = 50\n\n[[topic]]\nevent_type = 'b'\nperiod_ms = 1_000\nloss_tolerance = inf\n\n\
        [[topic]]\nevent_type = 'a'\nperiod_us = 0.5e3\ncount = 10\n";
    let file = parse(text).expect("it is right");
    assert_eq!(file.platform.failover(), Nanos::from_millis(50));
    let shapes: Vec<_> =
        file.topics.iter().map(|topic| (topic.event_type.as_str(), topic.line, topic.form.spec.period, topic.form.count)).collect();
    let period = |micros| Period::Every(Nanos::from_micros(micros));
    assert_eq!(shapes, [("B", 4, period(1_000_000), 1), ("A", 9, period(500), 10)]);
    assert_eq!(file.topics[0].form.spec.loss_tolerance, LossTolerance::Any);
    assert!(parse("").expect("an empty file declares nothing").topics.is_empty());
}

#[test]
fn publishers_of_a_topic_are_named() {
    let text = "[[topic]]\nevent_type = 'a'\nperiod_ms = 1\npublisher = 'Sensor'\n\n\
        [[topic]]\nevent_type = 'b'\nperiod_ms = 1\npublishers = 3\npublisher = ['y', 'x']\ncount = 2\n";
    let each = parse(text).expect("it is right").each().expect("the names are short enough");
    let permitted: Vec<_> = each.iter().map(|topic| (topic.event_type.as_str(), topic.permitted.to_string())).collect();
    assert_eq!(permitted, [("A", "sensor".to_owned()), ("B-1", "x, y".to_owned()), ("B-2", "x, y".to_owned())]);
    wrong(
        "[[topic]]\nevent_type = 'b'\nperiod_ms = 1\npublisher = ['y', 'x']",
        "t.toml:4:13: publisher names more systems than publishers allows: expected at most publishers = 1\n     \
        4 | publisher = ['y', 'x']\n       |             ^^^^^^^^^^",
    );
    wrong(
        "[[topic]]\nevent_type = 'b'\nperiod_ms = 1\npublisher = 5",
        "t.toml:4:13: publisher must be the name of a system, or a list of names\n     4 | publisher = 5\n       |             ^",
    );
}

#[test]
fn a_mistake_is_shown_at_its_place() {
    wrong(
        "[[topic]]\nevent_type = \"a\"\nperiod_ms = 0.0000001\n",
        "t.toml:3:13: period_ms must be a whole number of nanoseconds: it has more decimals than that\n     3 | period_ms = 0.0000001\n       |             ^^^^^^^^^",
    );
    wrong(
        "[[topic]]\nevent_type = \"a\"\nperiode_ms = 5\n",
        "t.toml:1:1: period_ms is missing\n     1 | [[topic]]\n       | ^^^^^^^^^\n\
        t.toml:3:1: periode_ms is no key here: did you mean period_ms?\n     3 | periode_ms = 5\n       | ^^^^^^^^^^",
    );
    wrong("[platform]\nlease = 5\n", "t.toml:2:1: lease needs its unit: lease_us, lease_ms or lease_s\n     2 | lease = 5\n       | ^^^^^");
    wrong("[plattform]\n", "t.toml:1:2: plattform is no key here: did you mean platform?\n     1 | [plattform]\n       |  ^^^^^^^^^");
    wrong(
        "[[topic]]\nevent_type = 'a'\nperiod_ms = 0x10\n",
        "t.toml:3:13: period_ms must be a number or inf\n     3 | period_ms = 0x10\n       |             ^^^^",
    );
}

#[test]
fn what_is_no_topic_is_told() {
    wrong("topic = 5", "t.toml:1:9: topic must be a list of tables, each with the head [[topic]]\n     1 | topic = 5\n       |         ^");
    wrong("topic = [5]", "t.toml:1:10: a topic must be a table with the head [[topic]]\n     1 | topic = [5]\n       |          ^");
    wrong("platform = 5", "t.toml:1:12: platform must be a table: [platform]\n     1 | platform = 5\n       |            ^");
    wrong("[[topic]]\nperiod_ms = 5", "t.toml:1:1: event_type is missing\n     1 | [[topic]]\n       | ^^^^^^^^^");
    wrong(
        "[[topic]]\nevent_type = ''\nperiod_ms = 5",
        "t.toml:2:14: event_type is null or blank\n     2 | event_type = ''\n       |              ^^",
    );
    wrong(
        "[[topic]]\nevent_type = 'a'\nperiod_ms = 5\n[[topic]]\nevent_type = 'A'\nperiod_ms = 5\n",
        "t.toml:5:14: event_type is declared already, in line 1: topics alike are one entry with a count\n     5 | event_type = 'A'\n       |              ^^^",
    );
}

#[test]
fn many_mistakes_are_counted() {
    let text = "[[topic]]\nevent_type = 5\nperiod_ms = 5\n".repeat(20);
    let found = parse(&text).expect_err("all are wrong");
    let told = Mistakes { path: PathBuf::from("t.toml"), text, found }.to_string();
    assert!(told.ends_with("\n4 more mistakes in t.toml") && told.lines().count() == 16 * 3 + 1, "{told}");
}

#[test]
fn a_text_that_is_no_toml_is_told_as_well() {
    let found = parse("[[topic]]\nperiod_ms = = 5\n").expect_err("it is none");
    assert!(matches!(&found[..], [Mistake { at: Some(at), .. }] if at.start == 22), "{found:?}");
}

#[test]
fn topics_alike_are_numbered_when_they_are_served() {
    let file =
        parse("[[topic]]\nevent_type = 'a'\nperiod_ms = 5\n[[topic]]\nevent_type = 'b'\nperiod_ms = 7\ncount = 2\n").expect("it is right");
    let named = file.each().expect("the names are short enough");
    let shapes: Vec<_> = named.iter().map(|topic| (topic.event_type.as_str(), topic.spec.period)).collect();
    let period = |millis| Period::Every(Nanos::from_millis(millis));
    assert_eq!(shapes, [("A", period(5)), ("B-1", period(7)), ("B-2", period(7))]);
}
