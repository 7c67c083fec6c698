//! The client's publisher and required subscriber, with a session to either node: what was covered is heard, in order and once, whatever becomes of the Primary.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use bodkin_broker::Epoch;
use bodkin_broker::wire::ClientFrame;
use bodkin_client::realtime::*;
use bodkin_zmtp::SocketType;
use nix::sys::signal::Signal;

use super::nodes::{LEASE, Node, Pair};
use crate::dealer::{hear, say, subscribe};
use crate::support::arrowhead::system;
use crate::support::cloud::System;
use crate::support::link::{Heard, Link};
use crate::support::patience::{PATIENCE, eventually};
use crate::zmtp::settle;

/// No event may be missed; the publisher keeps what may be lost in a fail-over.
pub const TOPIC: &str =
    "[[topic]]\nevent_type = \"hot\"\nperiod_ms = 1\njitter_ms = 50\ndeadline_ms = 500\nloss_tolerance = 0\nretention = 800\n";
pub const EACH: SubscriberConfig =
    SubscriberConfig { acknowledge_every: 1, acknowledge_after: Duration::from_millis(1), window: 4096, streams_max: 4 };
/// Between two events, a little more than the period.
const PACE: Duration = Duration::from_micros(1_200);

/// Publishes numbers to both nodes, and hears them.
pub struct Clients {
    publisher: RealtimePublisher,
    topic: PublishedTopic,
    subscriber: RealtimeSubscriber,
    published: u64,
    due: Instant,
    covered: u64,
    covered_at: Instant,
    /// The longest time in which nothing was covered.
    gap: Duration,
    heard: Vec<u64>,
    /// Nodes that have its subscription.
    subscribed: u32,
    lost: u64,
}

impl Clients {
    pub fn of(pair: &Pair) -> Self {
        let (first, second) = pair.zmtp_addresses();
        Self::by(Brokers::pair("sensor", first, second), Brokers::pair("display", first, second))
    }

    /// A publisher that speaks to these brokers, and a subscriber that speaks to those.
    pub fn by(publisher: Brokers, subscriber: Brokers) -> Self {
        let mut publisher = RealtimePublisher::connect(publisher).expect("a publisher");
        let topic = publisher.add_topic("hot", Retention::new(800, 4096, WhenFull::Block));
        let mut subscriber = RealtimeSubscriber::connect(subscriber, EACH).expect("a subscriber");
        let required = Subscription { required_for: Some(Duration::from_secs(60)), beginning: Beginning::First, ..Subscription::default() };
        subscriber.subscribe("hot", required);
        let now = Instant::now();
        let mut clients = Self {
            publisher,
            topic,
            subscriber,
            published: 0,
            due: now,
            covered: 0,
            covered_at: now,
            gap: Duration::ZERO,
            heard: Vec::new(),
            subscribed: 0,
            lost: 0,
        };
        clients.until("both nodes have its subscription", |clients| clients.subscribed == 2);
        clients.covered_at = Instant::now();
        clients
    }

    fn turn(&mut self) {
        let Self { publisher, subscriber, covered, covered_at, gap, heard, subscribed, lost, .. } = self;
        let told = publisher.turn(Duration::from_micros(200), |report| match report {
            PublisherReport::Covered { through, .. } => {
                let now = Instant::now();
                *gap = (*gap).max(now - *covered_at);
                (*covered, *covered_at) = (through.0, now);
            }
            PublisherReport::Lost { events, .. } => *lost += events,
            _ => {}
        });
        told.expect("a turn");
        let told = subscriber.turn(Duration::from_micros(200), |report| match report {
            SubscriberReport::Event(event) => {
                heard.push(std::str::from_utf8(event.payload).ok().and_then(|text| text.parse().ok()).expect("a number"));
            }
            SubscriberReport::Subscribed(..) => *subscribed += 1,
            SubscriberReport::Lost { run, .. } => *lost += run,
            _ => {}
        });
        told.expect("a turn");
    }

    #[track_caller]
    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so(self) {
            let (covered, heard) = (self.covered, self.heard.len());
            assert!(
                Instant::now() < end,
                "{what}: not within {PATIENCE:?}; {} published, {covered} covered, {heard} heard",
                self.published
            );
            self.turn();
        }
    }

    /// Publishes at its pace as long as `goes_on`.
    fn publish_while(&mut self, goes_on: impl Fn(&Self) -> bool) {
        while goes_on(self) {
            if Instant::now() >= self.due && self.publisher.publish(self.topic, (self.published + 1).to_string().as_bytes()).is_ok() {
                self.published += 1;
                self.due = (self.due + PACE).max(Instant::now() - PACE);
            }
            self.turn();
        }
    }

    pub fn publish_for(&mut self, duration: Duration) {
        let end = Instant::now() + duration;
        self.publish_while(|_| Instant::now() < end);
    }

    /// Publishes until so many more are covered, then waits for all of them.
    #[track_caller]
    pub fn come_through(&mut self, more: u64) {
        let (enough, end) = (self.covered + more, Instant::now() + PATIENCE);
        self.publish_while(|clients| clients.covered < enough && Instant::now() < end);
        self.until("everything is covered and heard", |clients| {
            clients.covered == clients.published && clients.heard.last() == Some(&clients.published)
        });
        assert!(self.heard.iter().copied().eq(1..=self.published), "published {}, heard {:?}", self.published, self.heard);
        assert_eq!(self.lost, 0);
    }
}

