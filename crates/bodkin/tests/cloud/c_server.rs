//! The client against the server's end of the C library (`zmtp-c/test/broker.c`), by each mechanism.

use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use bodkin_client::realtime::{Brokers, ClientSecurity, KeyPair};
use bodkin_zmtp::{PlainCredentials, SecretKey};

use crate::real_time_client::{Sends, until};
use crate::support::c_program::{BY_CURVE, built, has_sodium};

const EVENTS: u64 = 500;

/// A broker in C; killed when dropped.
struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
}

impl Server {
    fn start(program: &Path, mechanism: &str) -> Self {
        let mut command = Command::new(program);
        command.arg(mechanism).stdout(Stdio::piped());
        command.env("BODKIN_SECRET_KEY", pair(1).secret().to_z85().as_str()).env("BODKIN_CLIENT_KEY", pair(2).public().to_string());
        let mut child = command.spawn().expect("the server starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        let port: u16 = first.strip_prefix("port ").and_then(|port| port.parse().ok()).expect("its port");
        Self { child, lines, address: ([127, 0, 0, 1], port).into() }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("a line").expect("text")
    }

    /// What a client publishes with this security is heard and covered.
    fn covers(mut self, security: ClientSecurity) {
        let (mut sends, topics) = Sends::by(Brokers { security, ..Brokers::one("sensor", self.address) }, &["hot"]);
        for number in 1..=EVENTS {
            sends.publish(topics[0], &number.to_string());
        }
        until("all are covered", || {
            sends.turn();
            sends.covered == [EVENTS]
        });
        assert!((1..=EVENTS).all(|number| self.line() == format!("HOT {number}")));
        assert_eq!(sends.ends, [""; 0]);
    }

    /// Nobody comes in with this security, and either end says why.
    fn refuses(mut self, security: ClientSecurity, why: &str) {
        let (mut sends, _) = Sends::by(Brokers { security, ..Brokers::one("sensor", self.address) }, &["hot"]);
        until("it is refused", || {
            sends.turn();
            !sends.ends.is_empty()
        });
        assert!(sends.ends[0].contains(why), "{:?}", sends.ends);
        assert_eq!(self.line(), format!("ended: {why}"));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The same keys for the same octet.
fn pair(octet: u8) -> Arc<KeyPair> {
    Arc::new(KeyPair::new(SecretKey::from_bytes(&mut [octet; 32])))
}

fn plain(password: &str) -> ClientSecurity {
    ClientSecurity::Plain(PlainCredentials::new(b"admin", password.as_bytes()).expect("short ones"))
}

fn curve(own: u8, server: u8) -> ClientSecurity {
    ClientSecurity::Curve { own: pair(own), server: pair(server).public().clone() }
}

#[test]
fn a_server_in_c_covers_what_is_published_by_null() {
    Server::start(&built("test/broker.c", "c_server_null", &[]), "null").covers(ClientSecurity::Null);
}

#[test]
fn a_server_in_c_covers_what_is_published_by_plain_and_lets_nobody_else_in() {
    let program = built("test/broker.c", "c_server_plain", &[]);
    Server::start(&program, "plain").covers(plain("secret"));
    Server::start(&program, "plain").refuses(plain("guessed"), "the client is not let in");
}

#[test]
fn a_server_in_c_covers_what_is_published_by_curve_and_lets_nobody_else_in() {
    if !has_sodium("a_server_in_c_covers_what_is_published_by_curve_and_lets_nobody_else_in") {
        return;
    }
    let program = built("test/broker.c", "c_server_curve", &BY_CURVE);
    Server::start(&program, "curve").covers(curve(2, 1));
    Server::start(&program, "curve").refuses(curve(3, 1), "the client is not let in");
    // Whoever asks for another server than this one.
    Server::start(&program, "curve").refuses(curve(2, 4), "a box does not open, or its number was used");
}
