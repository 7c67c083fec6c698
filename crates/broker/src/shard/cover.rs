//! Cover: which events are safe from the loss of this host, which ones are done with, and who is told.
//!
//! A few watermarks of a stream say it all: what every required subscriber has, what the Backup has, and, where nobody acknowledges,
//! what was dispatched long enough ago, or has left the send queues if that counts. They only grow, so that no order of acknowledgements leaves anything behind.

use super::{Output, Shard};
use crate::{
    event::Sequence,
    replication::{BackupStanding, Replication},
    slot::{Message, NONE},
    stream::{Linked, Received, StreamId, StreamIdentity},
    subscription::SubscriptionKey,
    time::Instant,
    wire::StreamNumber,
};

impl<R> Shard<R> {
    /// Ends a turn: what has changed is told once for each stream, unless this node does not lead at present. `outputs` is appended to.
    pub fn end_turn(&mut self, now: Instant, outputs: &mut Vec<Output>) {
        if !self.leads(now) {
            return;
        }
        let mut touched = std::mem::take(&mut self.touched);
        for id in touched.drain(..) {
            let Some(index) = self.streams.index(id) else { continue };
            self.streams.at_mut(index).is_touched = false;
            self.tell_covered(index, outputs);
            self.discard(index, outputs);
            self.close_if_over(index, outputs);
        }
        self.touched = touched;
    }

    /// Notes that something may have to be told of a stream.
    pub(super) fn touch(&mut self, index: u32) {
        let id = self.streams.id(index);
        let stream = self.streams.at_mut(index);
        if !std::mem::replace(&mut stream.is_touched, true) {
            self.touched.push(id);
        }
    }

    fn tell_covered(&mut self, index: u32, outputs: &mut Vec<Output>) {
        let through = self.covered(index);
        let id = self.streams.id(index);
        let stream = self.streams.at_mut(index);
        // A promoted node does not know what its publisher has and it has not.
        let is_asked = std::mem::take(&mut stream.is_asked);
        if stream.is_resumed && (through > stream.covered || is_asked) {
            stream.covered = through;
            outputs.push(Output::Covered { stream: id, through });
        }
    }

    /// Every event up to here is covered, or needs no cover: it is excess or shed, which was told, or lies in front of a mark that is covered.
    fn covered(&self, index: u32) -> Sequence {
        let stream = self.streams.at(index);
        let is_tolerant = self.topics.at(stream.identity.topic).terms().replicate_within_ns.is_none();
        let is_out = self.replication.standing.is_out();
        let known = stream.covered.max(stream.released).max(stream.emptied()).max(self.replicated(index));
        match self.received(index) {
            _ if is_tolerant => stream.last,
            None if is_out => stream.last,
            Some(Received { since, through }) if is_out || since <= known => known.max(through),
            // What lies in front of the first required event has to be replicated before a watermark can pass it.
            Some(_) | None => known,
        }
    }

    /// What every required subscriber of a stream has.
    pub(super) fn received(&self, index: u32) -> Option<Received> {
        let stream = self.streams.at(index);
        stream.received(self.topics.at(stream.identity.topic).subscriptions.len() > stream.readers.len())
    }

    /// The Backup, which may lead, has every mark up to here.
    fn replicated(&self, index: u32) -> Sequence {
        let linked = self.streams.at(index).linked;
        let counts = self.replication.standing == BackupStanding::InSync && linked.session == self.replication.session;
        if counts { linked.replicated } else { Sequence(0) }
    }

    /// Lets go what is done with from the front of a stream on, and cancels the replication of what is covered.
    pub(super) fn release(&mut self, index: u32, outputs: &mut Vec<Output>) {
        let stream = self.streams.at(index);
        let (received, kept_behind) = (self.received(index), stream.kept_behind());
        let (settled, emptied) = (stream.settled, stream.emptied());
        let is_tolerant = self.topics.at(stream.identity.topic).terms().replicate_within_ns.is_none();
        let needs_no_backup = is_tolerant || self.replication.standing.is_out();
        let replicated = self.replicated(index);
        let before = stream.released;
        while let Some(&Message { sequence, is_mark, is_dispatched, is_shed, .. }) = self.streams.head(index) {
            let is_done = match received {
                _ if is_shed || sequence <= emptied => true,
                _ if sequence > kept_behind => false,
                Some(received) if sequence > received.since => sequence <= received.through,
                _ => sequence <= settled && (!is_mark || needs_no_backup || sequence <= replicated),
            };
            if !(is_dispatched && is_done) {
                break;
            }
            let slot = self.streams.release_head(index);
            self.counters.cancelled += u64::from(self.replication.pending.remove(slot.index));
            outputs.push(Output::Freed { slot });
        }
        self.cancel_replicas(index, received.unwrap_or(Received { since: Sequence(0), through: emptied }));
        if self.streams.at(index).released > before {
            self.touch(index);
        }
    }

    /// What every required subscriber has, or all subscribers' hosts, need not be replicated, although it may still be to be dispatched to others.
    fn cancel_replicas(&mut self, index: u32, received: Received) {
        let mut slot = self.streams.at(index).head;
        while slot != NONE {
            let &Message { sequence, next, .. } = self.streams.slots.at(slot);
            if sequence > received.through {
                break;
            }
            if sequence > received.since {
                self.counters.cancelled += u64::from(self.replication.pending.remove(slot));
            }
            slot = next;
        }
    }

