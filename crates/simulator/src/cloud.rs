//! A cloud in true time: every process on its own host with its own clock, the network between them, and what happens next.
//!
//! | file | decides |
//! |---|---|
//! | `effect` | what becomes of what a process wants done |
//! | `connection` | who connects to whom, and when again |
//! | `trouble` | how a fault is carried out and mended |
//! | `scenario` | when the next fault comes, and when the cloud has to be whole again |
//! | `load` | when publishers publish and the operator commits |

mod connection;
mod effect;
mod load;
mod scenario;
mod trouble;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bodkin_broker::{
    Node,
    member::{MemberConfig, Mode},
    topic::LeaseTimes,
    wire::Record,
};

use self::{load::Arrivals, scenario::Scenario};
use crate::{
    agenda::Agenda,
    clock::{Clock, MILLISECOND_NS, SECOND_NS, Time},
    effects::Effects,
    fault::{Direction, Disk, Plan},
    ledger::{Ledger, StreamIndex},
    network::{Arrival, Arrivals as Coming, Content, Ending, Latency, Network, ProcessId},
    node::NodeProcess,
    packet::Packet,
    publisher::PublisherProcess,
    random::Random,
    requester::RequesterProcess,
    roster::{self, HOSTS, OPERATOR, Process},
    subscriber::SubscriberProcess,
    trace::Trace,
    violation::{StreamName, Violation},
    workload::{PUBLISHERS, REQUESTERS, SUBSCRIBERS, Workload},
};

/// Time in which processes start, in nanoseconds.
const START_NS: u64 = MILLISECOND_NS;
/// The same of nodes that start late: several leases after the others.
const START_LATE_NS: u64 = 100 * MILLISECOND_NS;

/// What happens.
#[derive(Debug)]
enum Event {
    /// Something arrives at a host.
    Arrival(Arrival),
    /// What has arrived at a host is read by its process, which stood still.
    Read { from: ProcessId, to: ProcessId, run: u32, content: Content<Packet> },
    /// A process's timer rings.
    Wake { process: ProcessId, run: u32 },
    /// A node's piece of work is done.
    Done { process: ProcessId, run: u32 },
    /// A member's record is on the disk.
    Persisted { process: ProcessId, run: u32, record: Record },
    /// A node's takeover is complete.
    TakenOver { process: ProcessId, run: u32 },
    /// A Backup's control operations are on the disk.
    Synced { process: ProcessId, run: u32, position: u64 },
    /// A publisher's application has something to say.
    Create { publisher: u16, run: u32, topic: u16 },
    /// The operator wants something committed.
    Commit,
    /// A client tries to connect.
    Connect { one: ProcessId, other: ProcessId },
    /// A process starts.
    Start { process: ProcessId },
    /// A link is whole again.
    Heal { from: ProcessId, to: ProcessId },
    /// What a node sends gets nowhere until then.
    Mute { node: Node, until: Time },
    /// What the other nodes send to a node is as fast as before.
    Hasten { node: Node },
    /// A process dies, as a part of a fault that has more than one.
    Die { node: Node, ending: Ending, down_ns: u64 },
    /// The UTC of a process's host is set ahead by so much.
    SetUtc { process: ProcessId, step_ns: i64 },
    /// A node is stopped, and started again with another lease.
    Restart { node: Node, lease_ns: u64 },
    /// Connections between a node and the other nodes are reset.
    ResetNode { node: Node },
    /// A clone of a node dies for good.
    End { clone: ProcessId, ending: Ending },
    /// The scenario looks at the cloud.
    Look,
}

/// What the cloud knows of a process.
#[derive(Clone, Copy, Debug)]
struct Host {
    run: u32,
    is_running: bool,
    /// It stands still until then.
    stalled_until: Time,
    /// It will stand still so long behind its next step, in front of what that sends.
    stalls_in_step_ns: Option<u64>,
    /// The earliest wake that is entered.
    wakes_at: Time,
    /// How its disk fails, and until when.
    disk: Option<(Disk, Time)>,
}

/// See the module.
#[derive(Debug)]
pub struct Cloud {
    now: Time,
    agenda: Agenda<Event>,
    network: Network<Packet>,
    coming: Coming,
    hosts: Vec<Host>,
    workload: Arc<Workload>,
    nodes: Vec<NodeProcess>,
    publishers: Vec<PublisherProcess>,
    subscribers: Vec<SubscriberProcess>,
    requesters: Vec<RequesterProcess>,
    effects: Effects,
    ledger: Ledger,
    streams: BTreeMap<StreamName, StreamIndex>,
    /// Pairs of processes of which one is trying to connect.
    connecting: Vec<(ProcessId, ProcessId)>,
    arrivals: Arrivals,
    scenario: Scenario,
    plan: Plan,
    random: Random,
    trace: Trace,
}

