//! Service Registry: PUT and PATCH of management (reference sections 3.1 and 3.5).

use serde_json::{Value, json};

use super::table::{Row, check};
use crate::support::arrowhead::{number, service, system, texts, with, without};
use crate::support::cloud::Cloud;

const ENTRIES: &str = "/serviceregistry/mgmt";
const SYSTEMS: &str = "/serviceregistry/mgmt/systems";
const ABSENT_ID: &str = "999999999";

fn sending(claim: &str, method: &'static str, target: &str, body: &Value) -> Row {
    Row::new(claim, method, target).sending("application/json", body.to_string())
}

fn put(claim: &str, target: &str, body: &Value) -> Row {
    sending(claim, "PUT", target, body)
}

fn patch(claim: &str, target: &str, body: &Value) -> Row {
    sending(claim, "PATCH", target, body)
}

/// What a query for a definition finds.
fn hits(cloud: &Cloud, definition: &str) -> i64 {
    number(&cloud.query(&json!({"serviceDefinitionRequirement": definition})), "/unfilteredHits")
}

#[test]
fn a_replaced_entry_is_what_the_request_says() {
    let cloud = Cloud::shared();
    let first = with(with(service("put-first", system("put-first", 9501)), "/metadata", json!({"a": "b"})), "/version", 7);
    let entry = cloud.register(&with(first, "/endOfValidity", "2035-01-01T00:00:00Z"));
    let target = format!("{ENTRIES}/{}", number(&entry, "/id"));
    let second = with(
        with(service("Put-Second", system("put-second", 9502)), "/interfaces", json!(["put-insecure-json", "HTTP-INSECURE-JSON"])),
        "/serviceUri",
        " /x ",
    );
    check(
        &cloud,
        &[
            put("everything changes", &target, &second)
                .is("/id", number(&entry, "/id"))
                .is("/createdAt", entry["createdAt"].clone())
                .is("/serviceDefinition/serviceDefinition", "put-second")
                .is("/provider/systemName", "put-second")
                .is("/serviceUri", "/x")
                .is("/version", 1)
                .is("/interfaces/0/interfaceName", "HTTP-INSECURE-JSON")
                .is("/interfaces/1/interfaceName", "PUT-INSECURE-JSON")
                .lacks("/metadata")
                .lacks("/endOfValidity"),
            put("the same again", &target, &second).is("/serviceUri", "/x"),
            Row::get("it is shown so", &target).is("/serviceDefinition/serviceDefinition", "put-second"),
        ],
    );
    assert_eq!((hits(&cloud, "put-first"), hits(&cloud, "put-second")), (0, 1), "every index follows");
    let freed = cloud.register(&service("put-first", system("put-first", 9501)));
    assert_ne!(freed["id"], entry["id"], "its former place is free");
}

#[test]
fn a_replaced_entry_takes_no_place_of_another() {
    let cloud = Cloud::shared();
    let taken = service("put-taken", system("put-taken", 9503));
    cloud.register(&taken);
    let other = cloud.register(&with(taken.clone(), "/serviceUri", "/other"));
    let target = format!("{ENTRIES}/{}", number(&other, "/id"));
    let unmade =
        with(with(taken.clone(), "/interfaces", json!(["PUT_UNMADE-INSECURE-JSON"])), "/providerSystem/metadata", json!({"x": "y"}));
    check(
        &cloud,
        &[
            put("the place is taken", &target, &unmade).invalid_parameter().saying_last(" already exists."),
            Row::get("nothing has changed", &target).is("/serviceUri", "/other").lacks("/provider/metadata"),
        ],
    );
    let interfaces = cloud.get("/serviceregistry/mgmt/interfaces").json();
    let names = texts(interfaces["data"].as_array().expect("a list"), "/interfaceName");
    assert!(!names.contains(&"PUT_UNMADE-INSECURE-JSON".to_string()), "a refused change leaves nothing behind");
}

#[test]
fn a_replacement_is_checked_as_a_registration() {
    let cloud = Cloud::shared();
    let good = service("put-checks", system("put-checks", 9504));
    let target = format!("{ENTRIES}/{}", number(&cloud.register(&good), "/id"));
    let origin = "/serviceregistry/mgmt/{id}";
    check(
        &cloud,
        &[
            put("no definition", &target, &without(good.clone(), "/serviceDefinition")).bad_payload(origin),
            put("no provider", &target, &without(good.clone(), "/providerSystem")).bad_payload(origin),
            put("a reserved name", &target, &with(good.clone(), "/providerSystem/systemName", "gateway")).bad_payload(origin),
            put("no interface", &target, &with(good.clone(), "/interfaces", json!([]))).bad_payload(origin),
            put("security", &target, &with(with(good.clone(), "/secure", "TOKEN"), "/providerSystem/authenticationInfo", "k"))
                .invalid_parameter(),
            put("id 0", &format!("{ENTRIES}/0"), &good).bad_payload(origin),
            put("no such id", &format!("{ENTRIES}/{ABSENT_ID}"), &good).invalid_parameter(),
        ],
    );
}

