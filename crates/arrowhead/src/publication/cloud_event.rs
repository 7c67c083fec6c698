//! CloudEvents 1.0 as events of a cloud, and back: the JSON event format, and the HTTP binding's structured and binary modes.
//!
//! | attribute | event |
//! |---|---|
//! | `type` | event type |
//! | `source` | the registered system that publishes: `//HOST:PORT/NAME` |
//! | `time` | time stamp, in UTC (`Z`) |
//! | data | payload; what is no text is kept as Base64 |
//! | `id`, `source` and all others | metadata `ce-NAME`, so that filters see them and they come out again |
//!
//! Going out, an event that did not come as one has its identity as `id`, and as `source` the path at which the Service Registry tells of its publisher.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json, value::RawValue};

use super::{JsonText, Publication, each_pair};

/// The version of the specification.
const VERSION: &str = "1.0";
/// What a single event in the structured mode is said to be.
pub const STRUCTURED: &str = "application/cloudevents+json";
/// Attributes of an event, extensions among them.
const ATTRIBUTES_MAX: usize = 32;
/// Letters of an attribute's name; the specification advises at most 20.
const NAME_LENGTH_MAX: usize = 64;
/// In front of attributes among the metadata, as among the headers.
const PREFIX: &str = "ce-";
/// Metadata that says that the payload is Base64; no attribute has a name like it.
const BASE64: &str = "ce_base64";
/// Attributes that have a place of their own in an event.
const PLACED: [&str; 3] = ["specversion", "type", "time"];

/// An HTTP request that carries an event.
#[derive(Clone, Copy, Debug)]
pub struct HttpEvent<'r> {
    /// `Content-Type`.
    pub content_type: &'r str,
    /// Headers that begin with `ce-`, without that.
    pub attributes: &'r [(&'r str, &'r str)],
    /// The body.
    pub body: &'r [u8],
}

/// Why a request is no CloudEvent that can be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloudEventError {
    /// It does not say that it is one, or is of a kind that is not taken: 415.
    #[error("{0}")]
    Kind(String),
    /// It is not as the specification has it: 400.
    #[error("{0}")]
    Wrong(String),
}

fn wrong(what: impl Into<String>) -> CloudEventError {
    CloudEventError::Wrong(what.into())
}

/// The attributes of an event, and its data as payload.
#[derive(Debug)]
struct Parts {
    attributes: BTreeMap<String, String>,
    payload: String,
    is_base64: bool,
}

/// The body of `POST /eventhandler/publish` that says the same.
pub fn publish_form(event: &HttpEvent<'_>) -> Result<String, CloudEventError> {
    let essence = event.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let parts = match essence.as_str() {
        STRUCTURED => structured(event.body)?,
        _ if essence.starts_with("application/cloudevents") => {
            return Err(CloudEventError::Kind(format!(
                "{essence} is not taken: send one event as {STRUCTURED}, or its attributes as headers."
            )));
        }
        _ if !event.attributes.is_empty() => binary(event)?,
        _ => {
            let told =
                format!("Expected a CloudEvent: a body of {STRUCTURED}, or the headers ce-specversion, ce-id, ce-source and ce-type.");
            return Err(CloudEventError::Kind(told));
        }
    };
    form(parts)
}

/// Attributes are headers, the body is the data.
fn binary(event: &HttpEvent<'_>) -> Result<Parts, CloudEventError> {
    let mut attributes = BTreeMap::new();
    for (name, value) in event.attributes {
        let name = name.to_ascii_lowercase();
        let value = decoded(value).ok_or_else(|| wrong(format!("The header ce-{name} is not percent-encoded UTF-8.")))?;
        put(&mut attributes, &name, value)?;
    }
    if !event.content_type.is_empty() {
        attributes.insert("datacontenttype".into(), event.content_type.to_owned());
    }
    let (payload, is_base64) = match std::str::from_utf8(event.body) {
        Ok(text) => (text.to_owned(), false),
        Err(_) => (to_base64(event.body), true),
    };
    Ok(Parts { attributes, payload, is_base64 })
}

