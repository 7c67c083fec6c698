//! What every system does with a request before its own rules look at it (reference sections 1.1 to 1.3).

use serde_json::{Value, json};

use super::table::{Row, check, header_faults};
use crate::support::arrowhead::{service, system, with};
use crate::support::cloud::{Cloud, System, system_of};

/// Every path that takes a JSON object by POST and is not also read by GET.
const POST_ONLY: [&str; 8] = [
    "/serviceregistry/register",
    "/serviceregistry/register-system",
    "/serviceregistry/query",
    "/authorization/intracloud/check",
    "/authorization/subscription/check",
    "/orchestrator/orchestration",
    "/eventhandler/publish",
    "/eventhandler/subscribe",
];

/// Every path that takes a JSON object by POST and a list by GET.
const POST_AND_GET: [&str; 4] =
    ["/serviceregistry/mgmt", "/serviceregistry/mgmt/systems", "/serviceregistry/mgmt/services", "/authorization/mgmt/intracloud"];

/// The paths of the second table whose POST is served.
fn post_paths() -> impl Iterator<Item = &'static str> {
    POST_ONLY.into_iter().chain(POST_AND_GET.into_iter().filter(|path| *path != "/serviceregistry/mgmt/services"))
}

#[test]
fn every_system_answers_echo_with_and_without_a_trailing_slash() {
    let cloud = Cloud::shared();
    for system in System::CORE {
        for slash in ["", "/"] {
            let target = format!("/{}/echo{slash}", system.name());
            check(&cloud, &[Row::get("echo", &target).text("Got it!")]);
            let answer = cloud.get(&target);
            assert_eq!(answer.header("content-type"), Some("text/plain;charset=UTF-8"), "{target}");
        }
    }
}

#[test]
fn an_unknown_path_is_404_with_the_frameworks_json() {
    let cloud = Cloud::shared();
    for system in System::CORE {
        let target = format!("/{}/nothing-here", system.name());
        let answer = cloud.get(&target).expect_status(404);
        assert!(answer.header("content-type").is_some_and(|value| value.starts_with("application/json")), "{answer:?}");
        assert_eq!(header_faults(&answer), Vec::<String>::new());
        let body = answer.json();
        let Value::Object(members) = &body else { panic!("{body}") };
        let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["error", "message", "path", "status", "timestamp"]);
        assert_eq!((&body["status"], &body["error"], &body["path"]), (&json!(404), &json!("Not Found"), &json!(target)));
        assert!(is_framework_time(body["timestamp"].as_str().unwrap_or_default()), "{body}");
    }
}

/// `2026-11-20T23:41:37.832+0000`
fn is_framework_time(text: &str) -> bool {
    let shape = "dddd-dd-ddTdd:dd:dd.ddd+0000";
    text.len() == shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, form)| if form == b'd' { byte.is_ascii_digit() } else { byte == form })
}

#[test]
fn a_path_of_another_system_is_unknown() {
    let cloud = Cloud::shared();
    let answer =
        cloud.connect(System::EventHandler).request("GET", "/serviceregistry/echo", &[], None).expect("an answer").expect_status(404);
    assert_eq!(answer.json()["path"], "/serviceregistry/echo");
}

#[test]
fn malformed_json_is_400_without_a_body() {
    let cloud = Cloud::shared();
    let bodies: [&[u8]; 6] = [b"{", b"nonsense", b"{\"a\":}", b"[]", b"\"text\"", b"{\"a\":\"\xff\xfe\"}"];
    for path in post_paths() {
        for body in bodies {
            let claim = format!("{:?}", String::from_utf8_lossy(body));
            check(&cloud, &[Row::new(claim, "POST", path).sending("application/json", body).empty(400)]);
        }
    }
}

