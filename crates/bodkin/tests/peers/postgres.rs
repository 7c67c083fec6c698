//! One cloud of several nodes on a PostgreSQL server: the binary, as an operator starts it.

#[path = "../../../store/tests/peers/server.rs"]
pub mod server;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};
use tempfile::TempDir;

use self::server::{Server, eventually};
use crate::nodes::Relay;
use crate::support::arrowhead::{INSECURE_JSON_ID, event, list, number, service, subscription, system, texts};
use crate::support::cloud::{BINARY, Cloud, Launch, System};
use crate::support::conditions::assert_shown;
use crate::support::ports::held_port;
use crate::support::push::{Manner, PushSubscriber};
use crate::support::skip;
use crate::support::sse::EventStream;

fn launch(server: &Server) -> Launch {
    Launch::new().env("BODKIN_DATABASE", &server.url()).env("BODKIN_REALTIME_AT", "first:8443,second:8443")
}

/// The ids of who offers a service.
fn offered(cloud: &Cloud, definition: &str) -> Vec<i64> {
    let found = cloud.query(&json!({"serviceDefinitionRequirement": definition}));
    list(&found, "/serviceQueryData").iter().map(|entry| number(entry, "/id")).collect()
}

fn monitor(cloud: &Cloud, target: &str) -> String {
    let answer = cloud.connect(System::Monitor).request("GET", target, &[], None).expect("an answer");
    answer.expect_status(200).text()
}

fn said(cloud: &Cloud) -> impl Fn() -> String + '_ {
    || cloud.stderr()
}

fn bodkin(arguments: &[&str], data: &Path, server: &Server) -> Output {
    let mut command = Command::new(BINARY);
    command.args(arguments).arg("--data").arg(data).env("BODKIN_DATABASE", server.url());
    command.output().expect("the binary starts")
}

