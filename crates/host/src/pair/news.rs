//! What the pair has to say to the shard.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use bodkin_broker::{Backup, Epoch, Terms, TopicId, member::Protection};
use bodkin_store::{event_log::Position, replication::Committed};

use super::{Ticket, link::Link, primary::Piece};
use crate::{
    shard::Kept,
    topics::{RealTimeTopic, wish::Asker},
};

/// What the pair has to say to the shard.
pub enum News {
    /// What this node has kept as a Backup: it is about to lead, and goes on with that.
    Given(Option<Box<Promoted>>),
    /// This node leads from now on, in this epoch; until when is in [`Leadership`](super::Leadership).
    Leads {
        /// Which one.
        epoch: Epoch,
    },
    /// It leads no more.
    Fenced,
    /// It is about to hand the lead over: who waits is to be answered, and nobody more.
    HandOver,
    /// That is over, or given up.
    HandOverEnds,
    /// What may be counted on has changed.
    Protection(Protection),
    /// A connection to the Backup.
    Channel {
        /// The connection.
        link: Box<Link>,
        /// Which one of all.
        serial: u64,
    },
    /// The Backup is not connected any more.
    BackupGone,
    /// The database has changed.
    Committed(Committed),
    /// This node follows: what its leader has.
    Prepare(Vec<Preparation>),
    /// This node follows: records of the leader's for the event log.
    Records {
        /// As [`bodkin_store::event_log::batch`] has them.
        batch: Box<[u8]>,
        /// By which the keeper is told when they are on the disk.
        ticket: Ticket,
    },
    /// This node follows: the leader is to be told what the event log has.
    NameRecords {
        /// On which connection.
        serial: u64,
    },
    /// This node leads: where its event log parts from the Backup's.
    Searched {
        /// Of which connection.
        serial: u64,
        /// The first record that the Backup lacks.
        first: Option<Position>,
    },
    /// This node leads: a piece of its event log that the Backup lacks.
    Lacking {
        /// On which connection it is to be sent.
        serial: u64,
        /// What was read.
        piece: Piece,
    },
    /// This node leads, and could not read from its event log what the Backup lacks.
    LogUnread {
        /// The connection of that Backup.
        serial: u64,
        /// Why.
        why: String,
    },
}

impl fmt::Debug for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Given(_) => "Given",
            Self::Leads { .. } => "Leads",
            Self::Fenced => "Fenced",
            Self::HandOver => "HandOver",
            Self::HandOverEnds => "HandOverEnds",
            Self::Protection(_) => "Protection",
            Self::Channel { .. } => "Channel",
            Self::BackupGone => "BackupGone",
            Self::Committed(_) => "Committed",
            Self::Prepare(_) => "Prepare",
            Self::Records { .. } => "Records",
            Self::NameRecords { .. } => "NameRecords",
            Self::Searched { .. } => "Searched",
            Self::Lacking { .. } => "Lacking",
            Self::LogUnread { .. } => "LogUnread",
        })
    }
}

/// What a shard that follows is told of its leader's topics and subscribers, so that it has them when it leads.
#[derive(Clone, Debug)]
pub enum Preparation {
    /// A real-time topic, or what it promises from now on.
    Topic {
        /// The topic.
        topic: Arc<RealTimeTopic>,
        /// Its terms.
        terms: Terms,
        /// Its number in the Backup's machine.
        in_backup: TopicId,
    },
    /// The leader waits for a subscriber. One of a topic that is not here yet is told again behind it.
    Required(RequiredSubscriber),
    /// It does not any more.
    NotRequired {
        /// Of which topic.
        topic: Box<str>,
        /// Who.
        name: Box<str>,
    },
    /// For whom it waits is told anew, or not known.
    NobodyRequired,
}

/// A subscriber whose acknowledgements count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredSubscriber {
    /// Of which topic.
    pub topic: Box<str>,
    /// Who.
    pub name: Box<str>,
    /// How long it is waited for.
    pub wait: Duration,
}

/// What a Backup has when it is promoted.
#[derive(Debug)]
pub struct Promoted {
    /// The machine, with its streams.
    pub backup: Backup,
    /// The events, by slot.
    pub kept: Vec<Kept>,
    /// Topics of which subscribers asked more than was declared, and under which name that is in force here.
    pub asked: Vec<(Box<str>, Asker)>,
    /// The checkpoints of graphs, by name.
    pub graphs: BTreeMap<Box<str>, Vec<u8>>,
}
