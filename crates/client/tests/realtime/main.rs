//! Publisher and subscriber over real sockets, against brokers that run the real machine.

mod acknowledged;
mod broker;
mod guaranteed;

use std::{
    io::Write,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::{Duration, Instant},
};

use bodkin_client::realtime::*;
use bodkin_zmtp::ServerSecurity;

use bodkin_broker::wire::{ClientFrame, Flags};

use self::broker::{Order, Said, TOPIC, TestBroker};

/// How long anything may take before its test has failed.
const PATIENCE: Duration = Duration::from_secs(20);
const EACH: SubscriberConfig =
    SubscriberConfig { acknowledge_every: 1, acknowledge_after: Duration::from_millis(1), window: 1024, streams_max: 4 };
const REQUIRED: Subscription =
    Subscription { loss_tolerance: Some(0), deadline: None, required_for: Some(Duration::from_secs(60)), beginning: Beginning::First };

/// A publisher and what it was told.
struct Sends {
    publisher: RealtimePublisher,
    topic: PublishedTopic,
    covered: u64,
    not_taken: Vec<String>,
    sessions: Vec<SessionReport>,
}

impl Sends {
    fn to(brokers: Brokers, retention: Retention) -> Self {
        let mut publisher = RealtimePublisher::connect(brokers).expect("a publisher");
        let topic = publisher.add_topic("temperature ", retention);
        Self { publisher, topic, covered: 0, not_taken: Vec::new(), sessions: Vec::new() }
    }

    fn turn(&mut self) {
        self.turn_within(Duration::from_millis(1));
    }

    fn turn_within(&mut self, wait: Duration) {
        let Self { publisher, covered, not_taken, sessions, .. } = self;
        let told = publisher.turn(wait, |report| match report {
            PublisherReport::Covered { through, .. } => *covered = through.0,
            PublisherReport::NotTaken { text, .. } => not_taken.push(text.to_owned()),
            PublisherReport::Session(session) => sessions.push(session),
            other => panic!("{other:?}"),
        });
        told.expect("a turn");
    }

    async fn wait(&mut self) {
        self.publisher.ready(PATIENCE).await.expect("a poll");
        self.turn_within(Duration::ZERO);
    }

    /// Publishes `numbers`, each as its text, waiting where the ring is full.
    fn publish(&mut self, numbers: std::ops::RangeInclusive<u64>) {
        for number in numbers {
            let published = loop {
                match self.publisher.publish(self.topic, number.to_string().as_bytes()) {
                    Ok(published) => break published,
                    Err(PublishError::Full(_)) => self.turn(),
                    Err(error) => panic!("{error}"),
                }
            };
            assert_eq!(published.sequence.0, number);
        }
    }
}

/// A subscriber and what it was told.
struct Hears {
    subscriber: RealtimeSubscriber,
    topic: SubscribedTopic,
    events: Vec<u64>,
    late: Vec<u64>,
    resent: usize,
    losses: Vec<(u64, u64, bool)>,
    subscribed: usize,
    refused: Vec<(RefusalReason, String)>,
    sessions: Vec<SessionReport>,
}

impl Hears {
    fn from(brokers: Brokers, subscription: Subscription) -> Self {
        let mut subscriber = RealtimeSubscriber::connect(brokers, EACH).expect("a subscriber");
        let topic = subscriber.subscribe(TOPIC, subscription);
        let (events, losses, sessions) = (Vec::new(), Vec::new(), Vec::new());
        Self { subscriber, topic, events, late: Vec::new(), resent: 0, losses, subscribed: 0, refused: Vec::new(), sessions }
    }

    fn turn(&mut self) {
        self.turn_within(Duration::from_millis(1));
    }

    fn turn_within(&mut self, wait: Duration) {
        let Self { subscriber, events, late, resent, losses, subscribed, refused, sessions, .. } = self;
        let told = subscriber.turn(wait, |report| match report {
            SubscriberReport::Event(event) => {
                let number = std::str::from_utf8(event.payload).ok().and_then(|text| text.parse().ok()).expect("a number");
                assert_eq!(event.header.sequence.0, number, "the payload is the event's own");
                if event.is_late {
                    late.push(number)
                } else {
                    events.push(number)
                }
                *resent += usize::from(event.header.flags.resend);
            }
            SubscriberReport::Lost { from, run, exceeds, .. } => losses.push((from.0, run, exceeds)),
            SubscriberReport::Subscribed(..) => *subscribed += 1,
            SubscriberReport::Refused { reason, text, .. } => refused.push((reason, text.to_owned())),
            SubscriberReport::Session(session) => sessions.push(session),
            other => panic!("{other:?}"),
        });
        told.expect("a turn");
    }

