//! Other brokers, started where they are found on PATH, on free ports of 127.0.0.1 with nothing on disk but what they must have.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::unistd::Pid;

use crate::client::Client;
use crate::cloud::Directory;
use crate::endpoint::Endpoint;
use crate::ports::held_port;
use crate::request;

/// Longest wait for a broker to answer.
const WAIT_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Variable that names the program of NATS.
const NATS_PROGRAM: &str = "BODKIN_NATS_SERVER";
/// Where daemons are that PATH may not name.
const BESIDE_PATH: &str = "/usr/sbin";
/// What the processes are called in figures: the one that is spoken to, and the others of a cluster.
const NAMES: [&str; 3] = ["primary", "second", "third"];

/// A process, and what it is begun with.
struct Node {
    command: Command,
    child: Child,
    address: SocketAddr,
    /// Where it says whether it is well, if it does.
    monitor: Option<Endpoint>,
}

impl Node {
    fn start(mut command: Command, address: SocketAddr, monitor: Option<Endpoint>) -> anyhow::Result<Self> {
        let child = quietly(&mut command).spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self { command, child, address, monitor })
    }
}

/// Running processes; killed when dropped.
pub struct PeerServer {
    nodes: Vec<Node>,
    /// Where the first one is spoken to.
    pub address: SocketAddr,
    /// Gone behind the processes.
    _directory: Directory,
}

impl PeerServer {
    /// NATS: without storage, or as so many nodes with JetStream as it comes.
    ///
    /// # Errors
    /// There is no `nats-server`, or it does not start.
    pub fn nats(jet_stream_nodes: Option<usize>) -> anyhow::Result<Self> {
        Self::nats_with(jet_stream_nodes, "", "")
    }

    /// NATS as so many nodes with JetStream, which sync before they acknowledge. `more` is added to the configuration of each.
    ///
    /// # Errors
    /// As [`Self::nats`].
    pub fn nats_synced(nodes: usize, more: &str) -> anyhow::Result<Self> {
        Self::nats_with(Some(nodes), ", sync_interval: always", more)
    }

    fn nats_with(jet_stream_nodes: Option<usize>, keys: &str, more: &str) -> anyhow::Result<Self> {
        let program = nats_program()?;
        let nodes = jet_stream_nodes.unwrap_or(1);
        let directory = Directory::new(None)?;
        let ports = (0..3 * nodes).map(|_| held_port()).collect::<Result<Vec<_>, _>>()?;
        let (clients, rest) = ports.split_at(nodes);
        let (routes, monitors) = rest.split_at(nodes);
        let peers: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let mut started = Vec::new();
        for node in 0..nodes {
            let mut config =
                format!("server_name: n{node}\nlisten: \"127.0.0.1:{}\"\nhttp: \"127.0.0.1:{}\"\n{more}", clients[node], monitors[node]);
            if jet_stream_nodes.is_some() {
                let store = directory.data().join(node.to_string());
                config += &format!("jetstream {{ store_dir: \"{}\"{keys} }}\n", store.display());
            }
            if nodes > 1 {
                config += &format!("cluster {{ name: bench, listen: \"127.0.0.1:{}\", routes: [{}] }}\n", routes[node], peers.join(", "));
            }
            let config = directory.file(&format!("nats-{node}.conf"), &config)?;
            let mut command = Command::new(&program);
            command.args(["--config", &config]);
            let monitor = Endpoint::resolve(&format!("127.0.0.1:{}", monitors[node]))?;
            started.push(Node::start(command, (Ipv4Addr::LOCALHOST, clients[node]).into(), Some(monitor))?);
        }
        let server = Self { address: started[0].address, nodes: started, _directory: directory };
        (0..nodes).try_for_each(|node| server.is_well(node, WAIT_MAX))?;
        Ok(server)
    }

    /// Waits until a server says that it is well, with all that it has to have.
    ///
    /// # Errors
    /// It does not for so long.
    pub fn is_well(&self, node: usize, wait_max: Duration) -> anyhow::Result<()> {
        let Node { command, monitor: Some(monitor), .. } = &self.nodes[node] else { bail!("it does not say how it is") };
        let call = request::get(monitor, "/healthz", "*/*");
        until(&command.get_program().to_string_lossy(), wait_max, || {
            Client::connect(monitor).and_then(|mut client| Ok(client.exchange(&call)?.status() == 200)).unwrap_or(false)
        })
    }

    /// Where each is spoken to.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.address).collect()
    }

    /// Kills one (`SIGKILL`).
    ///
    /// # Errors
    /// It has ended already.
    pub fn kill(&mut self, node: usize) -> anyhow::Result<()> {
        let child = &mut self.nodes[node].child;
        child.kill().and_then(|()| child.wait()).map(drop).context("a server has ended by itself")
    }

    /// Begins one again that was killed, with what it had.
    ///
    /// # Errors
    /// The system refuses.
    pub fn revive(&mut self, node: usize) -> anyhow::Result<()> {
        let Node { command, child, .. } = &mut self.nodes[node];
        *child = command.spawn().context("a server is not started again")?;
        Ok(())
    }

    /// Mosquitto, without persistence and without limits on what waits for a subscriber.
    ///
    /// # Errors
    /// There is no `mosquitto`, or it does not start.
    pub fn mosquitto() -> anyhow::Result<Self> {
        let program = find("mosquitto")?;
        let directory = Directory::new(None)?;
        let port = held_port()?;
        let config = format!(
            "listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nset_tcp_nodelay true\nmax_inflight_messages 0\nmax_queued_messages 0\n"
        );
        let config = directory.file("mosquitto.conf", &config)?;
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let mut command = Command::new(program);
        command.args(["-c", &config]);
        let server = Self { nodes: vec![Node::start(command, address, None)?], address, _directory: directory };
        until("mosquitto", WAIT_MAX, || TcpStream::connect(address).is_ok())?;
        Ok(server)
    }

    /// The processes, by their names in figures.
    pub fn pids(&self) -> Vec<(&'static str, Pid)> {
        NAMES.into_iter().zip(&self.nodes).map(|(name, node)| (name, Pid::from_raw(node.child.id() as i32))).collect()
    }
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        for Node { child, .. } in &mut self.nodes {
            // Both fail only when it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The program of NATS: what `BODKIN_NATS_SERVER` names, or `nats-server` on PATH.
///
/// # Errors
/// There is none.
pub fn nats_program() -> anyhow::Result<PathBuf> {
    let named = std::env::var_os(NATS_PROGRAM).map(PathBuf::from).filter(|program| program.is_file());
    named.map_or_else(|| find("nats-server"), Ok)
}

/// The program of this name.
///
/// # Errors
/// It is not.
pub fn find(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain([PathBuf::from(BESIDE_PATH)]);
    let found = places.map(|place| place.join(name)).find(|program| program.is_file());
    found.with_context(|| format!("there is no {name} on PATH: install it, or leave it out"))
}

fn quietly(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

fn until(name: &str, wait_max: Duration, is_there: impl Fn() -> bool) -> anyhow::Result<()> {
    let deadline = Instant::now() + wait_max;
    while !is_there() {
        if Instant::now() > deadline {
            bail!("{name} does not answer after {} s", wait_max.as_secs());
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
