//! A fleet of edges that forward their events to a cluster of JetStream servers: how long that takes, and which part of it is full first.
//!
//! ```text
//! edge: topics ──> batch (so many bytes or so long) ──> core ──> window of batches that are not acknowledged ──> uplink ┐
//!       ... of each edge                                                                                             ├─> line of the site ──> leader of the stream: core, disk
//! acknowledgement <── majority of the replicas has synced <── followers: core, disk <────────────────────────────────────┘
//! ```
//!
//! Every station serves one batch after the other in the order of their arrival. What a batch costs at each is an argument. Topics are
//! periodic with phases that the seed draws, so that the load of an edge is as even as that of many sensors is. Nothing fails here: what outlives failures is the broker's
//! (`docs/design/simulation.md`).

mod batch;
mod run;
mod station;

pub use self::run::{FleetReport, Latency, StationLoad};

use crate::clock::SECOND_NS;

/// Edges that a fleet may have.
pub const EDGES_MAX: u32 = 100_000;
/// Topics of all edges together.
pub const TOPICS_MAX: u64 = 50_000_000;
/// Servers that a cluster may have.
pub const SERVERS_MAX: u32 = 64;

/// What an edge makes, and what it has to forward it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeTerms {
    /// Topics, 1 or more.
    pub topics: u32,
    /// Time between two events of a topic; greater than 0.
    pub period_ns: u64,
    /// An event as it stands in a batch.
    pub event_bytes: u32,
    /// A batch is sent when it has so many bytes,
    pub batch_bytes_max: u32,
    /// or when its first event is so old.
    pub batch_delay_ns: u64,
    /// Batches that may be under way.
    pub window: u32,
    /// Processor time of an event, and of a batch.
    pub event_ns: u64,
    /// See `event_ns`.
    pub batch_ns: u64,
    /// Its line to the site of the servers.
    pub uplink: Line,
}

/// A line: how much it carries, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Bytes a second; greater than 0.
    pub bytes_per_s: u64,
    /// From its begin to its end.
    pub delay_ns: u64,
}

/// The servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterTerms {
    /// How many, 1 to [`SERVERS_MAX`].
    pub servers: u32,
    /// Streams; edges are spread over them evenly, and they over the servers.
    pub streams: u32,
    /// Servers that have each stream, 1 to all.
    pub replicas: u32,
    /// Cores of each server.
    pub cores: u32,
    /// Processor time of a batch at a server that takes it.
    pub batch_ns: u64,
    /// Processor time of a KiB of it.
    pub kib_ns: u64,
    /// Time of its disk until a batch is synced (`sync_interval: always`); 0: nothing is waited for.
    pub sync_ns: u64,
    /// The line that all edges share at the servers' site.
    pub site: Line,
    /// From server to server.
    pub between_ns: u64,
}

/// A fleet: a station is a core, a line or a disk of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// How many edges, 1 to [`EDGES_MAX`].
    pub edges: u32,
    /// All of them are alike.
    pub edge: EdgeTerms,
    /// Where they send to.
    pub cluster: ClusterTerms,
}

/// What makes no fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFleet {
    /// A number outside of what may be.
    #[error("{what} must be from {least} to {most}, and {came} came")]
    Range {
        /// Of what.
        what: &'static str,
        /// What came.
        came: u64,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
}

impl Fleet {
    /// Whether numbers are what they may be; the first one that is not.
    pub fn check(&self) -> Result<(), NoFleet> {
        let Self { edges, edge, cluster } = self;
        let servers = u64::from(cluster.servers);
        let ranges = [
            ("edges", u64::from(*edges), 1, EDGES_MAX.into()),
            ("topics of an edge", edge.topics.into(), 1, TOPICS_MAX),
            ("topics of all edges", u64::from(*edges) * u64::from(edge.topics), 1, TOPICS_MAX),
            ("the period in nanoseconds", edge.period_ns, 1_000, 86_400 * SECOND_NS),
            ("bytes of an event", edge.event_bytes.into(), 1, 1 << 20),
            ("bytes of a batch", edge.batch_bytes_max.into(), edge.event_bytes.into(), 1 << 23),
            ("the delay of a batch in nanoseconds", edge.batch_delay_ns, 0, 60 * SECOND_NS),
            ("the window", edge.window.into(), 1, 65_536),
            ("bytes a second of an uplink", edge.uplink.bytes_per_s, 1, 1 << 40),
            ("bytes a second of the site's line", cluster.site.bytes_per_s, 1, 1 << 40),
            ("servers", servers, 1, SERVERS_MAX.into()),
            ("streams", cluster.streams.into(), 1, 65_536),
            ("replicas", cluster.replicas.into(), 1, servers),
            ("cores", cluster.cores.into(), 1, 256),
        ];
        match ranges.into_iter().find(|(_, came, least, most)| !(least..=most).contains(&came)) {
            Some((what, came, least, most)) => Err(NoFleet::Range { what, came, least, most }),
            None => Ok(()),
        }
    }

    /// Runs it for so long, of which the first quarter counts for nothing.
    pub fn run(&self, seed: u64, time_ns: u64) -> Result<FleetReport, NoFleet> {
        self.check()?;
        Ok(run::run(self, seed, time_ns))
    }

    /// Processor time of an edge for a batch of so many events.
    fn made_ns(&self, events: u32) -> u64 {
        self.edge.batch_ns + self.edge.event_ns * u64::from(events)
    }

    /// Processor time of a server for a batch of so many bytes.
    fn taken_ns(&self, bytes: u64) -> u64 {
        self.cluster.batch_ns + self.cluster.kib_ns * bytes / 1024
    }

    /// The server that leads the stream of an edge, and those that follow it.
    fn replicas(&self, edge: u32) -> impl Iterator<Item = usize> + use<> {
        let ClusterTerms { servers, streams, replicas, .. } = self.cluster;
        let leader = (edge % streams) % servers;
        (0..replicas).map(move |next| ((leader + next) % servers) as usize)
    }
}

#[cfg(test)]
mod tests;
