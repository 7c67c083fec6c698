//! A pair whose nodes are of two versions: an older protocol is refused.
//!
//! The nodes run in this process, for a process of its own has no way to be held to an older protocol.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use bodkin_arrowhead::name::EventType;
use bodkin_broker::{
    Node,
    member::Mode,
    timing::Nanos,
    topic::{LeaseTimes, LossTolerance, Period, Platform, TopicSpec},
};
use bodkin_host::{
    DeclaredTopic, HostConfig, Server, ZmtpConfig,
    pair::{Duty, Leadership, PROTOCOL, PROTOCOL_MIN, PairConfig, PairHandle, PairNode},
    realtime::Realtime,
};
use tokio::runtime::Builder;

use super::nodes::LEASE;
use crate::support::patience::eventually;
use crate::support::ports::{HeldOffset, held_offset, held_port};

/// The newest protocol that is refused.
const OLD: u16 = PROTOCOL_MIN - 1;
const SHUTDOWN_MAX: Duration = Duration::from_secs(2);

/// A node in this process; it ends in order when it is dropped.
struct InProcess {
    handle: PairHandle,
    /// Where the others reach it.
    address: Option<SocketAddr>,
    thread: Option<JoinHandle<()>>,
}

/// Where the nodes keep their data and are found.
struct Places {
    place: tempfile::TempDir,
    offsets: [HeldOffset; 2],
    /// Of the Backup and of the witness.
    addresses: [SocketAddr; 2],
}

fn held_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], held_port()))
}

impl Places {
    fn new() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        Self { place, offsets: [held_offset(), held_offset()], addresses: [held_address(), held_address()] }
    }

    fn config(&self, node: Node, protocol: u16) -> PairConfig {
        let [backup, witness] = self.addresses;
        let (listen, others) = match node {
            Node::First => (None, vec![(Node::Second, backup), (Node::Witness, witness)]),
            Node::Second => (Some(backup), vec![(Node::Witness, witness)]),
            Node::Witness => (Some(witness), Vec::new()),
        };
        PairConfig {
            node,
            data: self.data(node),
            listen,
            others,
            security: None,
            mode: Mode::Majority,
            lease: LEASE,
            heartbeat: LEASE / 8,
            drift_ppm: 200,
            detect_jitter: LEASE,
            redirect: LEASE,
            topics: None,
            protocol,
            is_forced: false,
            realtime: Realtime::ordinary(),
        }
    }

    fn data(&self, node: Node) -> std::path::PathBuf {
        self.place.path().join(format!("{node:?}"))
    }

    /// The witness, where it was before.
    fn witness(&mut self, protocol: u16) -> InProcess {
        let mut node = PairNode::start(self.config(Node::Witness, protocol)).expect("a node");
        let (handle, address) = (node.handle().clone(), node.address);
        self.addresses[1] = address.expect("a witness listens");
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().build().expect("a runtime");
            while runtime.block_on(node.next_duty()) != Duty::End {}
            node.stop();
        });
        InProcess { handle, address, thread: Some(thread) }
    }

    /// A broker, where it was before.
    fn broker(&mut self, node: Node, protocol: u16) -> InProcess {
        let mut pair = PairNode::start(self.config(node, protocol)).expect("a node");
        let (handle, address) = (pair.handle().clone(), pair.address);
        if let Some(address) = address {
            self.addresses[0] = address;
        }
        let config = HostConfig { pair: Some(handle.clone()), ..host(&self.data(node), self.offsets[node as usize].get()) };
        let (begun, begins) = mpsc::channel();
        let thread = thread::spawn(move || {
            while serve(&config, &mut pair, &begun) == Duty::Follow {}
            pair.stop();
        });
        begins.recv().expect("it begins");
        InProcess { handle, address, thread: Some(thread) }
    }
}

fn host(data: &Path, offset: u16) -> HostConfig {
    let topic = TopicSpec {
        jitter: Nanos::from_millis(50),
        deadline: Nanos::from_millis(500).into(),
        loss_tolerance: LossTolerance::AtMost(0),
        retention: 800,
        ..TopicSpec::best_effort(Period::Every(Nanos::from_millis(1)))
    };
    let nanos = |duration: Duration| Nanos::new(i64::try_from(duration.as_nanos()).expect("it is short"));
    let lease = LeaseTimes {
        lease: nanos(LEASE),
        heartbeat: nanos(LEASE / 8),
        drift_ppm: 200,
        detect_jitter: Nanos::from_millis(100),
        redirect: Nanos::from_millis(50),
    };
    HostConfig {
        ports: bodkin_host::Port::ALL.map(|port| port.default_port() + offset),
        zmtp: Some(ZmtpConfig { port: 5570 + offset, system: None, ipc: None }),
        platform: Platform { lease, ..Platform::default() },
        topics: [DeclaredTopic { event_type: EventType::parse("hot").expect("a name"), spec: topic.into(), permitted: Default::default() }]
            .into(),
        ..HostConfig::on_loopback(data)
    }
}

/// Runs a local cloud until it has to end; what comes behind it.
fn serve(config: &HostConfig, pair: &mut PairNode, begun: &mpsc::Sender<()>) -> Duty {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let (opened, next) = runtime.block_on(async {
        let mut server = Server::start(config).await.expect("a local cloud");
        // Who waits for the first one only is gone.
        let _ = begun.send(());
        let next = loop {
            match pair.next_duty().await {
                Duty::Lead => server.lead().await.expect("it leads"),
                next => break next,
            }
        };
        (server.stop().await, next)
    });
    pair.handle().detach();
    runtime.shutdown_timeout(SHUTDOWN_MAX);
    opened.close();
    next
}

impl InProcess {
    fn leadership(&self) -> &Arc<Leadership> {
        self.handle.leadership()
    }

    #[track_caller]
    fn protected(&self) {
        assert!(eventually(|| self.leadership().is_protected()), "{:?}", self.leadership());
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.handle.end();
        let ended = self.thread.take().expect("it runs").join();
        assert!(ended.is_ok() || thread::panicking(), "a node has panicked");
    }
}

#[test]
fn node_of_older_protocol_is_refused() {
    let mut places = Places::new();
    let (_witness, backup) = (places.witness(OLD), places.broker(Node::Second, PROTOCOL));
    let primary = places.broker(Node::First, PROTOCOL);
    primary.protected();
    let reached = || (primary.leadership().reaches_witness(), backup.leadership().reaches_witness());
    assert_eq!(reached(), (Some(false), Some(false)), "two processes of a node could lead with its vote");
}

#[test]
fn nodes_of_two_protocols_form_a_pair() {
    let mut places = Places::new();
    let (_witness, backup) = (places.witness(PROTOCOL), places.broker(Node::Second, PROTOCOL_MIN));
    let primary = places.broker(Node::First, PROTOCOL);
    primary.protected();
    assert_eq!(backup.leadership().reaches_witness(), Some(true));
}

#[test]
fn the_clocks_of_the_brokers_hosts_are_compared() {
    let mut places = Places::new();
    let (_witness, backup) = (places.witness(PROTOCOL), places.broker(Node::Second, PROTOCOL));
    let primary = places.broker(Node::First, PROTOCOL);
    primary.protected();
    for node in [&primary, &backup] {
        assert!(eventually(|| node.leadership().clock_difference_ns().is_some()), "{:?}", node.leadership());
        // They are one host's.
        assert_eq!(node.leadership().clock_difference_ns(), Some(0));
    }
    assert!(backup.address.is_some());
}
