//! Turns of the shard, driven by hand: how much one takes on, what it asks anew in the middle of one, and what is there before this node leads.

mod long_events;
mod new_leader;
mod slow_backup;

use std::{
    io::Write,
    sync::Arc,
    time::{Duration, Instant},
};

use bodkin_arrowhead::caller::Caller;
use bodkin_broker::{Backup, wire::Watermarks};
use bodkin_store::Store;
use bodkin_zmtp::Connection;
use tokio::{runtime::Runtime, sync::mpsc};

use super::*;
use crate::{
    config::HostConfig,
    destination::Destinations,
    gate::Gate,
    host_name::OwnNames,
    monitor::EventCounts,
    pair::{
        Leadership, News, PairHandle, Preparation, Promoted, RequiredSubscriber, boot_time,
        primary::{PairTerms, Primary},
    },
    push::PushContext,
    quotas::{ClientKey, FittedLimits, Quotas},
    shard::{
        EndpointConfig, ShardContext,
        zmtp::{link::Link, secure, socket::LinkSocket},
    },
    stage::Stages,
    stall::Stalls,
    topics::{RealTimeTopic, RealTimeTopics, asking::Asking},
};

const EPOCH: Epoch = Epoch(2);
const WAIT: Duration = Duration::from_secs(60);

/// The shard of a node that follows, whose thread is the test's, and what it holds on to.
struct Scene {
    shard: Shard,
    topics: Arc<RealTimeTopics>,
    /// Topics that the leader is said to have.
    prepared: u64,
    leadership: Arc<Leadership>,
    _directory: tempfile::TempDir,
    runtime: Runtime,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = HostConfig::on_loopback(directory.path());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let store = Store::open(directory.path()).unwrap().store;
        let topics = Arc::new(RealTimeTopics::new(config.platform, Default::default()).unwrap());
        let (poll, inbox) = Shard::inbox().unwrap();
        let (counts, deliveries, destinations) = (Arc::<EventCounts>::default(), Arc::default(), Destinations::new(&[]));
        let push = PushContext {
            store: store.clone(),
            inbox: inbox.clone(),
            counts: counts.clone(),
            timeout: config.limits.push_timeout,
            policy: config.limits.delivery,
            dead_letters_max: config.limits.dead_letters_max,
            destinations,
            security: None,
            backlog: None,
            log_of_pair: None,
            deliveries,
            started: Instant::now(),
            gatekeeper: None,
            traces: None,
            leadership: None,
        };
        let context = ShardContext {
            crossing: None,
            store,
            stages: Arc::<Stages>::default(),
            counts,
            stalls: Arc::new(Stalls::new(topics.assumed())),
            realtime: config.realtime.clone(),
            limits: config.limits,
            quotas: Quotas::new(&FittedLimits::new(&config.limits, false, 1024), &config.limits),
            durable: Default::default(),
            gate: Arc::new(Gate::new(OwnNames::new([]), Vec::new(), 0, false)),
            control: mpsc::channel(1).0,
            push,
            replay: None,
            security: None,
            asking: Asking::start(topics.clone(), inbox.clone()).unwrap(),
            runtime: runtime.handle().clone(),
        };
        let leadership = Arc::new(Leadership::default());
        let pair = PairHandle::without_node(leadership.clone(), Duration::from_millis(10));
        let primary = Primary::new(pair, directory.path().to_owned(), PairTerms::of(&config));
        let shard = Shard::new(context, poll, inbox, Vec::new(), EndpointConfig::default(), None, Some(primary)).unwrap();
        Self { shard, topics, prepared: 0, leadership, _directory: directory, runtime }
    }

    /// A topic of the leader's.
    fn declare(&mut self, topic: &str, is_durable: bool) {
        let ((made, terms), in_backup) = (self.topics.undeclared(topic), TopicId(self.prepared));
        self.prepared += 1;
        let topic = Arc::new(RealTimeTopic { is_durable, ..RealTimeTopic::clone(&made) });
        self.shard.prepare_for(vec![Preparation::Topic { topic, terms, in_backup }]);
    }

    /// A topic of the leader's, for whose subscriber `alarm` it waits.
    fn prepare(&mut self, topic: &str) {
        self.declare(topic, false);
        let required = RequiredSubscriber { topic: topic.into(), name: "alarm".into(), wait: WAIT };
        self.shard.prepare_for(vec![Preparation::Required(required)]);
    }

    /// A link of a DEALER that has said hello, and its client's end.
    fn dealer(&mut self, name: &str) -> (usize, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, peer) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let settings = self.shard.endpoint.settings.clone();
        let random = secure::random(&settings.security).unwrap();
        let protocol = Connection::server(settings, random, &mut Vec::new());
        let socket = LinkSocket::Tcp(mio::net::TcpStream::from_std(socket), peer);
        let permit = self.shard.context.quotas.zmtp.admit(ClientKey::Local).unwrap();
        let mut link = Link::new(socket, permit, protocol, &[], self.shard.endpoint.next_serial, Instant::now());
        self.shard.endpoint.next_serial = self.shard.endpoint.next_serial.saturating_add(1);
        let mut dealer = Dealer::new(Err("it only hears".to_owned()), Instant::now());
        dealer.hello = Some(Hello { name: name.into(), incarnation: Incarnation(1) });
        (link.role, link.caller) = (Role::Dealer(Box::new(dealer)), Caller::Anonymous);
        (self.shard.endpoint.insert(link), client)
    }

    fn subscribe(&mut self, slot: usize, topic: &str, deadline_ns: Option<u64>) {
        self.shard.subscribe_dealer(slot, topic, (None, deadline_ns), Some(WAIT.as_nanos() as u64), Watermarks::Own(&[]));
    }

    /// This node leads, with a Backup's machine that keeps nothing.
    fn leads(&mut self) {
        self.leadership.lead(EPOCH, bodkin_broker::Instant::NEVER);
        let promoted = Promoted { backup: Backup::new(), kept: Vec::new(), asked: Vec::new(), graphs: BTreeMap::new() };
        self.shard.pair_tells(News::Given(Some(Box::new(promoted))));
        self.shard.pair_tells(News::Leads { epoch: EPOCH });
    }

    fn heard(&mut self, slot: usize) -> usize {
        self.shard.endpoint.dealer(slot).heard.values().filter(|heard| heard.key.is_some()).count()
    }
}

