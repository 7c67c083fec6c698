//! The client's publisher and subscriber against a real cloud: what is covered, who is waited for, what is refused.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use bodkin_client::realtime::*;
use nix::sys::signal::Signal;

use crate::support::{
    arrowhead::{event, system},
    cloud::{Cloud, Launch, System},
    patience::PATIENCE,
    sse::EventStream,
};
use crate::zmtp::address;

/// Every event is acknowledged at once.
const EACH: SubscriberConfig =
    SubscriberConfig { acknowledge_every: 1, acknowledge_after: Duration::from_millis(1), window: 1024, streams_max: 16 };

/// The period of a `topic`.
pub const PERIOD: Duration = Duration::from_micros(100);

/// A topic of which no event may be lost, and a thousand may come in one go.
pub fn topic(name: &str, more: &str) -> String {
    let promises = "jitter_ms = 100\ndeadline_ms = 200\nloss_tolerance = 0\nretention = 2000";
    format!("[[topic]]\nevent_type = \"{name}\"\nperiod_us = {}\n{promises}\n{more}\n", PERIOD.as_micros())
}

/// A cloud with these tables in its configuration, and the systems `sensor` and `display`.
pub fn start(data: &Path, topics: &str, more: &[&str]) -> Cloud {
    let file = data.join("bodkin.toml");
    fs::write(&file, topics).expect("written");
    let launch = Launch::new().data(data).flags(["--config", file.to_str().expect("text")]);
    let cloud = more.iter().fold(launch, |launch, flag| launch.flags([flag])).start();
    cloud.register_system("sensor", 1);
    cloud.register_system("display", 2);
    cloud
}

pub struct Sends {
    publisher: RealtimePublisher,
    pub covered: Vec<u64>,
    pub refused: Vec<(RefusalReason, u64, String)>,
    excess: Vec<u64>,
    lost: u64,
    pub ends: Vec<String>,
}

impl Sends {
    pub fn to(address: SocketAddr, name: &str, topics: &[&str]) -> (Self, Vec<PublishedTopic>) {
        Self::by(Brokers::one(name, address), topics)
    }

    pub fn by(brokers: Brokers, topics: &[&str]) -> (Self, Vec<PublishedTopic>) {
        let mut publisher = RealtimePublisher::connect(brokers).expect("a publisher");
        let keys = topics.iter().map(|topic| publisher.add_topic(topic, Retention::new(1, 64, WhenFull::Block))).collect();
        let (covered, refused) = (vec![0; topics.len()], Vec::new());
        (Self { publisher, covered, refused, excess: Vec::new(), lost: 0, ends: Vec::new() }, keys)
    }

    pub fn turn(&mut self) {
        self.turn_for(Duration::from_millis(1));
    }

    fn turn_for(&mut self, wait_max: Duration) {
        let Self { publisher, covered, refused, excess, lost, ends } = self;
        let told = publisher.turn(wait_max, |report| match report {
            PublisherReport::Covered { topic, through } => covered[topic.index()] = through.0,
            PublisherReport::NotTaken { reason, sequence, text, .. } => refused.push((reason, sequence.0, text.to_owned())),
            PublisherReport::Excess { sequence, .. } => excess.push(sequence.0),
            PublisherReport::Lost { events, .. } => *lost += events,
            PublisherReport::Session(SessionReport::Ended(_, end)) => ends.push(end.to_string()),
            PublisherReport::Session(_) => {}
            other @ PublisherReport::CoveredUnpublished { .. } => panic!("{other:?}"),
        });
        told.expect("a turn");
    }

    pub fn publish(&mut self, topic: PublishedTopic, payload: &str) {
        until("there is a place for the event", || match self.publisher.publish(topic, payload.as_bytes()) {
            Ok(_) => true,
            Err(PublishError::Full(_)) => {
                self.turn();
                false
            }
            Err(error) => panic!("{error}"),
        });
    }
}

pub struct Hears {
    subscriber: RealtimeSubscriber,
    topic: SubscribedTopic,
    pub events: Vec<String>,
    /// What each says that it is caused by.
    causes: Vec<Option<Cause>>,
    pub subscribed: usize,
    pub refused: Vec<(RefusalReason, String)>,
    lost: Vec<u64>,
    overrun: u64,
}

impl Hears {
    pub fn from(address: SocketAddr, name: &str, topic: &str, subscription: Subscription) -> Self {
        Self::by(Brokers::one(name, address), topic, subscription)
    }

