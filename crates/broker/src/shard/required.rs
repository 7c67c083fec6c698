//! Required subscriptions: events are kept for them and count as covered when they have them, as long as they are not away for too long.

use std::time::Duration;

use super::{Authority, Output, Shard};
use crate::{
    epoch::Epoch,
    event::{PublisherId, Sequence, TopicId},
    slot::NONE,
    stream::{Reader, StreamIdentity},
    subscription::{Required, SubscriptionKey},
    time::Instant,
    wire::Watermark,
};

/// Timers of required subscriptions that are looked at in front of one piece of work: behind a promotion thousands of them may ring too early at once, and are set anew.
const WAITS_PER_STEP: usize = 16;

/// How a required subscription begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// New and there: it hears what is published from now on.
    New,
    /// Known from another node, and not there yet: what is kept is for it, unless it says otherwise when it comes.
    Awaited,
}

impl<R> Shard<R> {
    /// Makes a subscription of a real-time topic a required one, which is waited for so long when it is away or silent. Its session acknowledges
    /// ([`Input::Delivered`](super::Input::Delivered)); where the topic counts an emptied send queue as cover, the host does so in its place.
    pub fn require(&mut self, now: Instant, key: SubscriptionKey, wait: Duration, attachment: Attachment) {
        self.require_or_keep(now, key, wait, attachment, false);
    }

    /// The same of a subscription for which events are kept until it acknowledges them, and whose word alone covers none that others hear: a graph, which goes on from its checkpoint, is no reason to let them miss one.
    pub fn keep_for(&mut self, now: Instant, key: SubscriptionKey, wait: Duration, attachment: Attachment) {
        self.require_or_keep(now, key, wait, attachment, true);
    }

    fn require_or_keep(&mut self, now: Instant, key: SubscriptionKey, wait: Duration, attachment: Attachment, only_keeps: bool) {
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        let is_there = attachment == Attachment::New;
        let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        if subscription.required.replace(Required { wait_ns, heard_at: now, is_there, is_full: false, only_keeps }).is_some() {
            return;
        }
        let topic = subscription.topic;
        for at in 0..self.streams.of(topic).len() {
            let index = self.streams.of(topic)[at];
            let from = if is_there { self.streams.dispatched(index) } else { self.streams.at(index).released };
            self.streams.at_mut(index).readers.push(Reader { is_behind: !is_there, only_keeps, ..Reader::new(key, from) });
        }
        self.waits.reserve(self.subscriptions.indexes());
        if !is_there {
            self.waits.insert(0, key.index, now.plus(wait));
        }
    }

    /// A new stream of a topic is read by all that are required of it.
    pub(super) fn read_by_required(&mut self, index: u32) {
        let stream = self.streams.at_mut(index);
        let subscriptions = self.topics.at(stream.identity.topic).subscriptions.iter().copied();
        let required = subscriptions.filter_map(|key| Some((key, self.subscriptions.get(key)?.required?)));
        required
            .for_each(|(key, Required { only_keeps, .. })| stream.readers.push(Reader { only_keeps, ..Reader::new(key, stream.released) }));
        for at in 0..self.streams.at(index).readers.len() {
            let is_behind = self.misses_earlier_run(index, self.streams.at(index).readers[at].subscription);
            self.streams.at_mut(index).readers[at].is_behind = is_behind;
        }
    }

    /// A required subscription has a session, and says what it has, if it does; what it has not is brought to it. The queue of a session that goes on is what it
    /// was; of one that has ended the host says so before ([`Input::Detached`](super::Input::Detached)).
    pub fn attach(
        &mut self,
        now: Instant,
        key: SubscriptionKey,
        receiver: R,
        watermarks: impl IntoIterator<Item = Watermark>,
        outputs: &mut Vec<Output>,
    ) {
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        subscription.receiver = receiver;
        let topic = subscription.topic;
        if subscription.required.is_none() {
            return;
        }
        for Watermark { publisher, incarnation, through } in watermarks {
            let Some(stream) = self.streams.find(&StreamIdentity { topic, publisher, incarnation }) else { continue };
            let reader = self.streams.at_mut(stream.index).reader(key);
            *reader = reader.resumed(through);
        }
        self.begin_session(now, key);
        for at in 0..self.streams.of(topic).len() {
            let index = self.streams.of(topic)[at];
            self.tell_last_to(index, key, outputs);
            self.touch(index);
            self.release(index, outputs);
        }
        self.catch_up(key);
    }

