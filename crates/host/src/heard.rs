//! How far a listener has heard, where several nodes hand their events on to each other: behind its event's id, so that any node knows what it has missed.
//!
//! ```text
//! id: 1a-18aa3f-0-7@a1.2f.18aa40.b2.1c      at node a1, whose log has it at 2f, at this time; of node b2 everything up to 1c of its log has come there before
//! ```
//!
//! Orders of events differ from node to node, but each has those of one node in their order. So a place in each node's log says all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    str::FromStr,
};

use bodkin_broker::EventId;
use bodkin_store::event_log::{EventLogReader, Origin, Position, Record};

/// Nodes that are told at the most: beyond, what was heard of them is known by its time alone.
const NODES_MAX: usize = 64;

/// How far that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The node at which it was heard.
    node: u64,
    /// Everything in its log up to here.
    position: Position,
    /// When that was, by that node's clock in nanoseconds since 1970: it stands for nodes that are not told. And what is later is another event, whose place a killed node has given
    /// anew, for it had not written the first one.
    time_ns: u64,
    /// Of each other node everything up to this place of that node's log; of the own one, where its last own event is.
    nodes: BTreeMap<u64, Position>,
}

/// No place behind an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlace;

impl Heard {
    /// At a node whose log ends here, and where so much has come.
    pub fn new(node: u64, end: Position, nodes: impl IntoIterator<Item = (u64, Position)>) -> Self {
        Self { node, position: Position(end.0.saturating_sub(1)), time_ns: 0, nodes: nodes.into_iter().collect() }
    }

    /// An event that was accepted here at this time, or came with its origin, is at this place of the log.
    pub fn goes_on(&mut self, position: Position, time_ns: u64, origin: Option<Origin>) {
        (self.position, self.time_ns) = (position, self.time_ns.max(time_ns));
        let (node, place) = origin.map_or((self.node, position), |origin| (origin.node, origin.position));
        self.nodes.insert(node, place);
    }

    /// The same by a record of the own log, whose time is the own clock's unless another node has accepted it.
    pub fn goes_on_with(&mut self, record: &Record<'_>) {
        let time_ns = if record.origin.is_some() { 0 } else { record.time_ns };
        self.goes_on(record.position, time_ns, record.origin);
    }

    /// The same for whoever goes on at node `own` with its log.
    pub fn at(&self, own: &Self) -> Self {
        let mut nodes = self.nodes.clone();
        nodes.insert(self.node, self.position);
        Self { node: own.node, position: own.position, time_ns: self.time_ns, nodes }
    }

    fn of(&self, node: u64) -> Option<Position> {
        if node == self.node { Some(self.position) } else { self.nodes.get(&node).copied() }
    }

    fn has_place(&self, node: u64, position: Position, time_ns: u64) -> bool {
        if node == self.node {
            return position <= self.position && time_ns <= self.time_ns;
        }
        self.nodes.get(&node).map_or(time_ns <= self.time_ns, |heard| position <= *heard)
    }

    /// Whether a record of the log of node `own` is among it.
    pub fn has(&self, own: u64, record: &Record<'_>) -> bool {
        let (node, position) = record.origin.map_or((own, record.position), |origin| (origin.node, origin.position));
        self.has_place(node, position, record.time_ns)
    }

    /// Whether an event that comes from another node just now is among it.
    pub fn has_come(&self, origin: Origin, time_ns: u64) -> bool {
        self.has_place(origin.node, origin.position, time_ns)
    }

    /// The node.
    pub fn node(&self) -> u64 {
        self.node
    }

    /// Where the log of the node that is `now` so far has the first record that is not among it; with it whether some may be gone from there. `id` is the last event that was heard.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn behind(&self, now: &Self, id: EventId, log: &EventLogReader) -> io::Result<(Position, bool)> {
        let end = log.end();
        if self.node == now.node && self.position < end {
            let name = |id: EventId| (id.publisher, id.incarnation, id.sequence);
            let mut cursor = log.cursor(self.position);
            let is_there = cursor.read()?.is_some_and(|record| record.position == self.position && name(record.id) == name(id));
            if is_there {
                return Ok((Position(self.position.0 + 1), false));
            }
        }
        // Whoever has come no further than was heard has nothing to be looked for.
        let is_ahead = |(node, place): &(&u64, &Position)| self.node == now.node || self.of(**node).is_none_or(|heard| heard < **place);
        let mut awaited: BTreeSet<u64> = now.nodes.iter().filter(is_ahead).map(|(node, _)| *node).collect();
        let (mut from, mut until) = (end, end);
        for files in 1.. {
            if awaited.is_empty() {
                return Ok((from, false));
            }
            let begin = log.newest_files(files);
            let mut cursor = log.cursor(begin);
            let mut first = None;
            while let Some(record) = cursor.read_before(until)? {
                if self.has(now.node, &record) {
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
}

impl fmt::Display for Heard {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "@{:x}.{:x}.{:x}", self.node, self.position.0, self.time_ns)?;
        let others = self.nodes.iter().filter(|(node, _)| **node != self.node);
        others.take(NODES_MAX).try_for_each(|(node, place)| write!(to, ".{node:x}.{:x}", place.0))
    }
}

impl FromStr for Heard {
    type Err = NoPlace;