    pub fn by(brokers: Brokers, topic: &str, subscription: Subscription) -> Self {
        let mut subscriber = RealtimeSubscriber::connect(brokers, EACH).expect("a subscriber");
        let topic = subscriber.subscribe(topic, subscription);
        let (events, refused, lost) = (Vec::new(), Vec::new(), Vec::new());
        Self { subscriber, topic, events, causes: Vec::new(), subscribed: 0, refused, lost, overrun: 0 }
    }

    pub fn turn(&mut self) {
        let Self { subscriber, events, causes, subscribed, refused, lost, overrun, .. } = self;
        let told = subscriber.turn(Duration::from_millis(1), |report| match report {
            SubscriberReport::Event(event) => {
                events.push(String::from_utf8(event.payload.to_vec()).expect("text"));
                causes.push(event.cause());
            }
            SubscriberReport::Subscribed(..) => *subscribed += 1,
            SubscriberReport::Refused { reason, text, .. } => refused.push((reason, text.to_owned())),
            SubscriberReport::Lost { run, .. } => lost.push(run),
            SubscriberReport::Overrun { events, .. } => *overrun += events,
            SubscriberReport::Session(_) => {}
            other @ SubscriberReport::TooManyStreams { .. } => panic!("{other:?}"),
        });
        told.expect("a turn");
    }
}

pub fn required() -> Subscription {
    Subscription { required_for: Some(Duration::from_secs(60)), beginning: Beginning::First, ..Subscription::default() }
}

#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
    }
}

fn numbers(range: std::ops::RangeInclusive<u64>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[test]
fn an_event_is_covered_when_the_required_subscriber_has_it_and_every_transport_hears_it() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), &topic("hot", ""), &[]);
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=hot", &[]);
    let mut hears = Hears::from(address(&cloud), "display", "hot", required());
    until("it is subscribed", || {
        hears.turn();
        hears.subscribed > 0
    });
    let (mut sends, topics) = Sends::to(address(&cloud), "sensor", &["hot"]);
    numbers(1..=50).iter().for_each(|number| sends.publish(topics[0], number));
    let quiet = Instant::now() + Duration::from_millis(100);
    until("the broker has time", || {
        sends.turn();
        Instant::now() > quiet
    });
    assert_eq!(sends.covered, [0], "nobody has acknowledged anything");
    until("everything is covered", || {
        sends.turn();
        hears.turn();
        sends.covered == [50]
    });
    assert_eq!(hears.events, numbers(1..=50));
    assert_eq!(stream.wait_for(50).iter().map(|event| event.data.clone()).collect::<Vec<_>>(), numbers(1..=50));
    let [(publisher, counters)] = hears.subscriber.counters(hears.topic).collect::<Vec<_>>()[..] else { panic!("one stream") };
    assert_eq!((counters.received, counters.lost, counters.duplicates), (50, 0, 0));
    assert!(publisher.0 > 0, "the broker fills in who publishes");
}

#[test]
fn events_that_wait_in_a_turn_for_those_of_others_keep_their_period() {
    const TIMES: usize = 1000;
    let data = tempfile::tempdir().expect("a directory");
    let one_ms = "[[topic]]\nevent_type = \"steady\"\nperiod_ms = 1\ndeadline_ms = 200\nloss_tolerance = inf\nretention = 1\n";
    let cloud = start(data.path(), one_ms, &[]);
    cloud.register_system("meter", 3);
    let (mut sends, topics) = Sends::to(address(&cloud), "sensor", &["steady"]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for name in ["display", "meter"] {
            let (cloud, is_over) = (&cloud, &is_over);
            scope.spawn(move || {
                let (mut floods, topics) = Sends::to(address(cloud), name, &["plain"]);
                while !is_over.load(Relaxed) {
                    floods.publish(topics[0], "x");
                }
            });
        }
        // Also where this thread panics: the others would publish for ever, and the scope would wait for them.
        let _ended = Ends(&is_over);
        let mut due = Instant::now();
        for number in 0..TIMES {
            while Instant::now() < due {
                std::hint::spin_loop();
            }
            sends.publish(topics[0], &number.to_string());
            due = Instant::now() + Duration::from_millis(1);
            sends.turn_for(Duration::ZERO);
        }
    });
    until("everything is covered", || {
        sends.turn();
        sends.covered == [TIMES as u64]
    });
    assert_eq!(sends.excess, [0; 0], "none came faster than its period");
}

