use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use bodkin_arrowhead::record::SystemId;
use bodkin_broker::{Incarnation, Sequence};
use bodkin_store::event_log::{EventLog, EventLogLimits};
use proptest::prelude::*;

use super::*;
use crate::node_events::Account;

const A: u64 = 0xa1;
const B: u64 = 0xb2;
const C: u64 = 0xc3;
const TAG: &str = "c0ffee12";

fn id(sequence: u64) -> EventId {
    format!("1-2-3-{sequence:x}").parse().expect("an id")
}

fn token(text: &str) -> ResumeToken {
    format!("{TAG}:{text}").parse().expect("a token")
}

fn from(node: u64, position: u64) -> Option<Origin> {
    Some(Origin { node, position: Position(position), epoch: 1, lane: position })
}

#[test]
fn token_is_read_as_written() {
    let mut token = ResumeToken::new(CloudTag::of("c0ffee12aa"), A, 7);
    token.reach(B, LogPlace::behind(Position(9), 3));
    token.append(Position(0x2f), 0x18, None);
    token.append(Position(0x30), 0x19, Some((Origin { node: C, position: Position(5), epoch: 1, lane: 1 }, 0x17)));
    let text = token.to_string();
    assert_eq!(text, "@c0ffee12:a1.7~a1.31.19~b2.a.3~c3.6.17");
    assert_eq!(text[1..].parse(), Ok(token));
}

#[test]
fn text_that_is_no_token_is_rejected() {
    let wrong = [
        "",
        "a1.2",
        "a1.2.3",
        "c0ffee12",
        "c0ffee12:",
        "c0ffee12:a1",
        "c0ffee1:a1.2",
        "c0ffee12:a1.2~",
        "c0ffee12:a1.2~b2.1",
        "c0ffee12:a1.2~b2.1.+4",
        "c0ffee12:a1.2~b2.1.4.5",
        "c0ffee12:a1.2~b2.1.4~b2.1.4",
        "c0ffee12:a1.10000000000000000",
    ];
    for text in wrong {
        assert_eq!(text.parse::<ResumeToken>(), Err(InvalidToken), "{text}");
    }
    let many: String = (0..=NODES_MAX).map(|node| format!("~{node:x}.1.1")).collect();
    assert_eq!(format!("c0ffee12:a1.2{many}").parse::<ResumeToken>(), Err(InvalidToken));
}

#[test]
fn token_of_many_nodes_names_the_latest() {
    let mut token = ResumeToken::new(CloudTag::of(TAG), 0, 0);
    for node in 0..70 {
        token.reach(node, LogPlace::behind(Position(1), 100 + node));
    }
    let read: ResumeToken = token.to_string()[1..].parse().expect("a token");
    // The own node and the 63 latest others.
    assert_eq!((read.nodes.len(), read.nodes.contains_key(&0), read.nodes.contains_key(&7)), (NODES_MAX, true, true));
    assert!(!read.nodes.contains_key(&6) && read.covers(6, Position(1), 106), "by time");
}

#[test]
fn position_given_again_is_another_event() {
    let mut received = token("a1.0~a1.31.64");
    assert!(received.covers(A, Position(0x30), 0x64) && !received.covers(A, Position(0x30), 0x65));
    received = received.joined(&token("b2.0~a1.10.50~b2.1.70"));
    assert!(!received.covers(A, Position(0x30), 0x65), "also behind a move to another node");
}

#[test]
fn joined_token_never_decreases() {
    let (brought, own) = (token("a1.5~a1.31.64~b2.9.60"), token("b2.3~a1.20.50~b2.c.66~c3.1.1"));
    assert_eq!(brought.joined(&own).to_string(), "@c0ffee12:b2.3~a1.31.64~b2.c.66~c3.1.1");
    assert!(brought.is_within(&brought.joined(&own)) && own.is_within(&brought.joined(&own)));
    assert!(!brought.is_within(&own));
}

