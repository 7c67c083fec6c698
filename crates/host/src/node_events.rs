//! Best-effort events go from node to node of a cloud that shares a database, by NATS (`docs/design/shared-database.md`): at most once (decision 143), or by a stream that keeps them (decision 152, [`log`]).
//!
//! ```text
//! shard: an event is accepted ─ try_send ─> queue ─> carrier ══ NATS ══> carriers of the other nodes ─> their shards: live subscribers
//! ```
//!
//! At most once: what NATS does not carry just now is missing at the other nodes, which count it and tell their subscribers. Either way subscribers by push are
//! served by the node at which an event is published, from its event log, and hear it there alone.

mod account;
mod carrier;
mod config;
mod lanes;
mod log;
mod recall;
mod taker;

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use bodkin_arrowhead::{record::SystemId, utc::UtcTime};
use bodkin_broker::{EventId, Incarnation, Sequence};
use bodkin_store::event_log::{Origin, Position};

#[cfg(test)]
pub(crate) use self::account::Account;
pub use self::{
    carrier::NodeEvents,
    config::{NodeStream, NodeStreamError, NodeStreamLimits, NodeStreamTerms},
    log::NodeLog,
};
use crate::{
    connecting::Connecting,
    fleet::{Bell, FleetState},
    inbox::Inbox,
    resume_token::ResumeToken,
};

/// Events that may wait for NATS.
const WAITING_EVENTS_MAX: usize = 8_192;
/// Their bytes; one more event may be on top.
const WAITING_BYTES_MAX: usize = 32 << 20;

/// An event of another node of this cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEvent {
    /// Who has published it: systems have the same ids at every node.
    pub source: SystemId,
    /// Which numbering of its node's it is numbered in.
    pub incarnation: Incarnation,
    /// Which one it is of its publisher and event type there.
    pub sequence: Sequence,
    /// When it was accepted there.
    pub time: UtcTime,
    /// Its JSON, as subscribers get it.
    pub event: String,
    /// Events of the same publisher and event type in front of it that have not come; 0 of one that comes by a stream, where [`NodeLoss`] tells it.
    pub missing: u64,
    /// The node that accepted it and its position in that node's event log, if that node keeps one.
    pub place: Option<(u64, Position)>,
    /// Where its node has it, if it comes by a stream: then it goes into the event log here.
    pub origin: Option<Origin>,
}

/// Events that will not come: neither their node nor the stream has them any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLoss {
    /// Of which event type, as stored; empty: nobody knows.
    pub event_type: Box<str>,
    /// How many.
    pub events: u64,
    /// How far that node's events have come with them.
    pub origin: Origin,
}

/// What comes of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromNode {
    /// An event.
    Event(NodeEvent),
    /// Some are missing here.
    Lost(NodeLoss),
}

/// An event on its way out.
#[derive(Debug)]
struct Outgoing {
    event_type: Box<str>,
    id: EventId,
    time: UtcTime,
    position: Option<Position>,
    json: Box<[u8]>,
}

/// What is counted since the start.
#[derive(Debug, Default)]
pub struct CrossingCounts {
    /// Whether NATS is reached.
    pub is_connected: AtomicBool,
    /// Whether the first connection is still being made.
    pub connecting: Connecting,
    /// Connections that were lost, and could not be made.
    pub losses: AtomicU64,
    /// Events that were sent.
    pub sent: AtomicU64,
    /// Events that were not, because too many waited or NATS does not take them.
    pub unsent: AtomicU64,
    /// Events of other nodes that have come.
    pub heard: AtomicU64,
    /// Events of other nodes that are missing between those.
    pub missing: AtomicU64,
    /// Messages that are no events or came once more, and events that are not taken here.
    pub refused: AtomicU64,
    waiting_events: AtomicUsize,
    waiting_bytes: AtomicUsize,
    /// Why NATS is not reached, without a stream.
    trouble: Mutex<Option<String>>,
}

