//! Events between the nodes of one cloud by a stream of JetStream, on a cluster of three: each is heard once and in order, whatever is killed, cut, purged or deleted.

use std::path::{Path, PathBuf};

use bodkin_bench::link::Link;
use tempfile::TempDir;

use crate::fleet::program;
use crate::fleet::servers::{Cluster, PASSWORD};
use crate::from_fleet;
use crate::node_events::counted;
use crate::postgres::server::{Server, eventually};
use crate::support::arrowhead::{INSECURE_JSON_ID, event, subscription, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::push::{Manner, PushSubscriber};
use crate::support::secure::{DAY, authority, issue, other_authority};
use crate::support::skip;
use crate::support::sse::EventStream;
use crate::support::stream::Told;

/// What tells a listener of a loss.
pub const LOST: &str = "bodkin-lost";

/// What the nodes of a cloud stand on.
struct Ground {
    database: Server,
    cluster: Cluster,
    data: TempDir,
}

impl Ground {
    fn start(test: &str) -> Option<Self> {
        let program: PathBuf = program(test)?;
        let Some(database) = Server::start() else {
            skip::note(test, "no PostgreSQL server");
            return None;
        };
        Some(Self { database, cluster: Cluster::start(&program, 64 << 20), data: TempDir::new().expect("a temporary directory") })
    }

    /// All servers, for a node that nobody cuts off.
    fn servers(&self) -> String {
        (0..3).map(|at| self.cluster.address(at).to_string()).collect::<Vec<_>>().join(",")
    }

    fn data(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    fn launch(&self, data: &Path, user: &str, servers: &str) -> Launch {
        Launch::new()
            .data(data)
            .env("BODKIN_DATABASE", &self.database.url())
            .env("BODKIN_NODE_EVENTS", &format!("nats://{user}:{PASSWORD}@{servers}"))
            .env("BODKIN_NODE_EVENTS_STREAM", "NODES")
            .env("BODKIN_NODE_EVENTS_REPLICAS", "3")
            .env("BODKIN_NODE_EVENTS_BYTES_MAX", "16777216")
    }

    /// A node that is connected.
    fn up(&self, name: &str, servers: &str) -> Cloud {
        let node = self.launch(&self.data(name), "edge", servers).start();
        eventually(|| is_connected(&node), || node.stderr());
        node
    }
}

fn is_connected(node: &Cloud) -> bool {
    counted(node, "bodkin_node_events_connected ") == 1
}

pub fn publish(node: &Cloud, begin: char, numbers: std::ops::RangeInclusive<u32>) {
    for number in numbers {
        node.publish(&event("heat", system("sensor", 7001), &format!("{begin}{number}")));
    }
}

pub fn listen(node: &Cloud, more: &str, headers: &[(&str, &str)]) -> EventStream {
    EventStream::open(node.address(System::EventHandler), &format!("/eventhandler/subscription?eventtype=heat{more}"), headers)
}

pub fn payloads(stream: &EventStream) -> Vec<String> {
    let heard = stream.wait_for(stream.count());
    heard.into_iter().filter(|event| event.event_type != LOST).map(|event| event.data).collect()
}

/// Waits until a stream has told these, and looks that it has told each once and in its publisher's order.
#[track_caller]
pub fn hears_once(stream: &EventStream, node: &Cloud, from: &[(char, std::ops::RangeInclusive<u32>)]) {
    let count: usize = from.iter().map(|(_, numbers)| numbers.clone().count()).sum();
    eventually(|| payloads(stream).len() >= count, || format!("{:?}\n{}", payloads(stream), node.stderr()));
    let heard = payloads(stream);
    for (begin, numbers) in from {
        let of: Vec<String> = heard.iter().filter(|payload| payload.starts_with(*begin)).cloned().collect();
        let expected: Vec<String> = numbers.clone().map(|number| format!("{begin}{number}")).collect();
        assert_eq!(of, expected, "{heard:?}");
    }
    assert_eq!(heard.len(), count, "{heard:?}");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn what_a_node_missed_is_delivered_once_and_in_order_behind_cuts_and_kills() {
    let Some(mut ground) = Ground::start("what_a_node_missed_is_delivered_once_and_in_order_behind_cuts_and_kills") else { return };
    let all = ground.servers();
    let link = Link::to(ground.cluster.address(1)).expect("a link");
    let one = ground.up("one", &all);
    let (publisher, definition) = one.register_publisher("sensor", 7001);
    let pushed = PushSubscriber::listen(Manner::Answers);
    let listener = one.register_system("listener", pushed.port());
    one.allow(listener, publisher, definition, &[INSECURE_JSON_ID]);
    one.subscribe(&subscription("heat", system("listener", pushed.port()), "/notify"));
    let two = ground.up("two", &link.address.to_string());
    let three = ground.up("three", &all);
    eventually(|| three.get("/eventhandler/mgmt/subscriptions").text().contains("listener"), || three.stderr());
    let (at_two, at_three) = (listen(&two, "", &[]), listen(&three, "", &[]));

    publish(&one, 'a', 1..=20);
    publish(&three, 'c', 1..=20);
    hears_once(&at_two, &two, &[('a', 1..=20), ('c', 1..=20)]);

    // Its own connection is cut; it is told, and what was published meanwhile comes behind it.
    link.cut();
    eventually(|| !is_connected(&two), || two.stderr());
    publish(&one, 'a', 21..=40);
    publish(&three, 'c', 21..=40);
    publish(&two, 'b', 1..=20);
    link.mend();
    hears_once(&at_two, &two, &[('a', 1..=40), ('b', 1..=20), ('c', 1..=40)]);

    // All servers are killed; publishers are answered all the same.
    (0..3).for_each(|at| ground.cluster.kill(at));
    eventually(|| [&one, &two, &three].iter().all(|node| !is_connected(node)), || one.stderr());
    publish(&one, 'a', 41..=60);
    publish(&three, 'c', 41..=60);
    (0..3).for_each(|at| ground.cluster.revive(at));
    hears_once(&at_two, &two, &[('a', 1..=60), ('b', 1..=20), ('c', 1..=60)]);

    // The node itself is killed, and comes back to what it missed.
    two.kill();
    publish(&one, 'a', 61..=80);
    publish(&three, 'c', 61..=80);
    let two = ground.up("two", &link.address.to_string());
    let at_two = listen(&two, "&since=0", &[]);
    hears_once(&at_two, &two, &[('a', 1..=80), ('b', 1..=20), ('c', 1..=80)]);

    // What was answered by a node that is killed at once comes to the others when it is back.
    publish(&one, 'a', 81..=120);
    one.kill();
    let one = ground.up("one", &all);
    hears_once(&at_three, &three, &[('a', 1..=120), ('b', 1..=20), ('c', 1..=80)]);
    hears_once(&at_two, &two, &[('a', 1..=120), ('b', 1..=20), ('c', 1..=80)]);
    hears_once(&listen(&one, "&since=0", &[]), &one, &[('a', 1..=120), ('b', 1..=20), ('c', 1..=80)]);
    for node in [&one, &two, &three] {
        assert_eq!(counted(node, "bodkin_node_events_missing_total "), 0, "{}", node.stderr());
        assert_eq!(counted(node, "bodkin_node_events_refused_total "), 0, "{}", node.stderr());
    }
    // Who is pushed to gets each of the node that accepted it. What was on its way at a kill may come again, as from a node by itself.
    eventually(|| pushed.payloads().iter().collect::<std::collections::BTreeSet<_>>().len() >= 220, || one.stderr());
    let pushed = pushed.payloads();
    let of_three: Vec<&String> = pushed.iter().filter(|payload| payload.starts_with('c')).collect();
    assert_eq!(of_three.len(), 80, "a node that was not killed pushes each once, and nobody else does: {of_three:?}");

    // A node that ends in order leaves nothing behind.
    publish(&three, 'c', 81..=110);
    assert!(three.stop().success());
    hears_once(&at_two, &two, &[('a', 1..=120), ('b', 1..=20), ('c', 1..=110)]);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn what_the_stream_has_let_go_of_is_counted_and_told() {
    let Some(ground) = Ground::start("what_the_stream_has_let_go_of_is_counted_and_told") else { return };
    let link = Link::to(ground.cluster.address(1)).expect("a link");
    let one = ground.up("one", &ground.servers());
    one.register_publisher("sensor", 7001);
    let two = ground.up("two", &link.address.to_string());
    let at_two = listen(&two, "", &[]);
    publish(&one, 'a', 1..=5);
    hears_once(&at_two, &two, &[('a', 1..=5)]);
    link.cut();
    eventually(|| !is_connected(&two), || two.stderr());
    publish(&one, 'a', 6..=35);
    eventually(|| counted(&one, "bodkin_node_events_sent_total ") == 35, || one.stderr());
    ground.cluster.ask("STREAM.PURGE.NODES", "");
    link.mend();
    eventually(|| is_connected(&two), || two.stderr());
    publish(&one, 'a', 36..=36);
    eventually(|| counted(&two, "bodkin_node_events_missing_total ") == 30, || two.stderr());
    eventually(|| payloads(&at_two).last().is_some_and(|last| last == "a36"), || two.stderr());
    let tells_loss = |stream: &EventStream| {
        stream.has(|told| {
            let at = |fits: &dyn Fn(&Told) -> bool| told.iter().position(fits);
            let lost = at(&|told| matches!(told, Told::Event(event) if event.event_type == LOST));
            let behind = at(&|told| matches!(told, Told::Event(event) if event.data == "a36"));
            lost.is_some() && lost < behind
        })
    };
    eventually(|| tells_loss(&at_two), || two.stderr());
    // Who comes later is told at the same place.
    let later = listen(&two, "&since=0", &[]);
    eventually(|| tells_loss(&later), || format!("{:?}", payloads(&later)));

    // A stream that is deleted under them is made anew, and all goes on.
    ground.cluster.ask("STREAM.DELETE.NODES", "");
    publish(&one, 'a', 37..=60);
    eventually(|| payloads(&at_two).last().is_some_and(|last| last == "a60"), || format!("{}\n{}", one.stderr(), two.stderr()));
    let (heard, missing) = (payloads(&at_two).len() as u64, counted(&two, "bodkin_node_events_missing_total "));
    assert_eq!(heard + missing, 60, "each is heard, or missing: {:?}", payloads(&at_two));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn who_lacks_rights_is_told_which() {
    let Some(ground) = Ground::start("who_lacks_rights_is_told_which") else { return };
    let servers = ground.servers();
    let told = |node: &Cloud| node.get("/api/v1/nodes/events").text();
    // Servers that have no room for the stream: events wait.
    let one = ground.launch(&ground.data("one"), "edge", &servers).env("BODKIN_NODE_EVENTS_BYTES_MAX", "1073741824").start();
    one.register_publisher("sensor", 7001);
    eventually(|| told(&one).contains("insufficient storage (10005)"), || told(&one));
    publish(&one, 'a', 1..=3);
    one.kill();
    let one = ground.up("one", &servers);
    let two = ground.launch(&ground.data("two"), "mute", &servers).start();
    publish(&two, 'b', 1..=3);
    eventually(|| told(&two).contains("Permissions Violation"), || format!("{}\n{}", told(&two), two.stderr()));
    // What has no answer is known by its time alone.
    eventually(|| !is_connected(&two), || two.stderr());
    let url = format!("nats://mute:{PASSWORD}@{servers}");
    let examined = std::process::Command::new(crate::support::cloud::BINARY)
        .args(["doctor", "--insecure", "--any-port", "--stall-s", "1", "--data", ground.data("two").to_str().expect("a path")])
        .envs([("BODKIN_DATABASE", &*ground.database.url()), ("BODKIN_NODE_EVENTS", &url), ("BODKIN_NODE_EVENTS_STREAM", "NODES")])
        .output()
        .expect("the binary runs");
    let examined = String::from_utf8_lossy(&examined.stdout).into_owned();
    assert!(examined.contains("may not publish to stream NODES"), "{examined}");
    assert!(examined.contains("cannot take from stream NODES"), "{examined}");
    // One that names another stream of the same cloud.
    drop(two);
    let two = ground.launch(&ground.data("other"), "edge", &servers).env("BODKIN_NODE_EVENTS_STREAM", "OTHER").start();
    eventually(|| told(&two).contains("subjects overlap"), || told(&two));
    // With its rights it hands on what has waited.
    drop(two);
    let at_one = listen(&one, "", &[]);
    let two = ground.up("two", &servers);
    hears_once(&at_one, &two, &[('b', 1..=3)]);
    let at_two = listen(&two, "", &[]);
    publish(&one, 'a', 4..=5);
    hears_once(&at_two, &two, &[('a', 4..=5)]);
}

/// The id that a listener has heard last.
pub fn last_id(stream: &EventStream) -> String {
    stream.wait_for(stream.count()).pop().expect("something was heard").id
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_subscriber_goes_on_at_another_node_where_it_was() {
    let Some(ground) = Ground::start("a_subscriber_goes_on_at_another_node_where_it_was") else { return };
    let all = ground.servers();
    let link = Link::to(ground.cluster.address(1)).expect("a link");
    let one = ground.up("one", &all);
    one.register_publisher("sensor", 7001);
    let two = ground.up("two", &link.address.to_string());
    let three = ground.up("three", &all);
    let at_two = listen(&two, "", &[]);
    publish(&one, 'a', 1..=10);
    publish(&two, 'b', 1..=5);
    hears_once(&at_two, &two, &[('a', 1..=10), ('b', 1..=5)]);
    hears_once(&listen(&one, "&since=0", &[]), &one, &[('a', 1..=10), ('b', 1..=5)]);

    // Its node is cut off, so it hears that node's own events alone; then the node is killed.
    link.cut();
    eventually(|| !is_connected(&two), || two.stderr());
    publish(&one, 'a', 11..=20);
    publish(&two, 'b', 6..=10);
    hears_once(&at_two, &two, &[('a', 1..=10), ('b', 1..=10)]);
    let id = last_id(&at_two);
    two.kill();
    let at_one = listen(&one, "", &[("Last-Event-ID", &id)]);
    hears_once(&at_one, &one, &[('a', 11..=20)]);

    // What comes late and was heard there does not come again.
    link.mend();
    let two = ground.up("two", &link.address.to_string());
    publish(&two, 'b', 11..=12);
    hears_once(&at_one, &one, &[('a', 11..=20), ('b', 11..=12)]);

    // And on to a third one, which has everything by now.
    hears_once(&listen(&three, "&since=0", &[]), &three, &[('a', 1..=20), ('b', 1..=12)]);
    let at_three = listen(&three, "", &[("Last-Event-ID", &last_id(&at_one))]);
    publish(&one, 'a', 21..=22);
    hears_once(&at_three, &three, &[('a', 21..=22)]);
    // The same node again, by a place of its own log.
    let id = last_id(&at_three);
    drop(at_three);
    publish(&two, 'b', 13..=14);
    hears_once(&listen(&three, "", &[("Last-Event-ID", &id)]), &three, &[('b', 13..=14)]);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn nodes_believe_servers_by_their_authority_only_and_are_known_by_their_key() {
    let test = "nodes_believe_servers_by_their_authority_only_and_are_known_by_their_key";
    let Some(program) = program(test) else { return };
    let Some(database) = Server::start() else { return skip::note(test, "no PostgreSQL server") };
    let place = TempDir::new().expect("a temporary directory");
    let put = |name: &str, text: &str| {
        let path = place.path().join(name);
        bodkin_trust::file::write_private(&path, text.as_bytes()).expect("written");
        path
    };
    let server = issue(&authority(), "nats.example", &["127.0.0.1"], bodkin_trust::tls::now(), DAY);
    let (certificate, key) = (put("server.pem", &server.chain_to_pem()), put("server.key", &server.key().to_pem()));
    let own = put("own.pem", &authority().certificate().to_pem());
    // Another authority of the same root: it has not issued the server's.
    let other = put("other.pem", &other_authority("elsewhere.aitia.arrowhead.eu").certificate().to_pem());
    let ((seed, public_key), (wrong_seed, _)) = (from_fleet::key(), from_fleet::key());
    let (seed, wrong_seed) = (put("seed", &seed), put("wrong-seed", &wrong_seed));
    let (_server, port) = from_fleet::Server::start(
        &program,
        place.path(),
        &format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}\nauthorization {{ users: [ {{ nkey: {public_key} }} ] }}"),
    );
    let node = |trust: &Path, seed: &Path, stream: &str| {
        Launch::new()
            .env("BODKIN_DATABASE", &database.url())
            .env("BODKIN_NODE_EVENTS", &format!("tls://127.0.0.1:{port}"))
            .env("BODKIN_NODE_EVENTS_TRUST_FILE", trust.to_str().expect("a path"))
            .env("BODKIN_NODE_EVENTS_KEY_FILE", seed.to_str().expect("a path"))
            .env("BODKIN_NODE_EVENTS_STREAM", stream)
            .env("BODKIN_NODE_EVENTS_REPLICAS", "1")
            .start()
    };
    for stream in ["", "NODES"] {
        let (one, two) = (node(&own, &seed, stream), node(&own, &seed, stream));
        eventually(|| is_connected(&one) && is_connected(&two), || one.stderr());
        if one.get("/serviceregistry/mgmt/systems").text().contains("sensor") {
            publish(&one, 'a', 1..=2);
        } else {
            one.register_publisher("sensor", 7001);
        }
        let heard = listen(&two, "", &[]);
        publish(&one, 'b', 1..=3);
        eventually(|| payloads(&heard).iter().filter(|payload| payload.starts_with('b')).count() == 3, || two.stderr());
        for (trust, seed, why) in [(&other, &seed, "certificate"), (&own, &wrong_seed, "Authorization Violation")] {
            let refused = node(trust, seed, stream);
            eventually(|| refused.stderr().contains(why), || refused.stderr());
            assert!(!is_connected(&refused), "{why}");
        }
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn under_load_each_event_is_heard_once_through_kills_of_servers_and_nodes() {
    const EVENTS: u32 = 1_500;
    let test = "under_load_each_event_is_heard_once_through_kills_of_servers_and_nodes";
    let Some(mut ground) = Ground::start(test) else { return };
    let all = ground.servers();
    let link = Link::to(ground.cluster.address(1)).expect("a link");
    let one = ground.up("one", &all);
    one.register_publisher("sensor", 7001);
    let two = ground.up("two", &link.address.to_string());
    let three = ground.up("three", &all);
    let at_three = listen(&three, "", &[]);
    let two = std::thread::scope(|scope| {
        let mut two = two;
        let publishers: Vec<_> =
            [(&one, 'a'), (&three, 'c')].map(|(node, begin)| scope.spawn(move || publish(node, begin, 1..=EVENTS))).into();
        let mut round = 0;
        while publishers.iter().any(|publisher| !publisher.is_finished()) {
            ground.cluster.kill(round % 3);
            ground.cluster.revive(round % 3);
            link.cut();
            eventually(|| !is_connected(&two), || two.stderr());
            link.mend();
            two.kill();
            two = ground.up("two", &link.address.to_string());
            round += 1;
        }
        assert!(round > 0, "something was killed beside the publishers");
        two
    });
    let whole = [('a', 1..=EVENTS), ('c', 1..=EVENTS)];
    hears_once(&at_three, &three, &whole);
    for node in [&one, &two, &three] {
        hears_once(&listen(node, "&since=0", &[]), node, &whole);
        assert_eq!(counted(node, "bodkin_node_events_missing_total "), 0, "{}", node.stderr());
    }
}
