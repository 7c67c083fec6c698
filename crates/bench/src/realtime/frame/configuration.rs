//! What a row is run against: brokers started for it, and gone with it.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use nix::unistd::Pid;

use crate::cloud::{Cloud, Directory};
use crate::options::{Configuration, FrameOptions, ServerOptions};
use crate::realtime::dialect::Speech;
use crate::realtime::system;
use crate::realtime::topic_file::{Coverage, topic_file};
use crate::realtime::workload::Workload;

/// Event types beside the topics.
const EVENT_TYPES_BESIDE: u32 = 1000;

/// Running brokers.
pub struct Stand {
    cloud: Cloud,
    address: SocketAddr,
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
        let directory = Directory::new(options.data.as_deref())?;
        let file = directory.file("topics.toml", &topic_file(workload, configuration.coverage(), false))?;
        let limit = (workload.topics() + EVENT_TYPES_BESIDE).max(100_000).to_string();
        let arguments = ["--config", &file, "--zmtp-system", system::SYSTEM, "--event-types-max", &limit, "--subscriptions-max", &limit];
        let server = ServerOptions { arguments: arguments.map(String::from).into(), ..ServerOptions::default() };
        let cloud = Cloud::start(directory, &server)?;
        system::register(&cloud)?;
        let address = cloud.zmtp.context("the broker has no ZMTP port")?;
        Ok(Self { cloud, address })
    }

    /// Where the brokers are reached, the Primary first.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        vec![self.address]
    }

    /// The brokers that run, by what they are.
    pub fn pids(&self) -> Vec<(&'static str, Pid)> {
        self.cloud.pid().map(|pid| ("primary", pid)).into_iter().collect()
    }

    /// Kills the Primary as the paper did.
    ///
    /// # Errors
    /// There is no other broker.
    pub fn kill_primary(&mut self) -> anyhow::Result<()> {
        bail!("there is no Backup that could go on")
    }
}
