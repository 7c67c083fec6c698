//! Publish: from a request's bytes to every subscriber's queue.

use std::sync::atomic::Ordering::Relaxed;

use bodkin_arrowhead::{
    access::Denial,
    caller::{Authorized, Caller},
    event_handler, json,
    publication::{self, Publication, PublishForm},
    snapshot::Snapshot,
    trace::Cause,
    utc::UtcTime,
};
use bodkin_broker::{EventId, OfferedEvent, Output, PublisherId, SubscriptionKey, Wanted};
use bodkin_store::event_log::{EventLog, Position};

use super::{
    Endpoint, Receiver, Shard, Waiting,
    delivering::Way,
    not_taken::NotTaken,
    real_time::TURN_WORK_MAX,
    traced::{Dispatching, Publishing, Transport},
    zmtp::Numbered,
};
use crate::{
    answer::{Answer, Refusal},
    control,
    frames::Frames,
    http::RawRequest,
    inbox::ConnectionKey,
    push::{PushQueue, delivery::Delivery, link::PushEvent, task::Queued},
    request::Request,
    route,
    stage::Stage,
};

/// How an event is numbered, and who is told what becomes of it.
#[derive(Clone, Copy)]
pub(super) enum Numbering {
    /// By the broker, in this run's numbers. Who waits is answered when the event has gone out.
    Ours(Option<Waiting>),
    /// By its publisher, who keeps the event until it is covered.
    Publisher(Numbered),
    /// After the event that a graph has made it of.
    Derived(EventId),
    /// By the fleet's stream, which brings it again until it is acknowledged.
    Fleet(EventId),
}

/// What became of an event that may be published.
pub(super) enum Published {
    /// It is in the queues, and at this place in the event log where there is one.
    AtOnce(Option<Position>),
    /// It waits for its turn, and its publisher with it.
    Kept {
        /// It came faster than its topic may: it goes out if there is time, and is never covered.
        is_excess: bool,
    },
    /// It was taken before.
    Known,
}

impl Receiver {
    /// Makes an event's frame for this receiver, and says what it wants of it.
    pub(super) fn frame_bytes(
        &self,
        frames: &mut Frames,
        endpoint: &mut Endpoint,
        event: EventId,
        snapshot: &Snapshot,
        publication: &Publication<'_>,
        filter_text: &mut String,
    ) -> Wanted {
        let wanted = |bytes: Option<u64>| bytes.map_or(Wanted::No, Wanted::Bytes);
        match self {
            Self::Stream { listening, .. } => {
                let hears = listening.hears(snapshot, publication, filter_text);
                wanted(hears.then(|| frames.stream(listening.form, event, publication).len() as u64))
            }
            Self::Push { subscription, .. } => {
                let hears = event_handler::hears(snapshot, subscription, publication, filter_text);
                wanted(hears.then(|| frames.json(publication).len() as u64))
            }
            Self::Link { slot, .. } | Self::Dealer { slot, .. } if !endpoint.may_hear(*slot, snapshot, publication.facts().source) => {
                Wanted::No
            }
            Self::Link { slot, prefix } => {
                let message = frames.message(event, publication, endpoint.wants_metadata(*slot));
                wanted(endpoint.offer(*slot, prefix, message))
            }
            Self::Dealer { slot, topic } => {
                let message = frames.message(event, publication, endpoint.wants_metadata(*slot));
                endpoint.offer_dealer(*slot, topic, message)
            }
            Self::Graph => Wanted::Bytes(0),
        }
    }
}

impl Shard {
    /// Serves one publish request. It is answered when the event is in the queues and in the event log, of a durable event
    /// type when it is synced to the disk; before it is delivered in either case.
    pub(super) fn publish(&mut self, slot: usize, raw: &RawRequest<'_>) {
        if let Err(refusal) = self.publish_form(slot, raw) {
            self.refuse_request(slot, raw, refusal);
        }
    }

    /// Has the event answered, or says why it is not taken.
    pub(super) fn publish_form(&mut self, slot: usize, raw: &RawRequest<'_>) -> Result<(), Answer> {
        match self.try_publish(slot, raw)? {
            Published::Kept { .. } => self.connections[slot].await_dispatch(raw.keep_alive),
            Published::AtOnce(Some(position)) if self.is_durable() => self.answer_when_synced(slot, raw.keep_alive, position),
            Published::AtOnce(_) | Published::Known => self.write(slot, &Answer::empty(200), raw.keep_alive, false),
        }
        Ok(())
    }

