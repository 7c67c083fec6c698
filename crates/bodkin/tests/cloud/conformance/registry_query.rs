//! Service Registry: query and every filter of it (reference section 3.4).

use std::net::TcpListener;

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{list, service, system, texts, with};
use crate::support::cloud::Cloud;
use crate::support::ports::held_port;

const QUERY: &str = "/serviceregistry/query";

/// The names of the providers found and the number of hits before filtering.
fn found(cloud: &Cloud, form: &Value) -> (Vec<String>, i64) {
    let answer = cloud.query(form);
    let mut names = texts(list(&answer, "/serviceQueryData"), "/provider/systemName");
    names.sort();
    (names, answer["unfilteredHits"].as_i64().expect("a number of hits"))
}

fn form(definition: &str, member: &str, value: Value) -> Value {
    with(json!({"serviceDefinitionRequirement": definition}), &format!("/{member}"), value)
}

#[test]
fn an_unknown_definition_is_an_empty_answer_and_a_blank_one_is_refused() {
    let cloud = Cloud::shared();
    let rows = [
        Row::post("unknown", QUERY, &json!({"serviceDefinitionRequirement": "query-no-such"}))
            .is("", json!({"serviceQueryData": [], "unfilteredHits": 0})),
        Row::post("missing", QUERY, &json!({})).bad_payload(QUERY),
        Row::post("null", QUERY, &json!({"serviceDefinitionRequirement": null})).bad_payload(QUERY),
        Row::post("blank", QUERY, &json!({"serviceDefinitionRequirement": " "})).bad_payload(QUERY),
    ];
    check(&cloud, &rows);
}

#[test]
fn a_definition_is_found_in_any_case_and_empty_filters_are_none() {
    let cloud = Cloud::shared();
    cloud.register(&service("query-plain", system("query-plain", 9201)));
    let all_empty = json!({
        "serviceDefinitionRequirement": " QUERY-Plain ", "interfaceRequirements": [], "securityRequirements": [],
        "metadataRequirements": {}, "versionRequirement": null, "minVersionRequirement": null,
        "maxVersionRequirement": null, "providerAddressTypeRequirements": [], "pingProviders": false,
    });
    let row = Row::post("all filters empty", QUERY, &all_empty)
        .is("/unfilteredHits", 1)
        .has_length("/serviceQueryData", 1)
        .is("/serviceQueryData/0/serviceUri", "")
        .lacks("/serviceQueryData/0/endOfValidity")
        .lacks("/serviceQueryData/0/metadata")
        .lacks("/serviceQueryData/0/provider/authenticationInfo");
    check(&cloud, &[row]);
}

#[test]
fn interfaces_are_narrowed_to_the_ones_asked_for() {
    let cloud = Cloud::shared();
    let names = json!(["HTTP-INSECURE-JSON", "HTTP-INSECURE-XML", "COAP-INSECURE-JSON"]);
    cloud.register(&with(service("query-interfaces", system("query-three", 9202)), "/interfaces", names));
    cloud.register(&service("query-interfaces", system("query-one", 9202)));
    let ask = |wanted: Value| form("query-interfaces", "interfaceRequirements", wanted);
    let rows = [
        Row::post("two of three in any case", QUERY, &ask(json!(["http-insecure-xml", " COAP-insecure-json ", "NO-SECURE-ONE"])))
            .is("/unfilteredHits", 2)
            .has_length("/serviceQueryData", 1)
            .is("/serviceQueryData/0/provider/systemName", "query-three")
            .has_length("/serviceQueryData/0/interfaces", 2)
            .is("/serviceQueryData/0/interfaces/0/interfaceName", "COAP-INSECURE-JSON")
            .is("/serviceQueryData/0/interfaces/1/interfaceName", "HTTP-INSECURE-XML"),
        Row::post("one of both", QUERY, &ask(json!(["HTTP-INSECURE-JSON"])))
            .has_length("/serviceQueryData", 2)
            .has_length("/serviceQueryData/0/interfaces", 1)
            .has_length("/serviceQueryData/1/interfaces", 1),
        Row::post("none", QUERY, &ask(json!(["HTTP-SECURE-JSON"]))).is("/unfilteredHits", 2).is("/serviceQueryData", json!([])),
    ];
    check(&cloud, &rows);
    let (unfiltered, hits) = found(&cloud, &json!({"serviceDefinitionRequirement": "query-interfaces"}));
    assert_eq!((unfiltered.len(), hits), (2, 2), "narrowing is of the answer only");
}

