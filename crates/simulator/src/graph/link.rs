//! A link between two edges of a graph: the shard of the edge that makes a topic, a connection that breaks, and the edge that fetches it, whose graph is deployed anew at any instant.
//!
//! The topic has L = 0, and the other edge is a required subscriber. What is promised: the graph there takes every event once and in order, through broken connections, through new deployments that go on with
//! its states, and however late it acknowledges; where the other edge is a pair, through the death of its leader at any instant, too ([`pair`]); and in the end nobody keeps anything.

mod pair;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use bodkin_broker::{
    Accepted, Attachment, Authority, Epoch, Incarnation, Input, Instant, Output, Overflow, Publication, PublisherId, Refusal, Sequence,
    Shard, ShardLimits, StreamId, StreamIdentity, SubscriptionKey, TopicId, Wanted, Work,
    graph::{Carried, Graph, SupplierId, Taken, placement::origin},
    subscriber::{self, Beginning, Received, Session, Subscriber, SubscriberConfig, TopicKey},
    wire::{EventHeader, Flags, Watermark},
};
use bodkin_operators::{catalogue::KINDS, file};

use self::pair::Protection;
use super::{Broken, GraphViolation, leader::terms};
use crate::random::Random;

const EPOCH: Epoch = Epoch(1);
const RUN: Incarnation = Incarnation(1);
const PUBLISHER: PublisherId = PublisherId(7);
/// The leader's topic of which little is kept, so that the publisher has to wait.
const TOPIC: &str = super::leader::TOPICS[0];
const LIMITS: ShardLimits = ShardLimits { subscriptions_max: 4, topics_max: 4, queue_bytes_max: 1 << 20 };
const FOR_EVER: Duration = Duration::from_secs(1_000);
const CONFIG: SubscriberConfig = SubscriberConfig { acknowledge_every: u32::MAX, acknowledge_after: FOR_EVER, window: 64, streams_max: 4 };
/// What the office runs.
const GRAPH: &str = "[graph]\nname = \"office\"\n[[supplier]]\ntopic = \"A\"\nshape = \"f64\"\nperiod_ms = 1\n\
    [[operator]]\nname = \"mean\"\nkind = \"moving_average\"\ninputs = [\"A\"]\nwindow = 2\n[[output]]\ntopic = \"MEAN\"\nfrom = \"mean\"\n";

/// What the edge that fetches may do wrong, so that it is seen that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkFlaw {
    /// A new deployment does not know what the one before has taken.
    Forgets,
    /// It acknowledges what has come, and not what its graph has taken.
    AcknowledgesEarly,
    /// A pair acknowledges what its graph has taken, and does not wait for the checkpoint.
    AcknowledgesUnsafe,
}

/// What the edge that fetches is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetching {
    /// One node: it is not killed.
    Alone,
    /// A pair, whose leader dies at any instant at which the Backup may lead.
    Pair,
}

/// What a run has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkTally {
    /// Events that were published.
    pub published: u64,
    /// Connections that broke.
    pub cuts: u64,
    /// Deployments.
    pub deployments: u64,
    /// Events that were brought again to a connection.
    pub duplicates: u64,
    /// Events that were brought again to a deployment, and passed over.
    pub passed_over: u64,
    /// Leaders of the pair that died.
    pub crashes: u64,
    /// Of these, with events that were taken and in no checkpoint of the Backup's.
    pub crashes_with_unsafe: u64,
}

/// What goes to the edge that makes the topic.
enum Said {
    Attach(Vec<Watermark>),
    Delivered(Sequence),
}

struct Edges {
    tally: LinkTally,
    flaw: Option<LinkFlaw>,
    now: u64,
    press: Shard<()>,
    topic: TopicId,
    stream: StreamId,
    subscription: SubscriptionKey,
    /// Whether the press has a session, and whether the office has.
    is_connected: bool,
    to_office: VecDeque<EventHeader>,
    to_press: VecDeque<Said>,
    subscriber: Subscriber,
    topic_key: TopicKey,
    /// On its way to the office's shard.
    inbox: VecDeque<EventHeader>,
    /// Taken, and not acknowledged.
    owed: VecDeque<Sequence>,
    acknowledged: BTreeMap<(PublisherId, Incarnation), Sequence>,
    graph: Graph,
    carried: Carried,
    /// In a pair.
    protection: Option<Protection>,
    /// What the graph has taken.
    taken: Vec<u64>,
    outputs: Vec<Output>,
}