    async fn wait(&mut self) {
        self.subscriber.ready(PATIENCE).await.expect("a poll");
        self.turn_within(Duration::ZERO);
    }

    fn counters(&self) -> StreamCounters {
        let [(_, counters)] = self.subscriber.counters(self.topic).collect::<Vec<_>>()[..] else { panic!("one stream") };
        counters
    }
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
    }
}

fn both(sends: &mut Sends, hears: &mut Hears, what: &str, is_so: impl Fn(&Sends, &Hears) -> bool) {
    until(what, || {
        sends.turn();
        hears.turn();
        is_so(sends, hears)
    });
}

/// Both ends at two brokers; the subscription is made at each of them.
fn attached(first: &TestBroker, second: &TestBroker, retention: Retention) -> (Sends, Hears) {
    let mut sends = Sends::to(Brokers::pair("sensor", first.address, second.address), retention);
    let mut hears = Hears::from(Brokers::pair("display", first.address, second.address), REQUIRED);
    both(&mut sends, &mut hears, "both are attached", |sends, hears| {
        sends.publisher.leader().is_some() && hears.subscriber.leader().is_some() && hears.subscribed >= 2
    });
    (sends, hears)
}

fn blocking() -> Retention {
    Retention::new(1, 32, WhenFull::Block)
}

#[test]
fn an_event_is_covered_when_the_subscriber_has_taken_it() {
    let broker = TestBroker::leading(0);
    let mut sends = Sends::to(Brokers::one("sensor", broker.address), blocking());
    let mut hears = Hears::from(Brokers::one("display", broker.address), REQUIRED);
    both(&mut sends, &mut hears, "both are attached", |sends, hears| sends.publisher.leader().is_some() && hears.subscribed > 0);

    sends.publish(1..=20);
    let end = Instant::now() + Duration::from_millis(100);
    until("the broker has time", || {
        sends.turn();
        Instant::now() > end
    });
    assert_eq!(sends.covered, 0, "the subscriber has not taken any yet");
    both(&mut sends, &mut hears, "everything is covered", |sends, _| sends.covered == 20);
    assert_eq!(hears.events, (1..=20).collect::<Vec<_>>());
    assert_eq!((hears.counters().received, hears.counters().duplicates, hears.losses.len()), (20, 0, 0));
}

#[test]
fn what_a_dead_leader_has_taken_arrives_by_the_next_one() {
    let (first, second) = (TestBroker::leading(1), TestBroker::start(ServerSecurity::Null));
    let (mut sends, mut hears) = attached(&first, &second, Retention::new(5, 64, WhenFull::Block));
    sends.publish(1..=20);
    both(&mut sends, &mut hears, "the first are covered", |sends, _| sends.covered == 20);
    first.order(Order::Hold);
    sends.publish(21..=40);
    both(&mut sends, &mut hears, "they are sent", |sends, _| sends.publisher.leader() == Some(Session::One));
    assert_eq!(sends.covered, 20);

    drop(first);
    both(&mut sends, &mut hears, "the end is seen", |sends, hears| {
        sends.publisher.leader().is_none() && hears.subscriber.leader().is_none()
    });
    sends.publish(41..=45);
    second.order(Order::Lead(Epoch(2)));
    both(&mut sends, &mut hears, "everything is covered", |sends, _| sends.covered == 45);
    assert_eq!(hears.events, (1..=45).collect::<Vec<_>>(), "each once, and in order");
    let counters = hears.counters();
    assert_eq!((counters.lost, hears.losses.len(), hears.resent), (0, 0, 25));
    let leads = sends.sessions.iter().filter(|report| matches!(report, SessionReport::Leaderless | SessionReport::Leads(..)));
    let leads: Vec<String> = leads.map(|report| format!("{report:?}")).collect();
    assert_eq!(leads, ["Leads(One, Epoch(1))", "Leaderless", "Leads(Two, Epoch(2))"]);
}

