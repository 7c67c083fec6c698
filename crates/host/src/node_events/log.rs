//! The log of events between nodes: a stream that each node hands on to what it has accepted, and takes from what the others have (decision 152).
//!
//! ```text
//! shard ── one write a turn ──> event log ── rings ──> fleet::Fleet, one lane ══> JetStream ══> taker ──> shard ──> live subscribers, event log
//! ```

use std::{io, path::Path, sync::Arc};

use bodkin_store::{event_log::EventLogReader, identity::DirectoryIdentity};

use super::{Crossing, NodeStream, recall::Recall, taker::Taker};
use crate::{
    fleet::{BackState, Exclusion, Fleet, FleetState, LaneState, Purpose, Writers},
    inbox::Inbox,
    resume_token::{CloudTag, LogPlace, ResumeToken},
    trace::now_ns,
};

/// Both threads.
#[derive(Debug)]
pub struct NodeLog {
    fleet: Fleet,
    taker: Taker,
}

impl NodeLog {
    /// Begins to hand on and to take; with it the shard's end.
    ///
    /// # Errors
    /// What was noted of former runs cannot be read, or the system has no thread for it.
    pub fn start(
        stream: &NodeStream,
        (cloud, directory): (&str, &Arc<DirectoryIdentity>),
        data: &Path,
        log: &EventLogReader,
        shard: Arc<Inbox>,
    ) -> io::Result<(Self, Crossing)> {
        let config = &stream.lane;
        let lane = LaneState::new(config.lanes[0].name.clone(), config.terms(0).subject.to_string());
        let back = Arc::new(BackState::new(config.stream.clone(), config.edge.clone()));
        let state = Arc::new(FleetState::new(config.edge.clone(), config.stream.clone(), vec![lane], Some(back)));
        let database = cloud.parse().map_err(io::Error::other)?;
        let writers = Writers::new(&database, directory.clone(), Exclusion::Name);
        let fleet = Fleet::start_between_nodes(config.clone(), data, log, state.clone(), writers)?;
        let (recall, lanes) = Recall::open(&Purpose::Nodes.directory(data), stream.own(), log.clone(), now_ns())?;
        let mut token = ResumeToken::new(CloudTag::of(cloud), stream.own(), recall.since_ns());
        lanes.reached().for_each(|(node, reached)| token.reach(node, LogPlace::behind(reached.position, reached.time_ns)));
        token.reach(stream.own(), LogPlace { next: log.end(), time_ns: now_ns() });
        let crossing = Crossing::by_log(fleet.bell(), state.clone(), token);
        let taker = Taker::start(stream, (recall, lanes), shard, state, crossing.counts.clone())?;
        Ok((Self { fleet, taker }, crossing))
    }

    /// Ends both; what waits is handed on after the next start. Waits for them, so it is not for a thread that serves others.
    pub fn stop(self) {
        self.taker.stop();
        self.fleet.stop();
    }
}
