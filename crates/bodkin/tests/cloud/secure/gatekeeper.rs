//! The Gatekeeper's port: where it is, what it tells of clouds and relays, and what it refuses.

use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{key_stores, put_key_store, with_key_stores};
use crate::support::cloud::{BINARY, Cloud, Launch, System};
use crate::support::http::Answer;
use crate::support::secure::{CLOUD, Client, SecureCloud, anchor};

const CLOUDS: &str = "/gatekeeper/mgmt/clouds";
const RELAYS: &str = "/gatekeeper/mgmt/relays";

fn sysop(cloud: &Cloud, method: &str, target: &str, body: Option<&Value>, status: u16) -> Answer {
    Client::system("sysop").expect(cloud, method, target, body, status)
}

#[track_caller]
fn refused(cloud: &Cloud, method: &str, target: &str, body: &Value, exception: &str, told: &str) {
    let answer = sysop(cloud, method, target, Some(body), 400).json();
    assert_eq!((&answer["errorCode"], &answer["exceptionType"]), (&json!(400), &json!(exception)), "{answer}");
    assert!(answer["errorMessage"].as_str().is_some_and(|message| message.contains(told)), "{answer}");
}

fn relay(cloud: &Cloud, address: &str, kind: &str, exclusive: bool) -> i64 {
    let form = json!([{"address": address, "port": 61617, "secure": true, "exclusive": exclusive, "type": kind}]);
    sysop(cloud, "POST", RELAYS, Some(&form), 201).json()["data"][0]["id"].as_i64().expect("an id")
}

#[test]
fn it_is_a_core_system_like_the_others() {
    let secure = SecureCloud::shared();
    let cloud = &secure.cloud;
    assert_eq!(Client::system("display").expect(cloud, "GET", "/gatekeeper/echo", None, 200).text(), "Got it!");
    Client::system("display").expect(cloud, "GET", CLOUDS, None, 401);
    Client::system("display").expect(cloud, "POST", "/gatekeeper/init_gsd", Some(&json!({})), 401);
    sysop(cloud, "GET", "/gatekeeper/mgmt/logs?page=0&item_per_page=1", None, 200);
    // Its services are registered with its own key, as core systems find them.
    let query = json!({"serviceDefinitionRequirement": "inter-cloud-negotiations"});
    let found = Client::system("orchestrator").expect(cloud, "POST", "/serviceregistry/query", Some(&query), 200).json();
    let entry = &found["serviceQueryData"][0];
    assert_eq!((&entry["serviceUri"], &entry["secure"]), (&json!("/gatekeeper/init_icn"), &json!("CERTIFICATE")), "{found}");
    let provider = &entry["provider"];
    assert_eq!((&provider["systemName"], &provider["port"]), (&json!("gatekeeper"), &json!(cloud.address(System::Gatekeeper).port())));
    // An Orchestrator with nobody to ask is told so.
    let question = json!({"requestedService": {"serviceDefinitionRequirement": "heat"}});
    let answer = Client::system("orchestrator").expect(cloud, "POST", "/gatekeeper/init_gsd", Some(&question), 400).json();
    assert!(answer["errorMessage"].as_str().is_some_and(|message| message.contains("neighbor")), "{answer}");
}

#[test]
fn insecure_clouds_and_those_without_its_certificate_have_none() {
    let cloud = Launch::new().start();
    assert_eq!(cloud.ready()["listeners"].get("gatekeeper"), None);
    assert_eq!(cloud.connect(System::Monitor).request("GET", CLOUDS, &[], None).expect("an answer").status, 404);
    let (data, stores) = (TempDir::new().expect("a temporary directory"), key_stores(&[anchor()]));
    let cloud = with_key_stores(data.path(), stores.path(), "password").start();
    assert_eq!(cloud.ready()["listeners"].get("gatekeeper"), None);
    assert!(cloud.stop().success());
    put_key_store(stores.path(), "gatekeeper");
    let cloud = with_key_stores(data.path(), stores.path(), "password").start();
    assert_eq!(Client::system("display").expect(&cloud, "GET", "/gatekeeper/echo", None, 200).text(), "Got it!");
}

