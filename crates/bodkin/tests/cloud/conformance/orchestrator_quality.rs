//! Orchestrator: quality of service, measured by Bodkin itself (reference section 5.5).

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, system, texts, with};
use crate::support::cloud::{Cloud, Launch, System};
use crate::support::double::Double;
use crate::support::patience::eventually;

const ORCHESTRATION: &str = "/orchestrator/orchestration";
const SERVICE: &str = "quality";

/// A cloud that manages quality of service, with consumers `one` and `two` and a provider for each port.
fn cloud(ports: &[(&str, u16)]) -> Cloud {
    let asked: Vec<_> = ports.iter().map(|(name, port)| (*name, *port, json!({}))).collect();
    asked_cloud(&asked)
}

/// The same, with the metadata of each provider's service.
fn asked_cloud(providers: &[(&str, u16, Value)]) -> Cloud {
    let cloud = Launch::new().flags(["--enable-qos", "--qos-measurement-interval-s", "1", "--ping-timeout-ms", "5000"]).start();
    let consumers = ["one", "two"].map(|name| cloud.register_system(name, 9960));
    for (name, port, metadata) in providers {
        let entry = cloud.register(&with(service(SERVICE, system(name, *port)), "/metadata", metadata.clone()));
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

fn bound() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

/// A service that answers, and the ports of it and of none.
fn ports() -> (Double, u16, u16) {
    let alive = Double::start(Vec::new());
    let port = alive.address().port();
    (alive, port, bound().1)
}

/// The port of a provider that accepts, and says nothing.
fn silent() -> u16 {
    let (listener, port) = bound();
    thread::spawn(move || listener.incoming().for_each(drop));
    port
}

/// The port of a service that accepts at once, and takes so long for each answer.
fn slow(delay: Duration) -> u16 {
    let (listener, port) = bound();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut piece = [0; 4096];
                while matches!(stream.read(&mut piece), Ok(1..)) {
                    thread::sleep(delay);
                    if stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
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
fn limits_are_held_against_what_the_service_itself_takes() {
    let fast = Double::start(Vec::new());
    let none = || json!({});
    let cloud = asked_cloud(&[("fast", fast.address().port(), none()), ("slow", slow(Duration::from_millis(400)), none())]);
    let limited = |ms: u64| unmatched(json!({"qosAvgRespTime": ms}));
    assert!(eventually(|| providers(&cloud, &limited(60_000)) == ["fast", "slow"]), "both were measured");
    assert!(eventually(|| providers(&cloud, &limited(390)) == ["fast"]), "connecting to the other takes no time, and its answers do");
    let given = results(&cloud, &limited(60_000));
    assert!(given.iter().all(|result| result["metadata"]["qosMeasuredBy"] == "service"), "{given:?}");
    let explained = cloud.post("/api/v1/orchestration?explain=true", &limited(390)).expect_status(200).json()["explanation"].to_string();
    assert!(explained.contains("was measured of the service"), "{explained}");
    let told = cloud.get("/api/v1/quality").expect_status(200).json();
    let row = list(&told, "/data").iter().find(|row| row["provider"] == "slow").expect("it is measured").clone();
    assert_eq!((&row["probe"], &row["decisive"]), (&json!("OPTIONS /"), &json!("service")), "{row}");
    let ms = |pointer: &str| row.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {pointer} of {row}"));
    assert!(ms("/service/minMs") >= 400.0 && ms("/service/p99Ms") >= ms("/service/minMs") && ms("/echo/minMs") < 400.0, "{row}");
    let metrics = cloud.connect(System::Monitor).request("GET", "/metrics", &[], None).expect("an answer").text();
    // The core systems' own services count too.
    assert!(metrics.contains("\nbodkin_quality_services ") && !metrics.contains("\nbodkin_quality_probes_total 0\n"), "{metrics}");
    let asked = fast.asked();
    assert!(asked.iter().all(|asked| asked.line == "OPTIONS /" && asked.body.is_null()), "{asked:?}");
}

#[test]
fn a_provider_says_what_is_asked_of_its_service_or_that_nothing_is() {
    let mute = silent();
    let healthy = Double::start(Vec::new());
    let metadata = |probe: &str| json!({"qosProbe": probe});
    let cloud = asked_cloud(&[("mute", mute, metadata("off")), ("healthy", healthy.address().port(), metadata("GET /health"))]);
    let limited = unmatched(json!({"qosMaxRespTimeThreshold": 60_000}));
    assert!(eventually(|| providers(&cloud, &limited) == ["mute", "healthy"]));
    let given = results(&cloud, &limited);
    assert_eq!(texts(&given, "/metadata/qosMeasuredBy"), ["echo", "service"], "the one that is not asked answers by accepting");
    let asked = healthy.asked();
    assert!(!asked.is_empty() && asked.iter().all(|asked| asked.line == "GET /health"), "{asked:?}");
    let unlimited = results(&cloud, &unmatched(json!({})));
    assert!(unlimited.iter().all(|result| result["metadata"].get("qosMeasuredBy").is_none()), "{unlimited:?}");
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
