//! Subscriptions of DEALERs: to one topic each, with what they ask of it and whether events wait for them.

use std::{sync::Arc, time::Duration};

use bodkin_arrowhead::name::EventType;
use bodkin_broker::{
    Overflow, SubscriptionKey,
    timing::Wish,
    wire::{ClientFrame, RefusalReason, WATERMARKS_MAX, Watermark, Watermarks},
};

use super::{
    super::{Shard, source::is_hearer},
    DEALER_SUBSCRIPTIONS_MAX,
};
use crate::{
    shard::{LinkKey, Receiver},
    topics::{TopicError, asking::Waiter, wish::Asker},
};

/// Longest time that a subscriber may be waited for.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A topic that a DEALER has subscribed to. There are tens of thousands of them, of which few ask anything.
#[derive(Default)]
pub struct Heard {
    /// `None`: the admission test is asked first.
    pub key: Option<SubscriptionKey>,
    /// Whether events wait for it.
    pub is_required: bool,
    /// What it asks of the topic, if it ever has.
    asks: Option<Box<Asks>>,
}

struct Asks {
    /// Who asks, by which the admission test knows it.
    asker: Asker,
    /// What is in force; `None`: nothing was admitted, so a refusal ends the subscription.
    wish: Option<Wish>,
    /// What it has asked last, until all questions are answered.
    asking: Option<Asking>,
}

struct Asking {
    wanted: Wanted,
    /// Questions that are not answered; the last answer counts.
    questions: usize,
}

impl Heard {
    /// Who asks for what it asks, if it does.
    pub fn asker(&self) -> Option<Asker> {
        self.asks.as_ref().map(|asks| asks.asker)
    }

    /// Whether a wish is another one than was asked last, or that is not answered yet.
    fn asks(&self, wish: Wish) -> bool {
        let Some(asks) = &self.asks else { return wish != Wish::default() };
        asks.asking.is_some() || asks.wish.unwrap_or_default() != wish
    }

    /// Whether nothing was admitted, and no question is pending.
    fn is_refused(&self) -> bool {
        self.asks.as_ref().is_some_and(|asks| asks.wish.is_none() && asks.asking.is_none())
    }
}

/// What a subscriber wants.
pub struct Wanted {
    /// The topic, as it spells it.
    pub spelled: Arc<str>,
    pub wish: Wish,
    pub wait: Option<Duration>,
    pub watermarks: Vec<Watermark>,
}

/// What became of a subscription that is not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// It is there, or noted until this node leads.
    Now,
    /// The admission test is asked first.
    Asked,
}

/// Why a subscription is not made.
pub struct Refused {
    pub reason: RefusalReason,
    pub text: String,
}

impl Refused {
    /// A later run of the same client has subscribed.
    pub fn later_run(text: String) -> Self {
        Self { reason: RefusalReason::OldIncarnation, text }
    }

    pub fn limit(text: String) -> Self {
        Self { reason: RefusalReason::Limit, text }
    }

    fn not_admitted(text: impl Into<String>) -> Self {
        Self { reason: RefusalReason::NotAdmitted, text: text.into() }
    }
}

impl Wanted {
    /// The topic, as stored.
    pub fn topic(&self) -> Result<EventType, Refused> {
        let told = |error| Refused { reason: RefusalReason::UnknownTopic, text: format!("the topic's name {error}") };
        EventType::parse(&self.spelled).map_err(told)
    }
}

impl Shard {
    /// Subscribes to a topic, or states anew what is asked of it and what the subscriber has.
    pub(super) fn subscribe_dealer(
        &mut self,
        slot: usize,
        spelled: &str,
        (loss_tolerance, deadline_ns): (Option<u32>, Option<u64>),
        wait_ns: Option<u64>,
        watermarks: Watermarks<'_>,
    ) {
        debug_assert!(watermarks.len() <= WATERMARKS_MAX, "a frame has no more");
        let wish = Wish::of_wire(loss_tolerance, deadline_ns);
        let wait = wait_ns.map(Duration::from_nanos);
        let wanted = Wanted { spelled: spelled.into(), wish, wait, watermarks: watermarks.iter().collect() };
        let made = if self.endpoint.follows { self.prepare(slot, wanted) } else { self.try_subscribe(slot, wanted) };
        match made {
            Ok(Made::Now) => self.tell_subscribed(slot, spelled),
            Ok(Made::Asked) => {}
            Err(Refused { reason, text }) => self.refuse_subscription(slot, spelled, reason, &text),
        }
    }