#[test]
fn ten_thousand_required_subscriptions_are_there_before_this_node_leads() {
    const TOPICS: usize = 10_000;
    let mut scene = Scene::new();
    let (slot, _client) = scene.dealer("alarm");
    let names: Vec<String> = (0..TOPICS).map(|number| format!("T-{number}")).collect();
    // Half of them have a session here before the leader names them, a quarter behind that, a quarter has none.
    for (at, name) in names.iter().enumerate() {
        if at % 4 < 2 {
            scene.subscribe(slot, name, None);
        }
        scene.prepare(name);
        if at % 4 == 2 {
            scene.subscribe(slot, name, None);
        }
    }
    assert_eq!((scene.shard.broker.subscription_count(), scene.shard.endpoint.noted), (TOPICS, 0));
    assert_eq!(scene.heard(slot), TOPICS / 4 * 3);
    scene.leads();
    // Nothing was made, nothing is left to be made, and nobody's session has ended.
    assert_eq!(scene.shard.broker.subscription_count(), TOPICS);
    assert!(scene.shard.endpoint.is_idle() && scene.shard.leads());
    assert_eq!((scene.heard(slot), scene.shard.endpoint.links.len()), (TOPICS / 4 * 3, 1));
    assert_eq!(scene.shard.required().filter(|required| required.wait == WAIT).count(), TOPICS);
}

#[test]
fn what_is_asked_beyond_what_was_declared_is_asked_a_few_at_a_time_when_this_node_leads() {
    const TOPICS: usize = 200;
    let mut scene = Scene::new();
    let (slot, _client) = scene.dealer("alarm");
    for number in 0..TOPICS {
        scene.prepare(&format!("T-{number}"));
        scene.subscribe(slot, &format!("T-{number}"), Some(1_000_000_000));
    }
    scene.leads();
    assert_eq!((scene.shard.endpoint.noted, scene.shard.endpoint.dealer(slot).questions), (TOPICS, 0));
    let mut asked = Vec::new();
    while !scene.shard.endpoint.noting.is_empty() {
        scene.shard.make_noted();
        asked.push(scene.shard.endpoint.dealer(slot).questions);
    }
    assert_eq!(asked, [64, 128, 192, TOPICS]);
}

