//! What a row is run against: brokers started for it, and gone with it.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use nix::unistd::Pid;

use crate::cloud::{Cloud, Directory};
use crate::options::{Configuration, FrameOptions, ServerOptions};
use crate::realtime::dialect::Speech;
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
}

impl Configuration {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bodkin => "bodkin",
            Self::Frame => "frame",
            Self::FramePlus => "frame-plus",
            Self::PubSub => "pub-sub",
        }
    }

    /// What it means.
    pub fn description(self) -> &'static str {
        match self {
            Self::Bodkin => "Table 3.2's N; an event is safe when its subscriber or the Backup has acknowledged it",
            Self::Frame => "the paper's FRAME: Table 3.2's N; an event is safe when it has been handed to the kernel",
            Self::FramePlus => "the paper's FRAME+: as FRAME with N = 2 in categories 2 and 5",
            Self::PubSub => "one node, two-frame events from PUB to SUB: deadlines, and no bound on losses",
        }
    }

    /// Whether there is a Backup.
    pub fn has_pair(self) -> bool {
        self != Self::PubSub
    }

    /// What both sides speak.
    pub fn speech(self) -> Speech {
        match self {
            Self::PubSub => Speech::ZmtpPubSub,
            Self::Bodkin | Self::Frame | Self::FramePlus => Speech::ZmtpDealer,
        }
    }

    fn coverage(self) -> Coverage {
        match self {
            Self::Frame | Self::FramePlus => Coverage::Host,
            Self::Bodkin | Self::PubSub => Coverage::Acknowledged,
        }
    }
}

impl Stand {
    /// Starts what the configuration needs, with the workload's topics.
    ///
    /// # Errors
    /// A broker does not start or does not admit the topics.
    pub fn start(configuration: Configuration, workload: &Workload, options: &FrameOptions) -> anyhow::Result<Self> {
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
        }
    }

    /// The brokers that run, by what they are.
    pub fn pids(&self) -> Vec<(&'static str, Pid)> {
        match self {
            Self::Alone(cloud) => cloud.pid().map(|pid| ("primary", pid)).into_iter().collect(),
            Self::Pair(trio) => trio.pids(),
        }
    }

    /// Kills the Primary as the paper did.
    ///
    /// # Errors
    /// There is no other broker.
    pub fn kill_primary(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Alone(_) => bail!("there is no Backup that could go on"),
            Self::Pair(trio) => trio.kill_primary(),
        }
    }
}