    /// Returns the required subscription that a publisher's full stream waits for: the one that has acknowledged least of those that
    /// lack the stream's first event. `None` if the stream has capacity, or waits for something else.
    pub fn awaited_by(&self, topic: TopicId, publisher: PublisherId) -> Option<SubscriptionKey> {
        let streams = self.streams.of(topic);
        let first = streams.partition_point(|index| self.streams.at(*index).identity.publisher < publisher);
        let of_publisher = streams[first..].iter().map(|index| self.streams.at(*index));
        let full =
            of_publisher.take_while(|stream| stream.identity.publisher == publisher).filter(|stream| stream.length >= stream.capacity);
        let lacking = full.filter_map(|stream| {
            let head = self.streams.slots.at(stream.head);
            let lacks = |reader: &&Reader| head.is_dispatched && reader.acked < head.sequence;
            stream.readers.iter().filter(lacks).min_by_key(|reader| reader.acked)
        });
        lacking.map(|reader| reader.subscription).next()
    }

    /// Changes how long a required subscription is waited for, from when its session was last there or acknowledged.
    pub fn change_wait(&mut self, now: Instant, key: SubscriptionKey, wait: Duration) {
        let Some(required) = self.subscriptions.get_mut(key).and_then(|subscription| subscription.required.as_mut()) else { return };
        required.wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        // A timer that fires before the wait is over is set again.
        if self.waits.place(key.index).is_some_and(|(_, at)| at > now.plus(wait)) {
            self.waits.insert(0, key.index, now.plus(wait));
        }
    }

    /// Whether a required subscription of a topic has not acknowledged all that was published there for it.
    pub fn is_owed(&self, topic: TopicId) -> bool {
        let owed = |index: &u32| {
            let stream = self.streams.at(*index);
            stream.readers.iter().any(|reader| reader.acked < stream.last)
        };
        self.streams.of(topic).iter().any(owed)
    }

    /// Events of a topic that are kept for a required subscription, and that it has not acknowledged.
    fn owed_to(&self, topic: TopicId, key: SubscriptionKey) -> u64 {
        let of_stream = |index: &u32| {
            let stream = self.streams.at(*index);
            let acked = stream.readers.iter().find(|reader| reader.subscription == key).map(|reader| reader.acked);
            let there = |slot: u32| (slot != NONE).then_some(slot);
            let kept = std::iter::successors(there(stream.head), |slot| there(self.streams.slots.at(*slot).next));
            kept.map(|slot| self.streams.slots.at(slot))
                .filter(|message| !message.is_shed && acked.is_some_and(|acked| message.sequence > acked))
                .count() as u64
        };
        self.streams.of(topic).iter().map(of_stream).sum()
    }

    /// What was handed to a required subscription and not acknowledged may have gone with its last session, or with the epoch: it is brought again. What is
    /// still to be dispatched comes by its deadline.
    fn begin_session(&mut self, now: Instant, key: SubscriptionKey) {
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        let topic = subscription.topic;
        let Some(required) = &mut subscription.required else { return };
        (required.is_there, required.is_full, required.heard_at) = (true, false, now);
        for at in 0..self.streams.of(topic).len() {
            let index = self.streams.of(topic)[at];
            let reader = self.streams.at_mut(index).reader(key);
            *reader = reader.resumed(Sequence(0));
            let passed = reader.passed;
            self.streams.at_mut(index).reader(key).is_behind = self.first_missed(index, passed) != NONE;
        }
    }

    /// A required subscription's session is gone.
    pub(super) fn detach(&mut self, now: Instant, key: SubscriptionKey) {
        if self.await_session(now, key)
            && let Some(subscription) = self.subscriptions.get_mut(key)
        {
            subscription.forget_queue();
        }
    }

