//! An edge whose data directory is restored from a copy.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use super::servers::Cluster;
use super::{Publisher, configure_with, has, lane, program, register, told, up};
use crate::support::cloud::{BINARY, System};
use crate::support::patience::eventually;
use crate::support::secure::copy;

#[test]
#[ignore = "peer: ./x test --all"]
fn restored_edge_stops_until_adopted_if_it_started_since() {
    let Some(program) = program("restored_edge_stops_until_adopted_if_it_started_since") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let [data, backup] = ["data", "backup"].map(|name| place.path().join(name));
    let restore = || {
        fs::remove_dir_all(&data).expect("the data directory is removed");
        copy(&backup, &data);
    };
    let cluster = Cluster::start(&program, 1 << 30);
    let ports: Vec<u16> = (0..3).map(|at| cluster.address(at).port()).collect();
    let config = configure_with(place.path(), "edge", &ports, "");
    let cloud = up(place.path(), &config);
    register(&cloud);
    let mut publisher = Publisher::new(&cloud, 0);
    publisher.publish_all(10, 0);
    publisher.publish("alarm", 0);
    has(&cluster, &cloud, "events", ((0..10).collect(), 0));
    has(&cluster, &cloud, "alarms", (vec![10], 0));
    assert!(cloud.stop().success());
    copy(&data, &backup);

    // Without a start since the copy: nobody can notice the restore.
    restore();
    let cloud = up(place.path(), &config);
    let mut publisher = Publisher::new(&cloud, 11);
    publisher.publish_all(9, 0);
    has(&cluster, &cloud, "events", ((0..10).chain(11..20).collect(), 0));
    let continued = lane(&cloud, "events");
    assert!(continued["stopped"] == false && continued["epoch"] == 1, "{continued}");
    assert!(!cloud.stderr().contains("ERROR"), "{}", cloud.stderr());
    assert!(cloud.stop().success());

    // The edge has started since the copy: a lane stops if it has forwarded events since that start.
    restore();
    let cloud = up(place.path(), &config);
    let mut publisher = Publisher::new(&cloud, 1_000);
    publisher.publish_all(5, 0);
    let alarm = publisher.publish("alarm", 0);
    assert!(eventually(|| lane(&cloud, "events")["stopped"] == true), "{}", told(&cloud));
    let stopped = lane(&cloud, "events");
    let why = stopped["trouble"].as_str().unwrap_or_default();
    let is_process = |word: &&str| {
        let word = word.trim_matches(|letter: char| !letter.is_ascii_hexdigit());
        word.split_once('.').is_some_and(|(database, start)| [database, start].iter().all(|half| half.len() == 16))
    };
    assert!(why.contains("bodkin fleet adopt") && why.split_whitespace().filter(is_process).count() == 2, "{why}");
    assert_eq!(stopped["waiting"], 5, "{stopped}");
    has(&cluster, &cloud, "alarms", (vec![10, alarm], 0));
    has(&cluster, &cloud, "events", ((0..10).chain(11..20).collect(), 0));
    let monitor = cloud.address(System::Monitor).to_string();
    let adopt = Command::new(BINARY).args(["fleet", "adopt", "--lane", "events", "--monitor", &monitor]).output().expect("it starts");
    assert!(adopt.status.success(), "{}", String::from_utf8_lossy(&adopt.stderr));
    has(&cluster, &cloud, "events", ((0..10).chain(11..20).chain(1_000..1_005).collect(), 0));
    assert!(lane(&cloud, "events")["epoch"].as_u64() > Some(1), "{}", told(&cloud));

    // A lane that is new begins with what is published from then on.
    let mut publisher = Publisher::new(&cloud, 2_000);
    for _ in 0..3 {
        publisher.publish("press", 0);
    }
    assert!(cloud.stop().success());
    let text = fs::read_to_string(&config).expect("it was written");
    let more = text.replace("alarms = [\"alarm\"]", "alarms = [\"alarm\"], presses = [\"press\"]");
    assert_ne!(more, text);
    fs::write(&config, more).expect("written");
    let cloud = up(place.path(), &config);
    let mut publisher = Publisher::new(&cloud, 3_000);
    for _ in 0..3 {
        publisher.publish("press", 0);
    }
    has(&cluster, &cloud, "presses", ((3_000..3_003).collect(), 0));
    assert_eq!(lane(&cloud, "presses")["lost"], 0, "{}", told(&cloud));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn snapshot_of_running_edge_begins_epoch_and_logs_the_loss() {
    let Some(program) = program("snapshot_of_running_edge_begins_epoch_and_logs_the_loss") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let [data, snapshot] = ["data", "snapshot"].map(|name| place.path().join(name));
    let cluster = Cluster::start(&program, 1 << 30);
    let ports: Vec<u16> = (0..3).map(|at| cluster.address(at).port()).collect();
    let config = configure_with(place.path(), "edge", &ports, "");
    let cloud = up(place.path(), &config);
    register(&cloud);
    let mut publisher = Publisher::new(&cloud, 0);
    publisher.publish_all(10, 0);
    has(&cluster, &cloud, "events", ((0..10).collect(), 0));
    copy(&data, &snapshot);
    // The stream gets events that the snapshot lacks, of the start that the snapshot knows.
    publisher.publish_all(10, 0);
    has(&cluster, &cloud, "events", ((0..20).collect(), 0));
    cloud.kill();
    fs::remove_dir_all(&data).expect("the data directory is removed");
    copy(&snapshot, &data);
    let cloud = up(place.path(), &config);
    let mut publisher = Publisher::new(&cloud, 1_000);
    publisher.publish_all(5, 0);
    has(&cluster, &cloud, "events", ((0..20).chain(1_000..1_005).collect(), 0));
    let continued = lane(&cloud, "events");
    assert!(continued["stopped"] == false && continued["epoch"] == 2, "{continued}");
    let line = cloud
        .stderr()
        .lines()
        .find(|line| line.contains("the stream has events of this edge or node that its event log lacks"))
        .map(str::to_owned);
    let line = line.unwrap_or_else(|| panic!("no line: {}", cloud.stderr()));
    assert!(line.contains("ERROR") && line.contains("put back to an earlier state"), "{line}");
}
