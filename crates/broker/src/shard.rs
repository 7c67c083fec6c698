//! One shard: the topics one thread owns, with their subscriptions and streams.
//!
//! A topic is best effort, and its events go out as they come ([`Shard::publish`]), or it has [`Terms`], which make it a real-time topic: its events
//! are kept, dispatched by deadline, replicated and covered. In a turn the host tells what has happened ([`Shard::step`], [`Shard::accept`]),
//! takes work until there is none ([`Shard::next`]), and ends the turn ([`Shard::end_turn`]).

mod cover;
mod dispatch;
mod last;
mod link;
mod permit;
mod publish;
mod required;
#[cfg(test)]
mod tests;
mod unnumbered;
mod view;
mod words;

use std::{collections::VecDeque, time::Duration};

pub use self::{
    last::{LAST_AFTER_MAX, LAST_AFTER_MIN},
    permit::LeaderPermit,
    publish::SEQUENCE_GAP_MAX,
    required::Attachment,
    unnumbered::NextRefusal,
    view::{Counters, TopicView},
    words::{Accepted, Authority, Input, Output, Publication, Refusal, ShardError, ShedReason, Work},
};
pub use crate::subscription::{Offer, OfferedEvent};
use crate::{
    backup::Promotion,
    edf::Queue,
    epoch::Epoch,
    event::{EventId, Incarnation, PublisherId, Sequence, TopicId},
    replication::{BackupStanding, Replication, ReplicationPolicy},
    stream::{StreamId, StreamIdentity},
    streams::Streams,
    subscription::{Offered, Overflow, Subscription, SubscriptionKey, Subscriptions},
    terms::Terms,
    time::Instant,
    topics::Topics,
};

/// How much a shard takes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShardLimits {
    /// Subscriptions; one more is refused.
    pub subscriptions_max: usize,
    /// Topics, and streams (a publisher on a topic) per topic on average; one more is refused. A topic lasts as long as the
    /// shard, for its events are numbered whether anybody listens or not: who comes back asks for what it has missed.
    pub topics_max: usize,
    /// Bytes a subscription may have queued; events beyond are lost, counted and told.
    pub queue_bytes_max: u64,
}

/// The number of no topic.
const NOT_KNOWN: TopicId = TopicId(u64::MAX);

/// Streams that one publisher's runs on a topic may have: the newest one, and earlier ones whose events are not delivered yet.
const RUNS_PER_PUBLISHER_MAX: usize = 8;

/// Whether a shard may accept events at all. The lease limits for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    /// Another node of the pair may lead, or this node's takeover is not complete.
    Follower,
    /// The takeover is complete, or the node has no pair.
    Leader,
}

/// Streams for each topic that [`ShardLimits::topics_max`] allows.
const STREAMS_PER_TOPIC: usize = 16;

/// The machine. `R` is whatever the host needs to reach a receiver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shard<R> {
    role: Role,
    /// Of the events that this node numbers.
    incarnation: Incarnation,
    limits: ShardLimits,
    topics: Topics,
    subscriptions: Subscriptions<R>,
    lost_events: u64,
    authority: Authority,
    /// Since when it leads in its epoch: nobody who is required was silent before.
    led_since: Instant,
    streams: Streams,
    /// While this node follows: the numbers here of the topics that its Backup numbers from 0.
    known_as: Vec<TopicId>,
    /// Streams with something to dispatch, by the deadline of the first.
    dispatches: Queue,
    /// Processor time of all that is to be dispatched.
    dispatches_ns: u64,
    /// Streams without required subscriptions, by when their dispatched events count as received.
    settling: Queue,
    /// Streams whose last event was dropped, by when their subscribers are told so.
    silences: Queue,
    /// Required subscriptions that owe something, by when they are not required any more.
    waits: Queue,
    /// Streams with readers that are behind and can be brought something.
    catching_up: VecDeque<StreamId>,
    /// Streams that wait for their publishers behind a promotion, and until when.
    held: Vec<StreamId>,
    held_until: Instant,
    /// Streams of which something may have to be told at the end of the turn.
    touched: Vec<StreamId>,
    /// The stream of the last work, whose bytes the host needs until it asks for more.
    worked_on: Option<StreamId>,
    replication: Replication,
    counters: Counters,
}

