//! The subscriber side: one thread, one event stream per subscriber.
//!
//! Every delivery is stamped when the read that brought it returns, looked for in the order of its publisher, and counted.
//! Nothing is allocated between events.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use mio::{Events, Interest, Poll, Token};
use serde::{Deserialize, Serialize};

use crate::answer::{Body, HEAD_BYTES_MAX, Head};
use crate::client::READ_BYTES;
use crate::event::callers::{Callers, connect};
use crate::event::manner::Manner;
use crate::event::payload::monotonic_ns;
use crate::event::sse::SseReader;
use crate::event::tally::{Sent, SubscriberReport, Tally};
use crate::processor_time::Used;
use crate::wire::Wire;

/// What a slow subscriber reads before it pauses: two or three events.
const SLOW_READ_BYTES: usize = 512;
/// Time between two looks at whether the publishers are done, while nothing comes.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What a subscriber side is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SubscriberOrder {
    /// Where the streams are opened.
    pub address: SocketAddr,
    /// The request that opens each.
    pub request: String,
    /// As whom they are opened.
    #[serde(default)]
    pub callers: Callers,
    /// How each subscriber behaves; one stream each.
    pub manners: Vec<Manner>,
    /// How many publishers there will be.
    pub publishers: usize,
}

struct Stream {
    body: Body,
    sse: SseReader,
    manner: Manner,
}

/// A stream that is watched, and whether it may be read.
struct Watched {
    socket: Wire<mio::net::TcpStream>,
    /// The socket has, or may have, something to read.
    readable: bool,
    /// A slow subscriber pauses until then.
    not_before: Instant,
}

/// Streams that are open; what came right behind their heads was taken already.
pub struct Subscribed {
    sockets: Vec<Wire<TcpStream>>,
    streams: Vec<Stream>,
    tally: Tally,
}

/// Opens every stream.
///
/// # Errors
/// No connection, or an answer other than an open stream.
pub fn subscribe(order: &SubscriberOrder) -> anyhow::Result<Subscribed> {
    let mut subscribed =
        Subscribed { sockets: Vec::new(), streams: Vec::new(), tally: Tally::new(Manner::measured(&order.manners), order.publishers) };
    let callers = order.callers.read(order.manners.len())?;
    for (index, manner) in order.manners.iter().enumerate() {
        let mut socket = connect(order.address, &callers[index]).context("the subscriber gets no connection")?;
        socket.write_all(order.request.as_bytes())?;
        let (head, rest) = read_head(&mut socket)?;
        let mut stream = Stream { body: Body::new(head.framing), sse: SseReader::default(), manner: *manner };
        stream.take(&mut subscribed.tally, index, &rest)?;
        subscribed.sockets.push(socket);
        subscribed.streams.push(stream);
    }
    Ok(subscribed)
}

/// Reads the head of an answer that opens a stream; gives it and what came behind it.
///
/// # Errors
/// No answer, or another than an open stream.
pub fn read_head(socket: &mut impl Read) -> anyhow::Result<(Head, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; HEAD_BYTES_MAX];
    loop {
        let length = socket.read(&mut piece).context("the subscriber gets no answer")?;
        if length == 0 {
            bail!("the subscriber's connection was closed: {}", String::from_utf8_lossy(&bytes));
        }
        bytes.extend_from_slice(&piece[..length]);
        match Head::parse(&bytes)? {
            Some((head, end)) if head.status == 200 => return Ok((head, bytes.split_off(end))),
            Some((head, end)) => bail!("the subscriber got status {}: {}", head.status, String::from_utf8_lossy(&bytes[end..])),
            None => {}
        }
    }
}

impl Subscribed {
    /// Reads until everything that `sent` names has come, or nothing more comes, or every stream has ended.
    ///
    /// # Errors
    /// A connection broke, or a stream is malformed.
    pub fn receive(mut self, sent: &OnceLock<Sent>) -> anyhow::Result<SubscriberReport> {
        let side = Used::now();
        if matches!(self.streams[..], [Stream { manner: Manner::Prompt, .. }]) {
            self.receive_alone(sent)?;
        } else {
            self.receive_together(sent)?;
        }
        // Streams that ended leave the publishers to be waited for; how long, the one who gave the order decides.
        let Used { processor_ns, sleeps, queued_ns } = side.since();
        Ok(SubscriberReport { processor_ns, sleeps, queued_ns, ..self.tally.report(&sent.wait().0) })
    }

