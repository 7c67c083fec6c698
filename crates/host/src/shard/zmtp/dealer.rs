//! DEALER: the reliable form. Its clients number their events and keep them until they are covered, and acknowledge what they hear.
//!
//! A message of one frame is a command (`broker::wire::ClientFrame`), one of three an event with its header, one of two an event without guarantees, as PUB
//! sends it; a fourth frame has an event's metadata. What the other side does with all this is `broker::publisher` and `broker::subscriber`.

mod acknowledge;
mod clock;
mod leave;
mod missed;
mod prepare;
mod publish;
mod refusals;
mod required;
mod runs;
mod subscribe;
mod tell;
#[cfg(test)]
mod tests;
mod watch;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use bodkin_arrowhead::name::SystemName;
use bodkin_broker::{Epoch, Incarnation, TopicId, wire::ClientFrame};
use bodkin_zmtp::Message;

pub use self::publish::Numbered;
use self::subscribe::{Heard, Wanted};
pub(super) use self::{missed::Missed, required::Required, runs::Runs};
use super::{LinkKey, Role, Shard, publish::EventFrames};
use crate::{control, peer_clock::PeerClock};

/// Topics that one link may subscribe to; one more is refused and told.
pub const DEALER_SUBSCRIPTIONS_MAX: usize = 100_000;

/// What a DEALER has said and asked for.
pub struct Dealer {
    /// As whom it publishes, or why it cannot.
    system: Result<SystemName, String>,
    hello: Option<Hello>,
    pub heard: BTreeMap<TopicId, Heard>,
    /// Subscriptions that are made when this node leads, by topic, as stored.
    noted: BTreeMap<Arc<str>, Wanted>,
    /// Subscriptions that exist, and for whose wishes the admission test is asked when this node leads. A topic is not in `noted` too.
    wishes: BTreeMap<Arc<str>, Wanted>,
    /// Questions to the admission test that are not answered; it is not read until they are.
    questions: usize,
    /// Something was offered to it that had no room.
    is_full: bool,
    /// What its host's clock shows.
    clock: PeerClock,
    /// It wants to know what is guaranteed.
    watches: bool,
}

/// Who a client says that it is.
#[derive(Clone)]
struct Hello {
    name: Arc<str>,
    incarnation: Incarnation,
}

impl Dealer {
    /// One that has said nothing yet.
    pub fn new(system: Result<SystemName, String>, now: Instant) -> Self {
        let (heard, noted, wishes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { system, hello: None, heard, noted, wishes, questions: 0, is_full: false, clock: PeerClock::new(now), watches: false }
    }

    /// Whether it is a subscriber.
    pub fn hears(&self) -> bool {
        !(self.heard.is_empty() && self.noted.is_empty())
    }

    /// The name that it has given.
    pub fn name(&self) -> Option<&str> {
        self.system.as_ref().ok().map(SystemName::as_str)
    }

    /// Whether it has to wait for the admission test.
    pub fn waits(&self) -> bool {
        self.questions > 0
    }
}

impl Shard {
    /// Takes a message of a DEALER; the error is what its link is ended with.
    pub(super) fn take_dealer_message(&mut self, slot: usize, message: &Message<'_>) -> Result<(), String> {
        if let Some([command]) = message.split() {
            return self.dealer_command(slot, command);
        }
        match EventFrames::read(message) {
            Some(EventFrames { texts, header: None }) => {
                self.dealer_event_without_header(slot, texts);
                Ok(())
            }
            Some(EventFrames { texts, header: Some(header) }) => self.dealer_event(slot, texts, header),
            None => {
                let count = message.frame_count();
                Err(format!(
                    "a DEALER sends commands of one frame and events of two to four (event type, payload, header, metadata): {count} came"
                ))
            }
        }
    }

