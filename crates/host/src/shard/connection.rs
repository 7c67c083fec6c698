//! One connection of the shard: its socket, what it has read, what it has to write.

use std::{
    io,
    net::{IpAddr, Shutdown, SocketAddr},
    time::{Duration, Instant},
};

use bodkin_broker::SubscriptionKey;
use mio::net::TcpStream;
use socket2::{SockRef, TcpKeepalive};

use super::{outbox::Outbox, replay::Replay, wish::Asking};
use crate::{
    channel::Channel,
    gate::Reader,
    http::{FIRST_BUFFER_BYTES, Persistence, RequestReader},
    limits::Limits,
    quotas::ConnectionPermit,
    security::Peer,
};

/// Bytes read from one connection in a turn, so that a fast publisher leaves the others their turn.
const TURN_BYTES_MAX: usize = 64 * 1024;
/// Bytes of answers that may wait to be taken by the client; behind them its further requests wait.
const UNSENT_BYTES_MAX: usize = 64 * 1024;
/// A reader that grew beyond this releases its memory when it is empty.
const KEPT_BYTES_MAX: usize = FIRST_BUFFER_BYTES;
/// A subscriber whose client's host is silent is probed after this time, and given up after three further thirds of it.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading requests.
    Requests,
    /// Waiting for the control plane's answer; further requests wait behind it.
    Waiting {
        /// Persistence of the connection after the answer.
        keep_alive: Persistence,
        /// Whether the answer is written without its body.
        is_head: bool,
    },
    /// An event stream that is being sent what it has missed.
    Replay,
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

/// The other end of a connection.
pub struct Client {
    /// Its certificate.
    pub peer: Peer,
    /// Its address, read once when the connection is accepted. `None`: the client was gone at once.
    pub address: Option<SocketAddr>,
    /// Counts the connection for the client's quota.
    _permit: ConnectionPermit,
}

impl Client {
    /// `address` is `None` if the client was gone at once.
    pub fn new(peer: Peer, address: Option<SocketAddr>, permit: ConnectionPermit) -> Self {
        Self { peer, address, _permit: permit }
    }
}

/// A connection.
pub struct Connection {
    channel: Channel<TcpStream>,
    /// Tells it from its slot's former and later ones.
    pub serial: u64,
    /// The other end.
    pub client: Client,
    /// Whether its consumer was permitted to hear somebody at the last look.
    pub is_permitted: bool,
    /// What was read and is not yet served.
    pub reader: RequestReader,
    /// What it is doing.
    pub phase: Phase,
    /// The replay under way in that phase.
    pub replay: Option<Replay>,
    /// What its event stream asks of the topic.
    pub asking: Option<Asking>,
    /// Whose page may read the answer to the request under way.
    pub page: Reader,
    /// Whether that request is of Bodkin's own interface, whose errors are problems.
    pub is_own: bool,
    out: Outbox,
    /// Bytes that the channel has taken.
    taken_bytes: u64,
    /// Bytes of `out` that the broker counts as queued.
    queued: u64,
    /// Events that its stream has lost and was told of.
    pub lost: u64,
    /// The first byte of the request under way, or the end of the last one.
    since: Instant,
    amid_request: bool,
    /// When something was last sent.
    sent: Instant,
    /// Since when the client has taken nothing of what waits to be written.
    stalled_since: Option<Instant>,
    /// Since when nothing more is expected of the client but its end.
    shut_down: Option<Instant>,
    end: End,
    /// Whether it has published an event of a real-time topic: then its next one may be due soon.
    pub is_urgent: bool,
    /// Whether the next turn reads it without waiting for the system to say that something is there.
    pub is_to_be_read: bool,
    /// Whether the reader holds what was not looked at, because serving had to stop: it is served before more is read.
    pub holds_unserved: bool,
    /// Whether an event stream has answers in front of it that say that the event log is written.
    is_behind_answers: bool,
    /// Whether reading and serving wait until an answer has come or the client has taken what it was sent.
    postponed: bool,
}

impl Connection {
    /// A connection that was just accepted.
    pub fn new(channel: Channel<TcpStream>, client: Client, reader: RequestReader, serial: u64, now: Instant) -> Self {
        Self {
            channel,
            serial,
            client,
            is_permitted: false,
            reader,
            phase: Phase::Requests,
            replay: None,
            asking: None,
            page: None,
            is_own: false,
            out: Outbox::default(),
            taken_bytes: 0,
            queued: 0,
            lost: 0,
            since: now,
            amid_request: false,
            sent: now,
            stalled_since: None,
            shut_down: None,
            end: End::Open,
            is_urgent: false,
            is_to_be_read: false,
            holds_unserved: false,
            is_behind_answers: false,
            postponed: false,
        }
    }

