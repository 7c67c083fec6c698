//! An event of a cloud as a CloudEvent, in either mode of the HTTP binding.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{BASE64, ContentMode, NO_DATA, PLACED, PREFIX, STRUCTURED, VERSION, encoding::push_percent, is_json, is_name};
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
    /// Its text, and what it says.
    Json(String, Value),
    /// Its text, and what it stands for.
    Base64(String, Vec<u8>),
}

/// A CloudEvent on its way out.
#[derive(Clone, Debug, PartialEq)]
pub struct Outgoing {
    /// All attributes but `specversion`.
    attributes: BTreeMap<String, String>,
    data: Data,
}

impl Outgoing {
    /// The event. `identity` is its identity here, and the id of one that was not published as a CloudEvent.
    pub fn new(identity: &str, publication: &Publication<'_>) -> Self {
        let mut attributes: BTreeMap<String, String> = BTreeMap::new();
        let (mut is_base64, mut has_none) = (false, false);
        if let Some(metadata) = publication.metadata {
            let visit = |key: JsonText<'_>, value: Option<JsonText<'_>>| {
                let (key, Some(value)) = (key.text(), value) else { return };
                is_base64 |= key == BASE64;
                has_none |= key == NO_DATA;
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
            let kind = attributes.entry("datacontenttype".into()).or_insert_with(|| TEXT.to_owned());
            data(publication.payload().text().into_owned(), kind, is_base64)
        };
        Self { attributes, data }
    }

    /// Appends all of it as JSON.
    pub fn push_json(&self, out: &mut Vec<u8>) {
        let mut event = json!({"specversion": VERSION});
        match &self.data {
            Data::None => {}
            Data::Text(text) => event["data"] = text.as_str().into(),
            Data::Json(_, value) => event["data"] = value.clone(),
            Data::Base64(text, _) => event["data_base64"] = text.as_str().into(),
        }
        let members = event.as_object_mut().expect("it is made as one");
        members.extend(self.attributes.iter().map(|(name, value)| (name.clone(), value.as_str().into())));
        serde_json::to_writer(out, &event).expect("a vector takes everything");
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
        let Self { mut attributes, data } = self;
        let kind = attributes.remove("datacontenttype").unwrap_or_default();
        // A line end in it would begin a header of the publisher's choosing.
        let is_header = !kind.is_empty() && kind.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        headers.extend_from_slice(
            format!("Content-Type: {}\r\nce-specversion: {VERSION}\r\n", if is_header { &kind } else { BYTES }).as_bytes(),
        );
        for (name, value) in &attributes {
            headers.extend_from_slice(format!("{PREFIX}{name}: ").as_bytes());
            push_percent(value, headers);
            headers.extend_from_slice(b"\r\n");
        }
        match data {
            Data::None => body,
            Data::Text(text) | Data::Json(text, _) => text.into_bytes(),
            Data::Base64(_, bytes) => bytes,
        }
    }
}

/// A payload as what it is said to be. What is said to be JSON or Base64 and is not must not break what it stands in: it is a text.
fn data(payload: String, kind: &str, is_base64: bool) -> Data {
    if is_base64 {
        return match base64::decode(&payload) {
            Some(bytes) => Data::Base64(payload, bytes),
            None => Data::Text(payload),
        };
    }
    match serde_json::from_str(&payload) {
        Ok(value) if is_json(kind) => Data::Json(payload, value),
        _ => Data::Text(payload),
    }
}
