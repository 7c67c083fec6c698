//! Service Registry: unregister and unregister-system (reference section 3.3).

use serde_json::json;

use super::table::{Row, check};
use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, subscription, system, texts, with};
use crate::support::cloud::Cloud;

fn target(definition: &str, name: &str, port: u16, uri: &str) -> String {
    format!(
        "/serviceregistry/unregister?service_definition={definition}&system_name={name}&address=127.0.0.1&port={port}&service_uri={uri}"
    )
}

fn system_target(name: &str, port: u16) -> String {
    format!("/serviceregistry/unregister-system?system_name={name}&address=127.0.0.1&port={port}")
}

#[test]
fn every_miss_is_an_invalid_parameter() {
    let cloud = Cloud::shared();
    cloud.register(&with(service("unreg-miss", system("unreg-miss", 9101)), "/serviceUri", "/x"));
    cloud.register(&service("unreg-miss-other", system("unreg-miss-other", 9101)));
    let misses = [
        ("unknown definition", target("unreg-no-such", "unreg-miss", 9101, "/x")),
        ("unknown system", target("unreg-miss", "unreg-no-such", 9101, "/x")),
        ("another port", target("unreg-miss", "unreg-miss", 9102, "/x")),
        ("another URI", target("unreg-miss", "unreg-miss", 9101, "/y")),
        ("another case of URI", target("unreg-miss", "unreg-miss", 9101, "/X")),
        ("no entry of that system", target("unreg-miss", "unreg-miss-other", 9101, "/x")),
    ];
    check(&cloud, &misses.map(|(claim, target)| Row::delete(claim, target).invalid_parameter()));
    let rows = [
        Row::delete("negative port", target("unreg-miss", "unreg-miss", 9101, "/x").replace("9101", "-1")).refused_as_any(400),
        Row::delete("port 65536", target("unreg-miss", "unreg-miss", 9101, "/x").replace("9101", "65536")).refused_as_any(400),
        Row::delete("blank definition", target("", "unreg-miss", 9101, "/x")).refused_as_any(400),
        Row::delete("blank system name", target("unreg-miss", "%20", 9101, "/x")).refused_as_any(400),
    ];
    check(&cloud, &rows);
    assert_eq!(cloud.query(&json!({"serviceDefinitionRequirement": "unreg-miss"}))["unfilteredHits"], 1);
}

#[test]
fn only_the_entry_goes_and_its_system_and_definition_stay() {
    let cloud = Cloud::shared();
    let entry = cloud.register(&with(service("unreg-entry", system("unreg-entry", 9103)), "/serviceUri", "/a b?c"));
    cloud.register(&service("unreg-entry", system("unreg-entry", 9103)));
    let (id, system_id, definition_id) = (number(&entry, "/id"), number(&entry, "/provider/id"), number(&entry, "/serviceDefinition/id"));
    check(
        &cloud,
        &[
            Row::delete("names in any case", target("UNREG-Entry", "Unreg-ENTRY", 9103, "%2Fa+b%3Fc")).void(),
            Row::get("the entry is gone", format!("/serviceregistry/mgmt/{id}")).invalid_parameter(),
            Row::get("the system stays", format!("/serviceregistry/mgmt/systems/{system_id}")).is("/systemName", "unreg-entry"),
            Row::get("the definition stays", format!("/serviceregistry/mgmt/services/{definition_id}"))
                .is("/serviceDefinition", "unreg-entry"),
            Row::delete("a second time", target("unreg-entry", "unreg-entry", 9103, "%2Fa+b%3Fc")).invalid_parameter(),
            Row::delete("the empty URI", target("unreg-entry", "unreg-entry", 9103, "")).void(),
        ],
    );
    assert_eq!(cloud.query(&json!({"serviceDefinitionRequirement": "unreg-entry"}))["unfilteredHits"], 0);
}

#[test]
fn without_a_service_uri_the_empty_one_is_meant_or_else_the_only_one() {
    let cloud = Cloud::shared();
    let without_uri = |port: u16| target("unreg-old", "unreg-old", port, "").replace("&service_uri=", "");
    let entry =
        |port: u16, uri: &str| number(&cloud.register(&with(service("unreg-old", system("unreg-old", port)), "/serviceUri", uri)), "/id");
    let (empty, other) = (entry(9105, ""), entry(9105, "/other"));
    entry(9106, "/a");
    entry(9106, "/b");
    let shown = |claim: &str, id: i64| Row::get(claim, format!("/serviceregistry/mgmt/{id}"));
    check(
        &cloud,
        &[
            Row::delete("the empty one", without_uri(9105)).void(),
            shown("it is gone", empty).invalid_parameter(),
            shown("the other stays", other),
            Row::delete("the only one", without_uri(9105)).void(),
            shown("it is gone too", other).invalid_parameter(),
            Row::delete("none is left", without_uri(9105)).invalid_parameter(),
            Row::delete("one of two", without_uri(9106)).invalid_parameter(),
        ],
    );
    assert_eq!(cloud.query(&json!({"serviceDefinitionRequirement": "unreg-old"}))["unfilteredHits"], 2);
}

#[test]
fn an_unregistered_system_takes_all_its_rows_along() {
    let cloud = Cloud::shared();
    let provider = cloud.register(&service("unreg-cascade", system("unreg-cascade-p", 9104)));
    let consumer_id = cloud.register_system("unreg-cascade-c", 9104);
    let (provider_id, definition_id) = (number(&provider, "/provider/id"), number(&provider, "/serviceDefinition/id"));
    let rule = cloud.allow(consumer_id, provider_id, definition_id, &[INSECURE_JSON_ID]);
    cloud.subscribe(&subscription("unreg-cascade", system("unreg-cascade-p", 9104), "/notify"));
    let subscriptions = cloud.get("/eventhandler/mgmt/subscriptions").json();
    let own = list(&subscriptions, "/data")
        .iter()
        .find(|row| row["subscriberSystem"]["systemName"] == "unreg-cascade-p")
        .expect("the subscription is there");
    let subscription_id = number(own, "/id");
    check(
        &cloud,
        &[
            Row::delete("unknown", system_target("unreg-no-such", 9104)).invalid_parameter(),
            Row::delete("the provider", system_target("UNREG-cascade-p", 9104)).void(),
            Row::get("its system", format!("/serviceregistry/mgmt/systems/{provider_id}")).invalid_parameter(),
            Row::get("its entry", format!("/serviceregistry/mgmt/{}", number(&provider, "/id"))).invalid_parameter(),
            Row::get("its rule", format!("/authorization/mgmt/intracloud/{rule}")).invalid_parameter(),
            Row::get("its subscription", format!("/eventhandler/mgmt/subscriptions/{subscription_id}")).invalid_parameter(),
            Row::get("the definition stays", format!("/serviceregistry/mgmt/services/{definition_id}")),
            Row::get("the consumer stays", format!("/serviceregistry/mgmt/systems/{consumer_id}")),
            Row::delete("a second time", system_target("unreg-cascade-p", 9104)).invalid_parameter(),
        ],
    );
    let systems = cloud.get("/serviceregistry/mgmt/systems").json();
    assert!(!texts(list(&systems, "/data"), "/systemName").contains(&"unreg-cascade-p".to_string()));
}
