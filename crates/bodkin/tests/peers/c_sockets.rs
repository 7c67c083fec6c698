//! The C library and libzmq, by pyzmq: every pairing of socket types by every mechanism, whoever connects.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use bodkin_zmtp::SocketType::{self, *};
use serde_json::{Value, json};

use crate::program::python;
use crate::support::c_socket::{CSocket, Mechanism as Ours, Told, program};
use crate::zmtp::{MECHANISMS, Mechanism, PYTHON_VARIABLE, keys};

/// Ours, libzmq's, and what `peer.py` calls the exchange.
const PAIRINGS: [(SocketType, SocketType, &str); 17] = [
    (Req, Rep, "REP"),
    (Req, Router, "ROUTER of a REQ"),
    (Rep, Req, "REQ"),
    (Rep, Dealer, "DEALER of a REP"),
    (Dealer, Rep, "REP"),
    (Dealer, Dealer, "DEALER"),
    (Dealer, Router, "ROUTER"),
    (Router, Req, "REQ"),
    (Router, Dealer, "DEALER"),
    (Router, Router, "ROUTER"),
    (Pub, Sub, "SUB"),
    (Pub, Xsub, "XSUB"),
    (Sub, Pub, "PUB"),
    (Sub, Xpub, "XPUB"),
    (Push, Pull, "PULL"),
    (Pull, Push, "PUSH"),
    (Pair, Pair, "PAIR"),
];

/// The process with one socket of libzmq after the other.
struct Peer {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Peer {
    fn start(python: &str, settings: &Value) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/zmtp/peer.py");
        let mut process = Command::new(python).arg(script).arg(settings.to_string()).stdout(Stdio::piped()).spawn().expect("Python starts");
        let lines = BufReader::new(process.stdout.take().expect("its output is piped"));
        Self { process, lines }
    }

    #[track_caller]
    fn said(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("its output is text");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the peer has ended: {line:?}"))
    }

    fn end(mut self) {
        let status = self.process.wait().expect("a child can be waited for");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// As our end sees it.
fn ours(mechanism: Mechanism) -> Ours {
    match mechanism {
        Mechanism::Null => Ours::Null,
        Mechanism::Plain => Ours::Plain,
        Mechanism::Curve => Ours::Curve { own: keys(1).0, peer: keys(2).0.public().clone() },
    }
}

/// Our side, until the peer leaves or we have what we wanted. What was remarkable of it.
#[track_caller]
fn exchange(socket: &mut CSocket, own: SocketType, peer: SocketType) -> Vec<String> {
    match (own, peer) {
        (Req, _) => socket.say(&[b"ping"]),
        (Dealer, Rep) => socket.say(&[b"", b"ping"]),
        (Dealer | Router, Router) => socket.say(&[b"hello"]),
        (Push, _) => socket.say(&[b"job"]),
        (Sub, _) => socket.subscribe(b""),
        _ => {}
    }
    let echoes = matches!(peer, Req | Dealer | Router | Pair) && own != Req;
    let mut told = Vec::new();
    loop {
        match socket.hear() {
            Told::Heard(frames) if echoes => socket.say_all(&frames),
            Told::Heard(frames) => {
                let frames: Vec<String> = frames.iter().map(|frame| String::from_utf8_lossy(frame).into_owned()).collect();
                told.push(frames.join("|"));
                if own == Sub {
                    return told;
                }
            }
            Told::Subscribed(prefix) => {
                socket.say(&[&[&prefix[..], b"-1"].concat(), b"for you"]);
                told.push(format!("subscribe {}", String::from_utf8_lossy(&prefix)));
            }
            Told::Cancelled(prefix) => told.push(format!("cancel {}", String::from_utf8_lossy(&prefix))),
            Told::Ended(_) => return told,
            Told::Ready => panic!("it was ready before"),
        }
    }
}

/// What libzmq receives, and what we note.
fn expected(own: SocketType, peer: SocketType) -> (Value, Vec<String>) {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    match (own, peer) {
        (Req, _) => (json!(["ping"]), texts(&["pong"])),
        (Rep, Req) | (Router, Req) => (json!(["ping"]), vec![]),
        (Rep, _) => (json!(["", "pong"]), vec![]),
        (Dealer, Rep) => (json!(["ping"]), texts(&["|pong"])),
        (_, Router) => (json!(["hello", "back", "forth"]), vec![]),
        (Pub, _) => (json!(["temp-1", "for you", "end-1", "for you"]), texts(&["subscribe temp", "cancel temp", "subscribe end"])),
        (Sub, Xpub) => (json!(["\u{1}"]), texts(&["temperature|21.5"])),
        (Sub, _) => (json!([]), texts(&["temperature|21.5"])),
        (Push, _) => (json!(["job"]), vec![]),
        (Pull, _) => (json!([]), (0..100).map(|number| format!("job|{number}")).collect()),
        (Dealer | Router | Pair, _) => (json!(["the same"]), vec![]),
        (Xpub | Xsub, _) => panic!("the library does not speak {own}"),
    }
}

/// Every pairing by every mechanism; libzmq connects, or is connected to.
fn all_exchange(they_bind: bool, test: &str) {
    let Some(python) = python(PYTHON_VARIABLE, "zmq", test) else { return };
    let Some(program) = program(test, &format!("c_socket_{they_bind}")) else { return };
    for mechanism in MECHANISMS {
        // A REQ of libzmq 4.3.5 that asks an authenticator takes no reply, from libzmq itself either.
        let silent = |peer: SocketType| they_bind && peer == Req && !matches!(mechanism, Mechanism::Null);
        let pairings: Vec<_> = PAIRINGS.into_iter().filter(|&(_, peer, _)| !silent(peer)).collect();
        let names: Vec<&str> = pairings.iter().map(|&(_, _, name)| name).collect();
        let listening: Vec<(CSocket, u16)> =
            pairings.iter().filter(|_| !they_bind).map(|&(own, _, _)| CSocket::listens(&program, own, &ours(mechanism))).collect();
        let ports: Vec<u16> = listening.iter().map(|&(_, port)| port).collect();
        let settings = json!({"bind": they_bind, "ports": ports, "sockets": names, "security": mechanism.peer()});
        let mut peer = Peer::start(&python, &settings);
        let mut listening = listening.into_iter();
        for (own, other, name) in pairings {
            let mut socket = match listening.next() {
                Some((socket, _)) => socket,
                None => {
                    let port = u16::try_from(peer.said().as_u64().expect("a port")).expect("a port");
                    CSocket::connects(&program, own, &ours(mechanism), ([127, 0, 0, 1], port).into())
                }
            };
            assert_eq!(socket.hear(), Told::Ready, "{mechanism:?}, {own} to {name}");
            let told = exchange(&mut socket, own, other);
            drop(socket);
            assert_eq!((peer.said(), told), expected(own, other), "{mechanism:?}, {own} to {name}");
        }
        peer.end();
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn every_pairing_of_the_c_library_and_pyzmq_talks_if_pyzmq_connects() {
    all_exchange(false, "every_pairing_of_the_c_library_and_pyzmq_talks_if_pyzmq_connects");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn every_pairing_of_the_c_library_and_pyzmq_talks_if_pyzmq_is_connected_to() {
    all_exchange(true, "every_pairing_of_the_c_library_and_pyzmq_talks_if_pyzmq_is_connected_to");
}
