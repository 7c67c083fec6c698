//! The floors: bare relays, which pass bytes on and decide nothing.
//!
//! [`Relay`] stands between publishers and subscribers. It shakes hands by ZMTP as a broker does, so that both sides are the same programs, and from then on
//! writes whatever bytes a publisher sends to every subscriber, unread. [`Chain`] is one hop of a chain between two sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use anyhow::{Context, bail};
use bodkin_zmtp::{Connection, Event, Limits, Random, ServerSecurity, ServerSettings, SocketType};
use mio::{Events, Interest, Poll, Token};
use serde::{Deserialize, Serialize};

use crate::client::ANSWER_WAIT_MAX;

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;
/// Bytes of one read of a handshake.
const PIECE_BYTES: usize = 4096;

/// What a relay is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RelayOrder {
    /// Subscribers that come first.
    pub subscribers: usize,
    /// Publishers that come then.
    pub publishers: usize,
}

/// A relay that listens.
pub struct Relay {
    order: RelayOrder,
    listener: TcpListener,
}

impl Relay {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// No port is free.
    pub fn listen(order: RelayOrder) -> anyhow::Result<Self> {
        Ok(Self { order, listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("the relay cannot listen")? })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Takes the subscribers, then the publishers, and relays until every publisher has closed its connection.
    ///
    /// # Errors
    /// A connection broke, or a subscriber took nothing for [`ANSWER_WAIT_MAX`].
    pub fn run(self) -> anyhow::Result<()> {
        let mut subscribers = (0..self.order.subscribers).map(|_| self.accept(SocketType::Sub)).collect::<anyhow::Result<Vec<_>>>()?;
        let publishers = (0..self.order.publishers).map(|_| self.accept(SocketType::Pub)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut poll = Poll::new()?;
        let mut open = publishers.len();
        let mut publishers: Vec<_> = publishers.into_iter().map(mio::net::TcpStream::from_std).collect();
        for (index, publisher) in publishers.iter_mut().enumerate() {
            poll.registry().register(publisher, Token(index), Interest::READABLE)?;
        }
        let mut events = Events::with_capacity(open.max(1));
        let mut piece = vec![0; READ_BYTES];
        while open > 0 {
            match poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                let publisher = &mut publishers[event.token().0];
                loop {
                    match publisher.read(&mut piece) {
                        Ok(0) => {
                            // The end of the other direction would be a further event of this socket.
                            poll.registry().deregister(publisher)?;
                            open -= 1;
                            break;
                        }
                        Ok(length) => {
                            for subscriber in &mut subscribers {
                                subscriber.write_all(&piece[..length]).context("a subscriber of the relay takes nothing")?;
                            }
                            if length < piece.len() {
                                break;
                            }
                        }
                        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => break,
                        Err(error) => return Err(error).context("a publisher's connection to the relay broke"),
                    }
                }
            }
        }
        Ok(())
    }

    /// The next peer, its handshake over; of a subscriber, when it has asked whether its subscriptions are served.
    fn accept(&self, takes: SocketType) -> anyhow::Result<TcpStream> {
        let (mut stream, _) = self.listener.accept()?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
        stream.set_write_timeout(Some(ANSWER_WAIT_MAX))?;
        let settings = Arc::new(ServerSettings { limits: Limits::default(), takes: vec![takes], security: ServerSecurity::Null });
        let (mut out, mut piece) = (Vec::new(), vec![0; PIECE_BYTES]);
        let mut zmtp = Connection::server(settings, Random::new(&mut [0; Random::OCTETS]), &mut out);
        let mut is_done = false;
        while !is_done {
            stream.write_all(&out)?;
            out.clear();
            let length = stream.read(&mut piece).context("a peer of the relay does not shake hands")?;
            if length == 0 {
                bail!("a peer of the relay has gone");
            }
            let mut taken = 0;
            loop {
                let received = zmtp.receive(&mut piece[taken..length], &mut out)?;
                taken += received.taken;
                match received.event {
                    None => break,
                    Some(Event::Ready) => is_done |= takes == SocketType::Pub,
                    Some(Event::Ping { .. }) => is_done = true,
                    Some(_) => {}
                }
            }
        }
        stream.write_all(&out)?;
        stream.set_nonblocking(takes == SocketType::Pub)?;
        Ok(stream)
    }
}

/// One hop of a chain that listens: what comes from the one who connects goes on to `next`, what comes back from there goes back. Without a `next` what comes goes back.
pub struct Chain {
    listener: TcpListener,
    next: Option<SocketAddr>,
}

impl Chain {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// No port is free.
    pub fn listen(next: Option<SocketAddr>) -> anyhow::Result<Self> {
        Ok(Self { listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("a hop cannot listen")?, next })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Passes on until the one who has connected is gone. One thread and one poll, as a broker's shard has.
    ///
    /// # Errors
    /// A connection broke.
    pub fn run(self) -> anyhow::Result<()> {
        let (near, _) = self.listener.accept()?;
        let far = self.next.map(TcpStream::connect).transpose()?;
        let mut streams = Vec::new();
        let mut poll = Poll::new()?;
        for (index, stream) in std::iter::once(near).chain(far).enumerate() {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = mio::net::TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(index), Interest::READABLE)?;
            streams.push(stream);
        }
        let mut events = Events::with_capacity(streams.len());
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                let from = event.token().0;
                match streams[from].read(&mut piece) {
                    Ok(0) => return Ok(()),
                    Ok(length) => {
                        let to = streams.len() - 1 - from;
                        streams[to].write_all(&piece[..length]).context("a hop takes nothing")?;
                    }
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                    Err(error) => return Err(error).context("a hop's connection broke"),
                }
            }
        }
    }
}
