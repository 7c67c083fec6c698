//! Many requests over a few kept connections, each carrying one request at a time: the open loop, and fast set-up.
//!
//! With a rate, request `i` is due at `start + i / rate`, whatever became of those before it; one that finds every lane
//! busy waits, and that wait is part of its latency. Without a rate all are due at once. One thread, one epoll; the
//! due time comes from a timer of the kernel, since epoll itself only counts whole milliseconds.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::answer::AnswerReader;
use crate::client::{ANSWER_WAIT_MAX, READ_BYTES};
use crate::endpoint::Endpoint;
use crate::wire::Wire;

/// Kept connections of an open loop.
pub const OPEN_LOOP_LANES: usize = 64;
/// Kept connections of a set-up.
pub const SET_UP_LANES: usize = 32;
/// How often a run may open a lane again after the peer closed it.
const REOPENED_MAX: usize = 10_000;
const EVENTS_PER_TURN: usize = 256;
const TIMER: Token = Token(usize::MAX);

/// What became of one request.
pub struct Exchange<'a> {
    /// Which request.
    pub index: usize,
    /// When it was due.
    pub due: Instant,
    /// When it was sent.
    pub sent: Instant,
    /// When its answer was whole.
    pub finished: Instant,
    /// The answer, or why there is none.
    pub answer: Result<&'a AnswerReader, String>,
}

struct Lane {
    stream: Wire<TcpStream>,
    answer: AnswerReader,
    carries: Option<Carried>,
}

struct Carried {
    index: usize,
    due: Instant,
    sent: Instant,
    written: usize,
}

/// Sends all requests and tells what became of each, in the order of the answers.
///
/// # Errors
/// The endpoint takes no connections, or nothing came back for [`ANSWER_WAIT_MAX`].
pub fn drive(
    endpoint: &Endpoint,
    requests: &[Vec<u8>],
    rate_per_s: Option<f64>,
    lanes_max: usize,
    told: &mut dyn FnMut(Exchange<'_>),
) -> anyhow::Result<()> {
    if requests.is_empty() {
        return Ok(());
    }
    Drive::new(endpoint, requests, rate_per_s, lanes_max.min(requests.len()))?.run(told)
}

struct Drive<'a> {
    endpoint: &'a Endpoint,
    requests: &'a [Vec<u8>],
    gap: Option<Duration>,
    poll: Poll,
    timer: TimerFd,
    lanes: Vec<Lane>,
    /// Lanes that carry nothing; the last used is used next, so that a slow rate stays on a warm connection.
    idle: Vec<usize>,
    next: usize,
    done: usize,
    reopened: usize,
}