#[test]
fn relays_are_made_known_changed_and_forgotten() {
    let secure = SecureCloud::start([]);
    let cloud = &secure.cloud;
    let id = relay(cloud, "Relay.Example", "", false);
    let row = sysop(cloud, "GET", &format!("{RELAYS}/{id}"), None, 200).json();
    assert_eq!(
        (&row["address"], &row["type"], &row["authenticationInfo"]),
        (&json!("relay.example"), &json!("GENERAL_RELAY"), &Value::Null)
    );
    assert_eq!(sysop(cloud, "GET", &format!("{RELAYS}/RELAY.example/61617"), None, 200).json(), row);
    assert_eq!(sysop(cloud, "GET", RELAYS, None, 200).json(), json!({"data": [row], "count": 1}));
    refused(cloud, "POST", RELAYS, &json!([{"address": "relay.example", "port": 61617}]), "INVALID_PARAMETER", "already exists");
    refused(cloud, "POST", RELAYS, &json!([{"port": 1}]), "BAD_PAYLOAD", "address is null or blank");
    refused(cloud, "POST", RELAYS, &json!([]), "BAD_PAYLOAD", "empty");
    refused(cloud, "POST", RELAYS, &json!([{"address": "a", "port": 1, "type": "OTHER"}]), "BAD_PAYLOAD", "Relay type");
    refused(cloud, "POST", RELAYS, &json!([{"address": "a", "port": 1, "exclusive": true}]), "INVALID_PARAMETER", "exclusive");
    let one = format!("{RELAYS}/{id}");
    refused(cloud, "PUT", &one, &json!({"address": "a", "port": 1, "type": "GATEWAY_RELAY"}), "INVALID_PARAMETER", "cannot be changed");
    let changed = sysop(cloud, "PUT", &one, Some(&json!({"address": "other.example", "port": 5571, "secure": true})), 200).json();
    assert_eq!((&changed["id"], &changed["address"], &changed["port"]), (&json!(id), &json!("other.example"), &json!(5571)));
    sysop(cloud, "GET", &format!("{RELAYS}/relay.example/61617"), None, 400);
    sysop(cloud, "GET", &format!("{RELAYS}/relay.example/x"), None, 400);
    sysop(cloud, "GET", &format!("{RELAYS}/relay.example/65536"), None, 400);
    // Also when it is gone already.
    for _ in 0..2 {
        sysop(cloud, "DELETE", &one, None, 200);
    }
    sysop(cloud, "GET", &one, None, 400);
    sysop(cloud, "GET", &format!("{RELAYS}/0"), None, 400);
}

#[test]
fn clouds_are_made_known_with_their_relays() {
    let secure = SecureCloud::start([]);
    let cloud = &secure.cloud;
    let (general, tunnels) = (relay(cloud, "one.example", "GENERAL_RELAY", false), relay(cloud, "two.example", "GATEWAY_RELAY", true));
    let public = relay(cloud, "three.example", "GATEWAY_RELAY", false);
    let form = |name: &str, relays: &[i64]| json!({"operator": "Aitia", "name": name, "secure": true, "neighbor": true, "authenticationInfo": "key", "gatekeeperRelayIds": relays});
    refused(cloud, "POST", CLOUDS, &json!([form("two", &[])]), "BAD_PAYLOAD", "gatekeeperRelayIds");
    refused(cloud, "POST", CLOUDS, &json!([form("two", &[general, 4711])]), "INVALID_PARAMETER", "does not exist");
    refused(cloud, "POST", CLOUDS, &json!([form("two", &[tunnels])]), "INVALID_PARAMETER", "GATEKEEPER_RELAY or GENERAL_RELAY");
    refused(cloud, "POST", CLOUDS, &json!([form("testcloud1", &[general])]), "INVALID_PARAMETER", "already exists");
    let made = sysop(cloud, "POST", CLOUDS, Some(&json!([form("Two", &[general])])), 201).json();
    let (row, id) = (&made["data"][0], made["data"][0]["id"].as_i64().expect("an id"));
    assert_eq!((&row["operator"], &row["name"], &row["ownCloud"]), (&json!("aitia"), &json!("two"), &json!(false)), "{made}");
    assert_eq!(row["gatekeeperRelays"][0]["id"], json!(general));
    let further = json!({"cloudId": id, "gatewayRelayIds": [tunnels]});
    let assigned = sysop(cloud, "POST", &format!("{CLOUDS}/assign"), Some(&further), 200).json();
    assert_eq!(assigned["gatewayRelays"][0]["id"], json!(tunnels));
    refused(cloud, "POST", &format!("{CLOUDS}/assign"), &further, "INVALID_PARAMETER", "assigned to the cloud already");
    let stays = sysop(cloud, "DELETE", &format!("{RELAYS}/{general}"), None, 400).json();
    assert!(stays["errorMessage"].as_str().is_some_and(|message| message.contains("two.aitia")), "{stays}");
    // Core systems see the relays for tunnels to any cloud, too.
    let shown = Client::system("orchestrator").expect(cloud, "GET", "/gatekeeper/cloud/AITIA/two", None, 200).json();
    let ids: Vec<_> = shown["gatewayRelays"].as_array().expect("relays").iter().map(|relay| relay["id"].as_i64()).collect();
    assert_eq!(ids, [Some(tunnels), Some(general), Some(public)]);
    Client::system("orchestrator").expect(cloud, "GET", "/gatekeeper/cloud/aitia/three", None, 400);
    // Sorted by what clouds are sorted by; the own cloud is there and stays.
    let all = sysop(cloud, "GET", &format!("{CLOUDS}?page=0&item_per_page=1&sort_field=name&direction=DESC"), None, 200).json();
    assert_eq!((&all["count"], &all["data"][0]["name"]), (&json!(2), &json!("two")));
    let own = sysop(cloud, "GET", CLOUDS, None, 200).json()["data"][0]["id"].as_i64().expect("an id");
    sysop(cloud, "DELETE", &format!("{CLOUDS}/{own}"), None, 400);
    let changed = sysop(cloud, "PUT", &format!("{CLOUDS}/{id}"), Some(&form("renamed", &[general])), 200).json();
    assert_eq!((&changed["name"], changed["gatewayRelays"].as_array().map(Vec::len)), (&json!("renamed"), Some(0)), "all is replaced");
    for _ in 0..2 {
        sysop(cloud, "DELETE", &format!("{CLOUDS}/{id}"), None, 200);
    }
    sysop(cloud, "GET", &format!("{CLOUDS}/{id}"), None, 400);
}

