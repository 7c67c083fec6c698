//! How far the events of each other node have come: each is taken once and in order, and what its lane has let go of is counted.

use std::{collections::BTreeMap, str};

use bodkin_arrowhead::{record::SystemId, utc::UtcTime};
use bodkin_broker::{Incarnation, Sequence};
use bodkin_nats::lane::{Identity, ReadError, Record, Records};
use bodkin_store::event_log::{Origin, Position, Record as Logged};

use super::{FromNode, NodeEvent, NodeLoss};

/// Nodes that are kept account of: names are drawn, and one whose data directory is gone comes back as another. For one more the one that was heard of longest ago is forgotten.
const NODES_MAX: usize = 1024;
/// Bytes of an event's position in front of its JSON.
const POSITION_BYTES: usize = 8;

/// How far a node's events have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// In which count of lane positions.
    pub epoch: u64,
    /// Everything up to this one has come, or is missing for good.
    pub lane: u64,
    /// Where the last one is in its node's log.
    pub position: Position,
    /// When it was accepted there, in nanoseconds since 1970.
    pub time_ns: u64,
}

/// Why a batch is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// It is none.
    #[error(transparent)]
    Batch(#[from] ReadError),
    /// Its headers say another number of records.
    #[error("its headers promise {0} records, and it has {1}")]
    Count(u64, u64),
    /// A record is not an event as nodes hand it on.
    #[error("an event is its position (8 bytes) and its JSON")]
    Event,
}

/// The account of all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lanes(BTreeMap<u64, Reached>);

impl Lanes {
    /// With what was noted of each node.
    pub fn new(noted: impl IntoIterator<Item = (u64, Reached)>) -> Self {
        Self(noted.into_iter().collect())
    }

    /// How far each node's have come.
    pub fn reached(&self) -> impl Iterator<Item = (u64, Reached)> {
        self.0.iter().map(|(node, reached)| (*node, *reached))
    }

    /// The log of node `own` has this record, which counts as taken.
    pub fn recall(&mut self, own: u64, record: &Logged<'_>) {
        let (node, reached) = match record.origin {
            Some(Origin { node, position, epoch, lane }) => (node, Reached { epoch, lane, position, time_ns: record.time_ns }),
            None => (own, Reached { position: record.position, time_ns: record.time_ns, ..Reached::default() }),
        };
        self.reach(node, reached);
    }

    fn reach(&mut self, node: u64, reached: Reached) {
        if self.0.len() >= NODES_MAX
            && !self.0.contains_key(&node)
            && let Some(oldest) = self.0.iter().min_by_key(|(_, reached)| reached.time_ns).map(|(node, _)| *node)
        {
            self.0.remove(&oldest);
        }
        self.0.insert(node, reached);
    }

    /// A batch of node `own` has come back to it: where its last own event is, is known over a restart.
    pub fn own(&mut self, own: u64, batch: &[u8]) {
        let last = Records::new(batch).filter_map(Result::ok).filter_map(|record| match record {
            Record::Event { payload, created_ns, .. } => Some((position_of(payload)?.0, created_ns)),
            Record::Lost { .. } => None,
        });
        if let Some((position, time_ns)) = last.last() {
            self.reach(own, Reached { position, time_ns, ..Reached::default() });
        }
    }

    /// Takes a batch; gives what of it has not come before, in its order, behind what is missing in front of it.
    ///
    /// # Errors
    /// It is no batch of a node; nothing of it counts as taken.
    pub fn take(&mut self, node: u64, identity: Identity, batch: &[u8]) -> Result<Vec<FromNode>, Wrong> {
        let Identity { epoch, first, last } = identity;
        let known = self.0.get(&node).copied();
        let records = Records::new(batch).collect::<Result<Vec<_>, _>>()?;
        if records.len() as u64 != last - first + 1 {
            return Err(Wrong::Count(last - first + 1, records.len() as u64));
        }
        let begin = match known {
            Some(known) if epoch < known.epoch => return Ok(Vec::new()),
            Some(known) if epoch == known.epoch => known.lane + 1,
            Some(_) => 1,
            // What was before the first that comes is nobody's loss.
            None => first,
        };
        // A lane that begins anew may repeat what it had handed on, as far as its node's log says.
        let repeats = known.filter(|known| epoch > known.epoch);
        let mut taking = Taking { node, reached: Reached { epoch, ..known.unwrap_or_default() }, taken: Vec::new() };
        if first > begin {
            taking.lose(first - 1, "", first - begin);
        }
        for (lane, record) in (first..).zip(records).skip_while(|(lane, _)| *lane < begin) {
            taking.take(lane, record, repeats)?;
        }
        if !taking.taken.is_empty() || known.is_none() {
            self.reach(node, taking.reached);
        }
        Ok(taking.taken)
    }
}

