//! N requests on N new connections, released together.
//!
//! Sockets are made, bound and watched, and requests are written, before the clock starts. Then every connection is opened
//! at once; while that goes on, requests are sent on those that stand (over TLS the first bytes of the handshake), but no answer is
//! taken before the last is released, so that all N are in flight together whatever the server's speed. The clock of each request starts before
//! its own connect. Sources are spread over 127.0.0.0/8 and sockets are closed by a reset, so that no port is left
//! waiting when the experiment runs again.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::Context;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use rustls::HandshakeKind;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::answer::AnswerReader;
use crate::client::READ_BYTES;
use crate::endpoint::Endpoint;
use crate::expectation::Expectation;
use crate::load::Measured;
use crate::statistics::{Figure, Latencies, Unit};
use crate::wire::{Caller, Wire};

/// Longest wait without a single answer; those still open then are faults.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// Connections released between two looks at which of them stand.
const RELEASED_PER_TURN: usize = 64;
const EVENTS_PER_TURN: usize = 1024;

/// What a release measured.
#[derive(Debug, Default)]
pub struct Released {
    /// From before connect to the whole answer; requests without a good one are in none of the distributions.
    pub measured: Measured,
    /// From before connect to the standing connection, over TLS to the end of the handshake.
    pub connect: Latencies,
    /// From the standing connection to the whole answer.
    pub request: Latencies,
    /// From the first connect to the last.
    pub release: Duration,
    /// From the first connect to the last answer.
    pub whole: Duration,
    /// TLS handshakes that were whole, and those that resumed a session.
    handshakes: (u64, u64),
}

impl Released {
    /// The figures of this run.
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = self.measured.latencies.figures("", Unit::Ms, &[50.0, 99.0]);
        figures.push(Figure::sum("errors", self.measured.faults.count));
        figures.extend(self.connect.figures("connect_", Unit::Ms, &[50.0, 99.0]));
        figures.extend(self.request.figures("request_", Unit::Ms, &[50.0, 99.0]));
        figures.push(Figure::median("release_ms", self.release.as_secs_f64() * 1e3));
        figures.push(Figure::median("whole_ms", self.whole.as_secs_f64() * 1e3));
        let (full, resumed) = self.handshakes;
        if full + resumed > 0 {
            figures.extend([Figure::sum("full_handshakes", full), Figure::sum("resumed_handshakes", resumed)]);
        }
        figures
    }
}

struct Slot<'a> {
    stream: Wire<TcpStream>,
    request: &'a [u8],
    written: usize,
    answer: AnswerReader,
    state: State,
    started: Instant,
    connected: Instant,
    finished: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Connecting,
    Connected,
    Answered,
    Failed(String),
}

/// Releases all requests together and waits for every answer. `callers` says as whom each is sent; where it is empty, all are as the
/// endpoint says.
///
/// # Errors
/// Sockets cannot be made or bound. What goes wrong later is a fault of its request.
pub fn release(endpoint: &Endpoint, requests: &[Vec<u8>], callers: &[Caller], expectation: Expectation) -> anyhow::Result<Released> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(EVENTS_PER_TURN);
    let mut slots = prepare(endpoint, requests, callers, &poll)?;
    // Watching a socket that is not connected makes an event at once; it must not be taken for the connection.
    poll.poll(&mut events, Some(Duration::ZERO))?;
    while !events.is_empty() {
        poll.poll(&mut events, Some(Duration::ZERO))?;
    }
    let mut piece = vec![0; READ_BYTES];
    let (release, early) = open_all(endpoint, &mut slots, &mut poll, &mut events)?;
    let mut open = slots.iter().filter(|slot| slot.is_open()).count();
    for index in early {
        open -= usize::from(slots[index].advance(&mut piece));
    }
    while open > 0 {
        match poll.poll(&mut events, Some(SILENCE_MAX)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        }
        if events.is_empty() {
            break;
        }
        for event in &events {
            open -= usize::from(slots[event.token().0].advance(&mut piece));
        }
    }
    Ok(count(slots, expectation, release))
}

