//! What `bodkin service` and `bodkin system` ask to change rows, and to see services' states.

use serde_json::{Value, json};

use super::{asked, has_row, lines};
use crate::support::arrowhead::with;
use crate::support::double::Double;

fn sensor() -> Value {
    json!({"id": 5, "systemName": "sensor", "address": "127.0.0.1", "port": 9000, "authenticationInfo": "KEY", "metadata": {"a": "b"}})
}

fn heat() -> Value {
    json!({"id": 7, "serviceDefinition": {"id": 3, "serviceDefinition": "heat"}, "provider": sensor(), "serviceUri": "/heat", "secure": "TOKEN",
        "version": 1, "interfaces": [{"id": 2, "interfaceName": "HTTP-INSECURE-JSON"}]})
}

#[test]
fn an_update_is_a_patch_that_keeps_what_is_not_given() {
    let double = Double::start(vec![
        ("GET /serviceregistry/mgmt/7", 200, heat()),
        ("GET /serviceregistry/mgmt/systems/5", 200, sensor()),
        ("PATCH /serviceregistry/mgmt/7", 200, with(heat(), "/serviceUri", "/hot")),
        ("PATCH /serviceregistry/mgmt/systems/5", 200, with(sensor(), "/port", 9009)),
    ]);
    let (told, requests) = asked(&double, "service update 7 --uri /hot --provider 5", 0);
    assert!(told.contains("changed: heat of sensor"), "{told}");
    let body = &requests.last().expect("a PATCH").body;
    assert_eq!((&body["serviceUri"], &body["version"], &body["interfaces"]), (&json!("/hot"), &Value::Null, &Value::Null));
    assert_eq!(body["secure"], "TOKEN", "left out, it would become NOT_SECURE");
    let provider = &body["providerSystem"];
    assert_eq!((&provider["authenticationInfo"], &provider["metadata"]["a"]), (&json!("KEY"), &json!("b")), "left out, they would go");

    let (told, requests) = asked(&double, "system update 5 --port 9009", 0);
    assert!(told.contains("sensor at 127.0.0.1:9009"), "{told}");
    let body = &requests.last().expect("a PATCH").body;
    assert_eq!((&body["port"], &body["systemName"], &body["metadata"]), (&json!(9009), &Value::Null, &Value::Null));
}

#[test]
fn a_replacement_is_a_put_of_the_whole() {
    let double = Double::start(vec![
        ("PUT /serviceregistry/mgmt/7", 200, heat()),
        ("GET /serviceregistry/mgmt/systems/5", 200, sensor()),
        ("PUT /serviceregistry/mgmt/systems/5", 200, sensor()),
    ]);
    let (_, requests) = asked(&double, "service replace 7 heat --system sensor --address 127.0.0.1 --port 9000 --secure token", 0);
    let body = &requests[0].body;
    assert_eq!((&body["secure"], &body["serviceUri"], &body["version"]), (&json!("TOKEN"), &json!(""), &json!(1)));
    assert_eq!(body["interfaces"], json!(["HTTP-SECURE-JSON"]));
    let (_, requests) = asked(&double, "system replace 5 --name probe --address 10.0.0.1 --port 1", 0);
    assert_eq!(requests[1].body["systemName"], "probe");
}

#[test]
fn a_service_that_is_secured_is_offered_over_tls_unless_an_interface_is_named() {
    let double = Double::start(vec![("PUT /serviceregistry/mgmt/7", 200, heat())]);
    for (options, interface) in [
        ("", "HTTP-INSECURE-JSON"),
        ("--secure NOT_SECURE", "HTTP-INSECURE-JSON"),
        ("--secure CERTIFICATE", "HTTP-SECURE-JSON"),
        ("--secure TOKEN", "HTTP-SECURE-JSON"),
        ("--secure TOKEN --interface HTTP-SECURE-XML", "HTTP-SECURE-XML"),
    ] {
        let line = format!("service replace 7 heat --system sensor --address 127.0.0.1 --port 9000 {options}");
        let (_, requests) = asked(&double, &line, 0);
        assert_eq!(requests[0].body["interfaces"], json!([interface]), "{options}");
    }
}

