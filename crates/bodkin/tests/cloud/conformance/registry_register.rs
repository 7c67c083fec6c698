//! Service Registry: register and register-system (reference sections 1.7, 2, 3.2).

use serde_json::{Value, json};

use super::table::{ARROWHEAD, BAD_PAYLOAD, Row, check};
use crate::support::arrowhead::{list, number, service, system, texts, with, without};
use crate::support::cloud::Cloud;

const REGISTER: &str = "/serviceregistry/register";
const REGISTER_SYSTEM: &str = "/serviceregistry/register-system";

/// A row that sends the smallest entry changed by `change` to /register.
fn changed(claim: &str, change: impl FnOnce(Value) -> Value) -> Row {
    let slug: String = claim.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    let entry = service(&format!("reg-{slug}"), system(&format!("reg-{slug}"), 9000));
    Row::post(claim, REGISTER, &change(entry))
}

/// The same with one member replaced.
fn replaced(claim: &str, pointer: &str, value: impl Into<Value>) -> Row {
    changed(claim, |entry| with(entry, pointer, value))
}

#[test]
fn the_smallest_entry_gets_the_defaults_and_leaves_null_members_out() {
    let cloud = Cloud::shared();
    let entry = service("reg-smallest", system("reg-smallest", 9001));
    check(
        &cloud,
        &[Row::post("smallest", REGISTER, &entry)
            .created()
            .is("/serviceDefinition/serviceDefinition", "reg-smallest")
            .is("/provider/systemName", "reg-smallest")
            .is("/provider/address", "127.0.0.1")
            .is("/provider/port", 9001)
            .is("/serviceUri", "")
            .is("/secure", "NOT_SECURE")
            .is("/version", 1)
            .has_length("/interfaces", 1)
            .is("/interfaces/0/interfaceName", "HTTP-INSECURE-JSON")
            .is("/interfaces/0/id", 2)
            .has("/id")
            .has("/createdAt")
            .has("/updatedAt")
            .has("/serviceDefinition/createdAt")
            .has("/provider/updatedAt")
            .has("/interfaces/0/createdAt")
            .lacks("/endOfValidity")
            .lacks("/metadata")
            .lacks("/provider/authenticationInfo")
            .lacks("/provider/metadata")],
    );
}

#[test]
fn a_full_entry_is_answered_as_it_is_stored() {
    let cloud = Cloud::shared();
    let entry = json!({
        "serviceDefinition": "  Reg-Full  ",
        "providerSystem": {"systemName": " Reg-FULL ", "address": " LocalHost ", "port": 65535, "authenticationInfo": "key", "metadata": {"a": "b"}},
        "serviceUri": "/Full", "endOfValidity": "2031-01-01T00:00:00Z", "secure": "not_secure", "metadata": {},
        "version": 7, "interfaces": ["z-insecure-json", "Http-Insecure-Json", "A_1-SECURE-X"],
    });
    let answer = cloud.register(&entry);
    let stored = cloud.get(&format!("/serviceregistry/mgmt/{}", number(&answer, "/id"))).expect_status(200).json();
    for value in [&answer, &stored] {
        assert_eq!(value["serviceDefinition"]["serviceDefinition"], "reg-full");
        assert_eq!(value["provider"]["systemName"], "reg-full");
        assert_eq!(value["provider"]["address"], "localhost");
        assert_eq!(value["provider"]["authenticationInfo"], "key");
        assert_eq!(value["provider"]["metadata"], json!({"a": "b"}));
        assert_eq!((&value["serviceUri"], &value["secure"], &value["version"]), (&json!("/Full"), &json!("NOT_SECURE"), &json!(7)));
        assert_eq!(value["endOfValidity"], "2031-01-01T00:00:00Z");
        assert_eq!(value["metadata"], json!({}), "an empty map comes back as one");
        let names = texts(list(value, "/interfaces"), "/interfaceName");
        assert_eq!(names, ["A_1-SECURE-X", "HTTP-INSECURE-JSON", "Z-INSECURE-JSON"]);
    }
    let created = stored["createdAt"].as_str().unwrap_or_default();
    assert!(created.len() == 20 && created.ends_with('Z'), "whole seconds: {created:?}");
}

