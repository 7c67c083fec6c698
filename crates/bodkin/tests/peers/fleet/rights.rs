//! The rights that the page documents for an edge's NATS user.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::servers::Cluster;
use super::{Publisher, configure_with, has, lane, program, register, told};
use crate::from_fleet::{self, make_stream, send, up};
use crate::support::cloud::Cloud;
use crate::support::patience::eventually;

/// Starts the edge as this user, which forwards and receives.
fn start(place: &Path, user: &str, cluster: &Cluster, create_replicas: u32) -> Cloud {
    let ports: Vec<u16> = (0..3).map(|at| cluster.address(at).port()).collect();
    let config = configure_with(place, user, &ports, "from_fleet = [\"setpoint\"]");
    let text = fs::read_to_string(&config).expect("it was written");
    fs::write(&config, text.replace("create_replicas = 3", &format!("create_replicas = {create_replicas}"))).expect("written");
    up(place, &config)
}

#[test]
#[ignore = "peer: ./x test --all"]
fn documented_rights_suffice_through_kills() {
    let Some(program) = program("documented_rights_suffice_through_kills") else { return };
    let place = TempDir::new().expect("a temporary directory");
    let cluster = Cluster::start(&program, 1 << 30);
    make_stream(&cluster);
    // An edge with `create_replicas` creates its stream.
    let mut cloud = start(place.path(), "maker", &cluster, 3);
    register(&cloud);
    let consumer = || cluster.ask("CONSUMER.INFO.COMMANDS.edge-7", "")["created"].clone();
    assert!(eventually(|| from_fleet::told(&cloud)["connected"] == true), "{} {}", told(&cloud), cloud.stderr());
    let first = consumer();
    let (mut sent, mut next) = (0, 0);
    for _ in 0..2 {
        send(&cluster, sent..sent + 10);
        let mut publisher = Publisher::new(&cloud, next);
        publisher.publish_all(10, 0);
        (sent, next) = (sent + 10, publisher.next);
        from_fleet::has(&cluster, &cloud, &(0..sent).collect::<Vec<_>>());
        // The edge has acknowledged commands that it has not noted.
        assert!(eventually(|| from_fleet::told(&cloud)["underWay"] == 0), "{}", told(&cloud));
        send(&cluster, sent..sent + 5);
        sent += 5;
        cloud.kill();
        cloud = start(place.path(), "exact", &cluster, 0);
    }
    from_fleet::has(&cluster, &cloud, &(0..sent).collect::<Vec<_>>());
    has(&cluster, &cloud, "events", ((0..next).collect(), 0));
    assert_eq!(lane(&cloud, "events")["stopped"], false, "{}", told(&cloud));
    assert_ne!(consumer(), first, "a killed edge creates its consumer again");
    assert_eq!(cluster.violations(), Vec::<String>::new());
    // The log of the servers shows a right that is missing.
    drop(cloud);
    let _blind = start(place.path(), "blind", &cluster, 0);
    assert!(eventually(|| !cluster.violations().is_empty()), "no server logs a violation");
}