    pub(super) fn try_subscribe(&mut self, slot: usize, wanted: Wanted) -> Result<Made, Refused> {
        let topic = wanted.topic()?;
        let topic = topic.as_str();
        self.check_wanted(slot, topic, wanted.wait)?;
        // What was noted before is not what it wants now.
        self.forget_noted(slot, topic);
        let heard = self.broker.topic_id(topic).and_then(|id| self.endpoint.dealer(slot).heard.get(&id));
        if !heard.map_or(wanted.wish != Wish::default(), |heard| heard.asks(wanted.wish)) {
            return self.hear_wanted(slot, topic, wanted).map(|()| Made::Now);
        }
        let told = "the topic is not declared, so it promises nothing";
        let id = self.broker.topic_id(topic).ok_or_else(|| Refused::not_admitted(told))?;
        let (link, asker, wish) = (self.dealer_key(slot), self.context.asking.asker(), wanted.wish);
        let dealer = self.endpoint.dealer(slot);
        let heard = dealer.heard.entry(id).or_default();
        let in_force = heard.key.map(|_| Wish::default());
        let asks = heard.asks.get_or_insert_with(|| Box::new(Asks { asker, wish: in_force, asking: None }));
        let questions = asks.asking.as_ref().map_or(0, |asking| asking.questions) + 1;
        asks.asking = Some(Asking { wanted, questions });
        dealer.questions += 1;
        self.context.asking.ask(topic, asks.asker, wish, Waiter::Dealer(link));
        Ok(Made::Asked)
    }

    /// Whether a subscription has room and sense here.
    fn check_wanted(&mut self, slot: usize, topic: &str, wait: Option<Duration>) -> Result<(), Refused> {
        self.check_form(slot, topic, wait)?;
        if wait.is_some() && self.broker.terms(topic).is_none() {
            let told = "nothing is kept of a best-effort topic, so that it cannot wait for anybody: declare its period and deadline first";
            return Err(Refused::not_admitted(told));
        }
        Ok(())
    }

    /// Whether a subscription has room and sense, whatever topics there are.
    pub(super) fn check_form(&mut self, slot: usize, topic: &str, wait: Option<Duration>) -> Result<(), Refused> {
        if let Some(system) = self.endpoint.links[slot].caller.system()
            && let Err(text) = is_hearer(&self.context.store.snapshot(), system)
        {
            return Err(Refused { reason: RefusalReason::NotAuthorized, text });
        }
        let topic_id = self.broker.topic_id(topic);
        let dealer = self.endpoint.dealer(slot);
        let is_known = topic_id.is_some_and(|id| dealer.heard.contains_key(&id)) || dealer.noted.contains_key(topic);
        if dealer.heard.len() + dealer.noted.len() >= DEALER_SUBSCRIPTIONS_MAX && !is_known {
            return Err(Refused::limit(format!(
                "a DEALER subscribes to at most {DEALER_SUBSCRIPTIONS_MAX} topics: use another connection"
            )));
        }
        let Some(wait) = wait else { return Ok(()) };
        if dealer.hello.as_ref().is_none_or(|hello| hello.name.is_empty()) {
            return Err(Refused::not_admitted("whoever is waited for says hello first, with a name by which it is found again"));
        }
        if wait > WAIT_MAX {
            let told = format!("{} s is long to wait for a subscriber: ask for at most {} s", wait.as_secs(), WAIT_MAX.as_secs());
            return Err(Refused::not_admitted(told));
        }
        Ok(())
    }

    /// Checks that a topic may wait as long as a required subscriber requests.
    fn check_wait(&self, topic: &str, wait: Option<Duration>) -> Result<(), Refused> {
        let (Some(wait), Some(declared)) = (wait, self.real_time_topic(topic)) else { return Ok(()) };
        let max = Duration::from_nanos(declared.spec.required_for_max.get().unsigned_abs());
        if wait <= max {
            return Ok(());
        }
        let (found, max) = (wait.as_secs_f64(), max.as_secs_f64());
        Err(Refused::not_admitted(format!(
            "{topic} waits for a required subscriber for at most {max} s (required_for_max), and {found} s were requested: request at most {max} s"
        )))
    }

    /// Makes the subscription, or brings what it missed to one that is there.
    pub(super) fn hear_wanted(&mut self, slot: usize, topic: &str, wanted: Wanted) -> Result<(), Refused> {
        self.check_wait(topic, wanted.wait)?;
        let Wanted { spelled, wish, wait, watermarks } = wanted;
        let id = self.broker.topic_id(topic);
        let heard = id.and_then(|id| self.endpoint.dealer(slot).heard.get_mut(&id));
        let known = heard.as_ref().and_then(|heard| heard.key.map(|key| (key, heard.is_required)));
        if let (Some(heard), Some((key, is_required))) = (heard, known)
            && is_required != wait.is_some()
        {
            heard.key = None;
            self.forget_subscription(key);
        }
        // Nearly everybody spells a topic as it is stored: then its name is there once.
        let stored = id.map(|id| self.broker.topic_name(id)).filter(|stored| ***stored == *spelled).cloned();
        let receiver = Receiver::Dealer { slot, topic: stored.unwrap_or(spelled) };
        let made = match (known.filter(|(_, is_required)| *is_required == wait.is_some()), wait) {
            (Some((key, _)), None) => Ok(key),
            (None, None) => self.subscribe_to(topic, receiver),
            (_, Some(wait)) => {
                let name = self.required_name(slot);
                self.require_for(slot, (id.expect("it has terms"), name), receiver, wait, &watermarks)
            }
        };
        let key = made?;
        let id = self.broker.topic_id(topic).expect("it is subscribed to");
        let heard = self.endpoint.dealer(slot).heard.entry(id).or_default();
        (heard.key, heard.is_required) = (Some(key), wait.is_some());
        heard.asks.iter_mut().for_each(|asks| asks.wish = Some(wish));
        self.count_subscriptions();
        Ok(())
    }