    /// A required subscription has everything of a stream up to here.
    pub(super) fn delivered(&mut self, now: Instant, key: SubscriptionKey, stream: StreamId, through: Sequence, outputs: &mut Vec<Output>) {
        let Some(required) = self.subscriptions.get_mut(key).and_then(|subscription| subscription.required.as_mut()) else { return };
        let Some(index) = self.streams.index(stream) else { return };
        let stream = self.streams.at_mut(index);
        // One subscription hears one topic; what it says of another's stream means nothing.
        let Some(reader) = stream.readers.iter_mut().find(|reader| reader.subscription == key) else { return };
        required.heard_at = now;
        reader.acknowledge(through);
        self.touch(index);
        self.release(index, outputs);
    }

    /// What was dispatched up to here has left the send queues to all subscribers of the topic.
    pub(super) fn emptied(&mut self, stream: StreamId, through: Sequence, outputs: &mut Vec<Output>) {
        let Some(index) = self.streams.index(stream) else { return };
        let stream = self.streams.at(index);
        if !self.topics.at(stream.identity.topic).terms().emptied_covers {
            return;
        }
        let dispatched = if stream.cursor == NONE { stream.last } else { Sequence(self.streams.slots.at(stream.cursor).sequence.0 - 1) };
        let stream = self.streams.at_mut(index);
        stream.emptied = stream.emptied.max(through.min(dispatched));
        self.touch(index);
        self.release(index, outputs);
    }

    /// Takes what was dispatched to nobody who acknowledges as received, once that has had the time to happen.
    pub(super) fn settle(&mut self, now: Instant, outputs: &mut Vec<Output>) {
        while let Some((_, at, index)) = self.settling.first()
            && at <= now
        {
            self.settling.remove(index);
            let stream = self.streams.at_mut(index);
            stream.settled = stream.settled.max(stream.settling);
            self.await_settling(now, index);
            self.release(index, outputs);
        }
    }

    /// What is dispatched and nobody acknowledges counts as received in a while: one timer a stream, which begins again for what was dispatched
    /// meanwhile.
    pub(super) fn await_settling(&mut self, now: Instant, index: u32) {
        if self.settling.place(index).is_some() {
            return;
        }
        let stream = self.streams.at(index);
        let last = if stream.cursor == NONE { stream.tail } else { self.streams.slots.at(stream.cursor).previous };
        if last == NONE {
            return;
        }
        let acknowledged_from = self.received(index).map_or(Sequence(u64::MAX), |received| received.since);
        let through = self.streams.slots.at(last).sequence.min(acknowledged_from);
        if through > stream.settled {
            let wait_ns = self.topics.at(stream.identity.topic).terms().broker_subscriber_max_ns;
            self.streams.at_mut(index).settling = through;
            self.settling.insert(0, index, now.plus_nanos(wait_ns));
        }
    }

    /// Tells the Backup what it need not keep, once for what has come together.
    pub(super) fn discard(&mut self, index: u32, outputs: &mut Vec<Output>) {
        let Replication { standing, session, policy, .. } = self.replication;
        let stream = self.streams.at(index);
        let through = match policy.backup_keeps {
            0 => stream.released,
            keeps => stream.released.min(self.kept_by_backup(index, keeps)),
        };
        let linked = &mut self.streams.at_mut(index).linked;
        if standing.has_link() && linked.session == session && linked.sent > linked.discarded && through > linked.discarded {
            linked.discarded = through;
            outputs.push(Output::Discard { number: StreamNumber(linked.number), through });
        }
    }

    /// Up to here a Backup may forget that keeps some of what is covered. That moves on by as many events at a time as it keeps, and leaves room for one more.
    fn kept_by_backup(&self, index: u32, keeps: u32) -> Sequence {
        let stream = self.streams.at(index);
        let room = self.topics.at(stream.identity.topic).terms().backlog_max.get();
        let keeps = u64::from(keeps.min(room / 2).max(1));
        let Linked { sent, discarded, .. } = stream.linked;
        if sent.0.saturating_sub(discarded.0) < 2 * keeps { discarded } else { Sequence(sent.0 - keeps) }
    }

    fn close_if_over(&mut self, index: u32, outputs: &mut Vec<Output>) {
        let stream = self.streams.at(index);
        if !stream.is_ending || stream.length > 0 {
            return;
        }
        let (StreamIdentity { topic, publisher, incarnation }, last) = (stream.identity, stream.last);
        if incarnation == self.incarnation {
            self.topics.at_mut(topic).ended.insert(publisher, last);
        }
        let Replication { standing, session, .. } = self.replication;
        let has_number = standing.has_link() && stream.linked.session == session;
        let number = has_number.then_some(StreamNumber(stream.linked.number));
        self.dispatches.remove(index);
        self.settling.remove(index);
        if self.silences.remove(index) {
            self.tell_last(index, outputs);
        }
        self.catch_up_later_runs(index);
        let stream = self.streams.close(index);
        outputs.push(Output::Closed { stream, number });
    }
}
