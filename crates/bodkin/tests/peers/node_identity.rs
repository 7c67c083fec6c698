//! Nodes that share a database: a name belongs to one process, whatever is copied, frozen, or restored.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::postgres::server::{Server, eventually};
use crate::support::cloud::{BINARY, Launch, Refusal, System};
use crate::support::skip;

fn server(test: &str) -> Option<Server> {
    let server = Server::start();
    if server.is_none() {
        skip::note(test, "no PostgreSQL server");
    }
    server
}

fn launch(server: &Server, data: &Path) -> Launch {
    Launch::new().data(data).env("BODKIN_DATABASE", &server.url())
}

/// Copies a data directory, as `cp -a` does.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp starts");
    assert!(status.success());
}

fn lines(data: &Path) -> Vec<String> {
    fs::read_to_string(data.join("identity")).expect("a directory has an identity").lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "peer: ./x test --all"]
fn copy_of_running_node_is_refused() {
    let Some(server) = server("copy_of_running_node_is_refused") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let [original, clone] = ["original", "clone"].map(|name| place.path().join(name));
    let node = launch(&server, &original).start();
    copy(&original, &clone);
    let Refusal { code, stderr } = launch(&server, &clone).try_start().err().expect("it is refused");
    let running = lines(&original).pop().expect("a start");
    let refused = lines(&clone).pop().expect("a start");
    assert!(code == Some(1) && stderr.contains(&running) && stderr.contains(&refused) && stderr.contains("identity"), "{stderr}");
    // A node that is killed starts again at once.
    node.kill();
    let begun = Instant::now();
    launch(&server, &original).start();
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[test]
#[ignore = "peer: ./x test --all"]
fn frozen_node_stops_after_its_copy_took_over() {
    let Some(server) = server("frozen_node_stops_after_its_copy_took_over") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let [original, clone] = ["original", "clone"].map(|name| place.path().join(name));
    let frozen = launch(&server, &original).start();
    copy(&original, &clone);
    frozen.signal(Signal::SIGSTOP);
    // Its session holds the name, and renews nothing.
    let begun = Instant::now();
    let successor = launch(&server, &clone).start();
    assert!(begun.elapsed() < Duration::from_secs(18), "{:?}", begun.elapsed());
    frozen.signal(Signal::SIGCONT);
    let taken = lines(&clone).pop().expect("a start");
    eventually(|| frozen.stderr().contains(&taken), || frozen.stderr());
    assert_eq!(frozen.stop().code(), Some(1), "it has ended by itself");
    assert_eq!(successor.get("/serviceregistry/echo").status, 200);
    // The original would be taken for the node again, and it lacks what happened meanwhile.
    drop(successor);
    let again = launch(&server, &original).start();
    assert!(again.stderr().contains("was restored or copied"), "{}", again.stderr());
    // Each node reports it.
    let other = launch(&server, &place.path().join("other")).start();
    let nodes = || other.get("/api/v1/nodes").json();
    let restored = |is_this: bool| {
        let rows = nodes()["data"].as_array().cloned().unwrap_or_default();
        rows.into_iter().find(|row| row["isThis"] == is_this).map(|row| row["restoredAt"].is_string())
    };
    eventually(|| (restored(true), restored(false)) == (Some(false), Some(true)), || nodes().to_string());
    let status =
        Command::new(BINARY).args(["status", "--monitor", &other.address(System::Monitor).to_string()]).output().expect("it starts");
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("its directory restored at"), "{status}");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn node_file_of_another_directory_is_refused() {
    let Some(server) = server("node_file_of_another_directory_is_refused") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let [one, other] = ["one", "other"].map(|name| place.path().join(name));
    let node = launch(&server, &one).start();
    fs::create_dir(&other).expect("a directory");
    fs::copy(one.join("node"), other.join("node")).expect("a copy");
    let is_refused = || {
        let Refusal { code, stderr } = launch(&server, &other).try_start().err().expect("it is refused");
        let lineages = [&one, &other].map(|data| lines(data)[1].clone());
        let names_both = lineages.iter().all(|lineage| stderr.contains(lineage));
        assert!(code == Some(1) && names_both && stderr.contains("the file `node` here was copied"), "{stderr}");
    };
    is_refused();
    // Its host stands still for longer than a session without renewals is waited for: the copied file takes nothing away.
    node.signal(Signal::SIGSTOP);
    let begun = Instant::now();
    is_refused();
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    node.signal(Signal::SIGCONT);
    assert_eq!(node.get("/serviceregistry/echo").status, 200);
    node.stop();
    is_refused();
    fs::remove_file(other.join("node")).expect("a file");
    launch(&server, &other).start();
}

#[test]
#[ignore = "peer: ./x test --all"]
fn directory_of_another_cloud_is_refused() {
    let Some(server) = server("directory_of_another_cloud_is_refused") else { return };
    let other = Server::start().expect("a second PostgreSQL server");
    let place = TempDir::new().expect("a temporary directory");
    let data = place.path().join("node");
    launch(&server, &data).start().stop();
    let own = fs::read_to_string(data.join("events/database")).expect("the event log names its database").trim().to_owned();
    let is_refused = |launch: Launch, words: &[&str]| {
        let Refusal { code, stderr } = launch.try_start().err().expect("it is refused");
        let has_all = words.iter().chain(&[&*own, "--database", "BODKIN_DATABASE"]).all(|word| stderr.contains(word));
        assert!(code == Some(1) && has_all, "{stderr}");
    };
    let doctor = |url: Option<String>| {
        let mut command = Command::new(BINARY);
        command.args(["doctor", "--insecure", "--stall-s", "1", "--data"]).arg(&data).env_remove("BODKIN_DATABASE");
        let output = command.envs(url.map(|url| ("BODKIN_DATABASE", url))).output().expect("it starts");
        // Its lines are folded.
        String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // An empty database stays empty.
    is_refused(launch(&other, &data), &["belongs to database", "an empty one", "discard-events"]);
    assert!(doctor(Some(other.url())).contains(&format!("belongs to database {own}")), "{}", doctor(Some(other.url())));
    assert_eq!(other.sql("cloud", "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'bodkin%'"), "0");
    launch(&other, &place.path().join("stranger")).start().stop();
    let cloud = other.sql("cloud", "SELECT cloud FROM bodkin.shared");
    is_refused(launch(&other, &data), &["belongs to database", &cloud, "discard-events"]);
    assert!(doctor(Some(other.url())).contains(&cloud), "{}", doctor(Some(other.url())));
    assert_eq!(other.sql("cloud", "SELECT count(*) FROM bodkin.node_start"), "1");
    // Without the option no empty database is made.
    is_refused(Launch::new().data(&data), &["belongs to a node of the shared database"]);
    assert!(doctor(None).contains("belongs to a node of a shared database, and none is named"), "{}", doctor(None));
    assert!(!data.join("bodkin.sqlite").exists());
    assert!(doctor(Some(server.url())).contains(&format!("are of database {own}")), "{}", doctor(Some(server.url())));
    launch(&server, &data).start();
}

#[test]
#[ignore = "peer: ./x test --all"]
fn lost_node_is_forgotten_after_a_day() {
    let Some(server) = server("lost_node_is_forgotten_after_a_day") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let [lasting, lost] = ["lasting", "lost"].map(|name| place.path().join(name));
    let node = launch(&server, &lasting).start();
    let killed = launch(&server, &lost).start();
    let name = |data: &Path| fs::read_to_string(data.join("node")).expect("a node has a name").trim().to_owned();
    let is_listed = || node.get("/api/v1/nodes").json().to_string().contains(&name(&lost));
    let rows = || server.sql("cloud", &format!("SELECT count(*) FROM bodkin.node WHERE name = '{}'", name(&lost)));
    eventually(|| rows() == "1", || killed.stderr());
    killed.kill();
    // Ages the row of the lost node, and waits until the other one has looked for old rows since.
    let age = |time: &str| {
        server.sql(
            "cloud",
            &format!("UPDATE bodkin.node SET seen_at = clock_timestamp() - interval '{time}' WHERE name = '{}'", name(&lost)),
        );
        let seen = || server.sql("cloud", &format!("SELECT seen_at FROM bodkin.node WHERE name = '{}'", name(&lasting)));
        for _ in 0..2 {
            let before = seen();
            eventually(|| seen() != before, || node.stderr());
        }
    };
    age("23 hours 58 minutes");
    assert_eq!(rows(), "1");
    eventually(is_listed, || node.stderr());
    age("24 hours");
    assert_eq!(rows(), "0");
    eventually(|| !is_listed(), || node.stderr());
}