    fn dealer_command(&mut self, slot: usize, bytes: &[u8]) -> Result<(), String> {
        let command = ClientFrame::decode(bytes).map_err(|error| format!("a command cannot be read: {error}"))?;
        if self.was_said_to_an_earlier_leader(&command) {
            return Ok(());
        }
        match command {
            ClientFrame::Hello { incarnation, name, .. } => self.greet(slot, name, incarnation)?,
            ClientFrame::Subscribe { loss_tolerance, deadline_ns, required, wait_ns, topic, watermarks, .. } => {
                let wait_ns = required.then_some(wait_ns);
                self.subscribe_dealer(slot, topic, (loss_tolerance, deadline_ns), wait_ns, watermarks);
            }
            ClientFrame::Unsubscribe { topic, .. } => self.unsubscribe_dealer(slot, topic),
            ClientFrame::Delivered { publisher, incarnation, through, topic, .. } => {
                self.dealer_has(slot, topic, publisher, incarnation, through);
            }
            ClientFrame::Resume { incarnation, from, to, topic, .. } => self.resume_run(slot, topic, incarnation, from, to),
            ClientFrame::Last { incarnation, sequence, topic, .. } => self.repeat_cover(slot, topic, incarnation, sequence),
            ClientFrame::ClockRequest { sent_utc_ns, .. } => self.tell_clock(slot, sent_utc_ns),
            ClientFrame::ClockReply { sent_utc_ns, received_utc_ns, replied_utc_ns, .. } => {
                self.clock_told(slot, sent_utc_ns, received_utc_ns, replied_utc_ns);
            }
            ClientFrame::WatchGuarantee { .. } => self.watch_guarantee(slot),
            _ => return Err("a command of a broker's came, where one of a client's is expected".to_owned()),
        }
        Ok(())
    }

    /// Whether a client has said this in an epoch that is over; it says it anew when it hears who leads now. A resume of an earlier epoch would let what is covered be
    /// told before the publisher has said what it keeps. What a subscriber has stays true, and it subscribes once a connection.
    fn was_said_to_an_earlier_leader(&self, command: &ClientFrame<'_>) -> bool {
        use ClientFrame::{Delivered, Last, Resume};
        let is_said_to_a_leader = matches!(command, Delivered { .. } | Resume { .. } | Last { .. });
        is_said_to_a_leader && command.epoch() != Epoch::NONE && command.epoch() < self.epoch()
    }

    fn greet(&mut self, slot: usize, name: &str, incarnation: Incarnation) -> Result<(), String> {
        let (now, dealer) = (self.clock.utc, self.endpoint.dealer(slot));
        if dealer.hello.is_some() {
            return Err("a client says hello once".to_owned());
        }
        // A clock that was wrong once must not keep all later sessions of the name out.
        let incarnation = incarnation.min(publish::incarnation_max(now));
        dealer.hello = Some(Hello { name: name.into(), incarnation });
        let (epoch, is_leader) = (self.epoch(), self.leads());
        self.endpoint.tell(slot, &ClientFrame::Leader { epoch, is_leader });
        Ok(())
    }

    fn tell_clock(&mut self, slot: usize, sent_utc_ns: u64) {
        let now_utc_ns = control::now().unix_nanos();
        let epoch = self.epoch();
        let reply = ClientFrame::ClockReply { epoch, sent_utc_ns, received_utc_ns: now_utc_ns, replied_utc_ns: now_utc_ns };
        self.endpoint.tell(slot, &reply);
    }

    /// The topic that a client means. Nearly everybody spells it as it is stored.
    fn topic_spelled(&mut self, topic: &str) -> Option<TopicId> {
        self.broker.topic_id(topic).or_else(|| {
            let stored = &mut self.endpoint.spelling;
            stored.clear();
            // Every event of a client that spells it otherwise comes here.
            if topic.is_ascii() {
                stored.push_str(topic.trim());
                stored.make_ascii_uppercase();
            } else {
                stored.push_str(&topic.trim().to_uppercase());
            }
            self.broker.topic_id(stored)
        })
    }

    /// The system as which a DEALER publishes.
    fn dealer_system(&mut self, slot: usize) -> Result<SystemName, String> {
        self.endpoint.dealer(slot).system.clone()
    }

    fn dealer_key(&self, slot: usize) -> LinkKey {
        LinkKey { slot, serial: self.endpoint.links[slot].serial }
    }
}

impl super::Endpoint {
    /// The DEALER of a link that is one.
    fn dealer(&mut self, slot: usize) -> &mut Dealer {
        match &mut self.links[slot].role {
            Role::Dealer(dealer) => dealer,
            _ => unreachable!("only a DEALER sends commands"),
        }
    }

    /// Which run of its client a DEALER's link is of; 0 where the client has not said so, or the link has gone.
    fn run_on(&mut self, link: LinkKey) -> Incarnation {
        let hello = self.dealer_at(link).and_then(|dealer| dealer.hello.as_ref());
        hello.map_or(Incarnation(0), |hello| hello.incarnation)
    }

    /// The DEALER of a link that may have gone, or be ending.
    fn dealer_at(&mut self, link: LinkKey) -> Option<&mut Dealer> {
        match &mut self.links.get_mut(link.slot).filter(|at| at.serial == link.serial)?.role {
            Role::Dealer(dealer) => Some(dealer),
            _ => None,
        }
    }
}