impl<R> Shard<R> {
    /// Returns a shard without topics, of a node without a pair. `incarnation` must be greater than that of every earlier run.
    pub fn new(incarnation: Incarnation, limits: ShardLimits) -> Self {
        Self::of_role(Role::Leader, incarnation, limits)
    }

    /// Returns a shard without topics, of a node of a pair. It accepts no event until it has taken over, from a
    /// [`Backup`](crate::Backup::promote) or [without one](Self::take_over_nothing), and has the right to lead
    /// ([`Input::Authority`]). The epoch decides in which incarnation it then numbers events.
    pub fn follower(limits: ShardLimits) -> Self {
        Self::of_role(Role::Follower, Incarnation::of_epoch(Epoch::NONE), limits)
    }

    fn of_role(role: Role, incarnation: Incarnation, limits: ShardLimits) -> Self {
        let authority = match role {
            Role::Leader => Authority::ALONE,
            Role::Follower => Authority { epoch: Epoch::NONE, until: Instant::default() },
        };
        Self {
            role,
            incarnation,
            limits,
            topics: Topics::default(),
            subscriptions: Subscriptions::default(),
            lost_events: 0,
            authority,
            led_since: Instant::default(),
            streams: Streams::default(),
            known_as: Vec::new(),
            dispatches: Queue::default(),
            dispatches_ns: 0,
            settling: Queue::default(),
            silences: Queue::default(),
            waits: Queue::default(),
            catching_up: VecDeque::new(),
            held: Vec::new(),
            held_until: Instant::default(),
            touched: Vec::new(),
            worked_on: None,
            replication: Replication::default(),
            counters: Counters::default(),
        }
    }

    /// Goes on with what a Backup has kept: the streams that keep something wait for their publishers.
    ///
    /// # Panics
    /// If the shard is not a [follower](Self::follower)'s: it has taken over before.
    pub(crate) fn take_over(&mut self, now: Instant, promotion: Promotion, topics: &Topics, mut streams: Streams) {
        assert_eq!(self.role, Role::Follower, "a shard takes over once");
        // A follower issues no permit, and without one no stream is opened.
        assert_eq!(self.streams.count(), 0, "a follower accepts no events");
        let known_as = std::mem::take(&mut self.known_as);
        streams.renumber_topics(|topic| match known_as.get(topic.index()) {
            Some(&known_as) if known_as != NOT_KNOWN => known_as,
            _ => self.topics.find_or_copy(topics.at(topic)),
        });
        self.streams = streams;
        self.reserve();
        (self.held_until, self.replication.standing) = (now.plus(promotion.redirect), BackupStanding::Lost);
        for index in self.streams.open_streams().collect::<Vec<_>>() {
            self.read_by_required(index);
        }
        for at in 0..self.streams.occupied().len() {
            let index = self.streams.occupied()[at];
            self.held.push(self.streams.id(index));
            let stream = self.streams.at_mut(index);
            (stream.held_from, stream.is_resumed, stream.rightful) = (Sequence(0), false, stream.length);
            let cost_ns = self.topics.at(stream.identity.topic).terms().dispatch_cost_ns;
            self.dispatches_ns += u64::from(cost_ns) * u64::from(stream.length);
        }
        self.role = Role::Leader;
        self.take_authority(now, promotion.authority);
    }

    /// Completes the takeover of a node that has no events of the leader before it.
    ///
    /// # Panics
    /// If the shard is not a [follower](Self::follower)'s: it has taken over before.
    pub fn take_over_nothing(&mut self) {
        assert_eq!(self.role, Role::Follower, "a shard takes over once");
        self.role = Role::Leader;
    }

    /// Says when replicas go out.
    pub fn set_replication(&mut self, policy: ReplicationPolicy) {
        self.replication.policy = policy;
    }

