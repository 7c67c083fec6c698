//! Two edges of one name that publish at the same moment: one lane stops, and neither edge loses an event.

use std::thread;
use std::time::Duration;

use bodkin_bench::link::Link;
use serde_json::json;
use tempfile::TempDir;

use super::servers::Cluster;
use super::{Publisher, configure_with, has, in_stream, lane, program, register, told, up};
use crate::support::cloud::Cloud;
use crate::support::patience::eventually;
use crate::support::secure::copy;

/// After this time a lane whose stream is there has asked for its last message.
const STREAM_ASKED: Duration = Duration::from_secs(2);
/// After this time a batch is on its way to NATS, and its answer is still waited for.
const BATCH_SENT: Duration = Duration::from_millis(300);

/// Links to all servers of a cluster.
fn links(cluster: &Cluster) -> Vec<Link> {
    (0..3).map(|at| Link::to(cluster.address(at)).expect("a port is free")).collect()
}

fn ports(links: &[Link]) -> Vec<u16> {
    links.iter().map(|link| link.address.port()).collect()
}

/// Both edges publish over links that stall, so that each sends a batch of the same positions without knowing of the other one,
/// and the second batch reaches NATS just after the first one is stored. Then the edges publish until the lane of one stops.
/// `before` is in the stream already.
fn publish_together(cluster: &Cluster, edges: [&Cloud; 2], links: [&[Link]; 2], before: Vec<u64>) {
    assert!(eventually(|| edges.iter().all(|edge| told(edge)["told"].is_object())), "{}\n{}", told(edges[0]), told(edges[1]));
    thread::sleep(STREAM_ASKED);
    let mut publishers = [Publisher::new(edges[0], 1_000), Publisher::new(edges[1], 2_000)];
    links.iter().for_each(|links| links.iter().for_each(Link::stall));
    publishers.iter_mut().for_each(|publisher| publisher.publish_all(1, 0));
    thread::sleep(BATCH_SENT);
    links[0].iter().for_each(Link::mend);
    assert!(eventually(|| lane(edges[0], "events")["waiting"] == 0), "{}", told(edges[0]));
    links[1].iter().for_each(Link::mend);

    let has_stopped = |edge: &&Cloud| lane(edge, "events")["stopped"] == true;
    let one_stops = || {
        publishers.iter_mut().for_each(|publisher| publisher.publish_all(1, 0));
        edges.iter().filter(|edge| has_stopped(edge)).count() == 1
    };
    assert!(eventually(one_stops), "{}\n{}", told(edges[0]), told(edges[1]));
    let stopped = usize::from(has_stopped(&edges[1]));
    edges[stopped].post("/api/v1/fleet/adopt?lane=events", &json!({})).expect_status(200);
    // The adopting edge publishes a batch, at which the lane of the other edge may stop.
    let published: Vec<u64> = before.into_iter().chain(1_000..publishers[0].next).chain(2_000..publishers[1].next).collect();
    let stored = || {
        let (mut numbers, lost) = in_stream(cluster, "events")?;
        numbers.sort_unstable();
        Some((numbers, lost))
    };
    let mut adopted = stopped;
    let is_whole = || {
        if adopted == stopped && has_stopped(&edges[1 - stopped]) {
            edges[1 - stopped].post("/api/v1/fleet/adopt?lane=events", &json!({})).expect_status(200);
            adopted = 1 - stopped;
        }
        stored() == Some((published.clone(), 0))
    };
    assert!(eventually(is_whole), "{:?}\n{}\n{}", stored(), told(edges[0]), told(edges[1]));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn edges_of_one_name_that_start_together_lose_no_event() {
    let Some(program) = program("edges_of_one_name_that_start_together_lose_no_event") else { return };
    let cluster = Cluster::start(&program, 1 << 30);
    let places = [TempDir::new().expect("a directory"), TempDir::new().expect("a directory")];
    let links = [links(&cluster), links(&cluster)];
    let edges = [0, 1].map(|at| up(places[at].path(), &configure_with(places[at].path(), "edge", &ports(&links[at]), "")));
    edges.iter().for_each(register);
    publish_together(&cluster, edges.each_ref(), links.each_ref().map(Vec::as_slice), Vec::new());
}

#[test]
#[ignore = "peer: ./x test --all"]
fn copy_of_running_edge_and_its_original_lose_no_event() {
    let Some(program) = program("copy_of_running_edge_and_its_original_lose_no_event") else { return };
    let cluster = Cluster::start(&program, 1 << 30);
    let places = [TempDir::new().expect("a directory"), TempDir::new().expect("a directory")];
    let links = [links(&cluster), links(&cluster)];
    let configs = [0, 1].map(|at| configure_with(places[at].path(), "edge", &ports(&links[at]), ""));
    let original = up(places[0].path(), &configs[0]);
    register(&original);
    Publisher::new(&original, 0).publish_all(10, 0);
    has(&cluster, &original, "events", ((0..10).collect(), 0));
    copy(&places[0].path().join("data"), &places[1].path().join("data"));
    let copied = up(places[1].path(), &configs[1]);
    publish_together(&cluster, [&original, &copied], links.each_ref().map(Vec::as_slice), (0..10).collect());
}