#[test]
fn a_wrong_json_type_is_400_without_a_body() {
    let cloud = Cloud::shared();
    let entry = service("framework-types", system("framework-types", 8001));
    let register = |pointer: &str, value: Value| {
        let claim = format!("{pointer} = {value}");
        Row::post(claim, "/serviceregistry/register", &with(entry.clone(), pointer, value)).empty(400)
    };
    let check_form = json!({"consumer": system("framework-types", 1), "serviceDefinitionId": "one", "providerIdsWithInterfaceIds": []});
    check(
        &cloud,
        &[
            register("/serviceDefinition", json!({"name": "x"})),
            register("/serviceDefinition", json!(["x"])),
            register("/providerSystem", json!("x")),
            register("/providerSystem/port", json!("http")),
            register("/providerSystem/port", json!({})),
            register("/providerSystem/metadata", json!("a=b")),
            register("/interfaces", json!({"a": "b"})),
            register("/version", json!("first")),
            register("/metadata", json!([1])),
            Row::post("an id that is text", "/authorization/intracloud/check", &check_form).empty(400),
            Row::post("ids that are no list", "/authorization/mgmt/intracloud", &json!({"consumerId": 1, "providerIds": {"a": 1}}))
                .empty(400),
            Row::post("flags that are no map", "/orchestrator/orchestration", &json!({"orchestrationFlags": [true]})).empty(400),
            Row::post("a flag that is no boolean", "/orchestrator/orchestration", &json!({"orchestrationFlags": {"matchmaking": "maybe"}}))
                .empty(400),
            Row::post("a source that is text", "/eventhandler/publish", &json!({"source": "x"})).empty(400),
            Row::post("sources that are text", "/eventhandler/subscribe", &json!({"sources": "x"})).empty(400),
        ],
    );
}

#[test]
fn an_unknown_enum_constant_is_400_without_a_body() {
    let cloud = Cloud::shared();
    let query = |member: &str, constant: &str| {
        let form = json!({"serviceDefinitionRequirement": "framework-enum", member: [constant]});
        Row::post(format!("{member} {constant}"), "/serviceregistry/query", &form)
    };
    check(
        &cloud,
        &[
            query("securityRequirements", "SOMEWHAT_SECURE").empty(400),
            query("providerAddressTypeRequirements", "IPV5").empty(400),
            query("securityRequirements", "TOKEN"),
            query("providerAddressTypeRequirements", "IPV6"),
        ],
    );
}

#[test]
fn a_missing_body_is_400_without_a_body() {
    let cloud = Cloud::shared();
    for path in post_paths() {
        let mut connection = cloud.connect(system_of(path));
        let answer = connection.request("POST", path, &[("Content-Type", "application/json")], None).expect("an answer");
        assert_eq!((answer.status, answer.body.len()), (400, 0), "{path}: {answer:?}");
    }
}

#[test]
fn a_stated_length_of_zero_is_refused_with_the_full_url_and_closed() {
    let cloud = Cloud::shared();
    for path in post_paths() {
        let system = system_of(path);
        let url = format!("http://{}{path}", cloud.address(system));
        check(&cloud, &[Row::new("no bytes", "POST", path).sending("application/json", "").bad_payload(url)]);
        let mut connection = cloud.connect(system);
        let headers = [("Content-Type", "application/json")];
        connection.request("POST", path, &headers, Some(b"")).expect("an answer").expect_status(400);
        assert!(connection.is_closed_by_server(), "{path} stays open");
    }
}

#[test]
fn get_and_delete_with_a_body_are_refused_with_the_full_url() {
    let cloud = Cloud::shared();
    let targets = [
        ("GET", "/serviceregistry/echo"),
        ("GET", "/serviceregistry/mgmt"),
        ("DELETE", "/serviceregistry/mgmt/999999999"),
        ("GET", "/authorization/mgmt/intracloud"),
        ("GET", "/orchestrator/echo"),
        ("GET", "/eventhandler/echo"),
        ("DELETE", "/eventhandler/mgmt/subscriptions/999999999"),
    ];
    let row = |(method, target): (&'static str, &str)| {
        let url = format!("http://{}{target}", cloud.address(system_of(target)));
        Row::new("with a body", method, target).sending("application/json", "{}").bad_payload(url)
    };
    check(&cloud, &targets.map(row));
}

