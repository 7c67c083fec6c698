//! Telling event streams whether the deadlines of their topics are guaranteed: when a stream begins, and whenever that changes.

use std::io::Write;

use super::{Phase, Receiver, Shard};
use crate::{
    listening::Listening,
    stall::{Guarantee, Notice},
};

impl Shard {
    /// What a stream that begins is to know of its topic's deadline: nothing, if it is guaranteed or nobody has stated how long the machine may stall.
    pub(super) fn notice_at_begin(&self, listening: &Listening) -> Option<Notice> {
        let notice = self.context.stalls.notice();
        let is_to_know = matches!(notice.guarantee, Guarantee::Pending | Guarantee::Suspended);
        (is_to_know && self.has_deadline(listening)).then_some(notice)
    }

    /// Tells whoever listens to topics with deadlines whether these are guaranteed.
    pub(super) fn tell_guarantee(&mut self, notice: Notice) {
        let is_concerned = |slot: &usize| self.listening(*slot).is_some_and(|listening| self.has_deadline(listening));
        let slots: Vec<usize> = self.connections.iter().map(|(slot, _)| slot).filter(is_concerned).collect();
        for slot in slots {
            self.write_notice(slot, notice);
            self.dirty.push(slot);
        }
    }

    pub(super) fn write_notice(&mut self, slot: usize, notice: Notice) {
        let told = serde_json::to_string(&notice).expect("numbers and a name are JSON");
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

    fn has_deadline(&self, listening: &Listening) -> bool {
        self.broker.terms(listening.event_type.as_str()).is_some_and(|(_, terms)| terms.dispatch_within_ns.is_some())
    }
}
