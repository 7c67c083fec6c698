//! The log of events between nodes: a stream that each node hands on to what it has accepted, and takes from what the others have (decision 152).
//!
//! ```text
//! shard ── one write a turn ──> event log ── rings ──> fleet::Fleet, one lane ══> JetStream ══> taker ──> shard ──> live subscribers, event log
//! ```

use std::{io, path::Path, sync::Arc};

use bodkin_store::event_log::EventLogReader;

use super::{Crossing, NodeStream, recall::Recall, taker::Taker};
use crate::{
    fleet::{BackState, Fleet, FleetState, LaneState, Purpose},
    heard::Heard,
    inbox::Inbox,
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
    pub fn start(stream: &NodeStream, data: &Path, log: &EventLogReader, shard: Arc<Inbox>) -> io::Result<(Self, Crossing)> {
        let config = &stream.lane;
        let lane = LaneState::new(config.lanes[0].name.clone(), config.terms(0).subject.to_string());
        let back = Arc::new(BackState::new(config.stream.clone(), config.edge.clone()));
        let state = Arc::new(FleetState::new(config.edge.clone(), config.stream.clone(), vec![lane], Some(back)));
        let fleet = Fleet::start_between_nodes(config.clone(), data, log, state.clone())?;
        let (recall, lanes) = Recall::open(&Purpose::Nodes.directory(data), stream.own(), log.clone(), now_ns())?;
        let heard = Heard::new(stream.own(), log.end(), lanes.reached().map(|(node, reached)| (node, reached.position)));
        let crossing = Crossing::by_log(fleet.bell(), state.clone(), heard);
        let taker = Taker::start(stream, (recall, lanes), shard, state, crossing.counts.clone())?;
        Ok((Self { fleet, taker }, crossing))
    }

    /// Ends both; what waits is handed on after the next start. Waits for them, so it is not for a thread that serves others.
    pub fn stop(self) {
        self.taker.stop();
        self.fleet.stop();
    }
}
