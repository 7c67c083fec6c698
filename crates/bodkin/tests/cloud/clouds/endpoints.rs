//! Every endpoint of Gatekeeper and Gateway (reference sections 7 and 8), asked by the system that it is for, and refused to whoever it is not for.

use std::collections::BTreeSet;
use std::net::TcpStream;

use bodkin_trust::{TrustDirectory, base64};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::cloud::System;
use crate::support::http::Answer;
use crate::support::patience::eventually;
use crate::support::secure::Client;
use crate::support::side::{Side, neighbours};

/// All that the two documents of a running cloud have; `docs/formats/conformance.md` lists them.
pub const ENDPOINTS: [&str; 30] = [
    "GET /gatekeeper/echo",
    "GET /gatekeeper/mgmt/logs",
    "GET /gatekeeper/mgmt/clouds",
    "POST /gatekeeper/mgmt/clouds",
    "GET /gatekeeper/mgmt/clouds/{id}",
    "PUT /gatekeeper/mgmt/clouds/{id}",
    "DELETE /gatekeeper/mgmt/clouds/{id}",
    "POST /gatekeeper/mgmt/clouds/assign",
    "GET /gatekeeper/mgmt/relays",
    "POST /gatekeeper/mgmt/relays",
    "GET /gatekeeper/mgmt/relays/{id}",
    "PUT /gatekeeper/mgmt/relays/{id}",
    "DELETE /gatekeeper/mgmt/relays/{id}",
    "GET /gatekeeper/mgmt/relays/{address}/{port}",
    "POST /gatekeeper/init_gsd",
    "POST /gatekeeper/init_multi_gsd",
    "POST /gatekeeper/init_icn",
    "GET /gatekeeper/pull_clouds",
    "POST /gatekeeper/collect_system_addresses",
    "POST /gatekeeper/collect_access_types",
    "POST /gatekeeper/init_relay_test",
    "GET /gatekeeper/cloud/{operator}/{name}",
    "GET /gateway/echo",
    "GET /gateway/mgmt/logs",
    "GET /gateway/publickey",
    "POST /gateway/connect_provider",
    "POST /gateway/connect_consumer",
    "POST /gateway/close_sessions",
    "GET /gateway/mgmt/sessions",
    "POST /gateway/mgmt/sessions/close",
];

/// Two clouds that know each other, and what was asked of them.
struct Tour {
    one: Side,
    two: Side,
    asked: Vec<&'static str>,
}

/// An endpoint, with what stands in the place of its parts in braces.
type Target<'t> = (&'static str, &'t [(&'t str, &'t str)]);

fn client(side: &Side, system: &str) -> Client {
    Client::believing(&side.system(system), TrustDirectory::new(side.data.join("trust")).anchor().expect("an authority"))
}

impl Tour {
    /// What `system` of the second cloud is answered. A stranger is refused first, unless everybody may ask.
    #[track_caller]
    fn ask(&mut self, system: &str, (endpoint, parts): Target<'_>, body: Option<Value>, status: u16) -> Value {
        self.asked.push(endpoint);
        let (method, path) = endpoint.split_once(' ').expect("a method and a path");
        let path = parts.iter().fold(path.to_owned(), |path, (part, value)| path.replace(part, value));
        let call = |system: &str| self.call(system, method, &path, body.as_ref());
        if !endpoint.ends_with("/echo") {
            let refused = call("stranger");
            assert_eq!(refused.status, 401, "{endpoint} {}", refused.text());
            assert_eq!(refused.json()["exceptionType"], "AUTH", "{endpoint}");
        }
        let answer = call(system);
        assert_eq!(answer.status, status, "{endpoint}: {}", answer.text());
        serde_json::from_slice(&answer.body).unwrap_or_else(|_| Value::String(answer.text()))
    }

    /// Every operation of the documents that the cloud's Gatekeeper and Gateway serve of themselves.
    #[track_caller]
    fn documented(&self) -> BTreeSet<String> {
        let mut operations = BTreeSet::new();
        for system in [System::Gatekeeper, System::Gateway] {
            let connected = client(&self.two, "sysop").connect(self.two.cloud.address(system));
            let answer = connected.and_then(|mut connection| connection.request("GET", "/openapi.json", &[], None));
            let document = answer.unwrap_or_else(|error| panic!("{system:?}: {error}")).expect_status(200).json();
            for (path, item) in document["paths"].as_object().expect("paths") {
                let methods = item.as_object().expect("methods").keys().map(|method| method.to_uppercase());
                operations.extend(methods.map(|method| format!("{method} {path}")));
            }
        }
        operations
    }

