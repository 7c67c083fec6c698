//! Listeners of nodes that share a database: they continue where they stopped, at the same node or at another one, and lose nothing without a report.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::crash::has_namespaces;
use crate::full_disk::Disk;
use crate::node_events::{Nats, counted, programs};
use crate::node_log::{LOST, hears_once, last_id, listen, payloads, publish};
use crate::postgres::server::{Server, eventually};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::skip;
use crate::support::sse::EventStream;

/// A node on this database and NATS server, with a stream between nodes or without.
fn up(database: &Server, nats: &Nats, has_stream: bool) -> Cloud {
    launch(database, nats, has_stream).start()
}

fn launch(database: &Server, nats: &Nats, has_stream: bool) -> Launch {
    let launch = Launch::new().env("BODKIN_DATABASE", &database.url()).env("BODKIN_NODE_EVENTS", &nats.url());
    if has_stream { launch.env("BODKIN_NODE_EVENTS_STREAM", "NODES").env("BODKIN_NODE_EVENTS_REPLICAS", "1") } else { launch }
}

fn is_connected(node: &Cloud) -> bool {
    counted(node, "bodkin_node_events_connected ") == 1
}

fn losses(stream: &EventStream) -> usize {
    stream.wait_for(stream.count()).into_iter().filter(|event| event.event_type == LOST).count()
}

/// Listens again behind the last event of a stream.
fn resume(node: &Cloud, stream: &EventStream) -> EventStream {
    listen(node, "", &[("Last-Event-ID", &last_id(stream))])
}

