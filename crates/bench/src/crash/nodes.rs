//! The three processes of a reliable pair, each on its host of the plant.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::plant::{Plant, Site, address};
use super::traffic::{SYSTEM, Streams};
use crate::cloud::Directory;
use crate::options::CrashOptions;

/// In namespaces of their own the nodes have the standard ports.
const ZMTP_PORT: u16 = 5570;
const PAIR_PORT: u16 = 5571;
const WITNESS_PORT: u16 = 5572;
const REGISTRY_PORT: u16 = 8443;
const MONITOR_PORT: u16 = 8440;
/// The name by which the core systems are called, as their answers to requests depend on it.
const HOST: &str = "pair.bodkin.test";
/// Longest wait for a pair that protects what it answers.
const PROTECTED_WAIT_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Lines of each node that are told when something went wrong: those of the last fault and of the one in front of it.
const WORDS_MAX: usize = 40;
const CALL_MAX: Duration = Duration::from_secs(1);

/// A broker of the pair, by its place in the configuration.
pub const BROKERS: [Site; 2] = [Site::First, Site::Second];

/// The processes; killed when dropped.
pub struct Nodes<'p> {
    plant: &'p Plant,
    directory: Directory,
    config: PathBuf,
    children: [Option<Child>; 3],
}

/// What a broker says of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    leads: bool,
    /// It leads, and has a Backup in sync.
    is_protected: bool,
    /// It is connected to both other nodes. A Backup that is not cannot take over: to strike then would be a second fault.
    reaches_all: bool,
}

impl Standing {
    /// As its metrics tell it; one that tells nothing does not lead.
    fn told(metrics: &str) -> Self {
        let [leads, is_protected] = ["bodkin_pair_leads", "bodkin_pair_protected"].map(|name| gauge(metrics, name) == Some(1));
        Self { leads, is_protected, reaches_all: gauge(metrics, "bodkin_pair_unreached") == Some(0) }
    }
}

/// The one of [`BROKERS`] that may be struck so that the other one goes on: it leads, nobody else says so, its Backup has everything, and all nodes reach each other. A stall beside the traffic may have let
/// the other one lead, alone at first, and what only that one has would be killed with it.
fn protected([first, second]: [Standing; 2]) -> Option<Site> {
    if !(first.reaches_all && second.reaches_all) {
        return None;
    }
    match (first, second) {
        (Standing { leads: true, is_protected: true, .. }, Standing { leads: false, .. }) => Some(Site::First),
        (Standing { leads: false, .. }, Standing { leads: true, is_protected: true, .. }) => Some(Site::Second),
        _ => None,
    }
}

fn place(site: Site) -> usize {
    match site {
        Site::First => 0,
        Site::Second => 1,
        Site::Witness => 2,
        Site::Machine | Site::Viewer => panic!("{} is no node", site.name()),
    }
}

/// The other broker.
pub fn partner(site: Site) -> Site {
    if site == Site::First { Site::Second } else { Site::First }
}

/// Where a broker takes events of publishers and subscribers on this host.
pub fn zmtp(broker: Site, from: Site) -> SocketAddr {
    (address(broker, from), ZMTP_PORT).into()
}

impl<'p> Nodes<'p> {
    /// Starts all three, and waits until the first one leads and has its Backup in sync.
    ///
    /// # Errors
    /// One does not start, or they do not come together.
    pub fn start(plant: &'p Plant, options: &CrashOptions, streams: &Streams) -> anyhow::Result<Self> {
        let directory = Directory::new(options.data.as_deref())?;
        let config = directory.path().join("bodkin.toml");
        let text = format!("{}\n{}", platform(options), streams.topics()?);
        std::fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        let mut nodes = Self { plant, directory, config, children: [const { None }; 3] };
        for site in [Site::Witness, Site::Second, Site::First] {
            nodes.revive(site)?;
        }
        let leader = nodes.wait_until_protected()?;
        let body = json!({"systemName": SYSTEM, "address": "machine", "port": 1}).to_string();
        let answer = call(leader, REGISTRY_PORT, "POST", "/serviceregistry/mgmt/systems", &body)?;
        if !answer.starts_with("HTTP/1.1 201") {
            bail!("the publishers' system was not registered: {answer}");
        }
        Ok(nodes)
    }

    /// Starts a node that does not run.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn revive(&mut self, site: Site) -> anyhow::Result<()> {
        if self.is_alive(site) {
            return Ok(());
        }
        let program = std::env::current_exe().context("cannot tell the path of this program")?;
        let log = self.log(site);
        let errors = File::options().append(true).create(true).open(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = self.plant.command(site, &program);
        let any = Ipv4Addr::UNSPECIFIED;
        match site {
            Site::Witness => command.args(["witness", "--insecure", "--witness-listen", &format!("{any}:{WITNESS_PORT}")]),
            Site::Second => command.args(["backup", "--pair-listen", &format!("{any}:{PAIR_PORT}")]),
            _ => command.args(["up", "--role", "primary", "--peer", &format!("{}:{PAIR_PORT}", address(Site::Second, site))]),
        };
        if site != Site::Witness {
            command.args(["--insecure", "--listen", &any.to_string(), "--domain-name", HOST]);
            command.args(["--witness", &format!("{}:{WITNESS_PORT}", address(Site::Witness, site))]);
        }
        command.args(["--output", "json", "--log", "info", "--config"]).arg(&self.config);
        command.arg("--data").arg(self.directory.path().join(site.name()));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn();
        self.children[place(site)] = Some(child.with_context(|| format!("cannot start {}", program.display()))?);
        Ok(())
    }