    fn try_publish(&mut self, slot: usize, raw: &RawRequest<'_>) -> Result<Published, Answer> {
        let publishing = self.begin_publish(raw.trace.as_ref());
        let begun = publishing.as_ref().map(Publishing::cause);
        let published = self.try_publish_of(slot, raw, begun.as_ref().or(raw.trace.as_ref()));
        self.end_publish(publishing, Transport::Http, published.as_ref().map_or_else(|answer| answer.status, |_| 200));
        published
    }

    fn try_publish_of(&mut self, slot: usize, raw: &RawRequest<'_>, cause: Option<&Cause>) -> Result<Published, Answer> {
        // Written only for an event of a trace that does not say so itself.
        let mut metadata = String::new();
        let form = permitted(&self.connections[slot].client.peer.caller, raw, cause, &mut metadata)?;
        self.lap(Stage::Parse);
        let publisher = ConnectionKey { slot, serial: self.connections[slot].serial };
        self.take_in(&form, Numbering::Ours(Some(Waiting::Connection(publisher)))).map_err(refused)
    }

    /// Takes an event in, on whatever transport it has come, if the rules of publishing let it be published.
    pub(super) fn take_in(&mut self, form: &Authorized<PublishForm<'_>>, numbering: Numbering) -> Result<Published, NotTaken> {
        let snapshot = self.context.store.snapshot();
        self.sync(&snapshot);
        let publication = publication::authorize(&snapshot, form, self.clock.utc, &mut self.scratch).map_err(NotTaken::Rules)?;
        self.lap(Stage::Authorise);
        let published = self.take(&snapshot, &publication, numbering);
        self.lap(Stage::Execute);
        published
    }

    /// Takes an event that may be published, of the topic that `scratch` names.
    pub(super) fn take(
        &mut self,
        snapshot: &Snapshot,
        publication: &Authorized<Publication<'_>>,
        numbering: Numbering,
    ) -> Result<Published, NotTaken> {
        let permit = self.leader_permit()?;
        let real_time = self.broker.terms(&self.scratch.event_type).map(|(topic, terms)| (topic, *terms));
        self.check_durable(real_time.map(|(topic, _)| topic)).map_err(NotTaken::LogSuspended)?;
        match (real_time, numbering) {
            (Some(topic), numbering) => {
                self.check_publisher(snapshot, topic.0, publication.facts().source, &numbering)?;
                self.keep(permit, topic, publication, numbering)
            }
            (None, Numbering::Ours(_)) => self.deliver(snapshot, publication, None).map(Published::AtOnce),
            (None, Numbering::Derived(name) | Numbering::Fleet(name)) => {
                self.deliver(snapshot, publication, Some(name)).map(Published::AtOnce)
            }
            (None, Numbering::Publisher(numbered)) => self.deliver_numbered(snapshot, publication, &numbered),
        }
    }

    /// Hands a best-effort event to the broker and carries its decisions out. This and [`Self::keep`] are the only callers of the
    /// broker's publish and accept: they take nothing but a publication that may be published. `name` is its identity, where it has one already. Gives the event's place in the log.
    pub(super) fn deliver(
        &mut self,
        snapshot: &Snapshot,
        publication: &Authorized<Publication<'_>>,
        name: Option<EventId>,
    ) -> Result<Option<Position>, NotTaken> {
        // Real-time events go first.
        self.work(TURN_WORK_MAX);
        // The work may last longer than the lease that a permit from before it counts on.
        let permit = self.leader_permit()?;
        if self.is_new_to_links(&self.scratch.event_type) {
            let topic = self.scratch.event_type.clone();
            self.open_to_links(&topic);
        }
        let dispatching = self.begin_dispatch(publication);
        self.frames.clear();
        self.set_token(None);
        let facts = publication.facts();
        let (frames, filter_text, endpoint) = (&mut self.frames, &mut self.filter_text, &mut self.endpoint);
        let mut offer =
            |receiver: &Receiver, event: OfferedEvent| receiver.frame_bytes(frames, endpoint, event.id, snapshot, publication, filter_text);
        let publisher = PublisherId(facts.source.0.unsigned_abs());
        let lost_before = self.broker.lost_events();
        let now = self.clock.broker();
        let event = match name {
            Some(name) => {
                self.broker.publish_named(now, permit, name, &mut offer, &mut self.outputs)?;
                name
            }
            None => self.broker.publish(now, permit, &self.scratch.event_type, publisher, &mut offer, &mut self.outputs)?,
        };
        let position = self.append(event, publication);
        if let Some(crossing) = &self.context.crossing {
            crossing.send(&self.scratch.event_type, event, self.clock.utc, position, self.frames.json(publication));
            self.nodes.is_to_cross |= position.is_some();
        }
        self.context.counts.published.fetch_add(1, Relaxed);
        // Added, for push tasks count theirs beside.
        self.context.counts.lost.fetch_add(self.broker.lost_events() - lost_before + self.endpoint.take_lost(), Relaxed);
        self.begin_deliveries(dispatching.as_ref().map(Dispatching::cause));
        self.carry_out(position);
        self.end_deliveries();
        self.end_dispatch(dispatching, &self.scratch.event_type, None);
        if self.graphs.reads(event.topic) {
            let (now, now_ns) = (self.clock.broker(), self.clock.utc_ns_of(self.clock.broker()));
            let created_ns = publication.created().map_or(now_ns, UtcTime::unix_nanos);
            self.graphs.supply((now, now_ns), event, created_ns, publication);
        }
        Ok(position)
    }

