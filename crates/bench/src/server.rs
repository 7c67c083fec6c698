//! The bench's own server: this same binary, started as a child on free ports and an own data directory.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

use crate::cgroup::Cgroup;
use crate::options::ServerOptions;

/// Longest wait for the line that says every listener answers.
const READY_WAIT_MAX: Duration = Duration::from_secs(120);
/// Longest wait for the end after SIGTERM; then the child is killed.
const STOP_WAIT_MAX: Duration = Duration::from_secs(60);
/// By which the server's runtime is told how many worker threads its control plane has.
const WORKER_THREADS_VARIABLE: &str = "TOKIO_WORKER_THREADS";
/// Time between two looks at a child that shall end.
const STOP_LOOK_EVERY: Duration = Duration::from_millis(5);

/// The first line of `bodkin up --output json`.
#[derive(Debug, Clone, Deserialize)]
pub struct Ready {
    /// Start to ready as the server itself counts it, in ms.
    pub ready_ms: f64,
    /// Its process id.
    pub pid: i32,
    /// `host:port` by the name of the system.
    pub listeners: BTreeMap<String, String>,
}

/// A running child. Dropping it kills it; [`Server::stop`] lets it end well.
pub struct Server {
    child: Child,
    /// What it said when it was ready.
    pub ready: Ready,
    /// From the start of the process to the line that says it is ready.
    pub start_to_ready: Duration,
    /// What limits it. It goes after the child, which drops first.
    cgroup: Option<Cgroup>,
}

impl Server {
    /// Starts `program` on the data in `data` and waits until it is ready; what it says on stderr goes to `log`.
    ///
    /// # Errors
    /// It does not start, ends at once, is not ready within [`READY_WAIT_MAX`], or cannot be limited as the options say.
    pub fn start(program: &Path, data: &Path, log: &Path, options: &ServerOptions) -> anyhow::Result<Self> {
        let cgroup = options.limits().map(Cgroup::new).transpose()?;
        let errors = std::fs::File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let started = Instant::now();
        let mut command = cgroup.as_ref().map_or_else(|| Command::new(program), |cgroup| cgroup.command(program));
        if let Some(threads) = options.worker_threads {
            command.env(WORKER_THREADS_VARIABLE, threads.to_string());
        }
        let mut child = command
            // One certificate has all connections of a measurement.
            .env("BODKIN_CLIENT_CONNECTIONS_MAX", "1000000")
            .args(["up", "--any-port", "--output", "json", "--data"])
            .arg(data)
            .args(mode(options))
            .args(&options.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let stdout = child.stdout.take().expect("stdout is piped");
        let line = first_line(stdout);
        match line.recv_timeout(READY_WAIT_MAX) {
            Ok((line, at)) => match serde_json::from_str(&line) {
                Ok(ready) => Ok(Self { child, ready, start_to_ready: at.duration_since(started), cgroup }),
                Err(error) => Err(failed(child, log, &format!("its first line is not the ready line ({error}): {line}"))),
            },
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(failed(child, log, "it ended before it was ready")),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(failed(child, log, "it was not ready in time")),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.ready.pid)
    }

    /// What limits it.
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// How it ended by itself, if it did.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        let limit = if self.cgroup.is_some() { ", perhaps by its memory limit" } else { "" };
        Some(format!("the server ended during the run ({status}{limit})"))
    }

    /// Ends it by SIGTERM and waits for it.
    ///
    /// # Errors
    /// It did not end in time and was killed, or its exit status is not 0.
    pub fn stop(mut self) -> anyhow::Result<()> {
        kill(Pid::from_raw(i32::try_from(self.child.id())?), Signal::SIGTERM).context("cannot signal the server")?;
        let deadline = Instant::now() + STOP_WAIT_MAX;
        loop {
            if let Some(status) = self.child.try_wait()? {
                if status.success() {
                    return Ok(());
                }
                bail!("the server ended with {status} after SIGTERM");
            }
            if Instant::now() > deadline {
                bail!("the server did not end within {} s after SIGTERM and was killed", STOP_WAIT_MAX.as_secs());
            }
            thread::sleep(STOP_LOOK_EVERY);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mode(options: &ServerOptions) -> Vec<OsString> {
    match &options.certificates {
        None => vec!["--insecure".into()],
        Some(certificates) => vec!["--trust".into(), certificates.trust().into()],
    }
}

/// Reads the first line with its time, and drains the rest so that the child never waits for a reader.
fn first_line(stdout: impl std::io::Read + Send + 'static) -> mpsc::Receiver<(String, Instant)> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(stdout);
        let mut line = String::new();
        if reader.read_line(&mut line).is_ok_and(|length| length > 0) {
            let told = sender.send((line, Instant::now()));
            drop(sender);
            if told.is_ok() {
                let _ = std::io::copy(&mut reader, &mut std::io::sink());
            }
        }
    });
    receiver
}

fn failed(mut child: Child, log: &Path, why: &str) -> anyhow::Error {
    let _ = child.kill();
    let _ = child.wait();
    let said = std::fs::read_to_string(log).unwrap_or_default();
    anyhow!("the server did not start: {why}\n{}", said.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_no_server_is_told_with_what_it_said() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let start = |program: &str| Server::start(Path::new(program), directory.path(), &log, &ServerOptions::default()).map(|_| ());
        assert!(start("/nonexistent/bodkin").unwrap_err().to_string().contains("cannot start"));
        assert!(start("/bin/false").unwrap_err().to_string().contains("ended before it was ready"));
        assert!(start("/bin/echo").unwrap_err().to_string().contains("not the ready line"));
    }

    #[test]
    fn the_ready_line_names_the_listeners() {
        let ready: Ready =
            serde_json::from_str(r#"{"ready_ms":12.3,"pid":123,"listeners":{"serviceregistry":"127.0.0.1:40001"}}"#).unwrap();
        assert_eq!((ready.pid, ready.listeners["serviceregistry"].as_str()), (123, "127.0.0.1:40001"));
    }
}
