//! The bench's end of a [`role`](super::role): starts the process, gives it its order, hears what it tells.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Serialize;

use crate::event::role::{RoleOrder, Told};

/// A running side; dropping it kills it.
pub struct Side {
    name: &'static str,
    child: Child,
    stdin: ChildStdin,
    told: mpsc::Receiver<String>,
}

impl Side {
    /// Starts this program again for one side.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(name: &'static str, order: &RoleOrder) -> anyhow::Result<Self> {
        Self::start_by(name, order, |program| Command::new(program))
    }

    /// The same by another command that runs it.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_by(name: &'static str, order: &RoleOrder, command: impl FnOnce(&Path) -> Command) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot tell the path of this program")?;
        let mut child = command(&program)
            .args(["bench", "role"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start the {name}"))?;
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (sender, told) = mpsc::channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut side = Self { name, child, stdin, told };
        side.give(order)?;
        Ok(side)
    }

    /// Sends one line.
    ///
    /// # Errors
    /// The side is gone.
    pub fn give(&mut self, line: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.stdin.write_all(text.as_bytes()).with_context(|| format!("the {} takes no order", self.name))
    }

    /// Waits for the next line.
    ///
    /// # Errors
    /// None came in time, or the side ended; what went wrong it has said on stderr.
    pub fn hear(&mut self, wait_max: Duration) -> anyhow::Result<Told> {
        match self.told.recv_timeout(wait_max) {
            Ok(line) => serde_json::from_str(&line).with_context(|| format!("the {} told something unknown", self.name)),
            Err(mpsc::RecvTimeoutError::Timeout) => bail!("the {} told nothing for {} s", self.name, wait_max.as_secs()),
            Err(mpsc::RecvTimeoutError::Disconnected) => bail!("the {} ended before its time", self.name),
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // Both fail only when it has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
