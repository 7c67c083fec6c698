//! A node or an edge: its process, its directories, and its links to the servers.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::fault::Kind;
use crate::crash::disk::{Disk, Filler};
use crate::http::{Answer, Http};
use crate::link::Link;
use crate::ports::HeldOffset;

/// Standard ports, to which a member's offset is added.
pub const REGISTRY_PORT: u16 = 8443;
/// Port of Authorization.
pub const AUTHORIZATION_PORT: u16 = 8445;
/// Port of the Event Handler.
pub const EVENT_HANDLER_PORT: u16 = 8455;
/// Port of Bodkin's own API and metrics.
pub const MONITOR_PORT: u16 = 8440;
/// Events of other nodes that may wait at a node that has caught up: those of some seconds.
const WAITING_MAX: u64 = 100;
/// Longest wait for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Longest wait for the end after SIGTERM.
const STOP_MAX: Duration = Duration::from_secs(45);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Last lines of a log that a breach shows.
const WORDS_MAX: usize = 6;

/// One process of Bodkin.
pub struct Member {
    /// Its name in reports, and as an edge in the fleet.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its link to PostgreSQL; `None` for an edge.
    pub database: Option<Link>,
    /// Its links to the NATS servers.
    pub nats: Vec<Link>,
    /// True while the campaign wants it to run.
    pub is_wanted: bool,
    /// True since it was ready for the first time after its last start.
    pub was_ready: bool,
    program: PathBuf,
    home: PathBuf,
    config: String,
    offset: HeldOffset,
    child: Option<Child>,
    disk: Option<Disk>,
}

impl Member {
    /// Makes a member that does not run, with its directories in `home`.
    ///
    /// # Errors
    /// Returns an error if no ports are free, or the directories cannot be made.
    pub fn new(name: &str, kind: Kind, program: &Path, home: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(home).with_context(|| format!("cannot make {}", home.display()))?;
        Ok(Self {
            name: name.to_owned(),
            kind,
            database: None,
            nats: Vec::new(),
            is_wanted: false,
            was_ready: false,
            program: program.to_owned(),
            home: home.to_owned(),
            config: String::new(),
            offset: HeldOffset::find()?,
            child: None,
            disk: None,
        })
    }

    /// Gives it a disk of its own, which can be filled.
    ///
    /// # Errors
    /// Returns an error if the system mounts no disks for this user.
    pub fn give_disk(&mut self) -> anyhow::Result<()> {
        let image = self.home.with_extension("image");
        self.disk = Some(Disk::mount(&image, &self.home)?);
        Ok(())
    }

    /// Sets the configuration file.
    pub fn configure(&mut self, config: String) {
        self.config = config;
    }

    /// Starts it, and does not wait until it is ready.
    ///
    /// # Errors
    /// Returns an error if the program does not start or the log cannot be written.
    pub fn start(&mut self) -> anyhow::Result<()> {
        let config = self.home.with_extension("toml");
        fs::write(&config, &self.config).with_context(|| format!("cannot write {}", config.display()))?;
        let log = File::options().create(true).append(true).open(self.log()).context("cannot write a log")?;
        let mut command = Command::new(&self.program);
        command.args(["up", "--insecure", "--output", "json", "--port-offset", &self.offset.get().to_string(), "--config"]).arg(&config);
        command.arg("--data").arg(self.data()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().with_context(|| format!("cannot start {}", self.program.display()))?);
        (self.is_wanted, self.was_ready) = (true, false);
        Ok(())
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// Returns an error if it does not run.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let child = self.child.as_ref().with_context(|| format!("{} does not run", self.name))?;
        kill(Pid::from_raw(i32::try_from(child.id())?), signal).with_context(|| format!("{} has ended", self.name))
    }

