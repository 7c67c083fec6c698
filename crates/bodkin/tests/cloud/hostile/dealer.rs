//! DEALERs that mean harm or do not know better.

use std::thread;
use std::time::{Duration, Instant};

use bodkin_broker::wire::{ClientFrame, EventHeader, RefusalReason};
use bodkin_broker::{Epoch, Sequence};
use bodkin_zmtp::SocketType;

use super::{assert_all_live, metric};
use crate::dealer::{cloud, dealer, header, hear, publish, refused, say, subscribe, utc_ns};
use crate::real_time_client::PERIOD;
use crate::support::cloud::System;
use crate::support::conditions::assert_shown;
use crate::support::patience::eventually;
use crate::zmtp::{heard, named, peer, settle, subscriber, told};

#[test]
fn what_cannot_be_read_ends_the_link_with_the_reason() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &[]);
    let unknown = [1, 200, 0, 0, 0, 0, 0, 0, 0, 0];
    let broker_s = {
        let mut bytes = Vec::new();
        ClientFrame::Leader { epoch: Epoch(9), is_leader: true }.encode(&mut bytes);
        bytes
    };
    let frames: [(&[&[u8]], &str); 8] = [
        (&[b""], "a command cannot be read"),
        (&[&unknown], "kind 200"),
        (&[&broker_s], "a command of a broker's"),
        (&[b"hot", b"1", b"no header"], "the header of an event cannot be read"),
        (&[b"hot", b"1", &[0; 42]], "version"),
        (&[b"\xff", b"1", b""], "the header of an event cannot be read"),
        (&[b"a", b"b", b"no header", b"{}"], "the header of an event cannot be read"),
        (&[b"a", b"b", b"c", b"{}", b"e"], "5 came"),
    ];
    for (frames, expected) in frames {
        let mut link = dealer(&cloud, "sensor");
        link.say(frames);
        let reason = told(&mut link);
        assert!(reason.contains(expected), "{frames:?}: {reason}");
    }
    let mut twice = dealer(&cloud, "sensor");
    say(&mut twice, &ClientFrame::Hello { epoch: Epoch::NONE, incarnation: bodkin_broker::Incarnation(8), name: "sensor" });
    assert!(told(&mut twice).contains("hello once"));
    assert_all_live(&cloud);
}

#[test]
fn a_header_that_cannot_be_true_is_refused_and_costs_nobody_else_anything() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &[]);
    let (mut liar, mut sub) = (dealer(&cloud, "sensor"), subscriber(&cloud, "hot"));
    let hour_ns = 3_600_000_000_000;
    let absurd = [
        EventHeader { created_utc_ns: 0, ..header(1) },
        EventHeader { created_utc_ns: u64::MAX, ..header(1) },
        EventHeader { created_utc_ns: utc_ns() + hour_ns, ..header(1) },
        EventHeader { created_utc_ns: utc_ns() - 25 * hour_ns, ..header(1) },
    ];
    for header in absurd {
        publish(&mut liar, "hot", b"1", &header);
        let (reason, text) = refused(&mut liar);
        assert_eq!(reason, RefusalReason::Header, "{text}");
        assert!(text.contains("Are the clocks right?"), "{text}");
    }
    publish(&mut liar, "hot", b"1", &header(1));
    assert_eq!(heard(&mut sub).1, "1");
    hear(&mut liar, |command| assert!(matches!(command, ClientFrame::Covered { .. })));
    publish(&mut liar, "hot", b"2", &header(u64::MAX));
    assert_eq!(refused(&mut liar).0, RefusalReason::Header);
    let epoch = Epoch(1 << 40);
    publish(&mut liar, "hot", b"2", &EventHeader { epoch, ..header(2) });
    assert_eq!(refused(&mut liar).0, RefusalReason::Epoch, "a client raises no epoch");
    // An hour old is late, and no more.
    publish(&mut liar, "hot", b"2", &EventHeader { created_utc_ns: utc_ns() - hour_ns, ..header(2) });
    assert_eq!(heard(&mut sub).1, "2");
}