#[test]
fn tasks_wait_without_holding_up_the_thread() {
    let (first, second) = (TestBroker::leading(1), TestBroker::start(ServerSecurity::Null));
    let (mut sends, mut hears) = attached(&first, &second, Retention::new(1, 64, WhenFull::Block));
    let publish = async {
        sends.publish(1..=50);
        while sends.covered < 50 {
            sends.wait().await;
        }
    };
    let subscribe = async {
        while hears.events.len() < 50 {
            hears.wait().await;
        }
        // Its acknowledgement was sent by the turn that told the last one.
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let both = async { tokio::join!(publish, subscribe) };
        tokio::time::timeout(PATIENCE, both).await.expect("everything arrives and is covered");
    });
    assert_eq!(hears.events, (1..=50).collect::<Vec<_>>());
}

#[test]
fn a_connection_that_breaks_costs_nothing() {
    let broker = TestBroker::leading(0);
    let mut sends = Sends::to(Brokers::one("sensor", broker.address), blocking());
    let mut hears = Hears::from(Brokers::one("display", broker.address), REQUIRED);
    both(&mut sends, &mut hears, "both are attached", |sends, hears| sends.publisher.leader().is_some() && hears.subscribed > 0);
    for round in 0..5 {
        sends.publish(round * 30 + 1..=round * 30 + 30);
        broker.order(Order::Cut);
        both(&mut sends, &mut hears, "everything is covered", |sends, _| sends.covered == round * 30 + 30);
    }
    assert_eq!(hears.events, (1..=150).collect::<Vec<_>>());
    assert_eq!((hears.counters().lost, hears.losses.len()), (0, 0));
    let ends = hears.sessions.iter().filter(|report| matches!(report, SessionReport::Ended(..))).count();
    assert!(ends > 0, "connections were cut");
}

#[test]
fn losses_are_told_with_the_length_of_their_run() {
    let (first, second) = (TestBroker::start(ServerSecurity::Null), TestBroker::start(ServerSecurity::Null));
    let mut sends = Sends::to(Brokers::pair("sensor", first.address, second.address), Retention::new(1, 4, WhenFull::DropOldest));
    let tolerant = Subscription { loss_tolerance: Some(3), ..REQUIRED };
    let mut hears = Hears::from(Brokers::pair("display", first.address, second.address), tolerant);
    let dropped: Vec<Option<u64>> = (1..=10)
        .map(|number: u64| sends.publisher.publish(sends.topic, number.to_string().as_bytes()).unwrap().dropped.map(|lost| lost.0))
        .collect();
    assert_eq!(dropped[4..], [Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)], "the publisher is told which ones");
    both(&mut sends, &mut hears, "both are attached", |_, hears| hears.subscribed >= 2);
    first.order(Order::Lead(Epoch(1)));
    both(&mut sends, &mut hears, "the rest arrives", |sends, hears| sends.covered == 10 && hears.events.len() == 4);
    assert_eq!((&hears.events[..], &hears.losses[..]), (&[7, 8, 9, 10][..], &[(1, 6, true)][..]));
    let counters = hears.counters();
    assert_eq!((counters.lost, counters.longest_run, counters.exceeded), (6, 6, 1));
}

#[test]
fn who_led_before_is_not_believed() {
    let (first, second) = (TestBroker::start(ServerSecurity::Null), TestBroker::leading(2));
    let (mut sends, mut hears) = attached(&first, &second, blocking());
    first.order(Order::Lead(Epoch(1)));
    let is_stale = |report: &SessionReport| matches!(report, SessionReport::StaleEpoch(Session::One, Epoch(1)));
    both(&mut sends, &mut hears, "both are told", |sends, hears| {
        sends.sessions.iter().any(is_stale) && hears.sessions.iter().any(is_stale)
    });
    assert_eq!((sends.publisher.leader(), hears.subscriber.leader()), (Some(Session::Two), Some(Session::Two)));
}