/// All of it is JSON.
fn structured(body: &[u8]) -> Result<Parts, CloudEventError> {
    let members: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| wrong(format!("The body is no JSON object: {error}.")))?;
    let (mut attributes, mut data, mut base64) = (BTreeMap::new(), None, None);
    for (name, value) in members {
        match (name.as_str(), value) {
            (_, Value::Null) => {}
            ("data", value) => data = Some(value),
            ("data_base64", Value::String(text)) => base64 = Some(text),
            (name, Value::String(text)) => put(&mut attributes, name, text)?,
            (name, value @ (Value::Bool(_) | Value::Number(_))) => put(&mut attributes, name, value.to_string())?,
            (name, _) => return Err(wrong(format!("The attribute {name} is no text, number or boolean."))),
        }
    }
    // Data without a word about it is JSON.
    if data.is_some() {
        attributes.entry("datacontenttype".into()).or_insert_with(|| "application/json".to_owned());
    }
    let is_json = attributes.get("datacontenttype").is_some_and(|kind| is_json(kind));
    let (payload, is_base64) = match (data, base64) {
        (Some(_), Some(_)) => return Err(wrong("An event has data or data_base64, not both.")),
        (None, Some(base64)) if is_base64(&base64) => (base64, true),
        (None, Some(_)) => return Err(wrong("data_base64 is not Base64 (RFC 4648, section 4).")),
        // Of another kind than JSON a text stands for itself.
        (Some(Value::String(text)), None) if !is_json => (text, false),
        (Some(value), None) => (value.to_string(), false),
        (None, None) => (String::new(), false),
    };
    Ok(Parts { attributes, payload, is_base64 })
}

fn put(attributes: &mut BTreeMap<String, String>, name: &str, value: String) -> Result<(), CloudEventError> {
    if !is_name(name) {
        return Err(wrong(format!(
            "{name:?} is no name of an attribute: 1 to {NAME_LENGTH_MAX} lower-case letters and digits are expected."
        )));
    }
    if attributes.insert(name.to_owned(), value).is_some() {
        return Err(wrong(format!("The attribute {name} was given twice.")));
    }
    if attributes.len() > ATTRIBUTES_MAX {
        return Err(wrong(format!("An event has {ATTRIBUTES_MAX} attributes at the most.")));
    }
    Ok(())
}

/// An event of this cloud with these parts.
fn form(parts: Parts) -> Result<String, CloudEventError> {
    let Parts { mut attributes, payload, is_base64 } = parts;
    let version = attributes.remove("specversion").ok_or_else(|| wrong("The attribute specversion is missing."))?;
    if version != VERSION {
        return Err(wrong(format!("specversion is {version:?}; {VERSION:?} is expected.")));
    }
    let is_given = |name: &str| attributes.get(name).is_some_and(|text| !text.is_empty());
    if let Some(missing) = ["id", "source", "type"].into_iter().find(|name| !is_given(name)) {
        return Err(wrong(format!("The attribute {missing} is missing or empty.")));
    }
    let source = system(&attributes["source"])?;
    let event_type = attributes.remove("type").expect("it was asked for");
    let time = attributes.remove("time");
    let mut metadata: BTreeMap<String, String> = attributes.into_iter().map(|(name, value)| (format!("{PREFIX}{name}"), value)).collect();
    if is_base64 {
        metadata.insert(BASE64.into(), "true".into());
    }
    Ok(json!({"eventType": event_type, "source": source, "metaData": metadata, "payload": payload, "timeStamp": time}).to_string())
}

/// `//HOST:PORT/NAME`, a reference with an authority (RFC 3986, section 4.2), as the system that it names.
fn system(source: &str) -> Result<Value, CloudEventError> {
    let parsed = source.strip_prefix("//").and_then(|rest| rest.split_once('/')).and_then(|(authority, name)| {
        let (host, port) = authority.rsplit_once(':')?;
        // An IPv6 address stands in brackets there, and without them in the registry.
        let address = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let is_whole = !address.is_empty() && !name.is_empty() && !name.contains(['/', '?', '#']);
        Some(json!({"systemName": name, "address": address, "port": port.parse::<u16>().ok()?})).filter(|_| is_whole)
    });
    parsed.ok_or_else(|| {
        wrong(format!("source is {source:?}; //HOST:PORT/NAME of the registered system that publishes is expected, for example //10.0.0.7:9000/sensor."))
    })
}