#[test]
fn first_pending_is_found_in_another_order() {
    let place_of = tempfile::tempdir().expect("a directory");
    let limits = EventLogLimits { bytes_max: 64 << 20, age_max: Duration::from_secs(3600) };
    let (mut log, reader) = EventLog::open(&place_of.path().join("events"), limits, Position(0), 0, Box::new(|_, _| {})).expect("a log");
    let mut now = ResumeToken::new(CloudTag::of(TAG), B, 0);
    // At node B: its own at 0 and 3, of A the first two at 1 and 2, of C one at 4.
    for (position, origin) in [(0, None), (1, from(A, 0)), (2, from(A, 2)), (3, None), (4, from(C, 8))] {
        let time_ns = 100 + position;
        log.append_from(origin, time_ns, id(position), "T", "{}", Instant::now());
        now.append(Position(position), time_ns, origin.map(|origin| (origin, time_ns)));
    }
    log.write(Instant::now());
    let pending = |text: &str| token(text).first_pending(&now, id(2), &reader).expect("it is read");
    assert_eq!(pending("a1.0~a1.3.66~c3.9.68~b2.ffff.ffff"), (Position(5), false), "everything was received");
    assert_eq!(pending("a1.0~a1.3.66~c3.9.68~b2.1.64"), (Position(3), false));
    assert_eq!(pending("a1.0~a1.1.65~b2.1.64~c3.9.68"), (Position(2), false));
    assert_eq!(pending("a1.0~a1.a.66~b2.4.67"), (Position(4), false), "nothing of C");
    assert_eq!(pending("a1.68~a1.a.66~b2.4.67"), (Position(5), false), "everything of C up to that time");
    assert_eq!(pending("b2.0~b2.3.66~a1.3.66"), (Position(3), false), "at the same node");
    assert_eq!(pending("b2.0~b2.5.67~a1.3.66~c3.9.68"), (Position(5), false), "behind an event that is in no log");
    assert_eq!(pending("b2.0~b2.4.66~a1.3.66~c3.9.68"), (Position(3), false), "a position that was given again");
}

/// A record of a node's log in the model.
#[derive(Clone, Copy, Debug)]
struct Logged {
    event: u64,
    origin: u64,
    position: u64,
    time_ns: u64,
}

/// A node in the model.
struct Node {
    token: ResumeToken,
    log: Vec<Logged>,
    /// Events of each other node on their way here.
    incoming: Vec<VecDeque<Logged>>,
}

impl Node {
    fn new(node: u64, nodes: usize, since_ns: u64) -> Self {
        Self { token: ResumeToken::new(CloudTag::of(TAG), node, since_ns), log: Vec::new(), incoming: vec![VecDeque::new(); nodes] }
    }

    /// Appends an event and returns its position here.
    fn append(&mut self, event: Logged, own_ns: u64) -> u64 {
        let position = self.log.len() as u64;
        let origin = Origin { node: event.origin, position: Position(event.position), epoch: 1, lane: event.position };
        let is_own = event.origin == self.token.node();
        self.token.append(Position(position), own_ns, (!is_own).then_some((origin, event.time_ns)));
        self.log.push(event);
        position
    }
}

/// What happens next in the model.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A node accepts an event, and is perhaps killed before the event is in its log.
    Accept { node: usize, is_killed: bool },
    /// Events of one node arrive at another one.
    Arrive { at: usize, from: usize, events: usize },
    /// The listener moves.
    Move { to: usize },
    /// The listener's connection breaks; it is away.
    Leave,
    /// A node starts for the first time.
    Join,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..5usize, prop::bool::weighted(0.1)).prop_map(|(node, is_killed)| Act::Accept { node, is_killed }),
        4 => (0..5usize, 0..5usize, 1..4usize).prop_map(|(at, from, events)| Act::Arrive { at, from, events }),
        2 => (0..5usize).prop_map(|to| Act::Move { to }),
        1 => Just(Act::Leave),
        1 => Just(Act::Join),
    ]
}

/// A listener and the nodes that it moves between.
struct Cloud {
    nodes: Vec<Node>,
    time_ns: u64,
    accepted: Vec<u64>,
    /// Where the listener is connected, and the token that it brought there.
    at: Option<usize>,
    brought: Option<ResumeToken>,
    last: Option<ResumeToken>,
    received: Vec<u64>,
    /// When the listener was told last that events may be lost.
    lost_ns: u64,
}

const NODES_OF_MODEL: usize = 5;

impl Cloud {
    fn receive(&mut self, event: Logged, own: &ResumeToken) {
        if self.brought.as_ref().is_some_and(|brought| brought.covers(event.origin, Position(event.position), event.time_ns)) {
            return;
        }
        let token = self.brought.as_ref().map_or_else(|| own.clone(), |brought| brought.joined(own));
        if let Some(last) = &self.last {
            assert!(last.is_within(&token), "{last} is followed by {token}");
        }
        self.last = Some(token.to_string()[1..].parse().expect("a token"));
        self.received.push(event.event);
    }

