//! An event of a cloud as a CloudEvent, in either mode of the HTTP binding.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    BASE64, ContentMode, LITERALS, NO_DATA, PLACED, PREFIX, STRUCTURED, TEXTS, VERSION,
    encoding::push_percent,
    is_json, is_name,
    raw::{is_literal, portable},
};
use crate::{
    base64,
    publication::{JsonText, Publication, each_pair},
    utc::UtcTime,
};

/// What the data of an event that was not published as a CloudEvent is said to be.
const TEXT: &str = "text/plain";
/// What data is said to be whose media type no header can have.
const BYTES: &str = "application/octet-stream";

/// The data of an event.
#[derive(Clone, Debug, PartialEq)]
enum Data {
    None,
    Text(String),
    /// The text of JSON that common parsers accept.
    Json(String),
    /// Its text, and what it stands for.
    Base64(String, Vec<u8>),
}

/// A CloudEvent on its way out.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    /// All attributes but `specversion`.
    attributes: BTreeMap<String, String>,
    /// Attributes whose values are JSON numbers or booleans.
    literals: BTreeSet<String>,
    data: Data,
}

impl Outgoing {
    /// The event. `identity` is its identity here, and the id of one that was not published as a CloudEvent.
    pub fn new(identity: &str, publication: &Publication<'_>) -> Self {
        let mut attributes: BTreeMap<String, String> = BTreeMap::new();
        let (mut is_base64, mut has_none, mut literals) = (false, false, BTreeSet::new());
        if let Some(metadata) = publication.metadata {
            let visit = |key: JsonText<'_>, value: Option<JsonText<'_>>| {
                let (key, Some(value)) = (key.text(), value) else { return };
                is_base64 |= key == BASE64;
                has_none |= key == NO_DATA;
                if key == LITERALS {
                    literals.extend(value.text().split(',').map(str::to_owned));
                }
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
        // Any publisher can write the metadata: only a value that is a literal stands without quotes.
        literals.retain(|name: &String| !TEXTS.contains(&name.as_str()) && attributes.get(name).is_some_and(|value| is_literal(value)));
        let was_cloud_event = attributes.contains_key("id");
        let facts = publication.facts();
        // The log notes when an event came; when it was made its stamp says.
        let stamped = publication.time_stamp.and_then(|text| UtcTime::parse(&text.text()).ok());
        attributes.insert("time".into(), stamped.unwrap_or(facts.time).to_string());
        attributes.insert("type".into(), publication.event_type().text().trim().to_owned());
        attributes.entry("id".into()).or_insert_with(|| identity.to_owned());
        attributes.entry("source".into()).or_insert_with(|| format!("/serviceregistry/mgmt/systems/{}", facts.source));
        let data = if has_none {
            Data::None
        } else {
            if !was_cloud_event {
                attributes.entry("datacontenttype".into()).or_insert_with(|| TEXT.to_owned());
            }
            // Data without a media type is JSON (JSON event format, section 3.1.1).
            let is_json = attributes.get("datacontenttype").is_none_or(|kind| is_json(kind));
            data(publication.payload().text().into_owned(), is_json, is_base64)
        };
        Self { attributes, literals, data }
    }

    /// Appends all of it as JSON.
    pub fn push_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"specversion\":");
        push_string(VERSION, out);
        for (name, value) in &self.attributes {
            out.push(b',');
            push_string(name, out);
            out.push(b':');
            if self.literals.contains(name) {
                out.extend_from_slice(value.as_bytes());
            } else {
                push_string(value, out);
            }
        }
        match &self.data {
            Data::None => {}
            Data::Text(text) => {
                out.extend_from_slice(b",\"data\":");
                push_string(text, out);
            }
            Data::Json(text) => {
                out.extend_from_slice(b",\"data\":");
                out.extend_from_slice(text.as_bytes());
            }
            Data::Base64(text, _) => {
                out.extend_from_slice(b",\"data_base64\":");
                push_string(text, out);
            }
        }
        out.push(b'}');
    }

    /// Appends the headers that say what it is, each with its line end, and gives the body. A request without a body is none that webhooks know, so an event without data is
    /// structured whatever was asked for; its `Content-Type` says so.
    pub fn into_request(self, mode: ContentMode, headers: &mut Vec<u8>) -> Vec<u8> {
        let mut body = Vec::new();
        if mode == ContentMode::Structured || self.data == Data::None {
            headers.extend_from_slice(format!("Content-Type: {STRUCTURED}; charset=utf-8\r\n").as_bytes());
            self.push_json(&mut body);
            return body;
        }
        let Self { mut attributes, data, .. } = self;
        if let Some(kind) = attributes.remove("datacontenttype") {
            // A line end in it would begin a header of the publisher's choosing.
            let is_header = !kind.is_empty() && kind.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            headers.extend_from_slice(format!("Content-Type: {}\r\n", if is_header { &kind } else { BYTES }).as_bytes());
        }
        headers.extend_from_slice(format!("ce-specversion: {VERSION}\r\n").as_bytes());
        for (name, value) in &attributes {
            headers.extend_from_slice(format!("{PREFIX}{name}: ").as_bytes());
            push_percent(value, headers);
            headers.extend_from_slice(b"\r\n");
        }
        match data {
            Data::None => body,
            Data::Text(text) | Data::Json(text) => text.into_bytes(),
            Data::Base64(_, bytes) => bytes,
        }
    }
}

/// A payload as what it is said to be. What is said to be JSON or Base64 and is not must not break what it stands in: it is a text.
fn data(payload: String, is_json: bool, is_base64: bool) -> Data {
    if is_base64 {
        return match base64::decode(&payload) {
            Some(bytes) => Data::Base64(payload, bytes),
            None => Data::Text(payload),
        };
    }
    if is_json && portable(&payload).is_some() { Data::Json(payload) } else { Data::Text(payload) }
}

fn push_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a vector takes everything");
}
