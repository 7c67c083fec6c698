//! Resume tokens: how far a listener has received the events of every node, so that it can continue at any node.
//!
//! A token follows an event's id on streams. It is a version vector: each node has the events of one other node in that
//! node's order, although the orders of all events differ.
//!
//! ```text
//! id: 1a-18aa3f-0-7@c0ffee12:a1.30.18aa40~a1.18aa00~b2.1d.18aa3e
//!     identity      cloud    node that sent it; since; node.next.time for every node
//! ```
//!
//! The shard makes tokens (`shard::log`), and replays read them (`replay`).

mod unkept;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    str::FromStr,
};

use bodkin_broker::EventId;
use bodkin_store::event_log::{EventLogReader, Origin, Position, Record};

pub use self::unkept::UnkeptEvents;

/// Nodes that a token names. Of further nodes it says by time alone what was received.
const NODES_MAX: usize = 64;
/// Hexadecimal digits of the cloud's identity that a token carries.
const CLOUD_DIGITS: usize = 8;
/// The longest time from an event's acceptance until every node has it, with the difference of clocks, in nanoseconds.
///
/// After a longer delay an event can be missing, without a report, where a listener moves to a node that has just started for the first time.
const DELAY_MAX_NS: u64 = 5_000_000_000;

/// How far the events of one node were received.
///
/// The time tells an event from another one at the same position: a node that loses the end of its log in a power failure
/// gives those positions again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPlace {
    /// First position of the node's event log that was not received.
    pub next: Position,
    /// Latest time at which a received event was accepted there, in nanoseconds since 1970.
    pub time_ns: u64,
}

impl LogPlace {
    /// The place behind an event.
    pub fn behind(position: Position, time_ns: u64) -> Self {
        Self { next: Position(position.0 + 1), time_ns }
    }

    fn covers(self, position: Position, time_ns: u64) -> bool {
        position < self.next && time_ns <= self.time_ns
    }

    fn is_within(self, other: Self) -> bool {
        self.next <= other.next && self.time_ns <= other.time_ns
    }

    fn join(&mut self, other: Self) {
        *self = Self { next: self.next.max(other.next), time_ns: self.time_ns.max(other.time_ns) };
    }
}

/// First digits of a cloud's identity: ids of systems and positions of nodes mean something in one cloud only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloudTag(u32);

impl CloudTag {
    /// The tag of a cloud, by the identity of its database in hexadecimal digits.
    ///
    /// # Panics
    /// The identity has fewer than 8 digits.
    pub fn of(identity: &str) -> Self {
        let digits = identity.get(..CLOUD_DIGITS).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        Self(digits.expect("a cloud's identity is 32 hexadecimal digits"))
    }
}

impl fmt::Display for CloudTag {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:0digits$x}", self.0, digits = CLOUD_DIGITS)
    }
}

/// How far a listener has received the events of every node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeToken {
    cloud: CloudTag,
    /// Node that sent the token.
    node: u64,
    /// Events of nodes that the token does not name count as received up to this time, in nanoseconds since 1970.
    since_ns: u64,
    nodes: BTreeMap<u64, LogPlace>,
}

/// A text that is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidToken;

impl ResumeToken {
    /// A token of a node that has received nothing of events accepted after `since_ns`.
    pub fn new(cloud: CloudTag, node: u64, since_ns: u64) -> Self {
        Self { cloud, node, since_ns, nodes: BTreeMap::new() }
    }

    /// The token of this node for a listener that has received nothing.
    pub fn empty(&self) -> Self {
        Self::new(self.cloud, self.node, self.since_ns)
    }

    /// The cloud that the token belongs to.
    pub fn cloud(&self) -> CloudTag {
        self.cloud
    }

    /// The node that sent the token.
    pub fn node(&self) -> u64 {
        self.node
    }

    /// Records that a node's events were received up to a place. Places never decrease.
    pub fn reach(&mut self, node: u64, place: LogPlace) {
        self.nodes.entry(node).or_default().join(place);
    }

