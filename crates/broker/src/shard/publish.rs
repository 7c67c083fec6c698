//! Taking events of real-time streams: who may, which ones are new, which are too many, and when their work is due.

use super::{Accepted, LeaderPermit, Publication, Refusal, Shard};
use crate::{
    edf::BACKGROUND,
    epoch::Epoch,
    event::Sequence,
    slot::{Message, NONE},
    stream::StreamId,
    streams::NotTaken,
    time::Instant,
};

/// Sequences that an event may be behind the last one of its stream: more is no loss but nonsense.
pub const SEQUENCE_GAP_MAX: u64 = 1 << 32;

impl<R> Shard<R> {
    /// Takes an event of a real-time stream. What the publisher may publish was decided before. The event is dispatched by [`Shard::next`].
    pub fn accept(&mut self, now: Instant, permit: LeaderPermit, stream: StreamId, publication: Publication) -> Result<Accepted, Refusal> {
        self.accept_in_burst(now, permit, stream, publication, 0)
    }

    /// The same of a result that is made of accepted events. Its period is policed over as many results as a stream keeps: the creation
    /// that counts is by this node's clock, and events that have waited for a leader count as created together.
    pub fn accept_result(
        &mut self,
        now: Instant,
        permit: LeaderPermit,
        stream: StreamId,
        publication: Publication,
    ) -> Result<Accepted, Refusal> {
        let topic = self.streams.index(stream).map(|index| self.streams.at(index).identity.topic);
        let burst_ns = topic.map_or(0, |topic| self.topics.at(topic).terms().result_burst_ns());
        self.accept_in_burst(now, permit, stream, publication, burst_ns)
    }

    fn accept_in_burst(
        &mut self,
        now: Instant,
        permit: LeaderPermit,
        stream: StreamId,
        publication: Publication,
        burst_ns: u64,
    ) -> Result<Accepted, Refusal> {
        let index = self.streams.index(stream).ok_or(Refusal::Stream)?;
        let may = self.check_authority(now, permit, publication.epoch);
        if may.is_ok() && !self.streams.at(index).is_resumed {
            // Who keeps what it has sent before says so in front of any event.
            self.resume(now, stream, publication.sequence, publication.sequence);
        }
        let waiting = self.streams.at_mut(index);
        if may.is_ok() && publication.epoch > waiting.refused_in {
            // Another leader may have covered it meanwhile. Who keeps nothing that was sent before does not say so.
            waiting.refused = Sequence(0);
        }
        let taken = may.and_then(|()| self.take(now, index, publication, burst_ns));
        let stream = self.streams.at_mut(index);
        let is_first = stream.awaited().is_none_or(|awaited| publication.sequence <= awaited);
        match taken {
            Ok(_) if publication.sequence == stream.refused => stream.refused = Sequence(0),
            Err(Refusal::NotLeading | Refusal::Epoch { .. } | Refusal::Full { .. }) if is_first => {
                (stream.refused, stream.refused_in) = (publication.sequence, publication.epoch);
            }
            _ => {}
        }
        taken
    }

    fn take(&mut self, now: Instant, index: u32, publication: Publication, burst_ns: u64) -> Result<Accepted, Refusal> {
        let Publication { sequence, created, is_resent, has_wrong_clock, .. } = publication;
        let stream = self.streams.at(index);
        let last = stream.last;
        if sequence.0 == 0 || (last.0 > 0 && sequence.0.saturating_sub(last.0) > SEQUENCE_GAP_MAX) {
            return Err(Refusal::Sequence { found: sequence.0, last: last.0 });
        }
        let terms = self.topics.at(stream.identity.topic).terms();
        let full = |kept, from| Refusal::Full { kept, from, retry_after_ns: terms.retry_after_ns() };
        if let Some(awaited) = stream.awaited().filter(|awaited| sequence > *awaited) {
            return Err(full(stream.length, awaited));
        }
        let policed = terms.policed(now, created);
        let created = if has_wrong_clock { terms.created_at_the_earliest(now) } else { terms.created(now, created, is_resent) };
        let message = Message::new(index, sequence, created, terms.dispatch_by(created));
        // A publisher whose events are all covered resumes only with its next event. By then a promoted node may have dispatched the replicas that it held. Events
        // between two marks have no replica: they count as lost, which the topic tolerates, because dispatching them now would break the order.
        let is_passed = terms.mark_every.get() > 1 && self.streams.is_passed(index, sequence);
        let inserted = if is_passed { Err(NotTaken::Known) } else { self.streams.insert(index, message) };
        let accepted = match inserted {
            Ok(slot) => Accepted::Kept { slot, is_excess: !self.enrol(slot.index, policed, burst_ns) },
            Err(NotTaken::Known) => {
                self.counters.known += 1;
                self.streams.at_mut(index).is_asked = true;
                Accepted::Known
            }
            Err(NotTaken::Full) => return Err(full(self.streams.at(index).length, sequence)),
        };
        self.resent(index, sequence);
        self.schedule(now, index);
        self.touch(index);
        Ok(accepted)
    }

