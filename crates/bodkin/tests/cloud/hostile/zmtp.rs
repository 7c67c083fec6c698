//! Peers of the ZMTP port that mean harm or do not know better.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bodkin_zmtp::{ClientSecurity, ConnectionError, PlainCredentials, SocketType};

use super::quotas::{GREEDY, MODEST, rejected};
use super::{assert_all_live, metric};
use crate::support::link::{Heard, Link};
use crate::support::patience::eventually;
use crate::support::sources::connect_from;
use crate::zmtp::{address, asked, cloud, heard, peer, subscriber, texts, told};

/// NULL, ZMTP 3.0, no server.
fn greeting() -> Vec<u8> {
    let mut greeting = vec![0; 64];
    greeting[..12].copy_from_slice(b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0");
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

/// All that is sent to somebody who sends these bytes, until the end.
pub fn answered(cloud: &crate::support::cloud::Cloud, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address(cloud)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a stream can be set so");
    stream.write_all(bytes).expect("sent");
    let mut came = Vec::new();
    // A reset ends it as well.
    let _ = stream.read_to_end(&mut came);
    came
}

#[test]
fn what_is_no_zmtp_3_is_closed_behind_the_greeting() {
    let cloud = cloud(&[]);
    let mut old = greeting();
    old[10] = 1;
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x01, 0x00], &old, &[0xff; 64]] {
        assert_eq!(answered(&cloud, bytes).len(), 64, "{bytes:?}");
    }
    let mut plain = Link::client(
        TcpStream::connect(address(&cloud)).expect("a connection"),
        SocketType::Push,
        ClientSecurity::Plain(PlainCredentials::new(b"a", b"b").expect("short ones")),
    );
    assert!(matches!(plain.hear(), Err(ConnectionError::Mechanism { .. })));
    assert_all_live(&cloud);
}

#[test]
fn a_socket_type_without_a_meaning_here_is_told_those_that_have_one() {
    let cloud = cloud(&[]);
    for socket_type in [SocketType::Pull, SocketType::Rep, SocketType::Pair, SocketType::Router, SocketType::Xpub] {
        let stream = TcpStream::connect(address(&cloud)).expect("a connection");
        let reason = told(&mut Link::client(stream, socket_type, ClientSecurity::Null));
        assert!(reason.contains(socket_type.name()) && reason.contains("PUB, PUSH, REQ, SUB, XSUB, DEALER"), "{reason}");
    }
}

#[test]
fn what_is_too_long_or_never_ends_is_refused_when_that_is_known() {
    let cloud = cloud(&[]);
    let mut sub = subscriber(&cloud, "");
    // A frame of 2^40 bytes, one byte beyond the limit, a message of six frames.
    let mut beyond = vec![0x02];
    beyond.extend((64 * 1024 + 1_u64).to_be_bytes());
    for bytes in [&[0x02, 0, 0, 1, 0, 0, 0, 0, 0][..], &beyond, &[1, 1, b'a'].repeat(6)] {
        let mut push = peer(&cloud, SocketType::Push);
        push.say_bytes(bytes);
        let reason = told(&mut push);
        assert!(reason.contains("are taken here"), "{reason}");
    }
    let mut push = peer(&cloud, SocketType::Push);
    let longest = vec![b'x'; 64 * 1024];
    push.say(&[b"long", &longest]);
    assert_eq!(heard(&mut sub).1.len(), longest.len());
    assert_all_live(&cloud);
}

#[test]
fn what_a_publisher_cannot_be_told_is_counted() {
    let cloud = cloud(&[]);
    let mut push = peer(&cloud, SocketType::Push);
    for frames in [
        &[&b"alone"[..]][..],
        &[b"a", b"\xff"],
        &[b"a", b"b", b"no header", b"{}"],
        &[b"a", b"b", b"no header"],
        &[b"a", b"b", b"", b"[]"],
        &[b"a", b"b", b"", b"{}", b"e"],
    ] {
        push.say(frames);
    }
    assert!(eventually(|| metric(&cloud, "bodkin_zmtp_events_refused_total") == 6.0));
    assert!(eventually(|| cloud.stderr().contains("a ZMTP event was refused")), "{}", cloud.stderr());
}

#[test]
fn peers_out_of_their_role_are_told() {
    let cloud = cloud(&[]);
    let mut sub = subscriber(&cloud, "a");
    sub.say(&[b"an event", b"of a subscriber"]);
    assert!(told(&mut sub).contains("publishes nothing"));
    let mut req = peer(&cloud, SocketType::Req);
    req.say(&[b"no empty frame", b"x"]);
    assert!(told(&mut req).contains("empty frame"));
    let mut push = peer(&cloud, SocketType::Push);
    push.subscribe(b"a");
    assert!(told(&mut push).contains("only SUB and XSUB"));
    for (prefix, named) in [(&b"\xff"[..], "UTF-8"), (&[b'x'; 300], "255")] {
        let mut sub = peer(&cloud, SocketType::Sub);
        sub.subscribe(prefix);
        let reason = told(&mut sub);
        assert!(reason.contains(named), "{reason}");
    }
    let mut greedy = peer(&cloud, SocketType::Sub);
    for number in 0..=1000 {
        greedy.subscribe(number.to_string().as_bytes());
    }
    assert!(told(&mut greedy).contains("at most 1000 prefixes"));
}

