//! Orchestrator: quality of service, measured by Bodkin itself (reference section 5.5).

use std::net::TcpListener;

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, system, texts, with};
use crate::support::cloud::{Cloud, Launch};
use crate::support::patience::eventually;

const ORCHESTRATION: &str = "/orchestrator/orchestration";
const SERVICE: &str = "quality";

/// A cloud that manages quality of service, with consumers `one` and `two` and a provider for each port.
fn cloud(ports: &[(&str, u16)]) -> Cloud {
    let cloud = Launch::new().flags(["--enable-qos", "--qos-measurement-interval-s", "1", "--ping-timeout-ms", "300"]).start();
    let consumers = ["one", "two"].map(|name| cloud.register_system(name, 9960));
    for (name, port) in ports {
        let entry = cloud.register(&service(SERVICE, system(name, *port)));
        for consumer in consumers {
            cloud.allow(consumer, number(&entry, "/provider/id"), number(&entry, "/serviceDefinition/id"), &[INSECURE_JSON_ID]);
        }
    }
    cloud
}

/// A form of a consumer with requirements and commands.
fn form(consumer: &str, requirements: Value, commands: Value) -> Value {
    json!({"requesterSystem": system(consumer, 9960), "requestedService": {"serviceDefinitionRequirement": SERVICE},
        "orchestrationFlags": {"overrideStore": true, "enableQoS": true, "matchmaking": true},
        "qosRequirements": requirements, "commands": commands})
}

/// The same for all providers.
fn unmatched(requirements: Value) -> Value {
    with(form("one", requirements, json!({})), "/orchestrationFlags/matchmaking", false)
}

#[track_caller]
fn results(cloud: &Cloud, form: &Value) -> Vec<Value> {
    list(&cloud.post(ORCHESTRATION, form).expect_status(200).json(), "/response").clone()
}

#[track_caller]
fn providers(cloud: &Cloud, form: &Value) -> Vec<String> {
    texts(&results(cloud, form), "/provider/systemName")
}

/// A port that accepts, as long as it is held, and one that does not.
fn ports() -> (TcpListener, u16, u16) {
    let bound = || TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = |listener: &TcpListener| listener.local_addr().expect("an address").port();
    let (listening, closed) = (bound(), bound());
    let (alive, dead) = (port(&listening), port(&closed));
    (listening, alive, dead)
}

#[test]
fn providers_that_do_not_keep_a_limit_are_left_out() {
    let (_listening, alive, dead) = ports();
    let cloud = cloud(&[("alive", alive), ("dead", dead)]);
    check(&cloud, &[Row::get("it is managed", "/orchestrator/qos_enabled").text("true")]);
    let slow = unmatched(json!({"qosMaxRespTimeThreshold": 10_000}));
    assert!(eventually(|| providers(&cloud, &slow) == ["alive"]), "measured soon after it has registered");
    assert!(eventually(|| providers(&cloud, &unmatched(json!({"qosMaxPacketLost": 100}))) == ["alive", "dead"]), "both were measured");
    for (requirements, expected) in [
        (json!({}), &["alive", "dead"][..]),
        (json!({"qosMaxPacketLost": "0"}), &["alive"]),
        (json!({"qosMaxRecentPacketLoss": 99.9}), &["alive"]),
        (json!({"qosAvgRespTime": 10_000, "qosJitterThreshold": 10_000}), &["alive"]),
        (json!({"qosAvgRespTime": 0.000_001}), &[]),
        (json!({"qosPredictedRespTime": 10_000}), &["alive"]),
        (json!({"qosPredictedRespTime": 0.000_001}), &[]),
        (json!({"qosMaxRespTimeThreshold": 10_000, "qosMaxPacketLost": 0, "unheard-of": "x"}), &["alive"]),
    ] {
        assert_eq!(providers(&cloud, &unmatched(requirements.clone())), expected, "{requirements}");
    }
    let unflagged = with(unmatched(json!({"qosMaxPacketLost": 0})), "/orchestrationFlags/enableQoS", false);
    assert_eq!(providers(&cloud, &unflagged), ["alive", "dead"], "nobody asked for it");

    let explained = cloud.post("/api/v1/orchestration?explain=true", &unmatched(json!({"qosMaxPacketLost": 50}))).expect_status(200).json();
    let told = explained["explanation"].to_string();
    assert!(told.contains("\"quality\"") && told.contains("qosMaxPacketLost 50 is asked for, and 100.000 was measured"), "{told}");
}