    /// Carries out what the broker wants done about no event.
    pub(super) fn carry_out_now(&mut self) {
        self.carry_out(self.log.as_ref().map(EventLog::next_position));
    }

    /// The same, and whatever that brings: a checkpoint that has arrived, say, acknowledges events.
    pub(super) fn carry_out_all(&mut self) {
        while !self.outputs.is_empty() {
            self.carry_out_now();
        }
    }

    /// Carries out what the broker wants done. Deliveries are of the event whose frames are made, which is at this place in the
    /// log; who falls behind reads on there.
    pub(super) fn carry_out(&mut self, position: Option<Position>) {
        let mut outputs = std::mem::take(&mut self.outputs);
        let mut has_caught_up = false;
        for output in outputs.drain(..) {
            match output {
                Output::Deliver { subscription, event } => {
                    self.hand_over(subscription, event, position);
                    self.context.counts.delivered.fetch_add(1, Relaxed);
                }
                Output::FellBehind { subscription } => {
                    self.tell_behind(subscription, position.expect("only who has a log to read falls behind"));
                }
                Output::TellLoss { subscription, events, during } => self.tell_loss(subscription, events, during),
                Output::TellLast { subscription, event } => self.tell_last(subscription, event),
                Output::Shed { stream, sequence, slot, reason } => {
                    self.dropped(stream, slot, reason);
                    self.tell_shed(stream, sequence);
                }
                Output::Freed { slot } => self.free(slot),
                Output::Covered { stream, through } => {
                    self.answer_covered(stream, through);
                    self.promise(stream, through);
                }
                Output::NotRequired { subscription, owed } => self.no_more_required(subscription, owed),
                Output::Arrived { checkpoint } => self.checkpoint_arrived(checkpoint),
                Output::CaughtUp => has_caught_up = true,
                Output::Closed { number: None, .. } => {}
                Output::Declare { .. } | Output::Discard { .. } | Output::Closed { .. } | Output::Replicated { .. } => {
                    self.tell_backup(&output)
                }
            }
        }
        // What that brings is behind everything that was to be done.
        outputs.append(&mut self.outputs);
        self.outputs = outputs;
        if has_caught_up {
            self.backup_has_caught_up();
        }
    }

    /// Puts the event whose frames are made into a subscriber's queue.
    fn hand_over(&mut self, subscription: SubscriptionKey, event: EventId, position: Option<Position>) {
        match self.broker.receiver(subscription) {
            Some(Receiver::Stream { slot, listening }) => {
                let slot = *slot;
                let made = self.frames.made(listening.form);
                match self.nodes.token_for(listening) {
                    Some(token) => {
                        let frame = self.frames.made_with_token(listening.form, &token);
                        self.connections[slot].push_frame(&frame, made.len());
                    }
                    None => self.connections[slot].push_frame(made, made.len()),
                }
                self.dirty.push(slot);
                let serial = self.connections[slot].serial;
                self.note_delivery(Way::Stream(ConnectionKey { slot, serial }), event);
                // A long turn must not fill the queue of a subscriber that keeps up.
                let connection = &self.connections[slot];
                if connection.goes_before_log() && connection.queued_bytes() > self.context.limits.subscriber_queue_bytes_max / 4 {
                    self.write_out(slot);
                }
            }
            Some(Receiver::Push { queue, delivery, .. }) => {
                let json = self.frames.shared_json();
                self.pushing_bytes += json.len() as u64;
                push(queue, delivery, PushEvent { position, id: event, accepted_ns: self.clock.utc.unix_nanos(), json });
            }
            Some(Receiver::Link { slot, prefix }) => {
                let slot = *slot;
                let message = self.frames.made_message(self.endpoint.wants_metadata(slot));
                let is_much = self.endpoint.hand_over(slot, prefix, message);
                self.note_delivery(Way::Link(self.endpoint.key_of(slot)), event);
                if is_much {
                    self.write_link(slot);
                }
            }
            Some(Receiver::Dealer { slot, topic }) => {
                let slot = *slot;
                let message = self.frames.made_message(self.endpoint.wants_metadata(slot));
                let is_much = self.endpoint.hand_to_dealer(slot, topic, message);
                self.note_delivery(Way::Link(self.endpoint.key_of(slot)), event);
                if is_much {
                    self.write_link(slot);
                }
            }
            Some(Receiver::Graph) => self.graphs.hand(subscription),
            None => unreachable!("the broker delivers to subscriptions that are there"),
        }
    }
}

