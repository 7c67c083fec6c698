//! The real binary as a child process, its addresses, and its end.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::thread::{self, JoinHandle};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use super::http::{Answer, Connection};
use super::patience::{PATIENCE, eventually_some};

/// The binary under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_bodkin");

/// One of the listeners of a cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Port 8443 by default.
    ServiceRegistry,
    /// Port 8445 by default.
    Authorization,
    /// Port 8441 by default.
    Orchestrator,
    /// Port 8455 by default.
    EventHandler,
    /// Port 8440 by default: health, metrics and Bodkin's own interface.
    Monitor,
    /// Port 8449 by default, in secure mode only.
    Gatekeeper,
    /// Port 8453 by default, in secure mode only.
    Gateway,
}

impl System {
    /// The core systems of every cloud.
    pub const CORE: [Self; 4] = [Self::ServiceRegistry, Self::Authorization, Self::Orchestrator, Self::EventHandler];

    /// Its name in the ready line, which is also its base path without the slash.
    pub fn name(self) -> &'static str {
        match self {
            Self::ServiceRegistry => "serviceregistry",
            Self::Authorization => "authorization",
            Self::Orchestrator => "orchestrator",
            Self::EventHandler => "eventhandler",
            Self::Monitor => "monitor",
            Self::Gatekeeper => "gatekeeper",
            Self::Gateway => "gateway",
        }
    }
}

/// How a cloud is to be started.
pub struct Launch {
    data: Option<PathBuf>,
    mode: Option<&'static str>,
    flags: Vec<String>,
    environment: Vec<(&'static str, String)>,
    files_max: Option<u64>,
}

impl Launch {
    /// `up --insecure --any-port --output json` on a new data directory.
    pub fn new() -> Self {
        Self { data: None, mode: Some("--insecure"), flags: vec!["--any-port".into()], environment: Vec::new(), files_max: None }
    }

    /// On this data directory, which outlives the cloud.
    pub fn data(mut self, path: &Path) -> Self {
        self.data = Some(path.to_path_buf());
        self
    }

    /// In secure mode.
    pub fn secure(mut self) -> Self {
        self.mode = None;
        self
    }

    /// With more arguments.
    pub fn flags<const N: usize>(mut self, flags: [&str; N]) -> Self {
        self.flags.extend(flags.iter().map(|flag| flag.to_string()));
        self
    }

    /// With an environment variable.
    pub fn env(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.to_owned()));
        self
    }

    /// With a limit on open files.
    pub fn files_max(mut self, files_max: u64) -> Self {
        self.files_max = Some(files_max);
        self
    }

    /// On the standard ports plus `offset` instead of ports of the kernel's choice.
    pub fn port_offset(mut self, offset: u16) -> Self {
        self.flags.retain(|flag| flag != "--any-port");
        self.flags.extend(["--port-offset".to_string(), offset.to_string()]);
        self
    }

    /// Starts it and waits for the ready line; panics with what it said when it ends instead.
    #[track_caller]
    pub fn start(self) -> Cloud {
        match self.try_start() {
            Ok(cloud) => cloud,
            Err(refusal) => panic!("the cloud did not start: {refusal:?}"),
        }
    }

    /// Starts it and waits for the ready line or its end.
    pub fn try_start(self) -> Result<Cloud, Refusal> {
        let own_data = self.data.is_none().then(|| TempDir::new().expect("a temporary directory"));
        let data = self.data.clone().unwrap_or_else(|| own_data.as_ref().expect("made above").path().to_path_buf());
        let mut command = match self.files_max {
            None => Command::new(BINARY),
            Some(files_max) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("ulimit -n {files_max}; exec \"$0\" \"$@\""), BINARY]);
                shell
            }
        };
        command.arg("up").args(self.mode).args(["--output", "json", "--data"]).arg(&data).args(&self.flags);
        command
            .envs(database_of(&data).map(|url| ("BODKIN_DATABASE", url)))
            .envs(self.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");

        let said = Said::listen(child.stderr.take().expect("standard error is piped"));
        let first_line = first_line(child.stdout.take().expect("standard output is piped"));
        let Ok(line) = first_line.recv_timeout(PATIENCE) else {
            let ended = eventually_some(|| child.try_wait().expect("the child can be waited for"));
            let _ = child.kill();
            let _ = child.wait();
            return Err(Refusal { code: ended.and_then(|status| status.code()), stderr: said.whole() });
        };
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("ready line {line:?}: {error}"));
        Ok(Cloud { child, ready, said, _own_data: own_data })
    }
}

/// The folder of a PostgreSQL server's socket, where every cloud is to have its database instead of a file in its data directory.
const DATABASES: &str = "CLOUDS_ON_POSTGRES";

