//! Events of the fleet: published under their number in the fleet's stream, and acknowledged there when they are on the disk, of a pair on both.
//!
//! Of a real-time topic they come no faster than its period lets one publisher: however many have waited for the edge to be reached, none is excess, which could be dropped for the next one.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bodkin_arrowhead::{error::ArrowheadError, publication};
use bodkin_broker::{EventId, Incarnation, Instant, PublisherId, Refusal, Sequence, Terms, TopicId};

use super::{
    Shard, Waiting,
    not_taken::NotTaken,
    publish::{Numbering, Published},
};
use crate::{
    fleet::{FleetEvent, FleetTold, FromFleet},
    inbox::Inbox,
};

/// How long it is until one that cannot be taken now is tried again, where nothing says when it can be.
const REST: Duration = Duration::from_millis(200);

/// Where the fleet is told what became of its events, and from when on each real-time topic takes the next one.
#[derive(Default)]
pub(super) struct FleetEnd {
    told: Option<Arc<Inbox<FleetTold>>>,
    due: BTreeMap<TopicId, Instant>,
}

impl FleetEnd {
    /// How long it is until a topic takes the next event of the fleet; zero: now.
    fn wait(&self, topic: TopicId, now: Instant) -> Duration {
        self.due.get(&topic).map_or(Duration::ZERO, |due| due.since(now))
    }

    /// A topic has taken one.
    fn taken(&mut self, topic: TopicId, terms: &Terms, now: Instant) {
        self.due.insert(topic, now.plus_nanos(terms.period_ns));
    }
}

/// Which message of which stream an event was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FleetMessage {
    pub incarnation: Incarnation,
    pub sequence: Sequence,
}

impl Shard {
    /// Takes events in their order; behind one that cannot be taken now none is tried.
    pub(super) fn take_from_fleet(&mut self, FromFleet { events, told }: FromFleet) {
        self.fleet.told = Some(told);
        let mut later: Option<(Option<String>, Duration)> = None;
        for event in &events {
            let message = FleetMessage { incarnation: event.incarnation, sequence: event.sequence };
            if let Some((why, rest)) = &later {
                self.tell_fleet(message, |sequence| FleetTold::Later(sequence, why.clone(), *rest));
                continue;
            }
            match self.take_fleet_event(event, message) {
                Ok(Published::AtOnce(Some(position))) => self.unsynced.publishers.push_back((position, Waiting::Fleet(message))),
                // It is told when it has gone out.
                Ok(Published::Kept { .. }) => {}
                Ok(Published::AtOnce(None) | Published::Known) => self.tell_fleet(message, FleetTold::Covered),
                Err(refusal @ (NotTaken::Rules(_) | NotTaken::TooLarge(_) | NotTaken::Header(_))) => {
                    self.give_fleet_event_up(event, message);
                    self.tell_fleet(message, |sequence| FleetTold::Refused(sequence, refusal.told()));
                }
                Err(refusal) => {
                    let (why, rest) = match refusal {
                        NotTaken::TooEarly(wait) => (None, wait),
                        refusal => (Some(refusal.told()), REST),
                    };
                    self.tell_fleet(message, |sequence| FleetTold::Later(sequence, why.clone(), rest));
                    later = Some((why, rest));
                }
            }
        }
        self.tell(FleetTold::HandedOver);
    }

    fn give_fleet_event_up(&mut self, event: &FleetEvent, FleetMessage { incarnation, sequence }: FleetMessage) {
        let publisher = PublisherId(event.source.0.unsigned_abs());
        if let Some(topic) = self.broker.topic_id(&self.scratch.event_type) {
            self.give_up(EventId { publisher, incarnation, topic, sequence });
        }
    }

    fn take_fleet_event(&mut self, event: &FleetEvent, message: FleetMessage) -> Result<Published, NotTaken> {
        // Who leads next is brought it again.
        if !self.leads() || self.hand_over.is_some() {
            return Err(NotTaken::Broker(Refusal::NotLeading));
        }
        let snapshot = self.context.store.snapshot();
        self.sync(&snapshot);
        let time = publication::told_time(&event.event).unwrap_or(self.clock.utc);
        let publication =
            publication::of_fleet(&event.event, &event.metadata, event.source, time, &mut self.scratch).map_err(NotTaken::Rules)?;
        self.check_length(&publication)?;
        let topic = self.broker.topic(&self.scratch.event_type)?;
        let terms = self.broker.terms(&self.scratch.event_type).map(|(_, terms)| *terms);
        let wait = self.fleet.wait(topic, self.clock.began());
        if terms.is_some() && !wait.is_zero() {
            return Err(NotTaken::TooEarly(wait));
        }
        let publisher = PublisherId(event.source.0.unsigned_abs());
        let name = EventId { publisher, incarnation: message.incarnation, topic, sequence: message.sequence };
        let taken = self.take(&snapshot, &publication, Numbering::Fleet(name))?;
        if let (Some(terms), Published::Kept { .. }) = (terms, &taken) {
            self.fleet.taken(topic, &terms, self.clock.began());
        }
        Ok(taken)
    }

    /// Tells the fleet that an event of its is where it is not lost, or why it is not.
    pub(super) fn answer_fleet(&self, message: FleetMessage, result: Result<(), &ArrowheadError>) {
        self.tell_fleet(message, |sequence| match result {
            Ok(()) => FleetTold::Covered(sequence),
            Err(error) => FleetTold::Later(sequence, Some(error.error_message.clone()), REST),
        });
    }

    /// Tells the fleet that an event of its was dropped, as its topic lets late events be: it is not to come again.
    pub(super) fn refuse_fleet(&self, message: FleetMessage, why: &ArrowheadError) {
        self.tell_fleet(message, |sequence| FleetTold::Refused(sequence, why.error_message.clone()));
    }

    fn tell_fleet(&self, message: FleetMessage, told: impl FnOnce((Incarnation, Sequence)) -> FleetTold) {
        self.tell(told((message.incarnation, message.sequence)));
    }

    fn tell(&self, told: FleetTold) {
        if let Some(fleet) = &self.fleet.told {
            fleet.post(told);
        }
    }
}
