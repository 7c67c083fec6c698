//! One client uses all connections or all memory that it can get; another client is served all the same.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::living;
use crate::support::arrowhead::{event, service, system};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::conditions::assert_shown;
use crate::support::patience::eventually;
use crate::support::sources::{connect_from, status_of};
use crate::support::sse::EventStream;

/// Address of the client that uses all that it can get.
pub const GREEDY: &str = "127.0.0.2";
/// Address of the other client.
pub const MODEST: &str = "127.0.0.3";
/// Connections of a slow body each.
const SLOW_BODIES: usize = 300;
/// Bytes of each body, one less than are announced.
const BODY_BYTES: usize = 1024 * 1024 - 1;
/// Memory of incomplete requests that one client can use in a group of ports, and as much again for what allocation adds.
const GROWTH_MAX_KIB: u64 = 2 * 8 * 1024;

/// Resident memory of the cloud's process, in KiB.
pub fn resident_kib(cloud: &Cloud) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", cloud.pid())).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Registers a system with metadata of this size, and returns the status.
fn register_system(cloud: &Cloud, name: &str, port: usize, metadata_bytes: usize) -> u16 {
    let form = json!({ "systemName": name, "address": "127.0.0.1", "port": port, "metadata": { "k": "v".repeat(metadata_bytes) } });
    cloud.post("/serviceregistry/register-system", &form).status
}

/// Number of rejections by a quota of a group of ports.
pub fn rejected(cloud: &Cloud, group: &str, quota: &str) -> u64 {
    let metrics = cloud.get("/metrics").text();
    let name = format!("bodkin_quota_rejected_total{{group=\"{group}\",quota=\"{quota}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)).expect("the metric").parse().expect("a number")
}

fn echo(of: System) -> String {
    format!("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", living(of))
}

/// A connection of the greedy client whose request lacks the last byte of its body, or that was rejected meanwhile.
fn slow_body(cloud: &Cloud, of: System, length: usize) -> TcpStream {
    let path = if of == System::EventHandler { "/eventhandler/publish" } else { "/serviceregistry/register" };
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", length + 1);
    let mut stream = connect_from(GREEDY, cloud.address(of));
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&vec![b' '; length]));
    stream
}

