//! Plain TLS through as many hops as a tunnel has: forwarders that do nothing but read from one TLS connection and write to the next, each a thread.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, anyhow};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

use super::provider::PIECE_BYTES;
use super::secured::Secured;

/// Longest silence of both ends of a forwarder.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Forwarders for one connection.
pub struct Chain {
    address: SocketAddr,
    forwarders: Vec<JoinHandle<io::Result<()>>>,
}

impl Chain {
    /// So many, of which the last one connects to `provider`; with none that is the way.
    ///
    /// # Errors
    /// One cannot listen.
    pub fn start(
        forwarders: usize,
        provider: SocketAddr,
        serving: &Arc<ServerConfig>,
        calling: &Arc<ClientConfig>,
    ) -> anyhow::Result<Self> {
        let mut chain = Self { address: provider, forwarders: Vec::with_capacity(forwarders) };
        for _ in 0..forwarders {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("a forwarder cannot listen")?;
            let next = std::mem::replace(&mut chain.address, listener.local_addr()?);
            let (serving, calling) = (Arc::clone(serving), Arc::clone(calling));
            let forwarder = thread::Builder::new().name("forwarder".into());
            chain.forwarders.push(forwarder.spawn(move || forward(&listener, next, serving, calling))?);
        }
        Ok(chain)
    }

    /// Where the consumer connects.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until all have ended, which they do behind the consumer.
    ///
    /// # Errors
    /// One failed.
    pub fn end(self) -> anyhow::Result<()> {
        for forwarder in self.forwarders {
            forwarder.join().map_err(|_| anyhow!("a forwarder panicked"))?.context("a forwarder failed")?;
        }
        Ok(())
    }
}

fn forward(listener: &TcpListener, next: SocketAddr, serving: Arc<ServerConfig>, calling: Arc<ClientConfig>) -> io::Result<()> {
    let from = listener.accept()?.0;
    let to = std::net::TcpStream::connect(next)?;
    let mut poll = Poll::new()?;
    let watched = |index, socket: std::net::TcpStream| {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let mut socket = TcpStream::from_std(socket);
        poll.registry().register(&mut socket, Token(index), Interest::READABLE | Interest::WRITABLE)?;
        Ok::<_, io::Error>(socket)
    };
    let (from, to) = (watched(0, from)?, watched(1, to)?);
    let server = ServerConnection::new(serving).map_err(io::Error::other)?;
    let client = ClientConnection::new(calling, ServerName::IpAddress(next.ip().into())).map_err(io::Error::other)?;
    let mut ends = [Secured::new(from, server), Secured::new(to, client)];
    let mut ways = [Way::default(), Way::default()];
    let mut events = Events::with_capacity(2);
    loop {
        let [there, back] = &mut ways;
        let [from, to] = &mut ends;
        // What one way does may be what the other waits for: they share both sessions.
        while there.go(from, to)? | back.go(to, from)? {}
        if there.is_over() || back.is_over() {
            return Ok(());
        }
        match poll.poll(&mut events, Some(SILENCE_MAX)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            polled => polled?,
        }
        if events.is_empty() {
            return Err(ErrorKind::TimedOut.into());
        }
    }
}

/// One way, and what of it waits to be written.
struct Way {
    piece: Box<[u8]>,
    written: usize,
    filled: usize,
    has_ended: bool,
}

impl Default for Way {
    fn default() -> Self {
        Self { piece: vec![0; PIECE_BYTES].into_boxed_slice(), written: 0, filled: 0, has_ended: false }
    }
}

impl Way {
    /// Moves bytes as far as both sockets let it; true if any moved.
    fn go(&mut self, from: &mut Secured<TcpStream>, to: &mut Secured<TcpStream>) -> io::Result<bool> {
        let mut has_moved = false;
        while !self.is_over() {
            let moved = if self.written < self.filled {
                to.write(&self.piece[self.written..self.filled]).map(|length| self.written += length)
            } else {
                from.read(&mut self.piece).map(|length| (self.written, self.filled, self.has_ended) = (0, length, length == 0))
            };
            match moved {
                Ok(()) => has_moved = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(has_moved),
                Err(error) => return Err(error),
            }
        }
        // Whoever reads there shall see the end.
        let _ = to.end();
        Ok(has_moved)
    }

    fn is_over(&self) -> bool {
        self.has_ended && self.written == self.filled
    }
}
