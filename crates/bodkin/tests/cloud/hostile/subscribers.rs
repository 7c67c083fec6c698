//! Push subscribers that do what no subscriber should: each costs a bounded time and memory, and nobody else notices.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::arrowhead::{event, list, subscription, system};
use crate::support::cloud::{Cloud, Launch};
use crate::support::patience::eventually;
use crate::support::push::{Manner, PushSubscriber};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\n";

/// What it does with every connection, once a request has come, until it is closed.
type Misdeed = fn(&mut TcpStream) -> std::io::Result<()>;

fn repeat(stream: &mut TcpStream, first: &[u8], piece: &[u8], pause: Duration) -> std::io::Result<()> {
    stream.write_all(first)?;
    loop {
        stream.write_all(piece)?;
        thread::sleep(pause);
    }
}

/// Those whose answer never comes, or is none: their name, and what they do.
const FAILING: [(&str, Misdeed); 7] = [
    ("drips", |stream| repeat(stream, OK, b"A", Duration::from_millis(100))),
    ("drips-body", |stream| repeat(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"A", Duration::from_millis(100))),
    ("endless-headers", |stream| repeat(stream, OK, b"A: b\r\n", Duration::ZERO)),
    ("endless-interim", |stream| repeat(stream, b"", b"HTTP/1.1 100 Continue\r\n\r\n", Duration::ZERO)),
    ("closes", |stream| stream.shutdown(Shutdown::Both)),
    ("babbles", |stream| repeat(stream, b"", b"SSH-2.0-OpenSSH\r\n", Duration::from_millis(1))),
    ("switches", |stream| repeat(stream, b"HTTP/1.1 101 Switching\r\n\r\n", b"x", Duration::from_millis(1))),
];

/// Those that say 200 and then do not stop.
const TAKING: [(&str, Misdeed); 2] = [
    ("endless-body", |stream| repeat(stream, b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", &[b'x'; 1000], Duration::ZERO)),
    ("endless-chunks", |stream| {
        repeat(stream, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n", Duration::ZERO)
    }),
];

/// Listens until the test's process ends; gives the port.
fn misbehave(misdeed: Misdeed) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("a bound listener has an address").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut request = [0; 4096];
                // It ends when Bodkin has had enough.
                let _ = stream.read(&mut request).and_then(|_| misdeed(&mut stream));
            });
        }
    });
    port
}

fn delivery(cloud: &Cloud, subscriber: &str) -> Value {
    let all = cloud.get("/api/v1/subscriptions").expect_status(200).json();
    list(&all, "/data").iter().find(|row| row["subscriber"]["systemName"] == subscriber).expect("a delivery").clone()
}

#[test]
fn a_hostile_subscriber_is_counted_and_hurts_nobody() {
    const EVENTS: usize = 50;
    let flags = ["--push-timeout-ms", "400", "--push-backoff-min-ms", "1", "--push-backoff-max-ms", "100"];
    let cloud = Launch::new().flags(flags).start();
    let (publisher, definition) = cloud.register_publisher("publisher", 1);
    let join = |name: &str, port: u16| {
        let id = cloud.register_system(name, port);
        cloud.allow(id, publisher, definition, &[2]);
        cloud.subscribe(&subscription("hostile", system(name, port), "/notify"));
    };
    FAILING.iter().chain(&TAKING).for_each(|(name, misdeed)| join(name, misbehave(*misdeed)));
    // Ports of Bodkin's own are no subscribers.
    join("ourselves", cloud.address(crate::support::cloud::System::EventHandler).port());
    let good = PushSubscriber::listen(Manner::Answers);
    join("good", good.port());
    let payloads: Vec<String> = (0..EVENTS).map(|number| number.to_string()).collect();
    for payload in &payloads {
        cloud.publish(&event("hostile", system("publisher", 1), payload));
    }
    good.wait_until(|all| all.len() >= EVENTS, "further notification");
    assert_eq!(good.payloads(), payloads);
    for name in FAILING.iter().map(|(name, _)| *name).chain(["ourselves"]) {
        let mut last = Value::Null;
        let counted = eventually(|| {
            last = delivery(&cloud, name);
            last["consecutiveFailures"].as_u64() >= Some(2)
        });
        assert!(counted && last["delivered"] == 0 && last["lastError"].is_string(), "{last}");
    }
    for (name, _) in TAKING {
        assert!(
            eventually(|| delivery(&cloud, name)["delivered"] == EVENTS),
            "a 200 counts, whatever follows it: {}",
            delivery(&cloud, name)
        );
    }
    let resident = cloud.get("/metrics").text();
    let resident = resident.lines().find_map(|line| line.strip_prefix("bodkin_resident_memory_bytes ")).expect("a metric");
    assert!(resident.parse::<u64>().expect("a number") < 200_000_000, "{resident} bytes");
}
