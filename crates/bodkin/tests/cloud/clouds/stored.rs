//! An orchestration store that names a provider of another cloud in front of an own one: what the consumer is given, and what its operator is told of it.

use bodkin_trust::{TrustDirectory, base64};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::support::secure::Client;
use crate::support::side::{Side, neighbours};

const LOOK: &str = "orchestrate heat --store --consumer display --interface HTTP-SECURE-JSON --explain";

/// A cloud's provider of the service, where nobody listens.
fn offer(side: &Side, name: &str, port: u16) {
    let key = base64::encode(&side.system(name).key().public_key_info());
    side.done(&format!(
        "service add heat --system {name} --address 127.0.0.1 --port {port} --uri /heat --secure TOKEN --authentication-info {key}"
    ));
}

/// What the consumer's own request is given.
#[track_caller]
fn given(side: &Side) -> Value {
    let anchor = TrustDirectory::new(side.data.join("trust")).anchor().expect("an authority");
    let form = json!({
        "requesterSystem": {"systemName": "display", "address": "127.0.0.1", "port": 9001},
        "requestedService": {"serviceDefinitionRequirement": "heat", "interfaceRequirements": ["HTTP-SECURE-JSON"]},
    });
    let client = Client::believing(&side.system("display"), anchor);
    client.expect(&side.cloud, "POST", "/orchestrator/orchestration", Some(&form), 200).json()
}

/// Both the consumer and its operator's look come to this provider; gives what the operator is told.
#[track_caller]
fn both_come_to(side: &Side, provider: &str) -> String {
    let given = given(side);
    assert_eq!(given["response"][0]["provider"]["systemName"], provider, "{given}\n{}", side.cloud.stderr());
    let looked = side.done(LOOK);
    assert_eq!(looked["response"][0]["provider"]["systemName"], provider, "{looked}");
    assert!(looked["response"][0]["authorizationTokens"].as_object().is_none_or(Map::is_empty), "{looked}");
    looked["explanation"].to_string()
}

#[test]
fn providers_of_other_clouds_have_their_place_in_the_store() {
    let place = TempDir::new().expect("a temporary directory");
    let (one, two) = neighbours(place.path());
    offer(&one, "sensor", 9000);
    offer(&two, "thermometer", 9002);
    two.done("system add display --address 127.0.0.1 --port 9001");
    two.done("auth add --consumer display --provider thermometer --service heat");
    let add = "rule add --consumer display --service heat --interface HTTP-SECURE-JSON --provider";
    two.done(&format!("{add} sensor@127.0.0.1:9000 --cloud one.test"));
    let own = two.done(&format!("{add} thermometer"));
    // Without a rule there, the next one of the store is given.
    let told = both_come_to(&two, "thermometer");
    assert!(told.contains("cloud one.test offers none, or no rule there grants it to this cloud"), "{told}");
    let clouds = one.done("cloud list");
    let id = clouds["data"].as_array().expect("rows").iter().find(|row| row["name"] == "two").expect("it is known")["id"].clone();
    one.done(&format!("auth intercloud add --cloud {id} --provider sensor --service heat"));
    let told = both_come_to(&two, "sensor");
    assert!(told.contains("cloud one.test grants it: 1 results"), "{told}");
    let tokens = given(&two)["response"][0]["authorizationTokens"].clone();
    assert!(tokens.as_object().is_some_and(|tokens| !tokens.is_empty()), "{tokens}");
    // Behind an own one the other cloud is not asked.
    two.done(&format!("rule move {} 1", own["id"]));
    let told = both_come_to(&two, "thermometer");
    assert!(!told.contains("one.test"), "{told}");
    // In front of it, but away, it is passed over, and the operator is told why.
    two.done(&format!("rule move {} 2", own["id"]));
    both_come_to(&two, "sensor");
    one.cloud.kill();
    let told = both_come_to(&two, "thermometer");
    assert!(told.contains("one.test") && told.contains("relay"), "{told}");
}
