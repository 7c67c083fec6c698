//! A run: batches go from station to station in the order of time.

use std::collections::VecDeque;

use super::{
    Fleet, Line,
    batch::{Batch, Batches},
    station::Station,
};
use crate::{
    agenda::Agenda,
    clock::{SECOND_NS, Time},
    random::Random,
};

/// What a run has come to.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetReport {
    /// Events a second that edges have made.
    pub made_per_s: f64,
    /// Events a second that were acknowledged.
    pub acknowledged_per_s: f64,
    /// From an event, the first one of its batch, to its acknowledgement.
    pub latency: Latency,
    /// Events that wait at the end, beyond those that waited when the count began.
    pub growth: i64,
    /// The station of each kind that was asked for most, the one that is full first in front.
    pub loads: Vec<StationLoad>,
}

/// Latencies of batches, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Half of them are shorter.
    pub p50_ns: u64,
    /// All but a hundredth are.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// How full the fullest station of a kind is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationLoad {
    /// Which kind.
    pub station: &'static str,
    /// What was asked of it, as a share of what it can do. From 1 on it falls behind.
    pub load: f64,
}

impl FleetReport {
    /// Edges of the same kind that the first full station would carry.
    pub fn edges_max(&self, edges: u32) -> u64 {
        let fullest = self.loads.first().map_or(0.0, |first| first.load);
        if fullest > 0.0 { (f64::from(edges) / fullest) as u64 } else { u64::MAX }
    }
}

/// Where a batch is next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// It is closed.
    Closed,
    /// The edge has made it.
    Made,
    /// It has come over the uplink.
    AtSite,
    /// It has come to a server that is to have it; the first one leads.
    AtServer(u8),
    /// Its place is written, and is to be synced.
    AtDisk(u8),
    /// A server has it.
    Synced,
    /// The edge knows.
    Acknowledged,
}

struct Run<'f> {
    fleet: &'f Fleet,
    agenda: Agenda<(u32, Step)>,
    under_way: Vec<UnderWay>,
    free: Vec<u32>,
    batches: Vec<Batches>,
    /// Of each edge, batches under way and those that wait for them.
    windows: Vec<(u32, VecDeque<u32>)>,
    edges: Vec<Station>,
    uplinks: Vec<Station>,
    site: Station,
    cores: Vec<Station>,
    disks: Vec<Station>,
    begin_ns: u64,
    end_ns: u64,
    made: u64,
    acknowledged: u64,
    growth: i64,
    /// How long batches have had their place in a window, all together.
    under_way_ns: u64,
    latencies_ns: Vec<u64>,
}

#[derive(Clone, Copy)]
struct UnderWay {
    edge: u32,
    batch: Batch,
    bytes: u64,
    /// When its place in the window was taken.
    sent_ns: u64,
    /// Replicas that have it.
    synced: u32,
    /// What is over of it: each replica, and its acknowledgement.
    over: u32,
}

/// Runs a fleet that was checked.
pub(super) fn run(fleet: &Fleet, seed: u64, time_ns: u64) -> FleetReport {
    let mut random = Random::new(seed);
    let (edges, servers) = (fleet.edges as usize, fleet.cluster.servers as usize);
    let mut run = Run {
        fleet,
        agenda: Agenda::default(),
        under_way: Vec::new(),
        free: Vec::new(),
        batches: (0..edges).map(|_| Batches::of(&fleet.edge, &mut random.fork())).collect(),
        windows: vec![(0, VecDeque::new()); edges],
        edges: vec![Station::of(1); edges],
        uplinks: vec![Station::of(1); edges],
        site: Station::of(1),
        cores: vec![Station::of(fleet.cluster.cores); servers],
        disks: vec![Station::of(1); servers],
        begin_ns: time_ns / 4,
        end_ns: time_ns,
        made: 0,
        acknowledged: 0,
        growth: 0,
        under_way_ns: 0,
        latencies_ns: Vec::new(),
    };
    (0..fleet.edges).for_each(|edge| run.next_batch(edge));
    while let Some((Time(now_ns), (id, step))) = run.agenda.pop() {
        if now_ns >= time_ns {
            break;
        }
        run.step(now_ns, id, step);
    }
    run.report()
}

/// How long a line is busy with so many bytes.
fn on_line(line: Line, bytes: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(SECOND_NS) / u128::from(line.bytes_per_s)).unwrap_or(u64::MAX)
}

