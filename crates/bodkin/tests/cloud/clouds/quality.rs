//! Quality of service of another cloud's providers: what a consumer requires goes along, and only who tells that it is kept is taken.

use std::net::Ipv4Addr;
use std::time::Duration;

use bodkin_trust::TrustDirectory;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::heat::Heat;
use crate::support::http::Answer;
use crate::support::patience::{eventually, eventually_some};
use crate::support::secure::Client;
use crate::support::side::{Side, neighbours_with};

/// How long the slow sensor takes for each answer.
const SLOW: Duration = Duration::from_millis(400);
/// Between the two in ms: the slow one never takes less, and the quick one does unless the machine is busy.
const BETWEEN_MS: &str = "390";
/// What nobody keeps, in ms.
const NOTHING_MS: &str = "0.000001";
/// What everybody keeps, in ms.
const ANYTHING_MS: &str = "60000";
/// Both clouds measure, each second.
const MEASURING: [&str; 5] = ["--enable-qos", "--qos-measurement-interval-s", "1", "--ping-timeout-ms", "5000"];

fn client(side: &Side, system: &str) -> Client {
    Client::believing(&side.system(system), TrustDirectory::new(side.data.join("trust")).anchor().expect("an authority"))
}

/// What an orchestration of the operator for one provider of the service comes to, whose mean answer takes so many ms at the most.
fn asked(side: &Side, path: &str, limit_ms: &str) -> Answer {
    let form = json!({
        "requesterSystem": {"systemName": "sysop", "address": "127.0.0.1", "port": 8000},
        "requestedService": {"serviceDefinitionRequirement": "heat"},
        "orchestrationFlags": {"overrideStore": true, "enableInterCloud": true, "matchmaking": true, "enableQoS": true},
        "qosRequirements": {"qosAvgRespTime": limit_ms},
    });
    client(side, "sysop").call(&side.cloud, "POST", path, Some(&form)).unwrap_or_else(|error| panic!("{error}: {}", side.cloud.stderr()))
}

fn orchestrated(side: &Side, limit_ms: &str) -> Answer {
    asked(side, "/orchestrator/orchestration", limit_ms)
}

/// What is granted once it is; a cloud that is not measured yet grants nothing.
fn granted(side: &Side, limit_ms: &str) -> Value {
    let first = || {
        let answer = orchestrated(side, limit_ms);
        (answer.status == 200).then(|| answer.json()["response"][0].clone()).filter(Value::is_object)
    };
    eventually_some(first).unwrap_or_else(|| panic!("{}; {}", orchestrated(side, limit_ms).text(), side.cloud.stderr()))
}

/// Whether nobody keeps what is required, which is told with it. A dialogue that is late on a busy machine says nothing.
fn is_told_that_nobody_keeps(side: &Side) -> bool {
    let answer = orchestrated(side, NOTHING_MS);
    answer.status == 503
        && answer.json()["errorMessage"].as_str().is_some_and(|told| {
            told.contains("No provider that the asking cloud may use keeps") && told.contains("qosAvgRespTime 0.000001")
        })
}

/// What two clouds' gateways have under way, and have had.
fn sessions(side: &Side) -> usize {
    side.done("cloud sessions")["data"].as_array().map_or(0, Vec::len)
}