    /// Kills it; it is gone when this returns.
    pub fn kill(&mut self) {
        self.is_wanted = false;
        if let Some(mut child) = self.child.take() {
            // Both fail only if it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Ends it by SIGTERM; it is gone when this returns.
    ///
    /// # Errors
    /// Returns an error if it does not end in time.
    pub fn stop(&mut self) -> anyhow::Result<()> {
        self.is_wanted = false;
        // One that has ended by itself is found by `ended`, unless it is stopped in that instant.
        let _ = self.signal(Signal::SIGTERM);
        let begin = Instant::now();
        while self.ended().is_none() && self.child.is_some() {
            if begin.elapsed() > STOP_MAX {
                self.kill();
                anyhow::bail!("{} does not end within {} s of SIGTERM", self.name, STOP_MAX.as_secs());
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Returns how it has ended, once.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.as_mut()?.try_wait().ok()??;
        self.child = None;
        Some(status)
    }

    /// Returns the address of a port.
    pub fn address(&self, port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port + self.offset.get()).into()
    }

    /// Sends one request.
    ///
    /// # Errors
    /// Returns an error if no answer comes in time.
    pub fn call(&self, method: &str, port: u16, target: &str, body: &str) -> std::io::Result<Answer> {
        Http::plain(self.address(port), ANSWER_MAX)?.exchange(method, target, "", body)
    }

    /// Returns the JSON answer of a request to its own API; null without an answer.
    pub fn api(&self, target: &str) -> Value {
        let answer = self.call("GET", MONITOR_PORT, target, "").ok().filter(|answer| answer.status == 200);
        answer.and_then(|answer| serde_json::from_slice(&answer.body).ok()).unwrap_or_default()
    }

    /// Returns the text of its metrics.
    pub fn metrics(&self) -> Option<String> {
        self.call("GET", MONITOR_PORT, "/metrics", "").ok().map(|answer| answer.text())
    }

    /// Returns why it does not serve everything yet; `None` if it does.
    pub fn lacks(&self) -> Option<String> {
        match self.call("GET", MONITOR_PORT, "/readyz", "") {
            Err(error) => return Some(format!("/readyz: {error}")),
            Ok(answer) if answer.status != 200 => return Some(format!("/readyz: {} {}", answer.status, answer.text())),
            Ok(_) => {}
        }
        if self.kind == Kind::Edge {
            let fleet = self.api("/api/v1/fleet");
            let is_connected = fleet["connected"] == true && fleet["fromFleet"]["connected"] == true;
            return (!is_connected).then(|| format!("the fleet: {fleet}"));
        }
        let metrics = self.metrics().unwrap_or_default();
        let needed = ["bodkin_database_connected 1", "bodkin_node_events_connected 1"];
        if let Some(line) = needed.into_iter().find(|line| !metrics.lines().any(|other| other == *line)) {
            return Some(format!("the metric `{line}`"));
        }
        // A restored node takes the stream again, with the losses of earlier faults in it.
        let taken = &self.api("/api/v1/nodes/events")["taken"];
        let has_taken = taken["waiting"].as_u64().is_some_and(|waiting| waiting <= WAITING_MAX);
        (!has_taken).then(|| format!("events of the other nodes: {taken}"))
    }

    /// Returns the lanes that stopped, with their reasons.
    pub fn stopped_lanes(&self) -> Vec<(String, String)> {
        let fleet = self.api("/api/v1/fleet");
        let lanes = fleet["lanes"].as_array().cloned().unwrap_or_default();
        let stopped = lanes.iter().filter(|lane| lane["stopped"] == true);
        stopped.map(|lane| (lane["name"].as_str().unwrap_or_default().to_owned(), lane["trouble"].to_string())).collect()
    }

    /// Has a stopped lane continue, as `bodkin fleet adopt` does.
    ///
    /// # Errors
    /// Returns an error if the edge refuses or does not answer.
    pub fn adopt(&self, lane: &str) -> anyhow::Result<()> {
        let answer = self.call("POST", MONITOR_PORT, &format!("/api/v1/fleet/adopt?lane={lane}"), "")?;
        ensure!(answer.status == 200, "{} does not adopt lane {lane}: {}", self.name, answer.reason());
        Ok(())
    }

    /// Fills its disk until the filler is dropped.
    ///
    /// # Errors
    /// Returns an error if it has no disk of its own, or the disk cannot be filled.
    pub fn fill(&self) -> anyhow::Result<Filler> {
        self.disk.as_ref().with_context(|| format!("{} has no disk of its own", self.name))?.fill()
    }

    /// Keeps a copy of its data, which replaces the former copy.
    ///
    /// # Errors
    /// Returns an error if the copy fails.
    pub fn keep_copy(&self) -> anyhow::Result<()> {
        copy(&self.data(), &self.kept())
    }

    /// Replaces its data by the kept copy.
    ///
    /// # Errors
    /// Returns an error if there is no copy, or it cannot be copied back.
    pub fn restore(&self) -> anyhow::Result<()> {
        copy(&self.kept(), &self.data())
    }

    /// Gives this member a copy of another one's data and configuration.
    ///
    /// # Errors
    /// Returns an error if the copy fails.
    pub fn become_copy_of(&mut self, other: &Self) -> anyhow::Result<()> {
        self.config = other.config.clone();
        copy(&other.data(), &self.data())
    }

    /// Returns the file of its log.
    pub fn log(&self) -> PathBuf {
        self.home.with_extension("log")
    }

    /// Returns the last lines of its log.
    pub fn last_words(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(WORDS_MAX)..].join("\n  ")
    }

    fn data(&self) -> PathBuf {
        self.home.join("data")
    }

    fn kept(&self) -> PathBuf {
        self.home.with_extension("kept")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Copies a directory as `cp -a` does; what was at `to` is removed.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("cannot remove {}", to.display()))?;
    }
    let output = Command::new("cp").arg("-a").arg(from).arg(to).stdin(Stdio::null()).output().context("cannot start cp")?;
    // A file of a running member may be gone before it is copied.
    let is_whole = output.status.success() || to.exists() && String::from_utf8_lossy(&output.stderr).contains("No such file");
    ensure!(is_whole, "cannot copy {}: {}", from.display(), String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}
