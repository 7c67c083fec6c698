//! DEALER on the ZMTP port, frame by frame: what clients say, and what they are told.

use std::io::{Read, Write};
use std::time::{Duration, SystemTime};

use bodkin_broker::wire::{ClientFrame, EventHeader, Flags, Guarantee, RefusalReason, Watermarks};
use bodkin_broker::{Epoch, Incarnation, PublisherId, Sequence};
use bodkin_zmtp::SocketType;
use serde_json::json;

use crate::commands::ended;
use crate::real_time_client::topic;
use crate::support::cloud::{Cloud, Launch};
use crate::support::link::{Heard, Link};
use crate::support::patience::eventually;
use crate::zmtp::{self, heard, named, settle, subscriber, texts};

const RUN: Incarnation = Incarnation(7);

/// A cloud with the real-time topic `HOT`, the system `sensor`, and one for those who do not say who they are.
pub fn cloud(data: &std::path::Path, more: &[&str]) -> Cloud {
    let file = data.join("bodkin.toml");
    std::fs::write(&file, topic("hot", "")).expect("written");
    let launch = Launch::new().data(data).flags(["--config", file.to_str().expect("text")]).flags(["--zmtp-system", "plain-peer"]);
    let cloud = more.iter().fold(launch, |launch, flag| launch.flags([flag])).start();
    cloud.register_system("sensor", 1);
    cloud.register_system("plain-peer", 2);
    cloud
}

pub fn dealer(cloud: &Cloud, name: &str) -> Link {
    let mut link = named(cloud, SocketType::Dealer, Some(name));
    say(&mut link, &ClientFrame::Hello { epoch: Epoch::NONE, incarnation: RUN, name });
    hear(&mut link, |command| assert_eq!(*command, ClientFrame::Leader { epoch: Epoch::NONE, is_leader: true }));
    link
}

pub fn say(link: &mut Link<impl Read + Write>, command: &ClientFrame<'_>) {
    let mut bytes = Vec::new();
    command.encode(&mut bytes);
    link.say(&[&bytes]);
}

/// The next message, which is a command.
#[track_caller]
pub fn hear<T>(link: &mut Link<impl Read + Write>, look: impl FnOnce(&ClientFrame<'_>) -> T) -> T {
    let Ok(Some(Heard::Message(frames))) = link.hear() else { panic!("a command was expected") };
    let [frame] = &frames[..] else { panic!("a command has one frame: {frames:?}") };
    look(&ClientFrame::decode(frame).expect("a command"))
}

pub fn utc_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is later");
    u64::try_from(since_1970.as_nanos()).expect("it is before 2554")
}

pub fn header(sequence: u64) -> EventHeader {
    EventHeader {
        flags: Flags::default(),
        publisher: PublisherId(0),
        incarnation: RUN,
        sequence: Sequence(sequence),
        created_utc_ns: utc_ns(),
        epoch: Epoch::NONE,
    }
}

pub fn publish(link: &mut Link, topic: &str, payload: &[u8], header: &EventHeader) {
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    link.say(&[topic.as_bytes(), payload, &bytes]);
}

pub fn subscribe(link: &mut Link, topic: &str, wait: Option<Duration>) {
    let wait_ns = wait.map_or(0, |wait| wait.as_nanos() as u64);
    let watermarks = Watermarks::Own(&[]);
    let (epoch, loss_tolerance, deadline_ns) = (Epoch::NONE, None, None);
    say(link, &ClientFrame::Subscribe { epoch, loss_tolerance, deadline_ns, required: wait.is_some(), wait_ns, topic, watermarks });
}

#[track_caller]
fn subscribed(link: &mut Link, topic: &str, wait: Option<Duration>) {
    subscribe(link, topic, wait);
    hear(link, |command| assert_eq!(*command, ClientFrame::Subscribed { epoch: Epoch::NONE, topic }));
}