/// Where its node's log has an event, and its JSON.
fn position_of(payload: &[u8]) -> Option<(Position, &[u8])> {
    let (position, json) = payload.split_first_chunk::<POSITION_BYTES>()?;
    Some((Position(u64::from_be_bytes(*position)), json))
}

/// A batch that is being taken.
struct Taking {
    node: u64,
    reached: Reached,
    taken: Vec<FromNode>,
}

impl Taking {
    fn origin(&self) -> Origin {
        let Reached { epoch, lane, position, .. } = self.reached;
        Origin { node: self.node, position, epoch, lane }
    }

    fn lose(&mut self, lane: u64, event_type: &str, events: u64) {
        self.reached.lane = lane;
        self.taken.push(FromNode::Lost(NodeLoss { event_type: event_type.into(), events, origin: self.origin() }));
    }

    fn take(&mut self, lane: u64, record: Record<'_>, repeats: Option<Reached>) -> Result<(), Wrong> {
        let (publisher, incarnation, sequence, created_ns, payload) = match record {
            Record::Lost { topic, count } => {
                self.lose(lane, topic, count);
                return Ok(());
            }
            Record::Event { publisher, incarnation, sequence, created_ns, payload, .. } => {
                (publisher, incarnation, sequence, created_ns, payload)
            }
        };
        let (position, json) = position_of(payload).ok_or(Wrong::Event)?;
        let (event, source) = (str::from_utf8(json).map_err(|_| Wrong::Event)?, i64::try_from(publisher).map_err(|_| Wrong::Event)?);
        self.reached.lane = lane;
        if repeats.is_some_and(|known| position <= known.position && created_ns <= known.time_ns) {
            return Ok(());
        }
        (self.reached.position, self.reached.time_ns) = (position, created_ns);
        self.taken.push(FromNode::Event(NodeEvent {
            source: SystemId(source),
            incarnation: Incarnation(incarnation),
            sequence: Sequence(sequence),
            time: UtcTime::from_unix_nanos(created_ns),
            event: event.to_owned(),
            missing: 0,
            place: Some((self.node, position)),
            origin: Some(self.origin()),
        }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: u64 = 0xb2;

    /// A batch of events at these places of their node's log, accepted at a tenth of a second each.
    fn batch(places: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for place in places {
            let payload = [&place.to_be_bytes()[..], br#"{"eventType":"HEAT"}"#].concat();
            let time = place * 100_000_000;
            Record::Event { topic: "HEAT", publisher: 7, incarnation: 5, sequence: *place, created_ns: time, payload: &payload }
                .write(&mut bytes);
        }
        bytes
    }

    fn take(lanes: &mut Lanes, epoch: u64, first: u64, places: &[u64]) -> Vec<Result<u64, u64>> {
        let identity = Identity { epoch, first, last: first + places.len() as u64 - 1 };
        told(lanes.take(NODE, identity, &batch(places)).expect("a batch"))
    }

    /// The places of events, and how many are lost between them.
    fn told(taken: Vec<FromNode>) -> Vec<Result<u64, u64>> {
        let told = |event| match event {
            FromNode::Event(event) => Ok(event.origin.expect("it is of a node").position.0),
            FromNode::Lost(loss) => Err(loss.events),
        };
        taken.into_iter().map(told).collect()
    }

    #[test]
    fn each_event_is_taken_once_and_what_the_stream_has_let_go_of_is_counted() {
        let mut lanes = Lanes::default();
        assert_eq!(take(&mut lanes, 1, 5, &[40, 42]), [Ok(40), Ok(42)], "what was before the first is nobody's loss");
        assert_eq!(take(&mut lanes, 1, 5, &[40, 42]), [], "the same message again");
        assert_eq!(take(&mut lanes, 1, 6, &[42, 43]), [Ok(43)], "a part of it was taken before a kill");
        assert_eq!(take(&mut lanes, 1, 11, &[50]), [Err(3), Ok(50)]);
        assert_eq!(take(&mut lanes, 1, 8, &[45]), [], "it does not go back");
    }

    #[test]
    fn a_lane_that_begins_anew_brings_what_is_new() {
        let mut lanes = Lanes::default();
        take(&mut lanes, 1, 1, &[40, 41]);
        assert_eq!(take(&mut lanes, 2, 1, &[41, 42]), [Ok(42)], "its node has not known that the stream had it");
        assert_eq!(take(&mut lanes, 1, 3, &[60]), [], "an epoch that is over is over");
        // Another log under the same name: lower places, later times.
        let identity = Identity { epoch: 3, first: 2, last: 2 };
        let (mut bytes, payload) = (Vec::new(), [&3u64.to_be_bytes()[..], b"{}"].concat());
        Record::Event { topic: "T", publisher: 7, incarnation: 9, sequence: 1, created_ns: 9_000_000_000, payload: &payload }
            .write(&mut bytes);
        assert_eq!(told(lanes.take(NODE, identity, &bytes).expect("a batch")), [Err(1), Ok(3)]);
    }

    #[test]
    fn of_nodes_without_number_the_one_that_was_heard_of_longest_ago_is_forgotten() {
        let mut lanes = Lanes::default();
        let nodes = NODES_MAX as u64;
        for node in 0..=nodes {
            let taken = lanes.take(node, Identity { epoch: 1, first: 1, last: 1 }, &batch(&[node + 7])).expect("a batch");
            assert_eq!(told(taken), [Ok(node + 7)], "events of each node are taken");
        }
        let known: Vec<u64> = lanes.reached().map(|(node, _)| node).collect();
        assert_eq!(known, (1..=nodes).collect::<Vec<_>>());
    }

    #[test]
    fn losses_that_the_node_tells_are_taken_in_their_place() {
        let mut lanes = Lanes::default();
        let mut bytes = batch(&[4]);
        Record::Lost { topic: "HEAT", count: 9 }.write(&mut bytes);
        bytes.extend(batch(&[20]));
        let taken = lanes.take(NODE, Identity { epoch: 1, first: 1, last: 3 }, &bytes).expect("a batch");
        assert!(matches!(&taken[1], FromNode::Lost(loss) if &*loss.event_type == "HEAT" && loss.origin.lane == 2));
        assert_eq!(told(taken), [Ok(4), Err(9), Ok(20)]);
    }

    #[test]
    fn what_is_no_batch_of_a_node_changes_nothing() {
        let mut lanes = Lanes::default();
        take(&mut lanes, 1, 1, &[4]);
        let before = lanes.clone();
        let identity = Identity { epoch: 1, first: 2, last: 3 };
        assert_eq!(lanes.take(NODE, identity, &batch(&[5])), Err(Wrong::Count(2, 1)));
        assert_eq!(lanes.take(NODE, identity, b"x"), Err(Wrong::Batch(ReadError::Kind(b'x'))));
        let mut short = batch(&[5]);
        Record::Event { topic: "T", publisher: 7, incarnation: 5, sequence: 6, created_ns: 6, payload: b"short" }.write(&mut short);
        assert_eq!(lanes.take(NODE, identity, &short), Err(Wrong::Event));
        assert_eq!(lanes, before);
    }

    #[test]
    fn the_own_log_says_how_far_they_have_come() {
        let mut lanes = Lanes::default();
        let taken = lanes.take(NODE, Identity { epoch: 2, first: 7, last: 8 }, &batch(&[4, 6])).expect("a batch");
        let mut recalled = Lanes::default();
        for event in &taken {
            let FromNode::Event(event) = event else { panic!("nothing is lost") };
            let id = "7-5-0-1".parse().expect("an id");
            let (time_ns, origin) = (event.time.unix_nanos(), event.origin);
            recalled.recall(0xa1, &Logged { position: Position(1), time_ns, id, topic: "HEAT", event: "{}", origin });
        }
        assert_eq!(recalled, lanes);
        assert_eq!(take(&mut recalled, 2, 7, &[4, 6]), []);
        recalled.own(0xa1, &batch(&[3, 9]));
        let own = recalled.reached().find(|(node, _)| *node == 0xa1).map(|(_, reached)| reached.position);
        assert_eq!(own, Some(Position(9)), "where the last own event is");
    }
}