#[test]
fn refusals_say_why() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &["--event-bytes-max", "2000"]);
    let mut sensor = dealer(&cloud, "sensor");
    for (topic, payload, expected) in [
        ("hot", &b" "[..], RefusalReason::Malformed),
        ("hot", b"\xff", RefusalReason::Malformed),
        (" ", b"1", RefusalReason::Malformed),
        ("hot", &[b'x'; 2001], RefusalReason::TooLarge),
    ] {
        publish(&mut sensor, topic, payload, &header(1));
        assert_eq!(refused(&mut sensor).0, expected, "{topic}");
    }
    for name in ["stranger", "no name of a system"] {
        let mut stranger = dealer(&cloud, name);
        publish(&mut stranger, "hot", b"1", &header(1));
        assert_eq!(refused(&mut stranger).0, RefusalReason::NotAuthorized, "{name}");
    }
    let long = "x".repeat(300);
    for (topic, wait, expected) in [
        ("", None, RefusalReason::UnknownTopic),
        (long.as_str(), None, RefusalReason::UnknownTopic),
        ("best effort", Some(Duration::from_secs(1)), RefusalReason::NotAdmitted),
        ("hot", Some(Duration::from_secs(u64::MAX / 2_000_000_000)), RefusalReason::NotAdmitted),
    ] {
        subscribe(&mut sensor, topic, wait);
        assert_eq!(refused(&mut sensor).0, expected, "{topic}");
    }
    let mut nameless = peer(&cloud, SocketType::Dealer);
    subscribe(&mut nameless, "hot", Some(Duration::from_secs(1)));
    let (reason, text) = refused(&mut nameless);
    assert_eq!(reason, RefusalReason::NotAdmitted);
    assert!(text.contains("says hello first"), "{text}");
    settle(&mut nameless);
}