impl Cloud {
    /// The cloud of a seed, before anything has happened. It goes through so many faults.
    pub fn new(seed: u64, faults: u32) -> Self {
        let mut random = Random::new(seed);
        let workload = Arc::new(Workload::draw(&mut random));
        let platform = workload.platform;
        let mut clocks: Vec<Clock> = roster::all().map(|_| draw_clock(&workload, &mut random)).collect();
        let config = |node| member_config(&workload, node, platform.lease.lease.get().unsigned_abs());
        let heartbeat = Duration::from_nanos(platform.lease.heartbeat.get().unsigned_abs());
        let node = |node| NodeProcess::new(node, clocks[node as usize], config(node), workload.clone()).with_heartbeat(heartbeat);
        // The clones are made when they start.
        let nodes: Vec<NodeProcess> = Node::ALL.into_iter().chain(Node::ALL).map(node).collect();
        debug_assert_eq!(nodes.len(), roster::NODE_PROCESSES);
        let publishers = (0..PUBLISHERS)
            .map(|publisher| PublisherProcess::new(publisher, clocks[Process::Publisher(publisher).id().index()], workload.clone()));
        let subscribers = (0..SUBSCRIBERS)
            .map(|subscriber| SubscriberProcess::new(subscriber, clocks[Process::Subscriber(subscriber).id().index()], workload.clone()));
        let (publishers, subscribers) = (publishers.collect(), subscribers.collect());
        let requesters = (0..REQUESTERS).map(|requester| workload.requester(requester)).collect();
        clocks.clear();
        let host =
            Host { run: 0, is_running: false, stalled_until: Time::default(), stalls_in_step_ns: None, wakes_at: Time::NEVER, disk: None };
        let mut cloud = Self {
            now: Time::default(),
            agenda: Agenda::default(),
            network: network(&workload, random.fork()),
            coming: Vec::new(),
            hosts: vec![host; HOSTS],
            nodes,
            publishers,
            subscribers,
            requesters,
            effects: Effects::default(),
            ledger: Ledger::default(),
            streams: BTreeMap::new(),
            connecting: Vec::new(),
            arrivals: Arrivals::new(random.fork()),
            scenario: Scenario::new(faults),
            plan: Plan::new(random.fork(), platform.lease.lease.get().unsigned_abs()),
            workload,
            random,
            trace: Trace::default(),
        };
        let mut last_start = Time::default();
        for process in roster::all() {
            // Every order of starts, and nodes that start long after the others.
            let is_late = matches!(Process::of(process), Process::Node(_)) && cloud.random.chance(1, 4);
            let at = cloud.random.below(if is_late { START_LATE_NS } else { START_NS });
            cloud.agenda.push(Time(at), Event::Start { process });
            last_start = last_start.max(Time(at));
        }
        // A node that has just started grants nothing, so that another one's crash would be a second fault.
        cloud.scenario.begins_after(cloud.voting_again(last_start));
        // Nothing is in time before there is a cloud.
        cloud.ledger.disturbs(Time::default());
        cloud.agenda.push(Time::default(), Event::Look);
        cloud
    }

    /// Lets everything happen, to the end of the scenario.
    pub fn run(&mut self) -> Result<(), Violation> {
        while !self.scenario.is_over() {
            let (at, event) = self.agenda.pop().expect("the scenario looks again until it is over");
            self.now = at;
            self.happen(event)?;
        }
        self.ledger.settle_requests(self.now, |requester| self.workload.required_of(requester))?;
        self.ledger.settle(self.now)
    }

    /// True time since the start.
    pub fn now(&self) -> Time {
        self.now
    }

