//! Events of DEALERs: numbered by their publisher, taken by the rules of every event, answered when they are covered.

use std::time::Duration;

use bodkin_arrowhead::{
    caller::Authorized,
    error::ArrowheadError,
    publication::{Created, Publication},
    record::SystemId,
    snapshot::Snapshot,
    utc::UtcTime,
};
use bodkin_broker::{
    Accepted, EventId, Incarnation, Input, Instant, LeaderPermit, PublisherId, Refusal, Sequence, StreamId, StreamIdentity, Terms, TopicId,
    wire::{ClientFrame, EventHeader, RefusalReason},
};
use bodkin_store::event_log::Position;

use super::{
    super::{
        LinkKey, Shard,
        publish::{EventTexts, ORIGIN},
        unread::Urgency,
    },
    runs::{LaterRun, Place},
    tell::short,
};
use crate::shard::{
    log::Waiting,
    not_taken::NotTaken,
    publish::{Numbering, Published},
    slots::Registration,
};

/// How old an event may be: a publisher keeps what nobody has covered.
const EVENT_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// How far its creation may lie ahead: no two clocks that are kept right are so far apart.
const EVENT_AHEAD_MAX: Duration = Duration::from_secs(120);

/// An event as its publisher numbers it.
#[derive(Clone, Copy)]
pub struct Numbered {
    /// As it came.
    header: EventHeader,
    /// When it was created, by the broker's clock.
    created: Instant,
    /// Its publisher's clock is known to be wrong, so that this says nothing.
    has_wrong_clock: bool,
    /// Where it came.
    link: LinkKey,
}

impl Numbered {
    /// When it was created, by the broker's clock.
    pub fn created(&self) -> Instant {
        self.created
    }

    /// Whether it comes again.
    pub fn is_resent(&self) -> bool {
        self.header.flags.resend
    }

    /// Its stream.
    pub fn stream(&self, topic: TopicId, publisher: PublisherId) -> StreamIdentity {
        StreamIdentity { topic, publisher, incarnation: self.header.incarnation }
    }
}

/// Returns the highest incarnation that is accepted at this time. Incarnations are start times: a higher one would end all runs that start before it.
pub(super) fn incarnation_max(now: UtcTime) -> Incarnation {
    Incarnation(now.plus(EVENT_AHEAD_MAX).unix_nanos())
}

fn check_incarnation(found: Incarnation, now: UtcTime) -> Result<(), NotTaken> {
    let max = incarnation_max(now);
    if found <= max {
        return Ok(());
    }
    let told = format!(
        "The incarnation {} is in the future: expected at most {}, the broker's time in nanoseconds since 1970 plus {} s. \
        Set the publisher's clock, then restart the publisher.",
        found.0,
        max.0,
        EVENT_AHEAD_MAX.as_secs()
    );
    Err(NotTaken::Header(ArrowheadError::bad_payload(told, ORIGIN)))
}

fn later_run(LaterRun(incarnation): LaterRun) -> NotTaken {
    let told = format!("A later run of this publisher has published on the topic, incarnation {}: this one is over.", incarnation.0);
    NotTaken::LaterRun(ArrowheadError::invalid_parameter(told))
}

impl Shard {
    /// Takes an event without a header, as PUB sends it: whoever is there hears it, and its publisher is told nothing.
    pub(super) fn dealer_event_without_header(&mut self, slot: usize, texts: EventTexts<'_>) {
        let system = match self.dealer_system(slot) {
            Ok(system) => system,
            Err(told) => return self.refuse_untold(None, &ArrowheadError::auth(told)),
        };
        if !self.leads() {
            return self.refuse_untold(Some(&system), &NotTaken::Broker(Refusal::NotLeading).error());
        }
        let published = self.publish_texts((slot, &system), texts, Created::Unsaid, Numbering::Ours(None));
        if let Err(refusal) = published {
            self.refuse_untold(Some(&system), &refusal.error());
        }
    }

