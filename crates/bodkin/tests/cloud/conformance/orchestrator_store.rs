//! Orchestrator: store orchestration while the store is empty, and what surrounds it (reference sections 5 and 5.3).

use serde_json::{Value, json};

use super::table::{INVALID_PARAMETER, Row, check};
use crate::support::arrowhead::{service, system, with, without};
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

#[test]
fn quality_of_service_is_off() {
    let cloud = Cloud::shared();
    check(&cloud, &[Row::get("plain text", "/orchestrator/qos_enabled").text("false")]);
}