impl Edges {
    fn new(fetching: Fetching, flaw: Option<LinkFlaw>) -> Self {
        let mut press = Shard::new(Incarnation(1), LIMITS);
        let topic = press.admit(TOPIC, terms(TOPIC)).expect("there is room");
        let mut outputs = Vec::new();
        press.step(at(1), Input::Authority(Authority { epoch: EPOCH, until: Instant::NEVER }), &mut outputs);
        let subscription = press.subscribe(TOPIC, (), Overflow::Loses).expect("there is room");
        press.require(at(1), subscription, FOR_EVER, Attachment::Awaited);
        let stream = press
            .open_stream(&press.permit().expect("it leads"), StreamIdentity { topic, publisher: PUBLISHER, incarnation: RUN })
            .expect("there is room");
        let mut subscriber = Subscriber::new(CONFIG);
        let topic_key = subscriber.subscribe(Some(0), Beginning::Present);
        let file = file::parse(GRAPH, KINDS, |name| Ok(name.to_owned())).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
        Self {
            tally: LinkTally::default(),
            flaw,
            now: 1,
            press,
            topic,
            stream,
            subscription,
            is_connected: false,
            to_office: VecDeque::new(),
            to_press: VecDeque::new(),
            subscriber,
            topic_key,
            inbox: VecDeque::new(),
            owed: VecDeque::new(),
            acknowledged: BTreeMap::new(),
            graph: file.graph,
            carried: Carried::default(),
            protection: (fetching == Fetching::Pair).then(Protection::default),
            taken: Vec::new(),
            outputs,
        }
    }

    fn act(&mut self, random: &mut Random) -> Result<(), Broken> {
        self.now += 1 + random.below(10);
        let most = random.below(5);
        let kinds = if self.protection.is_some() { 26 } else { 16 };
        match random.below(kinds) {
            0..=3 => self.publish()?,
            4..=6 => self.work(most),
            7..=8 => self.bring(most)?,
            9..=10 => self.take(most)?,
            11 => self.acknowledge(most),
            12 => self.hear(most),
            13 => self.cut(),
            14 => self.connect(),
            16 => self.send_checkpoint(),
            17 => self.bring_checkpoint(),
            18 => self.hear_backup(),
            19 => self.backup_changes(random.chance(1, 4)),
            20..=21 => self.crash(),
            22..=25 => self.work_over_the_link()?,
            _ if random.chance(1, 3) => self.deploy(),
            _ => {}
        }
        Ok(())
    }

    /// The press's graph makes a result; where nothing more can be kept it waits.
    fn publish(&mut self) -> Result<(), Broken> {
        let sequence = Sequence(self.tally.published + 1);
        let event = Publication { epoch: Epoch::NONE, sequence, created: at(self.now), is_resent: false, has_wrong_clock: false };
        match self.press.accept(at(self.now), self.press.permit().expect("it leads"), self.stream, event) {
            Ok(Accepted::Kept { .. }) => self.tally.published += 1,
            Err(Refusal::Full { .. }) => {}
            other => return Err(format!("a result of the press is {other:?}")),
        }
        self.carry_out();
        Ok(())
    }

    /// The press hands events to the connection.
    fn work(&mut self, most: u64) {
        for _ in 0..most {
            let Some(work) = self.press.next(at(self.now), &mut |(), _| Wanted::Bytes(0), &mut self.outputs) else { break };
            let is_for_office = self.outputs.iter().any(|output| matches!(output, Output::Deliver { .. }));
            if let (Work::Dispatch { event, .. }, true) = (work, is_for_office && self.is_connected) {
                let flags = Flags { derived: true, ..Flags::default() };
                let (publisher, incarnation, sequence) = (event.publisher, event.incarnation, event.sequence);
                self.to_office.push_back(EventHeader { flags, publisher, incarnation, sequence, created_utc_ns: self.now, epoch: EPOCH });
            }
            self.carry_out();
        }
        self.press.end_turn(at(self.now), &mut self.outputs);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        // Deliveries were looked at; the rest concerns publishers and a Backup.
        self.outputs.clear();
    }

    /// Events come to the office's carrier.
    fn bring(&mut self, most: u64) -> Result<(), Broken> {
        for header in self.to_office.drain(..self.to_office.len().min(most as usize)).collect::<Vec<_>>() {
            let mut told = Vec::new();
            match self.subscriber.receive(at(self.now), Session::One, self.topic_key, &header, &mut told) {
                Received::New(_) | Received::Late(_) => self.inbox.push_back(header),
                Received::Duplicate | Received::Old => self.tally.duplicates += 1,
                other => return Err(format!("event {} is {other:?}", header.sequence.0)),
            }
            if self.flaw == Some(LinkFlaw::AcknowledgesEarly) {
                self.owed.push_back(header.sequence);
            }
        }
        Ok(())
    }

