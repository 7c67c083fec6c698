//! A client that sends and does not read what it is answered.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::arrowhead::{subscription, system};
use crate::support::cloud::{Launch, System};

use super::assert_all_live;

/// More than all buffers on the way hold: the system's for both directions, and Bodkin's own.
const SENT_BYTES_MAX: usize = 256 << 20;
/// A send that takes longer than this is one that nobody reads.
const STUCK_AFTER: Duration = Duration::from_millis(500);

/// Sends a request again and again until the other side takes no more; gives how many whole ones were sent.
fn send_until_stuck(socket: &mut TcpStream, request: &[u8]) -> io::Result<usize> {
    socket.set_write_timeout(Some(STUCK_AFTER))?;
    let mut sent = 0;
    while sent < SENT_BYTES_MAX {
        match socket.write(&request[sent % request.len()..]) {
            Ok(bytes) => sent += bytes,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Ok(sent / request.len()),
            Err(error) => return Err(error),
        }
    }
    panic!("{sent} bytes of requests were taken although no answer was read");
}

/// Bytes that make a request long, so that few of them fill the buffers on the way.
const PADDING_BYTES: usize = 12 * 1024;
/// Rows of the list that each request asks for.
const SUBSCRIPTIONS: usize = 30;

#[test]
fn requests_wait_behind_answers_that_are_not_read_and_go_on_when_they_are() {
    let cloud = Launch::new().start();
    cloud.register_system("unread", 1);
    for number in 0..SUBSCRIPTIONS {
        cloud.subscribe(&subscription(&format!("unread-{number}"), system("unread", 1), "/notify"));
    }
    let request = format!("GET /eventhandler/mgmt/subscriptions HTTP/1.1\r\nHost: x\r\nPadding: {}\r\n\r\n", "x".repeat(PADDING_BYTES));
    let mut connection = cloud.connect(System::EventHandler);
    let sent = send_until_stuck(&mut connection.handle().expect("a socket"), request.as_bytes()).expect("the requests are taken");
    assert_all_live(&cloud);
    for index in 0..sent {
        let answer = connection.read_answer().unwrap_or_else(|error| panic!("answer {index} of {sent}: {error}"));
        assert_eq!(answer.status, 200);
    }
}