    /// Makes a subscription to a topic, which is named as stored (upper-case). It hears what is published from now on.
    pub fn subscribe(&mut self, topic: &str, receiver: R, overflow: Overflow) -> Result<SubscriptionKey, ShardError> {
        if self.subscriptions.count() >= self.limits.subscriptions_max {
            return Err(ShardError::Subscriptions(self.limits.subscriptions_max));
        }
        let topic = self.topic_of_event(topic)?;
        let heard = &mut self.topics.at_mut(topic).subscriptions;
        let subscription = Subscription::new(topic, heard.len(), receiver, overflow, self.limits.queue_bytes_max);
        let key = self.subscriptions.insert(subscription);
        heard.push(key);
        Ok(key)
    }

    /// The number of a topic, which is made if it is not there. The topic keeps the number as long as the shard lasts.
    pub fn topic(&mut self, name: &str) -> Result<TopicId, ShardError> {
        let id = self.topic_of_event(name)?;
        self.topics.at_mut(id).is_pinned = true;
        Ok(id)
    }

    /// The number of a topic for the event in hand. A best-effort topic without subscriptions may lose it to another one later.
    ///
    /// # Errors
    /// Returns [`ShardError::Topics`] if all topics are in use.
    pub fn topic_of_event(&mut self, name: &str) -> Result<TopicId, ShardError> {
        self.topics.find_or_make(name, self.limits.topics_max).ok_or(ShardError::Topics(self.limits.topics_max))
    }

    /// Takes what happened. `outputs` is appended to.
    pub fn step(&mut self, now: Instant, input: Input, outputs: &mut Vec<Output>) {
        match input {
            Input::Sent { subscription, bytes } => self.sent(now, subscription, bytes, outputs),
            Input::FallBehind { subscription: key } => {
                if self.subscriptions.get_mut(key).is_some_and(Subscription::fall_behind) {
                    outputs.push(Output::FellBehind { subscription: key });
                }
            }
            Input::CatchUp { subscription, bytes } => {
                if let Some(subscription) = self.subscriptions.get_mut(subscription) {
                    subscription.catch_up(bytes);
                }
            }
            Input::Unsubscribe { subscription } => self.unsubscribe(now, subscription, outputs),
            Input::Detached { subscription } => self.detach(now, subscription),
            Input::Delivered { subscription, stream, through } => self.delivered(now, subscription, stream, through, outputs),
            Input::Emptied { stream, through } => self.emptied(stream, through, outputs),
            Input::Resumed { stream, from, to } => self.resume(now, stream, from, to),
            Input::GivenUp { stream, sequence } => self.give_up(stream, sequence),
            Input::Authority(authority) => self.take_authority(now, authority),
            Input::Backup(standing) => self.backup_stands(standing, outputs),
        }
    }

    fn sent(&mut self, now: Instant, key: SubscriptionKey, bytes: u64, outputs: &mut Vec<Output>) {
        let Some(subscription) = self.subscriptions.get_mut(key) else { return };
        if let Some((events, during)) = subscription.sent(now, bytes) {
            outputs.push(Output::TellLoss { subscription: key, events, during });
        }
        let is_half_read = subscription.is_half_read();
        if let Some(required) = &mut subscription.required
            && is_half_read
            && std::mem::take(&mut required.is_full)
        {
            self.catch_up(key);
        }
    }

    /// Accepts an event of a best-effort topic, which is named as stored (upper-case), and gives its identity. It goes out at once, so that a host with
    /// real-time topics publishes it when [`Self::next`] has no more work. What the publisher may publish was decided before; `offer` is asked once for every subscription of the topic that is not behind.
    pub fn publish(
        &mut self,
        now: Instant,
        permit: LeaderPermit,
        topic: &str,
        publisher: PublisherId,
        offer: &mut Offer<'_, R>,
        outputs: &mut Vec<Output>,
    ) -> Result<EventId, ShardError> {
        self.check_lease(now, permit)?;
        let id = self.topic_of_event(topic)?;
        assert!(self.topics.at(id).terms.is_none(), "events of a real-time topic have a stream");
        let streams_max = self.limits.topics_max.saturating_mul(STREAMS_PER_TOPIC);
        let sequence = self.topics.next_sequence(id, publisher, streams_max).ok_or(ShardError::Streams(streams_max))?;
        let event = EventId { publisher, incarnation: self.incarnation, topic: id, sequence };
        self.offer_at_once(now, event, offer, outputs);
        Ok(event)
    }

