//! ZMTP and libzmq, by pyzmq: every socket type and mechanism, whoever connects; signs of life; who may not come in.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bodkin_zmtp::{ClientSecurity, ConnectionError, KeyPair, PlainCredentials, SecretKey, ServerSecurity, SocketType};
use serde_json::{Value, json};

use crate::program::python;
use crate::support::link::{Heard, Link};
use crate::support::patience::eventually_some;

/// Names the Python that `./x test --all` has installed pyzmq for.
pub const PYTHON_VARIABLE: &str = "BODKIN_PYZMQ";
const CONNECTIONS: usize = 20;

#[derive(Clone, Copy, Debug)]
pub enum Mechanism {
    Null,
    Plain,
    Curve,
}

pub const MECHANISMS: [Mechanism; 3] = [Mechanism::Null, Mechanism::Plain, Mechanism::Curve];

/// The same pair for the same octet, and its secret key in Z85.
pub fn keys(octet: u8) -> (Arc<KeyPair>, String) {
    let secret = SecretKey::from_bytes(&mut [octet; 32]);
    let text = secret.to_z85().to_string();
    (Arc::new(KeyPair::new(secret)), text)
}

impl Mechanism {
    fn server(self) -> ServerSecurity {
        match self {
            Self::Null => ServerSecurity::Null,
            Self::Plain => ServerSecurity::Plain,
            Self::Curve => ServerSecurity::Curve(keys(1).0),
        }
    }

    /// As a client of a peer that binds, with this password.
    fn client(self, password: &str) -> ClientSecurity {
        match self {
            Self::Null => ClientSecurity::Null,
            Self::Plain => ClientSecurity::Plain(PlainCredentials::new(b"admin", password.as_bytes()).expect("short ones")),
            Self::Curve => ClientSecurity::Curve { own: keys(1).0, server: keys(2).0.public().clone() },
        }
    }

    /// As the peer is told it.
    pub fn peer(self) -> Value {
        match self {
            Self::Null => json!({"mechanism": "NULL"}),
            Self::Plain => json!({"mechanism": "PLAIN", "username": "admin", "password": "secret"}),
            Self::Curve => {
                let (own, secret) = keys(2);
                json!({"mechanism": "CURVE", "public": own.public().to_string(), "secret": secret, "server": keys(1).0.public().to_string()})
            }
        }
    }

    /// What shows who the peer is, when it connects.
    fn shown(self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Plain => Some("admin secret".into()),
            Self::Curve => Some(keys(2).0.public().to_string()),
        }
    }
}

/// The peer's process, and where it connects to.
struct Peer {
    process: Child,
    lines: BufReader<ChildStdout>,
    listener: TcpListener,
}

impl Peer {
    fn start(python: &str, bind: bool, security: Value, sockets: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let settings = json!({"bind": bind, "port": port, "sockets": sockets, "security": security});
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/zmtp/peer.py");
        let mut command = Command::new(python);
        command.arg(script).arg(settings.to_string()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("Python starts");
        let lines = BufReader::new(process.stdout.take().expect("its output is piped"));
        Self { process, lines, listener }
    }

    #[track_caller]
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("its output is text");
        assert!(!line.is_empty(), "the peer has ended");
        line.trim().to_owned()
    }

    /// What the exchange that has ended received.
    #[track_caller]
    fn received(&mut self) -> Value {
        serde_json::from_str(&self.line()).expect("a line of JSON")
    }

    fn accept(&self) -> TcpStream {
        self.listener.set_nonblocking(true).expect("a listener can be set so");
        let (stream, _) = eventually_some(|| self.listener.accept().ok()).expect("the peer connects");
        stream.set_nonblocking(false).expect("a stream can be set so");
        stream
    }

    /// A connection that the peer begins.
    fn as_server(&self, mechanism: Mechanism) -> Link {
        Link::server(self.accept(), mechanism.server())
    }

    /// The same, where the peer has shown who it is and may come in.
    #[track_caller]
    fn let_in(&self, mechanism: Mechanism) -> Link {
        let mut link = self.as_server(mechanism);
        if let Some(shown) = mechanism.shown() {
            assert_eq!(link.hear(), Ok(Some(Heard::Authenticate(shown))));
            link.allow();
        }
        link
    }