/// Registers the publisher's and the subscriber's systems.
pub fn register(node: &Node) {
    for (name, port) in [("sensor", 1), ("display", 2)] {
        let answer = node.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system(name, port))).unwrap();
        answer.expect_status(201);
    }
}

#[test]
fn a_required_subscriber_hears_everything_when_the_primary_is_killed() {
    for replication in ["lazy", "eager"] {
        let (pair, _witness, mut backup, primary) = Pair::known(&format!("replication = \"{replication}\"\n"), TOPIC);
        register(&primary);
        let mut clients = Clients::of(&pair);
        clients.publish_for(Duration::from_millis(400));
        assert!(clients.covered > 100, "{} of {} are covered", clients.covered, clients.published);
        primary.signal(Signal::SIGKILL);
        clients.come_through(300);
        backup.served();
        println!("{replication}: {} events, the longest time without cover was {:?}", clients.published, clients.gap);
        failover_is_told(&backup);
        assert!(!backup.said().contains("ERROR"), "{}", backup.said());
        drop(primary);

        // The node that comes back is given what is kept, and leads in its turn.
        let primary = pair.primary();
        backup.protected(true);
        clients.publish_for(Duration::from_millis(200));
        backup.signal(Signal::SIGKILL);
        clients.come_through(300);
        drop(primary);
    }
}

/// The node that leads in place of the one that was killed says how long that took. It has led no sooner than the lease of the one before had run out; what took longer than x
/// suspends the bounds on losses.
#[track_caller]
fn failover_is_told(node: &Node) {
    let took_s = node.seconds("bodkin_failover_seconds");
    let platform = node.call(System::Monitor, "GET", "/api/v1/platform", None).expect("an answer").json();
    let stated_s = platform["failoverUs"].as_u64().expect("a number") as f64 / 1e6;
    println!("the fail-over took {took_s} s of {stated_s} s");
    assert!(took_s > LEASE.as_secs_f64() / 2.0, "{took_s} s are less than is left of any lease");
    if took_s > stated_s {
        assert!(eventually(|| node.gauge("bodkin_failover_long") == 1), "{took_s} s of {stated_s} s, and it is not told to be long");
    } else {
        assert_eq!(node.gauge("bodkin_failover_long"), 0, "{took_s} s of {stated_s} s");
    }
}

#[test]
fn short_stops_and_deaths_of_the_others_lose_nothing() {
    let (mut pair, witness, backup, primary) = Pair::known("", TOPIC);
    register(&primary);
    let mut clients = Clients::of(&pair);
    for pause_ms in [1, 20, 200] {
        primary.signal(Signal::SIGSTOP);
        std::thread::sleep(Duration::from_millis(pause_ms));
        primary.signal(Signal::SIGCONT);
        clients.come_through(50);
    }
    clients.gap = Duration::ZERO;
    drop(witness);
    clients.come_through(200);
    println!("witness killed: the longest time without cover was {:?}", clients.gap);
    let witness = pair.witness();
    clients.gap = Duration::ZERO;
    drop(backup);
    clients.come_through(200);
    println!("Backup killed: the longest time without cover was {:?}", clients.gap);
    primary.protected(false);
    let _backup = pair.backup();
    primary.protected(true);
    clients.come_through(200);
    drop(witness);
}

/// The number that the next event carries; commands are passed over.
fn next_number(link: &mut Link) -> u64 {
    loop {
        match link.hear() {
            Ok(Some(Heard::Message(frames))) if frames.len() == 3 => {
                return String::from_utf8_lossy(&frames[1]).parse().expect("a number");
            }
            Ok(Some(Heard::Message(_))) => {}
            other => panic!("an event was expected: {other:?}"),
        }
    }
}

#[test]
fn subscribers_at_follower_receive_each_event_of_next_leader_on_same_connection() {
    let (pair, _witness, _backup, primary) = Pair::known("", TOPIC);
    register(&primary);
    primary.call(System::ServiceRegistry, "POST", "/serviceregistry/mgmt/systems", Some(&system("panel", 3))).unwrap().expect_status(201);
    let (_, second) = pair.zmtp_addresses();
    let connect = |socket_type| {
        let mut link = Link::client(TcpStream::connect(second).expect("a connection"), socket_type, ClientSecurity::Null);
        assert!(matches!(link.hear(), Ok(Some(Heard::Ready(_)))));
        link
    };
    let [mut sub, mut xsub, mut panel] = [SocketType::Sub, SocketType::Xsub, SocketType::Dealer].map(connect);
    for link in [&mut sub, &mut xsub] {
        link.subscribe(b"hot");
        settle(link);
    }
    say(&mut panel, &ClientFrame::Hello { epoch: Epoch::NONE, incarnation: Incarnation(1), name: "panel" });
    hear(&mut panel, |command| assert!(matches!(command, ClientFrame::Leader { is_leader: false, .. })));
    subscribe(&mut panel, "hot", None);
    hear(&mut panel, |command| assert!(matches!(command, ClientFrame::Subscribed { .. })));
    let mut clients = Clients::of(&pair);
    clients.come_through(50);
    let first_after_kill = clients.published + 1;
    primary.signal(Signal::SIGKILL);
    clients.come_through(50);
    for (name, link) in [("SUB", &mut sub), ("XSUB", &mut xsub), ("DEALER", &mut panel)] {
        let first = next_number(link);
        assert!(first <= first_after_kill, "{name} misses events between {first_after_kill} and {first}");
        (first + 1..=clients.published).for_each(|expected| assert_eq!(next_number(link), expected, "{name}"));
    }
}

