//! Services announced by multicast DNS, as another resolver finds them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use mdns_sd::ResolvedService;
use serde_json::Value;

use crate::support::arrowhead::{number, service, system, with};
use crate::support::browser::{Browser, has_multicast, place};
use crate::support::cloud::{BINARY, Launch, System};
use crate::support::patience::{eventually, eventually_some};
use crate::support::ports::held_offset;
use crate::support::skip::note;

fn text(service: &ResolvedService, key: &str) -> String {
    service.get_property_val_str(key).unwrap_or_else(|| panic!("no {key}: {service:?}")).to_owned()
}

#[test]
fn registered_services_are_found_by_another_resolver_until_they_go() {
    if !has_multicast() {
        return note("dns_sd_services", "this machine has no multicast on its loopback interface");
    }
    let cloud = Launch::new().flags(["--dns-sd", "services"]).start();
    let entry = cloud.register(&with(service("heat", system("sensor", 9000)), "/serviceUri", "/heat/now"));
    let id = number(&entry, "/id");
    let (mut all, mut heat) = (Browser::browse("_arrowhead._tcp.local."), Browser::browse("_heat._sub._arrowhead._tcp.local."));
    let name = format!("heat sensor #{id}");
    assert!(eventually(|| heat.look(&cloud).contains_key(&name)), "{:?}; {}", heat.found, cloud.stderr());
    let found = heat.look(&cloud);
    let sensor = &found[&name];
    assert_eq!((sensor.get_port(), found.len()), (9000, 1), "{found:?}");
    assert!(sensor.get_addresses_v4().contains(&Ipv4Addr::LOCALHOST), "{sensor:?}");
    for (key, value) in [("service", "heat"), ("system", "sensor"), ("path", "/heat/now"), ("secure", "NOT_SECURE"), ("txtvers", "1")] {
        assert_eq!(text(sensor, key), value, "{sensor:?}");
    }
    let registry = cloud.address(System::ServiceRegistry).port();
    let has_registry = |found: &BTreeMap<String, ResolvedService>| {
        found.values().any(|service| text(service, "system") == "serviceregistry" && service.get_port() == registry)
    };
    assert!(eventually(|| has_registry(&all.look(&cloud)) && all.look(&cloud).contains_key(&name)), "{:?}", all.found);
    // Who asks for the instance by its name is told where it is, and asks by a packet of its own here.
    let answer = ask(&[&format!("{name} {}", place(&cloud)), "_arrowhead", "_tcp", "local"]);
    assert!(answer.windows(2).any(|bytes| bytes == 9000_u16.to_be_bytes()), "{answer:?}");
    cloud.delete(&format!("/serviceregistry/mgmt/{id}")).expect_status(200);
    assert!(eventually(|| !all.look(&cloud).contains_key(&name)), "{:?}", all.found);
    assert!(!all.look(&cloud).is_empty());
    // A cloud that ends takes back what it has said.
    let gone = place(&cloud);
    assert!(cloud.stop().success());
    assert!(eventually(|| !all.all().keys().any(|name| name.contains(&gone))), "{:?}", all.found.keys());
}

#[test]
fn a_cloud_that_is_to_say_no_more_says_its_core_systems_only() {
    if !has_multicast() {
        return note("dns_sd_cloud", "this machine has no multicast on its loopback interface");
    }
    let cloud = Launch::new().flags(["--dns-sd", "cloud"]).start();
    cloud.register(&service("heat", system("sensor", 9000)));
    let mut all = Browser::browse("_arrowhead._tcp.local.");
    let said = |all: &mut Browser| all.look(&cloud).values().map(|service| text(service, "system")).collect::<BTreeSet<_>>();
    let core = ["authorization", "eventhandler", "orchestrator", "serviceregistry"].map(str::to_owned).into();
    assert!(eventually(|| said(&mut all) == core), "{:?}; {}", all.found, cloud.stderr());
}

/// What the doctor found of multicast DNS: verdicts with what was found.
fn examined(offset: u16, data: &Path, dns_sd: &str) -> Vec<(String, String)> {
    let mut doctor = Command::new(BINARY);
    doctor.args(["doctor", "--insecure", "--stall-s", "1", "--output", "json", "--dns-sd", dns_sd]);
    doctor.args(["--port-offset", &offset.to_string(), "--data"]).arg(data);
    let output = doctor.output().expect("the binary starts");
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let findings = document["findings"].as_array().expect("a list").iter().filter(|finding| finding["check"] == "dns-sd");
    let member = |finding: &Value, name: &str| finding[name].as_str().expect("a text").to_owned();
    findings.map(|finding| (member(finding, "verdict"), member(finding, "found"))).collect()
}

#[test]
fn the_doctor_asks_as_a_device_would() {
    if !has_multicast() {
        return note("dns_sd_doctor", "this machine has no multicast on its loopback interface");
    }
    let (offset, data) = (held_offset(), tempfile::TempDir::new().expect("a temporary directory"));
    let examine = |dns_sd: &str| examined(offset.get(), data.path(), dns_sd);
    assert_eq!(examine("off"), [], "nothing is announced, and nothing asked");
    let told = |words: &str| examine("cloud").iter().any(|(verdict, found)| verdict == "ok" && found.contains(words));
    assert!(eventually(|| told("no cloud runs here")));
    // One that runs and announces nothing, as it does behind a firewall.
    let cloud = Launch::new().data(data.path()).port_offset(offset.get()).start();
    assert_eq!(
        examine("cloud").first().map(|(verdict, found)| (verdict.as_str(), found.contains("is not heard"))),
        Some(("warning", true))
    );
    assert!(cloud.stop().success());
    let _cloud = Launch::new().data(data.path()).port_offset(offset.get()).flags(["--dns-sd", "cloud"]).start();
    assert!(eventually(|| told("core services of this cloud")), "{:?}", examine("cloud"));
}

/// Asks for the SRV record of a name from a port of its own, as resolvers do that do not take part in multicast DNS (RFC 6762, section 6.7); gives the answer, which is not empty.
fn ask(labels: &[&str]) -> Vec<u8> {
    /// The kind of record, and the class of the internet.
    const SRV_IN: [u8; 4] = [0, 33, 0, 1];
    let mut question = vec![0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in labels {
        question.push(label.len() as u8);
        question.extend_from_slice(label.as_bytes());
    }
    question.push(0);
    question.extend_from_slice(&SRV_IN);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.set_read_timeout(Some(Duration::from_secs(1))).expect("a time-out");
    let mut answer = [0; 2048];
    let heard = eventually_some(|| {
        socket.send_to(&question, (Ipv4Addr::new(224, 0, 0, 251), 5353)).expect("it is sent");
        let (bytes, _) = socket.recv_from(&mut answer).ok()?;
        // As many records as are said to answer it.
        (answer[..2] == question[..2] && answer[6..8] != [0, 0]).then(|| answer[..bytes].to_vec())
    });
    heard.unwrap_or_else(|| panic!("nobody answers {labels:?}"))
}
