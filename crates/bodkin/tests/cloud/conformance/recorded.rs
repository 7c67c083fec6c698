//! Conversations recorded from Arrowhead 4.6.2, held again with Bodkin (`vectors/arrowhead`, whose README tells the form).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::cloud::{Cloud, Launch, System, system_of};
use crate::support::http::Answer;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/arrowhead")
}

/// What answers were given names for.
type Kept = BTreeMap<String, i64>;

#[test]
fn every_recorded_conversation_is_answered_as_it_was() {
    let mut held = 0;
    for entry in fs::read_dir(folder()).expect("the recorded conversations are there") {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a readable file");
        let conversation: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        hold(&name, &conversation);
        held += 1;
    }
    assert!(held >= 4, "only {held} conversations were found");
}

/// On a cloud of its own: ids and counts are as on a fresh one.
fn hold(name: &str, conversation: &Value) {
    let cloud = Launch::new().start();
    let mut kept = Kept::new();
    let exchanges = conversation["exchanges"].as_array().expect("a list of exchanges");
    assert!(!exchanges.is_empty(), "{name} says nothing");
    for (number, exchange) in exchanges.iter().enumerate() {
        let place = format!("{name} exchange {number} ({} {})", exchange["request"]["method"], exchange["request"]["target"]);
        let (answer, url, closed) = ask(&cloud, exchange, &kept);
        let faults = faults(&exchange["answer"], &answer, &url, closed, &mut kept);
        assert!(faults.is_empty(), "{place}: {faults:#?}\ngot {} {:?} {}", answer.status, answer.headers, answer.text());
    }
}

/// Sends the request; gives the answer, the URL that was asked for, and whether the connection was closed if that matters.
fn ask(cloud: &Cloud, exchange: &Value, kept: &Kept) -> (Answer, String, bool) {
    let request = &exchange["request"];
    let target = filled(request["target"].as_str().expect("a target"), kept);
    let system = match exchange["system"].as_str() {
        Some(name) => System::CORE.into_iter().find(|system| system.name() == name).expect("a core system"),
        None => system_of(&target),
    };
    let body = match (&request["body"], &request["text"]) {
        (Value::Null, Value::Null) => None,
        (Value::Null, text) => Some(text.as_str().expect("a text").to_string()),
        (body, _) => Some(with_numbers(body, kept).to_string()),
    };
    let mut headers: Vec<(&str, &str)> = Vec::new();
    if !request["body"].is_null() {
        headers.push(("Content-Type", "application/json"));
    }
    if let Some(named) = request["headers"].as_object() {
        headers.extend(named.iter().map(|(name, value)| (name.as_str(), value.as_str().expect("a header is text"))));
    }
    let mut connection = cloud.connect(system);
    let method = request["method"].as_str().expect("a method");
    let answer = connection.request(method, &target, &headers, body.as_deref().map(str::as_bytes)).expect("an answer");
    let closed = exchange["answer"]["closed"] == true && connection.is_closed_by_server();
    (answer, format!("http://{}{target}", cloud.address(system)), closed)
}

/// `text` with each `{NAME}` replaced by what was kept under it; other braces stay.
fn filled(text: &str, kept: &Kept) -> String {
    kept.iter().fold(text.to_string(), |text, (name, number)| text.replace(&format!("{{{name}}}"), &number.to_string()))
}

/// `value` with each text `"{NAME}"` replaced by the number that was kept under it.
fn with_numbers(value: &Value, kept: &Kept) -> Value {
    match value {
        Value::String(text) => kept_number(text, kept).map_or_else(|| value.clone(), Value::from),
        Value::Array(elements) => elements.iter().map(|element| with_numbers(element, kept)).collect(),
        Value::Object(members) => members.iter().map(|(name, member)| (name.clone(), with_numbers(member, kept))).collect(),
        _ => value.clone(),
    }
}

fn kept_number(text: &str, kept: &Kept) -> Option<i64> {
    kept.get(text.strip_prefix('{')?.strip_suffix('}')?).copied()
}

fn faults(expected: &Value, answer: &Answer, url: &str, closed: bool, kept: &mut Kept) -> Vec<String> {
    let mut faults = Vec::new();
    if expected["status"] != answer.status {
        faults.push(format!("status is not {}", expected["status"]));
    }
    for (name, value) in expected["headers"].as_object().into_iter().flatten() {
        let found = answer.header(name).map_or(Value::Null, Value::from);
        differences(&format!("header {name}"), value, &found, url, kept, &mut faults);
    }
    if let Some(text) = expected["text"].as_str()
        && answer.text() != text
    {
        faults.push(format!("the body is not {text:?}"));
    }
    if !expected["body"].is_null() {
        match serde_json::from_slice(&answer.body) {
            Ok(found) => differences("", &expected["body"], &found, url, kept, &mut faults),
            Err(error) => faults.push(format!("the body is not JSON: {error}")),
        }
    }
    if expected["closed"] == true && !closed {
        faults.push("the connection stays open".into());
    }
    faults
}

