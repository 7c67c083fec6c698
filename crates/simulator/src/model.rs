//! The model check: every order in which one stream's messages, the frames of the pair, one crash of a host and one partition can happen.
//!
//! The processes are those of the campaign, machines and all; only the network and the time are other ones. Time goes in a few ticks. What is sent
//! arrives within the tick, in any order of the connections, unless its link is cut; a tick ends when nothing is under way. Between any two
//! of these steps a host may die, and at the beginning of a tick a link may be cut.

use std::{
    collections::{BTreeMap, VecDeque},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use bodkin_broker::{
    Node,
    member::{MemberConfig, Mode},
    timing::Nanos,
    topic::{LeaseTimes, LossTolerance, Period, Platform, TopicSpec},
    wire::Record,
};
use stateright::{Checker, Expectation, Model, Property};

use crate::{
    aside::Aside,
    clock::{Clock, Time},
    effects::{Effects, Fact},
    network::ProcessId,
    node::NodeProcess,
    packet::Packet,
    publisher::PublisherProcess,
    roster::{self, Process},
    subscriber::SubscriberProcess,
    workload::{Topic, Workload},
};

/// Lease, in ticks.
const LEASE: i64 = 4;
/// Heartbeat, in ticks.
const HEARTBEAT: i64 = 2;
/// T, in ticks.
const PERIOD: u64 = 4;
/// Messages of the stream.
const MESSAGES: u64 = 4;
/// How long a crashed host is away, in ticks: it is back before its lease, or its promise, has run out.
const AWAY: u64 = 1;
/// How long a cut lasts, in ticks: longer than a lease.
const CUT: u64 = 6;

/// One run of the checker.
#[derive(Clone, Debug)]
struct Pair {
    workload: Arc<Workload>,
    /// How long it goes on from the first message on.
    ticks: u64,
    crashes: bool,
    cuts: bool,
    order: Order,
}

/// In which order processes take what has come for them in a tick. What has come for one of them is taken in any order of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// One after the other.
    Turns,
    /// Any, one at a time.
    Any,
}

/// Everything there is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    now: Time,
    nodes: [NodeProcess; 3],
    publisher: PublisherProcess,
    subscriber: SubscriberProcess,
    /// What is under way on each connection, first to last.
    under_way: BTreeMap<(ProcessId, ProcessId), VecDeque<Packet>>,
    connected: Vec<(ProcessId, ProcessId)>,
    writing: BTreeMap<ProcessId, Record>,
    syncing: BTreeMap<ProcessId, u64>,
    /// When a crashed node comes back.
    away: Option<(Node, Time)>,
    may_crash: bool,
    cut: Option<(ProcessId, ProcessId, Time)>,
    may_cut: bool,
    /// When the first message is published.
    begun_at: Time,
    created: u64,
    covered: u64,
    delivered: u64,
    /// What went wrong.
    broken: Option<&'static str>,
    /// The node that leads now is another one than the first leader, or has come back.
    is_promoted: bool,
    has_rejoined: bool,
    effects: Aside<Effects>,
}

/// What may happen next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Deliver(ProcessId, ProcessId),
    Persisted(ProcessId),
    Synced(ProcessId),
    Publish,
    Tick,
    Crash(Node),
    Cut(ProcessId, ProcessId),
}

fn workload() -> Workload {
    let ticks = Nanos::new;
    let platform =
        Platform { lease: LeaseTimes { lease: ticks(LEASE), heartbeat: ticks(HEARTBEAT), ..LeaseTimes::default() }, ..Platform::default() };
    let spec = TopicSpec {
        loss_tolerance: LossTolerance::AtMost(0),
        retention: 2,
        mark_every: NonZeroU32::MIN,
        ..TopicSpec::best_effort(Period::Every(ticks(PERIOD as i64)))
    };
    let topic = Topic { name: "TOPIC".to_owned(), spec, publishers: vec![0], subscribers: vec![(0, true)], keeps_newest_only: false };
    Workload { platform, topics: vec![topic] }
}

