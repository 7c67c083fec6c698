//! Orchestrator: the flexible store (reference section 5.4). Its cloud has no plain store, so these tests share one of their own.

use std::sync::{Arc, Mutex, Weak};

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{list, number, service, system, texts, with, without};
use crate::support::cloud::{Cloud, Launch};

const ORCHESTRATION: &str = "/orchestrator/orchestration";
const PRIVATE: &str = "/orchestrator/store/flexible";
const MANAGEMENT: &str = "/orchestrator/mgmt/store/flexible";

fn shared() -> Arc<Cloud> {
    static SHARED: Mutex<Weak<Cloud>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    shared.upgrade().unwrap_or_else(|| {
        let cloud = Arc::new(Launch::new().flags(["--use-flexible-store"]).start());
        *shared = Arc::downgrade(&cloud);
        cloud
    })
}

fn rule(definition: &str, consumer: Value, provider: Value) -> Value {
    json!({"consumerSystem": consumer, "providerSystem": provider, "serviceDefinitionName": definition})
}

fn named(name: &str) -> Value {
    json!({"systemName": name})
}

fn with_pairs(pairs: Value) -> Value {
    json!({"metadata": pairs})
}

/// A service with three providers, each with metadata `which`, and a consumer with metadata `role`.
struct Stage<'a> {
    cloud: &'a Cloud,
    name: &'a str,
}

impl<'a> Stage<'a> {
    fn new(cloud: &'a Cloud, name: &'a str) -> Self {
        for which in ["a", "b", "c"] {
            let provider = with(system(&format!("{name}-{which}"), 9901), "/metadata", json!({"which": which}));
            let entry = with(service(name, provider), "/metadata", json!({"unit": if which == "c" { "K" } else { "C" }}));
            let interfaces = if which == "b" { json!(["HTTP-INSECURE-JSON", "HTTP-INSECURE-XML"]) } else { json!(["HTTP-INSECURE-JSON"]) };
            cloud.register(&with(entry, "/interfaces", interfaces));
        }
        let consumer = with(system(&format!("{name}-consumer"), 9901), "/metadata", json!({"role": "reader", "floor": "1"}));
        cloud.post("/serviceregistry/register-system", &consumer).expect_status(201);
        Self { cloud, name }
    }

    fn consumer(&self) -> Value {
        named(&format!("{}-consumer", self.name))
    }

    fn provider(&self, which: &str) -> Value {
        named(&format!("{}-{which}", self.name))
    }

    #[track_caller]
    fn insert(&self, rules: &[Value]) -> Vec<i64> {
        let answer = self.cloud.post(PRIVATE, &json!(rules)).expect_status(201).json();
        assert_eq!(answer["count"], rules.len());
        list(&answer, "/data").iter().map(|rule| number(rule, "/id")).collect()
    }

    fn form(&self, flags: Value) -> Value {
        json!({"requesterSystem": system(&format!("{}-consumer", self.name), 9901), "orchestrationFlags": flags,
            "requestedService": {"serviceDefinitionRequirement": self.name}})
    }

    /// The providers answered, in their order.
    #[track_caller]
    fn orchestrate(&self, form: &Value) -> String {
        let answer = self.cloud.post(ORCHESTRATION, form).expect_status(200).json();
        texts(list(&answer, "/response"), "/provider/systemName").iter().map(|name| &name[self.name.len() + 1..]).collect()
    }
}

