//! What a Backup says first on a connection: how much of what the leader has is here already.

use bodkin_broker::{
    EventId,
    wire::{LinkFrame, Replication},
};
use bodkin_store::{event_log::RecordName, following::Followed};

use super::Work;
use crate::{
    inbox,
    pair::{
        News,
        links::{LOGGED_SINCE, TAIL_SINCE},
    },
};

impl Work {
    /// Begins to say it. What the event log has is the shard's to look up; without a local cloud that follows there is none.
    pub(super) fn begin_to_say(&mut self) {
        match self.follows.as_ref().filter(|_| self.protocol >= LOGGED_SINCE) {
            Some(follows) => follows.shard.post(inbox::Message::Pair(News::NameRecords { serial: self.serial })),
            None => self.say_what_is_here(),
        }
    }

    /// Tells the leader what is in the event log, and then what is in the database.
    pub(super) fn say_what_is_logged(&mut self, serial: u64, newest: &[RecordName]) {
        let (Some(link), epoch) = (&mut self.link, self.epoch) else { return };
        if serial != self.serial {
            return;
        }
        for RecordName { time_ns, id: EventId { publisher, incarnation, topic, sequence } } in newest.iter().copied() {
            link.push(LinkFrame::Replication(Replication::Logged { epoch, time_utc_ns: time_ns, publisher, incarnation, topic, sequence }));
        }
        self.say_what_is_here();
    }

    /// Tells the leader which of its operations are in the database: with those behind them no copy is needed.
    fn say_what_is_here(&mut self) {
        let (Some(link), epoch) = (&mut self.link, self.epoch) else { return };
        if link.protocol >= TAIL_SINCE {
            let followed = self.follows.as_ref().and_then(|follows| follows.following.followed());
            let is_base = |followed: &Followed| followed.epoch == epoch.0 && !self.needs_copy;
            let number = followed.filter(is_base).map(|followed| followed.number);
            link.push(LinkFrame::Replication(Replication::Have { epoch, number }));
        }
    }
}