#[test]
fn a_wrong_method_is_405_without_a_body() {
    let cloud = Cloud::shared();
    let mut rows: Vec<Row> = POST_ONLY.into_iter().map(|path| Row::get("GET where only POST is", path).empty(405)).collect();
    rows.extend(POST_ONLY.into_iter().map(|path| Row::delete("DELETE where only POST is", path).empty(405)));
    for system in System::CORE {
        let target = format!("/{}/echo", system.name());
        rows.push(Row::post("POST where only GET is", &target, &json!({})).empty(405));
        rows.push(Row::delete("DELETE where only GET is", &target).empty(405));
    }
    rows.push(Row::get("GET where only DELETE is", "/serviceregistry/unregister").empty(405));
    rows.push(Row::get("GET where only DELETE is", "/eventhandler/unsubscribe").empty(405));
    check(&cloud, &rows);
}

#[test]
fn a_wrong_content_type_is_415_without_a_body() {
    let cloud = Cloud::shared();
    let rows: Vec<Row> = post_paths()
        .flat_map(|path| ["text/plain", "application/xml", "application/x-www-form-urlencoded"].map(|kind| (path, kind)))
        .map(|(path, kind)| Row::new(kind, "POST", path).sending(kind, "{}").empty(415))
        .collect();
    check(&cloud, &rows);
}

#[test]
fn a_json_content_type_is_recognised_in_any_spelling() {
    let cloud = Cloud::shared();
    let form = json!({"serviceDefinitionRequirement": "framework-content-type"}).to_string();
    let kinds = ["application/json", "application/json;charset=UTF-8", "APPLICATION/JSON", "application/json; charset=utf-8"];
    check(&cloud, &kinds.map(|kind| Row::new(kind, "POST", "/serviceregistry/query").sending(kind, form.clone())));
}

#[test]
fn a_missing_or_mistyped_query_parameter_is_400_without_a_body() {
    let cloud = Cloud::shared();
    let targets = [
        "/serviceregistry/unregister?system_name=a&port=1&service_uri=&address=127.0.0.1",
        "/serviceregistry/unregister?service_definition=a&port=1&service_uri=&address=127.0.0.1",
        "/serviceregistry/unregister?service_definition=a&system_name=a&service_uri=&address=127.0.0.1",
        "/serviceregistry/unregister?service_definition=a&system_name=a&port=one&service_uri=&address=127.0.0.1",
        "/serviceregistry/unregister-system?port=1&address=127.0.0.1",
        "/serviceregistry/unregister-system?system_name=a&address=127.0.0.1",
        "/serviceregistry/unregister-system?system_name=a&port=one&address=127.0.0.1",
        "/eventhandler/unsubscribe?system_name=a&address=127.0.0.1&port=1",
        "/eventhandler/unsubscribe?event_type=a&address=127.0.0.1&port=1",
        "/eventhandler/unsubscribe?event_type=a&system_name=a&port=1",
        "/eventhandler/unsubscribe?event_type=a&system_name=a&address=127.0.0.1",
        "/eventhandler/unsubscribe?event_type=a&system_name=a&address=127.0.0.1&port=one",
    ];
    check(&cloud, &targets.map(|target| Row::delete("a parameter is missing or no number", target).empty(400)));
    let pages =
        ["/serviceregistry/mgmt", "/serviceregistry/mgmt/systems", "/authorization/mgmt/intracloud", "/eventhandler/mgmt/subscriptions"];
    check(&cloud, &pages.map(|path| Row::get("page is no number", format!("{path}?page=first&item_per_page=2")).empty(400)));
}