/// Appends an event as a CloudEvent in the JSON format. `identity` is its identity here.
pub fn push_json(out: &mut Vec<u8>, identity: &str, publication: &Publication<'_>) {
    let mut attributes: BTreeMap<String, String> = BTreeMap::new();
    let mut is_base64 = false;
    if let Some(metadata) = publication.metadata {
        let visit = |key: JsonText<'_>, value: Option<JsonText<'_>>| {
            let (key, Some(value)) = (key.text(), value) else { return };
            is_base64 |= key == BASE64;
            let own = key.strip_prefix(PREFIX);
            let name = own.unwrap_or(&key);
            let is_free = is_name(name) && !PLACED.contains(&name) && !["data", "id", "source", "datacontenttype"].contains(&name);
            // What others call an id or a source is none of the event's.
            if is_free || own.is_some_and(|name| ["id", "source", "datacontenttype"].contains(&name)) {
                attributes.insert(name.to_owned(), value.text().into_owned());
            }
        };
        each_pair(metadata.0, visit).expect("metadata was checked when it was parsed");
    }
    let publisher = publication.facts().source;
    attributes.entry("id".into()).or_insert_with(|| identity.to_owned());
    attributes.entry("source".into()).or_insert_with(|| format!("/serviceregistry/mgmt/systems/{publisher}"));
    let kind = attributes.entry("datacontenttype".into()).or_insert_with(|| "text/plain".to_owned()).clone();
    let mut event =
        json!({"specversion": VERSION, "type": publication.event_type().text().trim(), "time": publication.facts().time.to_string()});
    let payload = publication.payload().text();
    // What is said to be JSON and is not must not break what it stands in.
    let raw = serde_json::from_str::<&RawValue>(&payload).ok().filter(|_| is_json(&kind) && !is_base64);
    match raw {
        Some(raw) => event["data"] = serde_json::from_str(raw.get()).expect("it was read before"),
        None => event[if is_base64 { "data_base64" } else { "data" }] = payload.into(),
    }
    let members = event.as_object_mut().expect("it is made as one");
    members.extend(attributes.into_iter().map(|(name, value)| (name, value.into())));
    serde_json::to_writer(out, &event).expect("a vector takes everything");
}

/// Whether a media type is JSON's.
fn is_json(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.ends_with("/json") || essence.ends_with("+json")
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !name.is_empty() && name.len() <= NAME_LENGTH_MAX && name.bytes().all(is_letter)
}

/// A header's value without its percent-encoding.
fn decoded(value: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(value.len()), value.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        rest = if *first == b'%' {
            let digits = std::str::from_utf8(behind.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            &behind[2..]
        } else {
            bytes.push(*first);
            behind
        };
    }
    String::from_utf8(bytes).ok()
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().chain(&[0; 2]).take(3).fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        let digit = |place: usize| char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63]);
        (0..4).for_each(|place| text.push(if place <= group.len() { digit(place) } else { '=' }));
    }
    text
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len().is_multiple_of(4) && text.len() - digits.len() <= 2 && digits.bytes().all(|byte| DIGITS.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{record::SystemId, utc::UtcTime};

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
        push_json(&mut out, "7:1:2:3", &publication);
        serde_json::from_slice(&out).unwrap()
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
        for extra in
            [json!({"data": 1, "data_base64": "AA=="}), json!({"data_base64": "A"}), json!({"list": [1]}), json!({"data_base64": 1})]
        {
            let mut event = json!({"specversion": "1.0", "id": "1", "source": "//h:1/a", "type": "t"});
            event.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            assert!(structured_of(&event).is_err(), "{extra}");
        }
        assert!(structured_of(&json!([])).is_err());
    }

    #[test]
    fn base64_is_as_the_standard_has_it() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy")];
        for (bytes, text) in cases {
            assert_eq!((to_base64(bytes.as_bytes()), is_base64(text)), (text.to_owned(), true));
        }
        assert!(!is_base64("Zg=") && !is_base64("Z===") && !is_base64("Zm9-"));
    }
}