    #[track_caller]
    fn call(&self, system: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
        client(&self.two, system).call(&self.two.cloud, method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }
}

/// That an object has exactly these members.
#[track_caller]
fn has(value: &Value, members: &[&str]) {
    let mut found: Vec<&str> = value.as_object().unwrap_or_else(|| panic!("an object: {value}")).keys().map(String::as_str).collect();
    let mut members = members.to_vec();
    found.sort_unstable();
    members.sort_unstable();
    assert_eq!(found, members, "{value}");
}

const RELAY: [&str; 9] = ["id", "address", "port", "secure", "exclusive", "type", "authenticationInfo", "createdAt", "updatedAt"];
const CLOUD: [&str; 11] = [
    "id",
    "operator",
    "name",
    "secure",
    "neighbor",
    "ownCloud",
    "authenticationInfo",
    "createdAt",
    "updatedAt",
    "gatekeeperRelays",
    "gatewayRelays",
];

#[test]
fn every_endpoint_is_for_whom_it_is_and_answers_in_its_shape() {
    let place = TempDir::new().expect("a temporary directory");
    let (one, two) = neighbours(place.path());
    let key = base64::encode(&one.system("sensor").key().public_key_info());
    one.done(&format!(
        "service add heat --system sensor --address 127.0.0.1 --port 9000 --uri /heat --secure TOKEN --authentication-info {key}"
    ));
    let clouds = one.done("cloud list");
    let id = clouds["data"].as_array().expect("rows").iter().find(|row| row["name"] == "two").expect("it is known")["id"].clone();
    one.done(&format!("auth intercloud add --cloud {id} --provider sensor --service heat"));
    let mut tour = Tour { one, two, asked: Vec::new() };
    management(&mut tour);
    discovery(&mut tour);
    quality(&mut tour);
    tunnels(&mut tour);
    let served = tour.documented();
    let asked: BTreeSet<String> = tour.asked.iter().map(|endpoint| (*endpoint).to_owned()).collect();
    assert_eq!(asked, served, "what is asked here is what is served");
    assert_eq!(BTreeSet::from(ENDPOINTS.map(str::to_owned)), served, "what is listed is what is served");
}

fn management(tour: &mut Tour) {
    assert_eq!(tour.ask("display", ("GET /gatekeeper/echo", &[]), None, 200), json!("Got it!"));
    let logs = tour.ask("sysop", ("GET /gatekeeper/mgmt/logs", &[]), None, 200);
    assert!(logs["count"].is_u64() && logs["data"].is_array(), "{logs}");
    let form = json!([{"address": "relay.example", "port": 61617, "secure": true, "exclusive": true, "type": "GATEWAY_RELAY"}]);
    let made = tour.ask("sysop", ("POST /gatekeeper/mgmt/relays", &[]), Some(form), 201);
    let (relay, tunnels) = (&made["data"][0], made["data"][0]["id"].to_string());
    has(relay, &RELAY);
    assert_eq!(&tour.ask("sysop", ("GET /gatekeeper/mgmt/relays/{id}", &[("{id}", &tunnels)]), None, 200), relay);
    let at = [("{address}", "relay.example"), ("{port}", "61617")];
    assert_eq!(&tour.ask("sysop", ("GET /gatekeeper/mgmt/relays/{address}/{port}", &at), None, 200), relay);
    let listed = tour.ask("sysop", ("GET /gatekeeper/mgmt/relays", &[]), None, 200);
    assert_eq!(listed["count"], 2, "{listed}");
    let general = listed["data"][0]["id"].clone();
    let form = json!({"address": "relay.example", "port": 61618, "secure": true, "exclusive": true, "type": "GATEWAY_RELAY"});
    let changed = tour.ask("sysop", ("PUT /gatekeeper/mgmt/relays/{id}", &[("{id}", &tunnels)]), Some(form), 200);
    assert_eq!(changed["port"], 61618);
    let form = |name: &str| json!({"operator": "test", "name": name, "secure": true, "neighbor": false, "authenticationInfo": "key", "gatekeeperRelayIds": [general]});
    let made = tour.ask("sysop", ("POST /gatekeeper/mgmt/clouds", &[]), Some(json!([form("three")])), 201);
    let (cloud, id) = (&made["data"][0], made["data"][0]["id"].to_string());
    has(cloud, &CLOUD);
    assert_eq!(&tour.ask("sysop", ("GET /gatekeeper/mgmt/clouds/{id}", &[("{id}", &id)]), None, 200), cloud);
    assert_eq!(tour.ask("sysop", ("GET /gatekeeper/mgmt/clouds", &[]), None, 200)["count"], 3);
    let further = json!({"cloudId": cloud["id"], "gatewayRelayIds": [changed["id"]]});
    let assigned = tour.ask("sysop", ("POST /gatekeeper/mgmt/clouds/assign", &[]), Some(further), 200);
    assert_eq!(assigned["gatewayRelays"][0]["id"], changed["id"], "{assigned}");
    let renamed = tour.ask("sysop", ("PUT /gatekeeper/mgmt/clouds/{id}", &[("{id}", &id)]), Some(form("four")), 200);
    assert_eq!((&renamed["name"], &renamed["gatewayRelays"]), (&json!("four"), &json!([])), "{renamed}");
    let named = [("{operator}", "test"), ("{name}", "four")];
    let shown = tour.ask("orchestrator", ("GET /gatekeeper/cloud/{operator}/{name}", &named), None, 200);
    // Core systems see the relays for tunnels to any cloud, too.
    assert_eq!((&shown["id"], shown["gatewayRelays"].as_array().map(Vec::len)), (&cloud["id"], Some(1)), "{shown}");
    tour.ask("sysop", ("DELETE /gatekeeper/mgmt/clouds/{id}", &[("{id}", &id)]), None, 200);
    tour.ask("sysop", ("DELETE /gatekeeper/mgmt/relays/{id}", &[("{id}", &tunnels)]), None, 200);
}

fn discovery(tour: &mut Tour) {
    let heat = json!({"serviceDefinitionRequirement": "heat"});
    let found = tour.ask("orchestrator", ("POST /gatekeeper/init_gsd", &[]), Some(json!({"requestedService": heat})), 200);
    has(&found, &["results", "unsuccessfulRequests"]);
    let answer = &found["results"][0];
    has(
        answer,
        &[
            "providerCloud",
            "requiredServiceDefinition",
            "availableInterfaces",
            "numOfProviders",
            "qosMeasurements",
            "serviceMetadata",
            "gatewayIsMandatory",
            "verifiedRelays",
        ],
    );
    assert_eq!((&answer["providerCloud"]["name"], &answer["numOfProviders"]), (&json!("one"), &json!(1)), "{found}");
    let several = json!({"requestedServices": [heat, {"serviceDefinitionRequirement": "noise"}]});
    let found = tour.ask("choreographer", ("POST /gatekeeper/init_multi_gsd", &[]), Some(several), 200);
    assert_eq!(
        (&found["results"][0]["providedServiceDefinitions"], &found["unsuccessfulRequests"]),
        (&json!(["heat"]), &json!(0)),
        "{found}"
    );
    let form = json!({
        "requestedService": heat, "targetCloudId": answer["providerCloud"]["id"], "preferredSystems": [], "preferredGatewayRelays": [],
        "requesterSystem": {"systemName": "display", "address": "127.0.0.1", "port": 9001}, "negotiationFlags": {"matchmaking": true},
    });
    let granted = tour.ask("orchestrator", ("POST /gatekeeper/init_icn", &[]), Some(form), 200);
    has(&granted, &["response"]);
    assert_eq!(granted["response"][0]["provider"]["systemName"], "sensor", "{granted}");
}

/// What a QoS Monitor asks.
fn quality(tour: &mut Tour) {
    let clouds = tour.ask("qosmonitor", ("GET /gatekeeper/pull_clouds", &[]), None, 200);
    assert!(clouds["data"].as_array().is_some_and(|rows| rows.iter().all(|row| row["publicRelays"].is_array())), "{clouds}");
    let target = json!({"operator": "test", "name": "one"});
    let addresses = tour.ask("qosmonitor", ("POST /gatekeeper/collect_system_addresses", &[]), Some(target.clone()), 200);
    assert_eq!(addresses, json!({"addresses": ["127.0.0.1"]}));
    let access = tour.ask("qosmonitor", ("POST /gatekeeper/collect_access_types", &[]), Some(json!([target.clone()])), 200);
    assert_eq!(access["data"], json!([{"cloudName": "one", "cloudOperator": "test", "directAccess": true}]));
    // Without a relay it is refused; what becomes of one with a relay is the other cloud's to say.
    let test = json!({"targetCloud": target});
    let refused = tour.ask("qosmonitor", ("POST /gatekeeper/init_relay_test", &[]), Some(test), 400);
    has(&refused, &["errorMessage", "errorCode", "exceptionType", "origin"]);
}

/// Gateways are asked by their own gatekeepers; here both ends are at the same one, each with its own session.
fn tunnels(tour: &mut Tour) {
    assert_eq!(tour.ask("display", ("GET /gateway/echo", &[]), None, 200), json!("Got it!"));
    let logs = tour.ask("sysop", ("GET /gateway/mgmt/logs", &[]), None, 200);
    assert!(logs["count"].is_u64() && logs["data"].is_array(), "{logs}");
    let key = tour.ask("gatekeeper", ("GET /gateway/publickey", &[]), None, 200);
    assert_eq!(key, json!(base64::encode(&tour.two.system("gateway").key().public_key_info())));
    let relay = tour.two.done("relay list")["data"][0].clone();
    let relay = json!({
        "address": relay["address"], "port": relay["port"], "secure": true, "type": "GENERAL_RELAY", "authenticationInfo": relay["authenticationInfo"],
    });
    let system = |name: &str| json!({"systemName": name, "address": "127.0.0.1", "port": 9000, "authenticationInfo": "key"});
    let cloud = |name: &str| json!({"operator": "test", "name": name});
    let mut form = json!({
        "relay": relay, "consumer": system("display"), "provider": system("sensor"), "consumerCloud": cloud("one"), "providerCloud": cloud("two"),
        "serviceDefinition": "heat", "consumerGWPublicKey": base64::encode(&tour.one.system("gateway").key().public_key_info()),
    });
    let opened = tour.ask("gatekeeper", ("POST /gateway/connect_provider", &[]), Some(form.clone()), 201);
    has(&opened, &["queueId", "peerName", "providerGWPublicKey"]);
    assert_eq!((&opened["peerName"], &opened["providerGWPublicKey"]), (&json!("gateway.two.test.arrowhead.eu"), &key), "{opened}");
    // The consumer's end of a tunnel that the other cloud has opened.
    let other = client(&tour.one, "gatekeeper");
    form["consumerGWPublicKey"] = key;
    (form["consumerCloud"], form["providerCloud"]) = (cloud("two"), cloud("one"));
    let elsewhere = other.expect(&tour.one.cloud, "POST", "/gateway/connect_provider", Some(&form), 201).json();
    for member in ["queueId", "peerName", "providerGWPublicKey"] {
        form[member] = elsewhere[member].clone();
    }
    let port = tour.ask("gatekeeper", ("POST /gateway/connect_consumer", &[]), Some(form), 201);
    let number = port.as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or_else(|| panic!("a bare port: {port}"));
    assert!(TcpStream::connect(("127.0.0.1", number)).is_ok());
    let sessions = tour.ask("sysop", ("GET /gateway/mgmt/sessions", &[]), None, 200);
    assert_eq!(sessions["count"], 2, "{sessions}");
    for session in sessions["data"].as_array().expect("rows") {
        has(
            session,
            &[
                "queueId",
                "peerName",
                "consumer",
                "consumerCloud",
                "provider",
                "providerCloud",
                "serviceDefinition",
                "relay",
                "requestQueue",
                "requestControlQueue",
                "responseQueue",
                "responseControlQueue",
                "sessionStartedAt",
                "consumerServerSocketPort",
            ],
        );
    }
    assert_eq!(sessions["data"][0]["consumerServerSocketPort"], Value::Null, "the provider's end");
    assert_eq!(sessions["data"][1]["consumerServerSocketPort"], port, "the consumer's");
    let free = tour.two.cloud.address(System::Monitor).port();
    let closed = tour.ask("choreographer", ("POST /gateway/close_sessions", &[]), Some(json!([number, free])), 200);
    assert_eq!(closed, json!([{"port": free, "error": "Active session not found."}]));
    tour.ask("sysop", ("POST /gateway/mgmt/sessions/close", &[]), Some(sessions["data"][0].clone()), 200);
    let left = || tour.call("sysop", "GET", "/gateway/mgmt/sessions", None).json()["count"].clone();
    assert!(eventually(|| left() == 0), "{}", left());
}