#[test]
fn a_wrong_shape_is_a_bad_payload_of_register() {
    let cloud = Cloud::shared();
    let rows = [
        changed("no definition", |entry| without(entry, "/serviceDefinition")),
        replaced("null definition", "/serviceDefinition", Value::Null),
        replaced("blank definition", "/serviceDefinition", "  "),
        replaced("underscore in the definition", "/serviceDefinition", "under_score"),
        replaced("dot in the definition", "/serviceDefinition", "do.t"),
        replaced("definition starts with a digit", "/serviceDefinition", "1st"),
        replaced("definition ends with a dash", "/serviceDefinition", "dash-"),
        replaced("definition of 64 characters", "/serviceDefinition", "d".repeat(64)),
        changed("no provider", |entry| without(entry, "/providerSystem")),
        replaced("null provider", "/providerSystem", Value::Null),
        changed("no system name", |entry| without(entry, "/providerSystem/systemName")),
        replaced("blank system name", "/providerSystem/systemName", " "),
        replaced("underscore in the system name", "/providerSystem/systemName", "under_score"),
        replaced("dot in the system name", "/providerSystem/systemName", "do.t"),
        replaced("system name starts with a digit", "/providerSystem/systemName", "1st"),
        replaced("system name starts with a dash", "/providerSystem/systemName", "-st"),
        replaced("system name ends with a dash", "/providerSystem/systemName", "dash-"),
        replaced("system name of 64 characters", "/providerSystem/systemName", "s".repeat(64)),
        replaced("system name beyond ASCII", "/providerSystem/systemName", "värme"),
        changed("no port", |entry| without(entry, "/providerSystem/port")),
        replaced("negative port", "/providerSystem/port", -1),
        replaced("port 65536", "/providerSystem/port", 65536),
        changed("no address", |entry| without(entry, "/providerSystem/address")),
        replaced("blank address", "/providerSystem/address", " "),
        replaced("unparsable time", "/endOfValidity", "tomorrow"),
        replaced("time with an offset of 24 hours", "/endOfValidity", "2031-01-01T00:00:00+24:00"),
        replaced("time with a fraction and half an offset", "/endOfValidity", "2031-01-01T12:00:00.5+05"),
        replaced("month 13", "/endOfValidity", "2031-13-01T00:00:00Z"),
        replaced("unknown security", "/secure", "SOMEWHAT"),
        replaced("token without a key", "/secure", "TOKEN"),
        replaced("certificate without a key", "/secure", "CERTIFICATE"),
        replaced("null interfaces", "/interfaces", Value::Null),
        replaced("no interfaces", "/interfaces", json!([])),
        replaced("interface of one part", "/interfaces", json!(["HTTP"])),
        replaced("interface without a format", "/interfaces", json!(["HTTP-SECURE"])),
        replaced("interface neither secure nor insecure", "/interfaces", json!(["HTTP-MAYBE-JSON"])),
        replaced("interface with a dot", "/interfaces", json!(["HT.TP-SECURE-JSON"])),
        replaced("second interface wrong", "/interfaces", json!(["HTTP-SECURE-JSON", ""])),
    ];
    check(&cloud, &rows.map(|row| row.bad_payload(REGISTER)));
}

#[test]
fn a_refused_address_says_so() {
    let cloud = Cloud::shared();
    let addresses = [
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "239.255.255.250",
        "::",
        "ff02::1",
        "FF05:0:0:0:0:0:0:2",
        "under_score",
        "a..b",
        "-host",
        "host-",
        "1::2::3",
        "12345::",
        "g::1",
    ];
    let rows = addresses.map(|address| {
        replaced(&format!("address {address}"), "/providerSystem/address", address)
            .bad_payload(REGISTER)
            .saying_first("Network address verification failure: ")
    });
    check(&cloud, &rows);
    let row = replaced("the detector is off", "/providerSystem/address", "0.0.0.0");
    check(&cloud, &[row.bad_payload(REGISTER).mentioning("Address detection process was skipped")]);
}

