//! Terminals of whoever follows a page: bash, with the binary under test in front of its PATH.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use tempfile::NamedTempFile;

use crate::support::cloud::BINARY;

/// The longest wait for the commands of a fence; reached only by a failing test.
const BLOCK_MAX: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Commands that run, and the file of what they print. They and all that they started end with it.
struct Running {
    child: Child,
    output: NamedTempFile,
}

impl Running {
    fn start(place: &Path, environment: &BTreeMap<&str, String>, commands: &str) -> Self {
        let output = NamedTempFile::new().expect("a temporary file");
        let mut command = Command::new("bash");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BODKIN_")) {
            command.env_remove(name);
        }
        let folder: PathBuf = Path::new(BINARY).parent().expect("it is in a folder").to_owned();
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(folder).chain(std::env::split_paths(&paths));
        command.env("PATH", std::env::join_paths(all).expect("paths")).env("HOME", place).envs(environment);
        let to = || Stdio::from(File::options().append(true).open(output.path()).expect("the file opens"));
        command.args(["-euo", "pipefail", "-c", commands]).current_dir(place).stdin(Stdio::null()).stdout(to()).stderr(to());
        // A group of its own, so that everything that is started ends with it.
        let child = command.process_group(0).spawn().expect("bash starts");
        Self { child, output }
    }

    fn printed(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.output.path()).unwrap_or_default()).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"));
        // Fails only when all of them have ended already.
        let _ = signal::killpg(group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// Runs commands to their end; gives what they printed, and whether all of them succeeded.
pub fn run(place: &Path, environment: &BTreeMap<&str, String>, commands: &str) -> (String, bool) {
    let mut running = Running::start(place, environment, commands);
    let deadline = Instant::now() + BLOCK_MAX;
    loop {
        if let Some(status) = running.child.try_wait().expect("bash can be waited for") {
            return (running.printed(), status.success());
        }
        if Instant::now() >= deadline {
            return (format!("{}\nit has not ended after {} s", running.printed(), BLOCK_MAX.as_secs()), false);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Commands of another terminal, which go on.
pub struct Other(Mutex<Running>);

impl Other {
    /// Starts them.
    pub fn start(place: &Path, environment: &BTreeMap<&str, String>, commands: &str) -> Self {
        Self(Mutex::new(Running::start(place, environment, commands)))
    }

    /// Everything that was printed until now.
    pub fn printed(&self) -> String {
        self.0.lock().expect("no holder panics").printed()
    }

    /// Whether they have ended.
    pub fn has_ended(&self) -> bool {
        self.0.lock().expect("no holder panics").child.try_wait().expect("bash can be waited for").is_some()
    }
}