#[test]
#[ignore = "peer: ./x test --all"]
fn three_nodes_serve_one_cloud() {
    let Some(mut server) = Server::start() else { return skip::note("three_nodes_serve_one_cloud", "no PostgreSQL server") };
    let place = TempDir::new().expect("a temporary directory");
    let first = launch(&server).data(place.path()).start();
    let (second, third) = (launch(&server).start(), launch(&server).start());
    let id = number(&first.register(&service("temperature", system("sensor", 7001))), "/id");
    assert_eq!(offered(&first, "temperature"), [id], "who has written reads it at once");
    for node in [&second, &third] {
        eventually(|| offered(node, "temperature") == [id], said(node));
    }
    let states = |node: &Cloud| {
        let told: Value = serde_json::from_str(&monitor(node, "/api/v1/nodes")).expect("JSON");
        let mut states = texts(list(&told, "/data"), "/state");
        states.sort_unstable();
        states
    };
    eventually(|| states(&first) == ["serves"; 3], said(&first));
    // What one node serves is refused, with the reason, and where it is served.
    let topic = json!({"eventType": "position", "period_us": 10_000});
    let answer = first.connect(System::Monitor).request("POST", "/api/v1/topics", &[], Some(topic.to_string().as_bytes()));
    let answer = answer.expect("an answer").expect_status(409);
    assert!(answer.text().contains("reliable pair") && answer.text().contains("first:8443 or second:8443"), "{}", answer.text());
    let answer = first.connect(System::Monitor).request("POST", "/api/v1/graphs", &[], Some(b"{}")).expect("an answer").expect_status(409);
    assert!(
        answer.text().contains("a graph is served by one node") && answer.text().contains("first:8443 or second:8443"),
        "{}",
        answer.text()
    );
    without_node_events_listeners_hear_their_own_node(&first, &second);
    let connections = "SELECT split_part(application_name, ' ', 2), count(*) FROM pg_stat_activity
        WHERE datname = 'cloud' AND application_name LIKE 'bodkin %' GROUP BY 1";
    let of_nodes = server.sql("cloud", connections);
    let counts: Vec<u32> =
        of_nodes.lines().map(|line| line.split('|').nth(1).and_then(|count| count.parse().ok()).expect("a count")).collect();
    assert!(counts.len() == 3 && counts.iter().all(|count| (1..=4).contains(count)), "each node has at most four connections: {of_nodes}");

    // Clients find where that is, at any node.
    let found = third.query(&json!({"serviceDefinitionRequirement": "realtime-service-registry"}));
    let pair = list(&found, "/serviceQueryData");
    assert_eq!(texts(pair, "/provider/address"), ["first", "second"]);
    assert!(pair.iter().all(|entry| number(entry, "/provider/port") == 8443), "{found}");
    let ids: Vec<i64> = pair.iter().map(|entry| number(entry, "/id")).collect();

    // A rolling restart: the others answer meanwhile.
    assert!(first.stop().success());
    // Who ends in order is gone at once, and not silent.
    eventually(|| states(&second) == ["serves"; 2], said(&second));
    let moved = number(&second.register(&service("pressure", system("gauge", 7002))), "/id");
    let first = launch(&server).data(place.path()).start();
    assert_eq!(offered(&first, "pressure"), [moved]);
    assert_eq!(offered(&first, "realtime-service-registry"), ids, "they keep their rows");

    // Without the database what was read is served, and nothing is changed.
    server.crash();
    let more = service("humidity", system("sponge", 7003));
    eventually(|| first.post("/serviceregistry/register", &more).status == 503, said(&first));
    eventually(|| monitor(&second, "/metrics").contains("bodkin_database_connected 0"), said(&second));
    assert_eq!(offered(&second, "temperature"), [id]);
    assert!(monitor(&second, "/readyz").contains("changes are refused"));
    assert_shown(second.address(System::Monitor), "BodkinDatabaseAway");
    server.begin();
    let register = || first.post("/serviceregistry/register", &more);
    eventually(|| register().status == 201 || offered(&first, "humidity").len() == 1, said(&first));
    for node in [&second, &third] {
        eventually(|| offered(node, "humidity").len() == 1, said(node));
        eventually(|| monitor(node, "/readyz") == "ready\n", said(node));
    }

    // Who is killed is silent, at whichever node one looks.
    let status = |data: &Path| bodkin(&["status", "--monitor", &second.address(System::Monitor).to_string()], data, &server);
    eventually(|| states(&second) == ["serves"; 3], said(&second));
    assert!(status(place.path()).status.success());
    third.kill();
    eventually(|| states(&second) == ["serves", "serves", "silent"], said(&second));
    let told = status(place.path());
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(!told.status.success() && text.contains("SILENT since") && text.contains("nodes of this cloud that are silent: 1"), "{text}");
    assert_shown(second.address(System::Monitor), "BodkinNodeSilent");
}

