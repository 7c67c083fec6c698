//! Tests of a relay that a cloud of ours and one that is not written in Rust make together: the QoS Monitor of the Java cloud sends and hears by JMS what jose4j seals, each
//! side in its turn (`SWITCH`), as those of Arrowhead's Java clouds do.

use serde_json::json;
use tempfile::TempDir;

use crate::gatekeeper::{ANSWER_MS, JAVA_MONITOR, Neighbours};
use crate::gateway::relay;
use crate::jms;
use crate::support::skip;

#[test]
#[ignore = "peer: ./x test --all"]
fn a_java_monitor_and_our_gatekeeper_test_activemq_together() {
    test_together("a_java_monitor_and_our_gatekeeper_test_activemq_together", "activemq");
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_java_monitor_and_our_gatekeeper_test_artemis_together() {
    test_together("a_java_monitor_and_our_gatekeeper_test_artemis_together", "artemis");
}

fn test_together(test: &str, project: &str) {
    let place = TempDir::new().expect("a temporary directory");
    let class_path = match jms::build(project, place.path()) {
        Ok(class_path) => class_path,
        Err(reason) => return skip::note(test, &reason),
    };
    let mut both = Neighbours::start(&class_path, &place, []);
    both.serve();
    assert_eq!(both.java.ask("monitor"), "there");
    we_begin(&mut both);
    they_begin(&mut both);
}

fn we_begin(both: &mut Neighbours) {
    let joined = both.java.ask(&format!("join-test {JAVA_MONITOR} {}", both.own_key()));
    let id = joined.strip_prefix("joined ").unwrap_or_else(|| panic!("{joined}"));
    both.answers("qos_relay_test", &json!({"queueId": id, "peerName": JAVA_MONITOR, "receiverQoSMonitorPublicKey": both.java_monitor}));
    let tested = both.ours.done("cloud test-relay testcloud1");
    assert_eq!((&tested["sent"], &tested["lost"]), (&json!(10), &json!(0)), "{tested}");
    let asked = both.asked("qos_relay_test");
    assert_eq!(asked["relay"]["port"], json!(both.broker.0), "{asked}");
    assert_eq!(asked["senderQoSMonitorPublicKey"], json!(both.own_key()), "{asked}");
    assert_eq!(both.java.line(), "joined: 10 sent back, 10 came back");
}

fn they_begin(both: &mut Neighbours) {
    let question = json!({
        "requesterCloud": {"operator": "aitia", "name": "testcloud1", "authenticationInfo": "key"},
        "targetCloud": {"operator": "test", "name": "one"}, "relay": relay(both), "senderQoSMonitorPublicKey": both.java_monitor,
    });
    let joined = both.told(ANSWER_MS, "qos_relay_test", &question).expect("an answer");
    let said = |member: &str| joined[member].as_str().unwrap_or_else(|| panic!("no {member} in {joined}")).to_owned();
    let [id, name, key] = ["queueId", "peerName", "receiverQoSMonitorPublicKey"].map(said);
    assert_eq!((name.as_str(), &key), ("gatekeeper.one.test.arrowhead.eu", &both.own_key()), "{joined}");
    assert_eq!(both.java.ask(&format!("ask-test {name} {id} {key}")), "asked: 10 came back, 10 sent back");
}
