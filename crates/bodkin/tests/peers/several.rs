//! Several services asked of several neighbours at once: one of them, which is not written in Rust, answers by JMS, and the other one is silent.

use std::time::{Duration, Instant};

use bodkin_trust::{base64, tls};
use serde_json::json;
use tempfile::TempDir;

use crate::gatekeeper::Neighbours;
use crate::jms;
use crate::support::patience::PATIENCE;
use crate::support::secure::{DAY, authority, issue};
use crate::support::skip;

/// A neighbour's answer is waited for so long; it is what [`Neighbours::start`] says.
const ANSWER_MAX: Duration = Duration::from_secs(10);

#[test]
#[ignore = "peer: ./x test --all"]
fn of_two_neighbours_the_one_that_answers_is_heard_and_the_silent_one_counted() {
    let place = TempDir::new().expect("a temporary directory");
    let class_path = match jms::build("activemq", place.path()) {
        Ok(class_path) => class_path,
        Err(reason) => {
            return skip::note("of_two_neighbours_the_one_that_answers_is_heard_and_the_silent_one_counted", &reason);
        }
    };
    let mut both = Neighbours::start(&class_path, &place, []);
    both.serve();
    // The second neighbour is known, by the same broker, and nobody is there.
    let silent = issue(&authority(), "gatekeeper.testcloud2.aitia.arrowhead.eu", &["localhost"], tls::now(), DAY);
    let relay = both.ours.done("relay list")["data"][0]["id"].clone();
    let form = json!([{
        "operator": "aitia", "name": "testcloud2", "secure": true, "neighbor": true, "gatekeeperRelayIds": [relay],
        "authenticationInfo": base64::encode(silent.certificate().public_key_info()),
    }]);
    both.call("sysop", "POST", "/gatekeeper/mgmt/clouds", &form, 201);
    both.answers(
        "multi_gsd_poll",
        &json!({
            "providerCloud": {"operator": "aitia", "name": "testcloud1", "secure": true, "neighbor": false, "authenticationInfo": "another's word"},
            "providedServiceDefinitions": ["heat"],
        }),
    );
    let services = json!({"requestedServices": [{"serviceDefinitionRequirement": "heat"}, {"serviceDefinitionRequirement": "noise"}]});
    let begun = Instant::now();
    let found = both.call("choreographer", "POST", "/gatekeeper/init_multi_gsd", &services, 200);
    let took = begun.elapsed();
    assert_eq!(found["unsuccessfulRequests"], json!(1), "{found}");
    let results = found["results"].as_array().expect("results");
    assert_eq!(results.len(), 1, "{found}");
    assert_eq!((&results[0]["providerCloud"]["name"], &results[0]["providedServiceDefinitions"]), (&json!("testcloud1"), &json!(["heat"])));
    // What a cloud is, is this cloud's own row of it.
    assert_ne!(results[0]["providerCloud"]["authenticationInfo"], json!("another's word"), "{found}");
    assert!((ANSWER_MAX..ANSWER_MAX + PATIENCE).contains(&took), "{took:?}");
    let asked = both.asked("multi_gsd_poll");
    let services = asked["requestedServices"].as_array().expect("services").iter().map(|service| &service["serviceDefinitionRequirement"]);
    assert_eq!(services.collect::<Vec<_>>(), ["heat", "noise"], "{asked}");
    // Where nobody answers, the first refusal is the answer, with the cloud's name.
    let named = json!({
        "requestedServices": [{"serviceDefinitionRequirement": "heat"}],
        "preferredClouds": [{"operator": "aitia", "name": "testcloud2"}],
    });
    let refused = both.call("choreographer", "POST", "/gatekeeper/init_multi_gsd", &named, 504);
    assert!(refused["errorMessage"].as_str().is_some_and(|told| told.contains("testcloud2.aitia")), "{refused}");
}
