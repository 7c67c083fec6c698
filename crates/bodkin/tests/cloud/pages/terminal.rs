//! Terminals of whoever follows a page: bash, with the binary under test in front of its PATH; or in a root where Bodkin is installed, by a user there.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use tempfile::{NamedTempFile, TempDir};

use crate::support::cloud::BINARY;

/// The longest wait for the commands of a fence; reached only by a failing test.
const BLOCK_MAX: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Bash script of a reader's terminal. Reads fences from its input, each ended by a NUL, and runs all of them in this shell.
/// A fence that fails ends the shell.
const FENCE_BY_FENCE: &str = r#"while IFS= read -r -d '' fence; do eval "$fence" </dev/null; printf '\0'; done"#;
/// This variable names the folder of another root, in which Bodkin is installed and a user of this name has a home: pages are followed there. It takes root's rights.
const ROOT: &str = "PACKAGING_ROOT";
const USER: &str = "newcomer";

/// The folder in which a page is followed.
pub struct Place {
    folder: TempDir,
    /// The root that it is in, where that is not this machine's.
    root: Option<PathBuf>,
}

impl Place {
    /// An empty one.
    pub fn new() -> Self {
        let root = std::env::var_os(ROOT).map(PathBuf::from);
        let folder = match &root {
            Some(root) => TempDir::new_in(root.join("home").join(USER)),
            None => TempDir::new(),
        };
        Self { folder: folder.expect("a temporary directory"), root }
    }

    /// Where it is, seen from this machine.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Whoever follows the page owns it, and all that is in it.
    pub fn hand_over(&self) {
        let Some(root) = &self.root else { return };
        let owner = Command::new("chown").arg("--recursive").arg("--reference").arg(root.join("home").join(USER)).arg(self.path()).status();
        assert!(owner.expect("chown starts").success(), "only root follows pages in another root");
    }

    /// Bash in this folder, with these variables and none of Bodkin's beside them.
    fn bash(&self, environment: &BTreeMap<&str, String>) -> Command {
        let mut command = match &self.root {
            None => {
                let mut command = Command::new("bash");
                for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BODKIN_")) {
                    command.env_remove(name);
                }
                let folder: PathBuf = Path::new(BINARY).parent().expect("it is in a folder").to_owned();
                let paths = std::env::var_os("PATH").unwrap_or_default();
                let all = std::iter::once(folder).chain(std::env::split_paths(&paths));
                command.env("PATH", std::env::join_paths(all).expect("paths")).env("HOME", self.path()).current_dir(self.path());
                command.envs(environment);
                command
            }
            Some(root) => {
                let inside = Path::new("/").join(self.path().strip_prefix(root).expect("it is in the root"));
                let mut command = Command::new("chroot");
                command.arg(format!("--userspec={USER}:{USER}")).arg(root).args(["/usr/bin/env", "--ignore-environment"]);
                command.arg(format!("--chdir={}", inside.display())).arg(format!("HOME={}", inside.display()));
                command.args(["PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8"]);
                command.args(environment.iter().map(|(name, value)| format!("{name}={value}"))).arg("bash");
                command
            }
        };
        command.args(["-euo", "pipefail", "-c"]);
        command
    }
}

/// Commands that run, and the file of what they print. They and all that they started end with it.
struct Running {
    child: Child,
    output: NamedTempFile,
}

impl Running {
    fn start(place: &Place, environment: &BTreeMap<&str, String>, commands: &str, input: Stdio) -> Self {
        let output = NamedTempFile::new().expect("a temporary file");
        let to = || Stdio::from(File::options().append(true).open(output.path()).expect("the file opens"));
        let mut command = place.bash(environment);
        command.arg(commands).stdin(input).stdout(to()).stderr(to());
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

/// The terminal of whoever follows a page: its fences run one after the other in one shell, with what earlier ones exported.
pub struct Terminal {
    running: Running,
    fences: ChildStdin,
    /// Bytes of what was printed that belong to earlier fences.
    read: usize,
}

impl Terminal {
    /// Opens it.
    pub fn open(place: &Place, environment: &BTreeMap<&str, String>) -> Self {
        let mut running = Running::start(place, environment, FENCE_BY_FENCE, Stdio::piped());
        let fences = running.child.stdin.take().expect("it is a pipe");
        Self { running, fences, read: 0 }
    }

    /// Runs a fence to its end; returns what it printed, and whether all of its commands succeeded.
    pub fn run(&mut self, commands: &str) -> (String, bool) {
        // Fails only if an earlier fence has ended the shell, which the loop reports.
        let _ = self.fences.write_all(format!("{commands}\0").as_bytes());
        let deadline = Instant::now() + BLOCK_MAX;
        loop {
            let has_ended = self.running.child.try_wait().expect("bash can be waited for").is_some();
            let printed = self.running.printed().split_off(self.read);
            if let Some(printed) = printed.strip_suffix('\0') {
                self.read += printed.len() + 1;
                return (printed.to_owned(), true);
            }
            if has_ended || Instant::now() >= deadline {
                let why = if has_ended { String::new() } else { format!("\nit has not ended after {} s", BLOCK_MAX.as_secs()) };
                return (printed + &why, false);
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Commands of another terminal, which go on.
pub struct Other(Mutex<Running>);

impl Other {
    /// Starts them.
    pub fn start(place: &Place, environment: &BTreeMap<&str, String>, commands: &str) -> Self {
        Self(Mutex::new(Running::start(place, environment, commands, Stdio::null())))
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
