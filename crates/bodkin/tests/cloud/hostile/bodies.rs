//! Bodies and queries that are too large, too deep or of the wrong kind.

use serde_json::{Value, json};

use super::{assert_all_live, exchange, posting};
use crate::support::arrowhead::{event, service, system};
use crate::support::cloud::{Cloud, System};
use crate::support::sse::EventStream;

/// Longest body, in bytes.
const BODY_LIMIT_BYTES: usize = 1024 * 1024;

/// Longest body of a publish, in bytes.
const EVENT_LIMIT_BYTES: usize = 64 * 1024;

#[test]
fn a_body_over_the_limit_is_413_before_it_is_sent() {
    let cloud = Cloud::shared();
    for system in System::CORE {
        let limit = if system == System::EventHandler { EVENT_LIMIT_BYTES } else { BODY_LIMIT_BYTES };
        for length in [limit + 1, 100 * limit, 1 << 40] {
            let head = format!(
                "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
                posting(system)
            );
            let (answer, _) = exchange(cloud.address(system), head.as_bytes()).expect("an answer");
            assert_eq!(answer.status, 413, "{} {length}", system.name());
        }
    }
    assert_all_live(&cloud);
}

#[test]
fn a_chunked_body_over_the_limit_is_413() {
    let cloud = Cloud::shared();
    for system in System::CORE {
        let limit = if system == System::EventHandler { EVENT_LIMIT_BYTES } else { BODY_LIMIT_BYTES };
        let mut connection = cloud.connect(system);
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
            posting(system)
        );
        connection.send(head.as_bytes()).expect("sent");
        for sent in (0..=limit).step_by(1024) {
            let chunk = format!("400\r\n{}\r\n", " ".repeat(1024));
            // Past the limit the server may have closed already.
            if connection.send(chunk.as_bytes()).is_err() {
                assert!(sent + 1024 >= limit, "closed after {sent} bytes");
            }
        }
        assert_eq!(connection.read_answer().expect("an answer").status, 413, "{}", system.name());
    }
    assert_all_live(&cloud);
}

#[test]
fn a_body_just_within_the_limit_is_read() {
    let cloud = Cloud::shared();
    cloud.register_system("hostile-large", 1);
    let mut form = json!({"serviceDefinitionRequirement": "hostile-large", "padding": ""}).to_string();
    form.insert_str(form.len() - 2, &"x".repeat(BODY_LIMIT_BYTES - form.len()));
    assert_eq!(form.len(), BODY_LIMIT_BYTES);
    let headers = [("Content-Type", "application/json")];
    let mut registry = cloud.connect(System::ServiceRegistry);
    registry.request("POST", "/serviceregistry/query", &headers, Some(form.as_bytes())).expect("an answer").expect_status(200);

    let empty = event("hostile-large", system("hostile-large", 1), "").to_string();
    let payload = "x".repeat(EVENT_LIMIT_BYTES - empty.len());
    let stream = EventStream::open(cloud.address(System::EventHandler), "/eventhandler/subscription?eventtype=hostile-large", &[]);
    cloud.publish(&event("hostile-large", system("hostile-large", 1), &payload));
    assert_eq!(stream.wait_for(1)[0].data, payload);
    let answer = cloud.post("/eventhandler/publish", &event("hostile-large", system("hostile-large", 1), &format!("{payload}x")));
    assert_eq!(answer.status, 413);
}

#[test]
fn json_nested_ten_thousand_deep_is_400() {
    let cloud = Cloud::shared();
    let deep = 10_000;
    let lists = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
    let objects = format!("{}1{}", "{\"a\":".repeat(deep), "}".repeat(deep));
    let cut = "[".repeat(deep);
    for system in System::CORE {
        let post = |body: &str| {
            let mut connection = cloud.connect(system);
            connection.request("POST", posting(system), &[("Content-Type", "application/json")], Some(body.as_bytes())).expect("an answer")
        };
        for body in [&lists, &cut] {
            let answer = post(body);
            assert_eq!((answer.status, answer.text().as_str()), (400, ""), "{} {}", system.name(), &body[..20]);
        }
        // Below an unknown member it may be passed over; then the members that are missing are what is wrong.
        for body in [&objects, &format!("{{\"unknown\":{lists}}}")] {
            assert_eq!(post(body).status, 400, "{} {}", system.name(), &body[..20]);
        }
    }
    assert_all_live(&cloud);
}

#[test]
fn broken_percent_signs_and_foreign_bytes_in_a_query_break_nothing() {
    let cloud = Cloud::shared();
    for query in ["system_name=%zz", "system_name=%", "system_name=%ff%fe&port=%00", "&&&==&", "port=99999999999999999999"] {
        let target = format!("/serviceregistry/unregister?{query}&service_definition=a&address=a&service_uri=");
        let status = cloud.delete(&target).status;
        assert_eq!(status, 400, "{target}");
        let status = cloud.delete(&format!("/eventhandler/unsubscribe?{query}&event_type=a&address=a")).status;
        assert_eq!(status, 400, "{query}");
    }
    assert_all_live(&cloud);
}

#[test]
fn a_value_of_every_json_type_in_every_member_breaks_nothing() {
    let cloud = Cloud::shared();
    let values = [json!(null), json!(true), json!(-1), json!(1.5e300), json!(""), json!("\u{0}\u{202e}x"), json!([[]]), json!({"": {}})];
    let forms = [
        ("/serviceregistry/register", service("hostile-types", system("hostile-types", 1))),
        ("/serviceregistry/query", json!({"serviceDefinitionRequirement": 0, "interfaceRequirements": 0, "metadataRequirements": 0})),
        ("/authorization/mgmt/intracloud", json!({"consumerId": 0, "providerIds": 0, "serviceDefinitionIds": 0, "interfaceIds": 0})),
        ("/orchestrator/orchestration", json!({"requesterSystem": 0, "requestedService": 0, "orchestrationFlags": 0})),
        ("/eventhandler/publish", event("hostile-types", system("hostile-types", 1), "x")),
        ("/eventhandler/subscribe", json!({"eventType": 0, "subscriberSystem": 0, "notifyUri": 0, "startDate": 0, "sources": 0})),
    ];
    for (target, form) in forms {
        let members: Vec<String> = form.as_object().expect("an object").keys().cloned().collect();
        for member in members {
            for value in &values {
                let mut changed: Value = form.clone();
                changed[&member] = value.clone();
                let status = cloud.post(target, &changed).status;
                assert!(matches!(status, 200 | 201 | 400), "{target} {member} = {value}: {status}");
            }
        }
    }
    assert_all_live(&cloud);
}
