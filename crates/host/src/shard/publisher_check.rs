//! Whether a system may publish a real-time topic: by the list in the topic's declaration, and by its publisher slots.

use std::sync::atomic::Ordering::Relaxed;

use bodkin_arrowhead::{error::ArrowheadError, record::SystemId, snapshot::Snapshot};
use bodkin_broker::{PublisherId, StreamId, TopicId};

use super::{
    Shard,
    not_taken::NotTaken,
    publish::Numbering,
    slots::{NoSlot, Registration, TopicSlots},
};
use crate::{
    seldom::SeldomOf,
    topics::{RealTimeTopic, parties::Rejection},
};

/// Slots for each publisher that a topic is declared for: a second one, so that a replaced publisher does not wait for its successor's slot.
const SLOTS_PER_PUBLISHER: usize = 2;
/// Holders of slots that a refusal names.
const NAMED_MAX: usize = 8;

/// The publisher slots of all topics, by the topic's number.
#[derive(Default)]
pub(super) struct PublisherSlots {
    /// `None`: nothing was published since the topic was declared.
    slots: Vec<Option<Box<TopicSlots>>>,
    rejections: SeldomOf,
}

impl PublisherSlots {
    fn of(&mut self, topic: TopicId) -> Option<&mut TopicSlots> {
        self.slots.get_mut(topic.0 as usize)?.as_deref_mut()
    }

    /// Forgets a topic's slots, because the topic is declared anew.
    pub fn forget(&mut self, topic: TopicId) {
        self.slots.get_mut(topic.0 as usize).map(Option::take);
    }
}

/// Why a publisher is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rejected {
    /// The topic's declaration names its publishers, and this system is not among them.
    NotListed,
    /// All slots are held by other systems.
    NoSlot,
    /// Events of another registration of the system are still to be received.
    Yielding,
}

impl Shard {
    /// Checks that a system may publish a real-time topic; counts and reports a rejection.
    pub(super) fn check_publisher(
        &mut self,
        snapshot: &Snapshot,
        topic: TopicId,
        source: SystemId,
        numbering: &Numbering,
    ) -> Result<(), NotTaken> {
        // Streams that are named elsewhere cannot take turns: their numbers do not continue here.
        let (publisher, may_share) = match numbering {
            Numbering::Derived(name) | Numbering::Fleet(name) => (name.publisher, false),
            Numbering::Ours(_) | Numbering::Publisher(_) => (PublisherId(source.0.unsigned_abs()), true),
        };
        let registration = Registration { publisher, source };
        self.admit_publisher(snapshot, topic, registration, may_share).map_err(|why| self.reject(snapshot, topic, source, &why))
    }

    /// Gives a publisher its slot, unless the topic's declaration or the other publishers keep it out.
    pub(super) fn admit_publisher(
        &mut self,
        snapshot: &Snapshot,
        topic: TopicId,
        registration: Registration,
        may_share: bool,
    ) -> Result<(), Rejected> {
        let declared = self.real_time.topic(topic);
        let name = name_of(snapshot, registration.source);
        if !declared.permitted.permits(name) {
            return Err(Rejected::NotListed);
        }
        let slots_max = declared.spec.publishers.get() as usize * SLOTS_PER_PUBLISHER;
        if self.publisher_slots.of(topic).is_none() {
            self.begin_slots(snapshot, topic, slots_max);
        }
        let (now, utc) = (self.clock.now, self.clock.utc);
        let slots = self.publisher_slots.of(topic).expect("the topic's slots were begun");
        if slots.heard(name, registration.publisher, now) {
            return Ok(());
        }
        // One registration of a name at a time may still have events here that it has no slot for, so that a name cannot use up the topic's streams.
        let yielded = slots.yielded(name).filter(|yielded| *yielded != registration.publisher && slots.shares(name, slots_max));
        if yielded.is_some_and(|yielded| self.streams_of(topic, yielded).next().is_some()) {
            return Err(Rejected::Yielding);
        }
        let slots = self.publisher_slots.of(topic).expect("the topic's slots were begun");
        let is_registered = |system| snapshot.system(system).is_some();
        let replaced =
            slots.admit((name, registration), (now, utc), slots_max, may_share, is_registered).map_err(|NoSlot| Rejected::NoSlot)?;
        self.real_time.topic(topic).counts.parties.set_holders(slots.holders(), slots.held());
        if let Some(former) = replaced {
            let streams: Vec<StreamId> = self.streams_of(topic, former).collect();
            streams.into_iter().for_each(|stream| self.broker.end_stream(stream));
        }
        Ok(())
    }