/// Returns the answer to an event that is not accepted, with `Retry-After` if the same event may be accepted later.
fn refused(refusal: NotTaken) -> Answer {
    let header = refusal.passes().then(|| ("Retry-After", "1".to_owned()));
    Answer { header, ..Refusal::from(refusal.error()).into() }
}

/// Reads an event, and asks whether its sender may publish it. Allocates only for a refusal, and for an event of a trace that does not carry it yet: its `metadata` are
/// written anew.
fn permitted<'r>(
    caller: &Caller,
    raw: &RawRequest<'r>,
    cause: Option<&Cause>,
    metadata: &'r mut String,
) -> Result<Authorized<PublishForm<'r>>, Answer> {
    let whole = || Request::from_raw(raw, caller.clone());
    let denied = |denial: Denial| Answer::from(whole().denied(&denial));
    let admitted = route::PUBLISH.admit(caller).map_err(denied)?;
    let is_plain = !raw.body.is_empty() && control::is_json(raw.content_type);
    if !is_plain && let Some(refusal) = control::check_body(&whole()) {
        return Err(refusal);
    }
    let text = std::str::from_utf8(raw.body).map_err(Refusal::malformed)?;
    let mut form: PublishForm<'r> = json::parse_object(text).map_err(Refusal::malformed)?;
    if let Some(cause) = cause {
        form.carry(cause, metadata);
    }
    admitted.permit(form).map_err(denied)
}

/// Puts an event into a task's queue.
pub(super) fn push(queue: &PushQueue, delivery: &Delivery, event: PushEvent) {
    delivery.handed_over(event.position);
    // The task lives as long as the subscription, but for a runtime that is shutting down.
    if queue.send(Queued::Event(event)).is_err() {
        tracing::debug!("a pushed event has come too late");
    }
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::common_name::CloudCommonName;

    use super::*;
    use crate::http::Persistence;

    fn status(caller: &Caller, body: &str) -> u16 {
        let raw = RawRequest {
            method: "POST",
            target: "/eventhandler/publish",
            host: "h:8455",
            content_type: "application/json",
            keep_alive: Persistence::Keep,
            body: body.as_bytes(),
            ..RawRequest::default()
        };
        permitted(caller, &raw, None, &mut String::new()).map_or_else(|answer| answer.status, |_| 200)
    }

    #[test]
    fn a_system_publishes_in_its_own_name_only() {
        let cloud = CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap();
        let caller = |name: &str| Caller::certified(name, &cloud);
        let own = r#"{"eventType":"hot","source":{"systemName":"Sensor","address":"h","port":1},"payload":"1"}"#;
        let escaped = r#"{"eventType":"hot","source":{"systemName":"\u0073ensor"},"payload":"1"}"#;
        let sensor = caller("sensor.cloud.operator.arrowhead.eu");
        for body in [own, escaped] {
            assert_eq!((status(&sensor, body), status(&Caller::Anonymous, body)), (200, 200), "{body}");
            for other in ["other", "sysop", "eventhandler", "orchestrator"] {
                assert_eq!(status(&caller(&format!("{other}.cloud.operator.arrowhead.eu")), body), 401, "{other} {body}");
            }
        }
        // The name in the certificate comes before what is wrong with the body, and that before whose it is.
        let strangers = ["", "cloud.operator.arrowhead.eu", "a.sensor.cloud.operator.arrowhead.eu", "sensor.other.operator.arrowhead.eu"];
        for name in strangers {
            assert_eq!((status(&caller(name), own), status(&caller(name), "{"), status(&caller(name), "")), (401, 401, 401), "{name}");
        }
        assert_eq!((status(&sensor, "{"), status(&sensor, "")), (400, 400));
        assert_eq!(status(&sensor, "{}"), 200, "what is missing is told by the rules of publishing");
    }
}
