//! Real-time topics: an event is kept when it comes, and goes out when it is its turn: by level, then by deadline.
//!
//! Its publisher is answered when it has gone out. So what was answered is in the event log, and the log has the order in which
//! events were handed over.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use bodkin_arrowhead::{caller::Authorized, error::ArrowheadError, publication::Publication};
use bodkin_broker::{
    Accepted, EventId, Input, LeaderPermit, NextRefusal, OfferedEvent, PublisherId, ShardError, ShedReason, SlotId, StreamId,
    StreamIdentity, Terms, TopicId, Work,
    timing::{Nanos, Wish},
    topic::Coverage,
};
use bodkin_store::event_log::{EventLog, Position, Record, RecordName};

use super::{
    Kept, Receiver, Shard, Waiting,
    connection::Phase,
    from_fleet::FleetMessage,
    not_taken::NotTaken,
    publish::{Numbering, Published},
    traced::Dispatching,
    zmtp::Numbered,
};
use crate::{
    answer::{self, Answer},
    topics::{RealTimeTopic, TopicCounts, TopicTable, wish::Asker},
};

/// Pieces of work done in one turn; more wait for the next one, so that what has come meanwhile and is due earlier goes first.
pub(super) const TURN_WORK_MAX: usize = 256;
/// How long connections that have published no real-time event are served in one turn, where there are real-time topics. A connection
/// that was begun is served to the end of its share.
pub(super) const BEST_EFFORT_SLICE: Duration = Duration::from_micros(500);

/// What the shard has of real-time topics.
pub(super) struct RealTime {
    topics: TopicTable,
    /// By slot.
    kept: Vec<Kept>,
    /// Of a node that was promoted: what was asked of the leader before, and until when that holds.
    pub(super) inherited: Vec<(Box<str>, Asker)>,
    pub(super) inherited_until: Instant,
    /// Since when it counts how long events have been on their way.
    pub(super) ways_count_from: Instant,
}

impl RealTime {
    pub fn new() -> Self {
        let now = Instant::now();
        let (topics, kept, inherited) = (TopicTable::default(), Vec::new(), Vec::new());
        Self { topics, kept, inherited, inherited_until: now, ways_count_from: now }
    }

    /// Whether there is no such topic: then nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// Whether a topic is one.
    pub fn is_one(&self, topic: TopicId) -> bool {
        self.topics.get(topic).is_some()
    }

    fn counts(&self, topic: TopicId) -> &TopicCounts {
        &self.topics.of_kept(topic).counts
    }

    fn keep(&mut self, slot: SlotId, publication: &Publication<'_>, publisher: Option<Waiting>, taken_ns: u64) {
        let kept = Kept::at(&mut self.kept, slot);
        kept.fill(publication, publisher);
        kept.taken_ns = taken_ns;
    }

    /// What is kept in a slot.
    pub fn kept(&self, slot: SlotId) -> &Kept {
        &self.kept[slot.index()]
    }

    /// Goes on with what a Backup has kept.
    pub fn take_over(&mut self, kept: Vec<Kept>) {
        self.kept = kept;
    }

    /// The topics of which more is asked than was declared.
    pub fn asked(&self) -> impl Iterator<Item = &Arc<RealTimeTopic>> {
        self.topics.iter().filter(|topic| topic.asked != Wish::default())
    }

    /// The durable ones.
    pub fn durable(&self) -> impl Iterator<Item = &str> {
        self.topics.iter().filter(|topic| topic.is_durable).map(|topic| &*topic.event_type)
    }

    /// The real-time topic of this number.
    pub fn topic(&self, topic: TopicId) -> &RealTimeTopic {
        self.topics.of_kept(topic)
    }

    /// The event type of a topic.
    pub fn name(&self, topic: TopicId) -> &str {
        &self.topics.of_kept(topic).event_type
    }

    /// Whether anybody waits until an event goes out.
    pub fn has_publishers(&self) -> bool {
        self.kept.iter().any(|kept| kept.publisher.is_some())
    }