#[test]
fn addresses_are_stored_in_one_form() {
    let cloud = Cloud::shared();
    let forms = [
        ("::1", "0000:0000:0000:0000:0000:0000:0000:0001"),
        ("FE80::A", "fe80:0000:0000:0000:0000:0000:0000:000a"),
        ("2001:db8::1:2", "2001:0db8:0000:0000:0000:0000:0001:0002"),
        ("1:2:3:4:5:6:7:8", "0001:0002:0003:0004:0005:0006:0007:0008"),
        ("::FFFF:10.0.0.255", "0000:0000:0000:0000:0000:ffff:0a00:00ff"),
        ("64:ff9b::192.0.2.33", "0064:ff9b:0000:0000:0000:0000:c000:0221"),
        ("  Host-1.Example  ", "host-1.example"),
        ("169.254.1.1", "169.254.1.1"),
        ("127.0.0.9", "127.0.0.9"),
    ];
    let row = |(index, (given, stored)): (usize, (&str, &str))| {
        let request = json!({"systemName": format!("reg-form-{index}"), "address": given, "port": 1});
        Row::post(given, REGISTER_SYSTEM, &request).created().is("/address", stored)
    };
    check(&cloud, &forms.into_iter().enumerate().map(row).collect::<Vec<_>>());
    let again = json!({"systemName": "reg-form-0", "address": "0:0:0:0:0:0:0:1", "port": 1});
    check(&cloud, &[Row::post("the same address spelt otherwise", REGISTER_SYSTEM, &again).invalid_parameter()]);
}

#[test]
fn limits_are_inclusive() {
    let cloud = Cloud::shared();
    let long = "L".repeat(63);
    check(
        &cloud,
        &[
            replaced("63 characters of definition", "/serviceDefinition", long.as_str())
                .created()
                .is("/serviceDefinition/serviceDefinition", long.to_lowercase()),
            replaced("63 characters of system name", "/providerSystem/systemName", long.as_str()).created(),
            replaced("one character of system name", "/providerSystem/systemName", "x").created(),
            replaced("port 0", "/providerSystem/port", 0).created().is("/provider/port", 0),
            replaced("port 65535", "/providerSystem/port", 65535).created().is("/provider/port", 65535),
            replaced("255 characters of URI", "/serviceUri", "u".repeat(255)).created(),
            replaced("2047 characters of key", "/providerSystem/authenticationInfo", "k".repeat(2047)).created(),
            replaced("time with a fraction", "/endOfValidity", "2031-01-01T00:00:00.123Z").created(),
            replaced("time with a fraction and an offset", "/endOfValidity", "2031-01-01T12:00:00.5+05:00")
                .created()
                .is("/endOfValidity", "2031-01-01T07:00:00Z"),
            replaced("time in small letters", "/endOfValidity", "2031-01-01t12:00:00z")
                .created()
                .is("/endOfValidity", "2031-01-01T12:00:00Z"),
        ],
    );
}

#[test]
fn text_longer_than_its_column_is_a_database_failure() {
    let cloud = Cloud::shared();
    let label = "h".repeat(63);
    let address = [label.as_str(); 4].join(".") + ".h";
    let rows = [
        replaced("256 characters of URI", "/serviceUri", "u".repeat(256)),
        replaced("2048 characters of key", "/providerSystem/authenticationInfo", "k".repeat(2048)),
        replaced("257 characters of address", "/providerSystem/address", address),
    ];
    check(&cloud, &rows.map(|row| row.refused(500, ARROWHEAD).saying("Database operation exception")));
}