/// Says when it is dropped that something is over.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn results_of_events_that_waited_together_reach_who_is_required() {
    const EVENTS: u64 = 60;
    let data = tempfile::tempdir().expect("a directory");
    let graph = data.path().join("graph.toml");
    let text = "[graph]\nname = \"means\"\nreplace_queued = false\n[[supplier]]\ntopic = \"level\"\nshape = \"f64\"\nperiod_ms = 10\n\
        [[operator]]\nname = \"mean\"\nkind = \"moving_average\"\ninputs = [\"level\"]\nwindow = 2\n[[output]]\ntopic = \"mean\"\nfrom = \"mean\"\n";
    fs::write(&graph, text).expect("written");
    let topic = |name: &str| {
        let promises = "deadline_s = 60\nloss_tolerance = 0\nretention = 100\npublisher_broker_ms = 1";
        format!("[[topic]]\nevent_type = \"{name}\"\nperiod_ms = 10\n{promises}\n")
    };
    let cloud = start(data.path(), &format!("graphs = [{graph:?}]\n{}{}", topic("level"), topic("mean")), &[]);
    let mut hears = Hears::from(address(&cloud), "display", "mean", required());
    until("it is subscribed", || {
        hears.turn();
        hears.subscribed > 0
    });
    let (mut sends, topics) = Sends::to(address(&cloud), "sensor", &["level"]);
    for number in 1..=EVENTS {
        // Some events wait for the node, which stands still, longer than is stated.
        match number % 20 {
            5 => cloud.signal(Signal::SIGSTOP),
            10 => cloud.signal(Signal::SIGCONT),
            _ => {}
        }
        sends.publish(topics[0], &number.to_string());
        let due = Instant::now() + Duration::from_millis(11);
        while Instant::now() < due {
            sends.turn();
            hears.turn();
        }
    }
    until("everything is covered, and every result has come", || {
        sends.turn();
        hears.turn();
        sends.covered == [EVENTS] && hears.events.len() as u64 >= EVENTS
    });
    let means: Vec<f64> = hears.events.iter().map(|mean| mean.parse().expect("a number")).collect();
    let expected: Vec<f64> = (1..=EVENTS).map(|number| if number == 1 { 1.0 } else { number as f64 - 0.5 }).collect();
    assert_eq!((means, sends.excess, hears.lost), (expected, vec![], vec![]));
}

#[test]
fn who_is_required_and_away_finds_everything_when_it_is_back() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), &topic("hot", ""), &[]);
    let attach = |hears: &mut Hears| {
        until("it is subscribed", || {
            hears.turn();
            hears.subscribed > 0
        });
    };
    let (mut sends, topics) = Sends::to(address(&cloud), "sensor", &["hot"]);
    let mut hears = Hears::from(address(&cloud), "display", "hot", required());
    attach(&mut hears);
    numbers(1..=5).iter().for_each(|number| sends.publish(topics[0], number));
    until("the first are covered", || {
        sends.turn();
        hears.turn();
        sends.covered == [5]
    });
    drop(hears);
    numbers(6..=10).iter().for_each(|number| sends.publish(topics[0], number));
    let quiet = Instant::now() + Duration::from_millis(100);
    until("the broker has time", || {
        sends.turn();
        Instant::now() > quiet
    });
    assert_eq!(sends.covered, [5], "they wait for who is away");
    // A new run of it knows nothing of what the one before had.
    let mut hears = Hears::from(address(&cloud), "display", "hot", Subscription { beginning: Beginning::Present, ..required() });
    until("everything is covered", || {
        sends.turn();
        hears.turn();
        sends.covered == [10]
    });
    assert_eq!(hears.events, numbers(6..=10));
}

#[test]
fn who_is_away_for_longer_than_it_is_waited_for_holds_nobody_up() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), &topic("hot", ""), &[]);
    let short = Subscription { required_for: Some(Duration::from_millis(200)), ..required() };
    let mut hears = Hears::from(address(&cloud), "display", "hot", short);
    until("it is subscribed", || {
        hears.turn();
        hears.subscribed > 0
    });
    let (mut sends, topics) = Sends::to(address(&cloud), "sensor", &["hot"]);
    sends.publish(topics[0], "1");
    until("it is told, for it has not read for so long", || {
        sends.turn();
        std::thread::sleep(Duration::from_millis(10));
        sends.covered == [1]
    });
    until("it hears all the same", || {
        hears.turn();
        hears.events == ["1"] && !hears.refused.is_empty()
    });
    assert_eq!(hears.refused[0].0, RefusalReason::NotRequired);
    drop(hears);
    sends.publish(topics[0], "2");
    until("nobody is waited for", || {
        sends.turn();
        sends.covered == [2]
    });
}

