//! What those who break the rules of the ZMTP port cost those who keep them: nothing is late, nothing is lost, and it takes hardly longer.

use std::io::Read;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bodkin_broker::wire::{ClientFrame, EventHeader, RefusalReason};
use bodkin_broker::{Epoch, Sequence};
use bodkin_zmtp::{ClientSecurity, ConnectionError, PlainCredentials, SocketType};
use serde_json::{Value, json};

use super::crowd::{SLOWDOWN_MAX, crowd_size, median, one_crowd};
use super::zmtp::answered;
use crate::dealer::{dealer, header, hear, publish, refused, subscribe, utc_ns};
use crate::support::cloud::{Cloud, Launch};
use crate::support::link::{Heard, Link};
use crate::support::patience::eventually;
use crate::zmtp::{address, heard, peer, subscriber, told};

/// What a loaded machine may add to a median: two processes of several threads share its cores with the mischief.
const NOISE: Duration = Duration::from_millis(20);
/// Links that say nothing, where the system lets a process have so many.
const LINKS_MAX: usize = 10_000;
/// Events that a publisher sends in one go where one a second is allowed.
const HASTE: u64 = 100;

/// A cloud with the topic `HOT`, on which nothing may be late or lost, and `WARM`, on which an event a second is allowed.
fn start<const N: usize>(data: &std::path::Path, flags: [&str; N]) -> Cloud {
    let file = data.join("bodkin.toml");
    let hot = "event_type = \"hot\"\nperiod_us = 100\njitter_ms = 100\nretention = 2000";
    let warm = "event_type = \"warm\"\nperiod_s = 1\nretention = 10";
    let topics = [hot, warm].map(|topic| format!("[[topic]]\n{topic}\ndeadline_s = 2\nloss_tolerance = 0\n"));
    std::fs::write(&file, topics.concat()).expect("written");
    let launch = Launch::new().data(data).flags(["--config", file.to_str().expect("text"), "--zmtp-system", "plain-peer"]);
    let cloud = launch.flags(flags).start();
    cloud.register_system("sensor", 1);
    cloud.register_system("plain-peer", 2);
    cloud
}

/// What `/api/v1/topics` says of a topic.
fn counted(cloud: &Cloud, event_type: &str) -> Value {
    let topics = cloud.get("/api/v1/topics").expect_status(200).json();
    topics["data"].as_array().expect("a list").iter().find(|row| row["eventType"] == event_type).expect("it is declared").clone()
}

/// A publisher and a subscriber that keep the rules.
struct Pair {
    sensor: Link,
    display: Link,
    published: u64,
}

impl Pair {
    fn new(cloud: &Cloud) -> Self {
        let (sensor, mut display) = (dealer(cloud, "sensor"), dealer(cloud, "display"));
        subscribe(&mut display, "hot", None);
        hear(&mut display, |command| assert!(matches!(command, ClientFrame::Subscribed { .. })));
        Self { sensor, display, published: 0 }
    }

    /// An event, until it is heard and covered.
    fn round(&mut self) {
        self.published += 1;
        publish(&mut self.sensor, "hot", b"21.5", &header(self.published));
        assert_eq!(heard(&mut self.display).2.sequence, Sequence(self.published), "nothing is lost");
        hear(&mut self.sensor, |command| {
            assert!(matches!(command, ClientFrame::Covered { through, .. } if through.0 == self.published), "{command:?}")
        });
    }

    /// The median time of a round while somebody does mischief, again and again.
    fn beside(&mut self, mut mischief: impl FnMut() + Send) -> Duration {
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Relaxed) {
                    mischief();
                }
            });
            let _ends = Ends(&ends);
            median(|| self.round())
        })
    }
}

/// Ends the mischief, however its scope is left.
struct Ends<'f>(&'f AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Reads what came until everything that was sent is served.
fn drain(link: &mut Link) {
    link.ping(Duration::ZERO, b"served");
    loop {
        match link.hear() {
            Ok(Some(Heard::Pong(_))) => return,
            Ok(Some(_)) => {}
            other => panic!("a pong was expected: {other:?}"),
        }
    }
}