    /// Reads what is behind an `@`.
    fn from_str(text: &str) -> Result<Self, NoPlace> {
        let mut numbers = text.split('.').map(|part| match part.as_bytes().first() {
            Some(b'+') | None => Err(NoPlace),
            Some(_) => u64::from_str_radix(part, 16).map_err(|_| NoPlace),
        });
        let mut next = || numbers.next().unwrap_or(Err(NoPlace));
        let (node, position, time_ns) = (next()?, Position(next()?), next()?);
        let rest: Vec<u64> = numbers.take(2 * NODES_MAX + 1).collect::<Result<_, _>>()?;
        // No position is the highest number, so that each has a next one.
        if !rest.len().is_multiple_of(2) || position.0 == u64::MAX {
            return Err(NoPlace);
        }
        let nodes = rest.chunks_exact(2).map(|pair| (pair[0], Position(pair[1]))).collect();
        Ok(Self { node, position, time_ns, nodes })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use bodkin_store::event_log::{EventLog, EventLogLimits};

    use super::*;

    const A: u64 = 0xa1;
    const B: u64 = 0xb2;
    const C: u64 = 0xc3;

    fn id(sequence: u64) -> EventId {
        format!("1-2-3-{sequence:x}").parse().expect("an id")
    }

    fn place(text: &str) -> Heard {
        text.parse().expect("a place")
    }

    fn from(node: u64, position: u64) -> Option<Origin> {
        Some(Origin { node, position: Position(position), epoch: 1, lane: position })
    }

    #[test]
    fn a_place_is_read_as_it_was_written_and_nothing_else_is() {
        let mut heard = Heard::new(A, Position(0), [(B, Position(9))]);
        heard.goes_on(Position(0x2f), 0x18aa40, None);
        assert_eq!(heard.to_string(), "@a1.2f.18aa40.b2.9");
        heard.goes_on(Position(0x30), 0x18aa41, from(C, 5));
        assert_eq!(heard.to_string(), "@a1.30.18aa41.b2.9.c3.5");
        assert_eq!(place("a1.30.18aa41.b2.9.c3.5").to_string(), heard.to_string());
        for text in ["", "a1", "a1.2", "a1.2.3.4", "a1.2.3.+4.5", "a1.2.3.x.5", "a1..3", "a1.ffffffffffffffff.3"] {
            assert_eq!(text.parse::<Heard>(), Err(NoPlace), "{text}");
        }
    }

    #[test]
    fn what_was_heard_at_one_node_is_known_at_another() {
        let heard = place("a1.30.64.b2.9");
        let record =
            |position, time_ns, origin| Record { position: Position(position), time_ns, id: id(4), topic: "T", event: "{}", origin };
        let at_b = |position, time_ns, origin| heard.has(B, &record(position, time_ns, origin));
        assert_eq!([at_b(9, 0, None), at_b(10, 0, None)], [true, false], "its own events");
        assert_eq!([at_b(99, 0, from(A, 0x30)), at_b(99, 0, from(A, 0x31))], [true, false], "those of the node where it was heard");
        assert_eq!(
            [at_b(99, 0x64, from(C, 7)), at_b(99, 0x65, from(C, 7))],
            [true, false],
            "those of a node that is not told, by their time"
        );
        assert!(heard.has(A, &record(0x30, 0x64, None)) && !heard.has(A, &record(0x31, 0x64, None)), "at the same node by the place");
        assert!(!heard.has(A, &record(0x30, 0x65, None)), "its place was given anew");
    }

    #[test]
    fn the_first_that_was_not_heard_is_found_in_another_order_of_events() {
        let place_of = tempfile::tempdir().expect("a directory");
        let limits = EventLogLimits { bytes_max: 64 << 20, age_max: Duration::from_secs(3600) };
        let (mut log, reader) =
            EventLog::open(&place_of.path().join("events"), limits, Position(0), 0, Box::new(|_, _| {})).expect("a log");
        let mut now = Heard::new(B, Position(0), []);
        // At node B: its own at 0 and 3, of A the first two at 1 and 2, of C one at 4.
        for (position, origin) in [(0, None), (1, from(A, 0)), (2, from(A, 2)), (3, None), (4, from(C, 8))] {
            log.append_from(origin, 100 + position, id(position), "T", "{}", Instant::now());
            now.goes_on(Position(position), 100 + position, origin);
        }
        log.write(Instant::now());
        let behind = |text: &str| place(text).behind(&now, id(2), &reader).expect("it is read");
        // Heard at A: its own up to 2, of B none, of C all.
        assert_eq!(behind("a1.2.66.c3.8.b2.ffff"), (Position(5), false), "all was heard");
        assert_eq!(behind("a1.2.66.c3.8.b2.0"), (Position(3), false));
        assert_eq!(behind("a1.0.65.b2.0.c3.8"), (Position(2), false));
        assert_eq!(behind("a1.9.66.b2.3"), (Position(4), false), "of C nothing was known: by the time");
        assert_eq!(behind("b2.2.66.a1.2"), (Position(3), false), "at the same node");
        assert_eq!(behind("b2.3.65.a1.2"), (Position(3), false), "at the same node, which was killed before it had written it");
    }
}