    /// Those who wait until their events go out.
    pub fn take_publishers(&mut self) -> impl Iterator<Item = Waiting> {
        self.kept.iter_mut().filter_map(|kept| kept.publisher.take())
    }
}

impl Shard {
    /// Makes an event type a real-time topic, whose admission test has succeeded.
    pub fn admit(&mut self, topic: Arc<RealTimeTopic>, terms: Terms) -> Result<(), ShardError> {
        self.open_new_to_links(&topic.event_type);
        let id = self.broker.admit(&topic.event_type, terms)?;
        if self.real_time.topics.get(id).is_some_and(|former| !Arc::ptr_eq(&former.counts, &topic.counts)) {
            self.publisher_slots.forget(id);
        }
        let required_for_max = Duration::from_nanos(topic.spec.required_for_max.get().unsigned_abs());
        self.real_time.topics.insert(id, topic);
        self.shorten_waits(id, required_for_max);
        Ok(())
    }

    /// Makes one that the leader has, while this node follows.
    pub(super) fn prepare_topic(&mut self, topic: Arc<RealTimeTopic>, terms: Terms, in_backup: TopicId) {
        self.open_new_to_links(&topic.event_type);
        let id = self.broker.prepare(&topic.event_type, terms, in_backup);
        self.real_time.topics.insert(id, topic);
    }

    fn open_new_to_links(&mut self, event_type: &str) {
        if self.is_new_to_links(event_type) {
            self.open_to_links(event_type);
        }
    }

    /// The real-time topic of this event type.
    pub(super) fn real_time_topic(&self, event_type: &str) -> Option<&RealTimeTopic> {
        let (id, _) = self.broker.terms(event_type)?;
        self.real_time.topics.get(id)
    }

    /// Keeps an event of the real-time topic that was just authorised; its publisher waits for its turn. Over HTTP an event has no stamp that is
    /// fine enough, so it counts as created the longest way before its arrival.
    pub(super) fn keep(
        &mut self,
        permit: LeaderPermit,
        (topic, terms): (TopicId, Terms),
        publication: &Authorized<Publication<'_>>,
        numbering: Numbering,
    ) -> Result<Published, NotTaken> {
        let publisher = PublisherId(publication.facts().source.0.unsigned_abs());
        // The event may be given a slot that was freed: what was in there goes first.
        self.carry_out_all();
        let accepted = match &numbering {
            Numbering::Ours(_) => self.accept_next(permit, (topic, publisher), &terms),
            Numbering::Publisher(numbered) => self.accept_numbered(permit, numbered.stream(topic, publisher), numbered, &terms),
            Numbering::Derived(name) => self.accept_derived(permit, *name, publication.facts().time.unix_nanos()),
            // Its deadline begins when it comes here, however long it has waited for the edge to be reached.
            Numbering::Fleet(name) => self.accept_named(permit, *name, self.clock.utc.unix_nanos(), false),
        };
        if let (Ok(_), Numbering::Publisher(numbered)) = (&accepted, &numbering) {
            self.publisher_is_heard(numbered.created(), numbered.is_resent());
        }
        let counts = self.real_time.counts(topic);
        match accepted {
            Ok(Accepted::Kept { slot: kept, is_excess }) => {
                if let Numbering::Publisher(numbered) = &numbering {
                    self.watch_way(topic, numbered, &terms);
                }
                counts.accepted.fetch_add(1, Relaxed);
                counts.excess.fetch_add(u64::from(is_excess), Relaxed);
                self.context.counts.published.fetch_add(1, Relaxed);
                let waiting = match numbering {
                    Numbering::Ours(waiting) => waiting,
                    Numbering::Fleet(EventId { incarnation, sequence, .. }) => Some(Waiting::Fleet(FleetMessage { incarnation, sequence })),
                    Numbering::Publisher(_) | Numbering::Derived(_) => None,
                };
                let taken_ns = self.taken_ns();
                self.real_time.keep(kept, publication, waiting, taken_ns);
                Ok(Published::Kept { is_excess })
            }
            Ok(Accepted::Known) => Ok(Published::Known),
            Err(refusal) => {
                counts.refused.fetch_add(1, Relaxed);
                if matches!(refusal, NotTaken::Broker(bodkin_broker::Refusal::Full { .. })) {
                    let publisher =
                        if let Numbering::Derived(name) | Numbering::Fleet(name) = &numbering { name.publisher } else { publisher };
                    self.note_full(topic, publisher);
                }
                Err(refusal)
            }
        }
    }

