//! A connection over TCP, or on a path of this machine, that waits for what it wants, with the protocol of `bodkin_zmtp`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bodkin_zmtp::{
    ClientSecurity, ClientSettings, Connection, ConnectionError, Credentials, Event, Limits, Metadata, Random, ServerSecurity,
    ServerSettings, SocketType,
};

use super::patience::PATIENCE;

const READ_BYTES: usize = 64 * 1024;

/// An event, kept.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// A name and a password, or a key in Z85.
    Authenticate(String),
    Ready(SocketType),
    Message(Vec<Vec<u8>>),
    Subscribe(Vec<u8>),
    Cancel(Vec<u8>),
    Ping(Duration),
    Pong(Vec<u8>),
}

impl Heard {
    fn of(event: Event<'_>) -> Option<Self> {
        Some(match event {
            Event::Authenticate(Credentials::Plain(credentials)) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                Self::Authenticate(format!("{} {}", text(credentials.username()), text(credentials.password())))
            }
            Event::Authenticate(Credentials::Curve(key)) => Self::Authenticate(key.to_string()),
            Event::Ready => return None,
            Event::Message(message) => Self::Message(message.frames().map(<[u8]>::to_vec).collect()),
            Event::Subscribe(prefix) => Self::Subscribe(prefix.to_vec()),
            Event::Cancel(prefix) => Self::Cancel(prefix.to_vec()),
            Event::Ping { ttl } => Self::Ping(ttl),
            Event::Pong { context } => Self::Pong(context.to_vec()),
        })
    }
}

pub struct Link<S = TcpStream> {
    stream: S,
    connection: Connection,
    input: Vec<u8>,
    /// Bytes of the input that are done with.
    taken: usize,
    out: Vec<u8>,
}

/// Keys must not be guessed outside of tests.
fn random(port: u16) -> Random {
    let port = port.to_be_bytes();
    Random::new(&mut std::array::from_fn(|at| port[at % 2] ^ at as u8))
}

impl Link {
    /// The end that was connected to. It takes every socket type.
    pub fn server(stream: TcpStream, security: ServerSecurity) -> Self {
        let settings = ServerSettings { limits: Limits::default(), takes: SocketType::ALL.to_vec(), security };
        let mut out = Vec::new();
        let connection = Connection::server(Arc::new(settings), random(port(&stream)), &mut out);
        Self::new(stream, connection, out)
    }

    /// The end that connects.
    pub fn client(stream: TcpStream, socket_type: SocketType, security: ClientSecurity) -> Self {
        Self::client_with(stream, Metadata::of(socket_type), security)
    }

    /// The end that connects, with these properties.
    pub fn client_with(stream: TcpStream, metadata: Metadata, security: ClientSecurity) -> Self {
        let (connection, out) = client(metadata, security, port(&stream));
        Self::new(stream, connection, out)
    }

    fn new(stream: TcpStream, connection: Connection, out: Vec<u8>) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a stream can be set so");
        stream.set_nodelay(true).expect("a stream can be set so");
        Self { stream, connection, input: Vec::new(), taken: 0, out }
    }
}

impl Link<UnixStream> {
    /// The end that connects to a path, with these properties.
    pub fn on_path(path: &Path, metadata: Metadata, security: ClientSecurity) -> Self {
        let stream = UnixStream::connect(path).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a stream can be set so");
        let (connection, out) = client(metadata, security, 1);
        Self { stream, connection, input: Vec::new(), taken: 0, out }
    }
}

fn port(stream: &TcpStream) -> u16 {
    stream.local_addr().expect("an address").port()
}

/// A client's machine, and what it says first.
fn client(metadata: Metadata, security: ClientSecurity, port: u16) -> (Connection, Vec<u8>) {
    let settings = ClientSettings { limits: Limits::default(), metadata, security };
    let mut out = Vec::new();
    (Connection::client(Arc::new(settings), random(port), &mut out), out)
}

impl<S: Read + Write> Link<S> {
    /// The next event; nothing when the peer has left.
    pub fn hear(&mut self) -> Result<Option<Heard>, ConnectionError> {
        loop {
            let received = self.connection.receive(&mut self.input[self.taken..], &mut self.out);
            let heard = received.map(|received| {
                self.taken += received.taken;
                received.event.map(Heard::of)
            });
            self.flush();
            match heard? {
                Some(Some(heard)) => return Ok(Some(heard)),
                Some(None) => {
                    let peer = self.connection.peer().expect("it is ready");
                    return Ok(Some(Heard::Ready(peer.metadata.socket_type())));
                }
                None if !self.read() => return Ok(None),
                None => {}
            }
        }
    }

    /// Waits for more bytes; false if there will be none.
    fn read(&mut self) -> bool {
        self.input.resize(READ_BYTES, 0);
        self.taken = 0;
        match self.stream.read(&mut self.input) {
            Ok(bytes) => {
                self.input.truncate(bytes);
                bytes > 0
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                self.input.clear();
                false
            }
            Err(error) => panic!("the peer does not go on: {error}"),
        }
    }

    fn flush(&mut self) {
        // A peer that has left is noticed when it is read from.
        let _ = self.stream.write_all(&self.out);
        self.out.clear();
    }

    pub fn allow(&mut self) {
        self.connection.allow(&mut self.out);
        self.flush();
    }

    pub fn refuse(&mut self, reason: &str) {
        self.connection.refuse(reason, &mut self.out);
        self.flush();
    }

    pub fn leave(self) {
        drop(self);
    }

    pub fn say(&mut self, frames: &[&[u8]]) {
        self.connection.sender().expect("the peer is ready").message(frames, &mut self.out);
        self.flush();
    }

    /// Messages that come in one piece.
    pub fn say_together<const N: usize>(&mut self, messages: impl Iterator<Item = [Vec<u8>; N]>) {
        for message in messages {
            self.connection.sender().expect("the peer is ready").message(&message.each_ref().map(Vec::as_slice), &mut self.out);
        }
        self.flush();
    }

    pub fn say_all(&mut self, frames: &[Vec<u8>]) {
        self.say(&frames.iter().map(|frame| &frame[..]).collect::<Vec<_>>());
    }

    /// Bytes that are none of the protocol's, perhaps.
    pub fn say_bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.flush();
    }

    pub fn subscribe(&mut self, prefix: &[u8]) {
        self.connection.sender().expect("the peer is ready").subscribe(prefix, &mut self.out);
        self.flush();
    }

    pub fn cancel(&mut self, prefix: &[u8]) {
        self.connection.sender().expect("the peer is ready").cancel(prefix, &mut self.out);
        self.flush();
    }

    pub fn ping(&mut self, ttl: Duration, context: &[u8]) {
        self.connection.sender().expect("the peer is ready").ping(ttl, context, &mut self.out);
        self.flush();
    }
}
