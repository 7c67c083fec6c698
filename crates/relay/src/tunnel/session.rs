//! A tunnel's session at one of its two gateways, as a machine: which frames may come, how much may be sent, and when it is over.
//!
//! ```text
//! Opening ── the other gateway is heard ──> Open <──> HalfClosed ── a reason ──> Closing ── the other gateway is told ──> Closed
//! ```

mod plain;
#[cfg(test)]
mod tests;
mod words;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

pub use self::words::{Event, Look, SessionState, Side, Terms};
use super::{Connection, Frame, Reason, exchanges::Exchanges};

/// Connections of a session at the same time; the next one waits at the gateway's port until another one has ended.
pub const CONNECTIONS_MAX: usize = 8;
/// The same at the provider's side together with those that are over and not [`Session::gone`]: each of them may still hold what came for it. A gateway that gives
/// connections up and begins others sooner than these are given back is refused the next one.
pub const CONNECTIONS_HELD_MAX: usize = 2 * CONNECTIONS_MAX;
/// What may be under way in one direction of a connection: what is taken is given anew when it is half of this. Four TLS connections and three parties are on the way, and
/// each has a piece or two in its hands.
pub const WINDOW_BYTES: u32 = 512 * 1024;
/// What each piece costs of that besides its length, so that short ones are bounded too.
const PIECE_COST: u32 = 64;
/// By how much the provider's side of a session that nobody uses outlives the consumer's.
const PROVIDER_LONGER: Duration = Duration::from_secs(10);
/// A gateway says so often within the time that the other one waits that it is there.
const KEEP_ALIVES: u32 = 3;
/// How many times as long a session without frames lasts through silence, while its connection is there: nothing says whether the other gateway is, and whoever is silent may be well. Its
/// socket's own keep-alive finds out a consumer or provider that is gone.
const PLAIN_SILENCES: u32 = 10;
/// Not more often than this, whatever the other one says.
const KEEP_ALIVE_MIN: Duration = Duration::from_millis(50);

/// One direction of bytes each way.
#[derive(Clone, Copy, Debug)]
struct Directions {
    /// What may be sent: below zero, the last piece was longer than that.
    credit: i64,
    /// Nothing more is sent.
    has_ended: bool,
    /// What the other gateway may send.
    given: i64,
    /// What was taken, and is not given anew yet.
    untold: u32,
    /// Nothing more comes.
    peer_has_ended: bool,
}

impl Directions {
    fn new() -> Self {
        let window = i64::from(WINDOW_BYTES);
        Self { credit: window, has_ended: false, given: window, untold: 0, peer_has_ended: false }
    }
}

/// How the other gateway is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// It has not been heard yet.
    Unknown,
    /// By frames.
    Numbered,
    /// By bytes as they come, of one connection.
    Plain,
}

/// A session. Times count from any beginning, and never go back.
#[derive(Clone, Debug)]
pub struct Session {
    side: Side,
    terms: Terms,
    manner: Manner,
    begun: Duration,
    /// For how long the other gateway lets this one be silent, as far as it has said.
    peer_waits: Duration,
    /// Of the consumer's side: when the other gateway was told of the session. Until then its answer is not waited for.
    asked: Option<Duration>,
    /// When the other gateway was last heard.
    heard: Option<Duration>,
    /// When it was last told something.
    said: Duration,
    /// When there was last a connection, or the first of the present ones came.
    used: Option<Duration>,
    last: Connection,
    connections: BTreeMap<Connection, Directions>,
    /// Of the provider's side: those that are over, and whose sockets and bytes are not given back yet.
    leaving: BTreeSet<Connection>,
    /// Of a session without frames at the provider's side: what its connection was asked and has answered; `None`: what is said is no requests.
    exchanges: Option<Exchanges>,
    over: Option<Reason>,
    is_told: bool,
}

