//! A process of the demo: started, listened to, ended.

use std::{
    collections::VecDeque,
    os::unix::process::parent_id,
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use nix::{
    sys::{
        prctl,
        signal::{Signal, kill},
    },
    unistd::Pid,
};
use serde::de::DeserializeOwned;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child as Process, ChildStdout, Command},
    task::JoinHandle,
    time::timeout,
};

/// How long a process may take to end after SIGTERM before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How many of a process's last words (lines of stderr) are kept for when it fails.
const LAST_WORDS_LINES_MAX: usize = 20;

/// A process of the demo.
pub struct Child {
    name: &'static str,
    process: Process,
    lines: Lines<BufReader<ChildStdout>>,
    last_words: Arc<Mutex<VecDeque<String>>>,
    listener: JoinHandle<()>,
}

/// Ends this process when the demo `parent` ends, whichever way; called first in every process of the demo.
pub fn die_with(parent: u32) -> anyhow::Result<()> {
    prctl::set_pdeathsig(Signal::SIGTERM).context("cannot bind this process to the demo's life")?;
    // It may have ended before the line above.
    ensure!(parent_id() == parent, "the demo, process {parent}, has ended");
    Ok(())
}

impl Child {
    /// Starts `bodkin demo ROLE --parent PID ARGUMENTS`. `name` is what errors call it.
    pub fn start(name: &'static str, role: &str, arguments: &[String]) -> anyhow::Result<Self> {
        let mut process = Command::new(std::env::current_exe().context("cannot find this program's own file")?)
            .args(["demo", role, "--parent", &std::process::id().to_string()])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is the demo's alone: it ends its processes in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let stdout = process.stdout.take().expect("stdout is piped");
        let stderr = process.stderr.take().expect("stderr is piped");
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let heard = last_words.clone();
        let listener = tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let mut words = heard.lock().expect("nobody panics with the last words in hand");
                if words.len() == LAST_WORDS_LINES_MAX {
                    words.pop_front();
                }
                words.push_back(line);
            }
        });
        Ok(Self { name, process, lines: BufReader::new(stdout).lines(), last_words, listener })
    }

    /// What errors call it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The process id.
    pub fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// Its next line of JSON. An error if the process ends instead, with its last words. Cancel safe.
    pub async fn tells<T: DeserializeOwned>(&mut self) -> anyhow::Result<T> {
        match self.lines.next_line().await.with_context(|| format!("cannot hear {}", self.name))? {
            Some(line) => serde_json::from_str(&line).with_context(|| format!("{} said something else: {line}", self.name)),
            None => bail!(self.ended().await),
        }
    }

    /// As [`Self::tells`] within a limit.
    pub async fn tells_within<T: DeserializeOwned>(&mut self, limit: Duration) -> anyhow::Result<T> {
        let name = self.name;
        timeout(limit, self.tells()).await.unwrap_or_else(|_| bail!("{name} said nothing for {} s", limit.as_secs()))
    }

    async fn ended(&mut self) -> String {
        let name = self.name;
        let status = match timeout(STOP_TIMEOUT, self.process.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => return format!("{name} closed its output but did not end"),
        };
        // What it wrote last may still be on its way.
        let _ = timeout(STOP_TIMEOUT, &mut self.listener).await;
        let words = self.last_words.lock().expect("nobody panics with the last words in hand");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if words.is_empty() { format!("{name} ended ({status})") } else { format!("{name} ended ({status}): {}", words.join("\n")) }
    }

    /// Kills the process (SIGKILL): it is gone when this returns.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.process.kill().await.with_context(|| format!("cannot kill {}", self.name))
    }

    /// Asks the process to end (SIGTERM), and kills it if it does not. Gives whether it ended by itself with exit code 0.
    pub async fn stop(mut self) -> anyhow::Result<bool> {
        if let Some(pid) = self.process.id().and_then(|pid| i32::try_from(pid).ok()) {
            // It may have ended just now.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        match timeout(STOP_TIMEOUT, self.process.wait()).await {
            Ok(status) => Ok(status.with_context(|| format!("cannot wait for {}", self.name))?.success()),
            Err(_) => {
                self.process.kill().await.with_context(|| format!("cannot kill {}", self.name))?;
                Ok(false)
            }
        }
    }
}
