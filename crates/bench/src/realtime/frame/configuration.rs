//! What a row is run against: brokers started for it, and gone with it.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use nix::unistd::Pid;

use crate::cloud::{Cloud, Directory};
use crate::options::{Configuration, FrameOptions, ServerOptions};
use crate::realtime::dialect::Speech;
use crate::realtime::peer::PeerServer;
use crate::realtime::system::{self, SYSTEM};
use crate::realtime::topic_file::{Coverage, topic_file};
use crate::realtime::workload::Workload;
use crate::trio::Trio;

/// Event types beside the topics.
const EVENT_TYPES_BESIDE: u32 = 1000;
/// The limit is no lower than the default.
const EVENT_TYPES_LEAST: u32 = 100_000;

/// Running brokers.
pub enum Stand {
    /// One node.
    Alone(Box<Cloud>),
    /// A pair and its witness.
    Pair(Box<Trio>),
    /// Somebody else's.
    Peer(PeerServer),
}

impl Configuration {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bodkin => "bodkin",
            Self::Frame => "frame",
            Self::FramePlus => "frame-plus",
            Self::Alone => "alone",
            Self::PubSub => "pub-sub",
            Self::Nats => "nats",
            Self::JetstreamR1 => "jetstream-r1",
            Self::JetstreamR3 => "jetstream-r3",
            Self::MosquittoQos0 => "mosquitto-qos0",
            Self::MosquittoQos1 => "mosquitto-qos1",
        }
    }

    /// What it means.
    pub fn description(self) -> &'static str {
        match self {
            Self::Bodkin => "Table 3.2's N; an event is safe when its subscriber or the Backup has acknowledged it",
            Self::Frame => "the paper's FRAME: Table 3.2's N; an event is safe when it has been handed to the kernel",
            Self::FramePlus => "the paper's FRAME+: as FRAME with N = 2 in categories 2 and 5",
            Self::Alone => "one node, acknowledged by its subscribers: as bodkin without a Backup",
            Self::PubSub => "one node, two-frame events from PUB to SUB: deadlines, and no bound on losses",
            Self::Nats => "nats-server, core: in memory, at most once; every topic a subscription of its own",
            Self::JetstreamR1 => {
                "nats-server with JetStream, one replica in memory, each event acknowledged to its publisher; a pushed consumer for each category"
            }
            Self::JetstreamR3 => "three nodes of nats-server, three replicas in memory, otherwise as jetstream-r1",
            Self::MosquittoQos0 => "mosquitto with QoS 0, in memory; every topic a subscription of its own",
            Self::MosquittoQos1 => "mosquitto with QoS 1 both ways, in memory",
        }
    }

    /// Whether there is a Backup.
    pub fn has_pair(self) -> bool {
        matches!(self, Self::Bodkin | Self::Frame | Self::FramePlus)
    }

    /// What both sides speak.
    pub fn speech(self) -> Speech {
        match self {
            Self::Alone => Speech::ZmtpDealer,
            Self::PubSub => Speech::ZmtpPubSub,
            Self::Nats => Speech::Nats,
            Self::JetstreamR1 => Speech::JetStream { replicas: 1 },
            Self::JetstreamR3 => Speech::JetStream { replicas: 3 },
            Self::MosquittoQos0 => Speech::Mqtt { qos: 0 },
            Self::MosquittoQos1 => Speech::Mqtt { qos: 1 },
            Self::Bodkin | Self::Frame | Self::FramePlus => Speech::ZmtpDealer,
        }
    }

    fn coverage(self) -> Coverage {
        match self {
            Self::Frame | Self::FramePlus => Coverage::Host,
            _ => Coverage::Acknowledged,
        }
    }
}

impl Stand {
    /// Starts what the configuration needs, with the workload's topics.
    ///
    /// # Errors
    /// A broker does not start or does not admit the topics.
    pub fn start(configuration: Configuration, workload: &Workload, options: &FrameOptions) -> anyhow::Result<Self> {
        match configuration.speech() {
            Speech::Nats => return Ok(Self::Peer(PeerServer::nats(None)?)),
            Speech::JetStream { replicas } => return Ok(Self::Peer(PeerServer::nats(Some(usize::from(replicas)))?)),
            Speech::Mqtt { .. } => return Ok(Self::Peer(PeerServer::mosquitto()?)),
            Speech::ZmtpPubSub | Speech::ZmtpDealer | Speech::Echo { .. } => {}
        }
        let limit = (workload.topics() + EVENT_TYPES_BESIDE).max(EVENT_TYPES_LEAST);
        let keys = format!("zmtp_system = \"{SYSTEM}\"\nevent_types_max = {limit}\nsubscriptions_max = {limit}\n");
        let file = keys + &topic_file(workload, configuration.coverage(), configuration.has_pair());
        if configuration.has_pair() {
            let trio = Trio::start(&file, options.data.as_deref())?;
            system::register(&trio.service_registry()?)?;
            return Ok(Self::Pair(Box::new(trio)));
        }
        let directory = Directory::new(options.data.as_deref())?;
        let arguments = vec!["--config".into(), directory.file("topics.toml", &file)?];
        let cloud = Cloud::start(directory, &ServerOptions { arguments, ..ServerOptions::default() })?;
        system::register(&cloud.service_registry)?;
        Ok(Self::Alone(Box::new(cloud)))
    }

    /// Where the brokers are reached, the Primary first.
    ///
    /// # Errors
    /// One has no ZMTP port.
    pub fn addresses(&self) -> anyhow::Result<Vec<SocketAddr>> {
        match self {
            Self::Alone(cloud) => Ok(vec![cloud.zmtp.context("the broker has no ZMTP port")?]),
            Self::Pair(trio) => trio.zmtp(),
            Self::Peer(server) => Ok(vec![server.address]),
        }
    }

    /// The brokers that run, by what they are.
    pub fn pids(&self) -> Vec<(&'static str, Pid)> {
        match self {
            Self::Alone(cloud) => cloud.pid().map(|pid| ("primary", pid)).into_iter().collect(),
            Self::Pair(trio) => trio.pids(),
            Self::Peer(server) => server.pids(),
        }
    }

    /// Kills the Primary as the paper did.
    ///
    /// # Errors
    /// There is no other broker.
    pub fn kill_primary(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Alone(_) | Self::Peer(_) => bail!("there is no Backup that could go on"),
            Self::Pair(trio) => trio.kill_primary(),
        }
    }
}
