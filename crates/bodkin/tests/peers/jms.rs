//! The Java programs in `activemq/` and `artemis/`: a broker each, and with it what is in `jms/`, a JMS client and gatekeeper and gateway of a Java cloud.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use bodkin_trust::{Certificate, Identity, keystore};

use crate::maven;

/// Of its key stores.
const PASSWORD: &str = "123456";
/// A Java program starts slowly where others build.
const START_MAX: Duration = Duration::from_secs(60);

/// Compiles the project of this name; gives its class path, or why there is none.
pub fn build(project: &str, place: &Path) -> Result<String, String> {
    maven::build_with(project, &["jms"], place)
}

/// The program; killed when dropped.
pub struct Peer {
    child: Child,
    input: ChildStdin,
    lines: Mutex<mpsc::Receiver<String>>,
}

impl Peer {
    /// Starts it; its key stores are in `folder`, and its broker is reached on this machine.
    pub fn start(class_path: &str, folder: &Path) -> Self {
        Self::start_at(class_path, folder, "127.0.0.1")
    }

    /// The same with the address at which the broker listens.
    pub fn start_at(class_path: &str, folder: &Path, address: &str) -> Self {
        let mut command = Command::new("java");
        command.args(["-cp", class_path, "Peer"]).arg(folder).args([PASSWORD, address]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Java starts");
        let (input, output) = (child.stdin.take().expect("it is piped"), child.stdout.take().expect("it is piped"));
        let (line, lines) = mpsc::channel();
        thread::spawn(move || BufReader::new(output).lines().map_while(Result::ok).try_for_each(|said| line.send(said)));
        Self { child, input, lines: Mutex::new(lines) }
    }

    /// What it says next.
    #[track_caller]
    pub fn line(&self) -> String {
        self.lines.lock().expect("no test panics here").recv_timeout(START_MAX).expect("the peer says something")
    }

    /// Has it do something, whose answer may come behind other lines.
    pub fn tell(&mut self, what: &str) {
        writeln!(self.input, "{what}").expect("the peer reads");
    }

    /// Has it do something; gives its answer.
    #[track_caller]
    pub fn ask(&mut self, what: &str) -> String {
        self.tell(what);
        self.line()
    }

    /// Starts its broker; gives where that speaks STOMP.
    #[track_caller]
    pub fn port(&mut self) -> u16 {
        let started = self.ask("start");
        started.strip_prefix("started ").and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("{started}"))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Puts an identity where the program finds it.
pub fn put_identity(folder: &Path, name: &str, identity: &Identity) {
    let store = keystore::write_identity(identity, name, PASSWORD).expect("a key store");
    fs::write(folder.join(format!("{name}.p12")), &*store).expect("written");
}

/// Puts there whom it believes.
pub fn put_anchors(folder: &Path, anchors: &[Certificate]) {
    let store = keystore::write_anchors(anchors, PASSWORD).expect("a key store");
    fs::write(folder.join("anchors.p12"), store).expect("written");
}