impl Session {
    /// A session that begins. `is_numbered` is how the consumer's gateway speaks; the provider's learns it by what comes first.
    pub fn new(side: Side, terms: Terms, is_numbered: bool, now: Duration) -> Self {
        let manner = match side {
            Side::Provider => Manner::Unknown,
            Side::Consumer if is_numbered => Manner::Numbered,
            Side::Consumer => Manner::Plain,
        };
        Self {
            side,
            terms,
            manner,
            begun: now,
            peer_waits: terms.silent(),
            asked: None,
            heard: None,
            said: now,
            used: None,
            last: 0,
            connections: BTreeMap::new(),
            leaving: BTreeSet::new(),
            exchanges: None,
            over: None,
            is_told: false,
        }
    }

    /// How it is with it.
    pub fn state(&self) -> SessionState {
        let is_half = |directions: &Directions| directions.has_ended != directions.peer_has_ended;
        match &self.over {
            Some(_) if self.is_told => SessionState::Closed,
            Some(_) => SessionState::Closing,
            // What is not numbered is never answered before it is used.
            None if self.heard.is_none() && self.manner != Manner::Plain => SessionState::Opening,
            None if !self.connections.is_empty() && self.connections.values().all(is_half) => SessionState::HalfClosed,
            None => SessionState::Open,
        }
    }

    /// Why it is over.
    pub fn reason(&self) -> Option<&Reason> {
        self.over.as_ref()
    }

    /// Whether the other gateway is spoken to by frames; `None`: it is not known yet.
    pub fn is_numbered(&self) -> Option<bool> {
        (self.manner != Manner::Unknown).then_some(self.manner == Manner::Numbered)
    }

    /// Connections that there are.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// True if the session has a connection and capacity for another, and nothing says that the other gateway is gone: it was heard, or the connection was
    /// made, within half of the time that it may be silent.
    pub fn is_in_use(&self, now: Duration) -> bool {
        let is_recent = self.heard.max(self.used).is_some_and(|since| now < since + self.terms.silent() / 2);
        self.manner == Manner::Numbered && !self.connections.is_empty() && self.has_room() && is_recent
    }

    /// Whether a consumer may connect.
    pub fn has_room(&self) -> bool {
        let connections_max = if self.manner == Manner::Plain { 1 } else { CONNECTIONS_MAX };
        // Without frames nothing says where another connection begins.
        let is_one_more = self.manner != Manner::Plain || self.last == 0;
        self.over.is_none() && self.connections.len() < connections_max && is_one_more
    }

    /// A consumer has connected: the number of its connection, which the other gateway is told by [`Frame::Connect`]; `None`: there is no room.
    pub fn accept(&mut self, now: Duration) -> Option<Connection> {
        if self.side != Side::Consumer || !self.has_room() {
            return None;
        }
        self.last += 1;
        self.begin(self.last, now);
        Some(self.last)
    }

    fn begin(&mut self, connection: Connection, now: Duration) {
        if self.connections.is_empty() {
            self.used = Some(now);
        }
        self.connections.insert(connection, Directions::new());
    }

    /// The other gateway is being told of the session: it has [`Terms::opening`] from now on.
    pub fn asked(&mut self, now: Duration) {
        self.asked.get_or_insert(now);
    }

    /// The consumer's gateway has opened the session, which is numbered, and lets this one be silent for so long.
    pub fn opened(&mut self, silent_ms: u32, now: Duration, events: &mut Vec<Event>) {
        self.manner = Manner::Numbered;
        self.heard = Some(now);
        self.peer_waits = Duration::from_millis(silent_ms.into());
        events.push(Event::Say(Frame::Ready(self.terms.silent_ms())));
    }

    /// How often the other gateway is told that this one is there, while there is a connection and nothing else is said.
    fn keep_alive(&self) -> Duration {
        (self.peer_waits.min(self.terms.silent()) / KEEP_ALIVES).max(KEEP_ALIVE_MIN)
    }

