use proptest::prelude::*;

use super::*;
use crate::{publication::Publication, record::SystemId, utc::UtcTime};

const ATTRIBUTES: [(&str, &str); 4] = [("specversion", "1.0"), ("id", "a-1"), ("source", "//10.0.0.7:9000/sensor"), ("type", "hot")];

fn binary_of(attributes: &[(&str, &str)], content_type: &str, body: &[u8]) -> Result<Value, CloudEventError> {
    publish_form(&HttpEvent { content_type, attributes, body }).map(|form| serde_json::from_str(&form).unwrap())
}

fn structured_of(body: &Value) -> Result<Value, CloudEventError> {
    binary_of(&[], "application/cloudevents+json; charset=utf-8", body.to_string().as_bytes())
}

/// The event that subscribers get of what was published, as a CloudEvent.
fn came_out(form: &Value) -> Value {
    let event = json!({"eventType": form["eventType"], "metaData": form["metaData"], "payload": form["payload"], "timeStamp": "x"});
    let text = event.to_string();
    let publication = Publication::reread(&text, SystemId(7), UtcTime::from_unix_seconds(9)).unwrap();
    let mut out = Vec::new();
    Outgoing::new("7:1:2:3", &publication).push_json(&mut out);
    serde_json::from_slice(&out).unwrap()
}

/// The same as its text.
fn came_out_as(form: &Value) -> String {
    let event = json!({"eventType": form["eventType"], "metaData": form["metaData"], "payload": form["payload"], "timeStamp": "x"});
    let text = event.to_string();
    let publication = Publication::reread(&text, SystemId(7), UtcTime::from_unix_seconds(9)).unwrap();
    let mut out = Vec::new();
    Outgoing::new("7:1:2:3", &publication).push_json(&mut out);
    String::from_utf8(out).unwrap()
}

