//! Which cloud is under load, and how the bench's own server runs.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::value::{bytes, processors};
use crate::certificates::Certificates;
use crate::cgroup::ResourceLimits;
use crate::endpoint::Endpoint;

/// Which cloud, and what is known about it.
#[derive(Debug, Clone, Default, Args)]
pub struct TargetOptions {
    /// Service Registry of the cloud under load [default: an own server, started by the bench]
    #[arg(long, value_name = "http://HOST:PORT", conflicts_with_all = ["data", "cpu", "memory"])]
    pub target: Option<Endpoint>,
    /// Authorization system [default: asked of the Service Registry]
    #[arg(long, value_name = "http://HOST:PORT", requires = "target")]
    pub authorization: Option<Endpoint>,
    /// Orchestrator [default: asked of the Service Registry]
    #[arg(long, value_name = "http://HOST:PORT", requires = "target")]
    pub orchestrator: Option<Endpoint>,
    /// Event Handler [default: asked of the Service Registry]
    #[arg(long, value_name = "http://HOST:PORT", requires = "target")]
    pub event_handler: Option<Endpoint>,
    /// Bodkin's monitor port, for the time of each stage
    #[arg(long, value_name = "http://HOST:PORT", requires = "target")]
    pub monitor: Option<Endpoint>,
    /// Process whose memory is reported
    #[arg(long, value_name = "PID", requires = "target", value_parser = clap::value_parser!(i32).range(1..))]
    pub server_pid: Option<i32>,
    /// Address of the systems that the bench registers
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub provider_address: String,
    #[command(flatten)]
    /// The own server, where there is no target.
    pub server: ServerOptions,
}

/// How the bench's own server runs.
#[derive(Debug, Clone, Default, Args)]
pub struct ServerOptions {
    /// Where the own server's temporary data directory is made [default: the system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Processors the own server may use, by a cgroup; fails where there are none
    #[arg(long, value_name = "SHARE", value_parser = processors)]
    pub cpu: Option<f64>,
    /// Memory the own server may use, by a cgroup; fails where there are none
    #[arg(long, value_name = "BYTES[K|M|G]", value_parser = bytes)]
    pub memory: Option<u64>,
    /// Worker threads of the own server's control plane; an option of `event` [default: the server's]
    #[arg(skip)]
    pub worker_threads: Option<u32>,
    /// With these it runs in secure mode
    #[arg(skip)]
    pub certificates: Option<Arc<Certificates>>,
    /// More arguments of `bodkin up`, which an experiment needs
    #[arg(skip)]
    pub arguments: Vec<String>,
}

impl ServerOptions {
    /// The limits, where any was given.
    pub fn limits(&self) -> Option<ResourceLimits> {
        let limits = ResourceLimits { processors: self.cpu, memory_bytes: self.memory };
        (limits != ResourceLimits::default()).then_some(limits)
    }

    /// What a report says about the own server.
    pub fn description(&self) -> String {
        let limits = self.limits().map(|limits| format!(", limited by a control group to {limits}"));
        let threads = self.worker_threads.map(|threads| format!(", {threads} worker threads in its control plane"));
        let arguments: String = self.arguments.iter().map(|argument| format!(" {argument}")).collect();
        let mode = if self.certificates.is_some() { ", in secure mode" } else { "" };
        format!("own server{mode}, started by the bench{arguments}{}{}", limits.unwrap_or_default(), threads.unwrap_or_default())
    }
}
