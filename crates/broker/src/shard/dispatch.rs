//! Work: the next job of the highest level, and the timers.

use super::{Offer, OfferedEvent, Output, Shard, ShedReason, Work, output_of};
use crate::{
    edf::{BACKGROUND, LEVELS, Queue},
    event::Sequence,
    slot::{Message, NONE, SlotId},
    stream::Reader,
    subscription::{Offered, Required, SubscriptionKey},
    time::Instant,
};

/// Begins to wait for a required subscription that has been handed something, if it owed nothing before.
fn wait_for(waits: &mut Queue, now: Instant, key: SubscriptionKey, required: Required) -> Required {
    if waits.place(key.index).is_some() {
        return required;
    }
    waits.insert(0, key.index, now.plus_nanos(required.wait_ns));
    Required { heard_at: now, ..required }
}

impl<R> Shard<R> {
    /// The next piece of work, with what belongs to it in `outputs`: the job with the earliest deadline of the highest level that has one, then
    /// what is done in the background. `None`: there is none until [`Self::next_timer`], or this node does not lead.
    pub fn next(&mut self, now: Instant, offer: &mut Offer<'_, R>, outputs: &mut Vec<Output>) -> Option<Work> {
        if !self.leads(now) {
            return None;
        }
        // The bytes of the last work were needed until now.
        if let Some(index) = self.worked_on.take().and_then(|stream| self.streams.index(stream)) {
            self.release(index, outputs);
        }
        self.stop_holding(now);
        self.settle(now, outputs);
        self.stop_waiting(now, outputs);
        self.end_silences(now, outputs);
        (0..LEVELS as u8)
            .find_map(|level| self.next_of(now, level, offer, outputs))
            .or_else(|| self.next_behind(now, offer, outputs))
            .or_else(|| self.next_given(now, outputs))
    }

    /// When [`Self::next`] has to be asked again although nothing has happened; the past: at once.
    pub fn next_timer(&self) -> Option<Instant> {
        let held = (!self.held.is_empty()).then_some(self.held_until);
        let settling = self.settling.first().map(|(_, at, _)| at);
        let silences = self.silences.first().map(|(_, at, _)| at);
        let waits = self.waits.first().map(|(_, at, _)| at);
        let has_work = !self.dispatches.is_empty() || !self.catching_up.is_empty() || self.is_giving();
        let work = has_work.then(Instant::default);
        [held, settling, silences, waits, work, self.replication.next_start(self.dispatches_ns)].into_iter().flatten().min()
    }

    fn next_of(&mut self, now: Instant, level: u8, offer: &mut Offer<'_, R>, outputs: &mut Vec<Output>) -> Option<Work> {
        loop {
            let dispatch = self.dispatches.first().filter(|(of, ..)| *of <= level).map(|(_, by, stream)| (by, stream));
            let replica = self.replication.due(now, level, self.dispatches_ns);
            match (dispatch, replica) {
                (None, None) => return None,
                (dispatch, Some((by, slot))) if dispatch.is_none_or(|(dispatch_by, _)| by <= dispatch_by) => {
                    return Some(self.replicate(now, by, slot, outputs));
                }
                (Some((_, stream)), _) => {
                    if let Some(work) = self.dispatch(now, stream, offer, outputs) {
                        return Some(work);
                    }
                }
                (None, Some(_)) => unreachable!("a replica without a rival goes out"),
            }
        }
    }

