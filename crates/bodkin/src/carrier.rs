//! What carries the links of graphs over several edges: a real-time subscriber at another edge, on a thread of its own, for each graph and edge (`bodkin_host::graph::EdgeLink`).

use std::{
    collections::BTreeMap,
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use bodkin_broker::graph::placement::KEPT_MAX;
use bodkin_client::realtime::{
    Beginning, Brokers, ClientSecurity, RealtimeSubscriber, SessionReport, SubscribedTopic, SubscriberConfig, SubscriberReport,
    Subscription,
};
use bodkin_host::graph::{Acknowledged, Carriers, EdgeLink, ReachedEdge};

/// Between two looks whether the link is still needed, and whether something is to be acknowledged, while nothing comes.
const TURN_MAX: Duration = Duration::from_millis(20);
/// While the shard has as much as may be under way to it.
const FULL_PAUSE: Duration = Duration::from_millis(1);
/// In front of the next attempt to subscribe to a topic that was refused, which the other edge may not know yet.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
/// Events of each publisher behind which it is known what has come.
const WINDOW_EVENTS: u32 = 4_096;
/// Pairs of topic and publisher on one link.
const STREAMS_MAX: usize = 16_384;
/// The host says what is acknowledged.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Carriers to edges: where their brokers are and how they are spoken to, without a client's name.
pub fn carriers(edges: BTreeMap<String, Brokers>) -> Carriers {
    let reached: Vec<ReachedEdge> = edges
        .iter()
        .map(|(name, brokers)| ReachedEdge { name: name.clone(), knows_by_key: matches!(brokers.security, ClientSecurity::Curve { .. }) })
        .collect();
    let carry = move |link: Arc<EdgeLink>| -> io::Result<()> {
        let known = edges.get(&link.edge).expect("a graph is deployed where its edges can be reached");
        // By this name the other edge knows that a subscriber which comes back is one that it keeps events for.
        let brokers = Brokers { name: format!("{}/{}", link.own, link.graph), ..Brokers::again(known) };
        thread::Builder::new().name("graph-link".to_owned()).spawn(move || {
            if let Err(error) = Carrier::connect(&link, brokers).and_then(Carrier::run) {
                link.is_down(format!("it cannot be carried: {error}"));
            }
        })?;
        Ok(())
    };
    Carriers::new(reached, Arc::new(carry))
}

/// One link at work.
struct Carrier<'l> {
    link: &'l Arc<EdgeLink>,
    subscriber: RealtimeSubscriber,
    topics: Vec<SubscribedTopic>,
    standing: Standing,
    acknowledged: Vec<Acknowledged>,
}

/// What is known of the subscriptions.
struct Standing {
    /// Which topics each session has subscribed to.
    subscribed: [Vec<bool>; 2],
    /// Topics that were refused, and when they are asked for again.
    refused: Vec<Option<Instant>>,
    /// Whether the last event of a topic was a graph's result; none where none has come yet.
    is_derived: Vec<Option<bool>>,
    /// Why the link is not up.
    why: Option<String>,
}

impl<'l> Carrier<'l> {
    fn connect(link: &'l Arc<EdgeLink>, brokers: Brokers) -> io::Result<Self> {
        let config =
            SubscriberConfig { acknowledge_every: u32::MAX, acknowledge_after: NEVER, window: WINDOW_EVENTS, streams_max: STREAMS_MAX };
        let mut subscriber = RealtimeSubscriber::connect(brokers, config)?.acknowledged_by_application();
        let topics = link.topics.iter().map(|topic| {
            let subscription = Subscription {
                loss_tolerance: None,
                deadline: None,
                required_for: topic.loss_tolerance.map(|_| KEPT_MAX),
                beginning: Beginning::Present,
            };
            subscriber.subscribe(&topic.topic, subscription)
        });
        let topics: Vec<SubscribedTopic> = topics.collect();
        let standing = Standing::of(topics.len());
        Ok(Self { link, subscriber, topics, standing, acknowledged: Vec::new() })
    }

