//! Every operation of every port, and every JSON form, out of the OpenAPI documents.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{cell, page};
use crate::support::cloud::System;
use crate::support::secure::{Client, SecureCloud};

/// Every port of a cloud in secure mode, with its standard number.
const PORTS: [(System, &str, u16); 7] = [
    (System::ServiceRegistry, "Service Registry", 8443),
    (System::Authorization, "Authorization", 8445),
    (System::Orchestrator, "Orchestrator", 8441),
    (System::EventHandler, "Event Handler", 8455),
    (System::Gatekeeper, "Gatekeeper", 8449),
    (System::Gateway, "Gateway", 8453),
    (System::Monitor, "Bodkin's own port", 8440),
];

fn object<'v>(value: &'v Value, what: &str) -> &'v Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("{what} is no object: {value}"))
}

/// A schema in a few words.
fn words(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect();
        return words.join(" or ");
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let kind = kinds.first().copied().unwrap_or_default();
    let told = match kind {
        "array" => format!("list of {}", words_in(&schema["items"])),
        "object" if schema["properties"]["data"].is_object() => format!("page of {}", words_in(&schema["properties"]["data"]["items"])),
        "object" if schema["additionalProperties"].is_object() => format!("map of {}", words_in(&schema["additionalProperties"])),
        "" => match schema["anyOf"].as_array() {
            Some(kinds) => kinds.iter().map(words).collect::<Vec<_>>().join(" or "),
            None => "anything".to_owned(),
        },
        kind => schema["format"].as_str().map_or_else(|| kind.to_owned(), |format| format!("{kind} ({format})")),
    };
    if kinds.contains(&"null") && kind != "null" { format!("{told} or null") } else { told }
}

/// The same of what something is made of.
fn words_in(schema: &Value) -> String {
    let told = words(schema);
    if told.contains(' ') && !told.starts_with('[') { format!("({told})") } else { told }
}

/// Parameters of the query, `?` behind those that may be left out.
fn parameters(operation: &Value) -> String {
    let asked = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let asked = asked.iter().filter(|parameter| parameter["in"] == "query").map(|parameter| {
        let mark = if parameter["required"] == true { "" } else { "?" };
        format!("`{}{mark}`", parameter["name"].as_str().expect("a name"))
    });
    asked.collect::<Vec<_>>().join(", ")
}

/// Status and body of the success.
fn answer(operation: &Value) -> String {
    let responses = object(&operation["responses"], "responses");
    let (status, response) = responses.iter().find(|(status, _)| status.starts_with('2')).expect("an operation can succeed");
    let content = response["content"].as_object().and_then(|content| content.iter().next());
    match content {
        Some((media_type, inner)) if media_type == "application/json" => format!("{status}: {}", words(&inner["schema"])),
        Some((media_type, _)) => format!("{status}: {media_type}"),
        None => status.clone(),
    }
}

fn operations(document: &Value) -> String {
    let mut rows = String::new();
    for (path, item) in object(&document["paths"], "paths") {
        for (method, operation) in object(item, path) {
            let body = operation["requestBody"]["content"].as_object().and_then(|content| content.iter().next());
            let body =
                body.map(|(media_type, inner)| if media_type == "application/json" { words(&inner["schema"]) } else { media_type.clone() });
            let takes = [parameters(operation), body.unwrap_or_default()];
            let takes: Vec<String> = takes.into_iter().filter(|text| !text.is_empty()).collect();
            let summary = operation["summary"].as_str().expect("a summary");
            let tag = operation["tags"][0].as_str().expect("a tag");
            let cells = [format!("`{} {path}`", method.to_uppercase()), cell(summary), tag.to_owned(), takes.join("; "), answer(operation)];
            rows.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    rows
}

fn form(name: &str, schema: &Value) -> String {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut text = format!("### {name}\n\n{}\n\n", capital(schema["description"].as_str().expect("a form says what it is")));
    for (member, kind) in object(&schema["properties"], name) {
        let mark = if required.contains(&Value::from(member.as_str())) { "" } else { "?" };
        let meaning = kind["description"].as_str().map(|meaning| format!(": {meaning}")).unwrap_or_default();
        text.push_str(&format!("* `{member}{mark}` {}{}\n", words(kind), meaning.replace('<', "&lt;")));
    }
    text + "\n"
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>() + ".").unwrap_or_default()
}

#[test]
fn every_operation_is_in_the_reference() {
    let secure = SecureCloud::shared();
    let operator = Client::system("sysop");
    let mut text = "Each port serves its own part of this as `/openapi.json` (OpenAPI 3.1), and as a page to try it at `/swagger-ui.html`. *Client* is for every system of the \
        cloud, *Management* for the operator, *Private* for core systems, *Bodkin* as [access](../formats/access.md) says. A `?` marks what may be left out. Errors of the core systems are an \
        [ErrorMessage](#errormessage), those below `/api/v1` a [Problem](#problem).\n\n"
        .to_owned();
    let mut forms: BTreeMap<String, String> = BTreeMap::new();
    for (system, name, port) in PORTS {
        let mut connection = operator.connect(secure.cloud.address(system)).expect("a connection");
        let document = connection.request("GET", "/openapi.json", &[], None).expect("an answer").expect_status(200).json();
        text.push_str(&format!(
            "## {name} ({port})\n\n| operation | | for | takes | answers |\n|---|---|---|---|---|\n{}\n",
            operations(&document)
        ));
        for (name, schema) in object(&document["components"]["schemas"], "schemas") {
            forms.insert(name.clone(), form(name, schema));
        }
    }
    assert!(forms.len() > 50, "{:?}", forms.keys());
    text.push_str("## Forms\n\n");
    forms.values().for_each(|form| text.push_str(form));
    page("api.md", "API", &text);
}