/// Appends where `found` is not what was recorded.
fn differences(place: &str, recorded: &Value, found: &Value, url: &str, kept: &mut Kept, faults: &mut Vec<String>) {
    match (recorded, found) {
        (Value::Object(recorded), Value::Object(found)) => {
            for (name, value) in recorded {
                match found.get(name) {
                    Some(found) => differences(&format!("{place}/{name}"), value, found, url, kept, faults),
                    None => faults.push(format!("{place}/{name} is missing")),
                }
            }
            faults.extend(found.keys().filter(|name| !recorded.contains_key(*name)).map(|name| format!("{place}/{name} was not there")));
        }
        (Value::Array(recorded), Value::Array(found)) if recorded.len() == found.len() => {
            for (at, (recorded, found)) in recorded.iter().zip(found).enumerate() {
                differences(&format!("{place}/{at}"), recorded, found, url, kept, faults);
            }
        }
        (Value::String(recorded), found) => {
            if !text_fits(recorded, found, url, kept) {
                faults.push(format!("{place} is {found}, not {recorded:?}"));
            }
        }
        _ if recorded == found => {}
        _ => faults.push(format!("{place} is {found}, not {recorded}")),
    }
}

fn text_fits(recorded: &str, found: &Value, url: &str, kept: &mut Kept) -> bool {
    if let Some(number) = kept_number(recorded, kept) {
        return found.as_i64() == Some(number);
    }
    let Some(placeholder) = recorded.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) else { return found == recorded };
    if let Some(name) = placeholder.strip_prefix("id:") {
        return found.as_i64().is_some_and(|number| kept.insert(name.to_string(), number).is_none());
    }
    let text = found.as_str().unwrap_or_default();
    match placeholder {
        "id" | "count" => found.is_i64(),
        "instant" => {
            has_form(text.split('.').next().unwrap_or_default().trim_end_matches('Z'), "dddd-dd-ddTdd:dd:dd") && text.ends_with('Z')
        }
        "framework time" => has_form(text, "dddd-dd-ddTdd:dd:dd.ddd+0000"),
        "text" => !text.is_empty(),
        "url" => text == url,
        part => match (part.strip_prefix("..."), part.strip_suffix("...")) {
            (Some(end), _) => text.ends_with(end),
            (_, Some(start)) => text.starts_with(start),
            _ => panic!("no placeholder is called {part:?}"),
        },
    }
}

/// Whether `text` is `form` with a digit for each `d`.
fn has_form(text: &str, form: &str) -> bool {
    text.len() == form.len()
        && text.bytes().zip(form.bytes()).all(|(byte, form)| if form == b'd' { byte.is_ascii_digit() } else { byte == form })
}

#[test]
fn a_difference_is_found_wherever_it_is() {
    let compare = |recorded: Value, found: Value| {
        let (mut kept, mut faults) = (Kept::new(), Vec::new());
        differences("", &recorded, &found, "http://x/y", &mut kept, &mut faults);
        faults.len()
    };
    use serde_json::json;
    let same = json!({"a": "<id:one>", "b": ["{one}", "<instant>", "<url>", "<start...>", "<...end>"], "c": null});
    assert_eq!(
        compare(same.clone(), json!({"c": null, "b": [7, "2031-01-01T00:00:00.5Z", "http://x/y", "start of", "the end"], "a": 7})),
        0
    );
    for wrong in [
        json!({"b": [7, "2031-01-01T00:00:00Z", "http://x/y", "start", "end"], "a": 7}),
        json!({"c": null, "b": [8, "2031-01-01T00:00:00Z", "http://x/y", "start", "end"], "a": 7}),
        json!({"c": null, "b": [7, "2031-01-01 00:00:00", "http://x/y", "start", "end"], "a": 7}),
        json!({"c": null, "b": [7, "2031-01-01T00:00:00Z", "http://x/z", "start", "end"], "a": 7}),
        json!({"c": null, "b": [7, "2031-01-01T00:00:00Z", "http://x/y", "start"], "a": 7}),
        json!({"c": null, "b": [7, "2031-01-01T00:00:00Z", "http://x/y", "start", "end"], "a": 7, "d": 1}),
    ] {
        assert_eq!(compare(same.clone(), wrong.clone()), 1, "{wrong}");
    }
}