#[test]
fn limits_and_commands_that_mean_nothing_are_refused() {
    let (_listening, alive, _) = ports();
    let cloud = cloud(&[("alive", alive)]);
    let refused = |requirements: Value, commands: Value| {
        Row::post(format!("{requirements} {commands}"), ORCHESTRATION, &form("one", requirements, commands)).invalid_parameter()
    };
    let unmatched = with(form("one", json!({}), json!({"qosExclusivity": 5})), "/orchestrationFlags/matchmaking", false);
    check(
        &cloud,
        &[
            refused(json!({"qosMaxRespTimeThreshold": 0}), json!({}))
                .saying("qosMaxRespTimeThreshold is 0; expected milliseconds above 0."),
            refused(json!({"qosAvgRespTime": "soon"}), json!({})),
            refused(json!({"qosPredictedRespTime": 0}), json!({})),
            refused(json!({"qosJitterThreshold": -1}), json!({})),
            refused(json!({"qosMaxRecentPacketLoss": 101}), json!({})),
            refused(json!({"qosMaxPacketLost": -1}), json!({})),
            refused(json!({}), json!({"qosExclusivity": 0})),
            refused(json!({}), json!({"qosExclusivity": 3601})).saying("qosExclusivity is 3601; expected seconds, 1 to 3600."),
            Row::post("exclusive, but which one?", ORCHESTRATION, &unmatched).bad_payload(ORCHESTRATION),
        ],
    );
}

#[test]
fn a_provider_that_is_wanted_exclusively_is_nobody_elses_for_that_time() {
    let (_first, a, _) = ports();
    let (_second, b, _) = ports();
    let cloud = cloud(&[("a", a), ("b", b)]);
    let exclusive = |consumer: &str, seconds: u64| form(consumer, json!({}), json!({"qosExclusivity": seconds}));
    let first = results(&cloud, &exclusive("one", 3600));
    assert_eq!((first.len(), &first[0]["metadata"]["QoSCalculatedServiceTimeFrame"]), (1, &json!("3600")));
    let kept = list(&cloud.get("/orchestrator/qos_reservations").expect_status(200).json(), "/data").clone();
    assert_eq!((kept.len(), &kept[0]["consumerSystemName"], &kept[0]["temporaryLock"]), (1, &json!("one"), &json!(false)));
    assert_eq!(kept[0]["reservedProviderId"], first[0]["provider"]["id"]);

    let second = providers(&cloud, &exclusive("two", 60));
    assert_ne!(second, texts(&first, "/provider/systemName"), "the other one is left");
    assert_eq!(second.len(), 1);
    assert_eq!(providers(&cloud, &form("two", json!({}), json!({}))), second, "its own, again and without exclusivity");
    assert_eq!(providers(&cloud, &exclusive("one", 3600)), texts(&first, "/provider/systemName"), "it may have what it has");
}

#[test]
fn without_enable_qos_nothing_is_measured_and_nothing_is_asked() {
    let cloud = Cloud::shared();
    let consumer = cloud.register_system("quality-off", 9961);
    let entry = cloud.register(&service("quality-off", system("quality-off-provider", 9962)));
    cloud.allow(consumer, number(&entry, "/provider/id"), number(&entry, "/serviceDefinition/id"), &[INSECURE_JSON_ID]);
    let form = json!({"requesterSystem": system("quality-off", 9961), "requestedService": {"serviceDefinitionRequirement": "quality-off"},
        "orchestrationFlags": {"overrideStore": true, "enableQoS": true}, "qosRequirements": {"qosMaxPacketLost": 0}});
    check(&cloud, &[Row::get("it is not managed", "/orchestrator/qos_enabled").text("false")]);
    assert_eq!(providers(&cloud, &form), ["quality-off-provider"]);
}
