//! Telling listeners whether what their topics promise is guaranteed: deadlines, as far as machine and clocks go, and bounds on losses, as long as there is a Backup
//! that may lead. Event streams of topics that promise it are told when they begin, and whenever it changes; DEALERs that have asked, whatever they hear.

use std::io::Write;

use bodkin_broker::{BackupStanding, Terms};
use serde::Serialize;

use super::{Receiver, Shard, connection::Phase};
use crate::{
    listening::Listening,
    stall::{Guarantee, Notice},
};

/// What is guaranteed at present.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Guarantees {
    #[serde(flatten)]
    pub deadlines: Notice,
    pub losses: Guarantee,
}

/// What a topic may promise.
#[derive(Clone, Copy)]
pub(super) enum Promise {
    Deadline,
    LossBound,
}

impl Promise {
    fn is_of(self, terms: &Terms) -> bool {
        match self {
            Self::Deadline => terms.dispatch_within_ns.is_some(),
            Self::LossBound => terms.replicate_within_ns.is_some(),
        }
    }
}

impl Shard {
    pub(super) fn guarantees(&self) -> Guarantees {
        let is_broken = self.losses == Guarantee::Held && (self.context.stalls.backup_is_far() || self.context.stalls.failover_was_long());
        let losses = if is_broken { Guarantee::Suspended } else { self.losses };
        Guarantees { deadlines: self.context.stalls.notice(), losses }
    }

    /// What a stream that begins is to know of its topic: nothing, if what that promises is guaranteed, or nobody has stated what it depends on.
    pub(super) fn notice_at_begin(&self, listening: &Listening) -> Option<Guarantees> {
        let guarantees = self.guarantees();
        let is_to_know =
            |guarantee, promise| matches!(guarantee, Guarantee::Pending | Guarantee::Suspended) && self.promises(listening, promise);
        let concerns = is_to_know(guarantees.deadlines.guarantee, Promise::Deadline) || is_to_know(guarantees.losses, Promise::LossBound);
        concerns.then_some(guarantees)
    }

    /// The Backup of a pair stands differently: only one that may lead bounds losses.
    pub(super) fn backup_stands(&mut self, standing: BackupStanding) {
        let losses = if standing == BackupStanding::InSync { Guarantee::Held } else { Guarantee::Suspended };
        if std::mem::replace(&mut self.losses, losses) != losses {
            self.tell_guarantees(&[Promise::LossBound]);
        }
    }

    /// Tells streams of topics that promise one of these, and DEALERs that have asked.
    pub(super) fn tell_guarantees(&mut self, changed: &[Promise]) {
        let guarantees = self.guarantees();
        let promises = |listening: &Listening| changed.iter().any(|promise| self.promises(listening, *promise));
        let is_concerned = |slot: &usize| self.listening(*slot).is_some_and(promises);
        let slots: Vec<usize> = self.connections.iter().map(|(slot, _)| slot).filter(is_concerned).collect();
        for slot in slots {
            self.write_notice(slot, guarantees);
            self.dirty.push(slot);
        }
        self.tell_watching_dealers();
    }

    pub(super) fn write_notice(&mut self, slot: usize, guarantees: Guarantees) {
        let told = serde_json::to_string(&guarantees).expect("numbers and names are JSON");
        write!(self.connections[slot].out(), "event: bodkin-guarantee\ndata: {told}\n\n").expect("a vector takes everything");
    }

    /// What is heard on a connection, if it is an event stream.
    fn listening(&self, slot: usize) -> Option<&Listening> {
        let connection = &self.connections[slot];
        match connection.phase {
            Phase::Replay => connection.replay.as_ref().map(|replay| &*replay.listening),
            Phase::Stream { subscription } => match self.broker.receiver(subscription) {
                Some(Receiver::Stream { listening, .. }) => Some(listening),
                _ => None,
            },
            _ => None,
        }
    }

    fn promises(&self, listening: &Listening, promise: Promise) -> bool {
        self.broker.terms(listening.event_type.as_str()).is_some_and(|(_, terms)| promise.is_of(terms))
    }
}
