//! Data directories that an earlier build recorded: this build opens them and reads back what they keep.

use std::{path::Path, process::Command};

use bodkin_arrowhead::utc::UtcTime;
use bodkin_trust::{Authority, TrustDirectory, tls};
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::pair::nodes::{Node, Pair};
use crate::support::{
    cloud::System,
    secure::{Client, DAY, issue, replace},
    sse::EventStream,
};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/data_directory/data_directory.tar.gz");
const CLOUD: &str = "vector.test.arrowhead.eu";

/// Unpacks the recorded directories of a secure pair, with a revocation list that has not expired.
fn unpack() -> (TempDir, Authority) {
    let place = TempDir::new().expect("a temporary directory");
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--strip-components=1", "--file", RECORDED, "--directory"]).arg(place.path());
    assert!(tar.status().expect("tar starts").success());
    let authority = TrustDirectory::new(place.path().join("primary/trust")).authority().expect("the recorded authority");
    let list = authority.revocation_list(&[], tls::now(), tls::now().plus(DAY)).expect("a list");
    for node in ["primary", "backup", "witness"] {
        replace(&place.path().join(node).join("trust/revoked.crl"), list.as_bytes());
    }
    (place, authority)
}

/// A client of the recorded cloud, with a certificate that is valid today.
fn client(authority: &Authority, system: &str) -> Client {
    let now: UtcTime = tls::now();
    let identity = issue(authority, &format!("{system}.{CLOUD}"), &[], now, DAY);
    Client::believing(&identity, authority.certificate().clone())
}

#[track_caller]
fn read(node: &Node, system: System, target: &str) -> Value {
    node.call(system, "GET", target, None).expect("an answer").expect_status(200).json()
}

/// Returns the row of a list whose member at `pointer` is `value`.
#[track_caller]
fn row<'a>(list: &'a Value, pointer: &str, value: &str) -> &'a Value {
    let rows = list["data"].as_array().or(list.as_array()).unwrap_or_else(|| panic!("no list: {list}"));
    rows.iter().find(|row| row.pointer(pointer).is_some_and(|found| found == value)).unwrap_or_else(|| panic!("no {value} in {list}"))
}

/// Reads back what every node of the recorded pair keeps.
#[track_caller]
fn registry_is_kept(node: &Node) {
    let systems = read(node, System::ServiceRegistry, "/serviceregistry/mgmt/systems");
    assert_eq!(row(&systems, "/systemName", "sensor")["port"], 9001);
    assert_eq!(row(&systems, "/systemName", "display")["port"], 9002);
    let services = read(node, System::ServiceRegistry, "/serviceregistry/mgmt");
    let service = row(&services, "/serviceDefinition/serviceDefinition", "temperature");
    let kept = [&service["serviceUri"], &service["secure"], &service["metadata"]["unit"]];
    assert!(kept == ["/t", "CERTIFICATE", "celsius"] && service["version"] == 3, "{service}");
    let rules = read(node, System::Authorization, "/authorization/mgmt/intracloud");
    let rule = row(&rules, "/consumerSystem/systemName", "display");
    assert_eq!(
        (&rule["providerSystem"]["systemName"], &rule["serviceDefinition"]["serviceDefinition"]),
        (&"sensor".into(), &"temperature".into())
    );
    let subscriptions = read(node, System::EventHandler, "/eventhandler/mgmt/subscriptions");
    let subscription = row(&subscriptions, "/eventType/eventTypeName", "ALARM");
    assert_eq!(subscription["subscriberSystem"]["systemName"], "display");
    let topics = read(node, System::Monitor, "/api/v1/topics").to_string();
    assert!(topics.contains("\"LEVEL\"") && topics.contains("\"PRESSURE\""), "{topics}");
    let graphs = read(node, System::Monitor, "/api/v1/graphs").to_string();
    assert!(graphs.contains("\"means\""), "{graphs}");
    // Both lanes of the fleet continue from the recorded positions.
    assert_eq!(node.gauge("bodkin_fleet_stopped_lanes") + node.gauge("bodkin_fleet_refused_lanes"), 0, "{}", node.said());
}

/// Replays the kept events of a topic to the display.
#[track_caller]
fn replayed(node: &Node, display: &Client, topic: &str, count: usize) -> Vec<String> {
    let target = format!("/eventhandler/subscription?eventtype={topic}&since=0");
    let stream = EventStream::open_on(display.connect(node.address(System::EventHandler)).expect("a connection"), &target, &[]);
    stream.wait_for(count).into_iter().map(|event| event.data).collect()
}

#[test]
fn recorded_pair_is_opened_and_read_back() {
    let (place, authority) = unpack();
    let display = client(&authority, "display");
    let (_pair, _witness, mut backup, primary) = Pair::recorded(place, client(&authority, "sysop")).begin();
    registry_is_kept(&primary);
    assert_eq!(replayed(&primary, &display, "LEVEL", 3), ["1", "3", "8"]);
    assert_eq!(replayed(&primary, &display, "ALARM", 1), ["pressure high"]);
    assert_eq!(replayed(&primary, &display, "OTHER", 1), ["plain text"]);
    primary.signal(Signal::SIGKILL);
    backup.served();
    registry_is_kept(&backup);
    // Only events of durable types are in both event logs.
    assert_eq!(replayed(&backup, &display, "ALARM", 1), ["pressure high"]);
}

/// A recording that reaches this size would burden every clone of the repository.
#[test]
fn recorded_data_directory_has_at_most_one_mebibyte() {
    let length = Path::new(RECORDED).metadata().expect("a file").len();
    assert!((1..=1 << 20).contains(&length), "{length} bytes");
}