#[test]
fn of_another_clouds_providers_the_one_that_keeps_what_is_required_is_given() {
    let place = TempDir::new().expect("a temporary directory");
    let (one, two) = neighbours_with(place.path(), &MEASURING);
    let quick = Heat::start(&one, Ipv4Addr::LOCALHOST.into(), &[]);
    let slow = Heat::start_as("slow-sensor", SLOW, &one, Ipv4Addr::LOCALHOST.into(), &[]);
    quick.offer(&one, "two");
    slow.offer(&one, "two");
    // Both are measured, and either may be given.
    let measured = eventually_some(|| {
        let form = json!({"requestedService": {"serviceDefinitionRequirement": "heat"}, "needQoSMeasurements": true});
        let found = client(&two, "orchestrator").call(&two.cloud, "POST", "/gatekeeper/init_gsd", Some(&form)).ok()?.json();
        let answer = found["results"][0].clone();
        (answer["numOfProviders"] == 2).then_some(answer)
    });
    let measured = measured.unwrap_or_else(|| panic!("{}\n{}", one.cloud.stderr(), two.cloud.stderr()));
    let measurements = measured["qosMeasurements"].as_array().expect("measurements");
    let of =
        |name: &str| measurements.iter().find(|row| row["serviceRegistryEntry"]["provider"]["systemName"] == name).expect("it is there");
    let slow_ms = of("slow-sensor")["meanResponseTimeWithoutTimeout"].as_i64().expect("a number");
    assert!(u128::try_from(slow_ms).is_ok_and(|ms| ms >= SLOW.as_millis()), "{measured}");
    assert_eq!((&of("sensor")["providerAvailable"], &of("sensor")["received"]), (&json!(true), &json!(10)), "{measured}");
    assert_eq!(measured["verifiedRelays"], json!([]), "no relay was tested");
    assert!(quick.callers().iter().all(|caller| caller == "orchestrator.one.test.arrowhead.eu"), "{:?}", quick.callers());

    let result = granted(&two, BETWEEN_MS);
    assert_eq!(result["provider"]["systemName"], "sensor", "{result}");
    assert_eq!(result["metadata"]["qosMeasuredBy"], "service", "{result}");
    let warnings = result["warnings"].as_array().expect("warnings");
    assert!(warnings.contains(&json!("FROM_OTHER_CLOUD")) && !warnings.contains(&json!("QOS_KEPT")), "{result}");
    assert!(eventually(|| is_told_that_nobody_keeps(&two)), "{}", orchestrated(&two, NOTHING_MS).text());
    // The operator is told which cloud has said so.
    let told = || asked(&two, "/api/v1/orchestration?explain=true", NOTHING_MS).json()["explanation"].to_string();
    assert!(eventually(|| told().contains("No provider that the asking cloud may use keeps")), "{}", told());
    // A relay that was tested is told of.
    let is_verified = || {
        two.run("cloud test-relay one");
        let form = json!({"requestedService": {"serviceDefinitionRequirement": "heat"}, "needQoSMeasurements": true});
        let found = client(&two, "orchestrator").call(&two.cloud, "POST", "/gatekeeper/init_gsd", Some(&form));
        found.is_ok_and(|found| found.json()["results"][0]["verifiedRelays"].as_array().is_some_and(|relays| relays.len() == 1))
    };
    assert!(eventually(is_verified), "{}", two.cloud.stderr());
}

#[test]
fn no_tunnel_is_left_where_nobody_keeps_what_is_required() {
    let place = TempDir::new().expect("a temporary directory");
    let (one, two) = neighbours_with(place.path(), &[&MEASURING[..], &["--gateway-is-mandatory", "true"]].concat());
    let provider = Heat::start(&one, Ipv4Addr::LOCALHOST.into(), &[]);
    provider.offer(&one, "two");
    assert!(eventually(|| is_told_that_nobody_keeps(&two)), "{}", orchestrated(&two, NOTHING_MS).text());
    assert_eq!((sessions(&one), sessions(&two)), (0, 0), "none was opened");
    let result = granted(&two, ANYTHING_MS);
    assert!(result["warnings"].as_array().is_some_and(|warnings| warnings.contains(&json!("VIA_GATEWAY"))), "{result}");
    assert!(sessions(&one) > 0 && sessions(&two) > 0, "now there is one");
}

#[test]
fn a_cloud_that_measures_nothing_is_not_taken_at_its_word() {
    let place = TempDir::new().expect("a temporary directory");
    let relay = ["--relay-listen", "127.0.0.1:0"];
    // The first cloud measures nothing.
    let one = Side::start(place.path(), "one", &relay);
    let two = Side::start(place.path(), "two", &MEASURING);
    let relay = one.cloud.ready()["listeners"]["relay"].as_str().expect("where its relay is").to_owned();
    one.done(&format!("relay add {relay} --own"));
    one.introduce_to(&two);
    two.introduce_to(&one);
    let is_there = |from: &Side, to: &str| eventually(|| from.run(&format!("cloud ping {to}")).status.success());
    assert!(is_there(&two, "one") && is_there(&one, "two"), "one said: {}\ntwo said: {}", one.cloud.stderr(), two.cloud.stderr());
    Heat::start(&one, Ipv4Addr::LOCALHOST.into(), &[]).offer(&one, "two");
    let answer = orchestrated(&two, ANYTHING_MS);
    let told = "No other cloud offers the service to this one and measures the quality of service that is required";
    assert!(answer.status == 503 && answer.text().contains(told), "{} {}", answer.status, answer.text());
    let explained = asked(&two, "/api/v1/orchestration?explain=true", ANYTHING_MS).json()["explanation"].to_string();
    assert!(explained.contains("or it measures no quality of service"), "{explained}");
}