#[test]
fn a_patched_entry_keeps_what_is_not_given() {
    let cloud = Cloud::shared();
    let provider = with(with(system("patch-entry", 9505), "/authenticationInfo", "key"), "/metadata", json!({"p": "q"}));
    let whole = json!({"serviceDefinition": "patch-entry", "providerSystem": provider, "serviceUri": "/a", "version": 3,
        "endOfValidity": "2035-01-01T00:00:00Z", "metadata": {"a": "b"}, "interfaces": ["HTTP-INSECURE-JSON"]});
    let entry = cloud.register(&whole);
    let target = format!("{ENTRIES}/{}", number(&entry, "/id"));
    let kept = |row: Row| row.is("/serviceDefinition/serviceDefinition", "patch-entry").is("/metadata", json!({"a": "b"}));
    let blank = json!({"serviceDefinition": "", "endOfValidity": "", "interfaces": [], "version": 4, "metadata": null});
    check(
        &cloud,
        &[
            kept(patch("blank members", &target, &blank))
                .is("/version", 4)
                .is("/serviceUri", "/a")
                .is("/endOfValidity", "2035-01-01T00:00:00Z")
                .has_length("/interfaces", 1)
                .is("/provider/authenticationInfo", "key"),
            kept(patch("an empty URI replaces the former one", &target, &json!({"serviceUri": ""}))).is("/serviceUri", ""),
            kept(patch("a blank URI is trimmed", &target, &json!({"serviceUri": " "}))).is("/serviceUri", ""),
            kept(patch("another URI", &target, &json!({"serviceUri": "/b"}))).is("/serviceUri", "/b").is("/version", 4),
            kept(patch("interfaces are replaced", &target, &json!({"interfaces": ["http-insecure-xml"]})))
                .has_length("/interfaces", 1)
                .is("/interfaces/0/interfaceName", "HTTP-INSECURE-XML"),
            kept(patch("a part of the provider", &target, &json!({"providerSystem": {"port": 9506}})))
                .is("/provider/systemName", "patch-entry")
                .is("/provider/port", 9506)
                .lacks("/provider/authenticationInfo"),
            patch("metadata are replaced", &target, &json!({"metadata": {}})).is("/metadata", json!({})),
            patch("the former time format", &target, &json!({"endOfValidity": "2036-02-03 04:05:06"}))
                .is("/endOfValidity", "2036-02-03T04:05:06Z"),
            patch("secure alone", &target, &json!({"secure": "not_secure"})).is("/secure", "NOT_SECURE"),
            Row::get("it is shown so", &target).is("/serviceUri", "/b").is("/provider/port", 9506).is("/metadata", json!({})),
            Row::get("the former provider stays", format!("{SYSTEMS}/{}", number(&entry, "/provider/id")))
                .is("/authenticationInfo", "key")
                .is("/metadata", json!({"p": "q"})),
        ],
    );
}

#[test]
fn an_absent_public_key_of_a_given_provider_is_none() {
    let cloud = Cloud::shared();
    let provider = with(with(system("patch-key", 9507), "/authenticationInfo", "key"), "/metadata", json!({"p": "q"}));
    let entry = cloud.register(&service("patch-key", provider));
    let target = format!("{ENTRIES}/{}", number(&entry, "/id"));
    let named = json!({"providerSystem": {"systemName": "patch-key"}});
    let row = patch("the provider is named", &target, &named)
        .is("/provider/id", entry["provider"]["id"].clone())
        .lacks("/provider/authenticationInfo")
        .is("/provider/metadata", json!({"p": "q"}));
    check(&cloud, &[row]);
}