#[test]
fn who_breaks_the_rules_costs_those_who_keep_them_nothing() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), ["--subscriber-queue-bytes-max", "100000", "--event-log-bytes-max", "100000000"]);
    let mut pair = Pair::new(&cloud);
    let alone = median(|| pair.round());
    let mut check = |what: &str, mischief: &mut (dyn FnMut() + Send)| {
        let beside = pair.beside(mischief);
        assert!(beside <= alone * SLOWDOWN_MAX + NOISE, "{what}: an event takes {beside:?}, {alone:?} without");
    };
    let connect = || TcpStream::connect(address(&cloud)).expect("a connection");

    check("frames beyond the limit", &mut || {
        let mut push = peer(&cloud, SocketType::Push);
        push.say_bytes(&[0x02, 0, 0, 1, 0, 0, 0, 0, 0]);
        assert!(told(&mut push).contains("are taken here"));
    });
    check("messages that never end", &mut || {
        let mut push = peer(&cloud, SocketType::Push);
        push.say_bytes(&[1, 1, b'a'].repeat(10_000));
        assert!(told(&mut push).contains("are taken here"));
    });
    check("wrong greetings", &mut || {
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64]] {
            assert_eq!(answered(&cloud, bytes).len(), 64);
        }
    });
    check("another mechanism", &mut || {
        let credentials = PlainCredentials::new(b"a", b"b").expect("short ones");
        let mut plain = Link::client(connect(), SocketType::Push, ClientSecurity::Plain(credentials));
        assert!(matches!(plain.hear(), Err(ConnectionError::Mechanism { .. })));
    });
    check("another socket type", &mut || {
        assert!(told(&mut Link::client(connect(), SocketType::Router, ClientSecurity::Null)).contains("ROUTER"));
    });
    let mut liar = dealer(&cloud, "plain-peer");
    check("absurd times and sequences", &mut || {
        let hour_ns = 3_600_000_000_000;
        for created_utc_ns in [0, u64::MAX, utc_ns() + hour_ns] {
            publish(&mut liar, "hot", b"1", &EventHeader { created_utc_ns, ..header(1) });
            assert_eq!(refused(&mut liar).0, RefusalReason::Header);
        }
        publish(&mut liar, "hot", b"1", &EventHeader { epoch: Epoch(1 << 40), ..header(1) });
        assert_eq!(refused(&mut liar).0, RefusalReason::Epoch);
    });
    let (mut hasty, mut sequence) = (dealer(&cloud, "plain-peer"), 0);
    check("a publisher that is too fast", &mut || {
        for _ in 0..HASTE {
            sequence += 1;
            publish(&mut hasty, "warm", b"1", &header(sequence));
        }
        drain(&mut hasty);
    });
    let unread: Vec<Link> = (0..10).map(|_| subscriber(&cloud, "any")).collect();
    let (mut push, payload) = (peer(&cloud, SocketType::Push), vec![b'x'; 60_000]);
    check("subscribers that never read", &mut || push.say(&[b"any", &payload]));
    drop(unread);

    let (hot, warm) = (counted(&cloud, "HOT"), counted(&cloud, "WARM"));
    assert_eq!([&hot["late"], &hot["lost"], &hot["shed"], &hot["excess"]], [&json!(0); 4], "{hot}");
    assert_eq!((&hot["accepted"], &hot["dispatched"]), (&json!(pair.published), &json!(pair.published)), "{hot}");
    assert!(warm["excess"].as_u64() > Some(0) && warm["refused"].as_u64() > Some(0), "{warm}");
}

#[test]
fn ten_thousand_links_that_say_nothing_cost_those_who_speak_nothing() {
    let (_crowd, size) = (one_crowd(), crowd_size().min(LINKS_MAX));
    // The crowd, and the two of the pair.
    let limit = (size + 2).to_string();
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), ["--connections-max", &limit, "--client-connections-max", &limit, "--handshake-timeout-ms", "600000"]);
    let mut pair = Pair::new(&cloud);
    let alone = median(|| pair.round());
    let welcomed = |_| {
        let mut stream = TcpStream::connect(address(&cloud)).expect("a connection");
        stream.read_exact(&mut [0; 64]).expect("a greeting");
        stream
    };
    let crowd: Vec<TcpStream> = (0..size).map(welcomed).collect();
    assert_eq!(answered(&cloud, b""), b"", "one more than the limit is closed without a greeting");
    let beside = median(|| pair.round());
    assert!(beside <= alone * SLOWDOWN_MAX + NOISE, "an event takes {beside:?} beside {size} links, {alone:?} without");
    let hot = counted(&cloud, "HOT");
    assert_eq!([&hot["late"], &hot["lost"]], [&json!(0); 2], "{hot}");
    drop(crowd);
    // Their places are free again.
    assert!(eventually(|| answered(&cloud, b"GET / HTTP/1.1\r\n\r\n").len() == 64));
}
