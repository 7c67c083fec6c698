//! A Jersey client's named listener hears the improved Event Handler's form, and what it missed when it comes back.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

use crate::maven;
use crate::support::arrowhead::{event, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::patience::eventually;
use crate::support::skip;

const TEST: &str = "a_jersey_clients_named_listener_hears_and_comes_back";

/// The listener's process and the lines it has printed.
struct Listener {
    process: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Listener {
    fn start(class_path: &str, cloud: &Cloud) -> Self {
        let url = format!("http://{}/eventhandler/subscription?eventtype=Jersey", cloud.address(System::EventHandler));
        let mut command = Command::new("java");
        command.args(["-cp", class_path, "Listener", &url, "Jersey", "message"]);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("java is there with Maven");
        let output = BufReader::new(process.stdout.take().expect("standard output is piped"));
        let lines = Arc::new(Mutex::new(Vec::new()));
        let heard = lines.clone();
        thread::spawn(move || output.lines().map_while(Result::ok).for_each(|line| heard.lock().expect("no reader panics").push(line)));
        Self { process, lines }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().expect("no reader panics").clone()
    }

    #[track_caller]
    fn wait_for(&self, count: usize) -> Vec<String> {
        assert!(eventually(|| self.lines().len() >= count), "{count} lines, but {:?}", self.lines());
        self.lines()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A free stretch of ports, far from the standard ones; the same before and after the restart.
const PORT_OFFSET: u16 = 23_570;

#[test]
#[ignore = "peer: ./x test --all"]
fn a_jersey_clients_named_listener_hears_and_comes_back() {
    let place = TempDir::new().expect("a temporary directory");
    let class_path = match maven::build("jersey", place.path()) {
        Ok(class_path) => class_path,
        Err(reason) => return skip::note(TEST, &reason),
    };
    let launch = || Launch::new().data(&place.path().join("data")).port_offset(PORT_OFFSET);
    let cloud = launch().start();
    cloud.register_system("jersey", 1);
    let listener = Listener::start(&class_path, &cloud);
    assert_eq!(listener.wait_for(1)[0], "open\ttrue");
    let publish = |cloud: &Cloud, payload: &str| cloud.publish(&event("Jersey", system("jersey", 1), payload));
    publish(&cloud, "first");
    publish(&cloud, "värme 温度 😀");
    listener.wait_for(3);
    cloud.stop();
    // Published before the listener is back: it asks for what it missed.
    let cloud = launch().start();
    publish(&cloud, "missed");
    publish(&cloud, "last");
    let lines = listener.wait_for(5);
    let heard: Vec<Vec<&str>> = lines[1..].iter().map(|line| line.split('\t').collect()).collect();
    let payloads: Vec<&str> = heard.iter().map(|columns| columns[3]).collect();
    assert_eq!(payloads, ["first", "värme 温度 😀", "missed", "last"]);
    assert!(heard.iter().all(|columns| columns[..2] == ["named", "Jersey"] && columns[2].contains('-')), "{heard:?}");
}