    /// Takes an event with its header.
    pub(super) fn dealer_event(&mut self, slot: usize, texts: EventTexts<'_>, header: &[u8]) -> Result<(), String> {
        let header = EventHeader::decode(header).map_err(|error| format!("the header of an event cannot be read: {error}"))?;
        let topic = std::str::from_utf8(texts.event_type).map_err(|_| "an event type is UTF-8".to_owned())?.trim();
        if header.flags.last {
            self.repeat_cover(slot, topic, header.incarnation, header.sequence);
            return Ok(());
        }
        let leads = if self.leads() { Ok(()) } else { Err(NotTaken::Broker(Refusal::NotLeading)) };
        match leads.and_then(|()| self.try_dealer_event(slot, texts, header)) {
            Ok(Published::Kept { is_excess: true }) => {
                let epoch = self.epoch();
                let EventHeader { incarnation, sequence, .. } = header;
                self.endpoint.tell(slot, &ClientFrame::Excess { epoch, incarnation, sequence, topic: short(topic) });
            }
            // It is told when it is covered.
            Ok(Published::AtOnce(_) | Published::Kept { .. } | Published::Known) => {}
            Err(refusal) => {
                self.refuse_event(slot, topic, header.sequence, &refusal);
                if matches!(refusal, NotTaken::Broker(Refusal::NotLeading)) {
                    // What is under way behind it must not be taken in front of it, should this node lead again.
                    return Err("this node does not lead: publish to the one that does, and resume here when this one does".to_owned());
                }
                self.give_refused_up(slot, topic, &header, &refusal);
            }
        }
        Ok(())
    }

    /// Gives up an event that is refused for good: its publisher does so, too.
    fn give_refused_up(&mut self, slot: usize, topic: &str, header: &EventHeader, refusal: &NotTaken) {
        if matches!(refusal.reason().0, RefusalReason::Full | RefusalReason::NotLeading | RefusalReason::Epoch) {
            return;
        }
        let EventHeader { incarnation, sequence, .. } = *header;
        let Some(stream) = self.stream_of(slot, topic, incarnation) else { return };
        self.endpoint.runs.refuse(stream, sequence, refusal.reason().0);
        let StreamIdentity { topic, publisher, .. } = stream;
        self.give_up(EventId { publisher, incarnation, topic, sequence });
    }

    fn try_dealer_event(&mut self, slot: usize, texts: EventTexts<'_>, header: EventHeader) -> Result<Published, NotTaken> {
        let system = self.dealer_system(slot).map_err(|told| NotTaken::Rules(ArrowheadError::auth(told)))?;
        let created = UtcTime::from_unix_nanos(header.created_utc_ns);
        let now = self.clock.utc;
        if created > now.plus(EVENT_AHEAD_MAX) || created < now.minus(EVENT_AGE_MAX) {
            let told = format!(
                "The event was created at {created}, and now is {now}: at most {} h before and {} s behind is believed. Are the clocks right?",
                EVENT_AGE_MAX.as_secs() / 3600,
                EVENT_AHEAD_MAX.as_secs()
            );
            return Err(NotTaken::Header(ArrowheadError::bad_payload(told, ORIGIN)));
        }
        check_incarnation(header.incarnation, now)?;
        let local = self.clock.local_of_utc_ns(header.created_utc_ns);
        let has_wrong_clock = self.context.stalls.is_wrong(&self.endpoint.dealer(slot).clock);
        let numbered = Numbered { header, created: local, has_wrong_clock, link: self.dealer_key(slot) };
        self.publish_texts((slot, &system), texts, Created::Checked(created), Numbering::Publisher(numbered))
    }

    fn refuse_event(&mut self, slot: usize, topic: &str, sequence: Sequence, refusal: &NotTaken) {
        // Who is to send again from an earlier event on has been told so, and sends this one behind it.
        if matches!(refusal, NotTaken::Broker(Refusal::Full { from, .. }) if *from < sequence) {
            return;
        }
        let (epoch, (reason, retry_after_ns)) = (self.epoch(), refusal.reason());
        let told = refusal.told();
        let text = short(&told);
        self.endpoint.tell(slot, &ClientFrame::Refused { epoch, sequence, reason, retry_after_ns, topic: short(topic), text });
    }