#[test]
fn rules_are_made_listed_and_removed() {
    let cloud = Launch::new().flags(["--use-flexible-store"]).start();
    let whole = json!({"consumerSystem": {"systemName": " Reader ", "metadata": {}}, "providerSystem": {"metadata": {"k": "v"}},
        "serviceDefinitionName": "Temperature", "serviceInterfaceName": "http-insecure-json", "serviceMetadata": {"unit": "C"},
        "priority": 3});
    check(
        &cloud,
        &[
            Row::post("with everything", PRIVATE, &json!([whole]))
                .created()
                .is("/count", 1)
                .is("/data/0/consumerSystem", json!({"systemName": "reader", "metadata": null}))
                .is("/data/0/providerSystem", json!({"systemName": null, "metadata": {"k": "v"}}))
                .is("/data/0/serviceDefinition", "temperature")
                .is("/data/0/serviceInterface", "HTTP-INSECURE-JSON")
                .is("/data/0/serviceMetadata", json!({"unit": "C"}))
                .is("/data/0/priority", 3)
                .has("/data/0/createdAt"),
            Row::post("with the least, by management", MANAGEMENT, &json!([rule("temperature", named("a"), named("b"))]))
                .created()
                .is("/data/0/serviceInterface", Value::Null)
                .is("/data/0/serviceMetadata", Value::Null)
                .is("/data/0/priority", i32::MAX),
            Row::post("nothing", PRIVATE, &json!([])).created().is("", json!({"data": [], "count": 0})),
            Row::get("list", MANAGEMENT).is("/count", 2).is("/data/0/id", 1).is("/data/1/id", 2),
            Row::get("by priority", format!("{MANAGEMENT}?sort_field=priority&direction=DESC")).is("/data/0/id", 2),
            Row::delete("by management", format!("{MANAGEMENT}/1")).void(),
            Row::delete("nothing to remove is no error", format!("{PRIVATE}/1")).void(),
            Row::delete("id 0", format!("{PRIVATE}/0")).bad_payload(format!("{PRIVATE}/{{id}}")),
            Row::delete("id 0", format!("{MANAGEMENT}/0")).bad_payload(format!("{MANAGEMENT}/{{id}}")),
            Row::get("one is left", MANAGEMENT).is("/count", 1),
            Row::delete("all", format!("{PRIVATE}/all")).void(),
            Row::get("none is left", MANAGEMENT).is("", json!({"data": [], "count": 0})),
        ],
    );
}

#[test]
fn a_wrong_rule_refuses_the_whole_list() {
    let cloud = shared();
    let good = rule("flexible-wrong", named("a"), named("b"));
    let bad = [
        Value::Null,
        without(good.clone(), "/consumerSystem"),
        with(good.clone(), "/consumerSystem", json!({})),
        with(good.clone(), "/consumerSystem", json!({"systemName": " ", "metadata": {}})),
        with(good.clone(), "/consumerSystem", named("not_a_name")),
        without(good.clone(), "/providerSystem"),
        with(good.clone(), "/providerSystem", named("9a")),
        without(good.clone(), "/serviceDefinitionName"),
        with(good.clone(), "/serviceDefinitionName", "not_a_name"),
        with(good.clone(), "/serviceInterfaceName", "json"),
        with(good.clone(), "/priority", 0),
    ];
    let rows = |path: &'static str| {
        bad.iter()
            .map(|rule| json!([good, rule]))
            .map(move |body| Row::post(body.to_string(), path, &body).bad_payload(path))
            .collect::<Vec<_>>()
    };
    check(&cloud, &rows(PRIVATE));
    check(&cloud, &rows(MANAGEMENT));
}

#[test]
fn rules_are_tried_by_priority_and_each_service_is_answered_once() {
    let cloud = shared();
    let stage = Stage::new(&cloud, "flex-order");
    assert_eq!(stage.orchestrate(&stage.form(json!({}))), "", "no rule yet");
    let to = |which: &str, priority: i64| with(rule("flex-order", stage.consumer(), stage.provider(which)), "/priority", priority);
    stage.insert(&[to("a", 5), to("c", 2), to("b", 5), to("c", 9), rule("flex-order-other", stage.consumer(), stage.provider("a"))]);
    assert_eq!(stage.orchestrate(&stage.form(json!({}))), "cab");
    let preferring =
        with(stage.form(json!({"matchmaking": true})), "/preferredProviders", json!([{"providerSystem": system("flex-order-b", 9901)}]));
    assert_eq!(stage.orchestrate(&preferring), "b");
    assert_eq!(stage.orchestrate(&stage.form(json!({"matchmaking": true}))).len(), 1);
    let only = with(preferring, "/orchestrationFlags", json!({"onlyPreferred": true}));
    assert_eq!(stage.orchestrate(&only), "b", "rules are not asked: there is none in Authorization");
}

