//! One connection of the shard: its socket, what it has read, what it has to write.

use std::{
    io::{self, Read as _, Write as _},
    net::Shutdown,
    time::Instant,
};

use bodkin_broker::SubscriptionKey;
use mio::net::TcpStream;

use crate::{http::RequestReader, limits::Limits};

/// Bytes read from one connection in a turn, so that a fast publisher leaves the others their turn.
const TURN_BYTES_MAX: usize = 256 * 1024;
/// A send buffer that grew beyond this is given back when it is empty.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading requests.
    Requests,
    /// Waiting for the control plane's answer; further requests wait behind it.
    Waiting {
        /// Whether the connection stays open behind the answer.
        keep_alive: bool,
        /// Whether the answer is written without its body.
        is_head: bool,
    },
    /// An event stream.
    Stream {
        /// Whose events.
        subscription: SubscriptionKey,
    },
    /// Closed once everything is written.
    Closing,
}

/// How far the client's side of the connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// More may come.
    Open,
    /// The system says that the client has ended; its last bytes may still be unread.
    Announced,
    /// Everything was read.
    Seen,
}

/// What became of a read.
pub enum Read {
    /// Nothing is left in the socket.
    Drained,
    /// The turn's share is used up.
    MoreToCome,
}

/// A connection.
pub struct Connection {
    socket: TcpStream,
    /// Tells it from its slot's former and later ones.
    pub serial: u64,
    /// What was read and is not yet served.
    pub reader: RequestReader,
    /// What it is doing.
    pub phase: Phase,
    out: Vec<u8>,
    written: usize,
    /// Bytes of `out` that the broker counts as queued.
    queued: u64,
    /// The first byte of the request under way, or the end of the last one.
    since: Instant,
    amid_request: bool,
    shut_down: bool,
    end: End,
    /// Whether the socket may hold bytes that were not read while an answer was awaited.
    postponed: bool,
}

impl Connection {
    /// A connection that was just accepted.
    pub fn new(socket: TcpStream, serial: u64, body_bytes_max: usize, now: Instant) -> Self {
        Self {
            socket,
            serial,
            reader: RequestReader::new(body_bytes_max),
            phase: Phase::Requests,
            out: Vec::new(),
            written: 0,
            queued: 0,
            since: now,
            amid_request: false,
            shut_down: false,
            end: End::Open,
            postponed: false,
        }
    }

    /// The socket, to be deregistered.
    pub fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Where to append what is to be written.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Appends an event's frame, whose bytes the broker counts as queued.
    pub fn push_frame(&mut self, frame: &[u8]) {
        self.out.extend_from_slice(frame);
        self.queued += frame.len() as u64;
    }

    /// Whether nothing is left to write.
    pub fn is_written(&self) -> bool {
        self.written == self.out.len()
    }

    /// Notes that the client has ended, so that its end is read behind its last bytes.
    pub fn expect_end(&mut self) {
        if self.end == End::Open {
            self.end = End::Announced;
        }
    }

    /// Whether the client has ended and everything it said was read.
    pub fn has_ended(&self) -> bool {
        self.end == End::Seen
    }

    /// Whether nothing is left to write and no answer is awaited.
    pub fn is_settled(&self) -> bool {
        self.is_written() && !matches!(self.phase, Phase::Waiting { .. })
    }

    /// Whether reading has to wait for the control plane's answer, so that a client that sends on cannot fill our memory.
    pub fn postpones_reading(&mut self) -> bool {
        let waits = matches!(self.phase, Phase::Waiting { .. });
        self.postponed |= waits;
        waits
    }

    /// Whether reading was postponed since the last time this was asked.
    pub fn take_postponed(&mut self) -> bool {
        std::mem::take(&mut self.postponed)
    }

    /// Reads what is there. What an event stream's or a closing connection's client sends is dropped.
    pub fn read(&mut self, now: Instant) -> io::Result<Read> {
        let mut dropped = [0; 4096];
        let mut share = TURN_BYTES_MAX;
        while share > 0 {
            let takes = self.phase == Phase::Requests;
            let space = if takes { self.reader.space() } else { &mut dropped };
            let capacity = space.len();
            match self.socket.read(space) {
                Ok(0) => {
                    self.end = End::Seen;
                    return Ok(Read::Drained);
                }
                Ok(bytes) => {
                    if takes {
                        self.reader.fill(bytes);
                    }
                    if !self.amid_request {
                        self.amid_request = true;
                        self.since = now;
                    }
                    // Less than was asked for: the socket is empty, and new bytes raise a new readiness event. An end that
                    // was announced with these bytes raises none.
                    if bytes < capacity && self.end == End::Open {
                        return Ok(Read::Drained);
                    }
                    share = share.saturating_sub(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Read::Drained),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Read::MoreToCome)
    }

    /// Takes its reader back after its requests were served.
    pub fn put_back(&mut self, reader: RequestReader, now: Instant) {
        self.reader = reader;
        if !self.reader.is_amid_request() {
            self.amid_request = false;
            self.since = now;
        }
    }

    /// Writes as much as the socket takes; gives the queued bytes that are thereby released.
    pub fn write_out(&mut self, now: Instant) -> io::Result<u64> {
        while self.written < self.out.len() {
            match self.socket.write(&self.out[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    self.written += bytes;
                    if !self.amid_request {
                        self.since = now;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let left = self.out.len() - self.written;
        let queued = self.queued.min(left as u64);
        let released = self.queued - queued;
        self.queued = queued;
        self.tidy();
        Ok(released)
    }

    /// Gives written bytes' memory back: at once when all is written, else when they are the larger part.
    fn tidy(&mut self) {
        if self.is_written() {
            self.written = 0;
            self.out.clear();
            self.out.shrink_to(KEPT_BYTES_MAX);
        } else if self.written > self.out.len() / 2 {
            self.out.drain(..self.written);
            self.written = 0;
        }
    }

    /// Says once that nothing more comes; false if the connection is gone.
    pub fn shut_down(&mut self) -> bool {
        self.shut_down || {
            self.shut_down = true;
            self.socket.shutdown(Shutdown::Write).is_ok()
        }
    }

    /// Whether a deadline is past: `Some(true)` if the client is still to be told, `Some(false)` if there is nothing to say.
    pub fn overdue(&self, now: Instant, limits: &Limits) -> Option<bool> {
        let elapsed = now.saturating_duration_since(self.since);
        match self.phase {
            _ if !self.is_written() && !matches!(self.phase, Phase::Stream { .. }) => (elapsed > limits.send_timeout).then_some(false),
            Phase::Requests if self.amid_request => (elapsed > limits.request_timeout(self.reader.is_amid_body())).then_some(true),
            Phase::Requests => (elapsed > limits.idle_timeout).then_some(false),
            Phase::Closing => (elapsed > limits.send_timeout).then_some(false),
            Phase::Waiting { .. } | Phase::Stream { .. } => None,
        }
    }
}