    /// Offers the broker an event of a real-time topic.
    pub(in crate::shard) fn accept_numbered(
        &mut self,
        permit: LeaderPermit,
        stream: StreamIdentity,
        numbered: &Numbered,
        terms: &Terms,
    ) -> Result<Accepted, NotTaken> {
        self.endpoint.runs.admit(stream).map_err(later_run)?;
        let id = self.broker.open_stream(&permit, stream)?;
        if self.endpoint.runs.heard(stream, numbered.link) {
            self.endpoint.links[numbered.link.slot].publishes(Urgency::within(terms.dispatch_within_ns));
        }
        let Numbered { header: EventHeader { epoch, sequence, flags, .. }, created, has_wrong_clock, .. } = *numbered;
        let event = bodkin_broker::Publication { epoch, sequence, created, is_resent: flags.resend, has_wrong_clock };
        let accepted = self.broker.accept(self.clock.broker(), permit, id, event).map_err(NotTaken::Broker)?;
        let place = if accepted == Accepted::Known { Place::Known } else { Place::New };
        self.endpoint.runs.accept(stream, sequence, place).map_err(NotTaken::Before)?;
        Ok(accepted)
    }

    /// Delivers an event of a best-effort topic, if it was not delivered before. It is covered when it is in the queues and in the log, of a durable event type on the
    /// disk: nothing of it is kept, so nothing more will become of it.
    pub(in crate::shard) fn deliver_numbered(
        &mut self,
        snapshot: &Snapshot,
        publication: &Authorized<Publication<'_>>,
        numbered: &Numbered,
    ) -> Result<Published, NotTaken> {
        let publisher = PublisherId(publication.facts().source.0.unsigned_abs());
        let sequence = numbered.header.sequence;
        if let Some(topic) = self.broker.topic_id(&self.scratch.event_type) {
            let stream = numbered.stream(topic, publisher);
            self.endpoint.runs.admit(stream).map_err(later_run)?;
            if self.endpoint.runs.place(stream, sequence) == Place::Known {
                self.endpoint.runs.heard(stream, numbered.link);
                self.promise_best_effort(stream, sequence);
                return self.endpoint.runs.accept(stream, sequence, Place::Known).map(|()| Published::Known).map_err(NotTaken::Before);
            }
        }
        let position = self.deliver(snapshot, publication, None)?;
        let topic = self.broker.topic_id(&self.scratch.event_type).expect("an event was delivered on it");
        let stream = numbered.stream(topic, publisher);
        self.endpoint.runs.heard(stream, numbered.link);
        self.endpoint.runs.taken(stream, sequence);
        self.endpoint.runs.accept(stream, sequence, Place::New).expect("it is new");
        if let Some(position) = position.filter(|_| self.is_durable()) {
            self.unsynced.publishers.push_back((position, Waiting::Event(stream, sequence)));
        }
        self.promise_best_effort(stream, sequence);
        Ok(Published::AtOnce(position))
    }

    fn promise_best_effort(&mut self, stream: StreamIdentity, through: Sequence) {
        if self.is_durable() { self.promise_when_synced(stream, through) } else { self.endpoint.runs.cover(stream, through) }
    }

    /// Notes that the broker covers everything of a stream up to here; of a durable topic it has to be on the disk too.
    pub(in crate::shard) fn promise(&mut self, stream: StreamId, through: Sequence) {
        let Some(stream) = self.broker.identity(stream) else { return };
        if !self.is_durable_topic(stream.topic) {
            return self.endpoint.runs.cover(stream, through);
        }
        if let Some(through) = self.endpoint.runs.covered_durable(stream, through) {
            self.promise_when_synced(stream, through);
        }
    }