#[test]
fn whom_the_leader_names_is_waited_for_and_nobody_else() {
    let mut scene = Scene::new();
    let (slot, _client) = scene.dealer("alarm");
    let names = ["NAMED", "UNNAMED", "OVER"];
    names.iter().for_each(|name| scene.prepare(name));
    names.iter().for_each(|name| scene.subscribe(slot, name, None));
    let required = |scene: &Scene| scene.shard.required().map(|required| required.topic.to_string()).collect::<Vec<_>>();
    let no_more = |topic: &str| Preparation::NotRequired { topic: topic.into(), name: "alarm".into() };
    scene.shard.prepare_for(vec![no_more("UNNAMED")]);
    assert_eq!(required(&scene), names, "it has a session here");
    scene.shard.unsubscribe_dealer(slot, "OVER");
    assert_eq!(required(&scene), names, "the leader waits for it");
    scene.shard.forget_dealer(slot);
    assert_eq!(required(&scene), ["NAMED", "OVER"]);
    scene.shard.prepare_for(vec![no_more("OVER")]);
    assert_eq!(required(&scene), ["NAMED"]);
    scene.shard.prepare_for(vec![Preparation::NobodyRequired]);
    assert_eq!((required(&scene).len(), scene.shard.broker.subscription_count()), (0, 0));
    scene.leads();
    scene.shard.prepare_for(vec![Preparation::Required(RequiredSubscriber { topic: "NAMED".into(), name: "alarm".into(), wait: WAIT })]);
    assert_eq!(required(&scene).len(), 0, "who leads is not told whom another one waits for");
}

#[test]
fn changed_wait_of_named_subscriber_counts_at_new_leader() {
    const SHORT: Duration = Duration::from_millis(20);
    let mut scene = Scene::new();
    ["AWAY", "THERE", "LATER"].iter().for_each(|topic| {
        let required = |wait| vec![Preparation::Required(RequiredSubscriber { topic: (*topic).into(), name: "alarm".into(), wait })];
        scene.shard.prepare_for(required(SHORT));
        if *topic != "LATER" {
            scene.declare(topic, false);
        }
        if *topic == "THERE" {
            let (slot, _client) = scene.dealer("alarm");
            scene.shard.subscribe_dealer(slot, topic, (None, None), Some(SHORT.as_nanos() as u64), Watermarks::Own(&[]));
        }
        scene.shard.prepare_for(required(WAIT));
        scene.declare(topic, false);
    });
    assert_eq!(scene.shard.required().map(|required| required.wait).collect::<Vec<_>>(), [WAIT; 3]);
    scene.leads();
    std::thread::sleep(SHORT * 2);
    scene.shard.clock.advance();
    scene.shard.work(16);
    assert_eq!(scene.shard.required().count(), 3, "nobody was away for longer than the leader before waited");
}

#[test]
fn refused_topic_leaves_other_noted_ones_required() {
    let mut scene = Scene::new();
    let (slot, _client) = scene.dealer("alarm");
    let names = ["FIRST", "UNDECLARED", "LAST"];
    names.iter().for_each(|name| scene.subscribe(slot, name, Some(1_000_000_000)));
    ["FIRST", "LAST"].iter().for_each(|name| scene.prepare(name));
    scene.leads();
    scene.shard.make_noted();
    let link = scene.shard.dealer_key(slot);
    scene.shard.dealer_answered(link, "FIRST", Err(crate::topics::TopicError::Platform("it does not fit".to_owned())));
    scene.shard.dealer_answered(link, "LAST", Ok(()));
    assert_eq!(scene.heard(slot), 1);
    assert_eq!(scene.shard.required().map(|required| required.topic.to_string()).collect::<Vec<_>>(), ["FIRST", "LAST"]);
}

#[test]
fn what_is_lost_for_a_required_subscriber_that_is_away_is_told_when_it_is_back_and_to_nobody_else() {
    let mut scene = Scene::new();
    scene.prepare("T");
    scene.leads();
    let topic = scene.shard.broker.topic_id("T").unwrap();
    let lose = |scene: &mut Scene, events| {
        scene.shard.broker.tell_lost(topic, events, &mut scene.shard.outputs);
        scene.shard.carry_out_now();
    };
    // The leader before has named it, so that it has had no session here.
    lose(&mut scene, 2);
    let back = |scene: &mut Scene| {
        let (slot, client) = scene.dealer("alarm");
        scene.subscribe(slot, "T", None);
        (slot, client)
    };
    let (slot, _client) = back(&mut scene);
    assert_eq!(scene.shard.endpoint.links[slot].lost, 2);
    lose(&mut scene, 1);
    assert_eq!(scene.shard.endpoint.links[slot].lost, 3, "it is there");
    scene.shard.forget_dealer(slot);
    scene.shard.endpoint.links.remove(slot);
    let (other, _other_client) = scene.dealer("display");
    lose(&mut scene, 4);
    assert_eq!((other, scene.shard.endpoint.links[other].lost), (slot, 0), "it has the place of the link that is gone");
    let (slot, _client) = back(&mut scene);
    assert_eq!(scene.shard.endpoint.links[slot].lost, 4);
}