impl Run<'_> {
    fn push(&mut self, at_ns: u64, id: u32, step: Step) {
        self.agenda.push(Time(at_ns), (id, step));
    }

    /// Enters the next batch of an edge.
    fn next_batch(&mut self, edge: u32) {
        let batch = self.batches[edge as usize].next(&self.fleet.edge);
        let bytes = u64::from(batch.events) * u64::from(self.fleet.edge.event_bytes);
        let under_way = UnderWay { edge, batch, bytes, sent_ns: 0, synced: 0, over: 0 };
        let id = match self.free.pop() {
            Some(id) => {
                self.under_way[id as usize] = under_way;
                id
            }
            None => {
                self.under_way.push(under_way);
                u32::try_from(self.under_way.len() - 1).expect("fewer than 2^32 batches are under way")
            }
        };
        self.push(batch.closed_ns, id, Step::Closed);
    }

    fn server(&self, edge: u32, place: u8) -> usize {
        self.fleet.replicas(edge).nth(usize::from(place)).expect("a batch goes to the replicas of its stream")
    }

    fn step(&mut self, now_ns: u64, id: u32, step: Step) {
        let UnderWay { edge, batch, bytes, .. } = self.under_way[id as usize];
        let (at, cluster) = (edge as usize, self.fleet.cluster);
        match step {
            Step::Closed => {
                self.next_batch(edge);
                self.offer(now_ns, self.under_way[id as usize]);
                let done_ns = self.edges[at].serve(now_ns, self.fleet.made_ns(batch.events));
                self.push(done_ns, id, Step::Made);
            }
            Step::Made if self.windows[at].0 == self.fleet.edge.window => self.windows[at].1.push_back(id),
            Step::Made => {
                self.windows[at].0 += 1;
                self.under_way[id as usize].sent_ns = now_ns;
                let uplink = self.fleet.edge.uplink;
                let done_ns = self.uplinks[at].serve(now_ns, on_line(uplink, bytes));
                self.push(done_ns + uplink.delay_ns, id, Step::AtSite);
            }
            Step::AtSite => {
                let done_ns = self.site.serve(now_ns, on_line(cluster.site, bytes));
                self.push(done_ns + cluster.site.delay_ns, id, Step::AtServer(0));
            }
            Step::AtServer(place) => {
                let server = self.server(edge, place);
                let done_ns = self.cores[server].serve(now_ns, self.fleet.taken_ns(bytes));
                self.push(done_ns, id, Step::AtDisk(place));
                if place == 0 {
                    let followers = 1..u8::try_from(cluster.replicas).expect("a cluster has fewer servers");
                    followers.for_each(|place| self.push(done_ns + cluster.between_ns, id, Step::AtServer(place)));
                }
            }
            Step::AtDisk(place) => {
                let server = self.server(edge, place);
                let done_ns = self.disks[server].serve(now_ns, cluster.sync_ns);
                let told_ns = done_ns + if place == 0 { 0 } else { cluster.between_ns };
                self.push(told_ns, id, Step::Synced);
            }
            Step::Synced => {
                let under_way = &mut self.under_way[id as usize];
                under_way.synced += 1;
                if under_way.synced == cluster.replicas / 2 + 1 {
                    let way_ns = cluster.site.delay_ns + self.fleet.edge.uplink.delay_ns;
                    self.push(now_ns + way_ns, id, Step::Acknowledged);
                }
                self.leave(id);
            }
            Step::Acknowledged => self.acknowledged(now_ns, id),
        }
    }

    /// Counts what a batch will ask of the stations on its way.
    fn offer(&mut self, now_ns: u64, under_way: UnderWay) {
        if now_ns < self.begin_ns {
            return;
        }
        let (fleet, at, bytes) = (self.fleet, under_way.edge as usize, under_way.bytes);
        self.edges[at].offered_ns += fleet.made_ns(under_way.batch.events);
        self.uplinks[at].offered_ns += on_line(fleet.edge.uplink, bytes);
        self.site.offered_ns += on_line(fleet.cluster.site, bytes);
        for server in fleet.replicas(under_way.edge) {
            self.cores[server].offered_ns += fleet.taken_ns(bytes);
            self.disks[server].offered_ns += fleet.cluster.sync_ns;
        }
        self.made += u64::from(under_way.batch.events);
        self.growth += i64::from(under_way.batch.events);
    }

    fn acknowledged(&mut self, now_ns: u64, id: u32) {
        let UnderWay { edge, batch, sent_ns, .. } = self.under_way[id as usize];
        if now_ns >= self.begin_ns {
            self.under_way_ns += now_ns - sent_ns;
            self.acknowledged += u64::from(batch.events);
            self.growth -= i64::from(batch.events);
            self.latencies_ns.push(now_ns - batch.first_ns);
        }
        let (under_way, waiting) = &mut self.windows[edge as usize];
        *under_way -= 1;
        if let Some(next) = waiting.pop_front() {
            self.push(now_ns, next, Step::Made);
        }
        self.leave(id);
    }

    /// Of a batch that was acknowledged and that every replica has, nothing is left.
    fn leave(&mut self, id: u32) {
        let under_way = &mut self.under_way[id as usize];
        under_way.over += 1;
        if under_way.over == self.fleet.cluster.replicas + 1 {
            self.free.push(id);
        }
    }

    fn report(mut self) -> FleetReport {
        let within_ns = self.end_ns - self.begin_ns;
        let fullest = |stations: &[Station]| stations.iter().map(|station| station.load(within_ns)).fold(0.0, f64::max);
        // Little's law: as many are under way as come, times how long they are.
        let windows = f64::from(self.fleet.edges) * f64::from(self.fleet.edge.window);
        let mut loads = vec![
            StationLoad { station: "core of an edge", load: fullest(&self.edges) },
            StationLoad { station: "uplink of an edge", load: fullest(&self.uplinks) },
            StationLoad { station: "line of the site", load: self.site.load(within_ns) },
            StationLoad { station: "cores of a server", load: fullest(&self.cores) },
            StationLoad { station: "disk of a server", load: fullest(&self.disks) },
            StationLoad { station: "window of the edges", load: self.under_way_ns as f64 / (within_ns as f64 * windows) },
        ];
        loads.sort_by(|one, other| other.load.total_cmp(&one.load));
        self.latencies_ns.sort_unstable();
        let at = |share: f64| {
            let place = (self.latencies_ns.len() as f64 * share) as usize;
            self.latencies_ns.get(place.min(self.latencies_ns.len().saturating_sub(1))).copied().unwrap_or(0)
        };
        let per_s = |events: u64| events as f64 * SECOND_NS as f64 / within_ns as f64;
        FleetReport {
            made_per_s: per_s(self.made),
            acknowledged_per_s: per_s(self.acknowledged),
            latency: Latency { p50_ns: at(0.5), p99_ns: at(0.99), max_ns: at(1.0) },
            growth: self.growth,
            loads,
        }
    }
}