    /// The socket, to be deregistered.
    pub fn socket(&mut self) -> &mut TcpStream {
        self.channel.socket_mut()
    }

    /// Whether it is in TLS.
    pub fn is_secure(&self) -> bool {
        self.channel.is_tls()
    }

    /// The addresses of the client's end and of this one; `None` if it is gone.
    pub fn ends(&self) -> Option<(IpAddr, IpAddr)> {
        Some((self.client.address?.ip(), self.channel.socket().local_addr().ok()?.ip()))
    }

    /// Where to append what is to be written.
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.out.bytes()
    }

    /// Appends an event's frame, whose bytes the broker counts as queued.
    pub fn push_frame(&mut self, frame: &[u8], offered_bytes: usize) {
        self.out.bytes().extend_from_slice(frame);
        self.queued += offered_bytes as u64;
    }

    /// Whether nothing is left to write.
    pub fn is_written(&self) -> bool {
        self.unsent_bytes() == 0 && self.channel.is_flushed()
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

    /// Whether the next request has to wait: for the control plane's answer, or for a client that sends on without taking
    /// its answers. Neither can fill our memory.
    pub fn postpones(&mut self) -> bool {
        let waits = match self.phase {
            Phase::Requests => self.unsent_bytes() > UNSENT_BYTES_MAX,
            Phase::Waiting { .. } => true,
            Phase::Replay | Phase::Stream { .. } | Phase::Closing => false,
        };
        self.postponed |= waits;
        waits
    }

    /// Bytes that are to be written.
    pub fn unsent_bytes(&self) -> usize {
        self.out.unsent_bytes()
    }

    /// Bytes that the channel has taken, from the connection's begin on.
    pub fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Bytes of events that the client has not taken.
    pub fn queued_bytes(&self) -> u64 {
        self.queued
    }

    /// Whether something was postponed that can go on now. True once.
    pub fn resumes(&mut self) -> bool {
        self.postponed && !self.postpones() && std::mem::take(&mut self.postponed)
    }

    /// Reads what is there. What an event stream's or a closing connection's client sends is dropped.
    pub fn read(&mut self, now: Instant) -> io::Result<Read> {
        let mut dropped = [0; 4096];
        let mut share = TURN_BYTES_MAX;
        while share > 0 {
            let takes = self.phase == Phase::Requests;
            let space = if takes {
                // The error is the reader's next request, and answered as such.
                let Ok(space) = self.reader.space() else { return Ok(Read::Drained) };
                space
            } else {
                &mut dropped
            };
            let capacity = space.len();
            match self.channel.read(space) {
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
                    if self.channel.is_drained_by(bytes, capacity) && self.end == End::Open {
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

    /// Takes its reader back after requests were served. A stream or a closing connection needs none any more.
    pub fn put_back(&mut self, mut reader: RequestReader, served: bool, now: Instant) {
        if matches!(self.phase, Phase::Replay | Phase::Stream { .. } | Phase::Closing) {
            return;
        }
        self.amid_request = reader.is_amid_request();
        if served || !self.amid_request {
            // What is left has begun to arrive just now, as far as its own request is concerned.
            self.since = now;
        }
        reader.shrink(KEPT_BYTES_MAX);
        self.reader = reader;
    }

    /// Waits until its event is dispatched, whose publisher's next one may be due soon.
    pub fn await_dispatch(&mut self, keep_alive: Persistence) {
        self.phase = Phase::Waiting { keep_alive, is_head: false };
        self.is_urgent = true;
    }

    /// Becomes an event stream that begins with what was missed.
    pub fn begin_replay(&mut self, replay: Replay) {
        self.phase = Phase::Replay;
        self.replay = Some(replay);
        probe(self.channel.socket());
    }

    /// Becomes a live event stream.
    pub fn begin_stream(&mut self, subscription: SubscriptionKey) {
        self.phase = Phase::Stream { subscription };
        self.is_behind_answers = !self.is_written();
        probe(self.channel.socket());
    }

    /// Whether it is written before the event log is: an event stream, unless it was pipelined behind answers that wait for the log.
    pub fn goes_before_log(&self) -> bool {
        matches!(self.phase, Phase::Stream { .. }) && !self.is_behind_answers
    }

    /// Whether it has become an event stream.
    pub fn is_event_stream(&self) -> bool {
        matches!(self.phase, Phase::Replay | Phase::Stream { .. })
    }

    /// Whether nothing was sent for so long that the listener should hear that we are still here.
    pub fn wants_heartbeat(&self, now: Instant, period: Duration) -> bool {
        self.is_event_stream() && self.is_written() && now.saturating_duration_since(self.sent) >= period
    }

    /// Writes as much as the socket takes; gives the queued bytes that are thereby released.
    pub fn write_out(&mut self, now: Instant) -> io::Result<u64> {
        self.is_behind_answers = false;
        let was_flushed = self.channel.is_flushed();
        let taken = self.out.write_to(|bytes| self.channel.write(bytes))?;
        self.taken_bytes += taken as u64;
        match self.channel.flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        let is_taken = taken > 0 || (!was_flushed && self.channel.is_flushed());
        self.stalled_since = match self.stalled_since {
            _ if self.is_written() => None,
            Some(since) if !is_taken => Some(since),
            _ => Some(now),
        };
        if is_taken {
            self.sent = now;
            if !self.amid_request {
                self.since = now;
            }
        }
        let queued = self.queued.min(self.unsent_bytes() as u64);
        let released = self.queued - queued;
        self.queued = queued;
        Ok(released)
    }

    /// Says once that nothing more comes; false if the connection is gone.
    pub fn shut_down(&mut self, now: Instant) -> bool {
        self.shut_down.is_some() || {
            self.shut_down = Some(now);
            self.channel.close();
            self.channel.socket().shutdown(Shutdown::Write).is_ok()
        }
    }

    /// Ends it, told as far as the socket takes it now.
    pub fn end(&mut self) {
        self.channel.close();
    }

    /// Whether a deadline is past: `Some(true)` if the client is still to be told, `Some(false)` if there is nothing to say.
    pub fn overdue(&self, now: Instant, limits: &Limits) -> Option<bool> {
        let over = |since: Instant, limit: Duration| now.saturating_duration_since(since) > limit;
        let stalled = |limit| self.stalled_since.is_some_and(|since| over(since, limit));
        match self.phase {
            Phase::Replay | Phase::Stream { .. } => stalled(limits.stream_stall_timeout).then_some(false),
            _ if stalled(limits.send_timeout) => Some(false),
            Phase::Requests if !self.is_written() => None,
            Phase::Requests if self.amid_request => over(self.since, limits.request_timeout(self.reader.is_amid_body())).then_some(true),
            Phase::Requests => over(self.since, limits.idle_timeout).then_some(false),
            Phase::Closing => self.shut_down.is_some_and(|since| over(since, limits.send_timeout)).then_some(false),
            Phase::Waiting { .. } => None,
        }
    }
}

/// A host that vanishes is noticed by probes, for what nobody takes is noticed only when there is much of it.
pub fn probe(socket: &TcpStream) {
    let probes = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 3).with_retries(3);
    if let Err(error) = SockRef::from(socket).set_tcp_keepalive(&probes) {
        tracing::debug!(%error, "a vanished client will not be noticed by probes");
    }
}

#[cfg(test)]
mod tests {
    use bodkin_broker::{Incarnation, Overflow, Shard, ShardLimits};

    use super::*;
    use crate::quotas::{ClientKey, FittedLimits, Quotas};

    #[test]
    fn a_stream_behind_an_answer_waits_for_the_event_log() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        let limits = ShardLimits { subscriptions_max: 1, topics_max: 1, queue_bytes_max: 1 };
        let subscription = Shard::new(Incarnation(1), limits).subscribe("T", (), Overflow::Loses).unwrap();
        let quotas = Quotas::new(&FittedLimits::new(&Limits::default(), false, 1024), &Limits::default());
        let other_end = Client::new(Peer::anonymous(), None, quotas.events.admit(ClientKey::Local).unwrap());
        let channel = Channel::plain(TcpStream::from_std(client));
        let mut connection = Connection::new(channel, other_end, RequestReader::new(0), 0, Instant::now());
        connection.out().extend_from_slice(b"HTTP/1.1 200 OK\r\n\r\n");
        connection.begin_stream(subscription);
        assert!(!connection.goes_before_log(), "the answer says that the event is in the log");
        connection.write_out(Instant::now()).unwrap();
        connection.push_frame(b"data: x\n\n", 9);
        assert!(connection.goes_before_log());
    }
}