#[test]
fn a_leader_that_was_frozen_and_replaced_changes_nothing() {
    let (first, second) = (TestBroker::leading(1), TestBroker::start(ServerSecurity::Null));
    let (mut sends, mut hears) = attached(&first, &second, blocking());
    first.order(Order::Freeze);
    sends.publish(1..=10);
    second.order(Order::Lead(Epoch(2)));
    both(&mut sends, &mut hears, "everything is covered", |sends, _| sends.covered == 10);
    sends.publish(11..=12);

    // It takes, dispatches and would cover what it was sent before it stood still. The answers to its questions come behind all that.
    let ask = || first.order(Order::Say(vec![bytes(&ClientFrame::ClockRequest { epoch: Epoch(1), sent_utc_ns: 7 })]));
    ask();
    ask();
    let mut answers = 0;
    until("both answer twice", || {
        sends.turn();
        hears.turn();
        answers += first.said.try_iter().filter_map(clock).count();
        answers == 4
    });
    both(&mut sends, &mut hears, "the last ones are covered", |sends, _| sends.covered == 12);
    assert_eq!(hears.events, (1..=12).collect::<Vec<_>>());
    assert_eq!((hears.counters().lost, hears.counters().exceeded), (0, 0));
    assert_eq!((sends.publisher.leader(), hears.subscriber.leader()), (Some(Session::Two), Some(Session::Two)));
}

#[test]
fn a_silent_broker_is_left_and_tried_again() {
    let broker = TestBroker::leading(0);
    let mut brokers = Brokers::one("sensor", broker.address);
    brokers.limits.heartbeat = HeartbeatPolicy { interval: Duration::from_millis(20), timeout: Duration::from_millis(200) };
    let mut sends = Sends::to(brokers, blocking());
    until("it leads", || {
        sends.turn();
        sends.publisher.leader().is_some()
    });
    let end = Instant::now() + Duration::from_millis(500);
    until("it is asked for signs of life", || {
        sends.turn();
        Instant::now() > end
    });
    assert!(!sends.sessions.iter().any(|report| matches!(report, SessionReport::Ended(..))), "it gives them");
    broker.order(Order::Freeze);
    sends.publish(1..=5);
    until("it is left", || {
        sends.turn();
        sends.sessions.iter().any(|report| matches!(report, SessionReport::Ended(_, SessionEnd::Silent)))
    });
    broker.order(Order::Lead(Epoch(0)));
    until("everything is covered", || {
        sends.turn();
        sends.covered == 5
    });
}

#[test]
fn timers_end_a_wait() {
    let broker = TestBroker::leading(0);
    let mut sends = Sends::to(Brokers::one("sensor", broker.address), blocking());
    let mut hears = Hears::from(Brokers::one("display", broker.address), REQUIRED);
    let seldom = SubscriberConfig { acknowledge_every: 1000, acknowledge_after: Duration::from_millis(300), ..EACH };
    let brokers = Brokers { limits: unwatched(), ..Brokers::one("display", broker.address) };
    hears.subscriber = RealtimeSubscriber::connect(brokers, seldom).expect("a subscriber");
    hears.topic = hears.subscriber.subscribe(TOPIC, REQUIRED);
    both(&mut sends, &mut hears, "both are attached", |sends, hears| sends.publisher.leader().is_some() && hears.subscribed > 0);
    sends.publish(1..=5);
    both(&mut sends, &mut hears, "they arrive", |_, hears| hears.events.len() == 5);
    let begun = Instant::now();
    hears.turn_within(PATIENCE);
    assert!(begun.elapsed() < PATIENCE / 2, "the acknowledgement is due");
    both(&mut sends, &mut hears, "they are covered", |sends, _| sends.covered == 5);
    broker.order(Order::Cut);
    until("it says what it has", || {
        hears.turn();
        broker.said.try_iter().any(|said| matches!(said, Said::Subscribe(5)))
    });
}

#[test]
fn the_last_event_is_named_when_nothing_follows() {
    let broker = TestBroker::leading(0);
    let brokers = Brokers { limits: unwatched(), ..Brokers::one("sensor", broker.address) };
    let mut sends = Sends::to(brokers, blocking());
    let mut hears = Hears::from(Brokers::one("display", broker.address), REQUIRED);
    both(&mut sends, &mut hears, "both are attached", |sends, hears| sends.publisher.leader().is_some() && hears.subscribed > 0);
    // The subscriber acknowledges nothing from now on.
    sends.publish(1..=3);
    let begun = Instant::now();
    until("it is named", || {
        sends.turn_within(PATIENCE / 2);
        broker.said.try_iter().any(|said| matches!(said, Said::Last(3)))
    });
    assert!(begun.elapsed() < PATIENCE / 2, "the publisher's timer ends its wait");
}