#[test]
fn the_services_of_one_definition_are_listed() {
    let definitions = json!({"data": [{"id": 3, "serviceDefinition": "heat"}], "count": 1});
    let double = Double::start(vec![
        ("GET /serviceregistry/mgmt/services", 200, definitions),
        ("GET /serviceregistry/mgmt/servicedef/heat?sort_field=createdAt&direction=DESC", 200, json!({"data": [heat()], "count": 1})),
    ]);
    let (told, _) = asked(&double, "service list --definition HEAT --sort createdAt --descending", 0);
    has_row(&told, &["7", "heat", "sensor"]);
    asked(&double, "service list --definition cold", 1);
}

#[test]
fn definitions_and_interfaces_are_made_and_renamed() {
    let definition = json!({"id": 3, "serviceDefinition": "heat"});
    let interface = json!({"id": 4, "interfaceName": "HTTP-INSECURE-CSV"});
    let double = Double::start(vec![
        ("GET /serviceregistry/mgmt/services/3", 200, definition.clone()),
        ("POST /serviceregistry/mgmt/services", 201, definition.clone()),
        ("PUT /serviceregistry/mgmt/services/3", 200, with(definition, "/serviceDefinition", "warmth")),
        ("GET /serviceregistry/mgmt/interfaces/4", 200, interface.clone()),
        ("POST /serviceregistry/mgmt/interfaces", 201, interface.clone()),
        ("PUT /serviceregistry/mgmt/interfaces/4", 200, with(interface, "/interfaceName", "HTTP-INSECURE-XML")),
    ]);
    for (line, body, says) in [
        ("service definition add heat", json!({"serviceDefinition": "heat"}), "added: service definition heat, id 3"),
        ("service definition rename 3 warmth", json!({"serviceDefinition": "warmth"}), "renamed: heat is service definition warmth"),
        (
            "service interface add HTTP-INSECURE-CSV",
            json!({"interfaceName": "HTTP-INSECURE-CSV"}),
            "added: interface HTTP-INSECURE-CSV, id 4",
        ),
        ("service interface rename 4 HTTP-INSECURE-XML", json!({"interfaceName": "HTTP-INSECURE-XML"}), "is interface HTTP-INSECURE-XML"),
    ] {
        let (told, requests) = asked(&double, line, 0);
        assert!(told.contains(says), "{line}: {told}");
        assert_eq!(requests.last().expect("a request").body, body, "{line}");
    }
}

#[test]
fn stale_services_are_told_with_what_is_known_of_them() {
    let state = |id: i64, state: &str| {
        json!({"id": id, "serviceDefinition": "heat", "provider": sensor(), "serviceUri": "/heat", "endOfValidity": null,
            "state": state, "lastProbeAt": "2026-01-01T00:00:00Z", "lastProbe": "unreachable", "unreachableSince": null, "deregisterAt": null})
    };
    let states = json!({"data": [state(7, "fresh"), state(8, "unreachable"), state(9, "expired"), state(10, "unknown")], "count": 4});
    let double = Double::start(vec![("GET /api/v1/services", 200, states)]);
    let (all, requests) = asked(&double, "service list --state", 0);
    assert_eq!((lines(&requests), all.lines().count()), (vec!["GET /api/v1/services"], 5));
    let (stale, _) = asked(&double, "service list --stale", 0);
    assert_eq!(stale.lines().count(), 3, "{stale}");
    has_row(&stale, &["8", "heat", "sensor", "127.0.0.1:9000", "unreachable", "never"]);
    has_row(&stale, &["9", "expired"]);
    let (document, _) = asked(&double, "--output json service list --stale", 0);
    assert_eq!(serde_json::from_str::<Value>(&document).expect("JSON")["count"], 2);
}
