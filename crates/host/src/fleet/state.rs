//! What is told of forwarding: read by anybody, written by the thread that forwards.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use serde::Serialize;

use super::back::{BackState, BackView};
use crate::{connecting::Connecting, stage::Histogram};

/// What became of a lane's events since the start.
#[derive(Debug, Default)]
pub struct LaneState {
    /// Its name.
    pub name: String,
    /// Its subject.
    pub subject: String,
    /// Events and losses that the stream has acknowledged.
    pub stored: AtomicU64,
    /// Batches of them.
    pub batches: AtomicU64,
    /// Batches that the stream had already.
    pub repeated: AtomicU64,
    /// Events that are lost in front of the stream, and told there.
    pub lost: AtomicU64,
    /// Events that the stream has acknowledged and does not have any more.
    pub lost_by_stream: AtomicU64,
    /// Events that wait.
    pub waiting: AtomicU64,
    /// How old the oldest one is that waits, in nanoseconds.
    pub lag_ns: AtomicU64,
    /// Its count of positions.
    pub epoch: AtomicU64,
    /// The last one that the stream has acknowledged.
    pub position: AtomicU64,
    /// Up to here the subject is empty, and had everything; 0: that has not been seen.
    pub emptied: AtomicU64,
    /// When that was seen last, in milliseconds since 1970.
    pub emptied_ms: AtomicU64,
    /// Times that it was, and none of the stream's limits has done it.
    pub emptied_times: AtomicU64,
    /// How old events were when the stream acknowledged them.
    pub ages: Histogram,
    trouble: Mutex<Option<String>>,
    is_stopped: AtomicBool,
    /// The operator has the lane continue behind another process's batch.
    is_adopted: AtomicBool,
}

impl LaneState {
    /// Has a stopped lane continue behind another process's batch; returns false if the lane does not stand.
    pub fn adopt(&self) -> bool {
        let is_stopped = self.is_stopped.load(Relaxed);
        self.is_adopted.fetch_or(is_stopped, Relaxed);
        is_stopped
    }

    /// Returns true once for each adoption.
    pub(super) fn take_adopted(&self) -> bool {
        self.is_adopted.swap(false, Relaxed)
    }
}

/// What is told of forwarding.
#[derive(Debug, Default)]
pub struct FleetState {
    /// This edge's name.
    pub edge: String,
    /// The stream's.
    pub stream: String,
    /// Its lanes.
    pub lanes: Vec<LaneState>,
    /// What is told of events that come from there; `None`: none do.
    pub back: Option<Arc<BackState>>,
    /// Connections that a server has greeted.
    pub connections: AtomicU64,
    /// Events a second that a backlog is read with beside live ones; 0: as fast as it goes.
    pub paced_per_s: AtomicU64,
    /// Is the stream there, and taking events?
    pub is_connected: AtomicBool,
    /// Whether the first connection is still being made.
    pub connecting: Connecting,
    /// Is anything to be forwarded? An edge that takes from the fleet and names nothing in its lanes forwards once a topic is marked.
    pub forwards: AtomicBool,
    server: Mutex<Option<String>>,
    trouble: Mutex<Option<String>>,
    told: Mutex<Option<StreamTold>>,
}

/// What a stream says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamTold {
    /// Servers that have it.
    pub replicas: u8,
    /// Is it on disk?
    pub on_disk: bool,
    /// Its messages, those of other edges among them.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A lane, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LaneView {
    name: String,
    subject: String,
    epoch: u64,
    position: u64,
    stored: u64,
    batches: u64,
    repeated: u64,
    waiting: u64,
    lag_us: u64,
    lost: u64,
    lost_by_stream: u64,
    emptied_through: Option<u64>,
    emptied_ms: Option<u64>,
    emptied: u64,
    age: Option<AgeView>,
    stopped: bool,
    trouble: Option<String>,
}

/// How old events were when the stream acknowledged them, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgeView {
    p50_us: u64,
    p99_us: u64,
    worst_us: u64,
    /// Upper bound and count.
    buckets_us: Vec<(u64, u64)>,
}

impl AgeView {
    /// `None`: nothing was acknowledged.
    fn of(ages: &Histogram) -> Option<Self> {
        let buckets_us: Vec<(u64, u64)> = ages.buckets().into_iter().map(|(upper_ns, count)| (upper_ns.div_ceil(1_000), count)).collect();
        let all: u64 = buckets_us.iter().map(|(_, count)| count).sum();
        let within = |percent: u64| {
            let mut seen = 0;
            buckets_us.iter().find_map(|(upper_us, count)| {
                seen += count;
                (seen * 100 >= all * percent).then_some(*upper_us)
            })
        };
        Some(Self { p50_us: within(50)?, p99_us: within(99)?, worst_us: buckets_us.last()?.0, buckets_us })
    }
}