    /// Looks how long an event was on its way, where that is stated and its publisher's clock is known to a bound.
    fn watch_way(&self, topic: TopicId, numbered: &Numbered, terms: &Terms) {
        let stalls = &self.context.stalls;
        let is_stated = stalls.asks_for_clocks() && self.real_time.topics.of_kept(topic).spec.publisher_broker > Nanos::ZERO;
        if !is_stated || numbered.is_resent() || self.clock.now < self.real_time.ways_count_from {
            return;
        }
        let way = self.clock.began().since(numbered.created());
        let excess_ns = u64::try_from(way.as_nanos()).unwrap_or(u64::MAX).saturating_sub(terms.created_before_ns);
        if excess_ns > 0 {
            stalls.publisher_is_far(excess_ns);
        }
    }

    /// Notes that an event which was refused will not come again: later events of its stream do not wait for it.
    pub(super) fn give_up(&mut self, EventId { publisher, incarnation, topic, sequence }: EventId) {
        if let Some(stream) = self.broker.stream(&StreamIdentity { topic, publisher, incarnation }) {
            self.broker.step(self.clock.broker(), Input::GivenUp { stream, sequence }, &mut self.outputs);
        }
    }

    /// Offers the broker the next event of a publisher that does not number its own.
    fn accept_next(&mut self, permit: LeaderPermit, of: (TopicId, PublisherId), terms: &Terms) -> Result<Accepted, NotTaken> {
        let now = self.clock.broker();
        let accepted = self.broker.accept_next(now, permit, of, now.minus_nanos(terms.created_before_ns));
        if let Ok((stream, _)) | Err(NextRefusal::Event(stream, _)) = accepted {
            self.publishers.heard(stream, self.clock.now);
        }
        Ok(accepted?.1)
    }

    /// Does the work there is, at most so many pieces; gives how many.
    pub(super) fn work(&mut self, pieces_max: usize) -> usize {
        if self.real_time.is_empty() && self.primary.is_none() {
            return 0;
        }
        (0..pieces_max).take_while(|_| self.work_off_one()).count()
    }

    /// Has the broker tell what has come together in the turn, once for each stream.
    pub(super) fn end_turn(&mut self) {
        if !self.real_time.is_empty() || self.primary.is_some() {
            self.broker.end_turn(self.clock.broker(), &mut self.outputs);
            self.carry_out_now();
        }
    }