/// The reason and the words of a refusal that is next.
#[track_caller]
pub fn refused(link: &mut Link) -> (RefusalReason, String) {
    hear(link, |command| match command {
        ClientFrame::Refused { reason, text, .. } | ClientFrame::SubscribeRefused { reason, text, .. } => (*reason, (*text).to_owned()),
        other => panic!("a refusal was expected: {other:?}"),
    })
}

#[track_caller]
fn covered(link: &mut Link) -> (Sequence, String) {
    hear(link, |command| match command {
        ClientFrame::Covered { incarnation: RUN, through, topic, .. } => (*through, (*topic).to_owned()),
        other => panic!("a cover was expected: {other:?}"),
    })
}

#[test]
fn an_event_keeps_its_identity_and_its_topic_the_spelling_of_each_subscriber() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &[]);
    let (mut sensor, mut first, mut second, mut sub) =
        (dealer(&cloud, "sensor"), dealer(&cloud, "a"), dealer(&cloud, "b"), subscriber(&cloud, "ho"));
    subscribed(&mut first, "hot", None);
    subscribed(&mut second, "HOT", None);
    let sent = header(41);
    publish(&mut sensor, "Hot", b"21.5", &sent);
    for (link, spelled) in [(&mut first, "hot"), (&mut second, "HOT"), (&mut sub, "hot")] {
        let (event_type, payload, came) = heard(link);
        assert_eq!((event_type.to_lowercase().as_str(), payload.as_str()), ("hot", "21.5"));
        assert!(event_type.starts_with(&spelled[..2]), "{event_type}");
        let named = EventHeader { publisher: came.publisher, ..sent };
        assert_eq!(came, named, "the broker fills in who publishes, and nothing else");
        assert!(came.publisher.0 > 0);
    }
    assert_eq!(covered(&mut sensor), (Sequence(41), "HOT".to_owned()), "topics are told as they are stored");
}

#[test]
fn two_frames_are_published_without_an_answer() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &[]);
    let (mut plain, mut sub) = (zmtp::peer(&cloud, SocketType::Dealer), subscriber(&cloud, ""));
    for topic in ["hot", "any"] {
        plain.say(&[topic.as_bytes(), b"1"]);
        assert_eq!(texts(&mut sub), (topic.to_owned(), "1".to_owned()));
    }
    // A command behind them is the first to be answered, and needs no hello.
    say(&mut plain, &ClientFrame::ClockRequest { epoch: Epoch::NONE, sent_utc_ns: 5 });
    let (sent, received, replied) = hear(&mut plain, |command| match *command {
        ClientFrame::ClockReply { sent_utc_ns, received_utc_ns, replied_utc_ns, .. } => (sent_utc_ns, received_utc_ns, replied_utc_ns),
        ref other => panic!("a clock was expected: {other:?}"),
    });
    assert_eq!(sent, 5);
    assert!(received <= replied && utc_ns().abs_diff(replied) < 10_000_000_000);
}

#[test]
fn a_known_event_is_covered_again_and_a_last_one_names_it() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &[]);
    let mut sub = subscriber(&cloud, "");
    for topic in ["hot", "any"] {
        let mut sensor = dealer(&cloud, "sensor");
        for sequence in [1, 2, 2, 1] {
            publish(&mut sensor, topic, b"x", &header(sequence));
            assert!(covered(&mut sensor).0.0 >= sequence);
        }
        // The next session of the same run resumes.
        let mut sensor = dealer(&cloud, "sensor");
        let (epoch, incarnation) = (Epoch::NONE, RUN);
        say(&mut sensor, &ClientFrame::Resume { epoch, incarnation, from: Sequence(2), to: Sequence(3), topic });
        let resent = EventHeader { flags: Flags { resend: true, ..Flags::default() }, ..header(2) };
        publish(&mut sensor, topic, b"x", &resent);
        assert_eq!(covered(&mut sensor).0, Sequence(2));
        publish(&mut sensor, topic, b"x", &EventHeader { sequence: Sequence(3), ..resent });
        assert_eq!(covered(&mut sensor).0, Sequence(3));
        say(&mut sensor, &ClientFrame::Last { epoch, publisher: PublisherId(0), incarnation, sequence: Sequence(3), topic });
        assert_eq!(covered(&mut sensor).0, Sequence(3));
        (0..3).for_each(|_| drop(heard(&mut sub)));
    }
    settle(&mut sub);
}