fn prepare<'a>(endpoint: &Endpoint, requests: &'a [Vec<u8>], callers: &[Caller], poll: &Poll) -> anyhow::Result<Vec<Slot<'a>>> {
    let now = Instant::now();
    let mut slots = Vec::with_capacity(requests.len());
    for (index, request) in requests.iter().enumerate() {
        let socket = Socket::new(Domain::for_address(endpoint.address), Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))
            .context("cannot make a socket")?;
        socket.set_tcp_nodelay(true)?;
        socket.set_linger(Some(Duration::ZERO))?;
        if let Some(source) = source(endpoint.address, index) {
            socket.bind(&source.into()).with_context(|| format!("cannot bind {source}"))?;
        }
        let mut stream = TcpStream::from_std(socket.into());
        poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
        let stream = Wire::new(stream, callers.get(index).unwrap_or(&endpoint.caller), endpoint.address.ip());
        let answer = AnswerReader::default();
        slots.push(Slot { stream, request, written: 0, answer, state: State::Connecting, started: now, connected: now, finished: now });
    }
    Ok(slots)
}

/// The source of the connection with this index: an own address in 127.0.0.0/8 when the server is on this machine.
fn source(server: SocketAddr, index: usize) -> Option<SocketAddr> {
    match server {
        SocketAddr::V4(server) if server.ip().is_loopback() => {
            let octet = |shift: usize| u8::try_from((index >> shift) & 0x3f).expect("six bits");
            Some(SocketAddr::from((Ipv4Addr::new(127, 64 + octet(12), 64 + octet(6), 64 + octet(0)), 0)))
        }
        _ => None,
    }
}