#[test]
fn metadata_and_uri_are_bounded_and_have_no_line_ends() {
    let cloud = Cloud::shared();
    let good = with(service("reg-bounded", system("reg-bounded", 9013)), "/metadata", json!({"k": "x".repeat((16 << 10) - 1)}));
    cloud.post(REGISTER, &good).expect_status(201);
    let other = with(good, "/serviceUri", "/other");
    let refused =
        |claim: &str, place: &str, value: Value| Row::post(claim, REGISTER, &with(other.clone(), place, value)).bad_payload(REGISTER);
    let rows = [
        refused("one byte more", "/metadata", json!({"k": "x".repeat(16 << 10)})).mentioning("at most 16384"),
        refused("metadata of the provider", "/providerSystem/metadata", json!({"k": "x".repeat(16 << 10)})).mentioning("at most 16384"),
        refused("a line end in a value", "/metadata", json!({"k": "a\nb"})),
        refused("a carriage return in a key", "/metadata", json!({"a\rb": "v"})),
        refused("U+0000 in a value", "/metadata", json!({"k": "a\u{0}b"})),
        refused("a line end in the URI", "/serviceUri", json!("/a\r\nX-Evil: 1")),
        refused("U+0000 in the URI", "/serviceUri", json!("/a\u{0}")),
    ];
    check(&cloud, &rows);
}

#[test]
fn host_names_may_end_with_a_dot() {
    let cloud = Cloud::shared();
    let form = service("reg-dot", with(system("reg-dot", 9014), "/address", "Host.local."));
    let entry = cloud.post(REGISTER, &form).expect_status(201).json();
    assert_eq!(entry["provider"]["address"], "host.local.", "{entry}");
    for address in ["host..", ".", "host..local."] {
        cloud.post(REGISTER, &with(form.clone(), "/providerSystem/address", address)).expect_status(400);
    }
}

#[test]
fn a_null_value_in_a_map_breaks_the_request() {
    let cloud = Cloud::shared();
    let entry = with(service("reg-null-value", system("reg-null-value", 9002)), "/metadata", json!({"key": null}));
    cloud.post(REGISTER, &entry).expect_status(500);
    assert_eq!(cloud.query(&json!({"serviceDefinitionRequirement": "reg-null-value"}))["unfilteredHits"], 0);
}

#[test]
fn insecure_mode_refuses_secure_services_after_the_shape_and_before_the_duplicate() {
    let cloud = Cloud::shared();
    let keyed = with(service("reg-secure", system("reg-secure", 9003)), "/providerSystem/authenticationInfo", "key");
    let message = "ServiceRegistry insecure mode can not handle secure services";
    let refused = |claim: &str, secure: &str| {
        Row::post(claim, REGISTER, &with(keyed.clone(), "/secure", secure)).invalid_parameter().mentioning(message)
    };
    let wrong_interface = with(with(keyed.clone(), "/secure", "TOKEN"), "/interfaces", json!(["HTTP"]));
    check(
        &cloud,
        &[
            refused("token", "TOKEN"),
            refused("certificate in lower case", "certificate"),
            Row::post("a wrong interface is seen first", REGISTER, &wrong_interface).bad_payload(REGISTER),
            Row::post(
                "a key of blanks is none",
                REGISTER,
                &with(with(keyed.clone(), "/secure", "TOKEN"), "/providerSystem/authenticationInfo", "  "),
            )
            .bad_payload(REGISTER)
            .mentioning("authenticationInfo"),
            Row::post("plain", REGISTER, &keyed).created(),
            refused("the mode is seen before the duplicate", "TOKEN"),
        ],
    );
}