    /// Records an event at `position` of this node's own log, `time_ns` by this node's clock, and of another node where it has an origin.
    pub fn append(&mut self, position: Position, time_ns: u64, origin: Option<(Origin, u64)>) {
        self.reach(self.node, LogPlace::behind(position, time_ns));
        if let Some((origin, accepted_ns)) = origin {
            self.reach(origin.node, LogPlace::behind(origin.position, accepted_ns));
        }
    }

    /// Records what a record of this node's own log says.
    pub fn read(&mut self, record: &Record<'_>) {
        match record.origin {
            // The log does not say when it was appended here.
            Some(origin) => self.append(record.position, 0, Some((origin, record.time_ns))),
            None => self.append(record.position, record.time_ns, None),
        }
    }

    /// The token of a listener that brought `self` and continues at the node of `own`.
    pub fn continued_at(&self, own: &Self) -> Self {
        Self { node: own.node, ..self.clone() }
    }

    /// The maximum of both, sent by the node of `own`.
    pub fn joined(&self, own: &Self) -> Self {
        let mut joined = self.continued_at(own);
        joined.since_ns = self.since_ns.min(own.since_ns);
        own.nodes.iter().for_each(|(node, place)| joined.reach(*node, *place));
        joined
    }

    /// Returns true if `own` says everything that `self` says.
    pub fn is_within(&self, own: &Self) -> bool {
        let is_reached = |(node, place): (&u64, &LogPlace)| own.nodes.get(node).is_some_and(|other| place.is_within(*other));
        self.since_ns >= own.since_ns && self.nodes.iter().all(is_reached)
    }

    /// Returns true if an event that node `node` accepted at `time_ns`, at `position` of its log, was received.
    pub fn covers(&self, node: u64, position: Position, time_ns: u64) -> bool {
        self.nodes.get(&node).map_or(time_ns <= self.since_ns, |place| place.covers(position, time_ns))
    }

    /// The latest time at which a received event was accepted at a node, in nanoseconds since 1970; `None`: nothing of it was received.
    pub fn time_ns_of(&self, node: u64) -> Option<u64> {
        self.nodes.get(&node).map(|place| place.time_ns)
    }

    /// Returns true if everything of a node up to a place was received.
    pub fn covers_place(&self, node: u64, place: LogPlace) -> bool {
        place.next.0.checked_sub(1).is_none_or(|last| self.covers(node, Position(last), place.time_ns))
    }

    /// Returns true if a record of the log of node `own` was received.
    pub fn covers_record(&self, own: u64, record: &Record<'_>) -> bool {
        let (node, position) = record.origin.map_or((own, record.position), |origin| (origin.node, origin.position));
        self.covers(node, position, record.time_ns)
    }

    /// Returns true if the node of `now` may lack events that are pending: it began to receive events after the listener received its last one.
    pub fn may_be_lost_at(&self, now: &Self) -> bool {
        let last_ns = self.nodes.get(&self.node).map_or(0, |place| place.time_ns);
        now.since_ns > self.since_ns && last_ns < now.since_ns.saturating_add(DELAY_MAX_NS)
    }