    /// Dispatches the first event of a stream; `None` if it is dropped instead.
    fn dispatch(&mut self, now: Instant, index: u32, offer: &mut Offer<'_, R>, outputs: &mut Vec<Output>) -> Option<Work> {
        let (level, _) = self.dispatches.place(index).expect("the stream is queued");
        let stream = self.streams.at(index);
        let terms = self.topics.at(stream.identity.topic).terms();
        let slot = self.streams.slots.id(stream.cursor);
        let &Message { sequence, created, dispatch_by, is_excess, .. } = self.streams.slots.at(slot.index);
        let is_late = now > dispatch_by;
        let missing = stream.shed_from.map(|from| sequence.0.saturating_sub(from.0));
        let may_shed = terms.shed_max.zip(missing).is_some_and(|(shed_max, missing)| missing <= u64::from(shed_max));
        // The cost may have been declared anew since it was added.
        self.dispatches_ns = self.dispatches_ns.saturating_sub(terms.dispatch_cost_ns.into());
        self.streams.advance_cursor(index);
        self.streams.at_mut(index).rightful -= u32::from(!is_excess);
        if is_excess && level != BACKGROUND {
            // What it is dropped for is what the stream is queued by.
            self.shed(now, slot.index, ShedReason::Excess, outputs);
            return None;
        }
        self.await_settling(now, index);
        self.schedule(now, index);
        if is_late && may_shed {
            self.shed(now, slot.index, ShedReason::Late, outputs);
            return None;
        }
        self.counters.dispatched += 1;
        self.counters.late += u64::from(is_late);
        self.streams.at_mut(index).shed_from = Some(sequence);
        self.seen(index, sequence);
        self.hand_to_all(now, slot, offer, outputs);
        let stream = self.streams.id(index);
        self.worked_on = Some(stream);
        Some(Work::Dispatch { slot, stream, event: self.streams.at(index).event(sequence), created, is_late })
    }

    /// Drops an event in front of its dispatch: it is no one's any more.
    fn shed(&mut self, now: Instant, slot: u32, reason: ShedReason, outputs: &mut Vec<Output>) {
        let message = self.streams.slots.at_mut(slot);
        message.is_shed = true;
        let (index, sequence) = (message.stream, message.sequence);
        self.counters.shed += 1;
        outputs.push(Output::Shed { stream: self.streams.id(index), sequence, slot: self.streams.slots.id(slot), reason });
        let stream = self.streams.at_mut(index);
        stream.readers.iter_mut().filter(|reader| !reader.is_behind).for_each(|reader| reader.pass(sequence));
        self.begin_silence(now, index, sequence);
        self.release(index, outputs);
    }

    /// Offers an event to every subscription of its topic that is not behind.
    fn hand_to_all(&mut self, now: Instant, slot: SlotId, offer: &mut Offer<'_, R>, outputs: &mut Vec<Output>) {
        let &Message { stream: index, sequence, .. } = self.streams.slots.at(slot.index);
        let stream = self.streams.at_mut(index);
        let event = stream.event(sequence);
        let offered_event = OfferedEvent { id: event, slot: Some(slot) };
        for &key in self.topics.at(event.topic).subscriptions.iter() {
            let subscription = self.subscriptions.heard(key);
            if subscription.required.is_none() {
                let offered = subscription.offer(now, offered_event, offer);
                self.lost_events += u64::from(offered == Offered::Lost);
                outputs.extend(output_of(key, event, offered));
            }
        }
        for reader in stream.readers.iter_mut().filter(|reader| !reader.is_behind && reader.acked < sequence) {
            let key = reader.subscription;
            let subscription = self.subscriptions.heard(key);
            let required = subscription.required.expect("a reader is required");
            let offered =
                if required.is_there && !required.is_full { subscription.offer_kept(offered_event, offer) } else { Offered::FellBehind };
            match offered {
                Offered::Queued => {
                    reader.hand(sequence);
                    outputs.push(Output::Deliver { subscription: key, event });
                    subscription.required = Some(wait_for(&mut self.waits, now, key, required));
                }
                Offered::NotForIt => reader.pass(sequence),
                Offered::FellBehind | Offered::Lost => {
                    reader.is_behind = true;
                    subscription.required = Some(Required { is_full: required.is_there, ..required });
                }
            }
        }
    }