#[test]
fn a_subscription_is_taken_back() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &[]);
    let (mut sensor, mut display) = (dealer(&cloud, "sensor"), dealer(&cloud, "display"));
    subscribed(&mut display, "hot", Some(Duration::from_secs(60)));
    publish(&mut sensor, "hot", b"1", &header(1));
    assert_eq!(texts(&mut display), ("hot".to_owned(), "1".to_owned()));
    say(&mut display, &ClientFrame::Unsubscribe { epoch: Epoch::NONE, topic: "hot" });
    assert_eq!(covered(&mut sensor).0, Sequence(1), "it waits for nobody any more");
    publish(&mut sensor, "hot", b"2", &header(2));
    assert_eq!(covered(&mut sensor).0, Sequence(2));
    settle(&mut display);
}

#[test]
fn a_later_session_of_the_same_name_takes_a_required_subscription_over() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &[]);
    let (mut sensor, mut earlier) = (dealer(&cloud, "sensor"), dealer(&cloud, "display"));
    subscribed(&mut earlier, "hot", Some(Duration::from_secs(60)));
    publish(&mut sensor, "hot", b"1", &header(1));
    assert_eq!(texts(&mut earlier).1, "1");
    let mut later = dealer(&cloud, "display");
    subscribed(&mut later, "hot", Some(Duration::from_secs(60)));
    assert_eq!(refused(&mut earlier).0, RefusalReason::OldIncarnation);
    let (_, payload, came) = heard(&mut later);
    assert_eq!(payload, "1", "it has not acknowledged it");
    let EventHeader { publisher, incarnation, sequence: through, .. } = came;
    say(&mut later, &ClientFrame::Delivered { epoch: Epoch::NONE, publisher, incarnation, through, topic: "hot" });
    assert_eq!(covered(&mut sensor).0, Sequence(1));
    // An earlier run than this one is refused.
    let mut old = named(&cloud, SocketType::Dealer, Some("display"));
    say(&mut old, &ClientFrame::Hello { epoch: Epoch::NONE, incarnation: Incarnation(6), name: "display" });
    hear(&mut old, |command| assert!(matches!(command, ClientFrame::Leader { .. })));
    subscribe(&mut old, "hot", Some(Duration::from_secs(60)));
    assert_eq!(refused(&mut old).0, RefusalReason::OldIncarnation);
}