    /// The same of an event that has its name already: what a graph makes of events is named after one of them.
    pub fn publish_named(
        &mut self,
        now: Instant,
        permit: LeaderPermit,
        event: EventId,
        offer: &mut Offer<'_, R>,
        outputs: &mut Vec<Output>,
    ) -> Result<(), ShardError> {
        self.check_lease(now, permit)?;
        let topic = self.topics.at_mut(event.topic);
        assert!(topic.terms.is_none(), "events of a real-time topic have a stream");
        topic.accepted += 1;
        self.offer_at_once(now, event, offer, outputs);
        Ok(())
    }

    fn offer_at_once(&mut self, now: Instant, event: EventId, offer: &mut Offer<'_, R>, outputs: &mut Vec<Output>) {
        for &key in self.topics.at(event.topic).subscriptions.iter() {
            let offered = self.subscriptions.heard(key).offer(now, OfferedEvent { id: event, slot: None }, offer);
            self.lost_events += u64::from(offered == Offered::Lost);
            outputs.extend(output_of(key, event, offered));
        }
    }

    /// Tells all subscribers of a topic, behind what is queued, that so many of its events will never be there.
    pub fn tell_lost(&self, topic: TopicId, events: u64, outputs: &mut Vec<Output>) {
        let told = |key: &SubscriptionKey| Output::TellLoss { subscription: *key, events, during: Duration::ZERO };
        outputs.extend(self.topics.at(topic).subscriptions.iter().map(told));
    }

    fn unsubscribe(&mut self, now: Instant, key: SubscriptionKey, outputs: &mut Vec<Output>) {
        self.require_no_more(now, key, outputs);
        let Some(subscription) = self.subscriptions.remove(key) else { return };
        let heard = &mut self.topics.at_mut(subscription.topic).subscriptions;
        heard.swap_remove(subscription.place as usize);
        if let Some(moved) = heard.get(subscription.place as usize).copied() {
            self.subscriptions.heard(moved).place = subscription.place;
        }
    }

    /// Gives a topic its terms, which the admission test has found feasible, or new ones, which count for what comes from now on.
    pub fn admit(&mut self, topic: &str, terms: Terms) -> Result<TopicId, ShardError> {
        let id = self.topic(topic)?;
        self.topics.admit(id, terms, &mut self.streams);
        self.reserve();
        Ok(id)
    }

    /// The same of a topic of the leader's, which has this number in the [`Backup`](crate::Backup) of this node that follows. Who leads has kept to the limit of topics.
    pub fn prepare(&mut self, topic: &str, terms: Terms, in_backup: TopicId) -> TopicId {
        let id = self.topics.find_or_make(topic, usize::MAX).expect("no limit is asked for");
        self.topics.admit(id, terms, &mut self.streams);
        if in_backup.index() >= self.known_as.len() {
            self.known_as.resize(in_backup.index() + 1, NOT_KNOWN);
        }
        self.known_as[in_backup.index()] = id;
        id
    }

