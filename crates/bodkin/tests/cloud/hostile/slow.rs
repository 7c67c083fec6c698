//! Connections that say nothing, or too little at a time.

use super::{ALL, assert_all_live, living};
use crate::support::arrowhead::{event, service, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::patience::{PATIENCE, eventually};
use crate::support::sse::EventStream;

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

#[test]
fn a_sender_that_trickles_headers_does_not_hold_its_connection() {
    let cloud = Launch::new().flags(["--header-timeout-ms", "500"]).start();
    for system in ALL {
        let mut connection = cloud.connect(system);
        connection.send(format!("GET {} HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", living(system)).as_bytes()).expect("sent");
        let mut sent = 0;
        // Each byte comes well within the limit; all of them together do not.
        let refused = eventually(|| {
            sent += 1;
            connection.send(b"x").is_err()
        });
        assert!(refused, "{} took {sent} bytes over {PATIENCE:?}", system.name());
    }
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