#[test]
fn a_best_effort_topic_is_covered_at_once_and_repeated_to_nobody() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), "durable_event_types = [\"kept\"]\n", &[]);
    let mut hears = Hears::from(address(&cloud), "display", "plain", Subscription::default());
    until("it is subscribed", || {
        hears.turn();
        hears.subscribed > 0
    });
    let mut brokers = Brokers::one("sensor", address(&cloud));
    brokers.incarnation = Incarnation(5);
    let mut covered = 0;
    for round in 0..3 {
        // Each run of the loop is a session of the same run of the publisher, which keeps its newest event and sends it again.
        let mut publisher = RealtimePublisher::connect(brokers.clone()).expect("a publisher");
        let topic = publisher.add_topic("plain", Retention::new(1, 8, WhenFull::Block));
        for number in 1..=round + 1 {
            publisher.publish(topic, number.to_string().as_bytes()).expect("there is room");
        }
        until("they are covered", || {
            let told = publisher.turn(Duration::from_millis(1), |report| {
                if let PublisherReport::Covered { through, .. } = report {
                    covered = through.0;
                }
            });
            told.expect("a turn");
            covered == round + 1
        });
    }
    until("everything arrives", || {
        hears.turn();
        hears.events.len() >= 3
    });
    let quiet = Instant::now() + Duration::from_millis(50);
    until("nothing more comes", || {
        hears.turn();
        Instant::now() > quiet
    });
    assert_eq!(hears.events, numbers(1..=3), "the same numbers of the same run are the same events");
    let (mut sends, topics) = Sends::to(address(&cloud), "sensor", &["kept"]);
    sends.publish(topics[0], "on the disk");
    until("a durable one is covered when it is synced", || {
        sends.turn();
        sends.covered == [1]
    });
}

#[test]
fn a_publisher_is_told_why_it_is_refused_and_goes_on_with_the_next_event() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), &topic("hot", ""), &[]);
    let (mut stranger, topics) = Sends::to(address(&cloud), "stranger", &["hot"]);
    stranger.publish(topics[0], "1");
    until("it is told", || {
        stranger.turn();
        !stranger.refused.is_empty()
    });
    let (reason, sequence, text) = &stranger.refused[0];
    assert_eq!((*reason, *sequence), (RefusalReason::NotAuthorized, 1));
    assert!(text.contains("stranger is not registered"), "{text}");
    cloud.register_system("stranger", 3);
    stranger.publish(topics[0], "2");
    stranger.publish(topics[0], " ");
    stranger.publish(topics[0], "4");
    until("the others are covered", || {
        stranger.turn();
        stranger.covered == [4]
    });
    assert_eq!(stranger.refused.len(), 2);
    assert_eq!((stranger.refused[1].0, stranger.refused[1].1), (RefusalReason::Malformed, 3));
}

#[test]
fn too_fast_publisher_is_notified_of_each_excess_event() {
    let data = tempfile::tempdir().expect("a directory");
    let slow = "[[topic]]\nevent_type = \"slow\"\nperiod_s = 3600\ndeadline_s = 60\nloss_tolerance = 0\nretention = 1\n";
    let cloud = start(data.path(), slow, &[]);
    let (mut sends, topics) = Sends::to(address(&cloud), "sensor", &["slow"]);
    (1..=3).for_each(|number: u64| sends.publish(topics[0], &number.to_string()));
    until("two are excess", || {
        sends.turn();
        sends.excess.len() == 2
    });
    assert_eq!(sends.excess, [2, 3]);
}

#[test]
fn what_a_subscription_asks_is_admitted_or_refused_with_what_would_be() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), &topic("hot", "broker_subscriber_max_ms = 1"), &[]);
    let within = |deadline: Duration| Subscription { deadline: Some(deadline), ..Subscription::default() };
    let mut modest = Hears::from(address(&cloud), "display", "hot", within(Duration::from_millis(100)));
    until("it is subscribed", || {
        modest.turn();
        modest.subscribed > 0
    });
    let deadline = || {
        let topics = cloud.get("/api/v1/topics").expect_status(200).json();
        topics["data"][0]["deadlineUs"].as_u64().expect("a deadline")
    };
    assert_eq!(deadline(), 100_000, "the topic is as strict as its strictest subscriber");
    let mut strict = Hears::from(address(&cloud), "display", "hot", within(Duration::from_nanos(1)));
    until("it is refused", || {
        strict.turn();
        !strict.refused.is_empty()
    });
    assert_eq!(strict.refused[0].0, RefusalReason::NotAdmitted);
    assert!(strict.refused[0].1.contains("HOT is refused"), "{:?}", strict.refused);
    let mut unknown = Hears::from(address(&cloud), "display", "cold", within(Duration::from_secs(1)));
    until("a best-effort topic promises nothing", || {
        unknown.turn();
        !unknown.refused.is_empty()
    });
    assert_eq!(deadline(), 100_000);
    drop(modest);
    until("it is as strict as it was declared when nobody asks any more", || deadline() == 200_000);
}

