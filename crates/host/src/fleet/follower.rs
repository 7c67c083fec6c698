//! Follows the event log and offers each lane its events: behind the shard's write, on a thread that no event waits for.

use std::{collections::BTreeMap, io, sync::Arc};

use bodkin_arrowhead::record::SystemId;
use bodkin_store::event_log::{Cursor, EventLogReader, LogId, Position, Record};

use super::backlog::LaneBacklog;
use crate::{replay::source, topics::RealTimeTopics};

/// Records that are looked at in a turn, so that a connection is served beside a long backlog.
const RECORDS_OF_TURN: usize = 4_096;

/// Which lane an event goes into.
pub enum Selection {
    /// Those that are chosen for the fleet have theirs.
    Chosen(Chosen),
    /// Whatever was accepted here goes into the one that there is.
    Accepted,
}

/// What is chosen for the fleet.
pub struct Chosen {
    /// Event types that are named, as stored.
    named: BTreeMap<Box<str>, usize>,
    /// Topics that are marked `fleet` and not named are in the first lane.
    topics: Arc<RealTimeTopics>,
    /// As whose the fleet's own events are published here.
    own: SystemId,
}

impl Chosen {
    /// Of the event types that are named for each lane, and the topics that are marked. What is published as `own` stays here: it has come from the fleet.
    pub fn new<'e>(lanes: impl Iterator<Item = (usize, &'e str)>, topics: Arc<RealTimeTopics>, own: SystemId) -> Self {
        Self { named: lanes.map(|(lane, event_type)| (event_type.into(), lane)).collect(), topics, own }
    }

    /// Whether a topic is marked, for which there is a lane.
    fn marks_any(&self) -> bool {
        self.topics.all().iter().any(|topic| topic.spec.fleet)
    }

    fn lane_of(&self, record: &Record<'_>) -> Option<usize> {
        if source(record.id) == Some(self.own) {
            return None;
        }
        let marked = || self.topics.get(record.topic).filter(|topic| topic.spec.fleet).map(|_| 0);
        self.named.get(record.topic).copied().or_else(marked)
    }
}

impl Selection {
    /// Whether there is a lane for anything beyond what is named.
    pub fn marks_any(&self) -> bool {
        match self {
            Self::Chosen(chosen) => chosen.marks_any(),
            Self::Accepted => true,
        }
    }

    /// Whether an event is forwarded only after the log has confirmed it. Otherwise it could be lost with this host, and the next leader would log and forward it again.
    fn waits(&self, record: &Record<'_>) -> bool {
        match self {
            Self::Chosen(chosen) => chosen.topics.is_durable(record.topic),
            // The publisher waits for that.
            Self::Accepted => false,
        }
    }

    /// The lane of an event; `None`: it stays here, as what another node of this cloud has accepted, and hands on itself, does.
    fn lane_of(&self, record: &Record<'_>) -> Option<usize> {
        match self {
            _ if record.origin.is_some() => None,
            Self::Chosen(chosen) => chosen.lane_of(record),
            Self::Accepted => Some(0),
        }
    }
}

/// A place in the log that moves on as events come.
pub struct Follower {
    log: EventLogReader,
    cursor: Cursor,
    /// Behind the last record that was looked at, or told to be missing.
    expected: Position,
    /// The record here waits until it is confirmed.
    unconfirmed: Option<Position>,
    selection: Selection,
    offered: u64,
}

impl Follower {
    /// Begins at a place, which may be gone.
    pub fn new(log: EventLogReader, from: Position, selection: Selection) -> Self {
        let cursor = log.cursor(from);
        Self { log, cursor, expected: from, unconfirmed: None, selection, offered: 0 }
    }

    /// Behind the last record of the log.
    pub fn log_end(&self) -> Position {
        self.log.end()
    }

    /// The identity of the log.
    pub fn log_id(&self) -> LogId {
        self.log.identity()
    }

    /// Events that lanes were offered.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// What is selected.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Looks at what has come and is [confirmed](EventLogReader::confirmed) where it is durable, as long as a lane takes it; `grown` is told by how many bytes which lane's window has grown. False: it was all that there is.
    pub fn follow(&mut self, lanes: &mut [LaneBacklog], mut grown: impl FnMut(usize, usize)) -> io::Result<bool> {
        if let Some(from) = lanes.iter_mut().filter_map(LaneBacklog::take_wanted).min()
            && from < self.expected
        {
            (self.cursor, self.expected, self.unconfirmed) = (self.log.cursor(from), from, None);
        }
        let confirmed = self.log.confirmed();
        if self.unconfirmed.is_some_and(|position| position >= confirmed) {
            return Ok(false);
        }
        for _ in 0..RECORDS_OF_TURN {
            if !lanes.iter().any(LaneBacklog::takes_offers) {
                return Ok(true);
            }
            let Some(record) = self.cursor.read()? else {
                let end = self.cursor.position();
                Self::miss(&mut self.expected, end, lanes);
                return Ok(false);
            };
            let (position, lane) = (record.position, self.selection.lane_of(&record));
            if lane.is_some() && position >= confirmed && self.selection.waits(&record) {
                (self.cursor, self.unconfirmed) = (self.log.cursor(position), Some(position));
                return Ok(false);
            }
            Self::miss(&mut self.expected, position, lanes);
            self.expected = Position(position.0 + 1);
            if let Some(lane) = lane {
                self.offered += 1;
                let bytes = lanes[lane].offer(&record);
                if bytes > 0 {
                    grown(lane, bytes);
                }
            }
        }
        Ok(true)
    }

    /// Tells every lane what is missing in front of a place: nobody knows whose it was.
    fn miss(expected: &mut Position, until: Position, lanes: &mut [LaneBacklog]) {
        if until > *expected {
            lanes.iter_mut().for_each(|lane| lane.offer_gap(*expected, until));
            *expected = until;
        }
    }
}