/// A structured event with these further members.
fn structured_with(members: &str) -> Result<Value, CloudEventError> {
    let text = format!(r#"{{"specversion":"1.0","id":"3","source":"//h:1/a","type":"t",{members}}}"#);
    publish_form(&HttpEvent { content_type: STRUCTURED, attributes: &[], body: text.as_bytes() })
        .map(|form| serde_json::from_str(&form).unwrap())
}

/// The headers and the body of the request that brings it.
fn sent(form: &Value, mode: ContentMode) -> (Vec<String>, Vec<u8>) {
    let text = form.to_string();
    let publication = Publication::reread(&text, SystemId(7), UtcTime::from_unix_seconds(9)).unwrap();
    let mut headers = Vec::new();
    let body = Outgoing::new("7:1:2:3", &publication).into_request(mode, &mut headers);
    let headers = String::from_utf8(headers).unwrap();
    let lines = headers.strip_suffix("\r\n").expect("each header has its line end").split("\r\n");
    (lines.map(str::to_owned).collect(), body)
}

#[test]
fn both_modes_say_the_same() {
    let with = [&ATTRIBUTES[..], &[("time", "2026-01-01T00:00:00Z"), ("subject", "%E2%82%AC%20x")]].concat();
    let binary = binary_of(&with, "application/json", br#"{"celsius": 21}"#).unwrap();
    let structured = structured_of(&json!({"specversion": "1.0", "id": "a-1", "source": "//10.0.0.7:9000/sensor", "type": "hot",
        "time": "2026-01-01T00:00:00Z", "subject": "\u{20ac} x", "datacontenttype": "application/json", "data": {"celsius": 21}}))
    .unwrap();
    for form in [&binary, &structured] {
        assert_eq!((&form["eventType"], &form["timeStamp"]), (&"hot".into(), &"2026-01-01T00:00:00Z".into()));
        assert_eq!(form["source"], json!({"systemName": "sensor", "address": "10.0.0.7", "port": 9000}));
        assert_eq!((&form["metaData"]["ce-id"], &form["metaData"]["ce-subject"]), (&"a-1".into(), &"\u{20ac} x".into()));
        let data: Value = serde_json::from_str(form["payload"].as_str().unwrap()).unwrap();
        assert_eq!(data, json!({"celsius": 21}));
        let out = came_out(form);
        assert_eq!(out["data"], json!({"celsius": 21}), "JSON comes out as JSON");
        for name in ["id", "source", "type", "subject", "specversion"] {
            assert!(out[name].is_string(), "{name} is missing in {out}");
        }
        assert_eq!((&out["id"], &out["source"]), (&"a-1".into(), &"//10.0.0.7:9000/sensor".into()));
    }
}

#[test]
fn data_is_what_it_is_said_to_be() {
    let payload = |kind: Option<&str>, data: Value| {
        let mut event = json!({"specversion": "1.0", "id": "1", "source": "//h:1/a", "type": "t", "data": data});
        kind.iter().for_each(|kind| event["datacontenttype"] = (*kind).into());
        let form = structured_of(&event).unwrap();
        (form["payload"].as_str().unwrap().to_owned(), came_out(&form)["data"].clone())
    };
    assert_eq!(payload(Some("text/plain"), json!("21.5")), ("21.5".into(), json!("21.5")));
    assert_eq!(payload(None, json!("21.5")), ("\"21.5\"".into(), json!("21.5")), "without a word it is JSON");
    assert_eq!(payload(Some("application/vnd.x+json"), json!([1, 2])), ("[1,2]".into(), json!([1, 2])));
    let form = binary_of(&ATTRIBUTES, "application/octet-stream", &[0xff, 0, 1, 2]).unwrap();
    assert_eq!(form["payload"], "/wABAg==");
    let out = came_out(&form);
    assert_eq!((&out["data_base64"], out.get("data")), (&"/wABAg==".into(), None));
    let back =
        structured_of(&json!({"specversion": "1.0", "id": "1", "source": "//h:1/a", "type": "t", "data_base64": "/wABAg=="})).unwrap();
    assert_eq!(came_out(&back)["data_base64"], "/wABAg==");
    let lies = binary_of(&ATTRIBUTES, "application/json", b"{ no json").unwrap();
    assert_eq!(came_out(&lies)["data"], "{ no json");
}

#[test]
fn data_keeps_its_octets_in_both_modes() {
    let texts = [
        r#"{ "b":1, "a":123456789012345678901234567890, "f":1.10 }"#,
        r#"{"n":18446744073709551616}"#,
        "1e400",
        "{\"a\":\n1}",
        r#""\u00e9 \/""#,
        "-0.0",
    ];
    for text in texts {
        for form in
            [structured_with(&format!(r#""data": {text} "#)).unwrap(), binary_of(&ATTRIBUTES, "application/json", text.as_bytes()).unwrap()]
        {
            assert_eq!(form["payload"], text);
            assert!(came_out_as(&form).contains(&format!(r#","data":{text}}}"#)), "{}", came_out_as(&form));
            assert_eq!(sent(&form, ContentMode::Binary).1, text.as_bytes());
        }
    }
}

#[test]
fn attributes_keep_their_types() {
    let form = structured_with(r#""room":7,"isopen":true,"name":"7","big":18446744073709551616,"data":1"#).unwrap();
    assert_eq!((&form["metaData"]["ce-room"], &form["metaData"]["ce-isopen"]), (&"7".into(), &"true".into()), "filters see texts");
    let out = came_out_as(&form);
    for member in [r#""room":7,"#, r#""isopen":true,"#, r#""name":"7","#, r#""big":18446744073709551616,"#] {
        assert!(out.contains(member), "{member}: {out}");
    }
    let headers = sent(&form, ContentMode::Binary).0;
    assert!(headers.contains(&"ce-room: 7".to_owned()) && headers.contains(&"ce-isopen: true".to_owned()), "{headers:?}");
    assert!(!headers.iter().any(|line| line.contains("literals")), "{headers:?}");
}

#[test]
fn datacontenttype_is_not_invented() {
    let form = structured_with(r#""data":{"a":1}"#).unwrap();
    assert_eq!(form["metaData"].get("ce-datacontenttype"), None);
    let out: Value = serde_json::from_str(&came_out_as(&form)).unwrap();
    assert_eq!((out.get("datacontenttype"), &out["data"]), (None, &json!({"a": 1})));
    let (headers, body) = sent(&form, ContentMode::Binary);
    assert!(!headers.iter().any(|line| line.starts_with("Content-Type")), "{headers:?}");
    assert_eq!(body, br#"{"a":1}"#);
    let form = binary_of(&ATTRIBUTES, "", b"21.5").unwrap();
    assert_eq!(came_out(&form).get("datacontenttype"), None);
}

#[test]
fn structured_event_with_unusable_member_is_refused() {
    let deep = format!(r#""data":{}1{}"#, "[".repeat(128), "]".repeat(128));
    let cases = [
        (r#""id":"4","data":1"#, "id was given twice"),
        (r#""data":1,"data":2"#, "data was given twice"),
        (r#""subject":7"#, "subject is 7"),
        (r#""data":"\ud800""#, "surrogate"),
        (r#""room":[7]"#, "room"),
        (deep.as_str(), "nested"),
    ];
    for (members, told) in cases {
        let error = structured_with(members).unwrap_err().to_string();
        assert!(error.contains(told), "{members}: {error}");
    }
}

#[test]
fn metadata_cannot_break_a_structured_event() {
    let event = json!({"eventType": "t", "payload": "x", "metaData": {"ce-id": "1", "ce-a": "1,\"evil\":2", "ce-b": "7", "ce-subject": "7",
        "ce_literals": "a,b,subject,id,missing,"}});
    let out: Value = serde_json::from_str(&came_out_as(&event)).unwrap();
    assert_eq!((&out["a"], &out["b"], &out["subject"], &out["id"]), (&json!("1,\"evil\":2"), &json!(7), &json!("7"), &json!("1")));
    assert_eq!(out.get("evil"), None);
}

#[test]
fn an_event_that_was_none_is_one_too() {
    let out =
        came_out(&json!({"eventType": " Hot ", "metaData": {"unit": "celsius", "Not A Name": "x", "id": "theirs"}, "payload": "21.5"}));
    assert_eq!(
        out,
        json!({"specversion": "1.0", "id": "7:1:2:3", "source": "/serviceregistry/mgmt/systems/7", "type": "Hot", "time": "1970-01-01T00:00:09Z",
            "unit": "celsius", "datacontenttype": "text/plain", "data": "21.5"})
    );
}

#[test]
fn what_is_none_is_refused_with_what_was_expected() {
    let without = |name: &str| ATTRIBUTES.iter().copied().filter(|(other, _)| *other != name).collect::<Vec<_>>();
    for name in ["specversion", "id", "source", "type"] {
        let told = binary_of(&without(name), "", b"1").unwrap_err().to_string();
        assert!(told.contains(name) && told.contains("missing"), "{told}");
    }
    for source in ["sensor", "//h/sensor", "//h:70000/sensor", "//:1/sensor", "//h:1/", "//h:1/a/b", "http://h:1/sensor"] {
        let told = binary_of(&[&without("source")[..], &[("source", source)]].concat(), "", b"1").unwrap_err();
        assert!(matches!(&told, CloudEventError::Wrong(told) if told.contains("//HOST:PORT/NAME")), "{source}: {told}");
    }
    let kinds = [("application/cloudevents-batch+json", "[]"), ("application/cloudevents+avro", "x"), ("text/plain", "x")];
    for (kind, body) in kinds {
        assert!(matches!(binary_of(&[], kind, body.as_bytes()), Err(CloudEventError::Kind(_))), "{kind}");
    }
    for (name, value) in [("bad-name", "x"), ("UPPER", "%ff"), ("id", "again"), ("subject", "%zz")] {
        assert!(binary_of(&[&ATTRIBUTES[..], &[(name, value)]].concat(), "", b"1").is_err(), "{name}");
    }
    let event = json!({"specversion": "0.3", "id": "1", "source": "//h:1/a", "type": "t"});
    assert!(structured_of(&event).unwrap_err().to_string().contains("\"1.0\" is expected"));
    for extra in [json!({"data": 1, "data_base64": "AA=="}), json!({"data_base64": "A"}), json!({"list": [1]}), json!({"data_base64": 1})] {
        let mut event = json!({"specversion": "1.0", "id": "1", "source": "//h:1/a", "type": "t"});
        event.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        assert!(structured_of(&event).is_err(), "{extra}");
    }
    assert!(structured_of(&json!([])).is_err());
}

#[test]
fn a_request_that_brings_an_event_is_read_as_the_same_event() {
    let with = [&ATTRIBUTES[..], &[("time", "2026-01-01T00:00:00Z"), ("subject", "%E2%82%AC%20%22x%22%25")]].concat();
    for (kind, body) in
        [("application/json", &br#"{"celsius": 21}"#[..]), ("text/plain", b"21.5"), ("image/png", &[0xff, 0, 1]), ("text/plain", b" ")]
    {
        let form = binary_of(&with, kind, body).unwrap();
        let (headers, out) = sent(&form, ContentMode::Binary);
        let pairs: Vec<(&str, &str)> = headers.iter().map(|line| line.split_once(": ").unwrap()).collect();
        let attributes: Vec<(&str, &str)> = pairs.iter().filter_map(|(name, value)| Some((name.strip_prefix("ce-")?, *value))).collect();
        assert_eq!((pairs[0], out.as_slice()), (("Content-Type", kind), body));
        assert_eq!(binary_of(&attributes, kind, &out).unwrap(), form, "{headers:?}");
        let (headers, out) = sent(&form, ContentMode::Structured);
        assert_eq!(headers, ["Content-Type: application/cloudevents+json; charset=utf-8"]);
        assert_eq!(came_out(&structured_of(&serde_json::from_slice(&out).unwrap()).unwrap()), came_out(&form));
    }
}

#[test]
fn an_event_without_data_is_told_to_have_none() {
    let without = json!({"specversion": "1.0", "id": "1", "source": "//h:1/a", "type": "t"});
    for form in [structured_of(&without).unwrap(), binary_of(&ATTRIBUTES, "", b"").unwrap()] {
        assert_eq!((&form["payload"], &form["metaData"]["ce_nodata"]), (&"null".into(), &"true".into()), "a payload is never blank");
        let out = came_out(&form);
        assert!(out.get("data").is_none() && out.get("data_base64").is_none() && out.get("datacontenttype").is_none(), "{out}");
        let (headers, body) = sent(&form, ContentMode::Binary);
        assert_eq!((headers.len(), body.is_empty()), (1, false), "a webhook is never sent a request without a body");
    }
}

#[test]
fn no_metadata_of_a_publisher_begins_a_header() {
    let event = json!({"eventType": "t", "payload": "x", "timeStamp": "2026-01-01T00:00:00Z",
        "metaData": {"ce-datacontenttype": "text/plain\r\nEvil: 1", "ce-subject": "a\r\nEvil: 2", "ce-a: b\r\nEvil": "3", "ce_base64": "no, it is not"}});
    let (headers, body) = sent(&event, ContentMode::Binary);
    assert!(headers.iter().all(|line| line.starts_with("ce-") || line == "Content-Type: application/octet-stream"), "{headers:?}");
    assert!(headers.contains(&"ce-subject: a%0D%0AEvil:%202".to_owned()), "{headers:?}");
    assert_eq!(body, b"x", "what is said to be Base64 and is not is a text");
}

#[test]
fn a_trace_has_its_name_on_either_side() {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let form = binary_of(&[&ATTRIBUTES[..], &[("traceparent", trace)]].concat(), "", b"1").unwrap();
    assert_eq!((&form["metaData"]["traceparent"], form["metaData"].get("ce-traceparent")), (&trace.into(), None));
    assert_eq!(came_out(&form)["traceparent"], trace);
}

#[test]
fn a_time_is_brought_into_utc() {
    let stamp = |time: &str| {
        let event = json!({"specversion": "1.0", "id": "1", "source": "//h:1/a", "type": "t", "data": 1, "time": time});
        structured_of(&event).unwrap()["timeStamp"].as_str().unwrap().to_owned()
    };
    for same in [
        "2026-01-01T00:00:00Z",
        "2026-01-01t00:00:00z",
        "2026-01-01T05:30:00+05:30",
        "2025-12-31T23:00:00-01:00",
        "2026-01-01T00:00:00-00:00",
        // As in Arrowhead 4.1.3, a time without a zone is UTC.
        "2026-01-01T00:00:00",
    ] {
        assert_eq!(stamp(same), "2026-01-01T00:00:00Z", "{same}");
    }
    assert_eq!(stamp("2026-01-01T01:00:00.25+01:00"), "2026-01-01T00:00:00.250000000Z");
    // The Event Handler refuses these with what is expected.
    for none in ["soon", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+1:000", "2026-01-01T00:00:00*01:00", "\u{20ac}\u{20ac}", ""] {
        assert_eq!(stamp(none), none);
    }
}

proptest! {
    #[test]
    fn whatever_comes_is_an_event_or_an_error(
        kind in prop::sample::select(vec!["application/cloudevents+json", "application/json", "", "text/plain; charset=\u{e4}"]),
        attributes in prop::collection::vec(("[a-z%]{0,8}|specversion|id|source|type|time", "\\PC{0,12}|1\\.0|//h:1/a"), 0..8),
        body: Vec<u8>,
        time in "\\PC{0,30}|[0-9T:.+Z-]{0,30}",
    ) {
        let attributes: Vec<(&str, &str)> = attributes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let _ = publish_form(&HttpEvent { content_type: kind, attributes: &attributes, body: &body });
        let event = json!({"specversion": "1.0", "id": "1", "source": "//h:1/a", "type": "t", "time": time, "data": String::from_utf8_lossy(&body)});
        prop_assert!(structured_of(&event).is_ok());
    }

    #[test]
    fn no_metadata_breaks_a_request(pairs in prop::collection::btree_map("\\PC{0,9}|ce-[a-z\r\n]{0,9}|ce_base64|ce_nodata", ".{0,9}", 0..9), payload in ".{1,9}") {
        let event = json!({"eventType": "t", "payload": payload, "timeStamp": "2026-01-01T00:00:00Z", "metaData": pairs});
        for mode in ContentMode::ALL {
            let (headers, body) = sent(&event, mode);
            for line in &headers {
                prop_assert!(line.split_once(": ").is_some() && line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line:?}");
            }
            if mode == ContentMode::Structured {
                prop_assert!(serde_json::from_slice::<Value>(&body).is_ok());
            }
        }
    }
}
