//! Authorization: inter-cloud rules, their check, and tokens for several services (reference section 4).
//!
//! Other clouds are made by the Gatekeeper; the own cloud is there from the start, and rules may name it.

use serde_json::{Value, json};

use super::authorization::Cast;
use super::table::{ARROWHEAD, Row, check};
use crate::support::arrowhead::{list, number, system, with, without};
use crate::support::cloud::{Cloud, Launch};

const RULES: &str = "/authorization/mgmt/intercloud";
const CHECK: &str = "/authorization/intercloud/check";
const OWN_CLOUD_ID: i64 = 1;

/// One provider, one definition, one interface.
fn rule(cast: &Cast) -> Value {
    json!({"cloudId": OWN_CLOUD_ID, "providerIdList": [cast.providers[0]],
        "serviceDefinitionIdList": [cast.definitions[0]], "interfaceIdList": [cast.interfaces[0]]})
}

#[test]
fn a_rule_is_created_read_listed_and_deleted() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "inter-life");
    let created = cloud.post(RULES, &rule(&cast)).expect_status(201).json();
    assert_eq!(created["count"], 1);
    let id = number(&created, "/data/0/id");
    let read = cloud.get(&format!("{RULES}/{id}")).expect_status(200).json();
    let mut members: Vec<&str> = read.as_object().expect("an object").keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(members, ["cloud", "createdAt", "id", "interfaces", "provider", "serviceDefinition", "updatedAt"]);
    assert!(list(&cloud.get(RULES).json(), "/data").contains(&read), "{read}");
    check(
        &cloud,
        &[
            Row::get("read", format!("{RULES}/{id}"))
                .is("/cloud/id", OWN_CLOUD_ID)
                .is("/cloud/operator", "default-operator")
                .is("/cloud/name", "default-insecure-cloud")
                .is("/cloud/ownCloud", true)
                .is("/cloud/secure", false)
                .is("/cloud/neighbor", false)
                .is("/cloud/authenticationInfo", Value::Null)
                .is("/provider/id", cast.providers[0])
                .is("/serviceDefinition/serviceDefinition", "inter-life-one")
                .has_length("/interfaces", 1),
            Row::get("by page", format!("{RULES}?page=0&item_per_page=1&direction=desc")).has_length("/data", 1),
            Row::get("half a page", format!("{RULES}?page=0")).bad_payload(RULES),
            Row::delete("delete", format!("{RULES}/{id}")).void(),
            Row::get("it is gone", format!("{RULES}/{id}")).invalid_parameter(),
            Row::delete("delete again", format!("{RULES}/{id}")).invalid_parameter(),
            Row::get("id 0", format!("{RULES}/0")).bad_payload(format!("{RULES}/{{id}}")),
            Row::delete("id 0", format!("{RULES}/0")).bad_payload(format!("{RULES}/{{id}}")),
        ],
    );
}

#[test]
fn shapes_and_ids_are_checked_as_those_of_intracloud_rules() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "inter-shape");
    let bad = |claim: &str, rule: Value| Row::post(claim, RULES, &rule).bad_payload(RULES);
    let unknown = |pointer: &str, value: Value| Row::post(pointer, RULES, &with(rule(&cast), pointer, value)).invalid_parameter();
    let both = with(with(rule(&cast), "/providerIdList", json!(cast.providers)), "/serviceDefinitionIdList", json!(cast.definitions));
    let definitions = with(rule(&cast), "/serviceDefinitionIdList", json!(cast.definitions));
    let providers = with(with(rule(&cast), "/providerIdList", json!(cast.providers)), "/interfaceIdList", json!(cast.interfaces));
    check(
        &cloud,
        &[
            bad("no cloud", without(rule(&cast), "/cloudId")),
            bad("cloud 0", with(rule(&cast), "/cloudId", 0)),
            bad("no providers", without(rule(&cast), "/providerIdList")),
            bad("empty definitions", with(rule(&cast), "/serviceDefinitionIdList", json!([]))),
            bad("null interfaces", with(rule(&cast), "/interfaceIdList", Value::Null)),
            bad("several providers and definitions", both),
            bad("several definitions and interfaces", with(definitions.clone(), "/interfaceIdList", json!(cast.interfaces))),
            bad(
                "the members of an intracloud rule",
                json!({"cloudId": 1, "providerIds": [1], "serviceDefinitionIds": [1], "interfaceIds": [1]}),
            ),
            unknown("/cloudId", json!(999_999_999)),
            unknown("/providerIdList", json!([999_999_999])),
            unknown("/serviceDefinitionIdList", json!([999_999_999])),
            unknown("/interfaceIdList", json!([999_999_999])),
            Row::post("one provider, two definitions", RULES, &definitions).created().is("/count", 2),
            Row::post("two providers, two interfaces", RULES, &providers)
                .created()
                .is("/count", 1)
                .is("/data/0/provider/id", cast.providers[1])
                .has_length("/data/0/interfaces", 2),
            Row::post("both are there", RULES, &providers).created().is("", json!({"data": [], "count": 0})),
        ],
    );
}