impl<'a> Drive<'a> {
    fn new(endpoint: &'a Endpoint, requests: &'a [Vec<u8>], rate_per_s: Option<f64>, lanes: usize) -> anyhow::Result<Self> {
        let poll = Poll::new()?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK)?;
        poll.registry().register(&mut SourceFd(&timer.as_fd().as_raw_fd()), TIMER, Interest::READABLE)?;
        let gap = rate_per_s.map(|rate| Duration::from_secs_f64(1.0 / rate));
        let mut drive =
            Self { endpoint, requests, gap, poll, timer, lanes: Vec::new(), idle: (0..lanes).collect(), next: 0, done: 0, reopened: 0 };
        for index in 0..lanes {
            let stream = drive.connect(index)?;
            drive.lanes.push(Lane { stream, answer: AnswerReader::default(), carries: None });
        }
        Ok(drive)
    }

    fn connect(&self, index: usize) -> anyhow::Result<Wire<TcpStream>> {
        let stream = std::net::TcpStream::connect_timeout(&self.endpoint.address, ANSWER_WAIT_MAX)
            .with_context(|| format!("no connection to {}", self.endpoint.authority))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        self.poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
        Ok(Wire::new(stream, &self.endpoint.caller, self.endpoint.address.ip()))
    }

    fn run(mut self, told: &mut dyn FnMut(Exchange<'_>)) -> anyhow::Result<()> {
        let mut events = Events::with_capacity(EVENTS_PER_TURN);
        let mut piece = vec![0; READ_BYTES];
        let start = Instant::now();
        loop {
            self.send_due(start, told)?;
            if self.done == self.requests.len() {
                return Ok(());
            }
            let timer_set = self.set_timer(start)?;
            match self.poll.poll(&mut events, Some(ANSWER_WAIT_MAX)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            if events.is_empty() && !timer_set {
                bail!("{} answered nothing for {} s", self.endpoint.authority, ANSWER_WAIT_MAX.as_secs());
            }
            for event in &events {
                if event.token() != TIMER {
                    self.advance(event.token().0, &mut piece, told)?;
                }
            }
        }
    }

    fn due(&self, start: Instant, index: usize) -> Instant {
        self.gap.map_or(start, |gap| start + gap.mul_f64(index as f64))
    }

    fn send_due(&mut self, start: Instant, told: &mut dyn FnMut(Exchange<'_>)) -> anyhow::Result<()> {
        while self.next < self.requests.len() {
            let due = self.due(start, self.next);
            let now = Instant::now();
            if due > now {
                break;
            }
            let Some(lane) = self.idle.pop() else { break };
            self.lanes[lane].carries = Some(Carried { index: self.next, due, sent: now, written: 0 });
            self.next += 1;
            self.write(lane, told)?;
        }
        Ok(())
    }

    /// Wakes the loop when the next request is due and a lane is free for it; gives whether it was set.
    fn set_timer(&self, start: Instant) -> anyhow::Result<bool> {
        if self.next == self.requests.len() || self.idle.is_empty() {
            return Ok(false);
        }
        // A timer of zero would be no timer.
        let wait = self.due(start, self.next).saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        self.timer.set(Expiration::OneShot(TimeSpec::from_duration(wait)), TimerSetTimeFlags::empty())?;
        Ok(true)
    }

    fn write(&mut self, index: usize, told: &mut dyn FnMut(Exchange<'_>)) -> anyhow::Result<()> {
        let lane = &mut self.lanes[index];
        let Some(carried) = &mut lane.carries else { return Ok(()) };
        let request = &self.requests[carried.index];
        while carried.written < request.len() {
            match lane.stream.write(&request[carried.written..]) {
                Ok(length) => carried.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return self.finish(index, Some(error.to_string()), told),
            }
        }
        Ok(())
    }

    fn advance(&mut self, index: usize, piece: &mut [u8], told: &mut dyn FnMut(Exchange<'_>)) -> anyhow::Result<()> {
        self.write(index, told)?;
        loop {
            let lane = &mut self.lanes[index];
            match lane.stream.read(piece) {
                Ok(0) => {
                    let whole = lane.answer.close();
                    let fault = (!whole).then(|| "the connection was closed before the answer".to_string());
                    return self.finish(index, fault, told);
                }
                Ok(length) => {
                    if let Err(error) = lane.answer.take(&piece[..length]) {
                        return self.finish(index, Some(error.to_string()), told);
                    }
                    if lane.answer.is_complete() && lane.carries.is_some() {
                        self.finish(index, None, told)?;
                    }
                    // What comes later makes a new event.
                    if self.lanes[index].stream.has_emptied(length, piece.len()) {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.finish(index, Some(error.to_string()), told),
            }
        }
    }

    /// Tells what became of the request on this lane and frees it, over a new connection where the old one is of no more use.
    fn finish(&mut self, index: usize, fault: Option<String>, told: &mut dyn FnMut(Exchange<'_>)) -> anyhow::Result<()> {
        let finished = Instant::now();
        let lane = &mut self.lanes[index];
        let closed = fault.is_some() || lane.answer.closes();
        if let Some(carried) = lane.carries.take() {
            let answer = fault.map_or(Ok(&lane.answer), Err);
            told(Exchange { index: carried.index, due: carried.due, sent: carried.sent, finished, answer });
            self.done += 1;
            self.idle.push(index);
        }
        lane.answer.reset();
        if closed {
            self.reopened += 1;
            if self.reopened > REOPENED_MAX {
                bail!("{} closed {REOPENED_MAX} connections in one run", self.endpoint.authority);
            }
            self.lanes[index].stream = self.connect(index)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer;
    use crate::request;
    use serde_json::json;

    /// Index, latency from due, and status (0 without an answer) of each exchange in the order of the answers.
    fn driven(endpoint: &Endpoint, count: usize, rate_per_s: Option<f64>, lanes: usize) -> Vec<(usize, Duration, u16)> {
        let requests: Vec<_> = (0..count).map(|n| request::post(endpoint, "/x", &json!({ "n": n }))).collect();
        let mut told = Vec::new();
        drive(endpoint, &requests, rate_per_s, lanes, &mut |exchange| {
            assert!(exchange.due <= exchange.sent && exchange.sent <= exchange.finished);
            told.push((exchange.index, exchange.finished - exchange.due, exchange.answer.map_or(0, AnswerReader::status)));
        })
        .unwrap();
        told
    }

    fn indices(told: &[(usize, Duration, u16)]) -> Vec<usize> {
        let mut indices: Vec<_> = told.iter().map(|(index, ..)| *index).collect();
        indices.sort_unstable();
        indices
    }

    #[test]
    fn without_a_rate_every_request_goes_as_soon_as_a_lane_is_free() {
        let endpoint = peer::serve(|_, _| (200, "{}".into()));
        for lanes in [1, 3, 50] {
            let told = driven(&endpoint, 40, None, lanes);
            assert_eq!(indices(&told), (0..40).collect::<Vec<_>>());
            assert!(told.iter().all(|(_, _, status)| *status == 200));
        }
    }

    #[test]
    fn a_rate_holds_requests_back_until_they_are_due() {
        let endpoint = peer::serve(|_, _| (200, "".into()));
        let started = Instant::now();
        let told = driven(&endpoint, 21, Some(200.0), 4);
        assert!(started.elapsed() >= Duration::from_millis(100), "20 gaps of 5 ms");
        assert_eq!(indices(&told), (0..21).collect::<Vec<_>>());
    }

    #[test]
    fn the_wait_for_a_lane_is_part_of_the_latency() {
        let endpoint = peer::serve(|_, _| {
            std::thread::sleep(Duration::from_millis(20));
            (200, "".into())
        });
        let told = driven(&endpoint, 4, Some(1000.0), 1);
        let (index, latency, _) = told[3];
        assert!(index == 3 && latency >= Duration::from_millis(77), "due after 3 ms, answered after 80: {latency:?}");
    }

    #[test]
    fn a_closed_connection_is_a_fault_and_the_lane_goes_on() {
        let endpoint = peer::serve(|_, body| if body == r#"{"n":1}"# { (0, "".into()) } else { (200, "".into()) });
        let told = driven(&endpoint, 5, None, 1);
        assert_eq!(indices(&told), [0, 1, 2, 3, 4]);
        assert_eq!(told.iter().filter(|(_, _, status)| *status == 0).map(|(index, ..)| *index).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn nobody_there_is_an_error() {
        let endpoint = peer::nobody();
        assert!(drive(&endpoint, &[b"x".to_vec()], None, 1, &mut |_| {}).is_err());
    }
}
