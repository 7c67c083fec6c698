//! `bodkin orchestrate` on a real cloud.

use serde_json::json;

use super::{done, ended, has_row, json};
use crate::support::arrowhead::{service, system, with};
use crate::support::cloud::Launch;

#[test]
fn an_orchestration_names_the_providers_or_says_why_there_is_none() {
    let cloud = Launch::new().start();
    let nobody = |line: &str, code: i32, says: &str| {
        let told = ended(&cloud, line, code);
        assert!(told.contains(says), "{line}: {told}");
    };
    cloud.register_system("display", 9001);
    nobody("orchestrate heat --consumer display", 1, "nobody offers heat");
    cloud.register(&with(service("heat", system("sensor", 9000)), "/metadata", json!({"unit": "celsius"})));
    cloud.register(&service("heat", system("probe", 9002)));
    nobody("orchestrate heat --consumer display --metadata unit=kelvin", 1, "none of the 2 registered heat services fits");
    nobody("orchestrate heat --consumer display", 3, "DENIED: heat is offered, but no rule lets display use it");

    done(&cloud, "auth add --consumer display --provider sensor --service heat");
    let offers = done(&cloud, "orchestrate heat --consumer display");
    has_row(&offers, &["heat", "sensor", "127.0.0.1:9000", "HTTP-INSECURE-JSON", "TTL_UNKNOWN"]);
    assert!(!offers.contains("probe"), "{offers}");
    nobody("orchestrate heat --consumer display --prefer probe --flag onlyPreferred", 1, "left out for display by");
    let told = ended(&cloud, "orchestrate heat --consumer display --prefer probe --flag onlyPreferred --explain", 1);
    has_row(&told, &["sensor at 127.0.0.1:9000", "authorization-rule", "rule 1 allows it", "passed"]);
    has_row(&told, &["sensor at 127.0.0.1:9000", "preferred-provider", "it is not among them", "REFUSED"]);
    has_row(&told, &["probe at 127.0.0.1:9002", "authorization-rule", "no rule allows it", "REFUSED"]);

    done(&cloud, "auth add --consumer display --provider probe --service heat");
    let names = |line: &str| json(&cloud, line)["response"].as_array().expect("a list").len();
    assert_eq!(names("orchestrate heat --consumer display"), 2);
    assert_eq!(names("orchestrate heat --consumer display --metadata unit=celsius"), 1);
    let chosen = json(&cloud, "orchestrate heat --consumer display --prefer probe --flag matchmaking");
    assert_eq!((chosen["response"].as_array().map(Vec::len), &chosen["response"][0]["provider"]["systemName"]), (Some(1), &json!("probe")));
    nobody("orchestrate heat --consumer display --flag onlyIPv6AddressResponse", 1, "fits the requirements");
    let told = done(&cloud, "orchestrate heat --consumer display --prefer probe --flag matchmaking --explain");
    has_row(&told, &["sensor at 127.0.0.1:9000", "matchmaking", "probe is the one", "REFUSED"]);
}

#[test]
fn the_denial_of_a_program_is_a_document() {
    let cloud = Launch::new().start();
    cloud.register_system("display", 9001);
    cloud.register(&service("heat", system("sensor", 9000)));
    let told = ended(&cloud, "--output json orchestrate heat --consumer display", 3);
    let document: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(document["response"], json!([]));
    assert_eq!(document["explanation"]["outcome"], "denied");
    assert_eq!(document["explanation"]["services"][0]["verdict"], "refused");
}