#[test]
fn a_patch_of_an_entry_is_checked() {
    let cloud = Cloud::shared();
    let taken = service("patch-taken", system("patch-taken", 9508));
    cloud.register(&taken);
    let target = format!("{ENTRIES}/{}", number(&cloud.register(&with(taken, "/serviceUri", "/other")), "/id"));
    let origin = "/serviceregistry/mgmt/{id}";
    let refused = |claim: &str, body: Value| patch(claim, &target, &body).bad_payload(origin);
    check(
        &cloud,
        &[
            refused("nothing", json!({})).saying("Patch request is empty."),
            refused("nothing but blanks", json!({"providerSystem": {}, "secure": " ", "interfaces": []})).saying("Patch request is empty."),
            refused("a bad name", json!({"serviceDefinition": "a_b"})),
            refused("a bad port", json!({"providerSystem": {"port": 65536}})),
            refused("a reserved name", json!({"providerSystem": {"systemName": "Orchestrator"}})),
            refused("a bad interface", json!({"interfaces": ["HTTP"]})),
            patch("a bad time", &target, &json!({"endOfValidity": "soon"})).invalid_parameter(),
            refused("a line end in the URI", json!({"serviceUri": "/a\r\nb"})),
            refused("a bad security", json!({"secure": "LOCKED"})),
            refused("security without a key", json!({"secure": "TOKEN", "providerSystem": {"port": 9508}})),
            patch("security", &target, &json!({"secure": "TOKEN"})).invalid_parameter(),
            patch("the place of another", &target, &json!({"providerSystem": {"port": 9508}, "serviceUri": "/other"}))
                .is("/serviceUri", "/other"),
            patch("id -1", &format!("{ENTRIES}/-1"), &json!({"version": 2})).bad_payload(origin),
            patch("no such id", &format!("{ENTRIES}/{ABSENT_ID}"), &json!({"version": 2})).invalid_parameter(),
        ],
    );
    let elsewhere = cloud.register(&service("patch-taken", system("patch-elsewhere", 9508)));
    let taking = json!({"providerSystem": {"systemName": "patch-taken"}});
    let row = patch("the place is taken", &format!("{ENTRIES}/{}", number(&elsewhere, "/id")), &taking);
    check(&cloud, &[row.invalid_parameter().saying_last(" already exists.")]);
}

#[test]
fn a_replaced_system_keeps_its_id_and_what_refers_to_it() {
    let cloud = Cloud::shared();
    let before = with(with(system("put-system", 9510), "/authenticationInfo", "key"), "/metadata", json!({"a": "b"}));
    let entry = cloud.register(&service("put-system", before));
    cloud.register_system("put-system-other", 9511);
    let (id, entry_target) = (number(&entry, "/provider/id"), format!("{ENTRIES}/{}", number(&entry, "/id")));
    let target = format!("{SYSTEMS}/{id}");
    let origin = "/serviceregistry/mgmt/systems/{id}";
    check(
        &cloud,
        &[
            put("all of it", &target, &system("Put-System-New", 9512))
                .is("/id", id)
                .is("/systemName", "put-system-new")
                .is("/port", 9512)
                .lacks("/authenticationInfo")
                .lacks("/metadata"),
            put("the same again", &target, &system("put-system-new", 9512)).is("/port", 9512),
            Row::get("its services follow", &entry_target).is("/provider/systemName", "put-system-new"),
            Row::post("it is found by what it is now", "/serviceregistry/query/system", &system("put-system-new", 9512)).is("/id", id),
            Row::post("and not by what it was", "/serviceregistry/query/system", &system("put-system", 9510)).invalid_parameter(),
            put("the triple of another", &target, &system("put-system-other", 9511)).invalid_parameter().saying_last(" already exists."),
            put("a reserved name", &target, &system("gatekeeper", 9512)).bad_payload(origin),
            put("no port", &target, &without(system("put-system-new", 9512), "/port")).bad_payload(origin),
            put("id 0", &format!("{SYSTEMS}/0"), &system("put-system-new", 9512)).bad_payload(origin),
            put("no such id", &format!("{SYSTEMS}/{ABSENT_ID}"), &system("put-system-free", 9512)).invalid_parameter(),
        ],
    );
}