    fn run(mut self) -> io::Result<()> {
        while !self.link.is_ended() {
            self.acknowledge();
            if !self.link.has_room() {
                thread::sleep(FULL_PAUSE);
                continue;
            }
            let Self { link, subscriber, topics, standing, .. } = &mut self;
            subscriber.turn(TURN_MAX, |report| standing.take(link, topics, report))?;
            self.subscribe_refused();
            self.tell();
        }
        self.leave()
    }

    /// Lets go what nobody here will need again.
    fn leave(&mut self) -> io::Result<()> {
        let left = self.link.left();
        if left.is_empty() {
            return Ok(());
        }
        self.acknowledge();
        left.into_iter().for_each(|topic| self.subscriber.unsubscribe(self.topics[topic]));
        self.subscriber.turn(TURN_MAX, |_| {})
    }

    fn acknowledge(&mut self) {
        self.link.take_acknowledged(&mut self.acknowledged);
        for Acknowledged { topic, publisher, incarnation, through } in self.acknowledged.drain(..) {
            self.subscriber.acknowledge(self.topics[topic], publisher, incarnation, through);
        }
    }

    fn subscribe_refused(&mut self) {
        let now = Instant::now();
        for (topic, refused) in self.topics.iter().zip(&mut self.standing.refused) {
            if refused.take_if(|at| *at <= now).is_some() {
                self.subscriber.subscribe_again(*topic);
            }
        }
    }

    fn tell(&mut self) {
        let standing = &mut self.standing;
        match self.subscriber.leader() {
            Some(leader) if standing.subscribed[leader as usize].iter().all(|is| *is) => {
                standing.why = None;
                self.link.is_up();
            }
            Some(_) => self.link.is_down(standing.why.clone().unwrap_or_else(|| "the other edge has not answered yet".to_owned())),
            None => self.link.is_down(standing.why.clone().unwrap_or_else(|| "no broker leads there".to_owned())),
        }
    }
}

impl Standing {
    fn of(topics: usize) -> Self {
        Self {
            subscribed: [vec![false; topics], vec![false; topics]],
            refused: vec![None; topics],
            is_derived: vec![None; topics],
            why: None,
        }
    }

    fn take(&mut self, link: &Arc<EdgeLink>, topics: &[SubscribedTopic], report: SubscriberReport<'_>) {
        let place = |topic: SubscribedTopic| topics.iter().position(|known| *known == topic).expect("only these are subscribed to");
        match report {
            SubscriberReport::Event(event) => {
                let topic = place(event.topic);
                self.is_derived[topic] = Some(event.header.flags.derived);
                link.bring(topic, event.header, event.payload, event.metadata);
            }
            SubscriberReport::Lost { topic, run, .. } => link.lost(place(topic), run),
            // What a publisher has numbered is missing with the next event, and is counted then. Results are not numbered in a row, and of what was lost in front of the first event no number tells.
            SubscriberReport::Overrun { topic, events, .. } if self.is_derived[place(topic)] != Some(false) => {
                link.lost(place(topic), events)
            }
            SubscriberReport::Overrun { .. } => {}
            SubscriberReport::Subscribed(topic, session) => self.subscribed[session as usize][place(topic)] = true,
            SubscriberReport::Refused { topic, session, text, .. } => {
                let topic = place(topic);
                self.subscribed[session as usize][topic] = false;
                self.refused[topic] = Some(Instant::now() + REFUSED_PAUSE);
                self.why = Some(format!("{}: {text}", link.topics[topic].topic));
            }
            SubscriberReport::TooManyStreams { topic, .. } => {
                self.why = Some(format!("{}: more than {STREAMS_MAX} publishers", link.topics[place(topic)].topic));
            }
            SubscriberReport::Session(SessionReport::Ended(session, end)) => {
                self.subscribed[session as usize].fill(false);
                self.why = Some(end.to_string());
            }
            SubscriberReport::Session(SessionReport::TwoLeaders(_)) => {
                self.why = Some("both of its brokers lead: they are no pair".to_owned());
            }
            SubscriberReport::Session(_) => {}
        }
    }
}