    /// Gives slots to the permitted publishers whose streams are open: a new leader continues those of its predecessor. Streams of others, from before the topic was
    /// declared anew, end without a slot.
    fn begin_slots(&mut self, snapshot: &Snapshot, topic: TopicId, slots_max: usize) {
        let at = topic.0 as usize;
        if at >= self.publisher_slots.slots.len() {
            self.publisher_slots.slots.resize_with(at + 1, || None);
        }
        let (mut slots, now, utc) = (Box::<TopicSlots>::default(), self.clock.now, self.clock.utc);
        let declared = self.real_time.topic(topic);
        for (_, identity) in self.broker.streams_on(topic) {
            let source = SystemId(identity.publisher.0.cast_signed());
            let Some(system) = snapshot.system(source) else { continue };
            let registration = Registration { publisher: identity.publisher, source };
            let name = system.system_name.as_str();
            if declared.permitted.permits(name) && !slots.heard(name, identity.publisher, now) {
                // Beyond the limit a publisher gets a slot with its next event, as any other does.
                let _ = slots.admit((name, registration), (now, utc), slots_max, true, |_| true);
            }
        }
        declared.counts.parties.set_holders(slots.holders(), slots.held());
        self.publisher_slots.slots[at] = Some(slots);
    }

    fn streams_of(&self, topic: TopicId, publisher: PublisherId) -> impl Iterator<Item = StreamId> {
        self.broker.streams_on(topic).filter(move |(_, identity)| identity.publisher == publisher).map(|(stream, _)| stream)
    }

    fn reject(&self, snapshot: &Snapshot, topic: TopicId, source: SystemId, why: &Rejected) -> NotTaken {
        let declared = self.real_time.topic(topic);
        let RealTimeTopic { event_type, counts, .. } = declared;
        let system = name_of(snapshot, source);
        let reason = told(declared, system, why);
        counts.refused.fetch_add(1, Relaxed);
        counts.publisher_rejected.fetch_add(1, Relaxed);
        let key = if *why == Rejected::NotListed { "publisher" } else { "publishers" };
        counts.parties.set_rejection(Rejection { system: system.into(), at: self.clock.utc, key, reason: reason.clone() });
        if let Some(times) = self.publisher_slots.rejections.due(&format!("{event_type} {system}")) {
            tracing::warn!(topic = &**event_type, system, times, reason, "publisher rejected");
        }
        match why {
            Rejected::NotListed => NotTaken::Rules(ArrowheadError::auth(reason)),
            Rejected::NoSlot | Rejected::Yielding => NotTaken::NoRoom(ArrowheadError::unavailable(reason)),
        }
    }
}

fn name_of(snapshot: &Snapshot, source: SystemId) -> &str {
    snapshot.system(source).map_or("", |system| system.system_name.as_str())
}

fn told(declared: &RealTimeTopic, system: &str, why: &Rejected) -> String {
    let RealTimeTopic { event_type, spec, permitted, counts, .. } = declared;
    match why {
        Rejected::NotListed => format!("{system} may not publish {event_type}: the topic's declaration states publisher = {permitted}."),
        Rejected::NoSlot => {
            let view = counts.parties.view();
            let named: Vec<&str> = view.holders.iter().take(NAMED_MAX).map(|holder| &*holder.system).collect();
            let more = if view.held > named.len() { format!(" and {} more", view.held - named.len()) } else { String::new() };
            format!(
                "{event_type} has no free publisher slot for {system}: all are held by {}{more} (publishers = {}, and a second slot for each). \
                State the topic's publishers in its declaration (publisher = NAME), or declare it with more publishers.",
                named.join(", "),
                spec.publishers
            )
        }
        Rejected::Yielding => format!(
            "{system} already publishes {event_type} from other registrations, and events of a former one are not received yet: publish from one registration."
        ),
    }
}
