//! Topics whose events are safe when their subscribers' hosts have them: publishers wait for no replica then.

use std::time::{Duration, Instant};

use bodkin_zmtp::{ClientSecurity, SocketType};

use super::nodes::{Node, Pair};
use crate::support::arrowhead::{event, system};
use crate::support::cloud::System;
use crate::support::link::{Heard, Link};
use crate::support::sse::EventStream;

/// Replication may wait for 2.9 s: three periods less the time of a fail-over.
const TABLES: &str = "[[topic]]\nevent_type = \"host\"\nperiod_s = 1\ndeadline_s = 60\nloss_tolerance = 0\nretention = 3\ncoverage = \"host\"\n\
    [[topic]]\nevent_type = \"acknowledged\"\nperiod_s = 1\ndeadline_s = 60\nloss_tolerance = 0\nretention = 3\n";
/// What is answered before was not replicated, and what is answered behind it waited for that.
const REPLICATED_AFTER: Duration = Duration::from_secs(2);

/// How long a publisher waits until it is answered, which is when its event is safe.
fn answered_after(node: &Node, event_type: &str) -> Duration {
    let begin = Instant::now();
    let body = event(event_type, system("sensor", 1), "21.5");
    node.call(System::EventHandler, "POST", "/eventhandler/publish", Some(&body)).unwrap().expect_status(200);
    begin.elapsed()
}

#[test]
fn what_a_subscribers_host_has_needs_no_replica_where_the_topic_says_so() {
    let (pair, _witness, _backup, primary) = Pair::known("", TABLES);
    primary.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system("sensor", 1))).unwrap().expect_status(201);
    let stream = std::net::TcpStream::connect(pair.zmtp_addresses().0).unwrap();
    let mut subscriber = Link::client(stream, SocketType::Sub, ClientSecurity::Null);
    assert!(matches!(subscriber.hear(), Ok(Some(Heard::Ready(_)))));
    for event_type in [b"host".as_slice(), b"acknowledged"] {
        subscriber.subscribe(event_type);
    }
    // A pong says that what was sent before has been taken.
    subscriber.ping(Duration::from_secs(1), b"");
    assert!(matches!(subscriber.hear(), Ok(Some(Heard::Pong(_)))));

    let soon = answered_after(&primary, "host");
    assert!(soon < REPLICATED_AFTER, "the subscriber's host has it, and its publisher was answered after {soon:?}");
    let late = answered_after(&primary, "acknowledged");
    assert!(late > REPLICATED_AFTER, "only the Backup's word counts, and its publisher was answered after {late:?}");
    let _stream = EventStream::open_on(primary.connect(System::EventHandler).unwrap(), "/eventhandler/subscription?eventtype=host", &[]);
    let late = answered_after(&primary, "host");
    assert!(late > REPLICATED_AFTER, "of an event stream the send queue is not looked at, and its publisher was answered after {late:?}");
}
