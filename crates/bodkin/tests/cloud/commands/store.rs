//! What `bodkin rule` asks, and what it makes of the answers.

use serde_json::{Value, json};

use super::{asked, bodkin, done, ended, has_row, lines, text};
use crate::support::arrowhead::{service, system, with};
use crate::support::cloud::Launch;
use crate::support::double::{Double, Row};

fn display() -> Value {
    json!({"id": 4, "systemName": "display", "address": "127.0.0.1", "port": 9001})
}

fn sensor() -> Value {
    json!({"id": 5, "systemName": "sensor", "address": "127.0.0.1", "port": 9000})
}

fn heat() -> Value {
    json!({"id": 7, "serviceDefinition": {"id": 3, "serviceDefinition": "heat"}, "provider": sensor(), "serviceUri": "/heat",
        "secure": "NOT_SECURE", "version": 1, "interfaces": [{"id": 2, "interfaceName": "HTTP-INSECURE-JSON"}]})
}

fn entry(id: i64, priority: i64) -> Value {
    json!({"id": id, "serviceDefinition": {"id": 3, "serviceDefinition": "heat"}, "consumerSystem": display(), "foreign": false,
        "providerSystem": sensor(), "providerCloud": null, "serviceInterface": {"id": 2, "interfaceName": "HTTP-INSECURE-JSON"},
        "priority": priority, "attribute": null})
}

fn entries() -> Value {
    json!({"data": [entry(11, 1), entry(12, 2), entry(13, 3)], "count": 3})
}

fn table() -> Vec<Row> {
    vec![
        ("GET /orchestrator/mgmt/store", 200, entries()),
        ("GET /orchestrator/mgmt/store/all_top_priority", 200, json!({"data": [entry(11, 1)], "count": 1})),
        ("GET /orchestrator/mgmt/store/12", 200, entry(12, 2)),
        ("POST /orchestrator/mgmt/store/all_by_consumer", 200, entries()),
        ("POST /orchestrator/mgmt/store/modify_priorities", 200, Value::Null),
        ("POST /orchestrator/mgmt/store", 200, json!({"data": [entry(14, 4)], "count": 1})),
        ("DELETE /orchestrator/mgmt/store/12", 200, Value::Null),
        ("GET /serviceregistry/mgmt/systems/4", 200, display()),
        ("GET /serviceregistry/mgmt/systems/5", 200, sensor()),
        ("GET /serviceregistry/mgmt/servicedef/heat", 200, json!({"data": [heat()], "count": 1})),
        ("GET /serviceregistry/mgmt/services", 200, json!({"data": [{"id": 3, "serviceDefinition": "heat"}], "count": 1})),
        ("GET /serviceregistry/mgmt/interfaces", 200, json!({"data": [{"id": 2, "interfaceName": "HTTP-INSECURE-JSON"}], "count": 1})),
    ]
}

#[test]
fn rules_are_listed_shown_and_removed() {
    let double = Double::start(table());
    has_row(&asked(&double, "rule list", 0).0, &["12", "display", "heat", "HTTP-INSECURE-JSON", "2", "sensor at 127.0.0.1:9000"]);
    let (_, requests) = asked(&double, "rule list --top", 0);
    assert_eq!(lines(&requests), ["GET /orchestrator/mgmt/store/all_top_priority"]);
    let (_, requests) = asked(&double, "rule list --consumer 4 --service heat", 0);
    let form = json!({"consumerSystemId": 4, "serviceDefinitionName": "heat", "serviceInterfaceName": null});
    assert_eq!(requests.last().expect("a POST").body, form);
    has_row(&asked(&double, "rule show 12", 0).0, &["priority", "2"]);
    let (told, requests) = asked(&double, "rule remove 12", 0);
    assert!(told.contains("removed: rule 12: display is sent to sensor"), "{told}");
    assert_eq!(lines(&requests).last(), Some(&"DELETE /orchestrator/mgmt/store/12"));
}

