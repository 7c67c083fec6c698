//! Orchestrator: orchestration from the store (reference sections 5 and 5.3).

use std::net::TcpListener;

use serde_json::{Value, json};

use super::table::{INVALID_PARAMETER, Row, check};
use crate::support::arrowhead::{list, number, service, system, texts, with, without};
use crate::support::cloud::Cloud;

const ORCHESTRATION: &str = "/orchestrator/orchestration";

/// A store form of a registered consumer for a registered service.
fn form(cloud: &Cloud, name: &str) -> Value {
    cloud.register_system(&format!("{name}-consumer"), 9801);
    cloud.register(&service(name, system(name, 9801)));
    json!({"requesterSystem": system(&format!("{name}-consumer"), 9801), "orchestrationFlags": {"overrideStore": false},
        "requestedService": {"serviceDefinitionRequirement": name, "interfaceRequirements": ["HTTP-INSECURE-JSON"]}})
}

#[test]
fn an_empty_store_gives_an_empty_answer() {
    let cloud = Cloud::shared();
    let form = form(&cloud, "store-empty");
    let all = with(form.clone(), "/requestedService", Value::Null);
    let empty = json!({"response": []});
    check(
        &cloud,
        &[
            Row::post("one service", ORCHESTRATION, &form).is("", empty.clone()),
            Row::post("flags missing are false", ORCHESTRATION, &without(form.clone(), "/orchestrationFlags")).is("", empty.clone()),
            Row::post("flags null are false", ORCHESTRATION, &with(form, "/orchestrationFlags", Value::Null)).is("", empty.clone()),
            Row::post("no service: all entries", ORCHESTRATION, &all).is("", empty),
        ],
    );
}

#[test]
fn exactly_one_interface_is_required() {
    let cloud = Cloud::shared();
    let form = form(&cloud, "store-interface");
    let with_interfaces = |value: Value| with(form.clone(), "/requestedService/interfaceRequirements", value);
    let message = "InterfaceRequirement  is null or blank.";
    check(
        &cloud,
        &[
            Row::post("none", ORCHESTRATION, &with_interfaces(Value::Null)).refused(400, INVALID_PARAMETER).saying(message),
            Row::post("empty", ORCHESTRATION, &with_interfaces(json!([]))).refused(400, INVALID_PARAMETER).saying(message),
            Row::post("blank", ORCHESTRATION, &with_interfaces(json!([" "]))).refused(400, INVALID_PARAMETER).saying(message),
            Row::post("two", ORCHESTRATION, &with_interfaces(json!(["HTTP-INSECURE-JSON", "HTTP-SECURE-JSON"]))).refused_as_any(400),
        ],
    );
}

#[test]
fn consumer_definition_and_interface_must_exist() {
    let cloud = Cloud::shared();
    let form = form(&cloud, "store-exists");
    let rows = [
        ("consumer", with(form.clone(), "/requesterSystem/systemName", "store-nobody")),
        ("definition", with(form.clone(), "/requestedService/serviceDefinitionRequirement", "store-no-such")),
        ("interface", with(form, "/requestedService/interfaceRequirements", json!(["NO_SUCH-INSECURE-STORE"]))),
    ];
    check(&cloud, &rows.map(|(claim, body)| Row::post(claim, ORCHESTRATION, &body).refused_as_any(400)));
}

/// A consumer that may use a service of three providers, which the store names in the order c, a, b.
struct Stage<'a> {
    cloud: &'a Cloud,
    name: &'a str,
    consumer: i64,
    entries: Vec<Value>,
}

impl<'a> Stage<'a> {
    fn new(cloud: &'a Cloud, name: &'a str) -> Self {
        let consumer = cloud.register_system(&format!("{name}-consumer"), 9802);
        let entry = |which: &str| {
            let entry = service(name, system(&format!("{name}-{which}"), 9802));
            cloud.register(&with(entry, "/interfaces", json!(["HTTP-INSECURE-JSON", "HTTP-INSECURE-XML"])))
        };
        let entries: Vec<Value> = ["a", "b", "c"].map(entry).into();
        let stage = Self { cloud, name, consumer, entries };
        for index in 0..3 {
            stage.allow(index);
        }
        for which in ["c", "a", "b"] {
            stage.store(name, which, "HTTP-INSECURE-JSON");
        }
        stage
    }

    /// The consumer may use the provider over both interfaces.
    fn allow(&self, index: usize) -> i64 {
        let entry = &self.entries[index];
        let interfaces = [number(entry, "/interfaces/0/id"), number(entry, "/interfaces/1/id")];
        self.cloud.allow(self.consumer, number(entry, "/provider/id"), number(entry, "/serviceDefinition/id"), &interfaces)
    }

    /// Puts a provider at the end of its group in the store.
    fn store(&self, definition: &str, which: &str, interface: &str) {
        let entry = json!({"serviceDefinitionName": definition, "consumerSystemId": self.consumer, "priority": 1_000,
            "providerSystem": system(&format!("{}-{which}", self.name), 9802), "serviceInterfaceName": interface});
        let made = self.cloud.post("/orchestrator/mgmt/store", &json!([entry])).expect_status(200).json();
        assert_eq!(made["count"], 1, "{made}");
    }

    fn form(&self, flags: Value) -> Value {
        json!({"requesterSystem": system(&format!("{}-consumer", self.name), 9802), "orchestrationFlags": flags,
            "requestedService": {"serviceDefinitionRequirement": self.name, "interfaceRequirements": ["http-insecure-json"]}})
    }

