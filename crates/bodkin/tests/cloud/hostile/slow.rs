//! Connections that say nothing, or too little at a time.

use std::thread;

use super::{ALL, assert_all_live, living, metric};
use crate::support::arrowhead::{event, service, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::patience::{PATIENCE, eventually};
use crate::support::sse::{EventStream, UnreadStream};

#[test]
fn slow_and_idle_connections_are_ended_and_disturb_nobody() {
    let cloud = Launch::new().flags(["--header-timeout-ms", "400", "--idle-timeout-ms", "400"]).start();
    cloud.register_system("hostile-slow", 1);
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=hostile-slow", &[]);
    let mut ended = Vec::new();
    for system in ALL {
        let half = format!("GET {} HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", living(system));
        for bytes in ["", "G", half.as_str()] {
            let mut connection = cloud.connect(system);
            connection.send(bytes.as_bytes()).expect("sent");
            ended.push((system, bytes.len(), connection));
        }
        let mut kept = cloud.connect(system);
        kept.request("GET", &living(system), &[], None).expect("an answer").expect_status(200);
        ended.push((system, usize::MAX, kept));
    }
    assert_all_live(&cloud);
    for (system, sent, mut connection) in ended {
        assert!(connection.is_closed_by_server(), "{} holds a connection with {sent} bytes for ever", system.name());
    }
    // A stream is silent for a reason, and outlives both limits.
    cloud.publish(&event("hostile-slow", system("hostile-slow", 1), "still here"));
    assert_eq!(stream.wait_for(1)[0].data, "still here");
}

/// Sends `head` and then `byte` again and again to each system at once until it is refused.
#[track_caller]
fn trickle(cloud: &Cloud, systems: &[System], byte: &[u8], head: impl Fn(System) -> String + Sync) {
    thread::scope(|scope| {
        for system in systems {
            let head = &head;
            scope.spawn(move || {
                let mut connection = cloud.connect(*system);
                connection.send(head(*system).as_bytes()).expect("sent");
                let mut sent = 0;
                // Each byte comes well within the limit; all of them together do not.
                let refused = eventually(|| {
                    sent += 1;
                    connection.send(byte).is_err()
                });
                assert!(refused, "{} took {sent} bytes over {PATIENCE:?}", system.name());
            });
        }
    });
}

#[test]
fn a_sender_that_trickles_headers_does_not_hold_its_connection() {
    let cloud = Launch::new().flags(["--header-timeout-ms", "500"]).start();
    trickle(&cloud, &ALL, b"x", |system| format!("GET {} HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", living(system)));
    assert_all_live(&cloud);
}

#[test]
fn hundreds_of_half_open_connections_disturb_nobody() {
    let cloud = Cloud::shared();
    cloud.register_system("hostile-open", 1);
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/events?event_type=hostile-open", &[]);
    let mut held = Vec::new();
    for system in ALL {
        for bytes in ["", "POST ", "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"].into_iter().cycle().take(60) {
            let mut connection = cloud.connect(system);
            connection.send(bytes.as_bytes()).expect("sent");
            if bytes.is_empty() {
                connection.finish_sending().expect("half closed");
            }
            held.push(connection);
        }
    }
    assert_all_live(&cloud);
    cloud.register(&service("hostile-open", system("hostile-open", 1)));
    cloud.publish(&event("hostile-open", system("hostile-open", 1), "through"));
    stream.wait_for(1);
    assert_eq!(held.len(), 60 * ALL.len());
}

#[test]
fn a_sender_that_trickles_its_body_does_not_hold_its_connection_and_one_that_waits_is_told_408() {
    let cloud = Launch::new().flags(["--header-timeout-ms", "300", "--body-timeout-ms", "300"]).start();
    let head = |system: System| {
        let path = super::posting(system);
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50000\r\n\r\n{{")
    };
    trickle(&cloud, &System::CORE, b" ", head);
    for system in System::CORE {
        let mut connection = cloud.connect(system);
        connection.send(head(system).as_bytes()).expect("sent");
        assert_eq!(connection.read_answer().expect("a refusal").status, 408, "{}", system.name());
        assert!(connection.is_closed_by_server(), "{} stays open", system.name());
    }
    assert_all_live(&cloud);
}

#[test]
fn a_hundred_streams_that_are_never_read_are_closed_and_disturb_nobody() {
    const UNREAD: usize = 100;
    const EVENTS: usize = 200;
    let flags = ["--stream-stall-timeout-ms", "300", "--subscriber-queue-bytes-max", "65536"];
    let cloud = Launch::new().flags(flags).start();
    cloud.register_system("hostile-unread", 1);
    let target = "/eventhandler/subscription?eventtype=hostile-unread";
    let address = cloud.address(System::EventHandler);
    let unread: Vec<UnreadStream> = (0..UNREAD).map(|_| UnreadStream::open(address, target, &[])).collect();
    let reading = EventStream::open(address, target, &[]);
    let filling = "x".repeat(60 * 1024);
    let mut connection = cloud.connect(System::EventHandler);
    for number in 0..EVENTS {
        let body = event("hostile-unread", system("hostile-unread", 1), &format!("{number} {filling}")).to_string();
        let headers = [("Content-Type", "application/json")];
        connection.request("POST", "/eventhandler/publish", &headers, Some(body.as_bytes())).expect("an answer").expect_status(200);
        reading.wait_for(number + 1);
    }
    // What the kernel holds for them is 12 MB each at the most; the queue behind it is full, so each has stalled.
    let gone = eventually(|| metric(&cloud, "bodkin_event_subscriptions") == 1.0);
    assert!(gone, "{} subscriptions are left", metric(&cloud, "bodkin_event_subscriptions"));
    assert_eq!(unread.len(), UNREAD);
    assert_all_live(&cloud);
}