/// Listeners receive the events of their own node, and subscribers by push the events of all nodes.
fn without_node_events_listeners_hear_their_own_node(first: &Cloud, second: &Cloud) {
    let (publisher, definition) = first.register_publisher("furnace", 7004);
    let pushed = PushSubscriber::listen(Manner::Answers);
    let consumer = first.register_system("screen", pushed.port());
    first.allow(consumer, publisher, definition, &[INSECURE_JSON_ID]);
    first.subscribe(&subscription("heat", system("screen", pushed.port()), "/notify"));
    eventually(|| second.get("/eventhandler/mgmt/subscriptions").text().contains("screen"), said(second));
    let nodes = [(first, "at first"), (second, "at second")];
    let streams =
        nodes.map(|(node, _)| EventStream::open(node.address(System::EventHandler), "/eventhandler/subscription?eventtype=heat", &[]));
    // Each node's event after the other node's one, so that a listener would have received the other node's before its own.
    for (node, payload) in [nodes[1], nodes[0], nodes[1]] {
        node.publish(&event("heat", system("furnace", 7004), payload));
    }
    let heard = |stream: &EventStream, count| stream.wait_for(count).into_iter().map(|event| event.data).collect::<Vec<_>>();
    assert_eq!((heard(&streams[0], 1), heard(&streams[1], 2)), (vec!["at first".to_owned()], vec!["at second".to_owned(); 2]));
    pushed.wait_until(|notifications| notifications.len() >= 3, "an event of each node");
    let mut payloads = pushed.payloads();
    payloads.sort_unstable();
    assert_eq!(payloads, ["at first", "at second", "at second"]);
    assert_eq!(streams[0].count(), 1);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn restored_dump_is_followed_and_the_loss_reported() {
    let Some(server) = Server::start() else {
        return skip::note("restored_dump_is_followed_and_the_loss_reported", "no PostgreSQL server");
    };
    let (one, two) = (launch(&server).start(), launch(&server).start());
    let kept = number(&one.register(&service("temperature", system("sensor", 7001))), "/id");
    let dump = server.dump("cloud");
    one.register(&service("pressure", system("gauge", 7002)));
    for node in [&one, &two] {
        eventually(|| offered(node, "pressure").len() == 1, said(node));
    }
    server.restore("cloud", &dump);
    for node in [&one, &two] {
        eventually(|| offered(node, "pressure").is_empty() && offered(node, "temperature") == [kept], said(node));
        eventually(|| monitor(node, "/metrics").contains("\nbodkin_database_setbacks_total 1\n"), said(node));
        assert!(node.stderr().contains("the shared database lacks commits that this node has shown"), "{}", node.stderr());
    }
    assert_shown(two.address(System::Monitor), "BodkinDatabaseSetBack");
    // Both nodes continue, also with the ids that the lost rows had.
    let again = number(&two.register(&service("humidity", system("sponge", 7003))), "/id");
    for node in [&one, &two] {
        eventually(|| offered(node, "humidity") == [again] && monitor(node, "/readyz") == "ready\n", said(node));
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_node_of_another_release_and_one_whose_clock_differs_are_told_at_any_other() {
    let Some(server) = Server::start() else {
        return skip::note("a_node_of_another_release_and_one_whose_clock_differs_are_told_at_any_other", "no PostgreSQL server");
    };
    let place = TempDir::new().expect("a temporary directory");
    let node = launch(&server).data(place.path()).clock_ahead(5).start();
    // As a node of a later release writes it, whose clock is five seconds in front.
    let other = "INSERT INTO bodkin.node (name, release, host, monitor_port, secure, started_us, commit, clock_ahead_us, keeper, seen_at)
        VALUES ('00000000000000ff', '9.9.9', 'elsewhere', 8440, false, 0, 0, 5000000, false, clock_timestamp() + interval '1 hour')";
    server.sql("cloud", other);
    let told = || serde_json::from_str::<Value>(&monitor(&node, "/api/v1/nodes")).expect("JSON");
    let of_other = || list(&told(), "/data").iter().find(|row| row["node"] == "00000000000000ff").cloned();
    eventually(|| of_other().is_some(), said(&node));
    let row = of_other().expect("it is told");
    assert_eq!((&row["release"], &row["clockAheadMs"], &row["issues"]), (&json!("9.9.9"), &json!(5000), &json!(false)), "{row}");
    let metrics = monitor(&node, "/metrics");
    assert!(metrics.contains("bodkin_nodes_other_release 1"), "{metrics}");
    for alert in ["BodkinReleasesDiffer", "BodkinClockDiffers"] {
        assert_shown(node.address(System::Monitor), alert);
    }
    let status = bodkin(&["status", "--monitor", &node.address(System::Monitor).to_string()], place.path(), &server);
    let text = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(text.contains("run another release than this one: 1") && text.contains("9.9.9"), "{text}");
    // Another version of the tables is refused, while the nodes that are there go on.
    server.sql("cloud", "UPDATE bodkin.shared SET version = 5");
    let refused = launch(&server).try_start().err().expect("it is refused");
    assert!(refused.stderr.contains("of version 5, and this Bodkin works with version 4"), "{}", refused.stderr);
    assert_eq!(node.post("/serviceregistry/register", &service("temperature", system("sensor", 7001))).status, 201);
}

#[test]
#[ignore = "peer: ./x test --all"]
fn slow_link_to_the_database_is_reported() {
    let Some(mut server) = Server::start() else { return skip::note("slow_link_to_the_database_is_reported", "no PostgreSQL server") };
    let port = held_port();
    server.restart_with(&["listen_addresses=127.0.0.1".to_owned(), format!("port={port}")]);
    let link = Relay::to(SocketAddr::from(([127, 0, 0, 1], port)));
    let url = format!("postgres://bodkin@{}/cloud?sslmode=disable", link.address);
    let node = Launch::new().env("BODKIN_DATABASE", &url).start();
    // The smoothed round trip follows within a few samples.
    link.delay_ms.store(800, Relaxed);
    assert_shown(node.address(System::Monitor), "BodkinDatabaseSlow");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_cloud_moves_with_its_ids() {
    let Some(server) = Server::start() else { return skip::note("a_cloud_moves_with_its_ids", "no PostgreSQL server") };
    let place = TempDir::new().expect("a temporary directory");
    let own = Launch::new().data(place.path()).start();
    let (consumer, provider) = (own.register_system("reader", 7001), own.register_system("sensor", 7002));
    let entry = own.register(&service("temperature", system("sensor", 7002)));
    let rule = own.allow(consumer, provider, number(&entry, "/serviceDefinition/id"), &[INSECURE_JSON_ID]);
    assert!(own.stop().success());

    let migrate = ["db", "migrate", "--from", "sqlite", "--to", "postgres"];
    let moved = bodkin(&migrate, place.path(), &server);
    assert!(moved.status.success(), "{}", String::from_utf8_lossy(&moved.stderr));
    // The database from before is kept, and served by no start that lacks the option.
    let (file, kept) = (place.path().join("bodkin.sqlite"), place.path().join("bodkin.sqlite.moved"));
    assert!(!file.exists() && kept.exists());
    let again = bodkin(&migrate, place.path(), &server);
    assert!(String::from_utf8_lossy(&again.stderr).contains("was moved before"), "{again:?}");
    let refusal = Launch::new().data(place.path()).try_start().err().expect("it is refused");
    assert!(refusal.code == Some(1), "{}", refusal.stderr);
    assert!(
        ["--database", "BODKIN_DATABASE", "bodkin.sqlite.moved"].iter().all(|word| refusal.stderr.contains(word)),
        "{}",
        refusal.stderr
    );
    let doctor = Command::new(BINARY).args(["doctor", "--insecure", "--stall-s", "1", "--data"]).arg(place.path()).output();
    let doctor = doctor.expect("the binary starts");
    let told = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.status.code() == Some(1) && told.contains("bodkin.sqlite.moved"), "{told}");
    // The move can be undone.
    std::fs::rename(&kept, &file).expect("it is there");
    let own = Launch::new().data(place.path()).start();
    assert_eq!(offered(&own, "temperature"), [number(&entry, "/id")]);
    assert!(own.stop().success());
    let again = bodkin(&migrate, place.path(), &server);
    assert!(String::from_utf8_lossy(&again.stderr).contains("has a cloud already"), "{again:?}");
    assert!(file.exists() && !kept.exists(), "what was refused moves nothing");
    std::fs::rename(&file, &kept).expect("it is there");
    let doctor = bodkin(&["doctor", "--insecure", "--stall-s", "1", "--output", "json"], place.path(), &server);
    let findings: Value = serde_json::from_slice(&doctor.stdout).expect("JSON");
    let told = list(&findings, "/findings").iter().find(|finding| finding["check"] == "shared database").expect("it is looked at");
    assert!(told["found"].as_str().is_some_and(|found| found.contains("version 4")), "{told}");

    for node in [launch(&server).data(place.path()).start(), launch(&server).start()] {
        assert_eq!(offered(&node, "temperature"), [number(&entry, "/id")]);
        let rules = node.get("/authorization/mgmt/intracloud").expect_status(200).json();
        assert_eq!(number(&list(&rules, "/data")[0], "/id"), rule);
        let systems = node.get("/serviceregistry/mgmt/systems").expect_status(200).json();
        assert!(texts(list(&systems, "/data"), "/systemName").contains(&"reader".to_owned()));
    }
}

#[test]
#[ignore = "peer: ./x test --all"]
fn the_tests_of_conformance_hold_on_a_shared_database() {
    let test = "the_tests_of_conformance_hold_on_a_shared_database";
    let Some(server) = Server::start() else { return skip::note(test, "no PostgreSQL server") };
    // The other target, as it was built last, with every cloud's database on the server (`support::cloud`).
    let built = std::env::current_exe().expect("this is a program");
    let is_other = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("cloud-") && !name.contains('.')
    };
    let all = std::fs::read_dir(built.parent().expect("it is in a folder")).expect("it can be read");
    let all = all.filter_map(|entry| Some(entry.ok()?.path())).filter(is_other);
    let newest = all.max_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok());
    let program = newest.expect("it was built: cargo test -p bodkin --test cloud --no-run");
    let socket = server.socket();
    let mut tests = Command::new(program);
    tests.args(["--test-threads", "3", "conformance::"]).env("CLOUDS_ON_POSTGRES", socket.parent().expect("it is in a folder"));
    let output = tests.output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}");
    let passed = told.split(" passed").next().and_then(|begin| begin.rsplit(' ').next()).and_then(|count| count.parse::<u32>().ok());
    let clouds = server.sql("postgres", "SELECT count(*) FROM pg_database WHERE datname ~ '^c[0-9a-f]{16}$'");
    assert!(passed > Some(150) && clouds.parse::<u32>().is_ok_and(|clouds| clouds > 20), "{clouds} databases: {told}");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn the_bench_of_several_nodes_finds_nothing_lost() {
    let Some(server) = Server::start() else { return skip::note("the_bench_of_several_nodes_finds_nothing_lost", "no PostgreSQL server") };
    let url = server.url();
    let small = "--registrations 400 --changes 10 --beside-per-s 50 --queries 200 --services 20 --repeat 1 --restarts 2 --output json";
    let run = |promises: &[&str]| {
        let mut command = Command::new(BINARY);
        command.args(["bench", "nodes", "--database", &url, "--restart", &server.restarting()]).args(small.split(' '));
        for promise in promises {
            command.args(["--threshold", promise]);
        }
        command.output().expect("the binary starts")
    };
    let output = run(&[
        "lost<1",
        "doubled<1",
        "strange<1",
        "differ<1",
        "not_read_back<1",
        "errors<1",
        "registered>199",
        "already_there>199",
        "lost_over_restart<1",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let labels = texts(list(&report, "/outcomes"), "/label");
    for (at, begin) in [
        (0, "2 nodes, 400 registrations"),
        (2, "2 nodes, changes seen by another beside"),
        (3, "2 nodes, a restart"),
        (6, "4 nodes, 400 registrations"),
    ] {
        assert!(labels[at].starts_with(begin), "{labels:?}");
    }
    assert!(report["outcomes"][1]["seen_p99_ms"].as_f64() > Some(0.0), "{report}");
    let restart = &report["outcomes"][3];
    let figure = |name: &str| restart[name].as_f64().unwrap_or_else(|| panic!("{name} of {restart}"));
    assert!(figure("answered") > 10.0 && figure("restart_ms") > 0.0 && figure("blocked_max_ms") > 0.0, "{restart}");
    // What a first run has left is no empty database.
    let again = run(&[]);
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("give an empty one"), "{again:?}");
}
