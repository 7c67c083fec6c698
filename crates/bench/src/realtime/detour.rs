//! A relay on the way between brokers and a subscriber in the cloud, which passes bytes on when they would have [arrived](super::cloud_latency).

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use anyhow::Context;
use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use serde::{Deserialize, Serialize};

use super::cloud_latency::OnTheWay;
use super::timer::Timer;
use crate::event::payload::monotonic_ns;

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;
/// Bytes on their way in one direction of a connection; beyond, no more are read, so that the sender waits.
const ON_THE_WAY_BYTES_MAX: usize = 16 << 20;
/// Connections that are open at the same time; one more is closed.
const CONNECTIONS_MAX: usize = 64;

const END: Token = Token(0);
const TIMER: Token = Token(1);
const LISTENERS: usize = 2;

/// What a detour is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DetourOrder {
    /// Where its connections go, each by a port of its own.
    pub brokers: Vec<SocketAddr>,
}

/// A detour that listens.
pub struct Detour {
    brokers: Vec<SocketAddr>,
    listeners: Vec<TcpListener>,
}

/// One direction of a connection.
#[derive(Default)]
struct Direction {
    way: OnTheWay,
    may_read: bool,
}

/// A subscriber's connection and the one that it is passed on by.
struct Passage {
    ends: [TcpStream; 2],
    /// From the first end to the second one, and back.
    directions: [Direction; 2],
}

impl Detour {
    /// Listens on a free port of 127.0.0.1 for each broker.
    ///
    /// # Errors
    /// No port is free.
    pub fn listen(order: DetourOrder) -> anyhow::Result<Self> {
        let listen = |_: &SocketAddr| TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into()).context("the detour cannot listen");
        let listeners = order.brokers.iter().map(listen).collect::<anyhow::Result<_>>()?;
        Ok(Self { brokers: order.brokers, listeners })
    }

    /// Where it listens, in the order of the brokers.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn addresses(&self) -> anyhow::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(|listener| Ok(listener.local_addr()?)).collect()
    }

    /// Passes bytes on until there is something to read from `end`, or it ends. One that one end has closed is closed at the other, and what was on its way is lost.
    ///
    /// # Errors
    /// The system gives no poll, or takes no connection.
    pub fn run(mut self, end: impl AsFd) -> anyhow::Result<()> {
        let mut poll = Poll::new()?;
        poll.registry().register(&mut SourceFd(&end.as_fd().as_raw_fd()), END, Interest::READABLE)?;
        for (at, listener) in self.listeners.iter_mut().enumerate() {
            poll.registry().register(listener, Token(LISTENERS + at), Interest::READABLE)?;
        }
        let mut timer = Timer::new(poll.registry(), TIMER)?;
        let first_passage = LISTENERS + self.listeners.len();
        let mut passages: Vec<Option<Passage>> = Vec::new();
        let mut events = Events::with_capacity(CONNECTIONS_MAX);
        let (mut piece, start_ns) = (vec![0; READ_BYTES], monotonic_ns());
        loop {
            match poll.poll(&mut events, None) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                match event.token() {
                    END => return Ok(()),
                    TIMER => {}
                    Token(token) if token < first_passage => {
                        while let Some(passage) = self.accept(token - LISTENERS)? {
                            enter(passage, &mut passages, poll.registry(), first_passage)?;
                        }
                    }
                    Token(token) => {
                        let (at, end) = ((token - first_passage) / 2, (token - first_passage) % 2);
                        if let Some(Some(passage)) = passages.get_mut(at) {
                            passage.directions[end].may_read |= event.is_readable() || event.is_read_closed();
                        }
                    }
                }
            }
            let now_ns = monotonic_ns() - start_ns;
            for place in &mut passages {
                if place.as_mut().is_some_and(|passage| passage.pass(now_ns, &mut piece).is_err()) {
                    *place = None;
                }
            }
            if let Some(next_ns) = passages.iter().flatten().filter_map(|passage| passage.next_ns(now_ns)).min() {
                timer.ring_at(start_ns + next_ns)?;
            }
        }
    }

    /// The next connection to a listener with its other end; `None`: there is none at present.
    fn accept(&self, listener: usize) -> anyhow::Result<Option<Passage>> {
        let near = match self.listeners[listener].accept() {
            Ok((near, _)) => near,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error).context("the detour takes no connection"),
        };
        near.set_nodelay(true)?;
        let far = TcpStream::connect(self.brokers[listener])?;
        Ok(Some(Passage { ends: [near, far], directions: Default::default() }))
    }
}

/// Gives a passage a place, if there is one.
fn enter(mut passage: Passage, passages: &mut Vec<Option<Passage>>, registry: &mio::Registry, first_token: usize) -> anyhow::Result<()> {
    let place = passages.iter().position(Option::is_none).unwrap_or(passages.len());
    if place == CONNECTIONS_MAX {
        return Ok(());
    }
    for (end, stream) in passage.ends.iter_mut().enumerate() {
        registry.register(stream, Token(first_token + 2 * place + end), Interest::READABLE | Interest::WRITABLE)?;
    }
    if place == passages.len() {
        passages.push(None);
    }
    passages[place] = Some(passage);
    Ok(())
}

impl Passage {
    /// Takes what has come and gives what has arrived.
    ///
    /// # Errors
    /// An end is closed.
    fn pass(&mut self, now_ns: u64, piece: &mut [u8]) -> std::io::Result<()> {
        for from in 0..2 {
            let Direction { way, may_read } = &mut self.directions[from];
            while *may_read && way.length() < ON_THE_WAY_BYTES_MAX {
                match self.ends[from].read(piece) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                    Ok(length) => way.send(now_ns, &piece[..length]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => *may_read = false,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            let to = &mut self.ends[1 - from];
            way.arrive(now_ns, |bytes| match to.write(bytes) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => Ok(0),
                written => written,
            })?;
        }
        Ok(())
    }

    /// When something arrives that has not yet; what an end does not take waits for its poll.
    fn next_ns(&self, now_ns: u64) -> Option<u64> {
        self.directions.iter().filter_map(|direction| direction.way.next_ns()).filter(|at_ns| *at_ns > now_ns).min()
    }
}
