//! Authorization: intra-cloud rules (reference section 4).

use serde_json::{Value, json};

use super::table::{ARROWHEAD, Row, check};
use crate::support::arrowhead::{INSECURE_JSON_ID, list, number, service, system, with, without};
use crate::support::cloud::Cloud;

const RULES: &str = "/authorization/mgmt/intracloud";

/// Ids of a consumer, two providers, two definitions and two interfaces, under names of the test's own.
pub struct Cast {
    pub consumer: i64,
    pub providers: [i64; 2],
    pub definitions: [i64; 2],
    pub interfaces: [i64; 2],
}

impl Cast {
    pub fn new(cloud: &Cloud, name: &str) -> Self {
        let interfaces = json!(["HTTP-INSECURE-JSON", "HTTP-INSECURE-XML"]);
        let entry = |which: &str| {
            let entry = service(&format!("{name}-{which}"), system(&format!("{name}-{which}"), 9501));
            cloud.register(&with(entry, "/interfaces", interfaces.clone()))
        };
        let (one, two) = (entry("one"), entry("two"));
        Self {
            consumer: cloud.register_system(&format!("{name}-consumer"), 9501),
            providers: [number(&one, "/provider/id"), number(&two, "/provider/id")],
            definitions: [number(&one, "/serviceDefinition/id"), number(&two, "/serviceDefinition/id")],
            interfaces: [number(&one, "/interfaces/0/id"), number(&one, "/interfaces/1/id")],
        }
    }

    /// One provider, one definition, one interface.
    fn rule(&self) -> Value {
        json!({"consumerId": self.consumer, "providerIds": [self.providers[0]],
            "serviceDefinitionIds": [self.definitions[0]], "interfaceIds": [self.interfaces[0]]})
    }
}

#[test]
fn a_rule_is_created_read_listed_and_deleted() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "rule-life");
    let created = cloud.post(RULES, &cast.rule()).expect_status(201).json();
    assert_eq!(created["count"], 1);
    let id = number(&created, "/data/0/id");
    let read = cloud.get(&format!("{RULES}/{id}")).expect_status(200).json();
    let mut members: Vec<&str> = read.as_object().expect("an object").keys().map(String::as_str).collect();
    members.sort_unstable();
    let expected = ["consumerSystem", "createdAt", "id", "interfaces", "providerSystem", "serviceDefinition", "updatedAt"];
    assert_eq!(members, expected);
    let listed = cloud.get(RULES).json();
    assert!(list(&listed, "/data").contains(&read), "{read}");
    check(
        &cloud,
        &[
            Row::get("read", format!("{RULES}/{id}"))
                .is("/consumerSystem/id", cast.consumer)
                .is("/providerSystem/id", cast.providers[0])
                .is("/providerSystem/systemName", "rule-life-one")
                .is("/serviceDefinition/serviceDefinition", "rule-life-one")
                .has_length("/interfaces", 1)
                .is("/interfaces/0/interfaceName", "HTTP-INSECURE-JSON"),
            Row::delete("delete", format!("{RULES}/{id}")).void(),
            Row::get("it is gone", format!("{RULES}/{id}")).invalid_parameter(),
            Row::delete("delete again", format!("{RULES}/{id}")).invalid_parameter(),
            Row::get("id 0", format!("{RULES}/0")).bad_payload(format!("{RULES}/{{id}}")),
            Row::delete("id 0", format!("{RULES}/0")).bad_payload(format!("{RULES}/{{id}}")),
        ],
    );
}

#[test]
fn many_providers_get_all_interfaces_of_one_definition() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "rule-providers");
    let rule = with(with(cast.rule(), "/providerIds", json!(cast.providers)), "/interfaceIds", json!(cast.interfaces));
    check(
        &cloud,
        &[Row::post("two providers", RULES, &rule)
            .created()
            .is("/count", 2)
            .is("/data/0/providerSystem/id", cast.providers[0])
            .is("/data/1/providerSystem/id", cast.providers[1])
            .has_length("/data/0/interfaces", 2)
            .has_length("/data/1/interfaces", 2)],
    );
}

#[test]
fn one_provider_gets_many_definitions_with_one_interface() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "rule-definitions");
    let rule = with(cast.rule(), "/serviceDefinitionIds", json!(cast.definitions));
    check(
        &cloud,
        &[Row::post("two definitions", RULES, &rule)
            .created()
            .is("/count", 2)
            .is("/data/0/serviceDefinition/id", cast.definitions[0])
            .is("/data/1/serviceDefinition/id", cast.definitions[1])
            .has_length("/data/1/interfaces", 1)],
    );
}

