//! Several nodes of a cloud that announce themselves by multicast DNS: each its own core systems, and one of them all other services.

use std::collections::BTreeSet;

use mdns_sd::ResolvedService;

use crate::postgres::server::{Server, eventually};
use crate::support::arrowhead::{service, system};
use crate::support::browser::{Browser, has_multicast};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::skip;

/// The ports of the services of a system, by their instances' names.
fn ports(browser: &mut Browser, name: &str) -> Vec<(String, u16)> {
    let is_of_it = |service: &ResolvedService| service.get_property_val_str("system") == Some(name);
    browser
        .all()
        .iter()
        .filter(|(_, service)| is_of_it(service))
        .map(|(instance, service)| (instance.clone(), service.get_port()))
        .collect()
}

fn has(browser: &mut Browser, name: &str, expected: &[u16]) -> bool {
    ports(browser, name).iter().map(|(_, port)| *port).collect::<BTreeSet<_>>() == expected.iter().copied().collect()
}

fn registry(node: &Cloud) -> u16 {
    node.address(System::ServiceRegistry).port()
}

#[test]
#[ignore = "peer: ./x test --all"]
fn each_node_is_announced_and_each_service_once_whichever_node_is_killed() {
    let test = "each_node_is_announced_and_each_service_once_whichever_node_is_killed";
    if !has_multicast() {
        return skip::note(test, "this machine has no multicast on its loopback interface");
    }
    let Some(server) = Server::start() else { return skip::note(test, "no PostgreSQL server") };
    let start = || Launch::new().env("BODKIN_DATABASE", &server.url()).flags(["--dns-sd", "services"]).start();
    let first = start();
    let (mut registries, mut heat) =
        (Browser::browse("_service-register._sub._arrowhead._tcp.local."), Browser::browse("_heat._sub._arrowhead._tcp.local."));
    first.register(&service("heat", system("sensor", 9000)));
    eventually(|| has(&mut heat, "sensor", &[9000]), || first.stderr());
    let second = start();
    let both = [registry(&first), registry(&second)];
    eventually(|| has(&mut registries, "serviceregistry", &both), || format!("{both:?}"));
    let of_both = ports(&mut registries, "serviceregistry");
    assert_eq!(of_both.len(), 2, "one of each node, under a name of its own: {of_both:?}");

    // A second registration, which both nodes know of, is said by the first one alone, which does what is done once.
    second.register(&service("heat", system("oven", 9001)));
    eventually(|| has(&mut heat, "oven", &[9001]), || first.stderr());
    let said = |heat: &mut Browser| [ports(heat, "sensor"), ports(heat, "oven")].concat();
    let at_first = said(&mut heat);
    assert_eq!(at_first.len(), 2, "each once: {at_first:?}");

    // Who ends takes back what it has said, and nothing of the other one's, which says the services from then on.
    assert!(first.stop().success());
    eventually(
        || {
            let now = said(&mut heat);
            now.len() == 2 && now.iter().all(|said| !at_first.contains(said))
        },
        || second.stderr(),
    );
    eventually(|| has(&mut registries, "serviceregistry", &both[1..]), || second.stderr());
    // One that comes again says its own core systems.
    let third = start();
    eventually(|| has(&mut registries, "serviceregistry", &[both[1], registry(&third)]), || third.stderr());
    // Nobody has taken back what a killed node has said; the services are said by the one that is left, to who begins to look.
    second.kill();
    let mut later = Browser::browse("_heat._sub._arrowhead._tcp.local.");
    eventually(|| has(&mut later, "sensor", &[9000]) && has(&mut later, "oven", &[9001]), || third.stderr());
    assert_eq!(said(&mut later).len(), 2, "{:?}", later.found.keys());
}
