//! The ZMTP port: who publishes there is heard everywhere, and who subscribes there hears everything that is published.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;

use bodkin_broker::wire::{EventHeader, Flags};
use bodkin_broker::{Epoch, Incarnation, PublisherId, Sequence};
use bodkin_zmtp::{ClientSecurity, ConnectionError, Metadata, SocketType};
use nix::sched::{CloneFlags, unshare};

use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::link::{Heard, Link};
use crate::support::skip;
use crate::support::sse::EventStream;

/// The system of peers that do not say who they are.
const SYSTEM: &str = "plain-peer";

/// A cloud where that system is registered.
pub fn cloud(more: &[&str]) -> Cloud {
    let mut launch = Launch::new().flags(["--zmtp-system", SYSTEM]);
    for flag in more {
        launch = launch.flags([flag]);
    }
    let cloud = launch.start();
    cloud.register_system(SYSTEM, 4000);
    cloud
}

pub fn address(cloud: &Cloud) -> SocketAddr {
    cloud.ready()["listeners"]["zmtp"].as_str().and_then(|text| text.parse().ok()).expect("there is a ZMTP port")
}

/// A peer whose handshake is done.
pub fn peer(cloud: &Cloud, socket_type: SocketType) -> Link {
    named(cloud, socket_type, None)
}

/// With a routing id.
pub fn named(cloud: &Cloud, socket_type: SocketType, identity: Option<&str>) -> Link {
    let metadata = Metadata::of(socket_type);
    let metadata = match identity {
        Some(identity) => metadata.with("Identity", identity.as_bytes()).expect("an identity"),
        None => metadata,
    };
    link(cloud, metadata)
}

/// With these properties.
pub fn link(cloud: &Cloud, metadata: Metadata) -> Link {
    let socket_type = metadata.socket_type();
    let stream = TcpStream::connect(address(cloud)).expect("a connection");
    let mut link = Link::client_with(stream, metadata, ClientSecurity::Null);
    assert_eq!(link.hear(), Ok(Some(Heard::Ready(socket_type.counterpart()))));
    link
}

/// One that has subscribed, and hears what is published from now on.
pub fn subscriber(cloud: &Cloud, prefix: &str) -> Link {
    let mut link = peer(cloud, SocketType::Sub);
    link.subscribe(prefix.as_bytes());
    settle(&mut link);
    link
}

/// Everything that was sent is served: a ping behind it is answered.
pub fn settle(link: &mut Link<impl Read + Write>) {
    link.ping(std::time::Duration::ZERO, b"served");
    assert_eq!(link.hear(), Ok(Some(Heard::Pong(b"served".to_vec()))));
}

/// The next event: event type, payload, header.
pub fn heard(link: &mut Link<impl Read + Write>) -> (String, String, EventHeader) {
    let Ok(Some(Heard::Message(frames))) = link.hear() else { panic!("an event was expected") };
    let [event_type, payload, header] = frames.try_into().expect("three frames");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(event_type), text(payload), EventHeader::decode(&header).expect("a header"))
}

pub fn texts(link: &mut Link<impl Read + Write>) -> (String, String) {
    let (event_type, payload, _) = heard(link);
    (event_type, payload)
}

fn pair(event_type: &str, payload: &str) -> (String, String) {
    (event_type.to_owned(), payload.to_owned())
}

/// Status and reason.
pub fn asked(link: &mut Link<impl Read + Write>, frames: &[&[u8]]) -> (String, String) {
    link.say(&[&[b"".as_slice()], frames].concat());
    let Ok(Some(Heard::Message(frames))) = link.hear() else { panic!("a reply was expected") };
    let [empty, status, reason] = frames.try_into().expect("three frames");
    assert!(empty.is_empty());
    (String::from_utf8(status).expect("text"), String::from_utf8(reason).expect("text"))
}

#[track_caller]
pub fn told(link: &mut Link) -> String {
    match link.hear() {
        Err(ConnectionError::Told { reason }) => reason,
        other => panic!("an ERROR was expected, came {other:?}"),
    }
}

