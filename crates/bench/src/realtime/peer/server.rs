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
/// Where daemons are that PATH may not name.
const BESIDE_PATH: &str = "/usr/sbin";
/// What the processes are called in figures: the one that is spoken to, and the others of a cluster.
const NAMES: [&str; 3] = ["primary", "second", "third"];

/// Running processes; killed when dropped.
pub struct PeerServer {
    children: Vec<Child>,
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
        Self::nats_with(jet_stream_nodes, "")
    }

    /// NATS as so many nodes with JetStream, which sync before they acknowledge.
    ///
    /// # Errors
    /// As [`Self::nats`].
    pub fn nats_synced(nodes: usize) -> anyhow::Result<Self> {
        Self::nats_with(Some(nodes), ", sync_interval: always")
    }

    fn nats_with(jet_stream_nodes: Option<usize>, keys: &str) -> anyhow::Result<Self> {
        let program = find("nats-server")?;
        let nodes = jet_stream_nodes.unwrap_or(1);
        let directory = Directory::new(None)?;
        let ports = (0..3 * nodes).map(|_| held_port()).collect::<Result<Vec<_>, _>>()?;
        let (clients, rest) = ports.split_at(nodes);
        let (routes, monitors) = rest.split_at(nodes);
        let peers: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let mut children = Vec::new();
        for node in 0..nodes {
            let mut config =
                format!("server_name: n{node}\nlisten: \"127.0.0.1:{}\"\nhttp: \"127.0.0.1:{}\"\n", clients[node], monitors[node]);
            if jet_stream_nodes.is_some() {
                let store = directory.data().join(node.to_string());
                config += &format!("jetstream {{ store_dir: \"{}\"{keys} }}\n", store.display());
            }
            if nodes > 1 {
                config += &format!("cluster {{ name: bench, listen: \"127.0.0.1:{}\", routes: [{}] }}\n", routes[node], peers.join(", "));
            }
            let config = directory.file(&format!("nats-{node}.conf"), &config)?;
            children.push(quietly(Command::new(&program).args(["--config", &config])).spawn().context("cannot start nats-server")?);
        }
        let server = Self { children, address: (Ipv4Addr::LOCALHOST, clients[0]).into(), _directory: directory };
        for monitor in monitors {
            let monitor = Endpoint::resolve(&format!("127.0.0.1:{monitor}"))?;
            let call = request::get(&monitor, "/healthz", "*/*");
            until("nats-server", || {
                Client::connect(&monitor).and_then(|mut client| Ok(client.exchange(&call)?.status() == 200)).unwrap_or(false)
            })?;
        }
        Ok(server)
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
        let child = quietly(Command::new(program).args(["-c", &config])).spawn().context("cannot start mosquitto")?;
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let server = Self { children: vec![child], address, _directory: directory };
        until("mosquitto", || TcpStream::connect(address).is_ok())?;
        Ok(server)
    }

    /// The processes, by their names in figures.
    pub fn pids(&self) -> Vec<(&'static str, Pid)> {
        NAMES.into_iter().zip(&self.children).map(|(name, child)| (name, Pid::from_raw(child.id() as i32))).collect()
    }
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        for child in &mut self.children {
            // Both fail only when it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
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

fn until(name: &str, is_there: impl Fn() -> bool) -> anyhow::Result<()> {
    let deadline = Instant::now() + WAIT_MAX;
    while !is_there() {
        if Instant::now() > deadline {
            bail!("{name} does not answer after {} s", WAIT_MAX.as_secs());
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