#[test]
fn a_wrong_shape_is_a_bad_payload() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "rule-shape");
    let both = json!(cast.providers);
    let bad = |claim: &str, rule: Value| Row::post(claim, RULES, &rule).bad_payload(RULES);
    check(
        &cloud,
        &[
            bad("no consumer", without(cast.rule(), "/consumerId")),
            bad("null consumer", with(cast.rule(), "/consumerId", Value::Null)),
            bad("consumer 0", with(cast.rule(), "/consumerId", 0)),
            bad("no providers", without(cast.rule(), "/providerIds")),
            bad("empty providers", with(cast.rule(), "/providerIds", json!([]))),
            bad("no definitions", without(cast.rule(), "/serviceDefinitionIds")),
            bad("empty definitions", with(cast.rule(), "/serviceDefinitionIds", json!([]))),
            bad("no interfaces", without(cast.rule(), "/interfaceIds")),
            bad("empty interfaces", with(cast.rule(), "/interfaceIds", json!([]))),
            bad(
                "several providers and several definitions",
                with(with(cast.rule(), "/providerIds", both), "/serviceDefinitionIds", json!(cast.definitions)),
            ),
            bad(
                "several definitions and several interfaces",
                with(with(cast.rule(), "/serviceDefinitionIds", json!(cast.definitions)), "/interfaceIds", json!(cast.interfaces)),
            ),
        ],
    );
    let dropped = |pointer: &str| Row::post(format!("{pointer} empties"), RULES, &with(cast.rule(), pointer, json!([null, 0, -5])));
    let rows = ["/providerIds", "/serviceDefinitionIds", "/interfaceIds"].map(|pointer| dropped(pointer).refused_as_any(400));
    check(&cloud, &rows);
}

#[test]
fn null_and_small_ids_are_dropped_silently() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "rule-dropped");
    let rule = with(cast.rule(), "/providerIds", json!([null, 0, cast.providers[0], -1]));
    let rule = with(rule, "/interfaceIds", json!([0, cast.interfaces[0], null]));
    check(&cloud, &[Row::post("one of each is left", RULES, &rule).created().is("/count", 1).has_length("/data/0/interfaces", 1)]);
}

#[test]
fn ids_that_refer_to_nothing_are_invalid_parameters() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "rule-unknown");
    let unknown = |pointer: &str, value: Value| {
        Row::post(format!("unknown {pointer}"), RULES, &with(cast.rule(), pointer, value)).invalid_parameter()
    };
    let partly = with(cast.rule(), "/interfaceIds", json!([cast.interfaces[1], 999_999_999]));
    check(
        &cloud,
        &[
            unknown("/consumerId", json!(999_999_999)),
            unknown("/providerIds", json!([999_999_999])),
            unknown("/serviceDefinitionIds", json!([999_999_999])),
            unknown("/interfaceIds", json!([999_999_999])),
            Row::post("unknown interface beside a known one", RULES, &partly)
                .created()
                .is("/count", 1)
                .has_length("/data/0/interfaces", 1)
                .is("/data/0/interfaces/0/id", cast.interfaces[1]),
        ],
    );
}

#[test]
fn an_existing_rule_is_skipped_and_not_extended() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "rule-exists");
    let id = number(&cloud.post(RULES, &cast.rule()).expect_status(201).json(), "/data/0/id");
    let more = with(cast.rule(), "/interfaceIds", json!(cast.interfaces));
    let other = with(cast.rule(), "/providerIds", json!(cast.providers));
    check(
        &cloud,
        &[
            Row::post("the same", RULES, &cast.rule()).created().is("", json!({"data": [], "count": 0})),
            Row::post("with more interfaces", RULES, &more).created().is("", json!({"data": [], "count": 0})),
            Row::get("it is as it was", format!("{RULES}/{id}")).has_length("/interfaces", 1),
            Row::post("beside a new one", RULES, &other).created().is("/count", 1).is("/data/0/providerSystem/id", cast.providers[1]),
        ],
    );
}

#[test]
fn keys_and_tokens_are_failures_of_an_insecure_cloud() {
    let cloud = Cloud::shared();
    let request = json!({
        "consumer": system("token-consumer", 9502), "consumerCloud": null, "service": "token-service",
        "providers": [{"provider": with(system("token-provider", 9502), "/authenticationInfo", "key"),
            "serviceInterfaces": ["HTTP-INSECURE-JSON"], "tokenDuration": 60}],
    });
    check(
        &cloud,
        &[
            Row::get("public key", "/authorization/publickey").refused(500, ARROWHEAD),
            Row::post("token", "/authorization/token", &request).refused(500, ARROWHEAD),
        ],
    );
}

#[test]
fn an_interface_of_an_entry_may_be_ruled_by_its_id() {
    let cloud = Cloud::shared();
    let cast = Cast::new(&cloud, "rule-interface");
    assert_eq!(cast.interfaces[0], INSECURE_JSON_ID, "ids are shared by all core systems");
    let id = cloud.allow(cast.consumer, cast.providers[0], cast.definitions[0], &[cast.interfaces[1]]);
    check(&cloud, &[Row::get("read", format!("{RULES}/{id}")).is("/interfaces/0/interfaceName", "HTTP-INSECURE-XML")]);
}