#[test]
fn events_that_take_longer_from_their_publisher_than_is_stated_suspend_the_guarantee() {
    let data = tempfile::tempdir().expect("a directory");
    let file = data.path().join("bodkin.toml");
    let topic = "event_type = \"hot\"\nperiod_ms = 10\njitter_s = 5\ndeadline_s = 60\npublisher_broker_s = 1\n";
    std::fs::write(&file, format!("[platform]\nclock_error_s = 1\n[[topic]]\n{topic}")).expect("written");
    let cloud = Launch::new().data(data.path()).flags(["--config", file.to_str().expect("text")]).start();
    cloud.register_system("sensor", 1);
    let platform = || cloud.get("/api/v1/platform").expect_status(200).json();
    let mut sensor = dealer(&cloud, "sensor");
    let aged = |sequence, age_s: u64| {
        let made = header(sequence);
        EventHeader { created_utc_ns: made.created_utc_ns - age_s * 1_000_000_000, ..made }
    };
    // What comes again is older than its way, and a second more may be the clocks'.
    let again = EventHeader { flags: Flags { resend: true, ..Flags::default() }, ..aged(1, 60) };
    let mut sub = subscriber(&cloud, "hot");
    for event in [again, aged(2, 1), aged(3, 0)] {
        publish(&mut sensor, "hot", b"1", &event);
        heard(&mut sub);
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(platform()["publisherExcessUs"], 0, "{}", platform());
    publish(&mut sensor, "hot", b"1", &aged(4, 5));
    assert!(eventually(|| platform()["guarantee"] == "suspended"), "{}", platform());
    let excess_us = platform()["publisherExcessUs"].as_u64().expect("a number");
    assert!((3_000_000..20_000_000).contains(&excess_us), "5 s, of which 2 are allowed: {excess_us}");
    assert!(eventually(|| cloud.stderr().contains("take longer from their publishers")), "{}", cloud.stderr());
    // Nobody has stated a longest stall: it was the publisher, and whoever asks is told so.
    let (told, why) = (platform(), "events take longer from their publishers");
    assert_eq!((&told["causes"], &told["blockingUs"]), (&json!(["publishers"]), &json!(0)), "{told}");
    assert!(told["why"].as_str().is_some_and(|words| words.starts_with(why)), "{told}");
    let shown = ended(&cloud, "status", 1);
    assert!(shown.contains("suspended by publishers") && shown.contains(&format!("not guaranteed: {why}")), "{shown}");
}

#[test]
fn future_incarnation_is_refused_and_ends_no_run() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &[]);
    let (epoch, created_utc_ns) = (Epoch::NONE, utc_ns());
    for topic in ["hot", "any"] {
        let (mut sensor, mut display) = (dealer(&cloud, "sensor"), subscriber(&cloud, topic));
        for incarnation in [u64::MAX, created_utc_ns + 600_000_000_000].map(Incarnation) {
            say(&mut sensor, &ClientFrame::Resume { epoch, incarnation, from: Sequence(1), to: Sequence(1), topic });
            publish(&mut sensor, topic, b"2099", &EventHeader { incarnation, ..header(1) });
            let (reason, text) = refused(&mut sensor);
            assert_eq!(reason, RefusalReason::Header, "{text}");
            let found = format!("incarnation {} is in the future", incarnation.0);
            assert!(text.contains(&found) && text.contains("expected at most"), "{text}");
        }
        // The clock is right again: the publisher's next run is not an earlier one.
        publish(&mut sensor, topic, b"now", &EventHeader { incarnation: Incarnation(created_utc_ns), ..header(1) });
        hear(&mut sensor, |command| assert!(matches!(command, ClientFrame::Covered { through: Sequence(1), .. }), "{command:?}"));
        assert_eq!(texts(&mut display).1, "now");
    }
}

#[test]
fn subscriber_with_future_incarnation_is_succeeded() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &[]);
    let of_run = |incarnation| {
        let mut link = named(&cloud, SocketType::Dealer, Some("display"));
        say(&mut link, &ClientFrame::Hello { epoch: Epoch::NONE, incarnation: Incarnation(incarnation), name: "display" });
        hear(&mut link, |command| assert!(matches!(command, ClientFrame::Leader { .. })));
        link
    };
    let mut ahead = of_run(u64::MAX);
    subscribed(&mut ahead, "hot", Some(Duration::from_secs(60)));
    // Its next run begins after the longest time that a clock is believed to be ahead.
    let mut next = of_run(utc_ns() + 121_000_000_000);
    subscribed(&mut next, "hot", Some(Duration::from_secs(60)));
    assert_eq!(refused(&mut ahead).0, RefusalReason::OldIncarnation);
}

/// Answers the broker's question for the time, by a clock that is so far ahead.
fn answer(link: &mut Link, ahead_ns: u64) {
    let (epoch, sent_utc_ns) = hear(link, |command| match *command {
        ClientFrame::ClockRequest { epoch, sent_utc_ns } => (epoch, sent_utc_ns),
        ref other => panic!("a question was expected: {other:?}"),
    });
    let now_utc_ns = utc_ns() + ahead_ns;
    say(link, &ClientFrame::ClockReply { epoch, sent_utc_ns, received_utc_ns: now_utc_ns, replied_utc_ns: now_utc_ns });
}