#[test]
fn what_comes_when_a_subscriber_is_not_waited_for_any_more_is_told_when_it_is_back() {
    let mut scene = Scene::new();
    scene.prepare("T");
    scene.leads();
    let topic = scene.shard.broker.topic_id("T").unwrap();
    let identity = bodkin_broker::StreamIdentity { topic, publisher: bodkin_broker::PublisherId(1), incarnation: Incarnation(1) };
    let stream = scene.shard.broker.open_stream(&scene.shard.broker.permit().unwrap(), identity).unwrap();
    let publish = |scene: &mut Scene, sequence| {
        let created = scene.shard.clock.broker();
        let sequence = bodkin_broker::Sequence(sequence);
        let event = bodkin_broker::Publication { epoch: Epoch::NONE, sequence, created, is_resent: false, has_wrong_clock: false };
        scene.shard.broker.accept(created, scene.shard.broker.permit().unwrap(), stream, event).unwrap();
    };
    let waited_for = scene.shard.broker.subscriptions_of(topic)[0];
    scene.shard.no_more_required(waited_for, 5);
    publish(&mut scene, 1);
    let (slot, _client) = scene.dealer("alarm");
    scene.subscribe(slot, "T", None);
    assert_eq!(scene.shard.endpoint.links[slot].lost, 6, "what was kept for it, and what came then");
    scene.shard.unsubscribe_dealer(slot, "T");
    publish(&mut scene, 2);
    scene.subscribe(slot, "T", None);
    assert_eq!(scene.shard.endpoint.links[slot].lost, 6, "it did not want it");
}

#[test]
fn in_a_turn_that_lasts_longer_than_its_lease_whether_this_node_leads_is_asked_anew() {
    let mut scene = Scene::new();
    scene.leads();
    scene.leadership.lead(EPOCH, boot_time());
    scene.shard.tell_leadership();
    assert!(!scene.shard.leads(), "the lease is over");
    assert_eq!(scene.shard.endpoint.leadership, (EPOCH, false));
    // It goes on without a word while the turn lasts.
    scene.leadership.lead(EPOCH, bodkin_broker::Instant::NEVER);
    assert!(scene.shard.leads());
    scene.shard.tell_leadership();
    assert_eq!(scene.shard.endpoint.leadership, (EPOCH, true));
}

#[test]
fn links_that_come_too_late_in_a_turn_are_read_in_the_next_one() {
    let mut scene = Scene::new();
    let links: Vec<(usize, std::net::TcpStream)> = ["a", "b", "c"].map(|name| scene.dealer(name)).into();
    for (slot, client) in &links {
        (&*client).write_all(b"\xff").unwrap();
        scene.shard.endpoint.read_next_turn(*slot);
    }
    scene.shard.read_links_again(Instant::now());
    assert_eq!(scene.shard.endpoint.unread.len(), links.len(), "the time in which links are read is over");
    scene.shard.endpoint.read_next_turn(links[0].0);
    assert_eq!(scene.shard.endpoint.unread.len(), links.len(), "each waits once");
    scene.shard.read_links_again(Instant::now() + WAIT);
    assert!(scene.shard.endpoint.is_idle());
}

#[test]
fn how_long_a_failover_took_is_noted_once_when_a_publisher_that_waited_is_heard() {
    let mut scene = Scene::new();
    let granted = boot_time();
    scene.leadership.grants(granted);
    std::thread::sleep(Duration::from_millis(2));
    scene.shard.clock.advance();
    scene.leads();
    let stalls = scene.shard.context.stalls.clone();
    assert_eq!(stalls.failover_ns(), 0, "nobody is back");
    std::thread::sleep(Duration::from_millis(2));
    scene.shard.clock.advance();
    scene.shard.publisher_is_heard(granted, false);
    let took_ns = stalls.failover_ns();
    assert!((2_000_000..=boot_time().nanos() - granted.nanos()).contains(&took_ns), "{took_ns}");
    scene.shard.publisher_is_heard(granted, true);
    assert_eq!(stalls.failover_ns(), took_ns, "the first one counts");
    let mut alone = Scene::new();
    alone.leads();
    alone.shard.publisher_is_heard(granted, true);
    assert_eq!(alone.shard.context.stalls.failover_ns(), 0, "nobody led before");
}
