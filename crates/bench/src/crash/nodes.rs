//! The three processes of a reliable pair, each on its host of the plant.

use std::fmt::Write as _;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bodkin_broker::topic::LeaseTimes;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::access::Access;
use super::disk::Disk;
use super::plan::Settings;
use super::plant::{Plant, Site, address};
use super::rights;
use crate::cloud::Directory;
use crate::http::{Answer, HOST, Http};
use crate::options::CrashOptions;
use crate::wire::Caller;

/// In namespaces of their own the nodes have the standard ports.
const ZMTP_PORT: u16 = 5570;
const PAIR_PORT: u16 = 5571;
const WITNESS_PORT: u16 = 5572;
/// Port of Bodkin's own API and metrics.
pub const MONITOR_PORT: u16 = 8440;
/// Port of the Event Handler.
pub const EVENT_HANDLER_PORT: u16 = 8455;
/// Port at which the subscriber by HTTP callback listens.
pub const CALLBACK_PORT: u16 = 9100;
/// Longest wait for a pair that protects what it answers.
const PROTECTED_WAIT_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Lines of each node that are told when something went wrong: those of the last fault and of the one in front of it.
const WORDS_MAX: usize = 40;
/// Longest wait for the answer to a switchover.
const HAND_OVER_MAX: Duration = Duration::from_secs(30);
/// Lines that say why a node ended.
const CAUSE_LINES: usize = 4;
const CALL_MAX: Duration = Duration::from_secs(1);

/// A broker of the pair, by its place in the configuration.
pub const BROKERS: [Site; 2] = [Site::First, Site::Second];
/// Hosts with a disk of their own where a fault needs disks.
const DISK_SITES: [Site; 3] = [Site::First, Site::Second, Site::Witness];
/// Hosts of processes.
const HOSTS: [Site; 4] = [Site::First, Site::Second, Site::Witness, Site::Clone];

/// The processes; killed when dropped.
pub struct Nodes<'p> {
    plant: &'p Plant,
    settings: Settings,
    access: Access,
    config: PathBuf,
    program: PathBuf,
    children: [Option<Child>; HOSTS.len()],
    /// Disks of the hosts in [`DISK_SITES`], if a fault of the round needs them. Unmounted before the directory is removed.
    disks: Vec<Disk>,
    directory: Directory,
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

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies the files of a directory that is written meanwhile: a file that is gone is left out, and sockets are.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() && entry.path().exists() {
            std::fs::copy(entry.path(), &target).with_context(|| format!("cannot copy {}", entry.path().display()))?;
        }
    }
    Ok(())
}

fn place(site: Site) -> usize {
    HOSTS.iter().position(|host| *host == site).unwrap_or_else(|| panic!("{} is no node", site.name()))
}

/// The other broker.
pub fn partner(site: Site) -> Site {
    if site == Site::First { Site::Second } else { Site::First }
}

/// Where a broker takes events of publishers and subscribers on this host.
pub fn zmtp(broker: Site, from: Site) -> SocketAddr {
    (address(broker, from), ZMTP_PORT).into()
}

/// Returns the hosts at which a publisher with several addresses tries to publish.
pub fn publishing_sites(settings: &Settings) -> Vec<Site> {
    let second_primary = settings.has_second_primary.then_some(Site::Clone);
    BROKERS.into_iter().chain(second_primary).collect()
}

impl<'p> Nodes<'p> {
    /// Starts all three, and waits until the first one leads and has its Backup in sync.
    ///
    /// # Errors
    /// One does not start, or they do not come together.
    pub fn start(plant: &'p Plant, options: &CrashOptions, settings: &Settings, access: &Access) -> anyhow::Result<Self> {
        let directory = Directory::new(options.data.as_deref())?;
        let program = options.program()?;
        let config = directory.path().join("bodkin.toml");
        let (settings, access) = (settings.clone(), access.clone());
        let mut nodes =
            Self { plant, settings, access, config, program, children: [const { None }; HOSTS.len()], disks: Vec::new(), directory };
        if let Some(graph) = nodes.settings.graph_file() {
            write(&nodes.graph_path(), &graph)?;
        }
        write(&nodes.config, &nodes.configuration(nodes.settings.lease, &[]))?;
        if nodes.settings.has_disks {
            for site in DISK_SITES {
                let image = nodes.directory.path().join(format!("{}.img", site.name()));
                nodes.disks.push(Disk::mount(&image, &nodes.data(site))?);
            }
        }
        for site in [Site::First, Site::Second, Site::Witness, Site::Clone] {
            nodes.access.equip(site, &nodes.data(site))?;
        }
        let brokers = if nodes.settings.is_standby_first { [Site::Second, Site::First] } else { [Site::First, Site::Second] };
        for site in [Site::Witness, brokers[0]] {
            nodes.revive(site)?;
        }
        // The orders differ only if the broker that starts first has begun its run before the other one starts.
        nodes.wait_until_it_listens(brokers[0])?;
        nodes.revive(brokers[1])?;
        let leader = nodes.wait_until_protected()?;
        let call = |system: Option<&str>, port, target: &str, body: &str| {
            let caller = system.map_or_else(|| nodes.access.operator(), |system| nodes.access.caller(system))?;
            nodes.call_as(&caller, leader, port, "POST", target, body)
        };
        rights::register(&nodes.settings, &nodes.access, &call)?;
        Ok(nodes)
    }

