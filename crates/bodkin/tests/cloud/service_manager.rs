//! What a service manager is told over its socket.

use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::support::cloud::BINARY;
use crate::support::patience::{PATIENCE, eventually};

/// Within so many microseconds the manager wants a sign of life.
const WATCHDOG_US: u64 = 300_000;

/// A cloud that is started by a manager, and the manager's end.
struct Managed {
    _place: TempDir,
    manager: UnixDatagram,
    cloud: Child,
}

impl Managed {
    fn start(arguments: &[&str]) -> Self {
        let place = TempDir::new().expect("a temporary directory");
        let socket = place.path().join("notify");
        let manager = UnixDatagram::bind(&socket).expect("a socket");
        manager.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let mut command = Command::new(BINARY);
        command.args(["up", "--any-port", "--output", "json", "--data"]).arg(place.path().join("data")).args(arguments);
        command.env("NOTIFY_SOCKET", &socket).env("WATCHDOG_USEC", WATCHDOG_US.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { manager, cloud: command.spawn().expect("the binary starts"), _place: place }
    }

    /// Waits until the manager is told something with this line.
    #[track_caller]
    fn told(&self, line: &str) -> String {
        let (deadline, mut buffer) = (Instant::now() + PATIENCE, [0; 1024]);
        loop {
            assert!(Instant::now() < deadline, "{line} is not told");
            let length = self.manager.recv(&mut buffer).unwrap_or_else(|error| panic!("{line}: {error}"));
            let text = String::from_utf8(buffer[..length].to_vec()).expect("text");
            if text.lines().any(|told| told == line) {
                return text;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        signal::kill(Pid::from_raw(self.cloud.id() as i32), signal).expect("it is there");
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and is waited for.
        let _ = self.cloud.kill();
        let _ = self.cloud.wait();
    }
}

#[test]
fn it_is_told_when_the_cloud_is_ready_that_it_lives_reads_again_and_stops() {
    for mode in [&[][..], &["--insecure"]] {
        let mut managed = Managed::start(mode);
        managed.told("READY=1");
        for _ in 0..3 {
            managed.told("WATCHDOG=1");
        }
        managed.signal(Signal::SIGHUP);
        assert!(managed.told("RELOADING=1").lines().any(|line| line.starts_with("MONOTONIC_USEC=")));
        managed.told("READY=1");
        managed.signal(Signal::SIGTERM);
        managed.told("STOPPING=1");
        assert!(eventually(|| managed.cloud.try_wait().expect("a child").is_some()), "it does not end");
    }
}

#[test]
fn a_cloud_that_stands_still_tells_nothing() {
    let managed = Managed::start(&["--insecure"]);
    managed.told("READY=1");
    managed.told("WATCHDOG=1");
    managed.signal(Signal::SIGSTOP);
    // What was told before it stood still.
    managed.manager.set_nonblocking(true).expect("a mode");
    let mut buffer = [0; 1024];
    while managed.manager.recv(&mut buffer).is_ok() {}
    managed.manager.set_nonblocking(false).expect("a mode");
    managed.manager.set_read_timeout(Some(Duration::from_micros(2 * WATCHDOG_US))).expect("a time-out");
    assert!(managed.manager.recv(&mut buffer).is_err(), "who stands still says that it lives");
    managed.signal(Signal::SIGCONT);
    managed.manager.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    managed.told("WATCHDOG=1");
}