/// Opens every connection and sends on those that stand; gives how long that took and which have more to do already.
fn open_all(endpoint: &Endpoint, slots: &mut [Slot<'_>], poll: &mut Poll, events: &mut Events) -> anyhow::Result<(Duration, Vec<usize>)> {
    let address = endpoint.address.into();
    let mut early = Vec::with_capacity(slots.len());
    let first = Instant::now();
    let mut last = first;
    for begin in (0..slots.len()).step_by(RELEASED_PER_TURN) {
        let end = (begin + RELEASED_PER_TURN).min(slots.len());
        for slot in &mut slots[begin..end] {
            slot.started = Instant::now();
            last = slot.started;
            match SockRef::from(slot.stream.socket()).connect(&address) {
                Err(error) if error.raw_os_error() != Some(nix::libc::EINPROGRESS) => slot.state = State::Failed(error.to_string()),
                _ => {}
            }
        }
        match poll.poll(events, Some(Duration::ZERO)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        }
        for event in events.iter() {
            let slot = &mut slots[event.token().0];
            // A handshake goes on when all are released: it would keep the rest from being.
            if slot.stream.has_begun() {
                early.push(event.token().0);
                continue;
            }
            let stood = slot.state != State::Connecting;
            slot.send();
            if stood || event.is_readable() {
                early.push(event.token().0);
            }
        }
    }
    Ok((last - first, early))
}

impl Slot<'_> {
    fn is_open(&self) -> bool {
        matches!(self.state, State::Connecting | State::Connected)
    }

    /// Goes on as far as the socket lets it; gives whether that closed the slot.
    fn advance(&mut self, piece: &mut [u8]) -> bool {
        if !self.is_open() {
            return false;
        }
        self.send();
        if self.state == State::Connected {
            self.receive(piece);
        }
        !self.is_open()
    }

    fn send(&mut self) {
        if self.state == State::Connecting {
            match self.stream.socket().take_error() {
                Ok(None) => {}
                Ok(Some(error)) | Err(error) => {
                    self.state = State::Failed(format!("connect: {error}"));
                    return;
                }
            }
            self.connected = Instant::now();
        }
        while self.is_open() && self.written < self.request.len() {
            match self.stream.write(&self.request[self.written..]) {
                Ok(length) => {
                    self.written += length;
                    self.state = State::Connected;
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => return,
                Err(error) => self.state = State::Failed(format!("send: {error}")),
            }
        }
    }

    fn receive(&mut self, piece: &mut [u8]) {
        loop {
            match self.stream.read(piece) {
                Ok(length) => {
                    self.finished = Instant::now();
                    match self.answer.take(&piece[..length]) {
                        Err(error) => self.state = State::Failed(error.to_string()),
                        Ok(_) if length == 0 && !self.answer.close() => {
                            self.state = State::Failed("the connection was closed before the answer".into());
                        }
                        Ok(_) if self.answer.is_complete() => self.state = State::Answered,
                        Ok(_) if !self.stream.has_emptied(length, piece.len()) => continue,
                        Ok(_) => {}
                    }
                    return;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.state = State::Failed(format!("receive: {error}"));
                    return;
                }
            }
        }
    }
}

fn count(slots: Vec<Slot<'_>>, expectation: Expectation, release: Duration) -> Released {
    let mut released = Released { release, ..Released::default() };
    let started = slots.iter().map(|slot| slot.started).min().unwrap_or_else(Instant::now);
    for slot in slots {
        match slot.stream.handshake_kind() {
            Some(HandshakeKind::Resumed) => released.handshakes.1 += 1,
            Some(_) => released.handshakes.0 += 1,
            None => {}
        }
        let fault = match slot.state {
            State::Failed(why) => Some(why),
            State::Connecting | State::Connected => Some(format!("no answer, and none to any request for {} s", SILENCE_MAX.as_secs())),
            State::Answered => expectation.fault(slot.answer.status(), slot.answer.body()),
        };
        if fault.is_none() {
            released.connect.record(slot.connected - slot.started);
            released.request.record(slot.finished - slot.connected);
            released.whole = released.whole.max(slot.finished - started);
        }
        released.measured.take(fault, started, slot.started, slot.finished);
    }
    released
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer;
    use crate::request;
    use serde_json::json;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const CREATED: Expectation = Expectation::status(201);

    fn requests(endpoint: &Endpoint, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|n| request::post(endpoint, "/x", &json!({ "n": n }))).collect()
    }

    #[test]
    fn every_request_is_answered_once_and_measured() {
        let served = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&served);
        let endpoint = peer::serve(move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            (201, "{}".into())
        });
        let released = release(&endpoint, &requests(&endpoint, 300), &[], CREATED).unwrap();
        assert_eq!(released.measured.faults.first.join("; "), "");
        assert_eq!((served.load(Ordering::SeqCst), released.measured.latencies.count(), released.measured.faults.count), (300, 300, 0));
        assert_eq!((released.connect.count(), released.request.count()), (300, 300));
        assert!(released.measured.latencies.mean(Unit::Us) >= released.request.mean(Unit::Us) * 0.99);
    }

    #[test]
    fn what_goes_wrong_is_a_fault_of_its_request() {
        let endpoint = peer::serve(|_, body| match body {
            r#"{"n":0}"# => (500, "broken".into()),
            r#"{"n":1}"# => (0, "".into()),
            _ => (201, "".into()),
        });
        let released = release(&endpoint, &requests(&endpoint, 5), &[], CREATED).unwrap();
        assert_eq!((released.measured.latencies.count(), released.measured.faults.count), (3, 2));
        assert!(released.measured.faults.first.iter().any(|fault| fault == "status 500 instead of 201: broken"));
        let nobody = peer::nobody();
        let refused = release(&nobody, &requests(&nobody, 3), &[], CREATED).unwrap();
        assert_eq!((refused.measured.latencies.count(), refused.measured.faults.count), (0, 3));
    }

    #[test]
    fn sources_differ_and_stay_in_the_loopback_net() {
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let sources: std::collections::BTreeSet<_> = (0..50_000).map(|index| source(server, index).unwrap()).collect();
        assert_eq!(sources.len(), 50_000);
        assert!(sources.iter().all(|source| source.ip().is_loopback()));
        assert_eq!(source(SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 1)), 0), None);
    }
}