    /// What was counted.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What the scenario has done.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The last things that were seen.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Arrival(arrival) => {
                let Some(content) = self.network.arrive(self.now, arrival) else { return Ok(()) };
                self.read(arrival.from, arrival.to, content)
            }
            Event::Read { from, to, run, content } if self.is_run(to, run) => self.read(from, to, content),
            Event::Wake { process, run } if self.is_run(process, run) => {
                let host = &mut self.hosts[process.index()];
                if host.wakes_at == self.now {
                    host.wakes_at = Time::NEVER;
                }
                self.step(process, Event::Wake { process, run }, |cloud| cloud.wake(process))
            }
            Event::Done { process, run } if self.is_run(process, run) => {
                self.step(process, event, |cloud| cloud.nodes[node_index(process)].done(cloud.now, &mut cloud.effects))
            }
            Event::Persisted { process, run, record } if self.is_run(process, run) => {
                self.step(process, event, |cloud| cloud.nodes[node_index(process)].persisted(cloud.now, record, &mut cloud.effects))
            }
            Event::Synced { process, run, position } if self.is_run(process, run) => {
                self.step(process, event, |cloud| cloud.nodes[node_index(process)].synced(cloud.now, position, &mut cloud.effects))
            }
            Event::TakenOver { process, run } if self.is_run(process, run) => {
                self.step(process, event, |cloud| cloud.nodes[node_index(process)].taken_over(cloud.now, &mut cloud.effects))
            }
            Event::Create { publisher, run, topic } if self.is_run(Process::Publisher(publisher).id(), run) => {
                self.create(publisher, run, topic)
            }
            Event::Commit => self.commit(),
            Event::Connect { one, other } => self.connect(one, other),
            Event::Start { process } => self.start(process),
            Event::Heal { from, to } => {
                self.heal(from, to);
                Ok(())
            }
            Event::Mute { node, until } => {
                self.cut_off(node, Direction::Out, until);
                Ok(())
            }
            Event::Hasten { node } => {
                self.slow_ways_to(node, 0);
                Ok(())
            }
            Event::Die { node, ending, down_ns } => self.die(node, ending, down_ns),
            Event::End { clone, ending } => self.end_clone(clone, ending),
            Event::Restart { node, lease_ns } => self.restart(node, lease_ns),
            Event::ResetNode { node } => {
                Node::ALL.into_iter().filter(|other| *other != node).for_each(|other| self.reset(roster::node(node), roster::node(other)));
                Ok(())
            }
            Event::SetUtc { process, step_ns } => {
                self.set_utc(process, step_ns);
                self.scenario.has_right_clocks(self.now, &mut self.ledger);
                Ok(())
            }
            Event::Look => self.look(),
            Event::Read { .. }
            | Event::Wake { .. }
            | Event::Done { .. }
            | Event::Persisted { .. }
            | Event::Synced { .. }
            | Event::TakenOver { .. }
            | Event::Create { .. } => Ok(()),
        }
    }

    fn is_run(&self, process: ProcessId, run: u32) -> bool {
        let host = self.hosts[process.index()];
        host.is_running && host.run == run
    }

    /// A process reads what has come for it, now or when it moves again.
    fn read(&mut self, from: ProcessId, to: ProcessId, content: Content<Packet>) -> Result<(), Violation> {
        let Host { run, stalled_until, .. } = self.hosts[to.index()];
        if stalled_until > self.now {
            self.agenda.push(stalled_until, Event::Read { from, to, run, content });
            return Ok(());
        }
        if content == Content::Close {
            self.reconnect(from, to);
        }
        self.act(to, |cloud| cloud.receive(from, to, content))
    }

    /// Lets a process make a step, or makes it later if it stands still.
    fn step(&mut self, process: ProcessId, event: Event, act: impl FnOnce(&mut Self) -> Option<u64>) -> Result<(), Violation> {
        let stalled_until = self.hosts[process.index()].stalled_until;
        if stalled_until > self.now {
            self.agenda.push(stalled_until, event);
            return Ok(());
        }
        self.act(process, act)
    }

    fn receive(&mut self, from: ProcessId, to: ProcessId, content: Content<Packet>) -> Option<u64> {
        let Self { now, nodes, publishers, subscribers, requesters, effects, .. } = self;
        match (Process::of(to), content) {
            (Process::Node(_) | Process::Clone(_), Content::Frame(packet)) => nodes[node_index(to)].receive(*now, from, packet, effects),
            (Process::Node(_) | Process::Clone(_), Content::Close) => nodes[node_index(to)].closed(*now, from, effects),
            (Process::Publisher(publisher), Content::Frame(packet)) => {
                publishers[usize::from(publisher)].receive(*now, from, &packet, effects);
                None
            }
            (Process::Publisher(publisher), Content::Close) => {
                publishers[usize::from(publisher)].closed(*now, from, effects);
                None
            }
            (Process::Subscriber(subscriber), Content::Frame(packet)) => {
                subscribers[usize::from(subscriber)].receive(*now, from, &packet, effects);
                None
            }
            (Process::Subscriber(subscriber), Content::Close) => {
                subscribers[usize::from(subscriber)].closed(*now, from, effects);
                None
            }
            (Process::Requester(requester), Content::Frame(packet)) => {
                requesters[usize::from(requester)].receive(*now, from, &packet, effects);
                None
            }
            (Process::Requester(requester), Content::Close) => {
                requesters[usize::from(requester)].closed(*now, from);
                None
            }
            (Process::Operator, _) => None,
        }
    }

    fn wake(&mut self, process: ProcessId) -> Option<u64> {
        let Self { now, nodes, publishers, subscribers, requesters, effects, scenario, .. } = self;
        match Process::of(process) {
            Process::Node(_) | Process::Clone(_) => return nodes[node_index(process)].wake(*now, effects),
            Process::Publisher(publisher) => publishers[usize::from(publisher)].wake(*now, effects),
            Process::Subscriber(subscriber) => subscribers[usize::from(subscriber)].wake(*now, effects),
            Process::Requester(requester) => requesters[usize::from(requester)].wake(*now, scenario.is_busy(), effects),
            Process::Operator => {}
        }
        None
    }

    fn next_wake(&self, process: ProcessId) -> Option<Time> {
        match Process::of(process) {
            Process::Node(_) | Process::Clone(_) => self.nodes[node_index(process)].next_wake(self.now),
            Process::Publisher(publisher) => self.publishers[usize::from(publisher)].next_wake(),
            Process::Subscriber(subscriber) => self.subscribers[usize::from(subscriber)].next_wake(),
            Process::Requester(requester) => self.requesters[usize::from(requester)].next_wake(),
            Process::Operator => None,
        }
    }
}

