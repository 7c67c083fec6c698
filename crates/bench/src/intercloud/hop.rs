//! What the relay adds to a message: there and back between two of its guests, beside the same over one TLS connection. There and back are two hops.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use bodkin_relay::Destination;
use bodkin_relay::native;
use bodkin_relay::session::{Event, Session};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

use super::neighbors::Neighbors;
use super::provider::PIECE_BYTES;
use super::secured::Secured;
use super::tunnels::{HOSTS, config};
use crate::client::ANSWER_WAIT_MAX;
use crate::load::Measured;
use crate::report::Outcome;
use crate::statistics::{Figure, Latencies, Unit};

/// Lengths of messages: a short one, a sealed question of a Gatekeeper, a sealed kilobyte of a tunnel, a long one.
pub const LENGTHS: [usize; 4] = [100, 2_500, 10_000, 100_000];
/// The system that sends back without a relay.
const ECHO: &str = "tunnel-echo";
/// Messages that are not counted.
const WARM_UP: u32 = 200;
/// What a client of the own relay offers in the TLS handshake.
const PROTOCOL: &[u8] = b"bodkin-relay/1";
/// The one listener of a guest.
const LISTENER: u64 = 1;

/// Whom the relay lets in, and what its messages are compared with.
pub struct Hop {
    /// Where the relay is.
    pub relay: SocketAddr,
    /// As whom both guests come.
    pub calling: Arc<ClientConfig>,
    /// What the other end of the plain connection serves with, and is called with.
    pub plain: (Arc<ServerConfig>, Arc<ClientConfig>),
}

impl Hop {
    /// At the relay of two clouds: as the operator of the one that has it.
    ///
    /// # Errors
    /// There is no relay, or certificates cannot be made.
    pub fn at(neighbors: &Neighbors) -> anyhow::Result<Self> {
        let certificates = neighbors.with_relay().certificates.as_ref().context("the cloud has no certificates")?;
        certificates.issue_at([ECHO].into_iter(), HOSTS)?;
        let plain = (certificates.serving(ECHO)?, config(certificates.caller(ECHO)?)?);
        Ok(Self { relay: neighbors.relay()?, calling: config(certificates.operator()?)?, plain })
    }

    /// Measures messages of a length.
    ///
    /// # Errors
    /// The relay lets nobody in, or a connection breaks.
    pub fn measure(&self, length: usize, count: u32, outcome: &mut Outcome) -> anyhow::Result<()> {
        let (through, without) = (self.through(length, count)?, self.without(length, count)?);
        let added = (through.percentile(50.0, Unit::Us) - without.percentile(50.0, Unit::Us)) / 2.0;
        let mut figures = through.figures("relay_", Unit::Us, &[50.0, 99.0]);
        figures.extend(without.figures("plain_", Unit::Us, &[50.0, 99.0]));
        figures.push(Figure::median("hop_p50_us", added));
        outcome.push(figures, Measured { latencies: through, ..Measured::default() });
        Ok(())
    }

    fn through(&self, length: usize, count: u32) -> anyhow::Result<Latencies> {
        let queue = |name: &str| Destination::queue(&format!("{name}-bench-{length}"));
        let (there, back) = (queue("REQ")?, queue("RESP")?);
        let mut answerer = Guest::enter(self, &there)?;
        let mut asker = Guest::enter(self, &back)?;
        let echo: JoinHandle<anyhow::Result<()>> = thread::Builder::new().name("guest".into()).spawn(move || {
            for _ in 0..WARM_UP + count {
                let message = answerer.next()?;
                answerer.send(&back, message)?;
            }
            Ok(())
        })?;
        let (text, mut took) = ("x".repeat(length), Latencies::default());
        for n in 0..WARM_UP + count {
            let sent = Instant::now();
            asker.send(&there, text.clone())?;
            if asker.next()?.len() != length {
                bail!("another message came back from the relay than was sent");
            }
            if n >= WARM_UP {
                took.record(sent.elapsed());
            }
        }
        ended(echo)?;
        Ok(took)
    }

