//! The publisher side: one thread, one kept connection per publisher, one publish outstanding on each.
//!
//! Each publisher sends its next event when the 200 of the last has come. Requests are made once; only the payload's
//! digits change, so that nothing is allocated between events.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, bail};
use mio::{Events, Interest, Poll, Token};
use serde::{Deserialize, Serialize};

use crate::answer::AnswerReader;
use crate::client::ANSWER_WAIT_MAX;
use crate::event::payload::{PAYLOAD_BYTES, Payload, monotonic_ns};
use crate::expectation::{Expectation, Faults};
use crate::statistics::{Counts, Latencies};

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
    /// Events of each publisher in a round; rounds are repeated until the time is reached.
    pub events_per_round: u64,
    /// Shortest run in s.
    pub seconds: u32,
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
}

struct Publisher {
    index: u16,
    request: Vec<u8>,
    payload_at: usize,
    sent: u64,
    sent_ns: u64,
    answer: AnswerReader,
}

/// Sends as ordered.
///
/// # Errors
/// No connection, a broken connection, silence for [`ANSWER_WAIT_MAX`], or too many refusals.
pub fn publish(order: &PublisherOrder) -> anyhow::Result<PublisherReport> {
    let mut publishers = Vec::new();
    let mut streams = Vec::new();
    for (index, request) in order.requests.iter().enumerate() {
        let PublishRequest { text, payload_at } = request.clone();
        if payload_at + PAYLOAD_BYTES > text.len() {
            bail!("the request has no room for the payload");
        }
        let stream = TcpStream::connect_timeout(&order.address, ANSWER_WAIT_MAX).context("the publisher gets no connection")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
        streams.push(stream);
        let index = u16::try_from(index).context("too many publishers")?;
        publishers.push(Publisher { index, request: text.into_bytes(), payload_at, sent: 0, sent_ns: 0, answer: AnswerReader::default() });
    }
    let mut run = Run {
        events_per_round: order.events_per_round.max(1),
        until_ns: monotonic_ns() + u64::from(order.seconds) * 1_000_000_000,
        acknowledged: Latencies::default(),
        faults: Faults::default(),
        last_ns: 0,
    };
    let first_ns = monotonic_ns();
    match (&mut streams[..], &mut publishers[..]) {
        ([stream], [publisher]) => run.alone(stream, publisher)?,
        (_, publishers) => run.together(streams, publishers)?,
    }
    Ok(PublisherReport {
        sent: publishers.iter().map(|publisher| publisher.sent).collect(),
        first_ns,
        last_ns: run.last_ns,
        acknowledged: run.acknowledged.counts(),
        refused: run.faults.count,
        refusals: run.faults.first,
    })
}

struct Run {
    events_per_round: u64,
    until_ns: u64,
    acknowledged: Latencies,
    faults: Faults,
    last_ns: u64,
}

impl Run {
    /// One publisher needs no epoll: its thread waits in the read.
    fn alone(&mut self, stream: &mut TcpStream, publisher: &mut Publisher) -> anyhow::Result<()> {
        let mut piece = [0; PIECE_BYTES];
        loop {
            stream.write_all(publisher.next())?;
            loop {
                let length = stream.read(&mut piece).context("the publisher gets no answer")?;
                if publisher.take(&piece[..length])? {
                    break;
                }
            }
            if !self.acknowledge(publisher)? {
                return Ok(());
            }
        }
    }

    fn together(&mut self, streams: Vec<TcpStream>, publishers: &mut [Publisher]) -> anyhow::Result<()> {
        let mut poll = Poll::new()?;
        let mut events = Events::with_capacity(publishers.len());
        let mut piece = [0; PIECE_BYTES];
        let mut watched = Vec::with_capacity(streams.len());
        for (index, stream) in streams.into_iter().enumerate() {
            stream.set_nonblocking(true)?;
            let mut stream = mio::net::TcpStream::from_std(stream);
            poll.registry().register(&mut stream, Token(index), Interest::READABLE)?;
            watched.push(stream);
        }
        for (stream, publisher) in watched.iter_mut().zip(publishers.iter_mut()) {
            send(stream, publisher)?;
        }
        let mut busy = publishers.len();
        while busy > 0 {
            match poll.poll(&mut events, Some(ANSWER_WAIT_MAX)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            if events.is_empty() {
                bail!("the publishers get no answer");
            }
            for event in &events {
                let (stream, publisher) = (&mut watched[event.token().0], &mut publishers[event.token().0]);
                // With one publish outstanding a short read leaves nothing behind.
                let length = match stream.read(&mut piece) {
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
                    other => other.context("the publisher gets no answer")?,
                };
                if publisher.take(&piece[..length])? {
                    match self.acknowledge(publisher)? {
                        true => send(stream, publisher)?,
                        false => busy -= 1,
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts the answer; gives whether this publisher shall send another event.
    fn acknowledge(&mut self, publisher: &mut Publisher) -> anyhow::Result<bool> {
        self.last_ns = monotonic_ns();
        let closes = publisher.answer.closes();
        match PUBLISHED.fault(publisher.answer.status(), publisher.answer.body()) {
            None => {
                self.acknowledged.record_ns(self.last_ns - publisher.sent_ns);
                publisher.sent += 1;
            }
            Some(fault) => {
                self.faults.add(fault);
                if self.faults.count > REFUSED_MAX {
                    bail!("more than {REFUSED_MAX} publishes were refused: {}", self.faults.first.join("; "));
                }
            }
        }
        publisher.answer.reset();
        if closes {
            bail!("the connection of a publisher is not kept: {}", self.faults.first.join("; "));
        }
        Ok(!publisher.sent.is_multiple_of(self.events_per_round) || publisher.sent == 0 || self.last_ns < self.until_ns)
    }
}

impl Publisher {
    /// The next request, stamped with this moment.
    fn next(&mut self) -> &[u8] {
        let payload = self.request[self.payload_at..].first_chunk_mut().expect("checked when it was made");
        self.sent_ns = monotonic_ns();
        Payload { publisher: self.index, sequence: self.sent, sent_ns: self.sent_ns }.write(payload);
        &self.request
    }

    /// Takes bytes of the answer; gives whether it is whole.
    fn take(&mut self, piece: &[u8]) -> anyhow::Result<bool> {
        if piece.is_empty() {
            bail!("the connection of a publisher was closed");
        }
        self.answer.take(piece)?;
        Ok(self.answer.is_complete())
    }
}

/// A request is far smaller than a send buffer, and the last one was answered: it fits, or the connection is broken.
fn send(stream: &mut mio::net::TcpStream, publisher: &mut Publisher) -> anyhow::Result<()> {
    stream.write_all(publisher.next()).context("the publisher cannot send")
}