/// All of it, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetView {
    edge: String,
    stream: String,
    forwards: bool,
    connected: bool,
    server: Option<String>,
    connections: u64,
    paced_per_s: Option<u64>,
    trouble: Option<String>,
    told: Option<StreamTold>,
    lanes: Vec<LaneView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_fleet: Option<BackView>,
}

/// Events between the nodes of one cloud, as they are told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BetweenNodesView {
    node: String,
    stream: String,
    connected: bool,
    server: Option<String>,
    trouble: Option<String>,
    told: Option<StreamTold>,
    handed_on: Vec<LaneView>,
    taken: Option<BackView>,
}

pub(super) fn lock<T>(place: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every assignment leaves it whole.
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LaneState {
    /// Of a lane that has not begun.
    pub fn new(name: String, subject: String) -> Self {
        Self { name, subject, ..Self::default() }
    }

    /// Records that the stream or its server did not accept the lane's last request, and why.
    pub fn refused(&self, why: String) {
        self.set_trouble(Some(why), false);
    }

    /// Records that the lane is stopped until an operator acts, and why.
    pub fn stopped(&self, why: String) {
        self.set_trouble(Some(why), true);
    }

    /// Records that the stream has answered where the lane continues. A refusal remains while events wait: a stream that is full answers this too.
    pub fn resumed(&self, has_pending: bool) {
        if self.is_stopped() || !has_pending {
            self.set_trouble(None, false);
        }
    }

    /// Records that the stream has stored a batch of so many records, or had it already.
    pub fn stored(&self, records: u64, is_duplicate: bool) {
        self.set_trouble(None, false);
        self.stored.fetch_add(records, Relaxed);
        self.batches.fetch_add(1, Relaxed);
        self.repeated.fetch_add(u64::from(is_duplicate), Relaxed);
    }

    fn set_trouble(&self, why: Option<String>, is_stopped: bool) {
        *lock(&self.trouble) = why;
        self.is_stopped.store(is_stopped, Relaxed);
    }

    /// The subject is empty, which had everything up to this position; `is_its_way`: the stream's limits may have done that.
    pub fn found_empty(&self, through: u64, at_ms: u64, is_its_way: bool) {
        self.emptied.store(through, Relaxed);
        self.emptied_ms.store(at_ms, Relaxed);
        self.emptied_times.fetch_add(u64::from(!is_its_way), Relaxed);
    }

    /// Does it not go on just now?
    pub fn is_troubled(&self) -> bool {
        lock(&self.trouble).is_some()
    }

    /// Does it stand until somebody does something?
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Relaxed)
    }

    /// Returns true if the lane's last request was refused or not answered, and the lane retries.
    pub fn is_refused(&self) -> bool {
        self.is_troubled() && !self.is_stopped()
    }

    /// Returns a sentence for `bodkin status` if the lane is refused or stopped.
    fn trouble_text(&self, server_words: Option<&str>) -> Option<String> {
        let why = lock(&self.trouble).clone()?;
        let words = server_words.map_or(String::new(), |words| format!(" ({words})"));
        let name = &self.name;
        if self.is_stopped() {
            return Some(format!("lane {name} to the fleet's stream is stopped: {why}"));
        }
        let waiting = self.waiting.load(Relaxed);
        let lag_s = self.lag_ns.load(Relaxed) / 1_000_000_000;
        Some(format!(
            "the fleet's stream does not accept lane {name}: {why}{words}; {waiting} events wait in the event log, the oldest for {lag_s} s, and are lost when the log is full"
        ))
    }

    fn view(&self) -> LaneView {
        LaneView {
            name: self.name.clone(),
            subject: self.subject.clone(),
            epoch: self.epoch.load(Relaxed),
            position: self.position.load(Relaxed),
            stored: self.stored.load(Relaxed),
            batches: self.batches.load(Relaxed),
            repeated: self.repeated.load(Relaxed),
            waiting: self.waiting.load(Relaxed),
            lag_us: self.lag_ns.load(Relaxed) / 1_000,
            lost: self.lost.load(Relaxed),
            lost_by_stream: self.lost_by_stream.load(Relaxed),
            emptied_through: Some(self.emptied.load(Relaxed)).filter(|position| *position > 0),
            emptied_ms: Some(self.emptied_ms.load(Relaxed)).filter(|at| *at > 0),
            emptied: self.emptied_times.load(Relaxed),
            age: AgeView::of(&self.ages),
            stopped: self.is_stopped(),
            trouble: lock(&self.trouble).clone(),
        }
    }
}