/// Runs `bodkin` as the operator of the cloud whose certificates are in `trust`.
fn command(cloud: &Cloud, trust: &std::path::Path, line: &str) -> Output {
    let mut command = Command::new(BINARY);
    command.args(line.split_whitespace()).current_dir(trust).arg("--trust").arg(trust).arg("--output=json");
    command.env("BODKIN_MONITOR", cloud.address(System::Monitor).to_string()).output().expect("the binary starts")
}

#[test]
fn two_operators_hand_each_other_a_file_and_read_its_fingerprint_aloud() {
    let (one, place) = (SecureCloud::start([]), TempDir::new().expect("a temporary directory"));
    let two = Launch::new().secure().data(place.path()).flags(["--cloud", "two", "--operator", "other"]).start();
    let (file, two_trust) = (place.path().join("two.toml"), place.path().join("trust"));
    let file = file.to_str().expect("text");
    let nobody = command(&two, &two_trust, &format!("cloud introduce --out {file}"));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("bodkin relay add"), "{nobody:?}");
    assert!(command(&two, &two_trust, "relay add 127.0.0.1:1").status.success());
    let keyless = command(&two, &two_trust, &format!("cloud introduce --out {file}"));
    assert!(String::from_utf8_lossy(&keyless.stderr).contains("without its key"), "{keyless:?}");
    assert!(command(&two, &two_trust, "relay remove 127.0.0.1:1").status.success());
    assert!(command(&two, &two_trust, "relay add 127.0.0.1:1 --own").status.success());
    let written = command(&two, &two_trust, &format!("cloud introduce --out {file}"));
    let written: Value = serde_json::from_slice(&written.stdout).unwrap_or_else(|error| panic!("{error}: {written:?}"));
    let fingerprint = written["fingerprint"].as_str().expect("a fingerprint");

    let trust = one.trust("");
    let unchecked = command(&one.cloud, &trust, &format!("cloud add {file}"));
    assert!(unchecked.status.code() == Some(2) && String::from_utf8_lossy(&unchecked.stderr).contains(fingerprint), "{unchecked:?}");
    let forged = command(&one.cloud, &trust, &format!("cloud add {file} --fingerprint {}", fingerprint.replace(['0', '1'], "2")));
    assert!(forged.status.code() == Some(1) && String::from_utf8_lossy(&forged.stderr).contains("nothing was changed"), "{forged:?}");
    let heard = fingerprint.to_uppercase().replace('-', ":");
    let added = command(&one.cloud, &trust, &format!("cloud add {file} --fingerprint {heard}"));
    assert!(added.status.success(), "{added:?}");
    let row: Value = serde_json::from_slice(&added.stdout).expect("a row");
    assert_eq!((&row["name"], &row["neighbor"], &row["secure"]), (&json!("two"), &json!(true), &json!(true)));
    assert_eq!(row["gatekeeperRelays"][0]["address"], json!("127.0.0.1"));
    let again = command(&one.cloud, &trust, &format!("cloud add {file} --fingerprint {heard}"));
    assert!(String::from_utf8_lossy(&again.stderr).contains("--replace"), "{again:?}");
    let replaced = command(&one.cloud, &trust, &format!("cloud add {file} --fingerprint {heard} --replace --neighbor false"));
    let replaced: Value = serde_json::from_slice(&replaced.stdout).unwrap_or_else(|error| panic!("{error}: {replaced:?}"));
    assert_eq!((&replaced["id"], &replaced["neighbor"]), (&row["id"], &json!(false)));
    let itself = command(&two, &two_trust, &format!("cloud add {file} --fingerprint {heard}"));
    assert!(String::from_utf8_lossy(&itself.stderr).contains("this cloud itself"), "{itself:?}");
    // Nobody is at the relay.
    let pinged = command(&one.cloud, &trust, "cloud ping two");
    assert!(pinged.status.code() == Some(1) && String::from_utf8_lossy(&pinged.stdout).contains("two.other"), "{pinged:?}");
    let relays: Value = serde_json::from_slice(&command(&one.cloud, &trust, "relay list").stdout).expect("a list");
    assert!(relays["data"][0]["state"].as_str().is_some_and(|state| state.starts_with("down")), "{relays}");
    assert!(command(&one.cloud, &trust, "cloud rm two.other").status.success());
    let left = sysop(&one.cloud, "GET", CLOUDS, None, 200).json();
    assert_eq!((&left["count"], left["data"][0]["name"].as_str()), (&json!(1), CLOUD.split('.').next()), "{left}");
}