    /// Polices an event that is new, and prepares the work on it; false if it is excess.
    fn enrol(&mut self, slot: u32, policed: Instant, burst_ns: u64) -> bool {
        let index = self.streams.slots.at(slot).stream;
        let stream = self.streams.at_mut(index);
        let topic = self.topics.at_mut(stream.identity.topic);
        let terms = *topic.terms();
        topic.accepted += 1;
        self.counters.accepted += 1;
        self.dispatches_ns += u64::from(terms.dispatch_cost_ns);
        if !stream.bucket.take(policed, &terms, burst_ns) {
            self.counters.excess += 1;
            let message = self.streams.slots.at_mut(slot);
            (message.is_excess, message.dispatch_by) = (true, Instant::NEVER);
            return false;
        }
        stream.rightful += 1;
        let is_mark = stream.count_to_mark(terms.mark_every.get());
        self.streams.slots.at_mut(slot).is_mark = is_mark;
        self.put_in_order(slot);
        if is_mark && self.replication.takes(index) {
            self.postpone_replica(slot, &terms);
        }
        true
    }

    /// Whether this node leads, and in the publisher's epoch.
    fn check_authority(&self, now: Instant, permit: LeaderPermit, found: Epoch) -> Result<(), Refusal> {
        self.check_lease(now, permit).map_err(|_| Refusal::NotLeading)?;
        let epoch = self.authority.epoch;
        if found == Epoch::NONE || found == epoch { Ok(()) } else { Err(Refusal::Epoch { found, epoch }) }
    }

    pub(super) fn leads(&self, now: Instant) -> bool {
        now < self.authority.until
    }

    /// Passes the deadline of an event on to those in front of it in the stream, which have to go first.
    fn put_in_order(&mut self, slot: u32) {
        let &Message { dispatch_by, previous, next, .. } = self.streams.slots.at(slot);
        // Filled in in front of events that are due earlier.
        let mut behind = next;
        while behind != NONE && self.streams.slots.at(behind).is_excess {
            behind = self.streams.slots.at(behind).next;
        }
        let due = if behind == NONE { dispatch_by } else { dispatch_by.min(self.streams.slots.at(behind).dispatch_by) };
        self.streams.slots.at_mut(slot).dispatch_by = due;
        let mut ahead = previous;
        while ahead != NONE {
            let message = self.streams.slots.at_mut(ahead);
            if message.is_dispatched || (!message.is_excess && message.dispatch_by <= due) {
                break;
            }
            if !message.is_excess {
                message.dispatch_by = due;
            }
            ahead = message.previous;
        }
    }

    /// Queues a stream by the deadline of its first event that is not excess, or in the background if there is only excess. The stream has one
    /// place in the queue, so that its events go out in order.
    pub(super) fn schedule(&mut self, now: Instant, index: u32) {
        let stream = self.streams.at(index);
        let is_held = |message: &Message| stream.is_behind || message.sequence >= stream.held_from;
        let mut slot = stream.cursor;
        if slot == NONE || is_held(self.streams.slots.at(slot)) {
            self.dispatches.remove(index);
            return;
        }
        while slot != NONE && stream.rightful > 0 {
            let message = self.streams.slots.at(slot);
            if is_held(message) {
                break;
            }
            if !message.is_excess && !message.is_dispatched {
                let level = self.topics.at(stream.identity.topic).terms().level.get();
                if self.dispatches.place(index) != Some((level, message.dispatch_by)) {
                    self.dispatches.insert(level, index, message.dispatch_by);
                }
                return;
            }
            slot = message.next;
        }
        if self.dispatches.place(index).is_none_or(|(level, _)| level != BACKGROUND) {
            self.dispatches.insert(BACKGROUND, index, now);
        }
    }

    /// Takes what a publisher says that it will send again.
    pub(super) fn resume(&mut self, now: Instant, stream: StreamId, from: Sequence, to: Sequence) {
        let Some(index) = self.streams.index(stream) else { return };
        let stream = self.streams.at_mut(index);
        stream.is_resumed = true;
        if stream.refused < from {
            stream.refused = Sequence(0);
        }
        if stream.held_from < Sequence(u64::MAX) {
            stream.resent_to = to;
            stream.held_from = if from <= to { from.max(Sequence(1)) } else { Sequence(u64::MAX) };
            self.schedule(now, index);
        }
        self.touch(index);
    }

    /// Stops later events from waiting for a refused one.
    pub(super) fn give_up(&mut self, stream: StreamId, sequence: Sequence) {
        let Some(index) = self.streams.index(stream) else { return };
        let stream = self.streams.at_mut(index);
        if stream.refused == sequence {
            stream.refused = Sequence(0);
        }
    }

    /// Notes that an event has come again: behind a promotion, those up to it need not be held any more.
    fn resent(&mut self, index: u32, sequence: Sequence) {
        let stream = self.streams.at_mut(index);
        let is_held = stream.held_from < Sequence(u64::MAX);
        if is_held && stream.is_resumed && sequence >= stream.held_from {
            stream.held_from = if sequence < stream.resent_to { Sequence(sequence.0 + 1) } else { Sequence(u64::MAX) };
        }
    }

    /// Lets everything go that was held for publishers, once they have had the time to come back.
    pub(super) fn stop_holding(&mut self, now: Instant) {
        if self.held.is_empty() || now < self.held_until {
            return;
        }
        for at in 0..self.held.len() {
            if let Some(index) = self.streams.index(self.held[at]) {
                let stream = self.streams.at_mut(index);
                (stream.held_from, stream.is_behind) = (Sequence(u64::MAX), false);
                self.schedule(now, index);
            }
        }
        self.held.clear();
    }
}

impl crate::stream::Stream {
    /// Whether the next event is a mark. Counted from the last mark: counted from the last replica that has arrived, the gap between
    /// two marks would grow by what is under way.
    fn count_to_mark(&mut self, mark_every: u32) -> bool {
        let is_mark = self.since_mark == 0;
        self.since_mark = (self.since_mark + 1) % mark_every;
        is_mark
    }
}