#[test]
fn slow_bodies_of_one_address_leave_memory_and_service() {
    let cloud = Launch::new().flags(["--body-timeout-ms", "600000"]).start();
    for (of, group, length) in [(System::ServiceRegistry, "control", BODY_BYTES), (System::EventHandler, "events", 64 * 1024 - 1)] {
        let before = resident_kib(&cloud);
        // As many as announce more than four times what one client can use.
        let crowd: Vec<TcpStream> = (0..SLOW_BODIES * BODY_BYTES / length / 4).map(|_| slow_body(&cloud, of, length)).collect();
        assert!(eventually(|| rejected(&cloud, group, "client_request_bytes") > 0), "{group}: {}", cloud.stderr());
        let grown = resident_kib(&cloud).saturating_sub(before);
        assert!(grown < GROWTH_MAX_KIB, "{group}: {grown} KiB more beside {} slow bodies", crowd.len());
        // Another client's large body is read.
        let form = json!({ "serviceDefinitionRequirement": "quotas", "padding": " ".repeat(900_000) }).to_string();
        let request = format!(
            "POST /serviceregistry/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        );
        assert_eq!(status_of(connect_from(MODEST, cloud.address(System::ServiceRegistry)), &request), 200);
        // The greedy client is answered 503 with the reason, and its small requests are served.
        let rejected = slow_body(&cloud, of, length);
        assert_eq!(status_of(rejected, ""), 503, "{group}");
        assert_eq!(status_of(connect_from(GREEDY, cloud.address(of)), &echo(of)), 200, "{group}");
        drop(crowd);
        assert!(eventually(|| status_of(slow_body(&cloud, of, length), " ") != 503), "{group}: memory is released");
    }
    assert!(cloud.stderr().contains("address 127.0.0.2"), "the log names the client: {}", cloud.stderr());
}

/// Opens connections of the greedy client until one is not served. Returns those that are open.
fn fill(cloud: &Cloud, of: System) -> Vec<TcpStream> {
    let mut open = Vec::new();
    loop {
        let mut stream = connect_from(GREEDY, cloud.address(of));
        stream.set_read_timeout(Some(Duration::from_secs(5))).expect("a stream has a timeout");
        let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", living(of));
        match status_of(&mut stream, &request) {
            200 => open.push(stream),
            503 => return open,
            other => panic!("{}: {other} after {} connections", of.name(), open.len()),
        }
        assert!(open.len() < 10_000, "{}: one client has no limit", of.name());
    }
}

#[test]
fn one_address_leaves_connections_at_every_port() {
    let cloud = Launch::new().flags(["--idle-timeout-ms", "600000"]).files_max(2000).start();
    let filled: Vec<_> = super::ALL.map(|of| (of, fill(&cloud, of))).into();
    for (of, open) in &filled {
        // The control plane's ports are one group, of which the first port has used all.
        let is_full_before = matches!(of, System::Authorization | System::Orchestrator);
        assert_eq!(open.is_empty(), is_full_before, "{}: {}", of.name(), open.len());
    }
    for of in super::ALL {
        let modest = connect_from(MODEST, cloud.address(of));
        assert_eq!(status_of(modest, &echo(of)), 200, "{}", of.name());
    }
    assert_shown(cloud.address(System::Monitor), "BodkinQuotaExceeded");
    let said = cloud.stderr();
    assert!(said.matches("connection rejected").count() <= 5, "the log is not filled: {said}");
    assert!(!said.contains("connection not accepted"), "the limits fit into the open files: {said}");
    drop(filled);
    assert!(eventually(|| status_of(connect_from(GREEDY, cloud.address(System::ServiceRegistry)), &echo(System::ServiceRegistry)) == 200));
}

#[test]
fn system_at_its_quota_leaves_storage_to_others() {
    let cloud = Launch::new().flags(["--owner-rows-max", "5", "--owner-bytes-max", "20000"]).start();
    let statuses = |name: &str, bytes: usize| (1..8).map(|port| register_system(&cloud, name, port, bytes)).collect::<Vec<_>>();
    assert_eq!(statuses("many", 10), [201, 201, 201, 201, 201, 503, 503]);
    assert_eq!(statuses("large", 8000), [201, 201, 503, 503, 503, 503, 503]);
    assert_eq!(statuses("honest", 100)[..5], [201; 5], "another system has its own quota");
    assert_eq!((rejected(&cloud, "registry", "owner_rows"), rejected(&cloud, "registry", "owner_bytes")), (4, 5));
    assert_shown(cloud.address(System::Monitor), "BodkinQuotaExceeded");
    // Services and subscriptions count too, and what is removed is free again.
    let form = service("quota", system("many", 1));
    assert_eq!(cloud.post("/serviceregistry/register", &form).status, 503);
    let gone = "/serviceregistry/unregister-system?system_name=many&address=127.0.0.1&port=5";
    assert_eq!(cloud.delete(gone).status, 200);
    assert_eq!(cloud.post("/serviceregistry/register", &form).status, 201);
    assert_eq!(register_system(&cloud, "many", 9, 1), 503);
    // The operator is not limited.
    let form = json!({ "systemName": "many", "address": "127.0.0.1", "port": 99 });
    assert_eq!(cloud.post("/serviceregistry/mgmt/systems", &form).status, 201);
}

#[test]
fn event_types_of_one_publisher_leave_room_for_others() {
    let cloud = Launch::new().flags(["--event-types-max", "100"]).start();
    for name in ["greedy", "honest"] {
        assert_eq!(register_system(&cloud, name, 1, 1), 201);
    }
    let publish = |name: &str, event_type: &str| cloud.post("/eventhandler/publish", &event(event_type, system(name, 1), "x")).status;
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=heard", &[]);
    for number in 0..1000 {
        assert_eq!(publish("greedy", &format!("greedy-{number}")), 200, "{number}");
    }
    assert_eq!((publish("honest", "new"), publish("honest", "heard")), (200, 200));
    assert_eq!(stream.wait_for(1)[0].event_type, "heard", "a subscribed event type stays");
}