    /// A frame has come.
    ///
    /// # Errors
    /// It may not come now: the session is over.
    pub fn receive(&mut self, frame: Frame, now: Duration, events: &mut Vec<Event>) -> Result<(), Reason> {
        self.heard = Some(now);
        match frame {
            Frame::Ready(silent_ms) if self.side == Side::Consumer => {
                self.peer_waits = Duration::from_millis(silent_ms.into());
                Ok(())
            }
            Frame::KeepAlive => Ok(()),
            Frame::Close(words) => Err(Reason::Peer(words)),
            Frame::Connect(number) if self.side == Side::Provider && number > self.last => {
                self.last = number;
                if self.connections.len() >= CONNECTIONS_MAX {
                    let words = format!("a session has {CONNECTIONS_MAX} connections at the most");
                    events.push(Event::Say(Frame::Reset(number, words)));
                } else if self.is_full() {
                    let words = format!("{} connections that were given up have not ended yet", self.leaving.len());
                    events.push(Event::Say(Frame::Reset(number, words)));
                } else {
                    self.begin(number, now);
                    events.push(Event::Connect(number));
                }
                Ok(())
            }
            Frame::Ready(_) | Frame::Connect(_) => Err(Reason::fault("it opens a session or a connection that is open")),
            Frame::Bytes(number, piece) => self.receive_piece(number, piece, events),
            Frame::Credit(number, bytes) => {
                if let Some(directions) = self.known(number)? {
                    directions.credit += i64::from(bytes);
                    if directions.credit > i64::from(WINDOW_BYTES) {
                        return Err(Reason::fault("it gives more than it was sent"));
                    }
                    events.push(Event::Credit(number));
                }
                Ok(())
            }
            Frame::End(number) => {
                if let Some(directions) = self.known(number)? {
                    if directions.peer_has_ended {
                        return Err(Reason::fault("it ends a direction twice"));
                    }
                    directions.peer_has_ended = true;
                    events.push(Event::End(number));
                    self.forget_if_ended(number, now);
                }
                Ok(())
            }
            Frame::Reset(number, words) => {
                if self.known(number)?.is_some() {
                    self.forget(number, now);
                    events.push(Event::Reset(number, words));
                }
                Ok(())
            }
        }
    }

    fn receive_piece(&mut self, number: Connection, piece: Vec<u8>, events: &mut Vec<Event>) -> Result<(), Reason> {
        let Some(directions) = self.known(number)? else { return Ok(()) };
        if directions.peer_has_ended {
            return Err(Reason::fault("bytes come behind their end"));
        }
        if directions.given <= 0 {
            return Err(Reason::fault("it sends more than it may"));
        }
        directions.given -= i64::from(cost(piece.len()));
        events.push(Event::Bytes(number, piece));
        Ok(())
    }

    /// The connection of a number; `None`: it has ended here, and what comes was on its way.
    fn known(&mut self, number: Connection) -> Result<Option<&mut Directions>, Reason> {
        if number > self.last {
            return Err(Reason::fault("it names a connection that there never was"));
        }
        Ok(self.connections.get_mut(&number))
    }

    /// How many bytes of the connection may be sent at once now.
    pub fn credit(&self, connection: Connection) -> usize {
        let Some(directions) = self.connections.get(&connection).filter(|directions| !directions.has_ended) else { return 0 };
        match self.manner {
            // The relay's queue holds up who sends.
            Manner::Plain => super::PIECE_BYTES_MAX,
            _ => usize::try_from(directions.credit).unwrap_or(0).min(super::PIECE_BYTES_MAX),
        }
    }

    /// Bytes of the connection are sent.
    pub fn sent(&mut self, connection: Connection, bytes: usize) {
        if let Some(directions) = self.connections.get_mut(&connection).filter(|_| self.manner == Manner::Numbered) {
            directions.credit -= i64::from(cost(bytes));
        }
    }

    /// A piece that came was written to the connection: what the other gateway is to be told.
    pub fn taken(&mut self, connection: Connection, bytes: usize) -> Option<Frame> {
        let directions = self.connections.get_mut(&connection).filter(|_| self.manner == Manner::Numbered)?;
        directions.untold = directions.untold.saturating_add(cost(bytes));
        if directions.untold < WINDOW_BYTES / 2 || directions.peer_has_ended {
            return None;
        }
        let given = std::mem::take(&mut directions.untold);
        directions.given += i64::from(given);
        Some(Frame::Credit(connection, given))
    }