#[test]
fn events_over_http_reach_a_subscriber_that_acknowledges() {
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), &topic("hot", ""), &[]);
    let mut hears = Hears::from(address(&cloud), "display", "hot", required());
    until("it is subscribed", || {
        hears.turn();
        hears.subscribed > 0
    });
    for payload in ["a", "b"] {
        let body = event("Hot", system("sensor", 1), payload);
        cloud.post("/eventhandler/publish", &body).expect_status(200);
    }
    until("both arrive", || {
        hears.turn();
        hears.events == ["a", "b"]
    });
}

#[test]
fn many_topics_are_subscribed_in_one_go_and_covered_each() {
    const TOPICS: usize = 300;
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), &topic("many", &format!("count = {TOPICS}")), &[]);
    let names: Vec<String> = {
        let topics = cloud.get("/api/v1/topics").expect_status(200).json();
        topics["data"].as_array().expect("a list").iter().map(|row| row["eventType"].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(names.len(), TOPICS);
    let streams = SubscriberConfig { streams_max: TOPICS, ..EACH };
    let mut subscriber = RealtimeSubscriber::connect(Brokers::one("display", address(&cloud)), streams).expect("a subscriber");
    let tolerant = Subscription { loss_tolerance: Some(0), ..required() };
    for name in &names {
        subscriber.subscribe(name, tolerant);
    }
    let (mut subscribed, mut events) = (0, 0);
    let mut hear = |subscribed: &mut usize, events: &mut usize| {
        let told = subscriber.turn(Duration::from_millis(1), |report| match report {
            SubscriberReport::Subscribed(..) => *subscribed += 1,
            SubscriberReport::Event(_) => *events += 1,
            SubscriberReport::Session(_) => {}
            other => panic!("{other:?}"),
        });
        told.expect("a turn");
    };
    until("all are subscribed", || {
        hear(&mut subscribed, &mut events);
        subscribed >= TOPICS
    });
    let topics: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut sends, keys) = Sends::to(address(&cloud), "sensor", &topics);
    for round in 1..=3 {
        keys.iter().for_each(|key| sends.publish(*key, &round.to_string()));
        until("all are covered", || {
            sends.turn();
            hear(&mut subscribed, &mut events);
            sends.covered.iter().all(|covered| *covered == round)
        });
    }
    assert_eq!(events, 3 * TOPICS);
}

fn metadata_of(event: &str) -> serde_json::Value {
    serde_json::from_str::<serde_json::Value>(event).expect("Event JSON")["metaData"].clone()
}

#[test]
fn an_event_says_which_trace_it_is_of_to_subscribers_and_on_streams() {
    const CONTEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let cause = Cause::parse(CONTEXT.as_bytes(), [b"rojo=1".as_slice()]).expect("a cause");
    let data = tempfile::tempdir().expect("a directory");
    let cloud = start(data.path(), &topic("hot", ""), &[]);
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/events?event_type=hot", &[]);
    let mut hears = Hears::from(address(&cloud), "display", "hot", required());
    until("it is subscribed", || {
        hears.turn();
        hears.subscribed > 0
    });
    let (mut sends, topics) = Sends::to(address(&cloud), "sensor", &["hot"]);
    // Kept until there is somebody to send it to.
    sends.publisher.publish_traced(topics[0], b"1", &cause).expect("there is room");
    sends.publish(topics[0], "2");
    until("both are covered", || {
        sends.turn();
        hears.turn();
        sends.covered == [2]
    });
    assert_eq!((hears.events, hears.causes), (numbers(1..=2), vec![Some(cause), None]));
    let metadata: Vec<_> = stream.wait_for(2).iter().map(|event| metadata_of(&event.data)).collect();
    assert_eq!((&metadata[0]["traceparent"], &metadata[0]["tracestate"]), (&CONTEXT.into(), &"rojo=1".into()), "{metadata:?}");
    assert!(metadata[1].get("traceparent").is_none(), "{metadata:?}");
}