fn is_pair(one: ProcessId, other: ProcessId) -> bool {
    let ours = |process| match process {
        Process::Node(_) | Process::Publisher(0) | Process::Subscriber(0) => true,
        Process::Publisher(_) | Process::Subscriber(_) | Process::Operator | Process::Requester(_) | Process::Clone(_) => false,
    };
    let (one, other) = (Process::of(one), Process::of(other));
    ours(one) && ours(other) && one.calls(other)
}

impl State {
    fn new(workload: &Arc<Workload>) -> Self {
        let nanos = |ticks: i64| Duration::from_nanos(ticks.unsigned_abs());
        let node = |node| {
            let config = MemberConfig::new(node, Mode::Majority, nanos(LEASE), nanos(HEARTBEAT), 0).expect("a lease");
            NodeProcess::new(node, Clock::TRUE, config, workload.clone())
        };
        let mut state = Self {
            now: Time::default(),
            nodes: Node::ALL.map(node),
            publisher: PublisherProcess::new(0, Clock::TRUE, workload.clone()),
            subscriber: SubscriberProcess::new(0, Clock::TRUE, workload.clone()),
            under_way: BTreeMap::new(),
            connected: Vec::new(),
            writing: BTreeMap::new(),
            syncing: BTreeMap::new(),
            away: None,
            may_crash: false,
            cut: None,
            may_cut: false,
            created: 0,
            begun_at: Time::NEVER,
            covered: 0,
            delivered: 0,
            broken: None,
            is_promoted: false,
            has_rejoined: false,
            effects: Aside::default(),
        };
        state.publisher.start();
        for node in Node::ALL {
            state.act(roster::node(node), |state| {
                state.nodes[node as usize].start(state.now, &mut state.effects);
                None
            });
        }
        state.connect_all();
        state
    }

    /// Lets a process make a step: what it sends is under way then, and work takes no time.
    fn act(&mut self, process: ProcessId, act: impl FnOnce(&mut Self) -> Option<u64>) {
        let mut work = act(self);
        loop {
            let takes_over = self.effects.takes_over;
            self.carry_out(process);
            let Process::Node(node) = Process::of(process) else { break };
            let Self { nodes, effects, now, .. } = self;
            let node = &mut nodes[node as usize];
            work = match work {
                _ if takes_over => node.taken_over(*now, effects),
                Some(_) => node.done(*now, effects),
                None => break,
            };
        }
    }

    fn carry_out(&mut self, process: ProcessId) {
        let effects = std::mem::take(&mut self.effects.0);
        for (to, packet) in effects.sends {
            if self.connected.contains(&(process, to)) {
                self.under_way.entry((process, to)).or_default().push_back(packet);
            }
        }
        self.writing.extend(effects.persist.map(|record| (process, record)));
        self.syncing.extend(effects.sync.map(|position| (process, position)));
        for fact in effects.facts {
            self.note(fact);
        }
        for peer in effects.resets {
            self.disconnect(process, peer);
            self.disconnect(peer, process);
        }
        for peer in effects.closes {
            // The process counts the connection as closed. What it has sent last, the reason, is lost here.
            self.connected.retain(|pair| *pair != (process, peer));
            self.under_way.remove(&(peer, process));
            self.disconnect(peer, process);
        }
    }