    /// Nothing more of the connection is sent: what the other gateway is to be told, if it has not been.
    pub fn end(&mut self, connection: Connection, now: Duration) -> Option<Frame> {
        let directions = self.connections.get_mut(&connection).filter(|directions| !directions.has_ended)?;
        directions.has_ended = true;
        self.forget_if_ended(connection, now);
        Some(Frame::End(connection))
    }

    /// The connection is given up here: what the other gateway is to be told, if it does not know.
    pub fn reset(&mut self, connection: Connection, why: &str, now: Duration) -> Option<Frame> {
        self.connections.contains_key(&connection).then(|| {
            self.forget(connection, now);
            Frame::Reset(connection, why.to_owned())
        })
    }

    fn forget_if_ended(&mut self, connection: Connection, now: Duration) {
        if self.connections.get(&connection).is_some_and(|directions| directions.has_ended && directions.peer_has_ended) {
            self.forget(connection, now);
        }
    }

    fn forget(&mut self, connection: Connection, now: Duration) {
        if self.connections.remove(&connection).is_some() && self.side == Side::Provider {
            self.leaving.insert(connection);
        }
        self.used = Some(now);
    }

    /// Nothing is left of a connection that is over: neither its socket nor what came for it.
    pub fn gone(&mut self, connection: Connection) {
        self.leaving.remove(&connection);
    }

    fn is_full(&self) -> bool {
        self.connections.len() + self.leaving.len() >= CONNECTIONS_HELD_MAX
    }

    /// Something was said to the other gateway.
    pub fn said(&mut self, now: Duration) {
        self.said = now;
    }

    /// The session is over; the first reason stays.
    pub fn close(&mut self, reason: Reason) {
        self.over.get_or_insert(reason);
    }

    /// Everything is told, and nothing is left of it.
    pub fn closed(&mut self) {
        self.is_told = true;
        self.connections.clear();
    }

    /// What time has brought.
    pub fn look(&self, now: Duration) -> Look {
        if let Some(reason) = &self.over {
            return Look::Over(reason.clone());
        }
        let Terms { idle, opening } = self.terms;
        let mut until = Duration::MAX;
        // Of several limits the one that is reached first counts.
        let mut reached = |limit: Duration, from: Duration| {
            until = until.min(from + limit);
            now >= from + limit
        };
        let used = self.used.unwrap_or(self.begun);
        if let (Some(asked), None) = (self.asked, self.heard)
            && reached(opening, asked)
        {
            return Look::Over(Reason::NoAnswer(opening));
        }
        if self.connections.is_empty() {
            let limit = match (self.side, self.used) {
                (Side::Consumer, None) => idle * 2,
                (Side::Provider, None) => idle * 4,
                (Side::Consumer, Some(_)) => idle,
                (Side::Provider, Some(_)) => idle + PROVIDER_LONGER,
            };
            if reached(limit, used) {
                return Look::Over(if self.used.is_none() { Reason::Unused(limit) } else { Reason::Idle(limit) });
            }
        } else if self.manner == Manner::Numbered {
            let heard = self.heard.unwrap_or(used).max(used);
            // Before it was heard at all it has its time to answer.
            if self.heard.is_some() && reached(self.terms.silent(), heard) {
                return Look::Over(Reason::Silent(self.terms.silent()));
            }
            if reached(self.keep_alive(), self.said) {
                return Look::KeepAlive;
            }
        } else if reached(idle * PLAIN_SILENCES, self.heard.unwrap_or(used).max(used).max(self.said)) {
            return Look::Over(Reason::Idle(idle * PLAIN_SILENCES));
        }
        Look::Wait(until)
    }
}

/// What a piece costs of the credit.
fn cost(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX).saturating_add(PIECE_COST)
}