#[test]
fn what_pub_push_and_req_publish_is_heard_by_zmtp_and_by_sse() {
    let cloud = cloud(&[]);
    let mut sub = subscriber(&cloud, "");
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/events?event_type=hot", &[]);
    for (number, socket_type) in [SocketType::Pub, SocketType::Push].into_iter().enumerate() {
        let mut publisher = peer(&cloud, socket_type);
        let payload = format!("a \"{number}\"\n");
        if socket_type == SocketType::Pub {
            assert_eq!(publisher.hear(), Ok(Some(Heard::Subscribe(Vec::new()))), "a PUB sends what is asked for only");
        }
        publisher.say(&[b"Hot", payload.as_bytes()]);
        let (event_type, came, header) = heard(&mut sub);
        assert_eq!((event_type, came), pair("Hot", &payload));
        assert_eq!((header.sequence, header.epoch), (Sequence(number as u64 + 1), Epoch::NONE));
    }
    let mut req = peer(&cloud, SocketType::Req);
    assert_eq!(asked(&mut req, &[b"Hot", b"3"]), pair("200", ""));
    assert_eq!(texts(&mut sub), pair("Hot", "3"));
    let events = stream.wait_for(3);
    assert!(events[0].data.contains(r#""payload":"a \"0\"\u000a""#), "{events:?}");
    assert!(events[2].id.ends_with("-3"), "one numbering for all transports: {events:?}");
}

#[test]
fn what_is_published_by_http_is_heard_by_zmtp_with_one_numbering() {
    let cloud = cloud(&[]);
    let mut sub = subscriber(&cloud, "te");
    let mut xsub = peer(&cloud, SocketType::Xsub);
    xsub.say(&[b"\x01TEMPER"]);
    settle(&mut xsub);
    cloud.publish(&event("Temperature", system(SYSTEM, 4000), "21.5"));
    cloud.publish(&event("pressure", system(SYSTEM, 4000), "1"));
    cloud.publish(&event("temperature", system(SYSTEM, 4000), "22"));
    // Each in its own spelling, as far as it goes: libzmq drops what does not begin so.
    assert_eq!([texts(&mut sub), texts(&mut sub)], [pair("temperature", "21.5"), pair("temperature", "22")]);
    let (event_type, _, first) = heard(&mut xsub);
    let (_, _, second) = heard(&mut xsub);
    assert_eq!(event_type, "TEMPERature");
    assert_eq!((first.sequence, second.sequence, first.incarnation), (Sequence(1), Sequence(2), second.incarnation));
}

#[test]
fn prefixes_are_counted_and_taken_back_one_by_one() {
    let cloud = cloud(&[]);
    let mut req = peer(&cloud, SocketType::Req);
    let mut sub = peer(&cloud, SocketType::Sub);
    // The event types that are heard of those published, `.` behind them all.
    let mut check = |sub: &mut Link, expected: &[&str]| {
        sub.subscribe(b".");
        settle(sub);
        for event_type in ["AB", "AC", "."] {
            assert_eq!(asked(&mut req, &[event_type.as_bytes(), b"x"]).0, "200");
        }
        let heard: Vec<_> = expected.iter().map(|_| texts(sub).0).collect();
        assert_eq!(heard, expected);
        sub.cancel(b".");
        settle(sub);
    };
    check(&mut sub, &["."]);
    sub.subscribe(b"a");
    check(&mut sub, &["aB", "aC", "."]);
    sub.subscribe(b"a");
    sub.subscribe(b"AB");
    sub.cancel(b"a");
    sub.cancel(b"never asked for");
    check(&mut sub, &["aB", "aC", "."]);
    sub.cancel(b"a");
    check(&mut sub, &["AB", "."]);
    sub.cancel(b"AB");
    check(&mut sub, &["."]);
}

/// A topic will be its exact octets; until then `docs/formats/zmtp.md` states this difference.
#[test]
fn sub_prefix_folds_ascii_case_and_a_stream_unicode_case() {
    let cloud = cloud(&[]);
    let mut req = peer(&cloud, SocketType::Req);
    let [mut same, mut other] = [(); 2].map(|()| peer(&cloud, SocketType::Sub));
    same.subscribe("TEMPÉR".as_bytes());
    other.subscribe("tempér".as_bytes());
    other.subscribe(b"temp.");
    settle(&mut same);
    settle(&mut other);
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/events?event_type=temp%C3%A9rature", &[]);
    for event_type in ["TEMPÉRATURE", "TEMP."] {
        assert_eq!(asked(&mut req, &[event_type.as_bytes(), b"x"]).0, "200");
    }
    assert_eq!(texts(&mut same).0, "TEMPÉRATURE");
    assert_eq!(texts(&mut other).0, "temp.", "the prefix in lower case does not match É");
    assert_eq!(stream.wait_for(1).len(), 1, "the stream matches");
}

#[test]
fn a_req_publishes_as_the_system_that_its_routing_id_names_and_is_told_why_not() {
    let cloud = cloud(&[]);
    cloud.register_system("sensor", 4001);
    let mut sub = subscriber(&cloud, "hot");
    let sensor = |identity| named(&cloud, SocketType::Req, identity);
    assert_eq!(asked(&mut sensor(Some("Sensor")), &[b"hot", b"1"]).0, "200");
    assert_eq!(asked(&mut sensor(None), &[b"hot", b"2"]).0, "200");
    let (first, second) = (heard(&mut sub).2, heard(&mut sub).2);
    assert_ne!(first.publisher, second.publisher, "two systems");

    let now_ns = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_nanos() as u64;
    let header = |sequence, created_utc_ns| {
        let mut bytes = Vec::new();
        let (publisher, incarnation) = (PublisherId(0), Incarnation(1));
        EventHeader { flags: Flags::default(), publisher, incarnation, sequence: Sequence(sequence), created_utc_ns, epoch: Epoch::NONE }
            .encode(&mut bytes);
        bytes
    };
    let mut req = sensor(Some("sensor"));
    assert_eq!(asked(&mut req, &[b"hot", b"3", &header(7, now_ns - 1_000_000_000)]).0, "200");
    assert_eq!(heard(&mut sub).2.created_utc_ns, now_ns - 1_000_000_000);
    for (frames, named) in [
        (&[&b"hot"[..]][..], "two frames"),
        (&[b"", b"x"], "Event type is null or blank"),
        (&[b"hot", b" "], "Payload is null or blank"),
        (&[b"hot", b"\xff"], "Payload is no UTF-8"),
        (&[b"\xff", b"x"], "Event type is no UTF-8"),
        (&[b"hot", b"x", b"header"], "Header: "),
        (&[b"hot", b"x", &header(0, now_ns)], "sequence"),
        (&[b"hot", b"x", &header(8, now_ns + 3_600_000_000_000)], "seconds away from now"),
    ] {
        let (status, reason) = asked(&mut req, frames);
        assert_eq!(status, "400", "{reason}");
        assert!(reason.contains(named), "{reason}");
    }
    assert!(asked(&mut sensor(Some("nobody")), &[b"hot", b"x"]).1.contains("nobody is not registered"));
    cloud.register_system("sensor", 4002);
    assert!(asked(&mut req, &[b"hot", b"x"]).1.contains("Several systems are named sensor"));
}

#[test]
fn a_durable_event_is_answered_when_it_is_synced() {
    let cloud = cloud(&["--durable-event-types", "kept"]);
    let mut sub = subscriber(&cloud, "");
    let mut req = peer(&cloud, SocketType::Req);
    for number in 0..20 {
        let payload = number.to_string();
        assert_eq!(asked(&mut req, &[b"kept", payload.as_bytes()]), pair("200", ""));
        assert_eq!(texts(&mut sub), pair("kept", &payload));
    }
    let mut early = peer(&cloud, SocketType::Req);
    early.say_bytes(&b"\x01\x00\x01\x04kept\x00\x01x".repeat(2));
    assert!(told(&mut early).contains("waits for its reply"));
}

#[test]
fn a_req_is_answered_when_its_real_time_event_has_gone_out() {
    let data = tempfile::tempdir().expect("a directory");
    let file = data.path().join("bodkin.toml");
    fs::write(&file, "[[topic]]\nevent_type = \"hot\"\nperiod_us = 1\ndeadline_ms = 60_000\n").expect("written");
    let cloud = cloud(&["--config", file.to_str().expect("text")]);
    let (mut sub, mut req, mut push) = (subscriber(&cloud, "h"), peer(&cloud, SocketType::Req), peer(&cloud, SocketType::Push));
    for number in 0..50 {
        let payload = number.to_string();
        if number % 2 == 0 {
            assert_eq!(asked(&mut req, &[b"hot", payload.as_bytes()]), pair("200", ""));
        } else {
            push.say(&[b"hot", payload.as_bytes()]);
        }
        let (event_type, came, header) = heard(&mut sub);
        assert_eq!((event_type, came, header.sequence), ("hot".to_owned(), payload, Sequence(number + 1)));
    }
    let topics = cloud.get("/api/v1/topics").expect_status(200).json();
    let rows = topics["data"].as_array().expect("a list");
    let hot = rows.iter().find(|row| row["eventType"] == "HOT").expect("the topic");
    assert_eq!([&hot["accepted"], &hot["dispatched"], &hot["late"]], [50, 50, 0], "{hot}");
}

#[test]
fn who_does_not_say_who_it_is_publishes_only_where_that_is_configured() {
    let cloud = Launch::new().start();
    for socket_type in [SocketType::Pub, SocketType::Push, SocketType::Req] {
        let reason = told(&mut peer(&cloud, socket_type));
        assert!(reason.contains("zmtp_system"), "{reason}");
    }
    // Whoever listens says no name in insecure mode, as with event streams.
    settle(&mut peer(&cloud, SocketType::Sub));
}

#[test]
fn the_port_can_be_switched_off() {
    let cloud = Launch::new().flags(["--zmtp", "false"]).start();
    assert_eq!(cloud.ready()["listeners"].get("zmtp"), None);
    let refusal = Launch::new().flags(["--zmtp-system", "no name"]).try_start().err().expect("a usage error");
    assert_eq!(refusal.code, Some(2), "{refusal:?}");
}

#[test]
fn subscribers_are_counted_with_the_streams() {
    let cloud = cloud(&["--subscriptions-max", "2"]);
    let mut req = peer(&cloud, SocketType::Req);
    let mut sub = subscriber(&cloud, "");
    for event_type in ["a", "b"] {
        assert_eq!(asked(&mut req, &[event_type.as_bytes(), b"x"]).0, "200");
        assert_eq!(texts(&mut sub).0, event_type);
    }
    let topics = cloud.get("/api/v1/event-types").expect_status(200).json();
    assert_eq!([&topics["data"][0]["streams"], &topics["data"][1]["subscriptions"]], [1, 0], "{topics}");
    assert_eq!(asked(&mut req, &[b"c", b"x"]).0, "200");
    assert!(told(&mut sub).contains("which is the limit"));
}

/// Runs `act` where nobody else sends anything; says so where that is not allowed.
fn with_own_network(test: &str, act: impl FnOnce() + Send) {
    thread::scope(|scope| {
        let own = scope.spawn(|| {
            if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
                return skip::note(test, &format!("an own network needs a right this user lacks: {error}"));
            }
            if !Command::new("ip").args(["link", "set", "lo", "up"]).status().is_ok_and(|status| status.success()) {
                return skip::note(test, "`ip` cannot switch an own network on");
            }
            act();
        });
        own.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// TCP segments that this thread's network has sent.
fn segments_sent() -> u64 {
    let counters = fs::read_to_string("/proc/thread-self/net/snmp").expect("the system counts");
    let mut tcp = counters.lines().filter_map(|line| line.strip_prefix("Tcp: ")).map(|line| line.split(' '));
    let (mut names, mut values) = (tcp.next().expect("names"), tcp.next().expect("values"));
    let place = names.position(|name| name == "OutSegs").expect("it counts segments");
    values.nth(place).and_then(|value| value.parse().ok()).expect("a number")
}

/// Each write is a segment at least, for what is written is not held back to be sent with more.
#[test]
fn what_a_turn_has_for_a_subscriber_is_one_write() {
    const EVENTS: usize = 500;
    with_own_network("what_a_turn_has_for_a_subscriber_is_one_write", || {
        let cloud = cloud(&[]);
        let (mut sub, mut publisher) = (subscriber(&cloud, ""), peer(&cloud, SocketType::Push));
        let before = segments_sent();
        publisher.say_together((0..EVENTS).map(|number| [b"BURST".to_vec(), number.to_string().into_bytes()]));
        for number in 0..EVENTS {
            assert_eq!(texts(&mut sub), pair("BURST", &number.to_string()));
        }
        let sent = segments_sent() - before;
        assert!(sent < EVENTS as u64 / 10, "{sent} segments for a burst of {EVENTS} events that came together");
    });
}
