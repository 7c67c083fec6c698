//! The publisher side: one thread, kept connections, one publish outstanding on each.
//!
//! A connection sends its publisher's next event when the 200 of its last has come. Several connections of one publisher
//! are a pool as Rocha 2019, section 7.3.1, has it: its events go over whichever is free, in the order in which they are
//! taken. Requests are made once; only the payload's digits change, so that nothing is allocated between events. With a
//! rate, [`paced`](super::paced) sends instead.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, bail};
use mio::{Events, Interest, Poll, Token};
use serde::{Deserialize, Serialize};

use super::callers::{Callers, connect};
use super::paced;
use crate::answer::AnswerReader;
use crate::client::ANSWER_WAIT_MAX;
use crate::event::payload::{PAYLOAD_BYTES, Payload, monotonic_ns};
use crate::expectation::{Expectation, Faults};
use crate::processor_time::Used;
use crate::statistics::{Counts, Latencies};
use crate::wire::Wire;

/// Refusals after which the run is given up.
const REFUSED_MAX: u64 = 1000;
const PUBLISHED: Expectation = Expectation::status(200);
const PIECE_BYTES: usize = 4096;

/// What a publisher side is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PublisherOrder {
    /// Where events are taken.
    pub address: SocketAddr,
    /// The request of each publisher.
    pub requests: Vec<PublishRequest>,
    /// As whom each publisher calls.
    #[serde(default)]
    pub callers: Callers,
    /// Connections of each publisher.
    pub connections: u32,
    /// Events of each publisher in a round; rounds are repeated until the time is reached.
    pub events_per_round: u64,
    /// Shortest run in s.
    pub seconds: u32,
    /// Events a second of each publisher, whatever became of those before, for just that time; without it the next event
    /// goes when the last was acknowledged.
    pub rate_per_s: Option<f64>,
}

/// A whole request with room for the payload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PublishRequest {
    /// The bytes, all of them text.
    pub text: String,
    /// Where the payload lies in them.
    pub payload_at: usize,
}

/// What a publisher side ends with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PublisherReport {
    /// Events that were acknowledged, of each publisher; their sequences are 0 to one less.
    pub sent: Vec<u64>,
    /// Start of the first send, in ns of CLOCK_MONOTONIC.
    pub first_ns: u64,
    /// Time of the last acknowledgement.
    pub last_ns: u64,
    /// From a send to its acknowledgement.
    pub acknowledged: Counts,
    /// Publishes that were refused and sent again.
    pub refused: u64,
    /// The first refusals in words.
    pub refusals: Vec<String>,
    /// Processor time of the side while it published.
    #[serde(default)]
    pub processor_ns: u64,
    /// How often the side slept meanwhile.
    #[serde(default)]
    pub sleeps: u64,
    /// How long the side's threads stood in front of a processor meanwhile, where the kernel counts it.
    #[serde(default)]
    pub queued_ns: Option<u64>,
}

/// One connection of a publisher and the event that is under way on it.
pub struct Connection {
    /// Whose events it carries.
    pub publisher: u16,
    request: Vec<u8>,
    payload_at: usize,
    sequence: u64,
    sent_ns: u64,
    answer: AnswerReader,
}

/// What was acknowledged and what was not.
#[derive(Default)]
pub struct Receipts {
    acknowledged: Latencies,
    faults: Faults,
    last_ns: u64,
}

/// Sends as ordered.
///
/// # Errors
/// No connection, a broken connection, silence for [`ANSWER_WAIT_MAX`], or too many refusals.
pub fn publish(order: &PublisherOrder) -> anyhow::Result<PublisherReport> {
    let (mut connections, mut streams) = (Vec::new(), Vec::new());
    let callers = order.callers.read(order.requests.len())?;
    for (publisher, request) in order.requests.iter().enumerate() {
        let publisher = u16::try_from(publisher).context("too many publishers")?;
        for _ in 0..order.connections.max(1) {
            connections.push(Connection::new(publisher, request)?);
            streams.push(connect(order.address, &callers[usize::from(publisher)]).context("the publisher gets no connection")?);
        }
    }
    let side = Used::now();
    let first_ns = monotonic_ns();
    let (sent, receipts) = match order.rate_per_s {
        Some(rate_per_s) => paced::publish(order, rate_per_s, connections, streams)?,
        None => closed_loop(order, connections, streams)?,
    };
    let Used { processor_ns, sleeps, queued_ns } = side.since();
    Ok(PublisherReport { processor_ns, sleeps, queued_ns, ..receipts.report(sent, first_ns) })
}