    /// Dispatches the event that is due first; false if there is none.
    fn work_off_one(&mut self) -> bool {
        // Whether it is late is seen now: what went before has taken its time.
        self.clock.advance();
        let snapshot = self.context.store.snapshot();
        self.frames.clear();
        let (kept, frames, filter_text, endpoint) = (&self.real_time.kept, &mut self.frames, &mut self.filter_text, &mut self.endpoint);
        let mut offered: Option<(SlotId, Publication<'_>)> = None;
        let mut offer = |receiver: &Receiver, event: OfferedEvent| {
            let slot = event.slot.expect("work is on what is kept");
            if offered.as_ref().is_none_or(|(of, _)| *of != slot) {
                frames.clear();
                offered = Some((slot, kept[slot.index()].publication()));
            }
            let (_, publication) = offered.as_ref().expect("it was just read");
            receiver.frame_bytes(frames, endpoint, event.id, &snapshot, publication, filter_text)
        };
        let lost_before = self.broker.lost_events();
        let work = self.broker.next(self.clock.broker(), &mut offer, &mut self.outputs);
        drop(snapshot);
        let lost = self.broker.lost_events() - lost_before + self.endpoint.take_lost();
        self.context.counts.lost.fetch_add(lost, Relaxed);
        match work {
            Some(Work::Dispatch { slot, stream, event, created, is_late }) => {
                self.real_time.counts(event.topic).lost.fetch_add(lost, Relaxed);
                self.dispatched((slot, stream), event, created, is_late);
                self.supply_graphs(slot, event, created);
                true
            }
            Some(Work::Replicate { slot, position, number, event, created }) => {
                self.carry_out_now();
                self.replicate(slot, position, number, event, created);
                // The way to the Backup and back is longer than what is left to do in the turn.
                if self.broker.has_sent_replicas() {
                    self.send_to_backup();
                }
                true
            }
            Some(Work::EndSnapshot { position }) => {
                self.carry_out_now();
                self.end_snapshot(position);
                true
            }
            None => {
                self.carry_out_now();
                false
            }
        }
    }

    /// Hands a dispatched event to the graphs that read its topic, once: it may be dispatched again to who was behind.
    fn supply_graphs(&mut self, slot: SlotId, event: EventId, created: bodkin_broker::Instant) {
        self.supply_subscribed(slot, event, created);
        if !self.graphs.reads(event.topic) || std::mem::replace(&mut self.real_time.kept[slot.index()].is_supplied, true) {
            return;
        }
        let now = self.clock.broker();
        let (now_ns, created_ns) = (self.clock.utc_ns_of(now), self.clock.utc_ns_of(created));
        let publication = self.real_time.kept[slot.index()].publication();
        self.graphs.supply((now, now_ns), event, created_ns, &publication);
    }

    /// Hands a dispatched event over, and answers its publisher if this is the first time.
    fn dispatched(&mut self, (slot, stream): (SlotId, StreamId), event: EventId, created: bodkin_broker::Instant, is_late: bool) {
        let dispatching = self.begin_kept_dispatch(slot);
        let topic = self.real_time.topics.of_kept(event.topic);
        topic.counts.dispatched.fetch_add(1, Relaxed);
        topic.counts.late.fetch_add(u64::from(is_late), Relaxed);
        let kept = &mut self.real_time.kept[slot.index()];
        // Who was behind is brought it later than it went out.
        let is_again = std::mem::replace(&mut kept.is_out, true);
        if let (false, Some(latency)) = (is_again, &topic.counts.latency) {
            latency.record(u64::try_from(self.clock.broker().since(created).as_nanos()).unwrap_or(u64::MAX));
        }
        let EventId { publisher, incarnation, sequence, .. } = event;
        let identity = StreamIdentity { topic: event.topic, publisher, incarnation };
        // A publisher sends what it keeps to each new leader.
        let is_logged = topic.is_durable && self.unsynced.logged.has(&identity, sequence);
        if is_logged {
            // Readers of the log find the copy. A live push continues at the log's end.
            let end = self.log.as_ref().map(EventLog::next_position);
            kept.position = kept.position.or(end.map(|end| Position(end.0.saturating_sub(1))));
        } else if kept.position.is_none()
            && let Some(log) = &mut self.log
        {
            let json = std::str::from_utf8(self.frames.json(&kept.publication())).expect("JSON is UTF-8");
            let time_ns = self.clock.utc.unix_nanos();
            let position = log.append(time_ns, event, &topic.event_type, json, self.clock.now);
            if topic.is_durable {
                log.is_shared(RecordName { time_ns, id: event });
                self.unsynced.logged.note(identity, sequence);
            }
            if topic.is_durable && self.primary.is_some() {
                self.unsynced.copy(&Record { position, time_ns, id: event, topic: &topic.event_type, event: json, origin: None });
            }
            kept.position = Some(position);
        }
        let (position, publisher, is_durable) = (kept.position, kept.publisher.take(), topic.is_durable);
        let is_host_enough = topic.spec.coverage == Coverage::Host;
        self.begin_deliveries(dispatching.as_ref().map(Dispatching::cause));
        self.carry_out(position);
        self.end_deliveries();
        if dispatching.is_some() {
            self.end_dispatch(dispatching, self.real_time.name(event.topic), Some(is_late));
        }
        if is_host_enough {
            self.is_under_way(stream, event);
        }
        let synced_at = position.filter(|_| is_durable);
        // Its publisher may come to a new leader only now, so it need not be known yet.
        if let (Some(position), false) = (synced_at, is_again) {
            self.unsynced.publishers.push_back((position, Waiting::Event(identity, sequence)));
        }
        if is_durable {
            self.promise_logged(identity, sequence);
        }
        let publisher = publisher.and_then(|publisher| self.awaits_cover(slot, (stream, event.sequence), publisher, synced_at));
        match (publisher, position) {
            (Some(publisher), Some(position)) if is_durable => self.unsynced.publishers.push_back((position, publisher)),
            (Some(publisher), _) => self.answer_publisher(publisher, Ok(())),
            (None, _) => {}
        }
    }

    /// Answers a publisher, whose next request is served behind what is due.
    pub(super) fn answer_publisher(&mut self, publisher: Waiting, result: Result<(), &ArrowheadError>) {
        let key = match publisher {
            Waiting::Connection(key) => key,
            Waiting::Link(key) => return self.answer_link(key, result),
            Waiting::Fleet(message) => return self.answer_fleet(message, result),
            Waiting::Event(..) | Waiting::Stream(..) => unreachable!("a stream's publisher does not wait for a dispatch"),
        };
        let Some(connection) = self.connections.get_mut(key.slot).filter(|connection| connection.serial == key.serial) else { return };
        if let Phase::Waiting { keep_alive, is_head } = connection.phase {
            connection.phase = Phase::Requests;
            let answer = result.map_or_else(|error| answer::Refusal::from(error.clone()).into(), |()| Answer::empty(200));
            self.write(key.slot, &answer, keep_alive, is_head);
            self.unserved.push_back(key.slot);
            self.resume(key.slot);
        }
    }

    /// Whether an event is answered when it is synced.
    pub(super) fn is_durable_topic(&self, topic: TopicId) -> bool {
        self.real_time.topics.get(topic).is_some_and(|topic| topic.is_durable)
    }

    /// Counts an event that was dropped in front of its dispatch, and tells its publisher.
    pub(super) fn dropped(&mut self, stream: StreamId, slot: SlotId, reason: ShedReason) {
        if let Some(identity) = self.broker.identity(stream) {
            self.real_time.counts(identity.topic).shed.fetch_add(1, Relaxed);
        }
        if let Some(publisher) = self.real_time.kept[slot.index()].publisher.take() {
            let why = why_dropped(reason);
            match publisher {
                // It would be known if it came again.
                Waiting::Fleet(message) => self.refuse_fleet(message, &why),
                publisher => self.answer_publisher(publisher, Err(&why)),
            }
        }
    }

    /// Notes a run of losses that is being told: of a real-time topic it counts.
    pub(super) fn note_loss_run(&self, event_type: &str, events: u64) {
        if let Some(topic) = self.real_time_topic(event_type) {
            topic.counts.longest_loss_run.fetch_max(events, Relaxed);
            topic.counts.loss_runs.note(events);
        }
    }

    /// Lets an event's bytes go.
    pub(super) fn free(&mut self, slot: SlotId) {
        let kept = &mut self.real_time.kept[slot.index()];
        assert!(kept.publisher.is_none(), "who waits for a dispatch is answered by it, or when the event is dropped");
        kept.clear();
    }
}

/// The answer to an event that was taken, and dropped in front of its dispatch.
fn why_dropped(reason: ShedReason) -> ArrowheadError {
    match reason {
        ShedReason::Excess => ArrowheadError::too_fast(
            "The event came faster than the period of its topic allows, and the next one had to go first. \
            Publish more slowly, or declare a shorter period.",
        ),
        ShedReason::Late => ArrowheadError::unavailable(
            "The event was dropped, for its deadline had passed and its topic lets late events be dropped (shed_max). \
            The next one may be in time; a longer deadline or less load lets more of them through.",
        ),
    }
}