#[test]
fn a_patched_system_keeps_what_is_blank() {
    let cloud = Cloud::shared();
    let before = with(with(system("patch-system", 9513), "/authenticationInfo", "key"), "/metadata", json!({"a": "b"}));
    let made = cloud.post(SYSTEMS, &before).expect_status(201).json();
    cloud.register_system("patch-system", 9514);
    let target = format!("{SYSTEMS}/{}", number(&made, "/id"));
    let origin = "/serviceregistry/mgmt/systems/{id}";
    check(
        &cloud,
        &[
            patch("the name", &target, &json!({"systemName": "Patched", "address": "", "authenticationInfo": " "}))
                .is("/systemName", "patched")
                .is("/address", "127.0.0.1")
                .is("/port", 9513)
                .is("/authenticationInfo", "key")
                .is("/metadata", json!({"a": "b"})),
            patch("metadata are replaced", &target, &json!({"metadata": {"c": "d"}})).is("/metadata", json!({"c": "d"})),
            patch("nothing", &target, &json!({})).bad_payload(origin).saying("Patch request is empty."),
            patch("a reserved name", &target, &json!({"systemName": "serviceregistry"})).bad_payload(origin),
            patch("a bad address", &target, &json!({"address": "0.0.0.0"})).bad_payload(origin),
            patch("the triple of another", &target, &json!({"systemName": "patch-system", "port": 9514})).invalid_parameter(),
            patch("id 0", &format!("{SYSTEMS}/0"), &json!({"port": 1})).bad_payload(origin),
            patch("no such id", &format!("{SYSTEMS}/{ABSENT_ID}"), &json!({"port": 1})).invalid_parameter(),
        ],
    );
}

#[test]
fn definitions_and_interfaces_are_made_and_renamed() {
    let cloud = Cloud::shared();
    let kinds = [
        ("services", "serviceDefinition", ["Name-Made", "name-renamed", "name-taken"], ["name-made", "name-renamed"], "a_b"),
        (
            "interfaces",
            "interfaceName",
            ["made-insecure-x", "RENAMED-INSECURE-X", "TAKEN-INSECURE-X"],
            ["MADE-INSECURE-X", "RENAMED-INSECURE-X"],
            "HTTP-JSON",
        ),
    ];
    for (kind, member, [made, renamed, taken], [stored, restored], wrong) in kinds {
        let (all, one) = (format!("/serviceregistry/mgmt/{kind}"), format!("/serviceregistry/mgmt/{kind}/{{id}}"));
        let pointer = format!("/{member}");
        let name = |text: &str| json!({member: text});
        let first = cloud.post(&all, &name(made)).expect_status(201).json();
        assert_eq!(first[member], stored);
        cloud.post(&all, &name(taken)).expect_status(201);
        let target = format!("{all}/{}", number(&first, "/id"));
        check(
            &cloud,
            &[
                Row::post("a second time", &all, &name(made)).invalid_parameter().saying_last(" already exists."),
                Row::post("blank", &all, &name(" ")).bad_payload(&all),
                Row::post("absent", &all, &json!({})).bad_payload(&all),
                Row::post("wrong", &all, &name(wrong)).bad_payload(&all),
                put("renamed", &target, &name(renamed)).is(&pointer, restored).is("/createdAt", first["createdAt"].clone()),
                patch("to itself", &target, &name(renamed)).is(&pointer, restored),
                put("to another's", &target, &name(taken)).invalid_parameter().saying_last(" already exists."),
                patch("to nothing", &target, &name("")).bad_payload(&one),
                put("id 0", &format!("{all}/0"), &name(renamed)).bad_payload(&one),
                patch("no such id", &format!("{all}/{ABSENT_ID}"), &name("z-INSECURE-z").clone()).refused_as_any(400),
                Row::post("its former name is free", &all, &name(made)).created(),
            ],
        );
    }
}

#[test]
fn a_renamed_definition_is_found_by_its_new_name() {
    let cloud = Cloud::shared();
    let entry = cloud.register(&service("rename-old", system("rename", 9515)));
    let target = format!("/serviceregistry/mgmt/services/{}", number(&entry, "/serviceDefinition/id"));
    check(&cloud, &[put("rename", &target, &json!({"serviceDefinition": "rename-new"})).is("/serviceDefinition", "rename-new")]);
    assert_eq!((hits(&cloud, "rename-old"), hits(&cloud, "rename-new")), (0, 1));
}

#[test]
fn names_of_core_services_are_reserved() {
    let cloud = Cloud::shared();
    let path = "/serviceregistry/mgmt/services";
    let made = cloud.post(path, &json!({"serviceDefinition": "reserve"})).expect_status(201).json();
    let target = format!("{path}/{}", number(&made, "/id"));
    let name = |text: &str| json!({"serviceDefinition": text});
    check(
        &cloud,
        &[
            Row::post("one that is registered here", path, &name("Event-Publish")).bad_payload(path),
            Row::post("one that is not", path, &name("global-service-discovery")).bad_payload(path),
            put("rename", &target, &name("token-generation")).bad_payload("/serviceregistry/mgmt/services/{id}"),
        ],
    );
}
