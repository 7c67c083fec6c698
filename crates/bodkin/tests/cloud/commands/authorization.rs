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
    let verdict = &allowed["verdicts"][0];
    assert_eq!((&verdict["allowed"], &verdict["rule"], &verdict["interfaces"]), (&json!(true), &json!(1), &json!(["HTTP-INSECURE-XML"])));
    ended(&cloud, "auth test --consumer display --service cold", 1);
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
        ("POST /serviceregistry/query", 200, json!({"serviceQueryData": [offered], "unfilteredHits": 1})),
        ("POST /authorization/intercloud/check", 200, json!({"authorizedProviderIdsWithInterfaceIds": [{"id": 5, "idList": [2]}]})),
    ]);
    has_row(&asked(&double, "auth intercloud list --page 0", 0).0, &["6", "one.aitia", "sensor", "heat"]);
    has_row(&asked(&double, "auth intercloud show 6", 0).0, &["cloud", "one.aitia, id 9"]);
    let (_, requests) = asked(&double, "auth intercloud add --cloud 9 --provider 5 --service heat", 0);
    let form = json!({"cloudId": 9, "providerIdList": [5], "serviceDefinitionIdList": [3], "interfaceIdList": [2]});
    assert_eq!(requests.last().expect("a POST").body, form);
    let (told, requests) = asked(&double, "auth intercloud test --cloud aitia/one --provider 5 --service heat", 0);
    assert!(told.contains("one.aitia may use heat of sensor"), "{told}");
    let form = json!({"cloud": {"operator": "aitia", "name": "one"}, "serviceDefinition": "heat",
        "providerIdsWithInterfaceIds": [{"id": 5, "idList": [2]}]});
    assert_eq!(requests.last().expect("a check").body, form);
    let (_, requests) = asked(&double, "auth intercloud remove 6", 0);
    assert_eq!(lines(&requests).last(), Some(&"DELETE /authorization/mgmt/intercloud/6"));
}