#[test]
#[ignore = "peer: ./x test --all"]
fn reconnect_without_stream_replays_only_missed_events() {
    let Some((database, program)) = programs("reconnect_without_stream_replays_only_missed_events") else { return };
    let mut nats = Nats::with_jetstream(program);
    nats.begin();
    let [one, two] = [up(&database, &nats, false), up(&database, &nats, false)];
    eventually(|| is_connected(&one) && is_connected(&two), || one.stderr());
    one.register_publisher("sensor", 7001);
    eventually(|| two.get("/serviceregistry/mgmt/systems").text().contains("sensor"), || two.stderr());
    let first = listen(&one, "", &[]);
    publish(&one, 'a', 1..=50);
    hears_once(&first, &one, &[('a', 1..=50)]);
    publish(&two, 'b', 1..=1);
    hears_once(&first, &one, &[('a', 1..=50), ('b', 1..=1)]);
    let second = resume(&one, &first);
    drop(first);
    publish(&one, 'a', 51..=51);
    hears_once(&second, &one, &[('a', 51..=51)]);
    // While nobody listens, the own node keeps its events, and those of the other one are lost and reported.
    let id = last_id(&second);
    drop(second);
    publish(&one, 'a', 52..=53);
    publish(&two, 'b', 2..=3);
    eventually(|| counted(&one, "bodkin_node_events_heard_total ") == 3, || one.stderr());
    let third = listen(&one, "", &[("Last-Event-ID", &id)]);
    eventually(|| payloads(&third).len() == 2, || format!("{:?}", payloads(&third)));
    assert_eq!((payloads(&third), losses(&third)), (vec!["a52".to_owned(), "a53".to_owned()], 1));
    // At the other node: its own events that were lost above come, and no event comes again.
    let fourth = listen(&two, "", &[("Last-Event-ID", &id)]);
    eventually(|| payloads(&fourth).len() == 2, || format!("{:?}", payloads(&fourth)));
    assert_eq!((payloads(&fourth), losses(&fourth)), (vec!["b2".to_owned(), "b3".to_owned()], 1));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn events_published_before_nats_starts_arrive() {
    let Some((database, program)) = programs("events_published_before_nats_starts_arrive") else { return };
    let mut nats = Nats::with_jetstream(program);
    let [one, two] = [up(&database, &nats, true), up(&database, &nats, true)];
    one.register_publisher("sensor", 7001);
    eventually(|| two.get("/serviceregistry/mgmt/systems").text().contains("sensor"), || two.stderr());
    let (at_one, at_two) = (listen(&one, "", &[]), listen(&two, "", &[]));
    publish(&one, 'a', 1..=10);
    publish(&two, 'b', 1..=10);
    nats.begin();
    eventually(|| is_connected(&one) && is_connected(&two), || format!("{}\n{}", one.stderr(), two.stderr()));
    publish(&one, 'a', 11..=20);
    publish(&two, 'b', 11..=20);
    for (stream, node) in [(&at_one, &one), (&at_two, &two)] {
        hears_once(stream, node, &[('a', 1..=20), ('b', 1..=20)]);
        assert_eq!(losses(stream), 0);
        hears_once(&listen(node, "&since=0", &[]), node, &[('a', 1..=20), ('b', 1..=20)]);
    }
}

/// A restored node takes the stream again, with the losses in it. A listener that was told of them is not told again.
#[test]
#[ignore = "peer: ./x test --all"]
fn restored_node_reports_no_loss_twice() {
    const NAME: &str = "restored_node_reports_no_loss_twice";
    let Some((database, program)) = programs(NAME) else { return };
    if !has_namespaces() {
        return skip::note(NAME, "no disk can be mounted here");
    }
    let mut nats = Nats::with_jetstream(program);
    nats.begin();
    let place = TempDir::new().expect("a temporary directory");
    let [data_of_one, data_of_two, kept] = ["one", "two", "kept"].map(|name| place.path().join(name));
    let disk = Disk::mount(data_of_one.clone());
    let start = |data: &Path| launch(&database, &nats, true).data(data).start();
    let (one, two) = (start(&data_of_one), start(&data_of_two));
    eventually(|| is_connected(&one) && is_connected(&two), || one.stderr());
    one.register_publisher("sensor", 7001);
    eventually(|| two.get("/serviceregistry/mgmt/systems").text().contains("sensor"), || two.stderr());
    let first = listen(&two, "", &[]);
    publish(&one, 'a', 1..=5);
    hears_once(&first, &two, &[('a', 1..=5)]);
    two.stop();
    assert!(Command::new("cp").arg("-a").args([&data_of_two, &kept]).status().is_ok_and(|status| status.success()));
    let two = start(&data_of_two);
    let second = resume(&two, &first);
    disk.fill();
    let mut number = 6;
    let mut publishes_until = |suspended: u64| {
        eventually(
            || {
                publish(&one, 'a', number..=number);
                number += 1;
                counted(&one, "bodkin_event_log_suspended ") == suspended
            },
            || one.stderr(),
        );
    };
    publishes_until(1);
    publish(&one, 'x', 1..=10);
    disk.make_room();
    publishes_until(0);
    publish(&one, 'z', 1..=1);
    eventually(|| payloads(&second).last().is_some_and(|last| last == "z1"), || two.stderr());
    assert!(losses(&second) > 1, "what the log of the other node does not keep is reported: {}", two.stderr());
    two.stop();
    std::fs::remove_dir_all(&data_of_two).expect("a directory");
    std::fs::rename(&kept, &data_of_two).expect("a copy");
    let two = start(&data_of_two);
    let third = resume(&two, &second);
    eventually(|| counted(&two, "bodkin_node_events_missing_total ") > 0, || two.stderr());
    publish(&one, 'z', 2..=2);
    hears_once(&third, &two, &[('z', 2..=2)]);
    // One report at most: until the node has taken the stream again, its own log ends before the listener's place.
    assert!(losses(&third) <= 1, "{} {}", losses(&third), two.stderr());
    let fourth = resume(&two, &second);
    hears_once(&fourth, &two, &[('z', 2..=2)]);
    assert!(losses(&fourth) <= 1, "from the log too: {}", losses(&fourth));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn id_of_another_cloud_is_refused_with_both_identities() {
    let Some((database, program)) = programs("id_of_another_cloud_is_refused_with_both_identities") else { return };
    let mut nats = Nats::with_jetstream(program);
    nats.begin();
    let other = Server::start().expect("a second PostgreSQL server");
    let [one, stranger] = [up(&database, &nats, false), up(&other, &nats, false)];
    let ids = [&one, &stranger].map(|node| {
        node.register_publisher("sensor", 7001);
        let stream = listen(node, "", &[]);
        publish(node, 'a', 1..=1);
        hears_once(&stream, node, &[('a', 1..=1)]);
        last_id(&stream)
    });
    let cloud = |id: &str| id.split_once('@').and_then(|(_, token)| token.split_once(':')).expect("a token").0.to_owned();
    let [of_one, of_stranger] = [cloud(&ids[0]), cloud(&ids[1])];
    assert_ne!(of_one, of_stranger);
    let path = "/eventhandler/subscription?eventtype=heat";
    let headers = [("Last-Event-ID", ids[1].as_str()), ("Accept", "text/event-stream")];
    let answer = one.connect(System::EventHandler).request("GET", path, &headers, None).expect("an answer");
    let text = answer.text();
    assert!(answer.status == 400 && text.contains(&of_one) && text.contains(&of_stranger), "{} {text}", answer.status);
}