    /// A connection to the peer, which binds.
    fn as_client(&mut self, mechanism: Mechanism, password: &str, socket_type: SocketType) -> Link {
        let port: u16 = self.line().parse().expect("a port");
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the peer listens");
        Link::client(stream, socket_type, mechanism.client(password))
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

/// Our side of the exchange with a peer of this type, until the peer leaves or we have what we wanted. What was remarkable of it.
fn exchange(link: &mut Link, peer: SocketType) -> Vec<String> {
    use SocketType::*;
    match peer {
        Rep => link.say(&[b"", b"ping"]),
        Router => link.say(&[b"hello"]),
        Pub | Xpub => link.subscribe(b""),
        Pull => link.say(&[b"job"]),
        _ => {}
    }
    let mut told = Vec::new();
    while let Some(heard) = link.hear().expect("a peer without fault") {
        match heard {
            Heard::Message(frames) if matches!(peer, Req | Dealer | Router | Pair) => link.say_all(&frames),
            Heard::Message(frames) => {
                let frames: Vec<String> = frames.iter().map(|frame| String::from_utf8_lossy(frame).into_owned()).collect();
                told.push(frames.join("|"));
                if matches!(peer, Pub | Xpub) {
                    break;
                }
            }
            Heard::Subscribe(prefix) => {
                link.say(&[&[&prefix[..], b"-1"].concat(), b"for you"]);
                told.push(format!("subscribe {}", String::from_utf8_lossy(&prefix)));
            }
            Heard::Cancel(prefix) => told.push(format!("cancel {}", String::from_utf8_lossy(&prefix))),
            other => panic!("{other:?} from {peer}"),
        }
    }
    told
}

/// What a peer of this type receives in its exchange, and what we note.
fn expected(peer: SocketType) -> (Value, Vec<String>) {
    use SocketType::*;
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    match peer {
        Req => (json!(["ping"]), vec![]),
        Rep => (json!(["ping"]), texts(&["|pong"])),
        Dealer | Pair => (json!(["the same"]), vec![]),
        Router => (json!(["hello", "back", "forth"]), vec![]),
        Pub => (json!([]), texts(&["temperature|21.5"])),
        Xpub => (json!(["\u{1}"]), texts(&["temperature|21.5"])),
        Sub | Xsub => (json!(["temp-1", "for you", "end-1", "for you"]), texts(&["subscribe temp", "cancel temp", "subscribe end"])),
        Push => (json!([]), (0..100).map(|number| format!("job|{number}")).collect()),
        Pull => (json!(["job"]), vec![]),
    }
}

/// Every socket type in its exchange, by every mechanism.
fn all_exchange(bind: bool, test: &str) {
    let Some(python) = python(PYTHON_VARIABLE, "zmq", test) else { return };
    for mechanism in MECHANISMS {
        // A REQ of libzmq 4.3.5 that asks an authenticator takes no reply, from libzmq itself either.
        let silent = |socket_type: &SocketType| bind && *socket_type == SocketType::Req && !matches!(mechanism, Mechanism::Null);
        let socket_types: Vec<SocketType> = SocketType::ALL.into_iter().filter(|socket_type| !silent(socket_type)).collect();
        let names: Vec<&str> = socket_types.iter().map(|socket_type| socket_type.name()).collect();
        let mut peer = Peer::start(&python, bind, mechanism.peer(), &names);
        for socket_type in socket_types {
            let mut link = if bind { peer.as_client(mechanism, "secret", socket_type.counterpart()) } else { peer.let_in(mechanism) };
            assert_eq!(link.hear(), Ok(Some(Heard::Ready(socket_type))), "{mechanism:?}");
            let told = exchange(&mut link, socket_type);
            drop(link);
            assert_eq!((peer.received(), told), expected(socket_type), "{mechanism:?} {socket_type}");
        }
        peer.end();
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn every_socket_type_of_libzmq_connects_by_every_mechanism() {
    all_exchange(false, "every_socket_type_of_libzmq_connects_by_every_mechanism");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn every_socket_type_of_libzmq_is_connected_to_by_every_mechanism() {
    all_exchange(true, "every_socket_type_of_libzmq_is_connected_to_by_every_mechanism");
}

/// libzmq drops a connection whose first message comes before its READY is out; ours waits for that.
#[test]
#[ignore = "peer: ./x test --all"]
fn no_message_is_lost_at_the_beginning() {
    let Some(python) = python(PYTHON_VARIABLE, "zmq", "no_message_is_lost_at_the_beginning") else { return };
    let mut peer = Peer::start(&python, true, Mechanism::Null.peer(), &["ROUTER"; CONNECTIONS]);
    for _ in 0..CONNECTIONS {
        let mut link = peer.as_client(Mechanism::Null, "", SocketType::Dealer);
        assert_eq!(link.hear(), Ok(Some(Heard::Ready(SocketType::Router))));
        assert!(exchange(&mut link, SocketType::Router).is_empty());
        assert_eq!(peer.received(), json!(["hello", "back", "forth"]));
    }
    peer.end();
}

#[test]
#[ignore = "peer: ./x test --all"]
fn both_ends_give_signs_of_life() {
    let Some(python) = python(PYTHON_VARIABLE, "zmq", "both_ends_give_signs_of_life") else { return };
    for mechanism in MECHANISMS {
        let mut peer = Peer::start(&python, false, mechanism.peer(), &["heartbeat"]);
        let mut link = peer.let_in(mechanism);
        let (mut pings, mut pongs) = (0, 0);
        while let Some(heard) = link.hear().expect("a peer without fault") {
            match heard {
                Heard::Ready(_) => link.ping(Duration::from_secs(5), b"ctx!"),
                Heard::Ping(ttl) => {
                    assert_eq!(ttl, Duration::from_secs(5));
                    pings += 1;
                    if pings == 5 {
                        link.say(&[b"end"]);
                    }
                }
                Heard::Pong(context) => {
                    assert_eq!(context, b"ctx!");
                    pongs += 1;
                }
                Heard::Message(frames) if frames == [b"begin"] => {}
                Heard::Message(frames) => link.say_all(&frames),
                other => panic!("{other:?}"),
            }
        }
        assert!(pings >= 5 && pongs == 1, "{mechanism:?}: {pings} pings, {pongs} pongs");
        assert_eq!(peer.received(), json!(["end", "still here"]), "{mechanism:?}");
        peer.end();
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn who_may_not_come_in_learns_it() {
    let Some(python) = python(PYTHON_VARIABLE, "zmq", "who_may_not_come_in_learns_it") else { return };
    // As a client of PLAIN libzmq 4.3.5 looks for an ERROR of another spelling, but it does stop.
    for (mechanism, outcome) in [(Mechanism::Plain, "not understood"), (Mechanism::Curve, "refused")] {
        let mut peer = Peer::start(&python, false, mechanism.peer(), &["failure"]);
        let mut link = peer.as_server(mechanism);
        assert!(matches!(link.hear(), Ok(Some(Heard::Authenticate(_)))));
        link.refuse("400");
        assert_eq!(peer.received()[0], outcome, "{mechanism:?}");
        peer.end();
    }

    // The other way round: a name that is none of libzmq's.
    let mut peer = Peer::start(&python, true, Mechanism::Plain.peer(), &["failure"]);
    let mut link = peer.as_client(Mechanism::Plain, "wrong", SocketType::Dealer);
    assert_eq!(link.hear(), Err(ConnectionError::Told { reason: "400".into() }));
    assert_eq!(peer.received(), json!(["refused", "400"]));
    peer.end();

    // A server whose key is another one does not understand what is sealed for that.
    let mut security = Mechanism::Curve.peer();
    security["server"] = json!(keys(3).0.public().to_string());
    let mut peer = Peer::start(&python, false, security, &["failure"]);
    let mut link = peer.as_server(Mechanism::Curve);
    assert_eq!(link.hear(), Err(ConnectionError::Forged { command: "HELLO" }));
    link.leave();
    assert_eq!(peer.received()[0], "cut off");
    peer.end();
}