    fn note(&mut self, fact: Fact) {
        match fact {
            Fact::Created { sequence, .. } => self.created = sequence,
            Fact::Covered { through, .. } => self.covered = self.covered.max(through),
            Fact::Delivered { sequence, is_whole, .. } => {
                self.check(is_whole, "a message has another's bytes");
                self.check(sequence > self.delivered, "a message comes twice, or behind a later one");
                self.check(sequence <= self.delivered + 1, "a message is lost");
                self.delivered = self.delivered.max(sequence);
            }
            Fact::Told { .. } => self.check(false, "a loss is told"),
            Fact::Acts { process, .. } => self.check(self.nodes[process.index()].leads(self.now), "a node acts without a lease"),
            Fact::ChannelBroken { .. } => self.check(false, "the replica channel is broken"),
            Fact::Contradiction { what } => self.check(false, what),
            Fact::TookOver { .. } => self.is_promoted = self.created > 0,
            Fact::Excess { .. } | Fact::NotTaken { .. } | Fact::Dropped { .. } | Fact::Shed { .. } => {
                self.check(false, "a message is given up")
            }
            Fact::Leads { .. } | Fact::Fenced { .. } | Fact::Answered { .. } | Fact::TookClone { .. } => {}
            Fact::RequestAnswered { .. } | Fact::RequestDelivered { .. } => unreachable!("the model has no requesters"),
        }
    }

    fn check(&mut self, holds: bool, what: &'static str) {
        if !holds {
            self.broken.get_or_insert(what);
        }
    }

    fn is_cut(&self, one: ProcessId, other: ProcessId) -> bool {
        self.cut.is_some_and(|(a, b, _)| (a, b) == (one, other) || (b, a) == (one, other))
    }

    fn is_running(&self, process: ProcessId) -> bool {
        !matches!((Process::of(process), self.away), (Process::Node(node), Some((away, _))) if node == away)
    }

    /// Everybody who may be connected is, at once.
    fn connect_all(&mut self) {
        for (one, other) in roster::all().flat_map(|one| roster::all().map(move |other| (one, other))) {
            let wanted = is_pair(one, other) && !self.connected.contains(&(one, other));
            if wanted && self.is_running(one) && self.is_running(other) && !self.is_cut(one, other) {
                self.connected.extend([(one, other), (other, one)]);
                self.connected.sort_unstable();
                self.act(one, |state| state.connected(one, other));
                self.act(other, |state| state.connected(other, one));
            }
        }
    }

    fn connected(&mut self, process: ProcessId, peer: ProcessId) -> Option<u64> {
        let Self { nodes, publisher, subscriber, now, effects, .. } = self;
        match Process::of(process) {
            Process::Node(node) => return nodes[node as usize].connected(*now, peer, effects),
            Process::Publisher(_) => publisher.connected(peer, effects),
            Process::Subscriber(_) => subscriber.connected(*now, peer, effects),
            Process::Operator | Process::Requester(_) | Process::Clone(_) => {}
        }
        None
    }

    /// One side hears that its connection is gone; what was under way to it is gone too.
    fn disconnect(&mut self, process: ProcessId, peer: ProcessId) {
        self.connected.retain(|pair| *pair != (process, peer));
        self.under_way.remove(&(peer, process));
        if !self.is_running(process) {
            return;
        }
        self.act(process, |state| {
            let Self { nodes, publisher, subscriber, now, effects, .. } = state;
            match Process::of(process) {
                Process::Node(node) => return nodes[node as usize].closed(*now, peer, effects),
                Process::Publisher(_) => publisher.closed(*now, peer, effects),
                Process::Subscriber(_) => subscriber.closed(*now, peer, effects),
                Process::Operator | Process::Requester(_) | Process::Clone(_) => {}
            }
            None
        });
    }

    fn deliver(&mut self, from: ProcessId, to: ProcessId) {
        let queue = self.under_way.get_mut(&(from, to)).expect("something is under way");
        let packet = queue.pop_front().expect("something is under way");
        if queue.is_empty() {
            self.under_way.remove(&(from, to));
        }
        self.act(to, |state| {
            let Self { nodes, publisher, subscriber, now, effects, .. } = state;
            match Process::of(to) {
                Process::Node(node) => return nodes[node as usize].receive(*now, from, packet, effects),
                Process::Publisher(_) => publisher.receive(*now, from, &packet, effects),
                Process::Subscriber(_) => subscriber.receive(*now, from, &packet, effects),
                Process::Operator | Process::Requester(_) | Process::Clone(_) => {}
            }
            None
        });
    }