#[test]
fn unknown_members_are_ignored_and_text_is_read_as_number_or_boolean() {
    let cloud = Cloud::shared();
    let mut entry = service("framework-lenient", system("framework-lenient", 0));
    entry = with(entry, "/providerSystem/port", "8080");
    entry = with(entry, "/providerSystem/colour", "red");
    entry = with(entry, "/version", "3");
    entry = with(entry, "/somethingElse", json!({"deep": [1, 2, {"er": null}]}));
    let query =
        json!({"serviceDefinitionRequirement": "framework-lenient", "pingProviders": "false", "versionRequirement": "3", "shape": []});
    let orchestration = json!({
        "requesterSystem": {"systemName": "framework-lenient", "address": "127.0.0.1", "port": "8080"},
        "requestedService": {"serviceDefinitionRequirement": "framework-lenient"},
        "orchestrationFlags": {"overrideStore": "true", "matchmaking": "false", "noSuchFlag": true},
    });
    check(
        &cloud,
        &[
            Row::post("register", "/serviceregistry/register", &entry).created().is("/provider/port", 8080).is("/version", 3),
            Row::post("query", "/serviceregistry/query", &query).has_length("/serviceQueryData", 1),
            Row::post("orchestrate", "/orchestrator/orchestration", &orchestration).is("/response", json!([])),
        ],
    );
}

#[test]
fn text_beyond_ascii_survives_the_round() {
    let cloud = Cloud::shared();
    let entry = with(service("framework-text", system("framework-text", 8002)), "/serviceUri", "/värme/温度");
    let entry = with(entry, "/metadata", json!({"ort, ö=1": "a=b, c & d+e %41", "😀": "\"quoted\"\t"}));
    check(&cloud, &[Row::post("register", "/serviceregistry/register", &entry).created()]);
    let found = cloud.query(&json!({"serviceDefinitionRequirement": "framework-text"}));
    assert_eq!(found["serviceQueryData"][0]["serviceUri"], entry["serviceUri"]);
    assert_eq!(found["serviceQueryData"][0]["metadata"], entry["metadata"]);
}

#[test]
fn options_tells_the_methods_of_a_path() {
    let cloud = Cloud::shared();
    let paths = [
        ("/serviceregistry/register", "POST, OPTIONS"),
        ("/serviceregistry/echo", "GET, HEAD, OPTIONS"),
        ("/authorization/mgmt/intracloud", "GET, POST, HEAD, OPTIONS"),
        ("/eventhandler/publish", "POST, OPTIONS"),
        ("/eventhandler/subscription", "GET, OPTIONS"),
        ("/swagger-ui.html", "GET, HEAD, OPTIONS"),
    ];
    for (path, allow) in paths {
        let answer = cloud.call("OPTIONS", path, None).expect_status(200);
        assert_eq!((answer.header("allow"), answer.body.len()), (Some(allow), 0), "{path}");
    }
    cloud.call("OPTIONS", "/orchestrator/nothing-here", None).expect_status(404);
}

#[test]
fn head_is_get_without_the_body() {
    let cloud = Cloud::shared();
    for system in System::CORE {
        let path = format!("/{}/echo", system.name());
        let mut connection = cloud.connect(system);
        connection.send_request("HEAD", &path, &[], None).expect("sent");
        let head = connection.read_head().expect("a head");
        assert_eq!(head.status, 200);
        assert_eq!(crate::support::http::header(&head.headers, "content-length"), Some("7"), "the length that GET would have");
        // Nothing stands between this answer and the next.
        connection.request("GET", &path, &[], None).expect("an answer").expect_status(200);
    }
}

#[test]
fn a_path_is_decoded_once_and_an_encoded_slash_is_none() {
    let cloud = Cloud::shared();
    let row = |target: &str| Row::get("decoded", target).text("Got it!");
    check(&cloud, &[row("/serviceregistry/%65cho"), row("/serviceregistry/%65%63h%6f/"), row("/eventhandler/ech%6F")]);
    for target in [
        "/serviceregistry%2Fecho",
        "/serviceregistry/%2565cho",
        "/serviceregistry/echo%2f",
        "/serviceregistry/%c0%afecho",
        "/serviceregistry/x/../echo",
        "/serviceregistry/echo%00",
    ] {
        cloud.connect(System::ServiceRegistry).request("GET", target, &[], None).expect("an answer").expect_status(404);
    }
    let event = json!({"eventType": "DECODED", "source": system("framework-decoded", 1), "payload": "x"});
    check(&cloud, &[Row::post("publish", "/eventhandler/pub%6Cish", &event).refused(400, "INVALID_PARAMETER")]);
}