    /// The right to lead goes on, or is one in another epoch. Another node may have led in between: who has heard of its epoch has not believed what was still
    /// under way from here, and may have got the same and more from there. So everybody who is required is brought again what it has not acknowledged, behind the
    /// word about the epoch that its session is told.
    pub(super) fn take_authority(&mut self, now: Instant, authority: Authority) {
        let before = std::mem::replace(&mut self.authority, authority);
        if authority.epoch == before.epoch {
            return;
        }
        self.led_since = now;
        if authority.epoch != Epoch::NONE {
            self.number_in(authority.epoch);
        }
        // A node that leads for the first time has handed nobody anything, so that nothing is to be brought again: it need not go through them all.
        if self.counters.dispatched == 0 {
            return;
        }
        // What the leader of the epoch between has dropped is not known here.
        for index in self.streams.open_streams().collect::<Vec<_>>() {
            self.streams.at_mut(index).shed_from = None;
            // Who had heard of that leader did not believe what was said from here.
            self.renew_silence(now, index);
        }
        for index in 0..self.subscriptions.indexes() as u32 {
            let key = self.subscriptions.key(index);
            let required = self.subscriptions.get(key).and_then(|subscription| subscription.required);
            if required.is_some_and(|required| required.is_there) {
                self.begin_session(now, key);
                self.catch_up(key);
            }
        }
    }

    /// Offers a subscription nothing until it attaches, for as long as it is waited for; false if it is not a required one.
    fn await_session(&mut self, now: Instant, key: SubscriptionKey) -> bool {
        let required = self.subscriptions.get_mut(key).and_then(|subscription| subscription.required.as_mut());
        let Some(required) = required else { return false };
        (required.is_there, required.is_full, required.heard_at) = (false, false, now);
        let until = now.plus_nanos(required.wait_ns);
        // A timer that rings too early is set anew when it does: a promotion has thousands of them.
        if self.waits.place(key.index).is_none_or(|(_, at)| at > until) {
            self.waits.insert(0, key.index, until);
        }
        true
    }

    /// Queues the streams of which a subscription misses something.
    pub(super) fn catch_up(&mut self, key: SubscriptionKey) {
        let Some(topic) = self.subscriptions.get(key).map(|subscription| subscription.topic) else { return };
        for at in 0..self.streams.of(topic).len() {
            self.catch_up_stream(self.streams.of(topic)[at]);
        }
    }

    /// Queues a stream if one of its readers is behind; whether it can take anything is looked at when it is its turn.
    pub(super) fn catch_up_stream(&mut self, index: u32) {
        let id = self.streams.id(index);
        let stream = self.streams.at_mut(index);
        if !stream.is_catching_up && stream.readers.iter().any(|reader| reader.is_behind) {
            stream.is_catching_up = true;
            self.catching_up.push_back(id);
        }
    }

    /// Looks after those who have been away or silent for as long as they are waited for, some of them at a time.
    pub(super) fn stop_waiting(&mut self, now: Instant, outputs: &mut Vec<Output>) {
        for _ in 0..WAITS_PER_STEP {
            let Some((_, _, index)) = self.waits.first().filter(|(_, at, _)| *at <= now) else { break };
            self.waits.remove(index);
            let key = self.subscriptions.key(index);
            let Some(subscription) = self.subscriptions.get(key) else { continue };
            let Some(required) = subscription.required else { continue };
            let owes = |stream: &u32| self.streams.at(*stream).readers.iter().any(|reader| reader.subscription == key && reader.owes());
            let owes = self.streams.of(subscription.topic).iter().any(owes);
            if required.is_there && !owes {
                continue;
            }
            let patience_ends = required.heard_at.max(self.led_since).plus_nanos(required.wait_ns);
            if patience_ends > now {
                self.waits.insert(0, index, patience_ends);
                continue;
            }
            self.counters.not_required += 1;
            let owed = self.owed_to(subscription.topic, key);
            self.require_no_more(now, key, outputs);
            outputs.push(Output::NotRequired { subscription: key, owed });
            if !required.is_there {
                self.unsubscribe(now, key, outputs);
            }
        }
    }

    /// Events wait for a subscription no more.
    pub(super) fn require_no_more(&mut self, now: Instant, key: SubscriptionKey, outputs: &mut Vec<Output>) {
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        if subscription.required.take().is_none() {
            return;
        }
        self.waits.remove(key.index);
        let topic = subscription.topic;
        for at in 0..self.streams.of(topic).len() {
            let index = self.streams.of(topic)[at];
            let stream = self.streams.at_mut(index);
            stream.readers.retain(|reader| reader.subscription != key);
            // What nobody acknowledges any more counts as received when it has had the time.
            self.await_settling(now, index);
            self.touch(index);
            self.release(index, outputs);
        }
    }
}