/// The place of a node's process, or of its clone, among the cloud's nodes.
fn node_index(process: ProcessId) -> usize {
    roster::node_index(process).expect("the process has a node's name")
}

/// What a node's member is told, with a lease of its own.
fn member_config(workload: &Workload, node: Node, lease_ns: u64) -> MemberConfig {
    let LeaseTimes { heartbeat, drift_ppm, .. } = workload.platform.lease;
    let heartbeat = Duration::from_nanos(heartbeat.get().unsigned_abs());
    MemberConfig::new(node, Mode::Majority, Duration::from_nanos(lease_ns), heartbeat, drift_ppm).expect("two heartbeats are a lease")
}

/// A clock within what the platform allows.
fn draw_clock(workload: &Workload, random: &mut Random) -> Clock {
    let drift_ppb = i64::from(workload.platform.lease.drift_ppm) * 1_000;
    // Two clocks that are both wrong by half of it differ by no more than it.
    let error_ns = workload.platform.clock_error.get() / 2;
    let around = |most: i64, random: &mut Random| random.between(0, 2 * most.unsigned_abs()) as i64 - most;
    Clock {
        offset_ns: random.below(1_000_000 * SECOND_NS),
        drift_ppb: if random.chance(1, 2) { random.pick(&[-drift_ppb, drift_ppb]) } else { around(drift_ppb, random) },
        utc_error_ns: if random.chance(1, 2) { random.pick(&[-error_ns, error_ns]) } else { around(error_ns, random) },
    }
}

/// Whole links with the latencies that the platform promises.
fn network(workload: &Workload, random: Random) -> Network<Packet> {
    let nanos = |nanos: bodkin_broker::timing::Nanos| nanos.get().unsigned_abs();
    let platform = &workload.platform;
    let any = Latency { min_ns: nanos(platform.publisher_broker_min), max_ns: nanos(platform.broker_backup) };
    let mut network = Network::new(HOSTS, any, random);
    let publisher_max = workload.topics.iter().map(|topic| nanos(topic.spec.publisher_broker)).min().expect("there are topics");
    let subscriber_max = workload.topics.iter().map(|topic| nanos(topic.spec.broker_subscriber_max)).min().expect("there are topics");
    for client in roster::all().filter(|id| !matches!(Process::of(*id), Process::Node(_)) && *id != OPERATOR) {
        let is_publisher = matches!(Process::of(client), Process::Publisher(_) | Process::Requester(_));
        let max_ns = if is_publisher { publisher_max } else { subscriber_max };
        for node in [Node::First, Node::Second].map(roster::node) {
            let latency = Latency { min_ns: any.min_ns, max_ns };
            network.set_latency(client, node, latency);
            network.set_latency(node, client, latency);
        }
    }
    network
}