#[test]
fn deadlines_of_a_publisher_whose_clock_is_known_to_be_wrong_count_from_the_longest_way_before_the_arrival() {
    let data = tempfile::tempdir().expect("a directory");
    let file = data.path().join("bodkin.toml");
    // Created when it comes: due 10 s later. Created 20 s before, as it may have been by its way and the clocks: due 10 s ago.
    let topic = "event_type = \"hot\"\nperiod_s = 1\ndeadline_s = 30\npublishers = 3\n";
    std::fs::write(&file, format!("[platform]\nclock_error_s = 20\n[[topic]]\n{topic}")).expect("written");
    let cloud = Launch::new().data(data.path()).flags(["--config", file.to_str().expect("text")]).start();
    for (number, name) in (1..).zip(["right", "wrong", "silent"]) {
        cloud.register_system(name, number);
    }
    let (mut right, mut wrong, mut silent) = (dealer(&cloud, "right"), dealer(&cloud, "wrong"), dealer(&cloud, "silent"));
    answer(&mut right, 0);
    answer(&mut wrong, 60_000_000_000);
    let platform = || cloud.get("/api/v1/platform").expect_status(200).json();
    assert!(eventually(|| platform()["guarantee"] == "suspended"), "{}", platform());
    let mut sub = subscriber(&cloud, "hot");
    let ahead = EventHeader { created_utc_ns: utc_ns() + 60_000_000_000, ..header(1) };
    let rows = [
        (&mut right, header(1), 0, "it is in time"),
        (&mut silent, ahead, 0, "a clock that nobody knows of is believed, as far as it may be"),
        (&mut wrong, ahead, 1, "it may have been created long before it came"),
    ];
    for (link, event, late, why) in rows {
        publish(link, "hot", b"1", &event);
        heard(&mut sub);
        let row = &cloud.get("/api/v1/topics").expect_status(200).json()["data"][0];
        assert_eq!(row["late"], late, "{why}: {row}");
    }
}

#[test]
fn the_number_of_the_last_event_is_told_to_who_counts_if_it_was_dropped() {
    let data = tempfile::tempdir().expect("a directory");
    let file = data.path().join("bodkin.toml");
    // Created, as far as is known, when it came less the longest way: due at once.
    let topic = "event_type = \"hot\"\nperiod_us = 1\npublisher_broker_ms = 1\ndeadline_ms = 1\nshed_max = 1\n";
    std::fs::write(&file, format!("[[topic]]\n{topic}")).expect("written");
    let cloud = Launch::new().data(data.path()).flags(["--config", file.to_str().expect("text")]).start();
    cloud.register_system("sensor", 1);
    let (mut sensor, mut display, mut sub) = (dealer(&cloud, "sensor"), dealer(&cloud, "display"), subscriber(&cloud, "ho"));
    subscribed(&mut display, "hot", None);
    let old = |sequence| EventHeader { created_utc_ns: utc_ns() - 10_000_000_000, ..header(sequence) };
    publish(&mut sensor, "hot", b"1", &old(1));
    let (_, _, first) = heard(&mut display);
    assert_eq!((first.sequence, heard(&mut sub).2), (Sequence(1), first), "the first one behind a start goes out");
    publish(&mut sensor, "hot", b"2", &old(2));
    let (epoch, publisher, incarnation, sequence) = (Epoch::NONE, first.publisher, RUN, Sequence(2));
    hear(&mut display, |command| assert_eq!(*command, ClientFrame::Last { epoch, publisher, incarnation, sequence, topic: "hot" }));
    let (event_type, payload, last) = heard(&mut sub);
    assert_eq!((event_type.as_str(), payload.as_str()), ("hoT", ""), "its own spelling, as far as its prefix goes");
    let flags = Flags { last: true, ..Flags::default() };
    assert_eq!(last, EventHeader { flags, publisher, incarnation, sequence, created_utc_ns: 0, epoch });
    // What goes out shows by its own number what was dropped in front of it.
    publish(&mut sensor, "hot", b"3", &old(3));
    assert_eq!([heard(&mut display).2.sequence, heard(&mut sub).2.sequence], [Sequence(3); 2]);
    settle(&mut display);
    settle(&mut sub);
}