    /// The office's graph takes them.
    fn take(&mut self, most: u64) -> Result<(), Broken> {
        for header in self.inbox.drain(..self.inbox.len().min(most as usize)).collect::<Vec<_>>() {
            let publisher =
                origin::arrived(bodkin_broker::graph::placement::EdgeId::of(0), 2, header.publisher).map_err(|error| error.to_string())?;
            let taken = Taken { supplier: SupplierId::of(0), publisher, incarnation: header.incarnation, through: header.sequence };
            let cover = self.protection.as_mut().map(|protection| &mut protection.cover);
            let came = self.carried.arrive(cover, at(self.now), &taken);
            if came.is_new {
                let expected = self.taken.len() as u64 + 1;
                if header.sequence.0 != expected {
                    return Err(format!("the graph takes event {}, where {expected} is next", header.sequence.0));
                }
                self.taken.push(header.sequence.0);
            } else {
                self.tally.passed_over += 1;
            }
            if came.is_safe || self.flaw == Some(LinkFlaw::AcknowledgesUnsafe) {
                self.owed.push_back(header.sequence);
            }
        }
        self.let_go();
        Ok(())
    }

    fn acknowledge(&mut self, most: u64) {
        for through in self.owed.drain(..self.owed.len().min(most as usize)).collect::<Vec<_>>() {
            let known = self.acknowledged.entry((PUBLISHER, RUN)).or_insert(through);
            *known = through.max(*known);
            if self.is_connected {
                self.to_press.push_back(Said::Delivered(through));
            }
        }
    }

    /// The press hears what the office says.
    fn hear(&mut self, most: u64) {
        for said in self.to_press.drain(..self.to_press.len().min(most as usize)).collect::<Vec<_>>() {
            match said {
                Said::Attach(watermarks) => self.press.attach(at(self.now), self.subscription, (), watermarks, &mut self.outputs),
                Said::Delivered(through) => {
                    let delivered = Input::Delivered { subscription: self.subscription, stream: self.stream, through };
                    self.press.step(at(self.now), delivered, &mut self.outputs);
                }
            }
            self.carry_out();
        }
    }

    /// The connection breaks with everything that is on its way.
    fn cut(&mut self) {
        if std::mem::take(&mut self.is_connected) {
            self.tally.cuts += 1;
            self.to_office.clear();
            self.to_press.clear();
            self.subscriber.step(at(self.now), subscriber::Input::Closed(Session::One), &mut Vec::new());
            self.press.step(at(self.now), Input::Detached { subscription: self.subscription }, &mut self.outputs);
            self.carry_out();
        }
    }

    fn connect(&mut self) {
        if std::mem::replace(&mut self.is_connected, true) {
            return;
        }
        let mut told = Vec::new();
        self.subscriber.step(at(self.now), subscriber::Input::Connected(Session::One), &mut told);
        let leads = subscriber::Input::Leader { session: Session::One, epoch: EPOCH, is_leader: true };
        self.subscriber.step(at(self.now), leads, &mut told);
        assert_eq!(told, [subscriber::Output::Attach { session: Session::One }]);
        // What is acknowledged counts, and not what has come.
        let watermark = |((publisher, incarnation), through): (&(PublisherId, Incarnation), &Sequence)| Watermark {
            publisher: *publisher,
            incarnation: *incarnation,
            through: *through,
        };
        self.to_press.push_back(Said::Attach(self.acknowledged.iter().map(watermark).collect()));
    }

    /// The graph of the office is deployed anew, with its states: a new session, a new subscriber.
    fn deploy(&mut self) {
        self.tally.deployments += 1;
        self.begin_anew();
        let before = std::mem::take(&mut self.carried);
        if self.flaw != Some(LinkFlaw::Forgets) {
            self.carried.inherit(&self.graph, &self.graph, &before);
        }
        if let Some(protection) = &mut self.protection {
            protection.succeed();
        }
    }

