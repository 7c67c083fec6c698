//! Core systems of several nodes: every node answers with its own, so that what is found at a node that serves leads to no node that is gone.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::json;

use crate::postgres::server::{Server, eventually};
use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, system};
use crate::support::cloud::{BINARY, Cloud, Launch, System};
use crate::support::skip;
use crate::support::sse::EventStream;

/// A service of each core system, by which clients find it.
const FOUND_BY: [(System, &str); 4] = [
    (System::ServiceRegistry, "service-register"),
    (System::Authorization, "auth-public-key"),
    (System::Orchestrator, "orchestration-service"),
    (System::EventHandler, "event-publish"),
];

/// Where a node says that a service of a core system is, and as which entry.
fn told(node: &Cloud, definition: &str) -> (SocketAddr, i64) {
    let found = node.query(&json!({"serviceDefinitionRequirement": definition}));
    let [entry] = &list(&found, "/serviceQueryData")[..] else { panic!("{definition} is offered once, by this node: {found}") };
    let address = entry["provider"]["address"].as_str().expect("an address").parse().expect("an IP address");
    (SocketAddr::new(address, u16::try_from(number(entry, "/provider/port")).expect("a port")), number(entry, "/id"))
}

#[track_caller]
fn published(node: &Cloud, payload: &str) {
    let mut command = Command::new(BINARY);
    command.args(["event", "publish", "--service-registry", &node.address(System::ServiceRegistry).to_string()]);
    let output = command.args(["--system", "sensor", "heat", payload]).output().expect("the binary starts");
    assert!(output.status.success(), "{payload}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "peer: ./x test --all"]
fn what_is_published_by_a_command_is_taken_at_any_node_whichever_is_killed() {
    let test = "what_is_published_by_a_command_is_taken_at_any_node_whichever_is_killed";
    let Some(server) = Server::start() else { return skip::note(test, "no PostgreSQL server") };
    let start = || Launch::new().env("BODKIN_DATABASE", &server.url()).start();
    let [first, second, last] = [start(), start(), start()];
    let entries = |node: &Cloud| FOUND_BY.map(|(_, definition)| told(node, definition).1);
    for node in [&first, &second, &last] {
        for (system, definition) in FOUND_BY {
            assert_eq!(told(node, definition).0, node.address(system), "{definition}");
        }
        assert_eq!(entries(node), entries(&first), "one row of each, whoever shows it");
    }
    let (publisher, definition) = first.register_publisher("sensor", 7001);
    let listener = first.register_system("listener", 7002);
    first.allow(listener, publisher, definition, &[INSECURE_JSON_ID]);
    // What is stored of a core system is answered with the place of the node that is asked.
    let reader = first.register_system("reader", 7003);
    let store = json!([{
        "serviceDefinitionName": "event-publish", "consumerSystemId": reader, "serviceInterfaceName": "HTTP-INSECURE-JSON", "priority": 1,
        "providerSystem": {"systemName": "eventhandler", "address": "127.0.0.1", "port": first.address(System::EventHandler).port()},
    }]);
    first.post("/orchestrator/mgmt/store", &store).expect_status(200);
    let found = first.query(&json!({"serviceDefinitionRequirement": "event-publish"}));
    let id = |member: &str| number(&list(&found, "/serviceQueryData")[0], member);
    first.allow(reader, id("/provider/id"), id("/serviceDefinition/id"), &[INSECURE_JSON_ID]);

    last.kill();
    for node in [&first, &second] {
        let heard = EventStream::open(node.address(System::EventHandler), "/eventhandler/subscription?eventtype=heat", &[]);
        eventually(|| node.get("/authorization/mgmt/intracloud").text().contains("reader"), || node.stderr());
        published(node, "at once");
        assert_eq!(heard.wait_for(1)[0].data, "at once");
        let asked = json!({"requesterSystem": system("reader", 7003)});
        let stored = node.post("/orchestrator/orchestration", &asked).expect_status(200).json();
        let ports: Vec<i64> = list(&stored, "/response").iter().map(|found| number(found, "/provider/port")).collect();
        assert_eq!(ports, [i64::from(node.address(System::EventHandler).port())], "{stored}");
    }
    // So do those of a node that comes, and of the ones that were there.
    let next = start();
    first.register(&service("humidity", system("sponge", 7004)));
    for node in [&first, &second, &next] {
        published(node, "again");
        assert_eq!(told(node, "event-publish").0, node.address(System::EventHandler));
    }
}