    /// Notes that an event of a durable topic is in the log, or was dropped.
    pub(in crate::shard) fn promise_logged(&mut self, stream: StreamIdentity, sequence: Sequence) {
        if let Some(through) = self.endpoint.runs.logged(stream, sequence) {
            self.promise_when_synced(stream, through);
        }
    }

    fn promise_when_synced(&mut self, stream: StreamIdentity, through: Sequence) {
        let end = self.log.as_ref().expect("a durable event was taken").next_position();
        self.unsynced.publishers.push_back((Position(end.0.saturating_sub(1)), Waiting::Stream(stream, through)));
    }

    /// A publisher sends again what it keeps of a topic. Of a best-effort topic nothing is kept here, and each event is known or new.
    pub(super) fn resume_run(&mut self, slot: usize, topic: &str, incarnation: Incarnation, from: Sequence, to: Sequence) {
        let Some(stream) = self.stream_of(slot, topic, incarnation) else { return };
        if !self.real_time.is_one(stream.topic) {
            let link = self.dealer_key(slot);
            self.endpoint.runs.resume(stream, link, (from, to));
        } else if self.may_resume(stream) {
            self.resume_real_time(slot, stream, from, to);
        }
    }

    fn resume_real_time(&mut self, slot: usize, stream: StreamIdentity, from: Sequence, to: Sequence) {
        // A publisher resumes again at the next leader.
        let Ok(permit) = self.leader_permit() else { return };
        // Whether there is room for its stream its next event is told.
        let Ok(id) = self.broker.open_stream(&permit, stream) else { return };
        let link = self.dealer_key(slot);
        if self.endpoint.runs.heard(stream, link) {
            let within = self.broker.terms_of(stream.topic).and_then(|terms| terms.dispatch_within_ns);
            self.endpoint.links[slot].publishes(Urgency::within(within));
        }
        self.endpoint.runs.resume(stream, link, (from, to));
        self.broker.step(self.clock.broker(), Input::Resumed { stream: id, from, to }, &mut self.outputs);
        self.carry_out_now();
    }

    /// Tells a publisher again how far it is covered, for it has named its last event and hears nothing; or that its run is over.
    pub(super) fn repeat_cover(&mut self, slot: usize, topic: &str, incarnation: Incarnation, last: Sequence) {
        let Some(stream) = self.stream_of(slot, topic, incarnation) else { return };
        match self.endpoint.runs.admit(stream) {
            Ok(()) => {
                let link = self.dealer_key(slot);
                self.endpoint.runs.sent_all(stream, link, last);
                self.endpoint.runs.repeat(stream);
            }
            Err(later) => self.refuse_event(slot, topic, last, &later_run(later)),
        }
    }

    /// Returns true if a publisher may number a stream of a real-time topic. Who follows has none but those that the leader has.
    fn may_resume(&mut self, stream: StreamIdentity) -> bool {
        let StreamIdentity { topic, publisher, incarnation } = stream;
        // The publisher's next event receives the refusal.
        if self.endpoint.follows || incarnation > incarnation_max(self.clock.utc) || self.endpoint.runs.admit(stream).is_err() {
            return false;
        }
        let snapshot = self.context.store.snapshot();
        let registration = Registration { publisher, source: SystemId(publisher.0.cast_signed()) };
        self.admit_publisher(&snapshot, topic, registration, true).is_ok()
    }

    /// The stream that a DEALER means.
    fn stream_of(&mut self, slot: usize, topic: &str, incarnation: Incarnation) -> Option<StreamIdentity> {
        Some(StreamIdentity { topic: self.topic_spelled(topic)?, publisher: self.publisher_of(slot)?, incarnation })
    }

    /// The registered system as which a DEALER publishes.
    fn publisher_of(&mut self, slot: usize) -> Option<PublisherId> {
        let system = self.dealer_system(slot).ok()?;
        let snapshot = self.context.store.snapshot();
        let link = &mut self.endpoint.links[slot];
        let source = link.source.find(&mut self.endpoint.versions, &snapshot, &system).ok()?;
        Some(PublisherId(source.id.0.unsigned_abs()))
    }
}