#[test]
fn consumers_and_providers_are_met_by_name_and_metadata() {
    let cloud = shared();
    let stage = Stage::new(&cloud, "flex-metadata");
    let consumer = |describer: Value, which: &str| rule("flex-metadata", describer, with_pairs(json!({"which": which})));
    stage.insert(&[
        consumer(with_pairs(json!({"role": "reader"})), "a"),
        consumer(with_pairs(json!({"role": "reader", "floor": "2"})), "b"),
        consumer(json!({"systemName": "flex-somebody", "metadata": {"role": "reader"}}), "c"),
    ]);
    assert_eq!(stage.orchestrate(&stage.form(json!({}))), "a");
    let moved = with(stage.form(json!({})), "/requesterSystem/metadata", json!({"floor": "2", "x": null}));
    assert_eq!(stage.orchestrate(&moved), "ab", "the request's metadata goes before what is registered");
}

#[test]
fn interfaces_and_metadata_of_rule_and_request_narrow_the_answer() {
    let cloud = shared();
    let stage = Stage::new(&cloud, "flex-narrow");
    let any = || rule("flex-narrow", stage.consumer(), with_pairs(json!({})));
    let all = |which: &str| with(any(), "/providerSystem", stage.provider(which));
    let xml = with(all("b"), "/serviceInterfaceName", "HTTP-INSECURE-XML");
    let ids = stage.insert(&[all("a"), xml, with(all("c"), "/serviceMetadata", json!({"unit": "K"}))]);
    assert_eq!(stage.orchestrate(&stage.form(json!({}))), "abc");
    let json_only = with(stage.form(json!({})), "/requestedService/interfaceRequirements", json!(["HTTP-INSECURE-JSON"]));
    assert_eq!(stage.orchestrate(&json_only), "ac", "the rule for XML does not count");
    let celsius = with(stage.form(json!({"metadataSearch": true})), "/requestedService/metadataRequirements", json!({"unit": "C"}));
    assert_eq!(stage.orchestrate(&celsius), "ab", "the request's pair goes before the rule's");
    let not_searched = with(celsius, "/orchestrationFlags/metadataSearch", false);
    assert_eq!(stage.orchestrate(&not_searched), "abc");
    let answer = cloud.post(ORCHESTRATION, &stage.form(json!({}))).json();
    assert_eq!(texts(list(&answer, "/response/1/interfaces"), "/interfaceName"), ["HTTP-INSECURE-XML"], "that of the rule");
    cloud.delete(&format!("{PRIVATE}/{}", ids[0])).expect_status(200);
    assert_eq!(stage.orchestrate(&stage.form(json!({}))), "bc");
}

#[test]
fn what_the_flexible_store_does_not_know_is_refused() {
    let cloud = shared();
    let stage = Stage::new(&cloud, "flex-refused");
    let flagged = |flag: &str| Row::post(flag, ORCHESTRATION, &stage.form(json!({flag: true})));
    let store = "/orchestrator/mgmt/store";
    check(
        &cloud,
        &[
            flagged("enableInterCloud").invalid_parameter(),
            flagged("enableQoS").invalid_parameter(),
            flagged("triggerInterCloud").bad_payload(ORCHESTRATION),
            Row::post("no service", ORCHESTRATION, &without(stage.form(json!({})), "/requestedService")).invalid_parameter(),
            Row::post("unknown consumer", ORCHESTRATION, &with(stage.form(json!({})), "/requesterSystem/port", 1)).invalid_parameter(),
            Row::get("plain orchestration", format!("{ORCHESTRATION}/1")).bad_payload(format!("{ORCHESTRATION}/{{id}}")),
            Row::get("plain list", store).bad_payload(store),
            Row::get("plain entry", format!("{store}/1")).bad_payload(format!("{store}/{{id}}")),
            Row::get("plain tops", format!("{store}/all_top_priority")).bad_payload(format!("{store}/all_top_priority")),
            Row::post("plain search", format!("{store}/all_by_consumer"), &json!({})).bad_payload(format!("{store}/all_by_consumer")),
            Row::post("plain insertion", store, &json!([])).bad_payload(store),
            Row::post("plain priorities", format!("{store}/modify_priorities"), &json!({}))
                .bad_payload(format!("{store}/modify_priorities")),
            Row::delete("plain removal", format!("{store}/1")).bad_payload(format!("{store}/{{id}}")),
        ],
    );
    let dynamic = stage.form(json!({"overrideStore": true}));
    check(&cloud, &[Row::post("the registry is asked as ever", ORCHESTRATION, &dynamic).is("/response", json!([]))]);
}
