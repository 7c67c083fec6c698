//! ZMTP from the client's end.

use std::sync::Arc;

use anyhow::bail;
use bodkin_zmtp::{ClientSecurity, ClientSettings, Connection, Event, Limits, Metadata, Random, SocketType};

use super::dialect::{Dialect, End, Heard};

/// One connection by the mechanism NULL.
pub struct Zmtp {
    /// `None` until it has begun.
    connection: Option<Connection>,
    settings: Arc<ClientSettings>,
}

impl Zmtp {
    /// A socket of the plain kind for this end.
    pub fn of(end: End) -> Self {
        let socket_type = match end {
            End::Publisher => SocketType::Pub,
            End::Subscriber => SocketType::Sub,
        };
        Self::with(Metadata::of(socket_type))
    }

    /// A DEALER of this name.
    ///
    /// # Errors
    /// The name cannot be an identity.
    pub fn dealer(name: &str) -> anyhow::Result<Self> {
        Ok(Self::with(Metadata::of(SocketType::Dealer).with("Identity", name.as_bytes())?))
    }

    fn with(metadata: Metadata) -> Self {
        let settings = Arc::new(ClientSettings { limits: Limits::default(), metadata, security: ClientSecurity::Null });
        Self { connection: None, settings }
    }

    /// Sends a message of these frames.
    ///
    /// # Panics
    /// The handshake is not over.
    pub fn message(&mut self, frames: &[&[u8]], out: &mut Vec<u8>) {
        self.connection().sender().expect("the handshake is over").message(frames, out);
    }

    fn connection(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("it was opened")
    }
}

impl Dialect for Zmtp {
    fn open(&mut self, out: &mut Vec<u8>) {
        // NULL needs nothing that nobody can guess.
        let random = Random::new(&mut [0; Random::OCTETS]);
        self.connection = Some(Connection::client(Arc::clone(&self.settings), random, out));
    }

    fn subscribe(&mut self, topic: &str, out: &mut Vec<u8>) {
        self.connection().sender().expect("the handshake is over").subscribe(topic.as_bytes(), out);
    }

    fn settle(&mut self, out: &mut Vec<u8>) {
        self.connection().sender().expect("the handshake is over").ping(std::time::Duration::ZERO, b"settled", out);
    }

    fn publish(&mut self, topic: &str, payload: &[u8], out: &mut Vec<u8>) {
        self.message(&[topic.as_bytes(), payload], out);
    }

    fn receive(&mut self, input: &mut [u8], out: &mut Vec<u8>, heard: &mut dyn FnMut(Heard<'_>)) -> anyhow::Result<usize> {
        let Some(connection) = &mut self.connection else { bail!("nothing can come before it was opened") };
        let mut taken = 0;
        loop {
            let received = connection.receive(&mut input[taken..], out)?;
            taken += received.taken;
            match received.event {
                None => return Ok(taken),
                Some(Event::Ready) => heard(Heard::Ready),
                Some(Event::Pong { .. }) => heard(Heard::Settled),
                Some(Event::Message(message)) => heard(Heard::Message(message)),
                // Subscriptions concern who has several subscribers, and pings are answered already.
                Some(Event::Authenticate(_) | Event::Subscribe(_) | Event::Cancel(_) | Event::Ping { .. }) => {}
            }
        }
    }
}

/// The payload of an event as a subscriber gets it.
pub fn payload<'b>(heard: &Heard<'b>) -> Option<&'b [u8]> {
    match heard {
        Heard::Event(payload) => Some(payload),
        Heard::Message(message) if message.frame_count() > 1 => message.frames().nth(1),
        _ => None,
    }
}