#[test]
fn a_rule_is_added_at_a_priority() {
    let double = Double::start(table());
    let (told, requests) = asked(&double, "rule add --consumer 4 --service heat --provider 5 --priority 2 --attribute a=b", 0);
    assert!(told.contains("rule 14: display is sent to sensor at 127.0.0.1:9000 for heat over HTTP-INSECURE-JSON, priority 4"), "{told}");
    let form = json!([{"serviceDefinitionName": "heat", "consumerSystemId": 4,
        "providerSystem": {"systemName": "sensor", "address": "127.0.0.1", "port": 9000}, "cloud": null,
        "serviceInterfaceName": "HTTP-INSECURE-JSON", "priority": 2, "attribute": {"a": "b"}}]);
    assert_eq!(requests.last().expect("a POST").body, form);
    let foreign = "rule add --consumer 4 --service heat --provider s@10.0.0.1:7 --cloud aitia/one";
    asked(&double, foreign, 2);
    let (_, requests) = asked(&double, &format!("{foreign} --interface HTTP-INSECURE-JSON"), 0);
    let form = &requests.last().expect("a POST").body[0];
    assert_eq!((&form["cloud"]["name"], &form["providerSystem"]["port"]), (&json!("one"), &json!(7)));
}

#[test]
fn a_rule_asks_for_the_interface_that_the_provider_has() {
    let cloud = Launch::new().start();
    cloud.register_system("display", 9001);
    cloud.register_system("probe", 9003);
    let (secure, insecure) = ("HTTP-SECURE-JSON", "HTTP-INSECURE-JSON");
    for (provider, port, interfaces) in [("sensor", 9000, vec![secure]), ("gauge", 9002, vec![secure, insecure])] {
        cloud.register(&with(service("heat", system(provider, port)), "/interfaces", interfaces));
    }
    let refused = |line: &str| text(&bodkin(&cloud, line).stderr);
    let line = |provider: &str| format!("rule add --consumer display --service heat --provider {provider}");
    assert!(done(&cloud, &line("sensor")).contains("over HTTP-SECURE-JSON, priority 1"));
    let several = refused(&line("gauge"));
    assert!(several.contains("HTTP-INSECURE-JSON, HTTP-SECURE-JSON: choose one by --interface"), "{several}");
    assert!(done(&cloud, &format!("{} --interface http-insecure-json", line("gauge"))).contains("over HTTP-INSECURE-JSON"));
    let none = refused(&line("probe"));
    assert!(none.contains("probe at 127.0.0.1:9003 offers no service heat yet"), "{none}");
}

/// The Orchestrator leaves out what it does not take, without an error.
#[test]
fn a_rule_that_was_not_taken_is_a_failure() {
    let mut rows = table();
    rows.retain(|row| row.0 != "POST /orchestrator/mgmt/store");
    rows.push(("POST /orchestrator/mgmt/store", 200, json!({"data": [], "count": 0})));
    let double = Double::start(rows);
    asked(&double, "rule add --consumer 4 --service heat --provider 5", 1);
    asked(&double, "rule add --consumer 4 --service cold --provider 5", 1);
}

#[test]
fn a_move_names_the_priorities_of_the_whole_group() {
    let double = Double::start(table());
    let (_, requests) = asked(&double, "rule move 12 1", 0);
    let told = requests.iter().find(|asked| asked.line.ends_with("modify_priorities")).expect("the priorities are set");
    assert_eq!(told.body, json!({"priorityMap": {"12": 1, "11": 2, "13": 3}}));
    let (_, requests) = asked(&double, "rule move 12 4", 1);
    assert!(requests.iter().all(|asked| !asked.line.ends_with("modify_priorities")), "there are three");
}