#[test]
fn a_clock_that_is_an_hour_off_suspends_the_guarantee_as_long_as_its_client_is_there() {
    let data = tempfile::tempdir().expect("a directory");
    let file = data.path().join("bodkin.toml");
    std::fs::write(&file, "[platform]\nclock_error_s = 1\n[[topic]]\nevent_type = \"hot\"\nperiod_s = 1\ndeadline_s = 60\n")
        .expect("written");
    let cloud = Launch::new().data(data.path()).flags(["--config", file.to_str().expect("text")]).start();
    cloud.register_system("sensor", 1);
    let guarantee = || cloud.get("/api/v1/platform").expect_status(200).json();
    let mut right = dealer(&cloud, "sensor");
    answer(&mut right, 0);
    assert!(eventually(|| guarantee()["clocks"] == 1), "{}", guarantee());
    assert_eq!(guarantee()["guarantee"], "unstated", "{}", guarantee());
    // Who asks is told at once, and whenever it changes; who does not ask, as `right`, is told nothing.
    let mut watcher = dealer(&cloud, "sensor");
    answer(&mut watcher, 0);
    say(&mut watcher, &ClientFrame::WatchGuarantee { epoch: Epoch::NONE });
    let guaranteed = |link: &mut Link| loop {
        let told = hear(link, |command| match *command {
            ClientFrame::Guaranteed { deadlines, losses, clock_difference_ns, clock_error_ns, .. } => {
                assert_eq!((losses, clock_error_ns), (Guarantee::Unstated, 1_000_000_000), "there is no pair, and a second was stated");
                Some((deadlines, clock_difference_ns / 1_000_000_000))
            }
            // Now and then it is asked again.
            ClientFrame::ClockRequest { .. } => None,
            ref other => panic!("a guarantee was expected: {other:?}"),
        });
        if let Some(told) = told {
            break told;
        }
    };
    assert_eq!(guaranteed(&mut watcher), (Guarantee::Unstated, 0));
    let mut wrong = dealer(&cloud, "sensor");
    answer(&mut wrong, 3_600_000_000_000);
    assert!(eventually(|| guarantee()["guarantee"] == "suspended"), "{}", guarantee());
    let difference_us = guarantee()["clockDifferenceUs"].as_u64().expect("a number");
    assert!((3_500_000_000..=3_600_000_000).contains(&difference_us), "{difference_us}");
    let (deadlines, difference_s) = guaranteed(&mut watcher);
    assert_eq!((deadlines, difference_s.clamp(3_500, 3_600)), (Guarantee::Suspended, difference_s));
    assert!(eventually(|| cloud.stderr().contains("clock differs from ours")), "{}", cloud.stderr());
    // Whose clock is right is served as before, and is not late.
    let mut sub = subscriber(&cloud, "hot");
    publish(&mut right, "hot", b"1", &header(1));
    assert_eq!(texts(&mut sub).1, "1");
    let row = &cloud.get("/api/v1/topics").expect_status(200).json()["data"][0];
    assert_eq!((&row["dispatched"], &row["late"], &row["guarantee"]), (&json!(1), &json!(0), &json!("suspended")), "{row}");
    drop(wrong);
    assert!(eventually(|| guarantee()["guarantee"] == "unstated"), "{}", guarantee());
    assert_eq!(guaranteed(&mut watcher), (Guarantee::Unstated, 0));
}