#[test]
fn subscriptions_are_limited_and_the_one_too_many_is_told() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &["--subscriptions-max", "10"]);
    let mut greedy = dealer(&cloud, "display");
    for number in 0..12 {
        subscribe(&mut greedy, &format!("topic {number}"), None);
    }
    let mut refusals = 0;
    for _ in 0..12 {
        refusals += hear(&mut greedy, |command| match command {
            ClientFrame::Subscribed { .. } => 0,
            ClientFrame::SubscribeRefused { reason: RefusalReason::Limit, .. } => 1,
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(refusals, 2);
    drop(greedy);
    assert!(eventually(|| metric(&cloud, "bodkin_event_subscriptions") == 0.0), "they end with their link");
}

#[test]
fn a_dealer_that_never_reads_loses_its_own_events_only_and_is_told() {
    const EVENTS: u64 = 400;
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &["--subscriber-queue-bytes-max", "100000"]);
    let (mut slow, mut quick, mut sensor) = (dealer(&cloud, "slow"), dealer(&cloud, "quick"), dealer(&cloud, "sensor"));
    for link in [&mut slow, &mut quick] {
        subscribe(link, "any", None);
        hear(link, |command| assert!(matches!(command, ClientFrame::Subscribed { .. })));
    }
    let payload = "x".repeat(60_000);
    for sequence in 1..=EVENTS {
        publish(&mut sensor, "any", payload.as_bytes(), &header(sequence));
        assert_eq!(heard(&mut quick).1.len(), payload.len());
        hear(&mut sensor, |command| assert!(matches!(command, ClientFrame::Covered { .. })));
    }
    assert!(eventually(|| metric(&cloud, "bodkin_events_lost_total") > 0.0));
    assert_shown(cloud.address(System::Monitor), "BodkinEventsLost");
    let lost = metric(&cloud, "bodkin_events_lost_total") as u64;
    for _ in 0..EVENTS - lost {
        assert_eq!(heard(&mut slow).1.len(), payload.len());
    }
    let told = hear(&mut slow, |command| match *command {
        ClientFrame::Lost { events, topic: "any", .. } => events,
        ref other => panic!("{other:?}"),
    });
    assert_eq!(told, lost);
    publish(&mut sensor, "any", b"after", &header(EVENTS + 1));
    let (_, payload, header) = heard(&mut slow);
    assert_eq!((payload.as_str(), header.sequence), ("after", Sequence(EVENTS + 1)));
}

#[test]
fn a_required_subscriber_that_never_reads_holds_its_topic_up_as_far_as_it_is_bounded() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &["--subscriber-queue-bytes-max", "20000"]);
    let (mut slow, mut sensor, mut other) = (dealer(&cloud, "slow"), dealer(&cloud, "sensor"), dealer(&cloud, "plain-peer"));
    subscribe(&mut slow, "hot", Some(Duration::from_secs(60)));
    hear(&mut slow, |command| assert!(matches!(command, ClientFrame::Subscribed { .. })));
    let payload = "x".repeat(6_000);
    let (mut taken, begun) = (0, Instant::now());
    let (reason, text) = loop {
        // No faster than the topic allows: excess is another answer.
        thread::sleep((PERIOD * taken as u32).saturating_sub(begun.elapsed()));
        publish(&mut sensor, "hot", payload.as_bytes(), &header(taken + 1));
        // What is taken is answered by nobody yet: a clock behind it is.
        say(&mut sensor, &ClientFrame::ClockRequest { epoch: Epoch::NONE, sent_utc_ns: 0 });
        let refusal = hear(&mut sensor, |command| match command {
            ClientFrame::Refused { reason, text, .. } => Some((*reason, (*text).to_owned())),
            ClientFrame::ClockReply { .. } => None,
            other => panic!("{other:?}"),
        });
        match refusal {
            Some(refusal) => break refusal,
            None => taken += 1,
        }
        assert!(taken < 10_000, "the backlog is bounded");
    };
    assert_eq!(reason, RefusalReason::Full, "{text}");
    publish(&mut other, "any", b"1", &header(1));
    hear(&mut other, |command| assert!(matches!(command, ClientFrame::Covered { .. })));
    // What it was not handed for want of room is brought when it reads, and nothing is lost.
    for sequence in 1..=taken {
        let (_, came, header) = heard(&mut slow);
        assert_eq!((came.len(), header.sequence), (payload.len(), Sequence(sequence)));
        let EventHeader { publisher, incarnation, sequence: through, .. } = header;
        say(&mut slow, &ClientFrame::Delivered { epoch: Epoch::NONE, publisher, incarnation, through, topic: "hot" });
    }
    assert_eq!(metric(&cloud, "bodkin_events_lost_total"), 0.0);
}

#[test]
fn acknowledgements_of_what_was_never_sent_cover_nothing() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = cloud(data.path(), &[]);
    let (mut sensor, mut display) = (dealer(&cloud, "sensor"), dealer(&cloud, "display"));
    subscribe(&mut display, "hot", Some(Duration::from_secs(60)));
    hear(&mut display, |command| assert!(matches!(command, ClientFrame::Subscribed { .. })));
    publish(&mut sensor, "hot", b"1", &header(1));
    let came = heard(&mut display).2;
    let mut stranger = named(&cloud, SocketType::Dealer, Some("stranger"));
    for link in [&mut display, &mut stranger] {
        for (incarnation, topic) in [(came.incarnation.0 + 1, "hot"), (came.incarnation.0, "cold")] {
            let incarnation = bodkin_broker::Incarnation(incarnation);
            let through = Sequence(u64::MAX);
            say(link, &ClientFrame::Delivered { epoch: Epoch::NONE, publisher: came.publisher, incarnation, through, topic });
        }
        settle(link);
    }
    say(&mut sensor, &ClientFrame::ClockRequest { epoch: Epoch::NONE, sent_utc_ns: 1 });
    hear(&mut sensor, |command| assert!(matches!(command, ClientFrame::ClockReply { .. }), "{command:?}"));
    let EventHeader { publisher, incarnation, .. } = came;
    say(&mut display, &ClientFrame::Delivered { epoch: Epoch::NONE, publisher, incarnation, through: Sequence(u64::MAX), topic: "hot" });
    let covered = hear(&mut sensor, |command| match command {
        ClientFrame::Covered { through, .. } => *through,
        other => panic!("{other:?}"),
    });
    assert_eq!(covered, Sequence(1));
}