    /// One stream needs no epoll: its thread waits in the read.
    fn receive_alone(&mut self, sent: &OnceLock<Sent>) -> anyhow::Result<()> {
        let mut piece = vec![0; READ_BYTES];
        self.sockets[0].socket().set_read_timeout(Some(LOOK_EVERY))?;
        while !self.tally.is_done(sent) {
            match self.sockets[0].read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(length) => self.streams[0].take(&mut self.tally, 0, &piece[..length])?,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error).context("the subscriber's connection broke"),
            }
        }
        Ok(())
    }

    fn receive_together(&mut self, sent: &OnceLock<Sent>) -> anyhow::Result<()> {
        let mut poll = Poll::new()?;
        let mut events = Events::with_capacity(self.sockets.len());
        let mut piece = vec![0; READ_BYTES];
        let mut watched = Vec::with_capacity(self.sockets.len());
        for (index, socket) in self.sockets.drain(..).enumerate() {
            socket.socket().set_nonblocking(true)?;
            let mut socket = socket.map(mio::net::TcpStream::from_std);
            // The dead are not watched: what is sent to them fills their receive buffer, and then the sender's.
            if self.streams[index].manner != Manner::Dead {
                poll.registry().register(socket.socket_mut(), Token(index), Interest::READABLE)?;
            }
            // What came with the handshake or the head makes no event.
            let readable = self.streams[index].manner != Manner::Dead;
            watched.push(Watched { socket, readable, not_before: Instant::now() });
        }
        let mut open = self.streams.iter().filter(|stream| stream.manner != Manner::Dead).count();
        while open > 0 && !self.tally.is_done(sent) {
            match poll.poll(&mut events, Some(next_pause_end(&watched).min(LOOK_EVERY))) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            events.iter().for_each(|event| watched[event.token().0].readable = true);
            for (index, watched) in watched.iter_mut().enumerate().filter(|(_, watched)| watched.readable) {
                if self.streams[index].read(&mut self.tally, index, watched, &mut piece)? {
                    poll.registry().deregister(watched.socket.socket_mut())?;
                    open -= 1;
                }
            }
        }
        Ok(())
    }
}

/// How long until a slow subscriber with something to read has paused enough.
fn next_pause_end(watched: &[Watched]) -> Duration {
    let now = Instant::now();
    let waits = watched.iter().filter(|watched| watched.readable).map(|watched| watched.not_before.saturating_duration_since(now));
    waits.min().unwrap_or(LOOK_EVERY)
}

impl Stream {
    /// Reads what its manner lets it; gives whether the stream has ended.
    fn read(&mut self, tally: &mut Tally, index: usize, watched: &mut Watched, piece: &mut [u8]) -> anyhow::Result<bool> {
        let piece = match self.manner {
            Manner::Slow(pause_ms) => {
                let now = Instant::now();
                if now < watched.not_before {
                    return Ok(false);
                }
                watched.not_before = now + Duration::from_millis(u64::from(pause_ms));
                &mut piece[..SLOW_READ_BYTES]
            }
            Manner::Prompt | Manner::Dead => piece,
        };
        loop {
            match watched.socket.read(piece) {
                Ok(0) => {
                    watched.readable = false;
                    return Ok(true);
                }
                Ok(length) => {
                    self.take(tally, index, &piece[..length])?;
                    // What comes later makes a new event.
                    watched.readable = !watched.socket.has_emptied(length, piece.len());
                    if !watched.readable || self.manner != Manner::Prompt {
                        return Ok(false);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    watched.readable = false;
                    return Ok(false);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("a subscriber's connection broke"),
            }
        }
    }

    fn take(&mut self, tally: &mut Tally, index: usize, mut piece: &[u8]) -> anyhow::Result<()> {
        let now_ns = monotonic_ns();
        tally.bytes(index, piece.len());
        while !piece.is_empty() && !self.body.is_done() {
            let found = self.body.decode(piece)?;
            self.sse.take(&piece[found.data], |data| tally.take(index, data, now_ns))?;
            piece = &piece[found.used..];
        }
        Ok(())
    }
}