/// Limits without signs of life, which would end a wait too.
fn unwatched() -> SessionLimits {
    SessionLimits { heartbeat: HeartbeatPolicy { interval: 10 * PATIENCE, timeout: PATIENCE }, ..SessionLimits::default() }
}

#[test]
fn what_cannot_be_kept_is_not_taken() {
    let broker = TestBroker::start(ServerSecurity::Null);
    let mut sends = Sends::to(Brokers::one("sensor", broker.address), Retention::new(1, 2, WhenFull::Block));
    let large = vec![0; 64 * 1024 + 1];
    let refused = sends.publisher.publish(sends.topic, &large);
    assert_eq!(refused, Err(PublishError::TooLarge { bytes: 64 * 1024 + 1, max: 64 * 1024 }));
    sends.publish(1..=2);
    assert!(matches!(sends.publisher.publish(sends.topic, b"3"), Err(PublishError::Full(_))));
    broker.order(Order::Lead(Epoch(1)));
    sends.publish(3..=100);
    until("everything is covered", || {
        sends.turn();
        sends.covered == 100
    });
}

#[test]
fn a_key_is_asked_for_and_shown() {
    let pair = |seed: u8| Arc::new(KeyPair::new(SecretKey::from_bytes(&mut [seed; 32])));
    let (server, own, other) = (pair(1), pair(2), pair(3));
    let broker = TestBroker::start(ServerSecurity::Curve(server.clone()));
    broker.order(Order::Lead(Epoch(1)));
    let brokers = |server: &KeyPair| Brokers {
        security: ClientSecurity::Curve { own: own.clone(), server: server.public().clone() },
        ..Brokers::one("sensor", broker.address)
    };
    let mut sends = Sends::to(brokers(&server), blocking());
    sends.publish(1..=100);
    until("everything is covered", || {
        sends.turn();
        sends.covered == 100
    });
    let mut deceived = Sends::to(brokers(&other), blocking());
    until("it ends", || {
        deceived.turn();
        deceived.sessions.iter().any(|report| matches!(report, SessionReport::Ended(..)))
    });
    assert!(!deceived.sessions.iter().any(|report| matches!(report, SessionReport::Ready(_))));
}

/// A port where `words` are said to everybody, and nothing else.
fn stranger(words: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            stream.write_all(words).expect("it takes a few bytes");
            kept.push(stream);
        }
    });
    address
}

#[test]
fn a_stranger_at_one_address_does_not_disturb_the_other() {
    let broker = TestBroker::leading(0);
    for (words, expected) in [(&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "expected a ZMTP 3 greeting"), (b"", "handshake within 50 ms")] {
        let mut brokers = Brokers::pair("sensor", stranger(words), broker.address);
        brokers.limits.connect_timeout = Duration::from_millis(50);
        let mut sends = Sends::to(brokers, blocking());
        sends.publish(1..=64);
        until("everything is covered, and the stranger told", || {
            sends.turn();
            let told =
                |report: &SessionReport| matches!(report, SessionReport::Ended(Session::One, end) if end.to_string().contains(expected));
            sends.covered == 64 && sends.sessions.iter().any(told)
        });
    }
}

#[test]
fn a_subscription_that_is_refused_is_told() {
    let broker = TestBroker::leading(0);
    let mut hears = Hears::from(Brokers::one("display", broker.address), REQUIRED);
    until("the first is made", || {
        hears.turn();
        hears.subscribed > 0
    });
    hears.subscriber.subscribe("PRESSURE", REQUIRED);
    until("the second is refused", || {
        hears.turn();
        !hears.refused.is_empty()
    });
    assert_eq!(hears.refused[0], (RefusalReason::UnknownTopic, "there is one topic".to_owned()));
}

#[test]
fn a_broker_is_told_the_time() {
    let broker = TestBroker::leading(0);
    let mut sends = Sends::to(Brokers::one("sensor", broker.address), blocking());
    let mut hears = Hears::from(Brokers::one("display", broker.address), REQUIRED);
    both(&mut sends, &mut hears, "both are attached", |sends, hears| sends.publisher.leader().is_some() && hears.subscribed > 0);
    broker.order(Order::Say(vec![bytes(&ClientFrame::ClockRequest { epoch: Epoch(0), sent_utc_ns: 7 })]));
    let mut times = Vec::new();
    until("both answer", || {
        sends.turn();
        hears.turn();
        times.extend(broker.said.try_iter().filter_map(clock));
        times.len() == 2
    });
    for (sent, received, replied) in times {
        assert!(sent == 7 && received > 0 && replied >= received, "{sent} {received} {replied}");
    }
}

