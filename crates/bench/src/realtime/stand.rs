//! What a run is against: brokers started for it, and gone with it.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, bail};
use nix::unistd::Pid;

use super::dialect::Speech;
use super::peer::PeerServer;
use super::system::{self, SYSTEM};
use super::workload::Workload;
use crate::cloud::{Cloud, Directory};
use crate::options::ServerOptions;
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

impl Stand {
    /// Somebody else's broker that speaks this; `None`: it is our own that does.
    ///
    /// # Errors
    /// It is not there, or does not start.
    pub fn peer(speech: Speech) -> anyhow::Result<Option<Self>> {
        let server = match speech {
            Speech::Nats => PeerServer::nats(None)?,
            Speech::JetStream { replicas } => PeerServer::nats(Some(usize::from(replicas)))?,
            Speech::Mqtt { .. } => PeerServer::mosquitto()?,
            Speech::ZmtpPubSub | Speech::ZmtpDealer | Speech::Echo { .. } => return Ok(None),
        };
        Ok(Some(Self::Peer(server)))
    }

    /// One node with these keys and room for the workload's topics.
    ///
    /// # Errors
    /// It does not start or does not admit the topics.
    pub fn alone(workload: &Workload, keys: &str, parent: Option<&Path>) -> anyhow::Result<Self> {
        let directory = Directory::new(parent)?;
        let arguments = vec!["--config".into(), directory.file("topics.toml", &with_limits(workload, keys))?];
        let cloud = Cloud::start(directory, &ServerOptions { arguments, ..ServerOptions::default() })?;
        system::register(&cloud.service_registry)?;
        Ok(Self::Alone(Box::new(cloud)))
    }

    /// A pair with these keys and room for the workload's topics, its Backup in sync.
    ///
    /// # Errors
    /// As [`Self::alone`], or the nodes do not come together.
    pub fn pair(workload: &Workload, keys: &str, parent: Option<&Path>) -> anyhow::Result<Self> {
        let trio = Trio::start(&with_limits(workload, keys), parent)?;
        system::register(&trio.service_registry()?)?;
        Ok(Self::Pair(Box::new(trio)))
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

    /// Where the Backup listens for the Primary, where there is one.
    pub fn backup_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Pair(trio) => Some(trio.backup_address),
            Self::Alone(_) | Self::Peer(_) => None,
        }
    }

    /// Kills the Primary as the papers did.
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

/// The limits of `bodkin up` that the topics need, in front of its other keys.
fn with_limits(workload: &Workload, keys: &str) -> String {
    let limit = (workload.topics() + EVENT_TYPES_BESIDE).max(EVENT_TYPES_LEAST);
    format!("zmtp_system = \"{SYSTEM}\"\nevent_types_max = {limit}\nsubscriptions_max = {limit}\n{keys}")
}