/// The database of the cloud in this data directory, made if it is not there; `None` where clouds have files.
fn database_of(data: &Path) -> Option<String> {
    let folder = std::env::var(DATABASES).ok()?;
    let name = format!("c{:016x}", BuildHasherDefault::<DefaultHasher>::default().hash_one(data));
    let mut client = Command::new("psql");
    client.args(["-X", "-q", "-h", &folder, "-U", "bodkin", "-d", "postgres", "-c", &format!("CREATE DATABASE {name}")]);
    let made = client.output().expect("psql starts");
    let told = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(made.status.success() || told.contains("already exists"), "{told}");
    Some(format!("postgres://bodkin@{}/{name}", folder.replace('/', "%2F")))
}

/// A cloud that ended instead of getting ready.
#[derive(Debug)]
pub struct Refusal {
    /// The exit code, none when a signal ended it.
    pub code: Option<i32>,
    /// What it said on standard error.
    pub stderr: String,
}

/// A running local cloud; killed when dropped.
pub struct Cloud {
    child: Child,
    ready: Value,
    said: Said,
    _own_data: Option<TempDir>,
}

impl Cloud {
    /// The one cloud that tests share while any of them runs. A test on it uses names of its own and counts no rows.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Cloud>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        shared.upgrade().unwrap_or_else(|| {
            let cloud = Arc::new(Launch::new().start());
            *shared = Arc::downgrade(&cloud);
            cloud
        })
    }

    /// Where `system` listens.
    pub fn address(&self, system: System) -> SocketAddr {
        self.ready["listeners"][system.name()]
            .as_str()
            .and_then(|text| text.parse().ok())
            .unwrap_or_else(|| panic!("no address of {} in {}", system.name(), self.ready))
    }

    /// The ready line.
    pub fn ready(&self) -> &Value {
        &self.ready
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything said on standard error until now.
    pub fn stderr(&self) -> String {
        self.said.until_now()
    }

    /// A new connection to `system`.
    pub fn connect(&self, system: System) -> Connection {
        Connection::open(self.address(system))
            .unwrap_or_else(|error| panic!("connecting to {}: {error}; it said: {}", system.name(), self.stderr()))
    }

    /// One request on a new connection. The system follows from the first part of the path.
    pub fn call(&self, method: &str, target: &str, body: Option<&Value>) -> Answer {
        let bytes = body.map(|value| value.to_string().into_bytes());
        let headers: &[(&str, &str)] = if body.is_some() { &[("Content-Type", "application/json")] } else { &[] };
        self.connect(system_of(target))
            .request(method, target, headers, bytes.as_deref())
            .unwrap_or_else(|error| panic!("{method} {target}: {error}; it said: {}", self.stderr()))
    }

    /// GET.
    pub fn get(&self, target: &str) -> Answer {
        self.call("GET", target, None)
    }

    /// POST of a JSON body.
    pub fn post(&self, target: &str, body: &Value) -> Answer {
        self.call("POST", target, Some(body))
    }

    /// DELETE.
    pub fn delete(&self, target: &str) -> Answer {
        self.call("DELETE", target, None)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"));
        signal::kill(pid, signal).expect("the child is there to be signalled");
    }

    /// Ends it by SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().expect("the child is there to be killed");
        self.child.wait().expect("a killed child ends");
    }

    /// Ends it by SIGTERM and waits for it.
    pub fn stop(mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        eventually_some(|| self.child.try_wait().expect("the child can be waited for"))
            .unwrap_or_else(|| panic!("SIGTERM did not end it; it said: {}", self.stderr()))
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("the cloud said on standard error:\n{}", self.stderr());
        }
    }
}

/// The system whose base path `target` starts with, the monitor where none fits.
pub fn system_of(target: &str) -> System {
    let base = target.trim_start_matches('/').split(['/', '?']).next().unwrap_or_default();
    System::CORE.into_iter().chain([System::Gatekeeper, System::Gateway]).find(|system| system.name() == base).unwrap_or(System::Monitor)
}

/// What a child says on standard error, read as it says it so that it never blocks on a full pipe.
struct Said {
    text: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Said {
    fn listen(mut pipe: ChildStderr) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut block) {
                kept.lock().expect("no reader panics").push_str(&String::from_utf8_lossy(&block[..count]));
            }
        });
        Self { text, reader }
    }

    /// What was said until now.
    fn until_now(&self) -> String {
        self.text.lock().expect("no writer panics").clone()
    }

    /// All that a child said that has ended.
    fn whole(self) -> String {
        self.reader.join().expect("the reader does not panic");
        self.text.lock().expect("no writer panics").clone()
    }
}

/// The first line of standard output, when it comes; the rest is drained.
fn first_line(stdout: ChildStdout) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Nobody waits for the second line.
            let _ = sender.send(line);
        }
    });
    receiver
}