    fn wait_until_it_listens(&self, site: Site) -> anyhow::Result<()> {
        let deadline = Instant::now() + PROTECTED_WAIT_MAX;
        while self.call(site, MONITOR_PORT, "GET", "/healthz", "").is_err() {
            if Instant::now() > deadline {
                bail!("{} does not listen after {} s{}", site.name(), PROTECTED_WAIT_MAX.as_secs(), self.last_words());
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Starts a node that does not run.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn revive(&mut self, site: Site) -> anyhow::Result<()> {
        let config = self.config.clone();
        self.revive_with(site, &config)
    }

    /// As [`Self::revive`], with another configuration file.
    ///
    /// # Errors
    /// As [`Self::revive`].
    pub fn revive_with(&mut self, site: Site, config: &Path) -> anyhow::Result<()> {
        if self.is_alive(site) {
            return Ok(());
        }
        let log = self.log(site);
        let errors = File::options().append(true).create(true).open(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = self.plant.command(site, &self.program);
        let any = Ipv4Addr::UNSPECIFIED;
        match site {
            Site::Witness => command.args(["witness", "--witness-listen", &format!("{any}:{WITNESS_PORT}")]),
            Site::Second => command.args(["backup", "--pair-listen", &format!("{any}:{PAIR_PORT}")]),
            _ => command.args(["up", "--role", "primary", "--peer", &format!("{}:{PAIR_PORT}", address(Site::Second, site))]),
        };
        if site != Site::Witness {
            command.args(["--listen", &any.to_string(), "--domain-name", HOST]);
            command.args(["--witness", &format!("{}:{WITNESS_PORT}", address(Site::Witness, site))]);
        }
        if !self.access.is_secure() {
            command.arg("--insecure");
        }
        command.args(["--output", "json", "--log", "info", "--config"]).arg(config);
        command.arg("--data").arg(self.data(site));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn();
        self.children[place(site)] = Some(child.with_context(|| format!("cannot start {}", self.program.display()))?);
        Ok(())
    }

    /// Returns the configuration file of a node with this lease, without the topics whose index is in `left_out`.
    pub fn configuration(&self, lease: LeaseTimes, left_out: &[usize]) -> String {
        let graph = self.settings.graph_input().map(|_| self.graph_path());
        self.settings.file(lease, graph.as_deref(), left_out)
    }

    fn graph_path(&self) -> PathBuf {
        self.directory.path().join("graph.toml")
    }

    /// Copies the data directory of a node, which may run, into that of another one.
    ///
    /// # Errors
    /// Returns an error if a file cannot be copied.
    pub fn copy_data(&self, from: Site, to: Site) -> anyhow::Result<()> {
        copy(&self.data(from), &self.data(to))
    }

    /// Returns the data directory of a node.
    pub fn data(&self, site: Site) -> PathBuf {
        self.directory.path().join(site.name())
    }

    fn log(&self, site: Site) -> PathBuf {
        self.directory.path().join(format!("{}.log", site.name()))
    }

    fn is_alive(&mut self, site: Site) -> bool {
        self.children[place(site)].as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Returns the nodes that have ended by themselves, with how they ended and why as far as they said.
    pub fn ended(&mut self) -> Vec<String> {
        let mut ended = Vec::new();
        for site in DISK_SITES {
            let status = self.children[place(site)].as_mut().and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = status {
                let said = std::fs::read_to_string(self.log(site)).unwrap_or_default();
                ended.push(format!("{} ended with {status}: {}", site.name(), cause_of_end(&said)));
            }
        }
        ended
    }

    /// Requests a switchover of a broker that leads; returns its answer.
    ///
    /// # Errors
    /// Returns an error if the broker does not answer.
    pub fn hand_over(&self, leader: Site) -> anyhow::Result<Answer> {
        let node = (address(leader, Site::Viewer), MONITOR_PORT).into();
        let mut http = Http::connect(node, &self.access.operator()?, HAND_OVER_MAX)?;
        Ok(http.exchange("POST", "/api/v1/pair/hand-over", "Connection: close\r\n", "")?)
    }

    /// Returns the configuration of the round.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the disk of a node.
    ///
    /// # Errors
    /// Returns an error if the round has no disks.
    pub fn disk(&self, site: Site) -> anyhow::Result<&Disk> {
        let place = DISK_SITES.iter().position(|other| *other == site);
        place.and_then(|place| self.disks.get(place)).with_context(|| format!("{} has no disk of its own", site.name()))
    }

    /// Starts a node with another configuration.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or the program cannot be started.
    pub fn revive_differently(&mut self, site: Site, file: &str) -> anyhow::Result<()> {
        let config = self.directory.path().join("other.toml");
        write(&config, file)?;
        self.revive_with(site, &config)
    }

    /// Returns true if a node's log has a warning or an error.
    pub fn has_warned(&self, site: Site) -> bool {
        let said = std::fs::read_to_string(self.log(site)).unwrap_or_default();
        said.lines().any(|line| [" WARN ", " ERROR ", "error: "].iter().any(|word| line.contains(word)))
    }

    /// Ends a node, if it runs, and removes its data.
    ///
    /// # Errors
    /// Returns an error if the data cannot be removed.
    pub fn remove(&mut self, site: Site) -> anyhow::Result<()> {
        if self.is_alive(site) {
            self.kill(site)?;
        }
        self.children[place(site)] = None;
        let data = self.data(site);
        if data.exists() {
            std::fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))?;
        }
        self.access.equip(site, &data)
    }

    /// Returns what `bodkin status` says on a node's own host.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started, or prints no JSON.
    pub fn status(&self, site: Site) -> anyhow::Result<serde_json::Value> {
        let mut command = self.plant.command(site, &self.program);
        command.args(["--output", "json", "status"]);
        if self.access.is_secure() {
            command.arg("--trust").arg(self.data(site).join("trust"));
        } else {
            command.arg("--insecure");
        }
        let output = command.stdin(Stdio::null()).output()?;
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("`bodkin status` on {} failed: {}", site.name(), String::from_utf8_lossy(&output.stderr).trim()))
    }

    /// Copies the configuration and the nodes' logs into a directory.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn keep_logs(&self, directory: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let logs = HOSTS.map(|site| self.log(site));
        for file in logs.iter().chain([&self.config]).filter(|file| file.exists()) {
            let name = file.file_name().expect("a file has a name");
            std::fs::copy(file, directory.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
        }
        Ok(())
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
        BROKERS.into_iter().find(|site| gauge(&self.metrics(*site), "bodkin_pair_leads") == Some(1))
    }

    /// Who leads with a Backup in sync, if somebody does.
    pub fn protected_leader(&self) -> Option<Site> {
        protected(BROKERS.map(|site| Standing::told(&self.metrics(site))))
    }

    fn metrics(&self, site: Site) -> String {
        self.call(site, MONITOR_PORT, "GET", "/metrics", "").map(|answer| answer.text()).unwrap_or_default()
    }

    /// One request to a broker from the subscribers' host, on which this thread has to be, by the operator.
    fn call(&self, broker: Site, port: u16, method: &str, target: &str, body: &str) -> anyhow::Result<Answer> {
        self.call_as(&self.access.operator()?, broker, port, method, target, body)
    }

    fn call_as(&self, caller: &Caller, broker: Site, port: u16, method: &str, target: &str, body: &str) -> anyhow::Result<Answer> {
        let mut http = Http::connect((address(broker, Site::Viewer), port).into(), caller, CALL_MAX)?;
        Ok(http.exchange(method, target, "Connection: close\r\n", body)?)
    }

    /// Waits until somebody leads with a Backup in sync; gives who.
    ///
    /// # Errors
    /// That does not come; the nodes' last words are told.
    pub fn wait_until_protected(&mut self) -> anyhow::Result<Site> {
        let deadline = Instant::now() + PROTECTED_WAIT_MAX;
        loop {
            if let Some(leader) = self.protected_leader() {
                return Ok(leader);
            }
            if let Some(ended) = self.ended().first() {
                bail!("a node ended by itself: {ended}");
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

/// Returns the line of a log that says why a node ended: its panic, or its last line.
fn cause_of_end(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    let panic = lines.iter().rposition(|line| line.contains("panicked at"));
    let from = panic.unwrap_or(lines.len().saturating_sub(1));
    lines[from..].iter().take(CAUSE_LINES).copied().collect::<Vec<_>>().join(" ")
}

/// Returns the value of a metric without labels.
pub fn gauge(metrics: &str, name: &str) -> Option<u64> {
    metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_of_a_log_is_cause_of_end() {
        let said = "started\nthread 'shard-0' panicked at crates/broker/src/shard.rs:132:\na node that follows takes no events\n";
        assert_eq!(cause_of_end(said), "thread 'shard-0' panicked at crates/broker/src/shard.rs:132: a node that follows takes no events");
        assert_eq!([cause_of_end("one\ntwo"), cause_of_end("")], ["two", ""]);
    }

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
