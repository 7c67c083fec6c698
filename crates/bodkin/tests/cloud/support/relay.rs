//! `bodkin relay serve` as a child process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::cloud::BINARY;
use super::patience::eventually_some;

/// A relay by itself; killed when dropped.
pub struct Serving {
    child: Child,
    ready: Value,
}

impl Serving {
    /// Starts one that listens there; `guests` are arguments that say whom it lets in.
    pub fn start(data: &Path, listen: &str, guests: &[&str]) -> Self {
        let mut command = Command::new(BINARY);
        command.args(["relay", "serve", "--output", "json", "--listen", listen, "--data"]).arg(data).args(guests);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("it says where it is");
        Self { child, ready: serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}")) }
    }

    /// What it says of itself when it is ready.
    pub fn said(&self, member: &str) -> &str {
        self.ready[member].as_str().unwrap_or_else(|| panic!("no {member} in {}", self.ready))
    }

    /// Ends it by SIGTERM; gives its exit code.
    pub fn stop(mut self) -> Option<i32> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"));
        kill(pid, Signal::SIGTERM).expect("it is there");
        eventually_some(|| self.child.try_wait().expect("it can be waited for")).expect("it ends").code()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