    fn without(&self, length: usize, count: u32) -> anyhow::Result<Latencies> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
        let address = listener.local_addr()?;
        let (serving, calling) = (Arc::clone(&self.plain.0), Arc::clone(&self.plain.1));
        let echo: JoinHandle<anyhow::Result<()>> = thread::Builder::new().name("echo".into()).spawn(move || {
            let mut stream = Secured::new(set_up(listener.accept()?.0)?, ServerConnection::new(serving)?);
            let mut message = vec![0; length];
            for _ in 0..WARM_UP + count {
                stream.read_exact(&mut message)?;
                stream.write_all(&message)?;
                stream.flush()?;
            }
            Ok(())
        })?;
        let session = ClientConnection::new(calling, ServerName::IpAddress(address.ip().into()))?;
        let mut stream = Secured::new(set_up(TcpStream::connect(address)?)?, session);
        stream.handshake()?;
        let (mut message, mut took) = (vec![b'x'; length], Latencies::default());
        for n in 0..WARM_UP + count {
            let sent = Instant::now();
            stream.write_all(&message)?;
            stream.flush()?;
            stream.read_exact(&mut message)?;
            if n >= WARM_UP {
                took.record(sent.elapsed());
            }
        }
        ended(echo)?;
        Ok(took)
    }
}

fn ended(echo: JoinHandle<anyhow::Result<()>>) -> anyhow::Result<()> {
    echo.join().map_err(|_| anyhow!("whoever sends back panicked"))?.context("whoever sends back failed")
}

/// No wait is without an end.
fn set_up(stream: TcpStream) -> std::io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
    stream.set_write_timeout(Some(ANSWER_WAIT_MAX))?;
    Ok(stream)
}

/// A client of the relay that listens to one queue.
struct Guest {
    stream: Secured<TcpStream>,
    session: native::Client,
    began: Instant,
    sent: u64,
    heard: Vec<Event>,
    piece: Box<[u8]>,
}

impl Guest {
    fn enter(hop: &Hop, queue: &Destination) -> anyhow::Result<Self> {
        let mut config = ClientConfig::clone(&hop.calling);
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        let tls = ClientConnection::new(Arc::new(config), ServerName::IpAddress(hop.relay.ip().into()))?;
        let mut stream = Secured::new(set_up(TcpStream::connect(hop.relay).context("the relay takes no connection")?)?, tls);
        stream.handshake().context("the relay lets the operator's certificate not in")?;
        let began = Instant::now();
        let session = native::Client::new(began.elapsed());
        let piece = vec![0; PIECE_BYTES].into_boxed_slice();
        let mut guest = Self { stream, session, began, sent: 0, heard: Vec::new(), piece };
        guest.until(|event| matches!(event, Event::Open))?;
        guest.session.listen(LISTENER, queue);
        guest.until(|event| matches!(event, Event::Listening(_)))?;
        Ok(guest)
    }

    fn send(&mut self, queue: &Destination, text: String) -> anyhow::Result<()> {
        self.sent += 1;
        self.session.send(self.sent, queue, text, self.began.elapsed(), &mut self.heard);
        self.speak()
    }

    /// The next message.
    fn next(&mut self) -> anyhow::Result<String> {
        match self.until(|event| matches!(event, Event::Message { .. }))? {
            Event::Message { listener, text, receipt } => {
                self.session.taken(listener, receipt);
                Ok(text)
            }
            _ => unreachable!("nothing else was waited for"),
        }
    }

    /// Writes what the session has to say.
    fn speak(&mut self) -> anyhow::Result<()> {
        let mut out = Vec::new();
        self.session.take_out(self.began.elapsed(), &mut out, &mut self.heard);
        self.stream.write_all(&out)?;
        Ok(self.stream.flush()?)
    }

    fn until(&mut self, is_it: impl Fn(&Event) -> bool) -> anyhow::Result<Event> {
        loop {
            if let Some(bad) =
                self.heard.iter().find(|event| matches!(event, Event::NotSent { .. } | Event::Over { .. } | Event::NoText(_)))
            {
                bail!("the relay does not do what it is asked for: {bad:?}");
            }
            if let Some(at) = self.heard.iter().position(&is_it) {
                return Ok(self.heard.remove(at));
            }
            self.speak()?;
            match self.stream.read(&mut self.piece).context("the relay says nothing")? {
                0 => bail!("the relay has closed the connection"),
                length => self.session.receive(&self.piece[..length], self.began.elapsed(), &mut self.heard)?,
            }
        }
    }
}