#[test]
fn what_a_node_that_follows_notes_is_bounded_and_the_one_too_many_is_told() {
    let (pair, _witness, _backup, primary) = Pair::known("subscriptions_max = 10\n", TOPIC);
    register(&primary);
    let (_, second) = pair.zmtp_addresses();
    let mut greedy = Link::client(TcpStream::connect(second).expect("a connection"), SocketType::Dealer, ClientSecurity::Null);
    assert_eq!(greedy.hear(), Ok(Some(Heard::Ready(SocketType::Router))));
    say(&mut greedy, &ClientFrame::Hello { epoch: Epoch::NONE, incarnation: Incarnation(1), name: "display" });
    hear(&mut greedy, |command| assert!(matches!(command, ClientFrame::Leader { is_leader: false, .. })));
    let mut refused = 0;
    // The same ones again are no more.
    for number in (0..12).chain(0..9) {
        subscribe(&mut greedy, &format!("topic {number}"), None);
        refused += hear(&mut greedy, |command| match command {
            ClientFrame::Subscribed { .. } => 0,
            ClientFrame::SubscribeRefused { reason: RefusalReason::Limit, .. } => 1,
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(refused, 2);
    say(&mut greedy, &ClientFrame::Unsubscribe { epoch: Epoch::NONE, topic: "topic 3" });
    subscribe(&mut greedy, "topic 11", None);
    hear(&mut greedy, |command| assert!(matches!(command, ClientFrame::Subscribed { topic: "topic 11", .. })));
}

/// Topics of one subscriber, each required.
const MANY: usize = 2_000;

#[test]
fn thousands_of_required_subscriptions_go_on_in_their_session_when_the_primary_is_killed() {
    let topics =
        format!("[[topic]]\nevent_type = \"many\"\ncount = {MANY}\nperiod_s = 1\ndeadline_s = 1\nloss_tolerance = 0\nretention = 1\n");
    let (pair, _witness, _backup, primary) = Pair::known("", &topics);
    register(&primary);
    let (first, second) = pair.zmtp_addresses();
    let mut publisher = RealtimePublisher::connect(Brokers::pair("sensor", first, second)).expect("a publisher");
    let config = SubscriberConfig { streams_max: MANY, ..EACH };
    let mut subscriber = RealtimeSubscriber::connect(Brokers::pair("display", first, second), config).expect("a subscriber");
    let required = Subscription { required_for: Some(Duration::from_secs(60)), beginning: Beginning::First, ..Subscription::default() };
    let names: Vec<String> = (1..=MANY).map(|number| format!("many-{number}")).collect();
    let published: Vec<PublishedTopic> =
        names.iter().map(|name| publisher.add_topic(name, Retention::new(1, 8, WhenFull::Block))).collect();
    for name in &names {
        subscriber.subscribe(name, required);
    }
    let (mut covered, mut heard, mut lost, mut subscribed, mut ended) = (0, 0, 0, 0, Vec::new());
    for round in 0..3 {
        if round == 2 {
            primary.signal(Signal::SIGKILL);
        }
        if round > 0 {
            published.iter().for_each(|topic| assert_eq!(publisher.publish(*topic, b"1").expect("there is room").dropped, None));
        }
        let end = Instant::now() + PATIENCE;
        while (covered, heard, subscribed) != (round * MANY, round * MANY, 2 * MANY) {
            assert!(Instant::now() < end, "round {round}: {subscribed} subscribed, {covered} covered, {heard} heard; ended: {ended:?}");
            let told = publisher.turn(Duration::from_micros(200), |report| match report {
                PublisherReport::Covered { .. } => covered += 1,
                PublisherReport::NotTaken { reason, text, .. } => panic!("{reason:?}: {text}"),
                _ => {}
            });
            told.expect("a turn");
            let told = subscriber.turn(Duration::from_micros(200), |report| match report {
                SubscriberReport::Event(_) => heard += 1,
                SubscriberReport::Lost { .. } => lost += 1,
                SubscriberReport::Subscribed(..) => subscribed += 1,
                SubscriberReport::Session(SessionReport::Ended(session, _)) => ended.push(session),
                _ => {}
            });
            told.expect("a turn");
        }
    }
    assert_eq!(lost, 0);
    assert!(!ended.contains(&Session::Two), "the session to the node that leads now goes on: {ended:?}");
}
