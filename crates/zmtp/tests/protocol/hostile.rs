//! Faults of peers: each is refused where it stands, told if it may be, and nothing comes behind it.

use bodkin_zmtp::{ClientSecurity, ClientSettings, Limits, Metadata, PlainCredentials, ServerSecurity, ServerSettings, SocketType};

use crate::party::{Party, converse, hex, pair};

const LIMITS: Limits = Limits {
    frame_bytes_max: 300,
    message_bytes_max: 500,
    frames_max: 3,
    command_bytes_max: 40,
    metadata_bytes_max: 100,
    properties_max: 4,
};

/// How far the victim is.
#[derive(Clone, Copy, Debug)]
enum Victim {
    /// A server that has heard nothing.
    New,
    /// A server that has heard a greeting, of NULL or PLAIN.
    NullServer,
    PlainServer,
    /// A client that has heard a greeting.
    NullClient,
    PlainClient,
    /// A server in traffic with a DEALER, by NULL.
    Traffic,
}

fn greeting(mechanism: &str) -> Vec<u8> {
    let mut greeting = [&b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01"[..], mechanism.as_bytes()].concat();
    greeting.resize(64, 0);
    greeting
}

fn credentials() -> PlainCredentials {
    PlainCredentials::new(b"admin", b"secret").expect("short ones")
}

fn ready(socket_type: &str) -> Vec<u8> {
    let length = u8::try_from(socket_type.len()).expect("a short name");
    [&[4, 22 + length][..], b"\x05READY\x0bSocket-Type\0\0\0", &[length], socket_type.as_bytes()].concat()
}

fn server(security: ServerSecurity) -> Party {
    Party::server_with(ServerSettings { limits: LIMITS, takes: vec![SocketType::Dealer, SocketType::Sub], security }, &[])
}

fn client(security: ClientSecurity) -> Party {
    Party::client_with(ClientSettings { limits: LIMITS, metadata: Metadata::of(SocketType::Dealer), security }, &[])
}

fn victim(victim: Victim) -> Party {
    let (mut party, heard) = match victim {
        Victim::New => (server(ServerSecurity::Null), Vec::new()),
        Victim::NullServer => (server(ServerSecurity::Null), greeting("NULL")),
        Victim::PlainServer => (server(ServerSecurity::Plain), greeting("PLAIN")),
        Victim::NullClient => (client(ClientSecurity::Null), greeting("NULL")),
        Victim::PlainClient => (client(ClientSecurity::Plain(credentials())), greeting("PLAIN")),
        Victim::Traffic => (server(ServerSecurity::Null), [greeting("NULL"), ready("DEALER")].concat()),
    };
    assert!(party.hear(&heard).iter().all(|line| line == "ready DEALER"));
    party.out.clear();
    party
}

/// These bytes end in a fault of this text, however they are cut, and the peer is told exactly that if `told`.
#[track_caller]
fn check(who: Victim, bytes: &[u8], expected: &str, told: bool) {
    let mut whole = victim(who);
    let lines = whole.hear(bytes);
    assert_eq!(lines, [format!("error {expected}")], "{who:?}");
    let error = [&[expected.len() as u8][..], expected.as_bytes()].concat();
    let error = [&b"\x05ERROR"[..], &error].concat();
    let sent = if told { hex(&[&[4, error.len() as u8][..], &error].concat()) } else { String::new() };
    assert_eq!(hex(&whole.out), sent, "{who:?}: {expected}");
    assert_eq!(whole.hear(b"\0\x02hi"), lines, "nothing is taken behind a fault");
    assert_eq!(hex(&whole.out), sent, "it is told once");
    let mut cut = victim(who);
    let bytewise: Vec<String> = bytes.iter().flat_map(|octet| cut.hear(&[*octet])).collect();
    assert_eq!(bytewise[0], lines[0], "{who:?}, octet by octet");
}

#[test]
fn no_greeting() {
    let speak = "speak ZMTP 3.0 or newer";
    check(Victim::New, b"GET / HTTP/1.1\r\n\r\n", &format!("expected a ZMTP 3 greeting, came octet 47 at 0: {speak}"), false);
    check(Victim::New, b"\x01\0", &format!("expected a ZMTP 3 greeting, came octet 01 at 0: {speak}"), false);
    check(Victim::New, b"\xff\0\0\0\0\0\0\0\x05\0hello", &format!("expected a ZMTP 3 greeting, came octet 00 at 9: {speak}"), false);
    let library = "use a library that speaks ZMTP 3.0 or newer";
    check(Victim::New, b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x05\0\0", &format!("expected ZMTP 3, came major version 1: {library}"), false);
    check(Victim::New, &greeting("CURVE"), "expected mechanism NULL, came \"CURVE\": both ends must be set to the same", false);
    check(Victim::New, &greeting("GSSAPI"), "expected mechanism NULL, came \"GSSAPI\": both ends must be set to the same", false);
}

#[test]
fn no_frame() {
    for who in [Victim::NullServer, Victim::Traffic] {
        let flags = "bits 3 to 7 are zero, and a command is one frame";
        check(who, b"\x08\0", &format!("expected the flags of a frame, came 08: {flags}"), true);
        check(who, b"\x85\0", &format!("expected the flags of a frame, came 85: {flags}"), true);
        check(who, b"\x05\0", &format!("expected the flags of a frame, came 05: {flags}"), true);
        check(who, b"\x06\x80\0\0\0\0\0\0\0", "expected a size below 2^63, came 0x8000000000000000", true);
        check(who, b"\x04\0", "expected a command's name of letters with its length, came something else", true);
        check(who, b"\x04\x03\x05ab", "expected a command's name of letters with its length, came something else", true);
    }
}

#[test]
fn too_much() {
    let raise = "are taken here; send less or have the limit raised";
    let frame = |bytes: u64| [&b"\x02"[..], &bytes.to_be_bytes()].concat();
    check(Victim::Traffic, &frame(301), &format!("bytes of a frame: 301 came, at most 300 {raise}"), true);
    let most = i64::MAX as u64;
    check(Victim::Traffic, &frame(most), &format!("bytes of a frame: {most} came, at most 300 {raise}"), true);
    let part = [&b"\x01\xfa"[..], &[0; 250]].concat();
    let message = [&part[..], &part, b"\0\x01"].concat();
    check(Victim::Traffic, &message, &format!("bytes of a message: 501 came, at most 500 {raise}"), true);
    check(Victim::Traffic, b"\x01\0\x01\0\x01\0\x01\0", &format!("frames of a message: 4 came, at most 3 {raise}"), true);
    check(Victim::Traffic, b"\x04\x29", &format!("bytes of a command: 41 came, at most 40 {raise}"), true);
    let command = format!("bytes of a command of the handshake: 600 came, at most 518 {raise}");
    check(Victim::NullServer, b"\x06\0\0\0\0\0\0\x02\x58", &command, true);
    let metadata = [&b"\x04\x6e\x05READY"[..], b"\x01a\0\0\0\x62", &[0; 98]].concat();
    check(Victim::NullServer, &metadata, &format!("bytes of properties: 104 came, at most 100 {raise}"), true);
    let properties = b"\x04\x24\x05READY\x01a\0\0\0\0\x01b\0\0\0\0\x01c\0\0\0\0\x01d\0\0\0\0\x01e\0\0\0\0";
    check(Victim::NullServer, properties, &format!("properties: 5 came, at most 4 {raise}"), true);
}

#[test]
fn out_of_order() {
    check(Victim::NullServer, b"\0\x02hi", "expected a command, came a message: wait for READY before sending messages", true);
    check(Victim::NullServer, b"\x04\x06\x05HELLO", "expected READY, came HELLO", true);
    check(Victim::PlainServer, &ready("DEALER"), "expected HELLO, came READY", true);
    check(Victim::PlainServer, b"\x04\x06\x05HELLO", "HELLO: expected a name and a password, each with its length", true);
    check(Victim::PlainServer, b"\x04\x0a\x05HELLO\x01a\x02b", "HELLO: expected a name and a password, each with its length", true);
    check(Victim::PlainClient, &ready("ROUTER"), "expected WELCOME, came READY", false);
    check(Victim::PlainClient, b"\x04\x09\x07WELCOME!", "WELCOME: expected nothing behind the name", false);
    check(Victim::PlainClient, b"\x04\x0a\x05ERROR\x03400", "the peer ended the connection: \"400\"", false);
    // Seen of libzmq 4.3.5.
    check(Victim::PlainClient, b"\x04\x09^RROR\x03400", "the peer ended the connection: \"400\"", false);
    check(Victim::NullClient, b"\x04\x0a\x05ERROR\x03400", "the peer ended the connection: \"400\"", false);
    check(Victim::Traffic, b"\x04\x0a\x05ERROR\x03400", "the peer ended the connection: \"400\"", false);
    check(Victim::Traffic, b"\x04\x09\x05ERROR\x03ab", "ERROR: expected a reason with its length", true);
    check(Victim::Traffic, b"\x04\x06\x04PING\0", "PING: expected 2 octets of time and at most 16 of context", true);
    check(Victim::Traffic, b"\x04\x18\x04PING\0\x000123456789abcdefg", "PING: expected 2 octets of time and at most 16 of context", true);
    check(Victim::Traffic, b"\x04\x16\x04PONG0123456789abcdefg", "PONG: expected at most 16 octets of context", true);
}

#[test]
fn not_the_right_peer() {
    check(Victim::NullServer, &ready("PULL"), "PULL sockets are not taken here, only DEALER, SUB", true);
    check(Victim::NullServer, &ready("CLIENT"), "expected a Socket-Type of ZMTP, came \"CLIENT\"", true);
    check(Victim::NullServer, b"\x04\x06\x05READY", "properties: expected a Socket-Type", true);
    check(Victim::NullServer, b"\x04\x07\x05READY\x05", "properties: expected whole names and values with their lengths", true);
    check(Victim::NullClient, &ready("PUB"), "PUB sockets are not taken here, only what DEALER talks to", true);
    let welcome = b"\x04\x08\x07WELCOME".to_vec();
    let mut client = victim(Victim::PlainClient);
    let told = client.hear(&[welcome, ready("PUB")].concat());
    assert_eq!(told, ["error PUB sockets are not taken here, only what DEALER talks to"]);
    assert!(!hex(&client.out).contains(&hex(b"\x05ERROR")), "a client of PLAIN tells nothing");
}

#[test]
fn what_the_host_refuses_is_told_and_is_the_end() {
    let mut server = victim(Victim::Traffic);
    server.connection.refuse("größe: the queue is full", &mut server.out);
    assert_eq!(server.sent(), b"\x04\x1f\x05ERROR\x18gr??e: the queue is full");
    assert_eq!(server.hear(b"\0\x02hi"), ["error größe: the queue is full"]);
    assert!(server.connection.sender().is_none() && server.connection.peer().is_none());
    server.connection.refuse("again", &mut server.out);
    assert!(server.out.is_empty());
}

#[test]
fn who_may_not_come_in_is_told() {
    let mut server = server(ServerSecurity::Plain);
    server.out.clear();
    let mut hello = [&greeting("PLAIN")[..], b"\x04\x13\x05HELLO\x05admin\x06secret"].concat();
    let received = server.connection.receive(&mut hello, &mut server.out).expect("a good HELLO");
    assert!(received.event.is_some());
    server.connection.refuse("400", &mut server.out);
    assert_eq!(server.out, b"\x04\x0a\x05ERROR\x03400");
}

#[test]
#[should_panic(expected = "has not answered")]
fn a_host_that_does_not_answer_is_at_fault() {
    let mut server = server(ServerSecurity::Plain);
    let mut hello = [&greeting("PLAIN")[..], b"\x04\x13\x05HELLO\x05admin\x06secret"].concat();
    server.connection.receive(&mut hello, &mut server.out).expect("a good HELLO");
    let _ = server.connection.receive(&mut [], &mut server.out);
}

#[test]
fn nobody_comes_to_curve_without_it() {
    for mechanism in ["NULL", "PLAIN"] {
        let mut server = server(ServerSecurity::Curve(pair(2)));
        server.out.clear();
        let told = server.hear(&[greeting(mechanism), ready("DEALER")].concat());
        assert_eq!(told, [format!("error expected mechanism CURVE, came {mechanism:?}: both ends must be set to the same")]);
        assert!(server.out.is_empty());
    }
}

/// The messages that libzmq loses when they come too early are never sent too early.
#[test]
fn nothing_is_sent_before_the_peer_is_ready() {
    let curve = || (ClientSecurity::Curve { own: pair(1), server: pair(2).public().clone() }, ServerSecurity::Curve(pair(2)));
    let plain = || (ClientSecurity::Plain(credentials()), ServerSecurity::Plain);
    for (client_security, server_security) in [(ClientSecurity::Null, ServerSecurity::Null), plain(), curve()] {
        let (mut client, mut server) = (client(client_security), server(server_security));
        assert!(client.connection.sender().is_none() && server.connection.sender().is_none());
        let to_client = server.sent();
        client.hear(&to_client);
        assert!(client.connection.sender().is_none(), "the greeting is not READY");
        converse(&mut client, &mut server);
        assert!(client.connection.sender().is_some() && server.connection.sender().is_some());
    }
}
