//! The replica channel as the thread sees it that makes it: dialled when both candidates know who leads, and handed over to whoever owns this end.

use std::time::Duration;

use bodkin_broker::{
    Epoch, Instant, Node,
    member::Peer,
    wire::{LinkFrame, Replication},
};

use super::{Cloud, PairThread};
use crate::pair::{
    News, boot_time,
    keeper::KeeperMessage,
    link::{Fault, Purpose, Taken},
    links::LINES_SINCE,
};

/// Pause between a replica channel and the next one. It doubles for each one in a row that does not last.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// The longest pause, and how long a channel must last so that the next pause is the shortest.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The replica channel's connection, as the thread that makes it knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// There is none, and the next may be made from now on.
    None(Instant),
    /// It was handed over: which one it is of all there were, and of which epoch.
    With(u64, Epoch),
}

impl Channel {
    /// Returns the channel that stays when an epoch begins. A restarted node may have the channel of that epoch before a renewal names the leader; a
    /// second channel would end the first.
    fn of_epoch(self, epoch: Epoch) -> Self {
        match self {
            Self::With(_, of) if of == epoch => self,
            Self::With(..) | Self::None(_) => Self::None(Instant::default()),
        }
    }
}

/// How long to wait for the next replica channel. A standby that cannot keep what it is sent would otherwise have the leader make a copy of its database twenty
/// times a second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChannelPause {
    /// When the last channel began.
    begun: Instant,
    pause: Duration,
}

impl ChannelPause {
    /// Returns the pause behind a channel that ends now.
    fn behind_channel(&mut self, now: Instant) -> Duration {
        let has_lasted = now.since(self.begun) >= PAUSE_MAX;
        self.pause = if has_lasted { PAUSE_MIN } else { (self.pause * 2).clamp(PAUSE_MIN, PAUSE_MAX) };
        self.pause
    }
}

impl PairThread {
    /// Closes the connections of nodes whose certificates do not count any more; all of them if it is this node's.
    pub(super) fn refuse_again(&mut self, now: Instant) {
        for node in self.links.refuse_again(now) {
            if Some(node) == self.partner() {
                self.tell_keeper(KeeperMessage::LeaderRefused);
            }
            self.lost(node);
        }
    }

    /// Sends lines of this standby's certificate ledger to the other candidate, unless that one speaks a protocol without them.
    pub(super) fn offer_lines(&mut self, lines: &[u8]) {
        if let Some(partner) = self.partner().filter(|partner| self.links.speaks(*partner, LINES_SINCE)) {
            let epoch = self.member.epoch();
            self.links.send(partner, LinkFrame::Replication(Replication::LedgerLines { epoch, lines }));
        }
    }

    /// Connects the replica channel when both candidates know who leads, and whoever is to own this end is there.
    pub(super) fn make_channel(&mut self, now: Instant) {
        let (Channel::None(at), Some(partner)) = (self.channel, self.partner()) else { return };
        let epoch = self.member.epoch();
        let is_known = self.links.has(partner) && self.partner_epoch == Some(epoch);
        if now >= at && is_known && self.may_have_channel(epoch) {
            self.links.dial_channel(now, partner, self.introduction());
        }
    }

    /// Whether the channel of an epoch has an owner here: the shard of who leads in it, or the keeper of who follows.
    fn may_have_channel(&self, epoch: Epoch) -> bool {
        if self.leads == Some(epoch) {
            return self.cloud == Cloud::Leads;
        }
        let is_follower = self.leads.is_none() && epoch == self.member.epoch() && epoch.owner() == self.partner();
        is_follower && self.cloud == Cloud::Follows
    }

    /// An epoch begins: a channel of another one is over, which its owners see, too.
    pub(super) fn end_other_channel(&mut self, epoch: Epoch) {
        let channel = self.channel.of_epoch(epoch);
        if channel != self.channel {
            (self.channel, self.channel_pause) = (channel, ChannelPause::default());
        }
    }

    /// The channel of this number is over; the next one is made behind a pause.
    pub(super) fn channel_ended(&mut self, serial: u64) {
        if matches!(self.channel, Channel::With(with, _) if with == serial) {
            let now = boot_time();
            self.channel = Channel::None(now.plus(self.channel_pause.behind_channel(now)));
        }
    }

    /// Hands a connection that has become the replica channel over to who owns its end.
    pub(super) fn hand_channel_over(&mut self, slot: usize) {
        let Some(link) = self.links.take(slot).map(Box::new) else { return };
        self.channels += 1;
        let (serial, epoch) = (self.channels, self.member.epoch());
        self.channel = Channel::With(serial, epoch);
        self.channel_pause.begun = boot_time();
        if self.leads == Some(epoch) {
            self.tell_shard(News::Channel { link, serial });
        } else {
            self.tell_keeper(KeeperMessage::Follow { link, serial, epoch });
        }
    }

    /// The other candidate says that this connection is the replica channel of an epoch, or agrees to it.
    pub(super) fn take_channel(
        &mut self,
        slot: usize,
        peer: Option<Node>,
        epoch: Epoch,
        greeting: (Peer, u16, u16),
    ) -> Result<Taken, Fault> {
        let is_ours = self.links.dialled(slot) == Some(Purpose::Channel);
        let (greeted, protocol, protocol_min) = greeting;
        if peer.is_some() || Some(greeted.node) != self.partner() {
            return Err("a replica channel was not expected there".into());
        }
        self.links.greet(slot, greeted, protocol, protocol_min)?;
        if self.member.connected(greeted.node) != Some(greeted) {
            tracing::debug!(?greeted, "a replica channel is of a process that does not count as its node");
            self.close(slot);
            return Ok(Taken::Last);
        }
        if epoch != self.member.epoch() || !self.may_have_channel(epoch) {
            tracing::debug!(%epoch, "a replica channel has come too early or too late");
            self.close(slot);
            return Ok(Taken::Last);
        }
        if !is_ours {
            self.links.agree_to_channel(slot, epoch);
        }
        self.is_channel = true;
        Ok(Taken::Last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Once a Backup that had restarted made a second channel when it heard of the leader, and the pair had none for 30 s.
    #[test]
    fn channel_that_is_there_before_its_leader_is_heard_of_stays() {
        let channel = Channel::With(3, Epoch(5));
        assert_eq!(channel.of_epoch(Epoch(5)), channel);
        let none = Channel::None(Instant::default());
        assert_eq!(channel.of_epoch(Epoch(7)), none, "it was another leader's");
        assert_eq!(Channel::None(Instant::from_nanos(9)).of_epoch(Epoch(5)), none, "the next one is made at once");
    }

    #[test]
    fn channels_that_do_not_last_come_at_longer_and_longer_pauses() {
        let (mut pause, mut now) = (ChannelPause::default(), Instant::from_nanos(0).plus(PAUSE_MAX));
        let mut after = |lasted: Duration| {
            pause.begun = now;
            now = now.plus(lasted);
            pause.behind_channel(now).as_millis()
        };
        assert_eq!([1, 1, 4_999].map(|ms| after(Duration::from_millis(ms))), [50, 100, 200]);
        assert_eq!(after(PAUSE_MAX), 50, "it has lasted");
        assert_eq!([0; 9].map(|ms| after(Duration::from_millis(ms))).last(), Some(&5_000));
    }
}
