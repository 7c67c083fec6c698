//! ZMTP connection of a client with short timeouts.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bodkin_zmtp::{ClientSecurity, ClientSettings, Connection, Event, Limits, Message, Metadata, Random, SocketType};

/// Longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_millis(200);
/// Longest wait for the handshake.
const HANDSHAKE_MAX: Duration = Duration::from_millis(500);
/// Silence after which the peer is asked for a sign of life, and after as much again the link ends.
const SILENCE_MAX: Duration = Duration::from_millis(500);
/// Longest wait of one read, so that a client sees the end of the campaign.
const TURN_MAX: Duration = Duration::from_millis(20);
/// Shortest wait of one read: zero would wait without end.
const WAIT_MIN: Duration = Duration::from_millis(1);
const PIECE_BYTES: usize = 16 * 1024;

/// A link to one broker that blocks for at most [`TURN_MAX`].
pub struct ZmtpLink {
    stream: TcpStream,
    connection: Connection,
    out: Vec<u8>,
    kept: Vec<u8>,
    last_heard: Instant,
    is_pinged: bool,
}

impl ZmtpLink {
    /// Connects and does the handshake.
    ///
    /// # Errors
    /// Returns an error if the broker does not accept, refuses the handshake, or does not finish it in time.
    pub fn open(address: SocketAddr, socket_type: SocketType, identity: &str, security: &ClientSecurity) -> anyhow::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, CONNECT_MAX)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(HANDSHAKE_MAX))?;
        stream.set_read_timeout(Some(TURN_MAX))?;
        let metadata = Metadata::of(socket_type);
        let metadata = if identity.is_empty() { metadata } else { metadata.with("Identity", identity.as_bytes())? };
        let settings = Arc::new(ClientSettings { limits: Limits::default(), metadata, security: security.clone() });
        let mut octets = [0; Random::OCTETS];
        File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut octets)).context("cannot read /dev/urandom")?;
        let mut out = Vec::new();
        let connection = Connection::client(settings, Random::new(&mut octets), &mut out);
        let mut link = Self { stream, connection, out, kept: Vec::new(), last_heard: Instant::now(), is_pinged: false };
        link.shake_hands()?;
        Ok(link)
    }

    fn shake_hands(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + HANDSHAKE_MAX;
        let mut is_ready = false;
        while !is_ready {
            ensure!(Instant::now() < deadline, "no handshake within {} ms", HANDSHAKE_MAX.as_millis());
            self.flush()?;
            self.read(&mut |event| is_ready |= *event == Event::Ready)?;
        }
        Ok(())
    }

    /// Sends a message.
    ///
    /// # Errors
    /// Returns an error if the socket does not take the message.
    pub fn send(&mut self, frames: &[&[u8]]) -> anyhow::Result<()> {
        self.connection.sender().expect("the handshake is over").message(frames, &mut self.out);
        self.flush()
    }

    /// Subscribes to event types that begin with `prefix`.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn subscribe(&mut self, prefix: &str) -> anyhow::Result<()> {
        self.connection.sender().expect("the handshake is over").subscribe(prefix.as_bytes(), &mut self.out);
        self.flush()
    }

    /// Reads what has come within [`TURN_MAX`], and requests a sign of life from a silent peer.
    ///
    /// # Errors
    /// Returns an error if the link is closed, broken, or silent for too long.
    pub fn turn(&mut self, mut on_message: impl FnMut(&Message<'_>)) -> anyhow::Result<()> {
        self.read(&mut |event| {
            if let Event::Message(message) = event {
                on_message(message);
            }
        })?;
        let silence = self.last_heard.elapsed();
        ensure!(silence < 2 * SILENCE_MAX, "no sign of life for {} ms", silence.as_millis());
        if silence > SILENCE_MAX && !self.is_pinged {
            self.connection.sender().expect("the handshake is over").ping(Duration::ZERO, b"crash", &mut self.out);
            self.is_pinged = true;
        }
        self.flush()
    }

    /// As [`Self::turn`], and waits no longer than until `deadline`.
    ///
    /// # Errors
    /// As [`Self::turn`].
    pub fn turn_until(&mut self, deadline: Instant, on_message: impl FnMut(&Message<'_>)) -> anyhow::Result<()> {
        let wait = deadline.saturating_duration_since(Instant::now()).clamp(WAIT_MIN, TURN_MAX);
        self.stream.set_read_timeout(Some(wait))?;
        let turn = self.turn(on_message);
        self.stream.set_read_timeout(Some(TURN_MAX))?;
        turn
    }

    fn read(&mut self, on_event: &mut dyn FnMut(&Event<'_>)) -> anyhow::Result<()> {
        let mut piece = [0; PIECE_BYTES];
        match self.stream.read(&mut piece) {
            Ok(0) => bail!("the broker has closed the link"),
            Ok(length) => self.kept.extend_from_slice(&piece[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        (self.last_heard, self.is_pinged) = (Instant::now(), false);
        let mut taken = 0;
        loop {
            let received = self.connection.receive(&mut self.kept[taken..], &mut self.out);
            let received = received.map_err(io::Error::other)?;
            taken += received.taken;
            match received.event {
                None => break,
                Some(event) => on_event(&event),
            }
        }
        self.kept.drain(..taken);
        Ok(())
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }
}