impl CrossingCounts {
    fn set_trouble(&self, why: Option<String>) {
        // An assignment leaves the value whole.
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Numbers of the metrics that stand at some value.
    pub fn gauges(&self) -> [(&'static str, &'static str, u64); 2] {
        let is_connected = u64::from(self.is_connected.load(Relaxed));
        let waiting = self.waiting_events.load(Relaxed) as u64;
        [
            ("bodkin_node_events_connected", "1 while events go from node to node by NATS.", is_connected),
            ("bodkin_node_events_waiting", "Events that wait for NATS; with a stream they do in the event log.", waiting),
        ]
    }

    /// Numbers of the metrics that are counted since the start.
    pub fn counters(&self) -> [(&'static str, &'static str, u64); 6] {
        [
            ("bodkin_node_events_losses_total", "Times that NATS was not reached any more, or could not be.", &self.losses),
            ("bodkin_node_events_sent_total", "Events that were sent to the other nodes of this cloud.", &self.sent),
            (
                "bodkin_node_events_unsent_total",
                "Events that the other nodes were not sent, for too many waited or NATS does not take them.",
                &self.unsent,
            ),
            ("bodkin_node_events_heard_total", "Events that came from other nodes of this cloud.", &self.heard),
            ("bodkin_node_events_missing_total", "Events of other nodes of this cloud that are missing between those.", &self.missing),
            (
                "bodkin_node_events_refused_total",
                "Messages of other nodes that are no events or came once more, and events that are not taken here.",
                &self.refused,
            ),
        ]
        .map(|(name, help, value)| (name, help, value.load(Relaxed)))
    }
}

/// The shard's end; nothing is waited for.
#[derive(Clone)]
pub struct Crossing {
    way: Way,
    /// What is counted.
    pub counts: Arc<CrossingCounts>,
    /// How far this node had received events at its start, if it keeps an event log.
    pub token: Option<ResumeToken>,
}

/// How events go.
#[derive(Clone)]
enum Way {
    /// Each is put into the queue or dropped.
    AtMostOnce(Arc<Inbox<Outgoing>>),
    /// By the event log; whoever reads it is told that it has grown.
    Log(Bell, Arc<FleetState>),
}

impl Crossing {
    /// Whoever carries events is woken by this; with it where they wait.
    fn at_most_once(waker: mio::Waker, token: Option<ResumeToken>) -> (Self, Arc<Inbox<Outgoing>>) {
        let outgoing = Arc::new(Inbox::new(waker));
        (Self { way: Way::AtMostOnce(outgoing.clone()), counts: Arc::default(), token }, outgoing)
    }

    /// They are read from the event log.
    fn by_log(bell: Bell, state: Arc<FleetState>, token: ResumeToken) -> Self {
        Self { way: Way::Log(bell, state), counts: Arc::default(), token: Some(token) }
    }

    /// Why events do not go from node to node, or do not come; `None` if they do, or before the first attempt ends.
    pub fn trouble(&self) -> Option<String> {
        match &self.way {
            Way::AtMostOnce(_) => self.counts.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Way::Log(_, state) => state.trouble().or_else(|| state.back.as_ref()?.trouble()),
        }
    }

    /// What is told of the stream, where there is one.
    pub fn stream(&self) -> Option<&Arc<FleetState>> {
        match &self.way {
            Way::AtMostOnce(_) => None,
            Way::Log(_, state) => Some(state),
        }
    }

    /// The event log has events that were accepted here.
    pub fn written(&self) {
        if let Way::Log(bell, _) = &self.way {
            bell.post(());
        }
    }

    /// Queues an event that was accepted here for the other nodes, where they do not get it from the event log.
    pub fn send(&self, event_type: &str, id: EventId, time: UtcTime, position: Option<Position>, json: &[u8]) {
        let (Way::AtMostOnce(outgoing), counts) = (&self.way, &self.counts) else { return };
        let is_full = counts.waiting_bytes.load(Relaxed) > WAITING_BYTES_MAX || counts.waiting_events.load(Relaxed) >= WAITING_EVENTS_MAX;
        if is_full {
            counts.unsent.fetch_add(1, Relaxed);
            return;
        }
        counts.waiting_bytes.fetch_add(json.len(), Relaxed);
        counts.waiting_events.fetch_add(1, Relaxed);
        outgoing.post(Outgoing { event_type: event_type.into(), id, time, position, json: json.into() });
    }

    /// An event waits no more.
    fn sends(&self, event: &Outgoing) {
        self.counts.waiting_bytes.fetch_sub(event.json.len(), Relaxed);
        self.counts.waiting_events.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_dropped_and_counted() {
        let poll = mio::Poll::new().unwrap();
        let (crossing, outgoing) = Crossing::at_most_once(mio::Waker::new(poll.registry(), mio::Token(0)).unwrap(), None);
        let id: EventId = "1-2-3-4".parse().unwrap();
        let send = |bytes: usize| crossing.send("HEAT", id, UtcTime::from_unix_seconds(1), None, &vec![b'x'; bytes]);
        send(WAITING_BYTES_MAX + 1);
        send(1);
        assert_eq!(crossing.counts.unsent.load(Relaxed), 1);
        let mut waiting = Vec::new();
        outgoing.take(&mut waiting);
        assert_eq!(waiting.len(), 1);
        crossing.sends(&waiting[0]);
        (0..=WAITING_EVENTS_MAX).for_each(|_| send(1));
        assert_eq!(crossing.counts.unsent.load(Relaxed), 2);
    }
}
