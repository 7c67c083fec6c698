//! `bodkin auth`: rules on a real cloud; rules for other clouds against a stand-in.

use serde_json::{Value, json};

use super::{WIDTH_MAX, asked, done, ended, has_row, json, lines};
use crate::support::arrowhead::{service, system, with};
use crate::support::cloud::{Cloud, Launch};
use crate::support::double::Double;

/// Two systems named `sensor` that offer `heat`, one of them over two interfaces, and a display.
fn cloud() -> (Cloud, Value, Value) {
    let cloud = Launch::new().start();
    let first = cloud.register(&service("heat", system("sensor", 9000)));
    let two = with(service("heat", system("sensor", 9002)), "/interfaces", json!(["HTTP-INSECURE-JSON", "HTTP-INSECURE-XML"]));
    let second = cloud.register(&two);
    cloud.register_system("display", 9001);
    (cloud, first["provider"]["id"].clone(), second["provider"]["id"].clone())
}

#[test]
fn a_rule_is_made_shown_and_removed_by_its_id_or_by_what_it_is_about() {
    let (cloud, first, second) = cloud();
    assert!(done(&cloud, "auth list").contains("nobody may use any service"));
    for provider in [&first, &second] {
        done(&cloud, &format!("auth add --consumer display --provider {provider} --service heat"));
    }
    has_row(&done(&cloud, "auth list"), &["display", "sensor", "heat", "HTTP-INSECURE-JSON, HTTP-INSECURE-XML"]);
    assert_eq!(json(&cloud, &format!("auth list --provider {first}"))["count"], 1);
    assert_eq!(json(&cloud, "auth list --consumer display --service HEAT")["count"], 2);
    has_row(&done(&cloud, "auth show 1"), &["consumer", "display at 127.0.0.1:9001"]);

    let ambiguous = super::bodkin(&cloud, "auth remove --consumer display --provider sensor --service heat");
    assert_eq!(ambiguous.status.code(), Some(1));
    assert!(super::text(&ambiguous.stderr).contains("name the systems by their ids"));
    done(&cloud, &format!("auth remove --consumer display --provider {second} --service heat"));
    assert_eq!(json(&cloud, "auth list")["data"][0]["providerSystem"]["id"], first);
    assert_eq!(json(&cloud, "auth remove 1")["removed"]["id"], 1);
    assert_eq!(json(&cloud, "auth list")["count"], 0);
}

#[test]
fn a_test_says_who_may_use_what_over_what_and_why_not() {
    let (cloud, first, second) = cloud();
    let denied = ended(&cloud, "auth test --consumer display --service heat", 3);
    has_row(&denied, &["127.0.0.1:9000", "DENIED", "no rule allows it"]);
    assert!(denied.contains("to make a rule: bodkin auth add --consumer"), "{denied}");
    assert!(denied.lines().all(|line| line.chars().count() <= WIDTH_MAX), "{denied}");

    done(&cloud, &format!("auth add --consumer display --provider {second} --service heat --interface HTTP-INSECURE-XML"));
    let mixed = done(&cloud, "auth test --consumer display --service heat");
    has_row(&mixed, &["127.0.0.1:9000", "DENIED"]);
    has_row(&mixed, &["127.0.0.1:9002", "HTTP-INSECURE-XML", "rule 1 allows HTTP-INSECURE-XML only"]);
    ended(&cloud, &format!("auth test --consumer display --service heat --provider {first}"), 3);
    ended(&cloud, "auth test --consumer display --service heat --interface HTTP-INSECURE-JSON", 3);
    let allowed = json(&cloud, "auth test --consumer display --service heat --interface HTTP-INSECURE-XML");
    assert_eq!((&allowed["outcome"], &allowed["serviceCount"]), (&json!("granted"), &json!(2)));
    let given =
        allowed["services"].as_array().expect("services").iter().find(|service| service["verdict"] == "passed").expect("one is given");
    assert_eq!(
        (given["interfaces"].as_array().map(Vec::len), &given["interfaces"][0]["interfaceName"]),
        (Some(1), &json!("HTTP-INSECURE-XML"))
    );
    let rule = given["steps"].as_array().expect("steps").last().expect("a step");
    assert_eq!((&rule["criterion"], &rule["row"], &rule["verdict"]), (&json!("authorization-rule"), &json!(1), &json!("passed")));
    assert!(ended(&cloud, "auth test --consumer display --service cold", 1).contains("nobody offers cold"));
    assert!(ended(&cloud, "auth test --consumer nobody --service heat", 1).contains("no system nobody is registered"));
    assert!(ended(&cloud, "auth test --consumer sensor --service heat", 1).contains("several systems are named sensor"));
}

#[test]
fn an_explanation_tells_every_rule_and_what_it_found() {
    let (cloud, _, second) = cloud();
    done(&cloud, &format!("auth add --consumer display --provider {second} --service heat --interface HTTP-INSECURE-XML"));
    let told = ended(&cloud, "auth explain --consumer display --service heat --interface HTTP-INSECURE-JSON", 3);
    assert!(told.contains("DENIED: heat is offered, but no rule lets display use it"), "{told}");
    has_row(&told, &["the request", "consumer", "the system display", "display at 127.0.0.1:9001", "passed"]);
    has_row(&told, &["the request", "service-definition", "2 are registered", "passed"]);
    has_row(&told, &["sensor at 127.0.0.1:9000", "authorization-rule", "no rule allows it", "REFUSED"]);
    has_row(&told, &["sensor at 127.0.0.1:9002", "authorization-rule", "rule 1 allows HTTP-INSECURE-XML only", "REFUSED"]);
    let told = done(&cloud, "auth explain --consumer display --service heat --provider sensor --interface HTTP-INSECURE-XML");
    has_row(&told, &["sensor at 127.0.0.1:9000", "interface", "HTTP-INSECURE-XML", "HTTP-INSECURE-JSON", "REFUSED"]);
    has_row(&told, &["sensor at 127.0.0.1:9002", "authorization-rule", "rule 1 allows it", "passed"]);
}