    /// The host of a node is gone, with all that it had not sent and all that was on its way to it.
    fn crash(&mut self, node: Node) {
        let process = roster::node(node);
        self.may_crash = false;
        self.nodes[node as usize].kill();
        self.away = Some((node, self.now.plus(AWAY)));
        self.writing.remove(&process);
        self.syncing.remove(&process);
        self.under_way.retain(|(from, to), _| *from != process && *to != process);
        let peers: Vec<ProcessId> = self.connected.iter().filter(|(one, _)| *one == process).map(|(_, other)| *other).collect();
        for peer in peers {
            self.disconnect(process, peer);
            self.disconnect(peer, process);
        }
    }

    fn tick(&mut self) {
        self.now = self.now.plus(1);
        self.cut.take_if(|(_, _, until)| *until <= self.now);
        if let Some((node, _)) = self.away.take_if(|(_, until)| *until <= self.now) {
            self.act(roster::node(node), |state| {
                state.nodes[node as usize].start(state.now, &mut state.effects);
                None
            });
            self.has_rejoined = node != Node::Witness;
        }
        self.connect_all();
        for process in roster::all() {
            self.wake(process);
        }
    }

    fn wake(&mut self, process: ProcessId) {
        let due = |at: Option<Time>| at.is_some_and(|at| at <= self.now);
        let is_due = match Process::of(process) {
            Process::Node(node) => due(self.nodes[node as usize].next_wake(self.now)),
            Process::Publisher(0) => due(self.publisher.next_wake()),
            Process::Subscriber(0) => due(self.subscriber.next_wake()),
            Process::Publisher(_) | Process::Subscriber(_) | Process::Operator | Process::Requester(_) | Process::Clone(_) => false,
        };
        if is_due {
            self.act(process, |state| {
                let Self { nodes, publisher, subscriber, now, effects, .. } = state;
                match Process::of(process) {
                    Process::Node(node) => return nodes[node as usize].wake(*now, effects),
                    Process::Publisher(_) => publisher.wake(*now, effects),
                    Process::Subscriber(_) => subscriber.wake(*now, effects),
                    Process::Operator | Process::Requester(_) | Process::Clone(_) => {}
                }
                None
            });
        }
    }

    /// Nothing is left to do for a process within this tick.
    fn is_idle(&self, process: ProcessId) -> bool {
        let is_coming = |(from, to): &(ProcessId, ProcessId)| *to == process && !self.is_cut(*from, *to);
        !self.writing.contains_key(&process) && !self.syncing.contains_key(&process) && !self.under_way.keys().any(is_coming)
    }

    fn leaders(&self) -> usize {
        self.nodes.iter().filter(|node| node.leads(self.now)).count()
    }
}

impl Model for Pair {
    type State = State;
    type Action = Action;

