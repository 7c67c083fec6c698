//! The subscriber side: one thread, one event stream per subscriber.
//!
//! Every delivery is stamped when the read that brought it returns, looked for in the order of its publisher, and counted.
//! Nothing is allocated between events.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, bail};
use mio::{Events, Interest, Poll, Token};
use serde::{Deserialize, Serialize};

use crate::answer::{Body, HEAD_BYTES_MAX, Head};
use crate::client::{ANSWER_WAIT_MAX, READ_BYTES};
use crate::event::order::Order;
use crate::event::payload::{Payload, monotonic_ns};
use crate::event::sse::SseReader;
use crate::statistics::{Counts, Latencies};
use crate::time_line::TimeLine;

/// Time between two looks at whether the publishers are done, while nothing comes.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long nothing may come, once the publishers are done, before what is missing counts as lost.
const QUIET_NS_MAX: u64 = 5_000_000_000;

/// What a subscriber side is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SubscriberOrder {
    /// Where the streams are opened.
    pub address: SocketAddr,
    /// The request that opens each.
    pub request: String,
    /// How many streams.
    pub subscribers: usize,
    /// How many publishers there will be.
    pub publishers: usize,
}

/// How many events each publisher sent: what a subscriber side waits for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sent(pub Vec<u64>);

/// What a subscriber side ends with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SubscriberReport {
    /// Different events delivered, over all subscribers.
    pub deliveries: u64,
    /// Events that were sent and not delivered, over all subscribers.
    pub lost: u64,
    /// Deliveries after that of a later event of the same publisher.
    pub out_of_order: u64,
    /// Deliveries that had come before.
    pub duplicates: u64,
    /// Events of the stream that hold no payload of the bench.
    pub foreign: u64,
    /// Time of the last delivery, in ns of CLOCK_MONOTONIC.
    pub last_ns: u64,
    /// Bytes of all streams after their heads.
    pub bytes: u64,
    /// From the publisher's send to the delivery.
    pub latency: Counts,
    /// When the deliveries came.
    pub time_line: TimeLine,
}

struct Stream {
    body: Body,
    sse: SseReader,
}

/// Streams that are open; what came right behind their heads was taken already.
pub struct Subscribed {
    sockets: Vec<TcpStream>,
    streams: Vec<Stream>,
    tally: Tally,
}

struct Tally {
    latency: Latencies,
    time_line: TimeLine,
    /// Time of the first delivery.
    first_ns: Option<u64>,
    /// By subscriber, then by publisher.
    orders: Vec<Vec<Order>>,
    deliveries: u64,
    foreign: u64,
    last_ns: u64,
    /// When it was first seen that the publishers are done.
    told_ns: Option<u64>,
    bytes: u64,
}

/// Opens every stream.
///
/// # Errors
/// No connection, or an answer other than an open stream.
pub fn subscribe(order: &SubscriberOrder) -> anyhow::Result<Subscribed> {
    let orders = || (0..order.publishers).map(|_| Order::default()).collect();
    let mut subscribed = Subscribed {
        sockets: Vec::new(),
        streams: Vec::new(),
        tally: Tally {
            latency: Latencies::default(),
            time_line: TimeLine::default(),
            first_ns: None,
            orders: (0..order.subscribers).map(|_| orders()).collect(),
            deliveries: 0,
            foreign: 0,
            last_ns: 0,
            told_ns: None,
            bytes: 0,
        },
    };
    for index in 0..order.subscribers {
        let mut socket = TcpStream::connect_timeout(&order.address, ANSWER_WAIT_MAX).context("the subscriber gets no connection")?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
        socket.write_all(order.request.as_bytes())?;
        let (head, rest) = read_head(&mut socket)?;
        let mut stream = Stream { body: Body::new(head.framing), sse: SseReader::default() };
        subscribed.tally.take(index, &mut stream, &rest)?;
        subscribed.sockets.push(socket);
        subscribed.streams.push(stream);
    }
    Ok(subscribed)
}

