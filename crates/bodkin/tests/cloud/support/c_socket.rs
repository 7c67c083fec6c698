//! A socket of the C library in a process of its own (`zmtp-c/test/socket.c`), which does as it is told and tells what it hears.

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use bodkin_zmtp::{KeyPair, PublicKey, SocketType};

use super::c_program::{BY_CURVE, built, has_sodium};

/// The program, with CURVE; nothing without libsodium, which is noted.
pub fn program(test: &str, name: &str) -> Option<PathBuf> {
    has_sodium(test).then(|| built("test/socket.c", name, &BY_CURVE))
}

/// How a socket and its peer know each other.
#[derive(Clone)]
pub enum Mechanism {
    Null,
    /// "admin" with the password "secret".
    Plain,
    /// The socket's own keys, and its peer's public one.
    Curve {
        own: Arc<KeyPair>,
        peer: PublicKey,
    },
}

/// What a socket tells.
#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    Ready,
    Heard(Vec<Vec<u8>>),
    Subscribed(Vec<u8>),
    Cancelled(Vec<u8>),
    /// The connection is over, and why.
    Ended(String),
}

/// The process; killed when dropped.
pub struct CSocket {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl CSocket {
    /// One that connects to this address.
    pub fn connects(program: &Path, socket_type: SocketType, mechanism: &Mechanism, address: SocketAddr) -> Self {
        Self::start(program, socket_type, mechanism, "connect", address)
    }

    /// One that listens, and its port.
    pub fn listens(program: &Path, socket_type: SocketType, mechanism: &Mechanism) -> (Self, u16) {
        let mut socket = Self::start(program, socket_type, mechanism, "listen", ([127, 0, 0, 1], 0).into());
        let line = socket.line();
        let port = line.strip_prefix("port ").and_then(|port| port.parse().ok()).expect("its port");
        (socket, port)
    }

    fn start(program: &Path, socket_type: SocketType, mechanism: &Mechanism, role: &str, address: SocketAddr) -> Self {
        let mut command = Command::new(program);
        let mechanism_name = match mechanism {
            Mechanism::Null => "null",
            Mechanism::Plain => "plain",
            Mechanism::Curve { own, peer } => {
                command.env("BODKIN_SECRET_KEY", own.secret().to_z85().as_str());
                command.env("BODKIN_SERVER_KEY", peer.to_string()).env("BODKIN_CLIENT_KEY", peer.to_string());
                "curve"
            }
        };
        command.args([number(socket_type), mechanism_name, role, &address.ip().to_string(), &address.port().to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the socket starts");
        let input = child.stdin.take().expect("it is piped");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self { child, input, lines }
    }

    #[track_caller]
    fn line(&mut self) -> String {
        self.lines.next().expect("the socket has ended").expect("text")
    }

    /// Sends a message, as soon as it may.
    #[track_caller]
    pub fn say(&mut self, frames: &[&[u8]]) {
        let words: String = frames.iter().map(|frame| format!(" {}", digits(frame))).collect();
        writeln!(self.input, "send{words}").expect("the socket reads");
    }

    #[track_caller]
    pub fn say_all(&mut self, frames: &[Vec<u8>]) {
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        self.say(&frames);
    }

    #[track_caller]
    pub fn subscribe(&mut self, prefix: &[u8]) {
        writeln!(self.input, "subscribe {}", digits(prefix)).expect("the socket reads");
    }

    #[track_caller]
    pub fn hear(&mut self) -> Told {
        let line = self.line();
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let frames = || rest.split(' ').map(octets).collect::<Vec<_>>();
        match word {
            "ready" => Told::Ready,
            "heard" => Told::Heard(frames()),
            "subscribed" => Told::Subscribed(octets(rest)),
            "cancelled" => Told::Cancelled(octets(rest)),
            "ended" => Told::Ended(rest.to_owned()),
            _ => panic!("{line:?} is nothing that a socket tells"),
        }
    }

    /// The next message.
    #[track_caller]
    pub fn message(&mut self) -> Vec<Vec<u8>> {
        match self.hear() {
            Told::Heard(frames) => frames,
            other => panic!("a message was expected, came {other:?}"),
        }
    }
}

impl Drop for CSocket {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As the library numbers its types (`zmtp_type_t`).
fn number(socket_type: SocketType) -> &'static str {
    match socket_type {
        SocketType::Req => "0",
        SocketType::Rep => "1",
        SocketType::Dealer => "2",
        SocketType::Router => "3",
        SocketType::Pub => "4",
        SocketType::Sub => "5",
        SocketType::Push => "6",
        SocketType::Pull => "7",
        SocketType::Pair => "8",
        SocketType::Xpub | SocketType::Xsub => panic!("the library speaks to {socket_type}, and does not speak it"),
    }
}

fn digits(octets: &[u8]) -> String {
    if octets.is_empty() { "-".to_owned() } else { octets.iter().map(|octet| format!("{octet:02x}")).collect() }
}

fn octets(digits: &str) -> Vec<u8> {
    let digits = digits.trim_start_matches('-');
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits")).collect()
}