    /// Opens the stream of a publisher's run on a real-time topic, or returns the one that is open. The streams of the publisher's earlier runs end
    /// when nothing of them is left. All memory that the stream's events need is reserved here.
    ///
    /// # Errors
    /// Returns [`ShardError::Publishers`] if as many other publishers have streams as the topic's terms allow, and [`ShardError::Runs`] if events of
    /// too many earlier runs of this publisher are not delivered yet.
    pub fn open_stream(&mut self, _: &LeaderPermit, identity: StreamIdentity) -> Result<StreamId, ShardError> {
        if let Some(stream) = self.stream(&identity) {
            return Ok(stream);
        }
        self.check_stream_limits(&identity)?;
        let topic = self.topics.at(identity.topic);
        let stream = self.streams.open(identity, topic.terms().backlog_max.get());
        if identity.incarnation == self.incarnation
            && let Some(&numbered) = topic.ended.get(&identity.publisher).or_else(|| topic.numbered.get(&identity.publisher))
        {
            // Events have these numbers of a stream that has ended, or of the time when the topic was best effort.
            let opened = self.streams.at_mut(stream.index);
            (opened.last, opened.released, opened.covered) = (numbered, numbered, numbered);
        }
        for at in 0..self.streams.of(identity.topic).len() {
            let other = self.streams.of(identity.topic)[at];
            let (of, held_from) = (self.streams.at(other).identity, self.streams.at(other).held_from);
            if !of.is_run_of_same(&identity) {
                continue;
            }
            if of.incarnation < identity.incarnation {
                // A new run must not accept more than its predecessor might have.
                self.streams.at_mut(stream.index).bucket = self.streams.at(other).bucket;
                // Who has begun anew does not say any more what it kept: what a promoted node holds for it goes out in front of what is new.
                self.resume(Instant::default(), self.streams.id(other), Sequence(1), Sequence(0));
                self.end_stream(self.streams.id(other));
            } else if stream.index != other && held_from < Sequence(u64::MAX) {
                // A client that was replaced by a newer run: what is held of that goes first.
                self.streams.at_mut(stream.index).is_behind = true;
                self.held.push(stream);
            }
        }
        self.read_by_required(stream.index);
        self.reserve();
        Ok(stream)
    }

    /// Checks that a publisher may have one more stream on a topic. Slots belong to publishers, not to their runs: after failovers the publisher's
    /// events are numbered in a new run, while events of the runs before are still being delivered.
    fn check_stream_limits(&self, identity: &StreamIdentity) -> Result<(), ShardError> {
        let publishers_max = self.topics.at(identity.topic).terms().streams_max as usize;
        let (mut others, mut runs, mut last_other) = (0, 0, None);
        for at in self.streams.of(identity.topic) {
            let publisher = self.streams.at(*at).identity.publisher;
            if publisher == identity.publisher {
                runs += 1;
            } else if last_other.replace(publisher) != Some(publisher) {
                // The list is in the order of publishers.
                others += 1;
            }
        }
        if runs == 0 && others >= publishers_max {
            return Err(ShardError::Publishers(publishers_max));
        }
        if runs >= RUNS_PER_PUBLISHER_MAX {
            return Err(ShardError::Runs(RUNS_PER_PUBLISHER_MAX));
        }
        Ok(())
    }

    /// Lets a stream end when nothing of it is left: its publisher will not publish any more.
    pub fn end_stream(&mut self, stream: StreamId) {
        if let Some(index) = self.streams.index(stream) {
            self.streams.at_mut(index).is_ending = true;
            self.touch(index);
        }
    }

    /// Makes the tables as large as streams and slots can make them.
    fn reserve(&mut self) {
        let (streams, slots) = (self.streams.count(), self.streams.slots.count_max());
        self.dispatches.reserve(streams);
        self.settling.reserve(streams);
        self.silences.reserve(streams);
        self.replication.pending.reserve(slots);
        self.touched.reserve(streams.saturating_sub(self.touched.len()));
        self.catching_up.reserve(streams.saturating_sub(self.catching_up.len()));
    }
}

/// What is to be done about an event that a subscription was offered.
fn output_of(subscription: SubscriptionKey, event: EventId, offered: Offered) -> Option<Output> {
    match offered {
        Offered::Queued => Some(Output::Deliver { subscription, event }),
        Offered::FellBehind => Some(Output::FellBehind { subscription }),
        Offered::Lost | Offered::NotForIt => None,
    }
}