    /// Makes a subscription that is not required, before the admission test is asked for its wish. One that exists stays as it is.
    pub(super) fn hear_before_admission(&mut self, slot: usize, topic: &str, spelled: Arc<str>) -> Result<(), Refused> {
        let heard = self.broker.topic_id(topic).and_then(|id| self.endpoint.dealer(slot).heard.get(&id));
        if heard.is_some_and(|heard| heard.key.is_some() && !heard.is_required) {
            return Ok(());
        }
        self.hear_wanted(slot, topic, Wanted { spelled, wish: Wish::default(), wait: None, watermarks: Vec::new() })?;
        let asker = self.context.asking.asker();
        let id = self.broker.topic_id(topic).expect("it is subscribed to");
        let heard = self.endpoint.dealer(slot).heard.get_mut(&id).expect("it was just made");
        heard.asks = Some(Box::new(Asks { asker, wish: None, asking: None }));
        Ok(())
    }

    /// Refuses a subscription, and ends what was made of it before the admission test was asked.
    pub(super) fn refuse_wanted(&mut self, slot: usize, spelled: &str, Refused { reason, text }: Refused) {
        self.refuse_subscription(slot, spelled, reason, &text);
        let topic = self.topic_spelled(spelled);
        if topic.and_then(|topic| self.endpoint.dealer(slot).heard.get(&topic)).is_some_and(Heard::is_refused) {
            self.unsubscribe_dealer(slot, spelled);
        }
    }

    fn tell_subscribed(&mut self, slot: usize, topic: &str) {
        let epoch = self.epoch();
        self.endpoint.tell(slot, &ClientFrame::Subscribed { epoch, topic });
    }

    /// By what a required subscriber is found again: in secure mode its system, else what it says.
    fn required_name(&mut self, slot: usize) -> Arc<str> {
        match self.endpoint.links[slot].caller.system() {
            Some(system) => system.as_str().into(),
            None => self.endpoint.dealer(slot).hello.as_ref().expect("it was looked at").name.clone(),
        }
    }

    /// Makes a subscription of the broker.
    pub(super) fn subscribe_to(&mut self, topic: &str, receiver: Receiver) -> Result<SubscriptionKey, Refused> {
        let subscriptions_max = self.context.limits.subscriptions_max;
        if self.stream_count() >= subscriptions_max {
            let told = format!("there are {subscriptions_max} event streams and topics of ZMTP subscribers, which is the limit");
            return Err(Refused::limit(told));
        }
        if self.is_new_to_links(topic) {
            self.open_to_links(topic);
        }
        self.broker.subscribe(topic, receiver, Overflow::Loses).map_err(|error| Refused::limit(error.to_string()))
    }

    /// The admission test has answered, and the topic has its terms.
    pub(in crate::shard) fn dealer_answered(&mut self, link: LinkKey, event_type: &str, result: Result<(), TopicError>) {
        let Some(dealer) = self.endpoint.dealer_at(link) else { return };
        dealer.questions -= 1;
        let Some(heard) = self.broker.topic_id(event_type).and_then(|id| dealer.heard.get_mut(&id)) else { return };
        let Some(asks) = heard.asks.as_mut() else { return };
        let Some(asking) = asks.asking.as_mut() else { return };
        asking.questions -= 1;
        if asking.questions > 0 {
            return;
        }
        let Asking { wanted, .. } = asks.asking.take().expect("it is there");
        let spelled = wanted.spelled.clone();
        let heard = match result {
            Ok(()) => self.hear_wanted(link.slot, event_type, wanted),
            Err(error) => Err(Refused::not_admitted(error.to_string())),
        };
        match heard {
            Ok(()) => self.tell_subscribed(link.slot, &spelled),
            Err(refused) => self.refuse_wanted(link.slot, &spelled, refused),
        }
        if self.endpoint.links[link.slot].resumes(self.endpoint.queue_bytes_max) {
            self.endpoint.read_next_turn(link.slot);
        }
    }
}
