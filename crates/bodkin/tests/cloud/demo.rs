//! The demo, from its start to its end.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;

use crate::support::cloud::BINARY;

/// Runs it with these arguments; it has to pass all checks and to tell all of `steps`.
#[track_caller]
fn passes(arguments: &[&str], steps: &[&str]) -> String {
    let place = TempDir::new().expect("a temporary directory");
    let mut command = Command::new(BINARY);
    let output = command.args(["demo", "--once", "--any-port"]).args(arguments).env("TMPDIR", place.path()).output().expect("it starts");
    let told = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let always = ["ready", "DENIED", "added authorization rule", "ALLOWED", "read the service", "SSE", "HTTP push", "All checks hold"];
    // Its last act kills a Primary, and tells the gap, the losses and the latencies around it.
    let fail_over =
        ["a fail-over may take x = 95.0 ms", "killed the Primary (SIGKILL): its Backup led after", "0 lost, 0 twice", "the latest came"];
    let processed: &[&str] = if told.contains("deployed no graph") {
        &["this machine has no processor-frequency"]
    } else {
        &["deployed the graph processor", "subscribed to PROCESSOR-WORK and PROCESSOR-BUSY: 3 results of each"]
    };
    for step in always.iter().chain(&fail_over).chain(processed).chain(steps) {
        assert!(told.contains(step), "{step} is missing:\n{told}");
    }
    assert_eq!(std::fs::read_dir(place.path()).expect("readable").count(), 0, "the demo left something behind");
    told
}

#[test]
fn it_shows_certificates_tokens_and_events_over_tls() {
    let steps = [
        "Secure mode",
        "issued certificates to demo-provider and demo-consumer",
        "https://127.0.0.1",
        "with a token of",
        "(without it: 401)",
    ];
    let told = passes(&[], &steps);
    assert!(!told.contains("http://"), "nothing is plain:\n{told}");
}

#[test]
fn it_shows_the_insecure_mode_where_that_is_asked_for() {
    let told = passes(&["--insecure"], &["Insecure mode", "http://127.0.0.1"]);
    assert!(!told.contains("https://") && !told.contains("token"), "{told}");
}

#[test]
fn it_comes_back_to_its_own_data_directory() {
    let data = TempDir::new().expect("a temporary directory");
    let path = data.path().to_str().expect("text");
    for _ in 0..2 {
        passes(&["--data", path], &["Secure mode"]);
    }
}

#[test]
fn two_clouds_share_a_service_and_its_events() {
    let place = TempDir::new().expect("a temporary directory");
    let mut command = Command::new(BINARY);
    let output = command.args(["demo", "--clouds", "2"]).env("TMPDIR", place.path()).output().expect("it starts");
    let told = String::from_utf8(output.stdout).expect("text");
    assert_eq!(output.status.code(), Some(0), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let steps = [
        "workshop.demo is ready",
        "office.demo is ready",
        "made workshop and office known to each other",
        "was answered through the relay",
        "DENIED",
        "added an intercloud rule",
        "ALLOWED, found in workshop",
        "global discovery: called",
        "negotiation: asked",
        "read the service directly, with the token (without it: 401)",
        "shared PROCESSOR-LOAD of demo-provider with office.demo",
        "3 events in sequence",
        "none lost",
        "office lets consumers of other clouds in by its Gateway only",
        "ALLOWED, by a tunnel. gateway of workshop offers it at",
        "read the service through the tunnel, with the token (without it: 401)",
        "read it again on the same connection",
        "both Gateways tell of the session: open, numbered",
        "closed the tunnel, and office was told",
        "shared PROCESSOR-LOAD of demo-provider with workshop.demo",
        "heard PROCESSOR-LOAD of office in workshop by SSE: 3 events in sequence",
        "All checks hold",
    ];
    for step in steps {
        assert!(told.split_whitespace().collect::<Vec<_>>().join(" ").contains(step), "{step} is missing:\n{told}");
    }
    assert_eq!(std::fs::read_dir(place.path()).expect("readable").count(), 0, "the demo left something behind");
}

#[test]
fn its_dashboard_opens_as_it_says() {
    let place = TempDir::new().expect("a temporary directory");
    let mut command = Command::new(BINARY);
    command.args(["demo", "--any-port"]).current_dir(place.path()).stdout(Stdio::piped());
    let mut demo = command.spawn().expect("it starts");
    let mut lines = BufReader::new(demo.stdout.take().expect("stdout is piped")).lines().map_while(Result::ok);
    let said: Vec<String> = lines.by_ref().skip_while(|line| !line.contains("The dashboard is at")).take(3).collect();
    // It goes on telling.
    thread::spawn(move || lines.for_each(drop));
    let [address, make, import] = said.as_slice() else { panic!("it did not say where: {said:?}") };
    let made = Command::new("sh").args(["-ec", make]).current_dir(place.path()).output().expect("sh");
    assert!(made.status.success(), "{make}: {}", String::from_utf8_lossy(&made.stderr));
    let address = address.split_whitespace().find(|word| word.starts_with("https://")).expect("an address");
    let root = import.split_whitespace().find(|word| word.ends_with("/root.crt")).expect("an authority");
    let page = Command::new("curl")
        .args(["-sS", "--cacert", root, "--cert-type", "P12", "--cert", "sysop.p12:bodkin-demo", address])
        .current_dir(place.path())
        .output()
        .expect("curl");
    assert!(String::from_utf8_lossy(&page.stdout).contains("<title>Bodkin"), "{}", String::from_utf8_lossy(&page.stderr));
    kill(Pid::from_raw(demo.id().cast_signed()), Signal::SIGINT).expect("it runs");
    assert_eq!(demo.wait().expect("it ends").code(), Some(0));
}

/// Longest wait for the pair to say something: it is there within seconds, on a busy machine later.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_pair_stays_and_its_lead_is_handed_over() {
    let place = TempDir::new().expect("a temporary directory");
    let mut command = Command::new(BINARY);
    let mut demo = command.args(["demo", "--fail-over"]).env("TMPDIR", place.path()).stdout(Stdio::piped()).spawn().expect("it starts");
    let output = BufReader::new(demo.stdout.take().expect("stdout is piped"));
    let (told, lines) = mpsc::channel();
    thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| told.send(line)));
    let mut said = String::new();
    let mut until = |wanted: &str| loop {
        let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it did not say {wanted:?}: {said}"));
        said.push_str(&line);
        said.push('\n');
        if line.contains(wanted) {
            return line;
        }
    };
    let primary = until("  Primary  process");
    let dashboard = primary.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address").to_owned();
    until("the configured Primary leads");
    until("0 lost; ");
    let answer =
        Command::new("curl").args(["-sS", "-X", "POST", &format!("http://{dashboard}/api/v1/pair/hand-over")]).output().expect("curl");
    assert!(String::from_utf8_lossy(&answer.stdout).contains("epoch"), "{}", String::from_utf8_lossy(&answer.stderr));
    until("the configured Backup leads");
    until("0 lost; ");
    kill(Pid::from_raw(demo.id().cast_signed()), Signal::SIGINT).expect("it runs");
    assert_eq!(demo.wait().expect("it ends").code(), Some(0));
    assert_eq!(std::fs::read_dir(place.path()).expect("readable").count(), 0, "the demo left something behind");
}