    /// A pair that is protected, and nothing published.
    fn init_states(&self) -> Vec<State> {
        let mut state = State::new(&self.workload);
        while !state.nodes[0].is_whole(state.now) {
            assert!(state.now < Time(100), "the pair comes together");
            let mut actions = Vec::new();
            self.actions(&state, &mut actions);
            let action = actions.into_iter().find(|action| *action != Action::Publish).expect("time goes on");
            state = self.next_state(&state, action).expect("it is possible");
        }
        (state.may_crash, state.may_cut) = (self.crashes, self.cuts);
        state.begun_at = state.now;
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() || state.now >= state.begun_at.plus(self.ticks) {
            return;
        }
        if state.may_crash {
            actions.extend([Node::First, Node::Second].map(Action::Crash));
        }
        for process in roster::all().filter(|process| !state.is_idle(*process)) {
            let open = state.under_way.keys().filter(|(from, to)| *to == process && !state.is_cut(*from, *to));
            actions.extend(open.map(|(from, to)| Action::Deliver(*from, *to)));
            actions.extend(state.writing.contains_key(&process).then_some(Action::Persisted(process)));
            actions.extend(state.syncing.contains_key(&process).then_some(Action::Synced(process)));
            if self.order == Order::Turns {
                return;
            }
        }
        if roster::all().any(|process| !state.is_idle(process)) {
            return;
        }
        let is_due = state.created < MESSAGES && state.now >= state.begun_at.plus(state.created * PERIOD);
        actions.push(if is_due { Action::Publish } else { Action::Tick });
        if state.may_crash {
            actions.push(Action::Crash(Node::Witness));
        }
        if state.may_cut {
            let pairs = [(Node::First, Node::Second), (Node::First, Node::Witness), (Node::Second, Node::Witness)];
            actions.extend(pairs.map(|(one, other)| Action::Cut(roster::node(one), roster::node(other))));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Deliver(from, to) => state.deliver(from, to),
            Action::Persisted(process) => {
                let record = state.writing.remove(&process)?;
                state.act(process, |state| {
                    let State { nodes, now, effects, .. } = state;
                    nodes[process.index()].persisted(*now, record, effects)
                });
            }
            Action::Synced(process) => {
                let position = state.syncing.remove(&process)?;
                state.act(process, |state| {
                    let State { nodes, now, effects, .. } = state;
                    nodes[process.index()].synced(*now, position, effects)
                });
            }
            Action::Publish => {
                state.act(Process::Publisher(0).id(), |state| {
                    state.publisher.publish(state.now, 0, &mut state.effects);
                    None
                });
            }
            Action::Tick => state.tick(),
            Action::Crash(node) => state.crash(node),
            Action::Cut(one, other) => {
                state.cut = Some((one, other, state.now.plus(CUT)));
                state.may_cut = false;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no two lead at once", |_, state: &State| state.leaders() <= 1),
            Property::always("every promise is kept", |_, state: &State| state.broken.is_none()),
            Property::sometimes("every message is delivered", |_, state: &State| state.delivered == MESSAGES),
            Property::sometimes("every message is covered", |_, state: &State| state.covered == MESSAGES),
            Property::sometimes("a promoted node delivers", |_, state: &State| state.is_promoted && state.delivered == state.created),
            Property::sometimes("a leader is protected by a node that has returned", |_, state: &State| {
                state.has_rejoined && state.nodes.iter().any(|node| node.is_whole(state.now))
            }),
        ]
    }
}

/// Checks every state; gives how many there are.
fn check(pair: Pair) -> usize {
    let checker = pair.checker().spawn_bfs().join();
    for (property, path) in checker.discoveries() {
        let is_kept = checker.model().property(property).expectation == Expectation::Sometimes;
        let broken = path.last_state().broken;
        assert!(is_kept, "{property}: {broken:?} behind {:?}", path.into_actions());
    }
    let properties = checker.model().properties();
    let sometimes = properties.iter().filter(|property| property.expectation == Expectation::Sometimes);
    for Property { name, .. } in sometimes {
        let is_expected = checker.model().crashes || !name.starts_with("a ");
        assert_eq!(checker.discovery(name).is_some(), is_expected, "{name}");
    }
    checker.unique_state_count()
}

#[test]
fn one_crash_and_one_partition_break_no_promise() {
    let states = check(Pair { workload: Arc::new(workload()), ticks: 18, crashes: true, cuts: true, order: Order::Turns });
    assert!(states > 10_000, "{states} states are not all");
}

#[test]
fn one_partition_breaks_no_promise_in_any_order() {
    let states = check(Pair { workload: Arc::new(workload()), ticks: 26, crashes: false, cuts: true, order: Order::Any });
    assert!(states > 1_000, "{states} states are not all");
}