#[test]
fn security_is_one_of_those_asked_for() {
    let cloud = Cloud::shared();
    cloud.register(&service("query-secure", system("query-secure", 9203)));
    let ask = |wanted: Value| found(&cloud, &form("query-secure", "securityRequirements", wanted)).0.len();
    assert_eq!(ask(json!(["NOT_SECURE"])), 1);
    assert_eq!(ask(json!(["TOKEN", "NOT_SECURE"])), 1);
    assert_eq!(ask(json!(["TOKEN", "CERTIFICATE"])), 0);
}

#[test]
fn a_version_is_exact_or_within_bounds() {
    let cloud = Cloud::shared();
    for version in 1..=4 {
        let provider = system(&format!("query-v{version}"), 9204);
        cloud.register(&with(service("query-version", provider), "/version", version));
    }
    let ask = |members: Value| {
        let mut form = members;
        form["serviceDefinitionRequirement"] = json!("query-version");
        let (names, hits) = found(&cloud, &form);
        assert_eq!(hits, 4);
        names
    };
    assert_eq!(ask(json!({"versionRequirement": 2})), ["query-v2"]);
    assert_eq!(ask(json!({"versionRequirement": 9})), Vec::<String>::new());
    assert_eq!(ask(json!({"minVersionRequirement": 3})), ["query-v3", "query-v4"]);
    assert_eq!(ask(json!({"maxVersionRequirement": 2})), ["query-v1", "query-v2"]);
    assert_eq!(ask(json!({"minVersionRequirement": 2, "maxVersionRequirement": 3})), ["query-v2", "query-v3"]);
    assert_eq!(ask(json!({"versionRequirement": 1, "minVersionRequirement": 3})), ["query-v1"], "exact comes first");
}

#[test]
fn every_required_pair_of_metadata_must_be_there() {
    let cloud = Cloud::shared();
    let metadata = json!({"unit": "celsius", "place": "hall 1"});
    cloud.register(&with(service("query-metadata", system("query-with", 9205)), "/metadata", metadata));
    cloud.register(&service("query-metadata", system("query-without", 9205)));
    let ask = |wanted: Value| found(&cloud, &form("query-metadata", "metadataRequirements", wanted));
    assert_eq!(ask(json!({"unit": "celsius"})), (vec!["query-with".to_string()], 2));
    assert_eq!(ask(json!({" unit ": " celsius ", "place": "hall 1"})).0.len(), 1, "trimmed");
    assert_eq!(ask(json!({"unit": "celsius", "place": "hall 2"})).0.len(), 0);
    assert_eq!(ask(json!({"unit": "Celsius"})).0.len(), 0, "values compare exactly");
    assert_eq!(ask(json!({"height": "1"})).0.len(), 0);
    let twins = form("query-metadata", "metadataRequirements", json!({"unit": "celsius", "unit ": "kelvin"}));
    check(&cloud, &[Row::post("keys that differ in whitespace only", QUERY, &twins).refused_as_any(400)]);
}

#[test]
fn address_types_are_those_asked_for() {
    let cloud = Cloud::shared();
    for (name, address) in [("query-host", "localhost"), ("query-four", "127.0.0.1"), ("query-six", "::1")] {
        cloud.register(&service("query-address", json!({"systemName": name, "address": address, "port": 9206})));
    }
    let ask = |wanted: Value| found(&cloud, &form("query-address", "providerAddressTypeRequirements", wanted));
    assert_eq!(ask(json!(["HOSTNAME"])), (vec!["query-host".to_string()], 3));
    assert_eq!(ask(json!(["IPV4"])).0, ["query-four"]);
    assert_eq!(ask(json!(["IPV6"])).0, ["query-six"]);
    assert_eq!(ask(json!(["IPV6", "HOSTNAME"])).0, ["query-host", "query-six"]);
}

#[test]
fn a_ping_drops_the_providers_that_do_not_listen() {
    let cloud = Cloud::shared();
    let listening = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let open_port = listening.local_addr().expect("an address").port();
    let closed_port = held_port();
    cloud.register(&service("query-ping", system("query-alive", open_port)));
    cloud.register(&service("query-ping", system("query-dead", closed_port)));
    let ask = |ping: bool| found(&cloud, &form("query-ping", "pingProviders", json!(ping)));
    assert_eq!(ask(true), (vec!["query-alive".to_string()], 2));
    assert_eq!(ask(false).0.len(), 2);
}

#[test]
fn an_expired_entry_is_still_found() {
    let cloud = Cloud::shared();
    let entry = with(service("query-expired", system("query-expired", 9207)), "/endOfValidity", "2001-01-01T00:00:00Z");
    cloud.register(&entry);
    let row = Row::post("expired", QUERY, &json!({"serviceDefinitionRequirement": "query-expired"}));
    check(&cloud, &[row.is("/serviceQueryData/0/endOfValidity", "2001-01-01T00:00:00Z").is("/unfilteredHits", 1)]);
}