    fn log(&self, site: Site) -> PathBuf {
        self.directory.path().join(format!("{}.log", site.name()))
    }

    fn is_alive(&mut self, site: Site) -> bool {
        self.children[place(site)].as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Sends a signal to a node.
    ///
    /// # Errors
    /// It does not run.
    pub fn signal(&mut self, site: Site, signal: Signal) -> anyhow::Result<()> {
        let child = self.children[place(site)].as_ref().with_context(|| format!("{} was never started", site.name()))?;
        kill(Pid::from_raw(i32::try_from(child.id())?), signal).with_context(|| format!("{} has ended", site.name()))
    }

    /// Kills a node; it is gone when this returns.
    ///
    /// # Errors
    /// It does not run.
    pub fn kill(&mut self, site: Site) -> anyhow::Result<()> {
        self.signal(site, Signal::SIGKILL)?;
        if let Some(mut child) = self.children[place(site)].take() {
            child.wait()?;
        }
        Ok(())
    }

    /// Who leads.
    pub fn leader(&self) -> Option<Site> {
        BROKERS.into_iter().find(|site| {
            let metrics = call(*site, MONITOR_PORT, "GET", "/metrics", "").unwrap_or_default();
            gauge(&metrics, "bodkin_pair_leads") == Some(1)
        })
    }

    /// Who leads with a Backup in sync, if somebody does.
    pub fn protected_leader(&self) -> Option<Site> {
        protected(BROKERS.map(|site| Standing::told(&call(site, MONITOR_PORT, "GET", "/metrics", "").unwrap_or_default())))
    }

    /// Waits until somebody leads with a Backup in sync; gives who.
    ///
    /// # Errors
    /// That does not come; the nodes' last words are told.
    pub fn wait_until_protected(&self) -> anyhow::Result<Site> {
        let deadline = Instant::now() + PROTECTED_WAIT_MAX;
        loop {
            if let Some(leader) = self.protected_leader() {
                return Ok(leader);
            }
            if Instant::now() > deadline {
                bail!("no broker has a Backup in sync after {} s.{}", PROTECTED_WAIT_MAX.as_secs(), self.last_words());
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// What the nodes have said last.
    pub fn last_words(&self) -> String {
        let mut words = String::new();
        for site in [Site::First, Site::Second, Site::Witness] {
            let said = std::fs::read_to_string(self.log(site)).unwrap_or_default();
            let from = said.lines().count().saturating_sub(WORDS_MAX);
            let _ = write!(words, "\n{}:", site.name());
            said.lines().skip(from).for_each(|line| words.extend(["\n  ", line]));
        }
        words
    }
}

impl Drop for Nodes<'_> {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            // Both fail only when it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The times of the lease, which all nodes share, and what the topics count on.
fn platform(options: &CrashOptions) -> String {
    let CrashOptions { lease_ms, heartbeat_ms, detect_jitter_ms, redirect_ms, .. } = options;
    format!(
        "[platform]\nlease_ms = {lease_ms}\nheartbeat_ms = {heartbeat_ms}\ndrift_ppm = {}\ndetect_jitter_ms = {detect_jitter_ms}\n\
        redirect_ms = {redirect_ms}\nbroker_backup_ms = 1\nclock_error_ms = 0.1\n",
        options.lease().drift_ppm
    )
}

/// One request to a broker from the subscribers' host, on which this thread has to be.
fn call(broker: Site, port: u16, method: &str, target: &str, body: &str) -> anyhow::Result<String> {
    let mut socket = TcpStream::connect_timeout(&(address(broker, Site::Viewer), port).into(), CALL_MAX)?;
    socket.set_read_timeout(Some(CALL_MAX))?;
    let length = body.len();
    write!(
        socket,
        "{method} {target} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\nContent-Type: application/json\r\n\
        Content-Length: {length}\r\n\r\n{body}"
    )?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    Ok(answer)
}

fn gauge(metrics: &str, name: &str) -> Option<u64> {
    metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_leads_alone_is_not_struck_nor_who_has_a_backup_that_reaches_nobody_else() {
        let reaching = |leads: u64, is_protected: u64, unreached: u64| {
            Standing::told(&format!(
                "bodkin_pair_leads_since 1\nbodkin_pair_leads {leads}\nbodkin_pair_protected {is_protected}\nbodkin_pair_unreached {unreached}\n"
            ))
        };
        let standing = |leads: u64, is_protected: u64| reaching(leads, is_protected, 0);
        let away = Standing::told("");
        let cases = [
            ([standing(1, 1), standing(0, 0)], Some(Site::First)),
            ([standing(0, 0), standing(1, 1)], Some(Site::Second)),
            ([standing(1, 1), away], None),
            ([standing(1, 1), reaching(0, 0, 1)], None),
            ([reaching(1, 1, 1), standing(0, 0)], None),
            ([standing(0, 0), standing(1, 0)], None),
            ([standing(1, 0), away], None),
            ([standing(1, 1), standing(1, 0)], None),
            ([standing(0, 0), standing(0, 0)], None),
            ([away, away], None),
        ];
        for (standings, expected) in cases {
            assert_eq!(protected(standings), expected, "{standings:?}");
        }
    }
}
