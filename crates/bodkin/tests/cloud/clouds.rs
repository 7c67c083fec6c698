//! Two clouds with roots of their own on one host, made known to each other by their operators' commands: a service of one is used by a consumer of the other.

pub mod endpoints;
mod faults;
mod quality;
mod stored;
mod tunnels;

use bodkin_arrowhead::common_name::SystemCommonName;
use bodkin_trust::{TokenVerifier, TrustDirectory, base64, tls};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::cloud::Launch;
use crate::support::patience::eventually;
use crate::support::secure::Client;
use crate::support::side::{Side, neighbours};

#[test]
fn a_consumer_of_one_cloud_uses_a_service_of_the_other() {
    let place = TempDir::new().expect("a temporary directory");
    let (one, two) = neighbours(place.path());
    let sensor = one.system("sensor");
    let key = base64::encode(&sensor.key().public_key_info());
    one.done(&format!(
        "service add heat --system sensor --address 127.0.0.1 --port 9000 --uri /heat --secure TOKEN --authentication-info {key}"
    ));
    let clouds = one.done("cloud list");
    let id = clouds["data"].as_array().expect("rows").iter().find(|row| row["name"] == "two").expect("it is known")["id"].clone();
    let ask = |flags: Value| {
        let form = json!({
            "requesterSystem": {"systemName": "sysop", "address": "127.0.0.1", "port": 8000},
            "requestedService": {"serviceDefinitionRequirement": "heat"}, "orchestrationFlags": flags,
        });
        let operator = two.system("sysop");
        let anchor = TrustDirectory::new(two.data.join("trust")).anchor().expect("an authority");
        Client::believing(&operator, anchor).expect(&two.cloud, "POST", "/orchestrator/orchestration", Some(&form), 200).json()
    };
    // Without a rule it is as if it was not there.
    let nothing = ask(json!({"overrideStore": true, "enableInterCloud": true}));
    assert_eq!(nothing, json!({"response": []}));
    // The operator is told that, and later what the consumer would be given; nobody's tokens are shown.
    two.done("system add display --address 127.0.0.1 --port 9001");
    let look = "orchestrate heat --consumer display --flag enableInterCloud --flag matchmaking --explain";
    let told = two.run(look);
    let said = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.status.code() == Some(1) && said.contains("cloud one.test offers none, or no rule there grants it"), "{told:?}");
    one.done(&format!("auth intercloud add --cloud {id} --provider sensor --service heat"));
    let granted = ask(json!({"overrideStore": true, "enableInterCloud": true, "matchmaking": true}));
    let result = &granted["response"][0];
    assert_eq!((&result["provider"]["systemName"], &result["serviceUri"]), (&json!("sensor"), &json!("/heat")), "{granted}");
    assert!(result["warnings"].as_array().is_some_and(|warnings| warnings.contains(&json!("FROM_OTHER_CLOUD"))), "{granted}");
    let looked = two.done(look);
    let (given, explanation) = (&looked["response"][0], &looked["explanation"]);
    assert_eq!((&given["provider"]["systemName"], &explanation["outcome"]), (&json!("sensor"), &json!("granted")), "{looked}");
    assert_eq!(explanation["why"], "cloud one.test grants it: 1 results", "{looked}");
    let form = json!({
        "requesterSystem": {"systemName": "display", "address": "127.0.0.1", "port": 9001},
        "requestedService": {"serviceDefinitionRequirement": "heat"}, "orchestrationFlags": {"triggerInterCloud": true},
    });
    let operator = Client::believing(&two.system("sysop"), TrustDirectory::new(two.data.join("trust")).anchor().expect("an authority"));
    let given = operator.expect(&two.cloud, "POST", "/api/v1/orchestration", Some(&form), 200).json();
    assert_eq!(
        (&given["response"][0]["provider"]["systemName"], given["response"][0].get("authorizationTokens")),
        (&json!("sensor"), None)
    );
    // The provider takes the token of the consumer of the other cloud, and of nobody else.
    let token = result["authorizationTokens"].as_object().and_then(|tokens| tokens.values().next()?.as_str()).expect("a token");
    let authorization = base64::encode(&one.system("authorization").key().public_key_info());
    let verifier = TokenVerifier::new(sensor.key(), &authorization).expect("keys");
    let caller = |name: &str| SystemCommonName::parse(&format!("{name}.test.arrowhead.eu")).expect("a name");
    assert!(verifier.verify(token, &caller("sysop.two"), tls::now()).is_ok());
    assert!(verifier.verify(token, &caller("sysop.one"), tls::now()).is_err());
    // The audit log of the cloud that has granted it says to whom.
    let is_told = || {
        let entries = one.run("audit tail --count 100 --kind orchestration");
        String::from_utf8_lossy(&entries.stdout).contains("gatekeeper.two.test.arrowhead.eu")
    };
    assert!(eventually(is_told), "{:?}", one.run("audit tail --count 100"));
}

#[test]
fn a_cloud_that_has_just_been_made_known_is_reached_by_the_first_ping() {
    let place = TempDir::new().expect("a temporary directory");
    let one = Side::start(place.path(), "one", &["--relay-listen", "127.0.0.1:0"]);
    let two = Side::start(place.path(), "two", &[]);
    let relay = one.cloud.ready()["listeners"]["relay"].as_str().expect("where its relay is").to_owned();
    one.done(&format!("relay add {relay} --own"));
    one.introduce_to(&two);
    two.introduce_to(&one);
    // The other one listens a second or more later: a call before that is lost, and made again.
    for (from, to) in [(&one, "two"), (&two, "one")] {
        let told = from.run(&format!("cloud ping {to}"));
        assert!(told.status.success(), "{told:?}\none said: {}\ntwo said: {}", one.cloud.stderr(), two.cloud.stderr());
    }
    // And the relay is tested by both.
    for (from, line) in [(&one, format!("cloud test-relay two --relay {relay}")), (&two, "cloud test-relay one".to_owned())] {
        let tested = from.done(&line);
        assert_eq!((&tested["relay"], &tested["sent"], &tested["lost"]), (&json!(relay), &json!(10), &json!(0)), "{tested}");
        assert!(tested["minMs"].as_f64() <= tested["meanMs"].as_f64() && tested["meanMs"].as_f64() <= tested["maxMs"].as_f64(), "{tested}");
    }
    let unknown = one.run("cloud test-relay two --relay 4711");
    assert!(unknown.status.code() == Some(1) && String::from_utf8_lossy(&unknown.stderr).contains("no relay 4711"), "{unknown:?}");
}

#[test]
fn a_neighbour_that_is_gone_is_told_by_its_name_and_is_there_again_when_it_is_back() {
    let place = TempDir::new().expect("a temporary directory");
    let (one, two) = neighbours(place.path());
    let Side { cloud, data } = one;
    let relay = cloud.ready()["listeners"]["relay"].as_str().expect("where its relay is").to_owned();
    cloud.kill();
    let gone = two.run("cloud ping one");
    let told = String::from_utf8_lossy(&gone.stdout).into_owned();
    assert!(gone.status.code() == Some(1) && told.contains("one.test"), "{gone:?}");
    let cloud = Launch::new().secure().data(&data).flags(["--relay-listen", &relay]).start();
    let is_back = || two.run("cloud ping one").status.success();
    assert!(eventually(is_back), "two said: {}\none said: {}", two.cloud.stderr(), cloud.stderr());
}
