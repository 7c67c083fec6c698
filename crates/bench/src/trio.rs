//! A reliable pair and its witness on this machine: three processes of this binary with one configuration.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::unistd::Pid;
use serde_json::Value;

use crate::client::Client;
use crate::cloud::Directory;
use crate::endpoint::Endpoint;
use crate::ports::HeldOffset;
use crate::request;

/// Longest wait for a node's line, and for a Backup that has everything.
const WAIT_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Last lines of a node's log that are told when it fails.
const LINES_TOLD: usize = 12;

/// The three processes; killed when dropped.
pub struct Trio {
    /// Gone when it was killed.
    primary: Option<Node>,
    backup: Node,
    /// Nothing is asked of it.
    _witness: Node,
    ready: Value,
    backup_offset: HeldOffset,
    /// Where the Backup listens for the Primary.
    pub backup_address: SocketAddr,
    /// Gone behind the processes.
    _directory: Directory,
}

struct Node {
    name: &'static str,
    child: Child,
    lines: mpsc::Receiver<String>,
    log: PathBuf,
}

impl Trio {
    /// Starts all three with these keys of `bodkin up`, and waits until the Primary leads with a Backup in sync.
    ///
    /// # Errors
    /// A node does not start, or they do not come together.
    pub fn start(config: &str, parent: Option<&Path>) -> anyhow::Result<Self> {
        let directory = Directory::new(parent)?;
        let config = directory.file("pair.toml", config)?;
        let start = |name: &'static str, arguments: &[&str]| Node::start(name, arguments, &config, &directory);
        let mut witness = start("witness", &["witness", "--insecure", "--witness-listen", "127.0.0.1:0"])?;
        let witness_address = witness.pair_address()?;
        let backup_offset = HeldOffset::find()?;
        let offset = backup_offset.get().to_string();
        let common = ["--insecure", "--witness", &witness_address];
        let mut backup = start("backup", &[&["backup", "--pair-listen", "127.0.0.1:0", "--port-offset", &offset][..], &common].concat())?;
        let backup_address = backup.pair_address()?;
        let mut primary = start("primary", &[&["up", "--role", "primary", "--any-port", "--peer", &backup_address][..], &common].concat())?;
        primary.line()?;
        let ready = primary.line()?;
        let trio = Self {
            primary: Some(primary),
            backup,
            _witness: witness,
            ready,
            backup_offset,
            backup_address: backup_address.parse()?,
            _directory: directory,
        };
        trio.wait_until_protected()?;
        Ok(trio)
    }

    /// The Primary's Service Registry.
    ///
    /// # Errors
    /// It names none.
    pub fn service_registry(&self) -> anyhow::Result<Endpoint> {
        Endpoint::resolve(self.listener("serviceregistry")?)
    }

    /// Where events are taken, the Primary's first.
    ///
    /// # Errors
    /// The Primary has no ZMTP port.
    pub fn zmtp(&self) -> anyhow::Result<Vec<SocketAddr>> {
        let backup = (Ipv4Addr::LOCALHOST, 5570 + self.backup_offset.get()).into();
        Ok(vec![self.listener("zmtp")?.parse()?, backup])
    }

    /// The brokers that run, by what they are.
    pub fn pids(&self) -> Vec<(&'static str, Pid)> {
        let nodes = self.primary.iter().chain([&self.backup]);
        nodes.map(|node| (node.name, Pid::from_raw(node.child.id() as i32))).collect()
    }

    /// Kills the Primary by SIGKILL; it is gone when this returns.
    ///
    /// # Errors
    /// It was killed before.
    pub fn kill_primary(&mut self) -> anyhow::Result<()> {
        let mut primary = self.primary.take().context("the Primary was killed before")?;
        primary.child.kill()?;
        primary.child.wait()?;
        Ok(())
    }

    fn listener(&self, name: &str) -> anyhow::Result<&str> {
        self.ready["listeners"][name].as_str().with_context(|| format!("the Primary's ready line names no {name}: {}", self.ready))
    }

    fn wait_until_protected(&self) -> anyhow::Result<()> {
        let monitor = Endpoint::resolve(self.listener("monitor")?)?;
        let call = request::get(&monitor, "/metrics", "*/*");
        let deadline = Instant::now() + WAIT_MAX;
        while Instant::now() < deadline {
            let mut client = Client::connect(&monitor)?;
            let metrics = String::from_utf8_lossy(client.exchange(&call)?.body()).into_owned();
            if metrics.lines().any(|line| line == "bodkin_pair_protected 1") {
                return Ok(());
            }
            thread::sleep(LOOK_EVERY);
        }
        bail!("no Backup is in sync after {} s; it said: {}", WAIT_MAX.as_secs(), self.backup.last_words())
    }
}

impl Node {
    fn start(name: &'static str, arguments: &[&str], config: &str, directory: &Directory) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot tell the path of this program")?;
        let data = directory.data().join(name);
        std::fs::create_dir_all(&data).with_context(|| format!("cannot make {}", data.display()))?;
        let log = data.with_extension("log");
        let mut command = Command::new(program);
        command.args(arguments).args(["--output", "json", "--config", config, "--data"]).arg(&data);
        let errors = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).spawn();
        let mut child = child.with_context(|| format!("cannot start the {name}"))?;
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Ok(Self { name, child, lines, log })
    }

    /// The next line that it says.
    fn line(&mut self) -> anyhow::Result<Value> {
        let line = self.lines.recv_timeout(WAIT_MAX);
        let line = line.map_err(|_| anyhow::anyhow!("the {} does not say that it is ready; it said: {}", self.name, self.last_words()))?;
        serde_json::from_str(&line).with_context(|| format!("the {} says {line}", self.name))
    }

    /// Where it listens for other nodes: its first line says so.
    fn pair_address(&mut self) -> anyhow::Result<String> {
        let line = self.line()?;
        Ok(line["pair"].as_str().with_context(|| format!("the {} says {line}", self.name))?.to_string())
    }

    fn last_words(&self) -> String {
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let from = said.lines().count().saturating_sub(LINES_TOLD);
        said.lines().skip(from).fold(String::new(), |words, line| words + "\n  " + line)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