fn closed_loop(
    order: &PublisherOrder,
    mut connections: Vec<Connection>,
    mut streams: Vec<Wire<TcpStream>>,
) -> anyhow::Result<(Vec<u64>, Receipts)> {
    let mut run = Run {
        events_per_round: order.events_per_round.max(1),
        until_ns: monotonic_ns() + u64::from(order.seconds) * 1_000_000_000,
        taken: vec![0; order.requests.len()],
        receipts: Receipts::default(),
    };
    match (&mut streams[..], &mut connections[..]) {
        ([stream], [connection]) => run.alone(stream, connection)?,
        (_, connections) => run.together(streams, connections)?,
    }
    Ok((run.taken, run.receipts))
}

struct Run {
    events_per_round: u64,
    until_ns: u64,
    /// By publisher, the events that were taken by a connection; all were sent when the run ends.
    taken: Vec<u64>,
    receipts: Receipts,
}

impl Run {
    /// One connection needs no epoll: its thread waits in the read.
    fn alone(&mut self, stream: &mut Wire<TcpStream>, connection: &mut Connection) -> anyhow::Result<()> {
        let mut piece = [0; PIECE_BYTES];
        self.take(connection);
        loop {
            connection.exchange(stream, &mut piece, monotonic_ns())?;
            if !self.acknowledge(connection)? {
                return Ok(());
            }
        }
    }

    fn together(&mut self, streams: Vec<Wire<TcpStream>>, connections: &mut [Connection]) -> anyhow::Result<()> {
        let mut poll = Poll::new()?;
        let mut events = Events::with_capacity(connections.len());
        let mut piece = [0; PIECE_BYTES];
        let mut watched = Vec::with_capacity(streams.len());
        for (index, stream) in streams.into_iter().enumerate() {
            stream.socket().set_nonblocking(true)?;
            let mut stream = stream.map(mio::net::TcpStream::from_std);
            poll.registry().register(stream.socket_mut(), Token(index), Interest::READABLE)?;
            watched.push(stream);
        }
        let mut busy = 0;
        for (stream, connection) in watched.iter_mut().zip(connections.iter_mut()) {
            if self.take(connection) {
                send(stream, connection)?;
                busy += 1;
            }
        }
        while busy > 0 {
            match poll.poll(&mut events, Some(ANSWER_WAIT_MAX)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            if events.is_empty() {
                bail!("the publishers get no answer");
            }
            for event in &events {
                let (stream, connection) = (&mut watched[event.token().0], &mut connections[event.token().0]);
                if receive(stream, connection, &mut piece)? {
                    match self.acknowledge(connection)? {
                        true => send(stream, connection)?,
                        false => busy -= 1,
                    }
                }
            }
        }
        Ok(())
    }

    /// Gives the connection its publisher's next event; `false` when the last round is over.
    fn take(&mut self, connection: &mut Connection) -> bool {
        let taken = &mut self.taken[usize::from(connection.publisher)];
        if *taken > 0 && taken.is_multiple_of(self.events_per_round) && monotonic_ns() >= self.until_ns {
            return false;
        }
        connection.sequence = *taken;
        *taken += 1;
        true
    }

    /// Counts the answer; gives whether this connection shall send once more.
    fn acknowledge(&mut self, connection: &mut Connection) -> anyhow::Result<bool> {
        Ok(!self.receipts.take(connection)? || self.take(connection))
    }
}

impl Receipts {
    /// Counts the answer on this connection; gives whether its event was taken. One that was not is sent again.
    ///
    /// # Errors
    /// Too many were refused, or the connection is not kept.
    pub fn take(&mut self, connection: &mut Connection) -> anyhow::Result<bool> {
        self.last_ns = monotonic_ns();
        let answer = &mut connection.answer;
        let (closes, fault) = (answer.closes(), PUBLISHED.fault(answer.status(), answer.body()));
        answer.reset();
        let taken = fault.is_none();
        match fault {
            None => self.acknowledged.record_ns(self.last_ns.saturating_sub(connection.sent_ns)),
            Some(fault) => self.faults.add(fault),
        }
        if self.faults.count > REFUSED_MAX {
            bail!("more than {REFUSED_MAX} publishes were refused: {}", self.faults.first.join("; "));
        }
        if closes {
            bail!("the connection of a publisher is not kept: {}", self.faults.first.join("; "));
        }
        Ok(taken)
    }