    /// Brings a reader that is behind the next event that it misses.
    fn next_behind(&mut self, now: Instant, offer: &mut Offer<'_, R>, outputs: &mut Vec<Output>) -> Option<Work> {
        while let Some(id) = self.catching_up.pop_front() {
            let Some(index) = self.streams.index(id) else { continue };
            self.streams.at_mut(index).is_catching_up = false;
            if let Some(work) = self.bring(now, index, offer, outputs) {
                self.catch_up_stream(index);
                self.worked_on = Some(id);
                return Some(work);
            }
            self.release(index, outputs);
        }
        None
    }

    /// Goes on with the first reader of a stream that is behind, there, and not full; `None` where there is none.
    fn bring(&mut self, now: Instant, index: u32, offer: &mut Offer<'_, R>, outputs: &mut Vec<Output>) -> Option<Work> {
        for at in 0..self.streams.at(index).readers.len() {
            let Reader { subscription: key, is_behind, .. } = self.streams.at(index).readers[at];
            if !is_behind || self.misses_earlier_run(index, key) {
                continue;
            }
            while self.can_take(key) {
                let slot = self.first_missed(index, self.streams.at(index).readers[at].passed);
                if slot == NONE {
                    self.streams.at_mut(index).readers[at].is_behind = false;
                    self.tell_last_to(index, key, outputs);
                    self.catch_up_later_runs(index);
                    break;
                }
                let slot = self.streams.slots.id(slot);
                let &Message { sequence, created, dispatch_by, is_shed, .. } = self.streams.slots.at(slot.index);
                let stream = self.streams.at_mut(index);
                let event = stream.event(sequence);
                let reader = &mut stream.readers[at];
                let subscription = self.subscriptions.heard(key);
                let offered =
                    if is_shed { Offered::NotForIt } else { subscription.offer_kept(OfferedEvent { id: event, slot: Some(slot) }, offer) };
                match offered {
                    Offered::Queued => {
                        reader.hand(sequence);
                        outputs.push(Output::Deliver { subscription: key, event });
                        let required = subscription.required.expect("a reader is required");
                        subscription.required = Some(wait_for(&mut self.waits, now, key, required));
                        let is_late = now > dispatch_by;
                        return Some(Work::Dispatch { slot, stream: self.streams.id(index), event, created, is_late });
                    }
                    Offered::NotForIt => reader.pass(sequence),
                    Offered::FellBehind | Offered::Lost => {
                        subscription.required.as_mut().expect("a reader is required").is_full = true;
                    }
                }
            }
        }
        None
    }

    /// Returns true if a reader misses events of an earlier run of the publisher. Those go first: a subscriber remembers two runs of a publisher, and
    /// ignores events of a run before them.
    pub(super) fn misses_earlier_run(&self, index: u32, key: SubscriptionKey) -> bool {
        if self.streams.of(self.streams.at(index).identity.topic).len() == 1 {
            return false;
        }
        let (earlier, _) = self.streams.other_runs(index);
        let misses = |reader: &Reader| reader.subscription == key && reader.is_behind;
        earlier.iter().any(|run| self.streams.at(*run).readers.iter().any(misses))
    }

    /// Queues the publisher's later runs, whose events waited for this run's.
    pub(super) fn catch_up_later_runs(&mut self, index: u32) {
        for at in 0..self.streams.other_runs(index).1.len() {
            self.catch_up_stream(self.streams.other_runs(index).1[at]);
        }
    }

    fn can_take(&self, key: SubscriptionKey) -> bool {
        let required = self.subscriptions.get(key).and_then(|subscription| subscription.required);
        required.is_some_and(|required| required.is_there && !required.is_full)
    }

    /// The first kept event behind what a reader has passed, unless it is still to be dispatched.
    pub(super) fn first_missed(&self, index: u32, passed: Sequence) -> u32 {
        let mut slot = self.streams.at(index).head;
        while slot != NONE {
            let message = self.streams.slots.at(slot);
            if message.sequence > passed {
                return if message.is_dispatched { slot } else { NONE };
            }
            slot = message.next;
        }
        NONE
    }
}
