//! Events of this cloud for a stream of NATS JetStream, which many edges forward to (`docs/formats/fleet.md`, decision 138).
//!
//! ```text
//! shard ── one write a turn ──> event log ── follower ──> lanes' backlogs ── nats::forwarder ──> connection ══> JetStream
//! ```
//!
//! What comes back from there is [`back`].
//!
//! A thread of its own reads the event log behind the shard, which does nothing for it. What waits is the event log itself, so its limits are those of the backlog, and it is there after a restart. How far a
//! lane has come says the stream: its last batch names the record of the log that it ends with.

mod back;
mod backlog;
mod carrier;
mod checkpoint;
mod config;
mod follower;
mod look;
mod pace;
mod source;
mod state;
mod taking;
mod writer;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering::Relaxed},
};

use bodkin_arrowhead::record::SystemId;
pub use bodkin_nats::protocol::{Credentials, Signer};
use bodkin_store::event_log::EventLogReader;

pub use self::{
    back::{BackState, BackView, FleetEvent, FleetTold, FromFleet, WayBack},
    backlog::FleetForm,
    config::{ALL_EDGES, BATCH_BYTES_MAX, FleetConfig, FleetConfigError, FleetLane, FromFleetConfig},
    look::{FleetConsumer, FleetLook, FleetStream, Greeted},
    state::{BetweenNodesView, FleetState, FleetView, LaneState, StreamTold},
};
use self::{
    backlog::LaneBacklog,
    carrier::Carrier,
    checkpoint::Checkpoint,
    follower::{Chosen, Follower, Selection},
};
pub(crate) use self::{
    checkpoint::replace,
    config::{LOOK_EVERY, TAKEN_MAX},
    look::greet,
    taking::{Brought, Taking, Turn},
    writer::{Exclusion, Writers},
};
use crate::{
    inbox::Inbox,
    nats::{LineThread, Stop},
    pair::Leadership,
    realtime::stand_behind,
    topics::RealTimeTopics,
};

/// Batches that lie ready in front of a connection.
const WINDOW_BATCHES: usize = 8;

/// Wakes the thread that forwards: the event log has grown.
pub(crate) type Bell = Arc<Inbox<()>>;

/// Whom events are forwarded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Whoever reads the fleet's stream.
    Fleet,
    /// The other nodes of this cloud.
    Nodes,
}

impl Purpose {
    /// The stream, in words.
    fn stream(self) -> &'static str {
        match self {
            Self::Fleet => "the fleet's stream",
            Self::Nodes => "the stream between nodes",
        }
    }

    fn thread(self) -> &'static str {
        match self {
            Self::Fleet => "fleet",
            Self::Nodes => "node-events",
        }
    }

    /// Where it is noted how far it has come.
    pub fn directory(self, data: &Path) -> PathBuf {
        data.join(self.thread())
    }
}

/// The thread that forwards.
#[derive(Debug)]
pub struct Fleet(LineThread<()>);

/// What is told of forwarding that has not begun.
pub fn state(config: &FleetConfig) -> Arc<FleetState> {
    let lanes = (0..config.lanes.len()).map(|lane| LaneState::new(config.lanes[lane].name.clone(), config.terms(lane).subject.to_string()));
    let back = config.from.as_ref().map(|from| Arc::new(BackState::new(from.stream.clone(), config.edge.clone())));
    let state = FleetState::new(config.edge.clone(), config.stream.clone(), lanes.collect(), back);
    state.forwards.store(!config.only_takes(), Relaxed);
    Arc::new(state)
}

/// Notes for lanes that are new where they begin: at the present. From now on nothing is left out, whenever a server is reached, or this node leads.
///
/// # Errors
/// A lane's file cannot be read or written.
pub(crate) fn begin_lanes(purpose: Purpose, config: &FleetConfig, data: &Path, log: &EventLogReader) -> io::Result<Vec<Checkpoint>> {
    let directory = purpose.directory(data);
    let begin = |lane: &FleetLane| {
        let path = checkpoint::path_of(&directory, &lane.name);
        if let Some(checkpoint) = Checkpoint::read(&path, log.identity())? {
            return Ok(checkpoint);
        }
        let checkpoint = Checkpoint { epoch: 1, position: 0, from: log.end() };
        checkpoint.write(&path, log.identity())?;
        Ok(checkpoint)
    };
    config.lanes.iter().map(begin).collect()
}

impl Fleet {
    /// Begins to forward. What is published as `own` has come from the fleet, and does not go back there. A node of a pair forwards while its `leadership` lasts.
    /// Lanes continue behind batches of `writers`.
    ///
    /// # Errors
    /// A lane's file cannot be read, or no thread be made.
    pub fn start(
        config: Arc<FleetConfig>,
        data: &Path,
        log: &EventLogReader,
        topics: Arc<RealTimeTopics>,
        state: Arc<FleetState>,
        own: SystemId,
        (leadership, writers): (Option<Arc<Leadership>>, Writers),
    ) -> io::Result<Self> {
        let named = config.lanes.iter().enumerate().flat_map(|(at, lane)| lane.event_types.iter().map(move |name| (at, &**name)));
        let selection = Selection::Chosen(Chosen::new(named, topics, own));
        Self::start_for(Purpose::Fleet, config, data, log, selection, state, (leadership, writers))
    }

    /// Begins to hand what is accepted here on to the other nodes of this cloud.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(crate) fn start_between_nodes(
        config: Arc<FleetConfig>,
        data: &Path,
        log: &EventLogReader,
        state: Arc<FleetState>,
        writers: Writers,
    ) -> io::Result<Self> {
        Self::start_for(Purpose::Nodes, config, data, log, Selection::Accepted, state, (None, writers))
    }

    fn start_for(
        purpose: Purpose,
        config: Arc<FleetConfig>,
        data: &Path,
        log: &EventLogReader,
        selection: Selection,
        state: Arc<FleetState>,
        (leadership, writers): (Option<Arc<Leadership>>, Writers),
    ) -> io::Result<Self> {
        let checkpoints = begin_lanes(purpose, &config, data, log)?;
        let window = config.batch_bytes_max * WINDOW_BATCHES;
        let lane = |checkpoint: &Checkpoint| LaneBacklog::new(log.clone(), config.form, window, *checkpoint, writers.clone());
        let lanes: Vec<_> = checkpoints.iter().map(lane).collect();
        let directory = purpose.directory(data);
        let paths = config.lanes.iter().map(|lane| checkpoint::path_of(&directory, &lane.name)).collect();
        let from = checkpoints.iter().map(|checkpoint| checkpoint.from).min().expect("there is a lane");
        let follower = Follower::new(log.clone(), from, selection);
        let carrier = Carrier::new(purpose, config, follower, lanes, paths, state, leadership)?;
        let bell = carrier.bell();
        let run = move |stop: Stop| {
            // Nobody waits for a fleet; whoever publishes and hears goes first.
            if purpose == Purpose::Fleet
                && let Err(error) = stand_behind()
            {
                tracing::warn!(%error, "the system refuses to let the thread that forwards run behind others");
            }
            carrier.run(&stop);
        };
        Ok(Self(LineThread::start(purpose.thread(), bell, run)?))
    }

    /// Rung where the event log has grown, by who wants it to be forwarded at once.
    pub(crate) fn bell(&self) -> Bell {
        self.0.inbox().clone()
    }

    /// Forwards nothing more; what waits is forwarded after the next start. Waits for the thread, so it is not for one that serves others.
    pub fn stop(self) {
        self.0.stop();
    }
}