#[test]
fn a_test_says_which_rule_is_used_and_what_keeps_the_others() {
    let cloud = Launch::new().start();
    cloud.register_system("display", 9001);
    for (provider, port) in [("sensor", 9000), ("probe", 9002)] {
        cloud.register(&service("heat", system(provider, port)));
        done(&cloud, &format!("rule add --consumer display --service heat --provider {provider}"));
    }
    let line = "rule test --consumer display --service heat";
    let denied = ended(&cloud, line, 3);
    has_row(&denied, &["1", "sensor", "NO", "no rule allows it"]);
    assert!(denied.contains("no provider that the orchestration store names for display can be used"), "{denied}");
    let (store, interface) = ("orchestrate heat --consumer display --store", "--interface HTTP-INSECURE-JSON");
    assert!(ended(&cloud, &format!("{store} {interface}"), 3).contains("no rule lets display use it"));

    for provider in ["sensor", "probe"] {
        done(&cloud, &format!("auth add --consumer display --provider {provider} --service heat"));
    }
    let both = done(&cloud, line);
    has_row(&both, &["1", "sensor", "yes", "rule 1 allows it"]);
    has_row(&both, &["2", "probe", "yes", "sensor is the one"]);
    has_row(&done(&cloud, "rule test --consumer display"), &["1", "sensor", "yes"]);
    has_row(
        &done(&cloud, &format!("{store} {interface} --explain")),
        &["probe at 127.0.0.1:9002", "matchmaking", "sensor is the one", "REFUSED"],
    );

    for (provider, port) in [("sensor", 9000), ("probe", 9002)] {
        let gone = format!(
            "/serviceregistry/unregister?service_definition=heat&system_name={provider}&address=127.0.0.1&port={port}&service_uri="
        );
        cloud.delete(&gone).expect_status(200);
    }
    has_row(&ended(&cloud, line, 1), &["1", "sensor", "NO", "its provider does not offer the service"]);
    ended(&cloud, "rule test --consumer display --service cold", 1);
}

#[test]
fn flexible_rules_are_made_of_names_and_metadata() {
    let rule = json!({"id": 3, "consumerSystem": {"systemName": null, "metadata": {"room": "7"}},
        "providerSystem": {"systemName": "sensor", "metadata": null}, "serviceDefinition": {"id": 3, "serviceDefinition": "heat"},
        "serviceInterface": null, "serviceMetadata": null, "priority": 2_147_483_647});
    let by_name = with(with(with(rule.clone(), "/id", 4), "/serviceDefinition", "cold"), "/serviceInterface", "HTTP-INSECURE-JSON");
    let rules = json!({"data": [rule, by_name], "count": 2});
    let double = Double::start(vec![
        ("GET /orchestrator/mgmt/store/flexible", 200, rules.clone()),
        ("POST /orchestrator/mgmt/store/flexible", 201, rules),
        ("DELETE /orchestrator/mgmt/store/flexible/3", 200, Value::Null),
        ("DELETE /orchestrator/store/flexible/all", 200, Value::Null),
    ]);
    has_row(&asked(&double, "rule flexible list", 0).0, &["3", "any with room=7", "heat", "any", "sensor"]);
    has_row(&asked(&double, "rule flexible list", 0).0, &["4", "any with room=7", "cold", "HTTP-INSECURE-JSON"]);
    has_row(&asked(&double, "rule flexible show 3", 0).0, &["consumer", "any with room=7"]);
    let (_, requests) = asked(&double, "rule flexible add --service heat --consumer-metadata room=7 --provider sensor", 0);
    let form = json!([{"consumerSystem": {"systemName": null, "metadata": {"room": "7"}},
        "providerSystem": {"systemName": "sensor", "metadata": null}, "serviceDefinitionName": "heat", "serviceInterfaceName": null,
        "serviceMetadata": null, "priority": null}]);
    assert_eq!(requests[0].body, form);
    let (_, requests) = asked(&double, "rule flexible remove 3", 0);
    assert_eq!(lines(&requests).last(), Some(&"DELETE /orchestrator/mgmt/store/flexible/3"));
    let (_, requests) = asked(&double, "rule flexible remove --all", 0);
    assert_eq!(lines(&requests).last(), Some(&"DELETE /orchestrator/store/flexible/all"));
    asked(&double, "rule flexible remove", 2);
    asked(&double, "rule flexible add --service heat --provider sensor", 2);
}