fn clock(said: Said) -> Option<(u64, u64, u64)> {
    if let Said::Clock(sent, received, replied) = said { Some((sent, received, replied)) } else { None }
}

fn bytes(command: &ClientFrame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    command.encode(&mut bytes);
    bytes
}

/// The frames of an event of publisher 1 and its first incarnation; the payload is its number.
fn event(topic: &[u8], sequence: u64) -> Vec<Vec<u8>> {
    let (publisher, incarnation, sequence) = (PublisherId(1), Incarnation(1), Sequence(sequence));
    let mut header = Vec::new();
    EventHeader { flags: Flags::default(), publisher, incarnation, sequence, created_utc_ns: 0, epoch: Epoch(0) }.encode(&mut header);
    vec![topic.to_vec(), sequence.0.to_string().into_bytes(), header]
}

#[test]
fn what_comes_twice_is_told_once_and_what_is_missing_at_once() {
    let broker = TestBroker::leading(0);
    let mut hears = Hears::from(Brokers::one("display", broker.address), Subscription { loss_tolerance: Some(1), ..REQUIRED });
    until("it is attached", || {
        hears.turn();
        hears.subscribed > 0
    });
    [1, 1, 3, 3, 2, 3].into_iter().for_each(|sequence| broker.order(Order::Say(event(TOPIC.as_bytes(), sequence))));
    let (epoch, publisher, incarnation) = (Epoch(0), PublisherId(1), Incarnation(1));
    broker.order(Order::Say(vec![bytes(&ClientFrame::Last { epoch, publisher, incarnation, sequence: Sequence(5), topic: TOPIC })]));
    until("the last losses are told", || {
        hears.turn();
        hears.losses.len() == 2
    });
    assert_eq!((&hears.events[..], &hears.late[..]), (&[1, 3][..], &[2][..]));
    assert_eq!(hears.losses, [(2, 1, false), (4, 2, true)]);
    let expected = StreamCounters { received: 3, lost: 2, longest_run: 2, exceeded: 1, duplicates: 3 };
    assert_eq!(hears.counters(), expected);
}

#[test]
fn a_broker_that_talks_nonsense_is_left_and_tried_again() {
    let broker = TestBroker::leading(0);
    let mut hears = Hears::from(Brokers::one("display", broker.address), REQUIRED);
    let (topic, epoch) = (TOPIC.as_bytes().to_vec(), Epoch(0));
    let rows = [
        (vec![vec![]], "ends within version"),
        (vec![vec![1, 200, 0]], "kind"),
        (vec![topic.clone(), b"21.5".to_vec()], "came 2 frames"),
        (vec![topic.clone(), vec![], vec![], vec![], vec![]], "came 5 frames"),
        ([event(&topic, 1), vec![b"\xff".to_vec()]].concat(), "the metadata of the broker's event are not UTF-8"),
        (event(b"\xff", 1), "is not UTF-8"),
        (event(b"PRESSURE", 1), "not subscribed to"),
        (vec![topic.clone(), vec![], vec![1; 41]], "ends within"),
        (event(&topic, 0), "sequence has the value 0"),
        (vec![bytes(&ClientFrame::Unsubscribe { epoch, topic: TOPIC })], "a command for publishers or brokers"),
        (vec![vec![0; 64 * 1024 + 1]], "at most 65536"),
    ];
    for (row, (frames, expected)) in rows.into_iter().enumerate() {
        until("it is attached", || {
            hears.turn();
            hears.subscribed > row
        });
        broker.order(Order::Say(frames));
        until(expected, || {
            hears.turn();
            hears.sessions.iter().any(|report| matches!(report, SessionReport::Ended(_, end) if end.to_string().contains(expected)))
        });
        (hears.subscribed, hears.sessions) = (row + 1, Vec::new());
    }
    assert_eq!(hears.events, [] as [u64; 0]);
}