    /// A deployment or a leader begins: nothing of what was under way to the one before is known here.
    fn begin_anew(&mut self) {
        self.cut();
        self.inbox.clear();
        self.owed.clear();
        self.acknowledged.clear();
        self.subscriber = Subscriber::new(CONFIG);
        self.topic_key = self.subscriber.subscribe(Some(0), Beginning::Present);
    }

    /// Everything that is under way over the link comes to its end, and what is taken by that is acknowledged as far as it may be.
    fn work_over_the_link(&mut self) -> Result<(), Broken> {
        self.hear(u64::MAX);
        self.work(64);
        self.bring(u64::MAX)?;
        self.take(u64::MAX)?;
        self.acknowledge(u64::MAX);
        self.hear(u64::MAX);
        Ok(())
    }

    /// Until nothing is left to be done.
    fn settle(&mut self) -> Result<(), Broken> {
        self.connect();
        for _ in 0..64 {
            self.now += 100;
            self.work_over_the_link()?;
            self.send_checkpoint();
            self.bring_checkpoint();
            self.hear_backup();
        }
        let kept = self.press.kept();
        if self.taken.len() as u64 != self.tally.published || kept != 0 {
            let (taken, published) = (self.taken.len(), self.tally.published);
            return Err(format!("of {published} events the graph has {taken}, and {kept} are kept"));
        }
        debug_assert_eq!(
            self.press.stream(&StreamIdentity { topic: self.topic, publisher: PUBLISHER, incarnation: RUN }),
            Some(self.stream)
        );
        Ok(())
    }
}

fn at(now: u64) -> Instant {
    Instant::from_nanos(now)
}

/// Runs a link for so many steps, and then until nothing is left to be done.
pub fn run(seed: u64, steps: u32, fetching: Fetching) -> Result<LinkTally, GraphViolation> {
    run_with(seed, steps, fetching, None)
}

/// The same with an edge that does something wrong, which is to be found.
pub fn run_with(seed: u64, steps: u32, fetching: Fetching, flaw: Option<LinkFlaw>) -> Result<LinkTally, GraphViolation> {
    let (mut random, mut edges) = (Random::new(seed), Edges::new(fetching, flaw));
    for step in 0..steps {
        edges.act(&mut random).map_err(|what| GraphViolation { seed, step, what })?;
    }
    edges.settle().map_err(|what| GraphViolation { seed, step: steps, what })?;
    Ok(edges.tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(fetching: Fetching) -> LinkTally {
        let mut all = LinkTally::default();
        for seed in 0..500 {
            let tally = run(seed, 400, fetching).unwrap_or_else(|violation| panic!("{violation}"));
            all.published += tally.published;
            all.cuts += tally.cuts;
            all.deployments += tally.deployments;
            all.duplicates += tally.duplicates;
            all.passed_over += tally.passed_over;
            all.crashes += tally.crashes;
            all.crashes_with_unsafe += tally.crashes_with_unsafe;
        }
        all
    }

    #[test]
    fn every_event_is_taken_once_and_in_order_through_cuts_and_deployments() {
        let all = all(Fetching::Alone);
        assert!(all.published > 5_000 && all.cuts > 1_000 && all.deployments > 1_000, "{all:?}");
        assert!(all.duplicates > 100 && all.passed_over > 100, "both ways of knowing an event are used: {all:?}");
    }

    #[test]
    fn every_event_is_taken_once_and_in_order_through_the_deaths_of_a_pairs_leaders() {
        let all = all(Fetching::Pair);
        assert!(all.published > 3_000 && all.cuts > 1_000 && all.deployments > 1_000, "{all:?}");
        assert!(all.crashes > 500 && all.crashes_with_unsafe > 100, "{all:?}");
    }

    #[test]
    fn a_seed_repeats_its_run() {
        assert_eq!(run(5, 300, Fetching::Pair), run(5, 300, Fetching::Pair));
        assert_ne!(run(5, 300, Fetching::Alone), run(6, 300, Fetching::Alone));
    }

    #[test]
    fn what_an_edge_does_wrong_is_found() {
        for (fetching, flaw) in [
            (Fetching::Alone, LinkFlaw::Forgets),
            (Fetching::Alone, LinkFlaw::AcknowledgesEarly),
            (Fetching::Pair, LinkFlaw::AcknowledgesUnsafe),
        ] {
            let found: Vec<String> =
                (0..100).filter_map(|seed| run_with(seed, 400, fetching, Some(flaw)).err()).map(|violation| violation.what).collect();
            assert!(found.iter().any(|what| what.contains("is next")), "{flaw:?} is not found as such: {found:?}");
        }
    }
}