    /// Adds those of other connections.
    pub fn append(&mut self, other: Self) {
        self.acknowledged.add(&other.acknowledged);
        self.faults.append(other.faults);
        self.last_ns = self.last_ns.max(other.last_ns);
    }

    fn report(self, sent: Vec<u64>, first_ns: u64) -> PublisherReport {
        PublisherReport {
            sent,
            first_ns,
            last_ns: self.last_ns,
            acknowledged: self.acknowledged.counts(),
            refused: self.faults.count,
            refusals: self.faults.first,
            processor_ns: 0,
            sleeps: 0,
            queued_ns: None,
        }
    }
}

impl Connection {
    fn new(publisher: u16, request: &PublishRequest) -> anyhow::Result<Self> {
        let PublishRequest { text, payload_at } = request.clone();
        if payload_at + PAYLOAD_BYTES > text.len() {
            bail!("the request has no room for the payload");
        }
        Ok(Self { publisher, request: text.into_bytes(), payload_at, sequence: 0, sent_ns: 0, answer: AnswerReader::default() })
    }

    /// Takes on the publisher's event with this place in its order.
    pub fn carry(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    /// Sends the event with this stamp and waits for the answer.
    ///
    /// # Errors
    /// The connection broke or stayed silent.
    pub fn exchange(&mut self, stream: &mut Wire<TcpStream>, piece: &mut [u8], stamp_ns: u64) -> anyhow::Result<()> {
        stream.write_all(self.stamped(stamp_ns)).context("the publisher cannot send")?;
        loop {
            let length = stream.read(piece).context("the publisher gets no answer")?;
            if self.receive(&piece[..length])? {
                return Ok(());
            }
        }
    }

    /// The request of the event under way, stamped with this time.
    fn stamped(&mut self, stamp_ns: u64) -> &[u8] {
        let payload = self.request[self.payload_at..].first_chunk_mut().expect("checked when it was made");
        self.sent_ns = stamp_ns;
        Payload { publisher: self.publisher, sequence: self.sequence, sent_ns: stamp_ns }.write(payload);
        &self.request
    }

    /// Takes bytes of the answer; gives whether it is whole.
    fn receive(&mut self, piece: &[u8]) -> anyhow::Result<bool> {
        if piece.is_empty() {
            bail!("the connection of a publisher was closed");
        }
        self.answer.take(piece)?;
        Ok(self.answer.is_complete())
    }
}

/// Reads what has come; gives whether the answer is whole. With one publish outstanding nothing comes behind it.
fn receive(stream: &mut Wire<mio::net::TcpStream>, connection: &mut Connection, piece: &mut [u8]) -> anyhow::Result<bool> {
    loop {
        let length = match stream.read(piece) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(false),
            other => other.context("the publisher gets no answer")?,
        };
        if connection.receive(&piece[..length])? {
            return Ok(true);
        }
    }
}

/// A request is far smaller than a send buffer, and the last one was answered: it fits, or the connection is broken.
fn send(stream: &mut Wire<mio::net::TcpStream>, connection: &mut Connection) -> anyhow::Result<()> {
    stream.write_all(connection.stamped(monotonic_ns())).context("the publisher cannot send")
}
