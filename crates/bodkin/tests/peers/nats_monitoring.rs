//! `bodkin doctor` asks NATS servers whether they sync before they acknowledge.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::fleet::program;
use crate::support::arrowhead::{list, texts};
use crate::support::cloud::BINARY;
use crate::support::patience::eventually;
use crate::support::ports::held_port;

/// A server that runs; killed when dropped.
struct Nats(Child);

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(program: &Path, place: &Path, name: &str, sync: &str) -> (Nats, String) {
    let (port, monitor) = (held_port(), held_port());
    let config = place.join(name);
    let store = place.join(format!("{name}-store"));
    let text = format!(
        "server_name: {name}\nlisten: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\njetstream {{ store_dir: \"{}\"{sync} }}\n",
        store.display()
    );
    fs::write(&config, text).expect("the configuration is written");
    let child = Command::new(program).arg("-c").arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    (Nats(child.expect("nats-server starts")), format!("http://127.0.0.1:{monitor}"))
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_server_says_where_it_is_monitored_whether_it_syncs_before_it_acknowledges() {
    let test = "a_server_says_where_it_is_monitored_whether_it_syncs_before_it_acknowledges";
    let Some(program) = program(test) else { return };
    let place = TempDir::new().expect("a temporary directory");
    let (_safe, of_safe) = start(&program, place.path(), "safe", ", sync_interval: always");
    let (_fast, of_fast) = start(&program, place.path(), "fast", "");
    let told = || {
        let mut command = Command::new(BINARY);
        command.args(["doctor", "--insecure", "--stall-s", "1", "--output", "json", "--nats-monitors", &format!("{of_safe},{of_fast}")]);
        let output = command.arg("--data").arg(place.path()).output().expect("the binary starts");
        let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        texts(list(&all, "/findings"), "/found")
    };
    let says = |words: &str| told().iter().any(|found| found.contains(words));
    assert!(eventually(|| says("is safe, which syncs before it acknowledges")), "{:?}", told());
    assert!(eventually(|| says("is fast, which syncs every 120 s")), "{:?}", told());
}