    /// Returns the position of the first record that was not received in the log of the node of `now`, and whether earlier ones may be gone from it.
    ///
    /// `now` is the token of that node, and `id` the event that the listener received last. Blocks on the disk.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub fn first_pending(&self, now: &Self, id: EventId, log: &EventLogReader) -> io::Result<(Position, bool)> {
        let end = log.end();
        if self.node == now.node
            && let Some(own) = self.nodes.get(&now.node)
            && own.next <= end
            && self.is_last(*own, id, log)?
        {
            return Ok((own.next, own.next < log.state().first));
        }
        // A node of which the listener has received as much as has come here has nothing pending.
        let is_ahead = |(node, place): &(&u64, &LogPlace)| self.nodes.get(node).is_some_and(|received| !place.is_within(*received));
        let mut awaited: BTreeSet<u64> = now.nodes.iter().filter(is_ahead).map(|(node, _)| *node).collect();
        let is_unnamed = now.nodes.keys().any(|node| !self.nodes.contains_key(node));
        let unnamed_from = if is_unnamed { log.since(self.since_ns.saturating_sub(DELAY_MAX_NS))? } else { end };
        let (mut from, mut until) = (end, end);
        for files in 1.. {
            if awaited.is_empty() && until <= unnamed_from {
                return Ok((from, false));
            }
            let begin = log.newest_files(files);
            let mut cursor = log.cursor(begin);
            let mut first = None;
            while let Some(record) = cursor.read_before(until)? {
                if self.covers_record(now.node, &record) {
                    awaited.remove(&record.origin.map_or(now.node, |origin| origin.node));
                } else {
                    first.get_or_insert(record.position);
                }
            }
            from = first.unwrap_or(from);
            let state = log.state();
            if files >= state.segments {
                let is_gone = !awaited.is_empty() && state.first > Position(0);
                return Ok((from, is_gone));
            }
            until = begin;
        }
        unreachable!("a log has fewer files")
    }

    /// Returns true if the record in front of a place of the own log is still the one that the token speaks of.
    fn is_last(&self, own: LogPlace, id: EventId, log: &EventLogReader) -> io::Result<bool> {
        let Some(last) = own.next.0.checked_sub(1).map(Position) else { return Ok(true) };
        if last < log.state().first {
            // Retention has taken it: positions behind it were given after it.
            return Ok(true);
        }
        let name = |id: EventId| (id.publisher, id.incarnation, id.sequence);
        let is_same = |record: Record<'_>| {
            let is_earlier = record.origin.is_none() && record.time_ns <= own.time_ns;
            record.position == last && (is_earlier || name(record.id) == name(id))
        };
        Ok(log.cursor(last).read()?.is_some_and(is_same))
    }
}

impl fmt::Display for ResumeToken {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Beyond the limit the latest ones are named, and time stands for the others.
        let mut latest: Vec<(&u64, &LogPlace)> = self.nodes.iter().collect();
        let mut since_ns = self.since_ns;
        if latest.len() > NODES_MAX {
            latest.sort_unstable_by_key(|(node, place)| (**node != self.node, std::cmp::Reverse(place.time_ns)));
            since_ns = since_ns.max(latest[NODES_MAX].1.time_ns);
            latest.truncate(NODES_MAX);
        }
        write!(to, "@{}:{:x}.{since_ns:x}", self.cloud, self.node)?;
        latest.iter().try_for_each(|(node, place)| write!(to, "~{node:x}.{:x}.{:x}", place.next.0, place.time_ns))
    }
}

impl FromStr for ResumeToken {
    type Err = InvalidToken;

    /// Reads what follows an `@`.
    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let (cloud, rest) = text.split_once(':').ok_or(InvalidToken)?;
        if cloud.len() != CLOUD_DIGITS {
            return Err(InvalidToken);
        }
        let cloud = CloudTag(u32::try_from(hexadecimal(cloud)?).map_err(|_| InvalidToken)?);
        let mut parts = rest.split('~');
        let [node, since_ns] = numbers(parts.next().unwrap_or_default())?;
        let mut token = Self::new(cloud, node, since_ns);
        for part in parts {
            let [node, next, time_ns] = numbers(part)?;
            if token.nodes.len() >= NODES_MAX || token.nodes.insert(node, LogPlace { next: Position(next), time_ns }).is_some() {
                return Err(InvalidToken);
            }
        }
        Ok(token)
    }
}

fn numbers<const N: usize>(text: &str) -> Result<[u64; N], InvalidToken> {
    let read = text.split('.').take(N + 1).map(hexadecimal).collect::<Result<Vec<u64>, _>>()?;
    read.try_into().map_err(|_| InvalidToken)
}

fn hexadecimal(digits: &str) -> Result<u64, InvalidToken> {
    let is_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digits.then(|| u64::from_str_radix(digits, 16).ok()).flatten().ok_or(InvalidToken)
}

#[cfg(test)]
mod tests;