    fn accept(&mut self, node: usize, is_killed: bool) {
        self.time_ns += 1;
        let event = Logged { event: self.time_ns, origin: node as u64, position: self.nodes[node].log.len() as u64, time_ns: self.time_ns };
        let before = self.nodes[node].token.clone();
        self.nodes[node].append(event, self.time_ns);
        if self.at == Some(node) {
            let own = self.nodes[node].token.clone();
            self.receive(event, &own);
        }
        if is_killed {
            // Listeners are served first: the event is neither in the log nor answered, and its position is given again.
            self.nodes[node].log.pop();
            self.nodes[node].token = before;
            self.at = self.at.filter(|at| *at != node);
            self.received.retain(|received| *received != event.event);
            return;
        }
        self.accepted.push(event.event);
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            self.nodes[other].incoming[node].push_back(event);
        }
    }

    fn arrive(&mut self, at: usize, from: usize) {
        let Some(event) = self.nodes[at].incoming[from].pop_front() else { return };
        self.time_ns += 1;
        self.nodes[at].append(event, self.time_ns);
        if self.at == Some(at) {
            let own = self.nodes[at].token.clone();
            self.receive(event, &own);
        }
    }

    /// The replay, as `replay` and `shard::replay` do it.
    fn connect(&mut self, to: usize) {
        let own = self.nodes[to].token.clone();
        self.brought = self.last.as_ref().map(|last| last.continued_at(&own));
        self.at = Some(to);
        let Some(brought) = &self.brought else { return };
        if self.last.as_ref().is_some_and(|last| last.may_be_lost_at(&own)) {
            self.lost_ns = self.time_ns;
        }
        assert_eq!(brought.node(), own.node());
        let mut read = ResumeToken { nodes: BTreeMap::new(), ..own };
        for (position, event) in self.nodes[to].log.clone().into_iter().enumerate() {
            let origin = Origin { node: event.origin, position: Position(event.position), epoch: 1, lane: 1 };
            let is_own = event.origin == read.node();
            read.append(Position(position as u64), if is_own { event.time_ns } else { 0 }, (!is_own).then_some((origin, event.time_ns)));
            self.receive(event, &read);
        }
    }

    fn run(&mut self, act: Act) {
        let is_here = |node: usize| node < self.nodes.len();
        match act {
            Act::Accept { node, is_killed } if is_here(node) => self.accept(node, is_killed),
            Act::Arrive { at, from, events } if is_here(at) && is_here(from) => (0..events).for_each(|_| self.arrive(at, from)),
            Act::Move { to } if is_here(to) => self.connect(to),
            Act::Leave => self.at = None,
            Act::Join if self.nodes.len() < NODES_OF_MODEL => {
                self.time_ns += 1;
                self.nodes.push(Node::new(self.nodes.len() as u64, NODES_OF_MODEL, self.time_ns));
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Nodes that lag, are killed, and join; a listener that moves between them: each event exactly once, or reported as lost at a node that was new.
    #[test]
    fn moving_listener_receives_each_event_once(acts in prop::collection::vec(act(), 1..120)) {
        let nodes = (0..3).map(|node| Node::new(node, NODES_OF_MODEL, 0)).collect();
        let mut cloud = Cloud { nodes, time_ns: 10, accepted: Vec::new(), at: None, brought: None, last: None, received: Vec::new(), lost_ns: 0 };
        cloud.connect(0);
        cloud.accept(0, false);
        acts.into_iter().for_each(|act| cloud.run(act));
        for at in 0..cloud.nodes.len() {
            for from in 0..cloud.nodes.len() {
                while !cloud.nodes[at].incoming[from].is_empty() {
                    cloud.arrive(at, from);
                }
            }
        }
        for node in 0..3 {
            cloud.connect(node);
        }
        let mut received = cloud.received.clone();
        received.sort_unstable();
        let expected: Vec<u64> =
            cloud.accepted.iter().copied().filter(|event| *event > cloud.lost_ns || received.contains(event)).collect();
        prop_assert_eq!(received, expected);
    }
}

/// A node whose events go to the others at most once.
struct Sender {
    token: ResumeToken,
    log: Vec<Logged>,
    unkept: UnkeptEvents,
    account: Account,
    /// Events of each other node on their way here, and whether they are lost.
    incoming: Vec<VecDeque<(Logged, bool)>>,
    sequence: u64,
}

/// A listener that moves between nodes whose events go to each other at most once.
struct Lossy {
    nodes: Vec<Sender>,
    time_ns: u64,
    accepted: Vec<u64>,
    at: usize,
    brought: Option<ResumeToken>,
    last: Option<ResumeToken>,
    received: Vec<u64>,
    lost_ns: u64,
}

impl Lossy {
    fn new(nodes: usize) -> Self {
        let node = |node: usize| Sender {
            token: ResumeToken::new(CloudTag::of(TAG), node as u64, 0),
            log: Vec::new(),
            unkept: UnkeptEvents::default(),
            account: Account::default(),
            incoming: vec![VecDeque::new(); nodes],
            sequence: 0,
        };
        let nodes = (0..nodes).map(node).collect();
        let (accepted, received) = (Vec::new(), Vec::new());
        Self { nodes, time_ns: 10, accepted, at: 0, brought: None, last: None, received, lost_ns: 0 }
    }

    fn receive(&mut self, event: Logged, own: &ResumeToken) {
        if self.brought.as_ref().is_some_and(|brought| brought.covers(event.origin, Position(event.position), event.time_ns)) {
            return;
        }
        self.last = Some(self.brought.as_ref().map_or_else(|| own.clone(), |brought| brought.joined(own)));
        self.received.push(event.event);
    }

    fn accept(&mut self, node: usize, lost: &[bool]) {
        self.time_ns += 1;
        let sender = &mut self.nodes[node];
        let (position, time_ns) = (sender.log.len() as u64, self.time_ns);
        let event = Logged { event: time_ns, origin: node as u64, position, time_ns };
        sender.sequence += 1;
        sender.token.append(Position(position), time_ns, None);
        sender.log.push(event);
        self.accepted.push(event.event);
        if self.at == node {
            let own = self.nodes[node].token.clone();
            self.receive(event, &own);
        }
        for other in (0..self.nodes.len()).filter(|other| *other != node) {
            let is_lost = lost[other % lost.len()];
            self.nodes[other].incoming[node].push_back((event, is_lost));
        }
    }

    fn arrive(&mut self, at: usize, from: usize) {
        let Some((event, is_lost)) = self.nodes[at].incoming[from].pop_front() else { return };
        self.time_ns += 1;
        if is_lost {
            return;
        }
        // One event type and publisher: sequences are positions.
        let node = &mut self.nodes[at];
        let (run, sequence) = (Incarnation(1), Sequence(event.position + 1));
        let missing = node.account.take(&from.to_string(), "T", SystemId(1), run, sequence).expect("it is new");
        let place = LogPlace::behind(Position(event.position), event.time_ns);
        node.unkept.note("T", event.origin, place);
        node.token.reach(event.origin, place);
        if self.at == at {
            // The shard tells live listeners.
            self.lost_ns = if missing > 0 { self.time_ns } else { self.lost_ns };
            let own = self.nodes[at].token.clone();
            self.receive(event, &own);
        }
    }

    fn connect(&mut self, to: usize) {
        let own = self.nodes[to].token.clone();
        let Some(last) = &self.last else { return };
        if self.nodes[to].unkept.events_after("T", Some(last)) > 0 {
            self.lost_ns = self.time_ns;
        }
        self.brought = Some(last.continued_at(&own));
        self.at = to;
        let mut read = own.empty();
        for (position, event) in self.nodes[to].log.clone().into_iter().enumerate() {
            read.append(Position(position as u64), event.time_ns, None);
            self.receive(event, &read);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Without a stream: each event at most once, and a report behind each that is missing.
    #[test]
    fn lossy_links_lose_no_event_without_report(
        acts in prop::collection::vec((0..3usize, 0..3usize, 0..3usize, prop::collection::vec(prop::bool::weighted(0.2), 3)), 1..80),
    ) {
        let mut cloud = Lossy::new(3);
        // Every node has received an event of each other one: what was before the first is nobody's loss.
        for node in 0..3 {
            cloud.accept(node, &[false]);
            (0..3).for_each(|at| cloud.arrive(at, node));
        }
        for (act, one, other, lost) in acts {
            match act {
                0 => cloud.accept(one, &lost),
                1 => (0..2).for_each(|_| cloud.arrive(one, other)),
                _ => cloud.connect(one),
            }
        }
        // One more event of each node arrives, behind which a loss shows.
        for node in 0..3 {
            cloud.accept(node, &[false]);
        }
        for at in 0..3 {
            for from in 0..3 {
                while !cloud.nodes[at].incoming[from].is_empty() {
                    cloud.arrive(at, from);
                }
            }
        }
        let mut received = cloud.received.clone();
        received.sort_unstable();
        let count = received.len();
        received.dedup();
        prop_assert_eq!(received.len(), count, "at most once");
        let missing: Vec<u64> = cloud.accepted.iter().copied().filter(|event| !received.contains(event)).collect();
        prop_assert!(missing.iter().all(|event| *event <= cloud.lost_ns), "{:?} are missing, reported at {}", missing, cloud.lost_ns);
    }
}