#[test]
fn who_says_nothing_is_closed_in_time_and_who_is_one_too_many_at_once() {
    let cloud = cloud(&["--handshake-timeout-ms", "300", "--connections-max", "3", "--client-connections-max", "3"]);
    let mut patient = peer(&cloud, SocketType::Req);
    let began = Instant::now();
    let welcomed = |_| {
        let mut stream = TcpStream::connect(address(&cloud)).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a stream can be set so");
        stream.read_exact(&mut [0; 64]).expect("a greeting");
        stream
    };
    let silent: Vec<_> = (0..2).map(welcomed).collect();
    assert_eq!(answered(&cloud, b""), b"", "three are there");
    for mut stream in silent {
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "it is closed");
    }
    assert!(began.elapsed() < Duration::from_secs(8));
    assert_eq!(asked(&mut patient, &[b"hot", b"1"]).0, "200");
}

#[test]
fn a_subscriber_that_never_reads_loses_its_own_events_only() {
    const EVENTS: u64 = 400;
    let cloud = cloud(&["--subscriber-queue-bytes-max", "100000"]);
    let (mut slow, mut quick) = (subscriber(&cloud, "hot"), subscriber(&cloud, "hot"));
    let mut push = peer(&cloud, SocketType::Push);
    let payload = "x".repeat(60_000);
    for _ in 0..EVENTS {
        push.say(&[b"hot", payload.as_bytes()]);
        assert_eq!(heard(&mut quick).1.len(), payload.len());
    }
    eventually(|| metric(&cloud, "bodkin_events_lost_total") > 0.0);
    let lost = metric(&cloud, "bodkin_events_lost_total") as u64;
    // What it was sent it can still read, and the numbers tell what is missing.
    let mut last = 0;
    for _ in 0..EVENTS - lost {
        last = heard(&mut slow).2.sequence.0;
    }
    push.say(&[b"hot", b"after"]);
    let (event_type, payload, header) = heard(&mut slow);
    assert_eq!((event_type.as_str(), payload.as_str(), header.sequence.0), ("hot", "after", EVENTS + 1));
    assert!(last <= EVENTS);
    eventually(|| cloud.stderr().contains("a ZMTP subscriber was too slow"));
}

#[test]
fn a_peer_that_takes_no_replies_is_not_read_any_more() {
    let cloud = cloud(&[]);
    let mut deaf = peer(&cloud, SocketType::Push);
    // Pings are answered: their pongs pile up until the peer is left alone.
    let ping = [&b"\x04\x17\x04PING\0\0"[..], &[b'x'; 16]].concat();
    let flood = ping.repeat(2000);
    let began = Instant::now();
    let stalls = std::thread::spawn(move || {
        for _ in 0..2000 {
            if began.elapsed() > Duration::from_secs(2) {
                break;
            }
            deaf.say_bytes(&flood);
        }
        deaf
    });
    let mut sub = subscriber(&cloud, "");
    let mut req = peer(&cloud, SocketType::Req);
    for number in 0..50 {
        assert_eq!(asked(&mut req, &[b"hot", number.to_string().as_bytes()]).0, "200");
        assert_eq!(texts(&mut sub).1, number.to_string());
    }
    assert!(metric(&cloud, "bodkin_resident_memory_bytes") < 200e6);
    drop(cloud);
    drop(stalls.join());
}

/// A peer at this address whose handshake is done.
fn peer_from(source: &str, cloud: &crate::support::cloud::Cloud, socket_type: SocketType) -> Link {
    let mut link = Link::client(connect_from(source, address(cloud)), socket_type, ClientSecurity::Null);
    assert!(matches!(link.hear(), Ok(Some(Heard::Ready(_)))), "the handshake is done");
    link
}

#[test]
fn incomplete_messages_of_one_address_leave_memory_and_service() {
    const BODY_BYTES: u64 = 60_000;
    let cloud = cloud(&[]);
    let mut unfinished = vec![2];
    unfinished.extend(BODY_BYTES.to_be_bytes());
    unfinished.resize(unfinished.len() + BODY_BYTES as usize - 1, b'x');
    let mut links: Vec<Link> = (0..200)
        .map(|_| {
            let mut link = peer_from(GREEDY, &cloud, SocketType::Push);
            link.say_bytes(&unfinished);
            link
        })
        .collect();
    assert!(eventually(|| rejected(&cloud, "zmtp", "client_request_bytes") > 0), "{}", cloud.stderr());
    let reason = told(links.last_mut().expect("there are links"));
    assert!(reason.contains("incomplete requests"), "{reason}");
    let mut modest = peer_from(MODEST, &cloud, SocketType::Req);
    assert_eq!(asked(&mut modest, &[b"hot", b"1"]).0, "200");
}

#[test]
fn links_of_one_address_leave_links_to_others() {
    let cloud = cloud(&["--connections-max", "6"]);
    let _held: Vec<Link> = (0..3).map(|_| peer_from(GREEDY, &cloud, SocketType::Push)).collect();
    let mut rejected_link = connect_from(GREEDY, address(&cloud));
    assert_eq!(rejected_link.read(&mut [0; 64]).unwrap_or(0), 0, "it is closed without a greeting");
    assert_eq!(rejected(&cloud, "zmtp", "client_connections"), 1);
    let mut modest = peer_from(MODEST, &cloud, SocketType::Req);
    assert_eq!(asked(&mut modest, &[b"hot", b"1"]).0, "200");
}