    /// The providers answered, in their order.
    #[track_caller]
    fn orchestrate(&self, form: &Value) -> String {
        let answer = self.cloud.post(ORCHESTRATION, form).expect_status(200).json();
        texts(list(&answer, "/response"), "/provider/systemName").iter().map(|name| &name[self.name.len() + 1..]).collect()
    }
}

#[test]
fn the_first_usable_entry_wins() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "stored-first");
    let row = Row::post("one result", ORCHESTRATION, &stage.form(json!({})));
    check(
        &cloud,
        &[row
            .has_length("/response", 1)
            .is("/response/0/provider/systemName", "stored-first-c")
            .has_length("/response/0/interfaces", 1)
            .is("/response/0/interfaces/0/interfaceName", "HTTP-INSECURE-JSON")
            .is("/response/0/authorizationTokens", Value::Null)
            .is("/response/0/warnings", json!(["TTL_UNKNOWN"]))],
    );
    assert_eq!(stage.orchestrate(&stage.form(json!({"matchmaking": true}))), "c", "matchmaking has no effect");
    let preferring = with(stage.form(json!({})), "/preferredProviders", json!([{"providerSystem": system("stored-first-b", 9802)}]));
    assert_eq!(stage.orchestrate(&preferring), "c", "preferences have none either");

    cloud.delete(&format!("/serviceregistry/mgmt/{}", number(&stage.entries[2], "/id"))).expect_status(200);
    assert_eq!(stage.orchestrate(&stage.form(json!({}))), "a", "c offers it no more");
    let rules = cloud.get("/authorization/mgmt/intracloud").json();
    let of_a = |rule: &&Value| rule["consumerSystem"]["id"] == stage.consumer && rule["providerSystem"]["systemName"] == "stored-first-a";
    let rule = number(list(&rules, "/data").iter().find(of_a).expect("a rule"), "/id");
    cloud.delete(&format!("/authorization/mgmt/intracloud/{rule}")).expect_status(200);
    assert_eq!(stage.orchestrate(&stage.form(json!({}))), "b", "a may be used no more");
    cloud.delete(&format!("/serviceregistry/mgmt/systems/{}", number(&stage.entries[1], "/provider/id"))).expect_status(200);
    assert_eq!(stage.orchestrate(&stage.form(json!({}))), "", "b is gone");
}

#[test]
fn the_registry_is_asked_with_the_forms_flags() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "stored-flags");
    let alive = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = alive.local_addr().expect("an address").port();
    let entry = with(service("stored-flags", system("stored-flags-alive", port)), "/metadata", json!({"unit": "C"}));
    let entry = cloud.register(&entry);
    cloud.allow(stage.consumer, number(&entry, "/provider/id"), number(&entry, "/serviceDefinition/id"), &[2]);
    let last = json!({"serviceDefinitionName": "stored-flags", "consumerSystemId": stage.consumer, "priority": 9,
        "providerSystem": system("stored-flags-alive", port), "serviceInterfaceName": "HTTP-INSECURE-JSON"});
    cloud.post("/orchestrator/mgmt/store", &json!([last])).expect_status(200);
    let searching = |flags: Value| with(stage.form(flags), "/requestedService/metadataRequirements", json!({"unit": "C"}));
    assert_eq!(stage.orchestrate(&searching(json!({}))), "c");
    assert_eq!(stage.orchestrate(&searching(json!({"metadataSearch": true}))), "alive");
    assert_eq!(stage.orchestrate(&stage.form(json!({"pingProviders": true}))), "alive");
    assert_eq!(stage.orchestrate(&stage.form(json!({"onlyIPv6AddressResponse": true}))), "");
    assert_eq!(stage.orchestrate(&stage.form(json!({"onlyIPv4AddressResponse": true}))), "c");
}

#[test]
fn without_a_service_all_entries_of_priority_1_are_answered() {
    let cloud = Cloud::shared();
    let stage = Stage::new(&cloud, "stored-tops");
    stage.store("stored-tops", "b", "HTTP-INSECURE-XML");
    cloud.register(&service("stored-tops-other", system("stored-tops-a", 9802)));
    stage.store("stored-tops-other", "a", "HTTP-INSECURE-JSON");
    let all = with(stage.form(json!({"matchmaking": true})), "/requestedService", Value::Null);
    assert_eq!(stage.orchestrate(&all), "bc", "a may not be used for the other service");
    let by_id = format!("{ORCHESTRATION}/{}", stage.consumer);
    let posted = cloud.post(ORCHESTRATION, &all).json();
    assert_eq!(cloud.get(&by_id).expect_status(200).json(), posted);
    let interfaces = |index: usize| texts(list(&posted, &format!("/response/{index}/interfaces")), "/interfaceName");
    assert_eq!((interfaces(0), interfaces(1)), (vec!["HTTP-INSECURE-XML".to_string()], vec!["HTTP-INSECURE-JSON".to_string()]));
    assert_eq!(stage.orchestrate(&with(all, "/orchestrationFlags/onlyIPv6AddressResponse", true)), "");
    check(
        &cloud,
        &[
            Row::get("a consumer without entries", format!("{ORCHESTRATION}/{}", number(&stage.entries[0], "/provider/id")))
                .is("", json!({"response": []})),
            Row::get("a consumer that is not", format!("{ORCHESTRATION}/999999999")).invalid_parameter(),
            Row::get("id 0", format!("{ORCHESTRATION}/0")).bad_payload(format!("{ORCHESTRATION}/{{id}}")),
            Row::get("no id", format!("{ORCHESTRATION}/x")).empty(400),
        ],
    );
}

#[test]
fn quality_of_service_is_off() {
    let cloud = Cloud::shared();
    check(&cloud, &[Row::get("plain text", "/orchestrator/qos_enabled").text("false")]);
}