#[test]
fn the_rules_of_access_are_explained_for_a_caller_and_a_path() {
    let cloud = Cloud::shared();
    let told = ended(&cloud, "auth access --caller sensor --path /serviceregistry/mgmt", 3);
    assert!(told.contains("sensor.default-insecure-cloud.default-operator.arrowhead.eu may NOT GET /serviceregistry/mgmt"), "{told}");
    assert!(told.contains("insecure mode"), "{told}");
    has_row(&told, &["operation", "sysop", "this is for sysop only", "REFUSED"]);
    done(&cloud, "auth access --caller sysop --path /serviceregistry/mgmt");
    let register = "auth access --caller sensor --method post --path /serviceregistry/register --service heat --system";
    done(&cloud, &format!("{register} sensor"));
    has_row(&ended(&cloud, &format!("{register} other"), 3), &["request", "in the name of other", "REFUSED"]);
    let foreign = ended(&cloud, "auth access --caller sensor.elsewhere.operator.arrowhead.eu --path /serviceregistry/echo", 3);
    has_row(&foreign, &["certificate", "the certificate names no system of this cloud", "REFUSED"]);
    done(&cloud, "auth access --caller sensor --path /metrics");
    ended(&cloud, "auth access --caller sensor --path /api/v1/stages", 3);
    ended(&cloud, "auth access --caller gateway --method POST --path /orchestrator/orchestration --external", 3);
    done(&cloud, "auth access --caller gatekeeper --method POST --path /orchestrator/orchestration --external");
}

#[test]
fn other_clouds_have_rules_of_their_own() {
    let provider = json!({"id": 5, "systemName": "sensor", "address": "127.0.0.1", "port": 9000});
    let definition = json!({"id": 3, "serviceDefinition": "heat"});
    let interfaces = json!([{"id": 2, "interfaceName": "HTTP-INSECURE-JSON"}]);
    let rule = json!({"id": 6, "cloud": {"id": 9, "operator": "aitia", "name": "one"}, "provider": provider, "serviceDefinition": definition,
        "interfaces": interfaces});
    let offered = json!({"id": 7, "serviceDefinition": definition, "provider": provider, "serviceUri": "", "secure": "NOT_SECURE", "version": 1,
        "interfaces": interfaces});
    let rules = json!({"data": [rule], "count": 1});
    let double = Double::start(vec![
        ("GET /authorization/mgmt/intercloud?page=0&item_per_page=100", 200, rules.clone()),
        ("GET /authorization/mgmt/intercloud/6", 200, rule.clone()),
        ("POST /authorization/mgmt/intercloud", 201, rules),
        ("DELETE /authorization/mgmt/intercloud/6", 200, Value::Null),
        ("GET /serviceregistry/mgmt/systems/5", 200, provider),
        ("GET /serviceregistry/mgmt/services", 200, json!({"data": [definition], "count": 1})),
        ("GET /serviceregistry/mgmt/servicedef/heat", 200, json!({"data": [offered], "count": 1})),
    ]);
    has_row(&asked(&double, "auth intercloud list --page 0", 0).0, &["6", "one.aitia", "sensor", "heat"]);
    has_row(&asked(&double, "auth intercloud show 6", 0).0, &["cloud", "one.aitia, id 9"]);
    let (_, requests) = asked(&double, "auth intercloud add --cloud 9 --provider 5 --service heat", 0);
    let form = json!({"cloudId": 9, "providerIdList": [5], "serviceDefinitionIdList": [3], "interfaceIdList": [2]});
    assert_eq!(requests.last().expect("a POST").body, form);
    let (_, requests) = asked(&double, "auth intercloud remove 6", 0);
    assert_eq!(lines(&requests).last(), Some(&"DELETE /authorization/mgmt/intercloud/6"));
}

#[test]
fn what_another_cloud_may_use_is_told_with_the_reason() {
    // Other clouds are the Gatekeeper's to make; rules may name the own one too.
    let (cloud, first, second) = cloud();
    let test = "auth intercloud test --cloud default-operator/default-insecure-cloud --service heat --provider";
    let denied = ended(&cloud, &format!("{test} sensor"), 3);
    has_row(&denied, &["127.0.0.1:9000", "DENIED", "no rule allows it"]);
    assert!(
        denied.contains(
            "to make a rule: bodkin auth intercloud add --cloud default-insecure-cloud.default-operator --provider ID --service heat"
        ),
        "{denied}"
    );
    done(&cloud, &format!("auth intercloud add --cloud 1 --provider {second} --service heat --interface HTTP-INSECURE-XML"));
    has_row(&done(&cloud, &format!("{test} {second}")), &["127.0.0.1:9002", "HTTP-INSECURE-XML", "rule 1 allows HTTP-INSECURE-XML only"]);
    ended(&cloud, &format!("{test} {first}"), 3);
    let unknown = "auth intercloud test --cloud somebody/elsewhere --service heat --provider sensor";
    assert!(ended(&cloud, unknown, 1).contains("no cloud elsewhere of somebody is known"));
}