fn read_head(socket: &mut TcpStream) -> anyhow::Result<(Head, Vec<u8>)> {
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
        if self.sockets.len() == 1 {
            self.receive_alone(sent)?;
        } else {
            self.receive_together(sent)?;
        }
        // Streams that ended leave the publishers to be waited for; how long, the one who gave the order decides.
        Ok(self.tally.report(&sent.wait().0))
    }

    /// One stream needs no epoll: its thread waits in the read.
    fn receive_alone(&mut self, sent: &OnceLock<Sent>) -> anyhow::Result<()> {
        let mut piece = vec![0; READ_BYTES];
        self.sockets[0].set_read_timeout(Some(LOOK_EVERY))?;
        while !self.tally.is_done(sent) {
            match self.sockets[0].read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(length) => self.tally.take(0, &mut self.streams[0], &piece[..length])?,
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
            socket.set_nonblocking(true)?;
            let mut socket = mio::net::TcpStream::from_std(socket);
            poll.registry().register(&mut socket, Token(index), Interest::READABLE)?;
            watched.push(socket);
        }
        let mut open = watched.len();
        while !self.tally.is_done(sent) {
            match poll.poll(&mut events, Some(LOOK_EVERY)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            for event in &events {
                let index = event.token().0;
                loop {
                    match watched[index].read(&mut piece) {
                        Ok(0) => {
                            poll.registry().deregister(&mut watched[index])?;
                            open -= 1;
                            break;
                        }
                        Ok(length) => {
                            self.tally.take(index, &mut self.streams[index], &piece[..length])?;
                            // A short read emptied the socket: what comes later makes a new event.
                            if length < piece.len() {
                                break;
                            }
                        }
                        Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) => return Err(error).context("a subscriber's connection broke"),
                    }
                }
            }
            if open == 0 {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Tally {
    fn take(&mut self, subscriber: usize, stream: &mut Stream, mut piece: &[u8]) -> anyhow::Result<()> {
        let now_ns = monotonic_ns();
        let orders = &mut self.orders[subscriber];
        self.bytes += piece.len() as u64;
        while !piece.is_empty() && !stream.body.is_done() {
            let found = stream.body.decode(piece)?;
            stream.sse.take(&piece[found.data], |data| {
                let payload = Payload::read(data).filter(|payload| usize::from(payload.publisher) < orders.len());
                let Some(payload) = payload else {
                    self.foreign += 1;
                    return;
                };
                orders[usize::from(payload.publisher)].take(payload.sequence);
                let latency_ns = now_ns.saturating_sub(payload.sent_ns);
                self.latency.record_ns(latency_ns);
                self.time_line.record(now_ns - *self.first_ns.get_or_insert(now_ns), latency_ns);
                self.deliveries += 1;
                self.last_ns = now_ns;
            })?;
            piece = &piece[found.used..];
        }
        Ok(())
    }

    fn is_done(&mut self, sent: &OnceLock<Sent>) -> bool {
        let Some(sent) = sent.get() else { return false };
        let expected = sent.0.iter().sum::<u64>() * self.orders.len() as u64;
        if self.deliveries >= expected && self.seen() >= expected {
            return true;
        }
        let now_ns = monotonic_ns();
        let quiet_since_ns = self.last_ns.max(*self.told_ns.get_or_insert(now_ns));
        now_ns.saturating_sub(quiet_since_ns) > QUIET_NS_MAX
    }

    fn seen(&self) -> u64 {
        self.orders.iter().flatten().map(Order::seen).sum()
    }

    fn report(&self, sent: &[u64]) -> SubscriberReport {
        let orders = || self.orders.iter().flatten();
        let lost = |of_subscriber: &Vec<Order>| of_subscriber.iter().zip(sent).map(|(order, sent)| order.lost(*sent)).sum::<u64>();
        SubscriberReport {
            deliveries: self.seen(),
            lost: self.orders.iter().map(lost).sum(),
            out_of_order: orders().map(Order::out_of_order).sum(),
            duplicates: orders().map(Order::duplicates).sum(),
            foreign: self.foreign,
            last_ns: self.last_ns,
            bytes: self.bytes,
            latency: self.latency.counts(),
            time_line: self.time_line.clone(),
        }
    }
}