impl FleetState {
    /// Of an edge that has forwarded nothing.
    pub fn new(edge: String, stream: String, lanes: Vec<LaneState>, back: Option<Arc<BackState>>) -> Self {
        Self { edge, stream, lanes, back, ..Self::default() }
    }

    /// A connection is there, or is not.
    pub fn reaches(&self, server: Option<String>) {
        if server.is_some() {
            self.connections.fetch_add(1, Relaxed);
        } else {
            self.is_connected.store(false, Relaxed);
        }
        *lock(&self.server) = server;
    }

    /// The stream is there.
    pub fn has_stream(&self, told: StreamTold) {
        *lock(&self.told) = Some(told);
        *lock(&self.trouble) = None;
        self.is_connected.store(true, Relaxed);
        self.connecting.connected();
    }

    /// Why nothing is forwarded.
    pub fn fails(&self, why: String) {
        self.is_connected.store(false, Relaxed);
        *lock(&self.trouble) = Some(why);
    }

    /// Returns why nothing is forwarded, or what a server has refused.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// Returns a sentence for each lane that is refused or stopped, with the server's words.
    pub fn lane_troubles(&self) -> Vec<String> {
        let words = lock(&self.trouble).clone();
        self.lanes.iter().filter_map(|lane| lane.trouble_text(words.as_deref())).collect()
    }

    /// What a server has refused, while all else goes on.
    pub fn refused(&self, why: String) {
        *lock(&self.trouble) = Some(why);
    }

    /// Whether events go both ways.
    pub fn is_whole(&self) -> bool {
        let comes = self.back.as_ref().is_none_or(|back| back.is_connected.load(Relaxed));
        comes && self.is_connected.load(Relaxed) && !self.lanes.iter().any(LaneState::is_troubled)
    }

    /// As it is told of the nodes of one cloud.
    pub fn view_between_nodes(&self) -> BetweenNodesView {
        BetweenNodesView {
            node: self.edge.clone(),
            stream: self.stream.clone(),
            connected: self.is_whole(),
            server: lock(&self.server).clone(),
            trouble: lock(&self.trouble).clone(),
            told: *lock(&self.told),
            handed_on: self.lanes.iter().map(LaneState::view).collect(),
            taken: self.back.as_ref().map(|back| back.view()),
        }
    }

    /// As it is told.
    pub fn view(&self) -> FleetView {
        FleetView {
            edge: self.edge.clone(),
            stream: self.stream.clone(),
            forwards: self.forwards.load(Relaxed),
            connected: self.is_connected.load(Relaxed),
            server: lock(&self.server).clone(),
            connections: self.connections.load(Relaxed),
            paced_per_s: Some(self.paced_per_s.load(Relaxed)).filter(|per_s| *per_s > 0),
            trouble: lock(&self.trouble).clone(),
            told: *lock(&self.told),
            lanes: self.lanes.iter().map(LaneState::view).collect(),
            from_fleet: self.back.as_ref().map(|back| back.view()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn refused_lane_stays_refused_until_stored() {
        let state = FleetState::new("edge".into(), "FLEET".into(), vec![LaneState::new("events".into(), "fleet.edge.events".into())], None);
        let lane = &state.lanes[0];
        lane.waiting.store(750, Relaxed);
        lane.lag_ns.store(38_000_000_000, Relaxed);
        lane.refused("maximum messages exceeded".into());
        // The lane retries: it reads the stream's last message, which succeeds, and publishes, which is refused again.
        lane.resumed(true);
        assert!(lane.is_refused() && !lane.is_stopped());
        let told = state.lane_troubles();
        assert!(told.len() == 1 && told[0].contains("maximum messages exceeded; 750 events wait"), "{told:?}");
        assert!(told[0].contains("the oldest for 38 s"), "{told:?}");
        lane.stored(30, false);
        assert!(!lane.is_troubled() && state.lane_troubles().is_empty());
        lane.refused("no answer has come in time".into());
        lane.resumed(false);
        assert!(!lane.is_troubled(), "nothing waits, so nothing is refused");
        lane.stopped("another edge has its name".into());
        assert!(lane.is_stopped() && !lane.is_refused());
        lane.resumed(true);
        assert!(!lane.is_troubled());
    }

    #[test]
    fn ages_are_told_by_their_shares() {
        let ages = Histogram::default();
        assert_eq!(AgeView::of(&ages), None);
        (0..98).for_each(|_| ages.record(Duration::from_millis(10)));
        (0..2).for_each(|_| ages.record(Duration::from_millis(200)));
        let told = AgeView::of(&ages).unwrap();
        assert!((10_000..=10_700).contains(&told.p50_us) && (200_000..=213_000).contains(&told.p99_us), "{told:?}");
        assert_eq!((told.worst_us, told.buckets_us.len()), (told.p99_us, 2));
    }
}
