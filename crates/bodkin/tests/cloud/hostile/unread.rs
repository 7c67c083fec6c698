//! A client that sends and does not read what it is answered.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::arrowhead::{event, subscription, system};
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

/// Requests of a client that sends as fast as it can and reads a little slower: about 50 MB.
const PIPELINED: usize = 200_000;
/// What such a client may cost: far below what it sends.
const GROWTH_KIB_MAX: u64 = 8 << 10;

/// The most memory that a process has had, in KiB.
fn resident_peak_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_client_that_sends_faster_than_it_reads_does_not_fill_the_memory() {
    let cloud = Launch::new().start();
    cloud.register_system("eager", 1);
    let body = event("eager", system("eager", 1), "x").to_string();
    let head = format!(
        "POST /eventhandler/publish HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let burst = format!("{head}{body}").repeat(500);
    let mut connection = cloud.connect(System::EventHandler);
    // The event log's memory and the buffers have grown once before it is measured.
    cloud.publish(&event("eager", system("eager", 1), &"x".repeat(60_000)));
    let before = resident_peak_kib(cloud.pid());
    let mut socket = connection.handle().expect("a socket");
    std::thread::scope(|scope| {
        scope.spawn(move || (0..PIPELINED / 500).for_each(|_| socket.write_all(burst.as_bytes()).expect("it is taken")));
        for _ in 0..PIPELINED {
            connection.read_answer().expect("an answer").expect_status(200);
        }
    });
    let growth = resident_peak_kib(cloud.pid()) - before;
    assert!(growth < GROWTH_KIB_MAX, "{growth} KiB for one client");
}