#[test]
fn a_refused_duplicate_leaves_no_side_effect() {
    let cloud = Cloud::shared();
    let entry = with(service("reg-twice", system("reg-twice", 9004)), "/serviceUri", "/a");
    let first = cloud.register(&with(entry.clone(), "/providerSystem/metadata", json!({"kept": "yes"})));
    let mut again = with(entry, "/providerSystem/metadata", json!({"kept": "no"}));
    again = with(again, "/providerSystem/authenticationInfo", "intruder");
    again = with(again, "/interfaces", json!(["NEVER_SEEN-INSECURE-TWICE"]));
    let upper = with(with(again.clone(), "/serviceDefinition", " REG-Twice"), "/providerSystem/systemName", "REG-TWICE ");
    let rows = [&again, &upper].map(|body| Row::post("duplicate", REGISTER, body).invalid_parameter().saying_last(" already exists."));
    check(&cloud, &rows);

    let provider = cloud.get(&format!("/serviceregistry/mgmt/systems/{}", number(&first, "/provider/id"))).json();
    assert_eq!(provider["metadata"], json!({"kept": "yes"}));
    assert_eq!(provider.get("authenticationInfo"), None);
    let interfaces = cloud.get("/serviceregistry/mgmt/interfaces").json();
    assert!(!texts(list(&interfaces, "/data"), "/interfaceName").contains(&"NEVER_SEEN-INSECURE-TWICE".to_string()));
    check(&cloud, &[Row::post("another URI is another entry", REGISTER, &with(again, "/serviceUri", "/A")).created()]);
}

#[test]
fn every_register_overwrites_the_key_and_metadata_of_its_system() {
    let cloud = Cloud::shared();
    let keyed = with(with(system("reg-over", 9005), "/authenticationInfo", "first"), "/metadata", json!({"a": "b"}));
    let first = cloud.register(&service("reg-over-one", keyed));
    let id = number(&first, "/provider/id");
    let second = cloud.register(&service("reg-over-two", system("REG-over", 9005)));
    assert_eq!(number(&second, "/provider/id"), id, "the system is found, not made again");
    let after = cloud.get(&format!("/serviceregistry/mgmt/systems/{id}")).json();
    assert_eq!((after.get("authenticationInfo"), after.get("metadata")), (None, None), "{after}");
}

#[test]
fn reserved_names_are_refused_for_systems_and_by_management_but_not_by_register() {
    let cloud = Cloud::shared();
    let mut rows = Vec::new();
    for name in ["serviceregistry", "authorization", "Orchestrator", "EVENTHANDLER", "gatekeeper", "gateway", "qosmonitor", "datamanager"] {
        rows.push(Row::post(name, REGISTER_SYSTEM, &system(name, 9006)).bad_payload(REGISTER_SYSTEM));
        rows.push(Row::post(name, "/serviceregistry/mgmt/systems", &system(name, 9006)).bad_payload("/serviceregistry/mgmt/systems"));
        let entry = service("reg-reserved", system(name, 9006));
        rows.push(Row::post(name, "/serviceregistry/mgmt", &entry).bad_payload("/serviceregistry/mgmt"));
    }
    let entry = service("reg-reserved", system("choreographer", 9006));
    rows.push(Row::post("register does not look", REGISTER, &entry).created());
    check(&cloud, &rows);
}

#[test]
fn register_system_checks_and_stores_a_system() {
    let cloud = Cloud::shared();
    let good = system("reg-system", 9007);
    let bad = |claim: &str, pointer: &str, value: Value| {
        Row::post(claim, REGISTER_SYSTEM, &with(good.clone(), pointer, value)).refused(400, BAD_PAYLOAD)
    };
    check(
        &cloud,
        &[
            bad("null name", "/systemName", Value::Null),
            bad("bad name", "/systemName", json!("a_b")),
            bad("null port", "/port", Value::Null),
            bad("bad port", "/port", json!(70000)),
            bad("null address", "/address", Value::Null),
            bad("bad address", "/address", json!("0.0.0.0")),
            Row::post("good", REGISTER_SYSTEM, &good)
                .created()
                .is("/systemName", "reg-system")
                .is("/port", 9007)
                .has("/id")
                .has("/createdAt")
                .has("/updatedAt")
                .lacks("/authenticationInfo")
                .lacks("/metadata"),
            Row::post("again", REGISTER_SYSTEM, &good).invalid_parameter().mentioning("already exists"),
            Row::post("another port", REGISTER_SYSTEM, &with(good.clone(), "/port", 9008)).created(),
            Row::post("another address", REGISTER_SYSTEM, &with(good.clone(), "/address", "127.0.0.2")).created(),
        ],
    );
}
