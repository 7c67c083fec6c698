//! What processes the events: a Bodkin with the graph, or the Flink program.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;
use nix::unistd::Pid;

use super::figures::Figure;
use super::flink::Flink;
use super::graph_file::{KEY, Terms, graph_file};
use crate::client::Client;
use crate::cloud::{Cloud, Directory};
use crate::options::ServerOptions;
use crate::realtime::system::{self, SYSTEM};
use crate::request;

/// Longest event: the middle results of Figure 2.7 as Base64, with room to spare.
const EVENT_BYTES_MAX: u32 = 1 << 18;

/// A running service, gone when dropped.
pub enum Service {
    /// One node.
    Bodkin(Box<Cloud>),
    /// Somebody else's.
    Flink(Flink),
}

impl Service {
    /// A Bodkin with this graph.
    ///
    /// # Errors
    /// It does not start, or refuses the graph.
    pub fn bodkin(figure: &Figure, terms: Terms, parent: Option<&Path>) -> anyhow::Result<Self> {
        let directory = Directory::new(parent)?;
        let graph = directory.file("cpep.toml", &graph_file(figure, terms))?;
        let key = directory.file(&format!("{KEY}.key"), "a key of 32 bytes, good for this")?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).context("cannot keep the key from others")?;
        let scheduling = if terms.is_prioritised { "fifo" } else { "default" };
        let configuration = format!(
            "zmtp_system = \"{SYSTEM}\"\nevent_log = false\nevent_bytes_max = {EVENT_BYTES_MAX}\nscheduling = \"{scheduling}\"\ngraphs = [{graph:?}]\ngraph_keys = {:?}\n\
            [platform]\nload_max_percent = {}\n",
            directory.path(),
            terms.load_max_percent
        );
        let arguments = vec!["--config".into(), directory.file("bodkin.toml", &configuration)?];
        let cloud = Cloud::start(directory, &ServerOptions { arguments, ..ServerOptions::default() })?;
        system::register(&cloud.service_registry)?;
        Ok(Self::Bodkin(Box::new(cloud)))
    }

    /// Where events go and results come from; none: it connects to both sides itself.
    ///
    /// # Errors
    /// A Bodkin without a ZMTP port.
    pub fn broker(&self) -> anyhow::Result<Option<SocketAddr>> {
        match self {
            Self::Bodkin(cloud) => cloud.zmtp.context("the broker has no ZMTP port").map(Some),
            Self::Flink(_) => Ok(None),
        }
    }

    /// Its process.
    ///
    /// # Errors
    /// It is not known.
    pub fn pid(&self) -> anyhow::Result<Pid> {
        match self {
            Self::Bodkin(cloud) => cloud.pid().context("an own server has a process"),
            Self::Flink(flink) => Ok(flink.pid()),
        }
    }

    /// What it counts of its graph, by name; nothing of who does not count.
    ///
    /// # Errors
    /// It does not answer.
    pub fn counters(&self) -> anyhow::Result<Vec<(String, u64)>> {
        let Self::Bodkin(cloud) = self else { return Ok(Vec::new()) };
        let monitor = cloud.api()?;
        let call = request::get(monitor, "/metrics", "*/*");
        let text = String::from_utf8_lossy(Client::connect(monitor)?.exchange(&call)?.body()).into_owned();
        Ok(text.lines().filter_map(graph_counter).collect())
    }
}

/// Of the line `bodkin_graph_NAME_total{graph="..."} NUMBER`.
fn graph_counter(line: &str) -> Option<(String, u64)> {
    let (name, rest) = line.strip_prefix("bodkin_graph_")?.split_once("_total{")?;
    Some((name.to_owned(), rest.rsplit_once(' ')?.1.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_the_graph_are_found() {
        assert_eq!(graph_counter("bodkin_graph_shed_total{graph=\"cpep\"} 17"), Some(("shed".to_owned(), 17)));
        assert_eq!(graph_counter("bodkin_events_total{graph=\"cpep\"} 17"), None);
        assert_eq!(graph_counter("# TYPE bodkin_graph_shed_total counter"), None);
    }
}