#[test]
fn a_check_answers_the_ruled_interfaces_of_the_asked_providers() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "inter-check");
    cloud.post(RULES, &rule(&cast)).expect_status(201);
    let asked = json!([
        {"id": cast.providers[1], "idList": cast.interfaces}, {"id": cast.providers[0], "idList": cast.interfaces},
        {"id": 999_999_999, "idList": cast.interfaces}, {"id": null, "idList": null},
    ]);
    let form = json!({"cloud": {"operator": "DEFAULT-operator", "name": "default-insecure-cloud "},
        "serviceDefinition": "inter-check-ONE", "providerIdsWithInterfaceIds": asked});
    let bad = |pointer: &str, value: Value| Row::post(pointer, CHECK, &with(form.clone(), pointer, value)).bad_payload(CHECK);
    check(
        &cloud,
        &[
            Row::post("one provider, one interface", CHECK, &form)
                .is("/cloud/id", OWN_CLOUD_ID)
                .is("/serviceDefinition", "inter-check-ONE")
                .is("/authorizedProviderIdsWithInterfaceIds", json!([{"id": cast.providers[0], "idList": [cast.interfaces[0]]}])),
            Row::post("no rule", CHECK, &with(form.clone(), "/serviceDefinition", "inter-check-two"))
                .is("/authorizedProviderIdsWithInterfaceIds", json!([])),
            bad("/cloud", Value::Null),
            bad("/cloud/operator", json!(" ")),
            bad("/cloud/name", Value::Null),
            bad("/serviceDefinition", json!("")),
            bad("/providerIdsWithInterfaceIds", json!([])),
            Row::post("unknown cloud", CHECK, &with(form.clone(), "/cloud/name", "inter-no-such")).invalid_parameter(),
            Row::post("unknown definition", CHECK, &with(form, "/serviceDefinition", "inter-no-such")).invalid_parameter(),
        ],
    );
}

#[test]
fn rules_go_with_their_provider() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "inter-cascade");
    let id = number(&cloud.post(RULES, &rule(&cast)).expect_status(201).json(), "/data/0/id");
    cloud.delete(&format!("/serviceregistry/mgmt/systems/{}", cast.providers[0])).expect_status(200);
    check(&cloud, &[Row::get("it is gone", format!("{RULES}/{id}")).invalid_parameter()]);
}

#[test]
fn tokens_for_several_services_are_a_failure_of_an_insecure_cloud() {
    let cloud = Cloud::shared();
    let request = json!([{"consumer": system("token-consumer", 9552), "service": "token-service", "providers": []}]);
    check(
        &cloud,
        &[
            Row::post("tokens", "/authorization/token/multi", &request).refused(500, ARROWHEAD),
            Row::post("not a list", "/authorization/token/multi", &json!({})).empty(400),
            Row::post("not an object", "/authorization/token", &json!([])).empty(400),
        ],
    );
}

#[test]
fn rules_and_the_own_cloud_survive_a_restart() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let cloud = Launch::new().data(data.path()).start();
    let cast = Cast::new(&cloud, "inter-restart");
    let id = number(&cloud.post(RULES, &rule(&cast)).expect_status(201).json(), "/data/0/id");
    let before = cloud.get(&format!("{RULES}/{id}")).json();
    cloud.kill();
    let cloud = Launch::new().data(data.path()).start();
    assert_eq!(cloud.get(&format!("{RULES}/{id}")).json(), before);
}
