//! CloudEvents 1.0 as events of a cloud, and back: the JSON event format, and the HTTP binding's structured and binary modes.
//!
//! | attribute | event |
//! |---|---|
//! | `type` | event type |
//! | `source` | the registered system that publishes: `//HOST:PORT/NAME` |
//! | `time` | time stamp, in UTC |
//! | data | payload; what is no text is kept as Base64, and none as `null`: a payload is never blank |
//! | `traceparent`, `tracestate` | metadata of these names |
//! | `id`, `source` and all others | metadata `ce-NAME`, so that filters see them and they come out again |
//!
//! Going out, an event that did not come as one has its identity as `id`, and as `source` the path at which the Service Registry tells of its publisher.

mod encoding;
mod of_fleet;
mod outgoing;
mod raw;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use self::{
    encoding::from_header,
    raw::{DEPTH_MAX, Members, portable},
};
pub use self::{of_fleet::FleetCommand, outgoing::Outgoing};
use crate::{base64, utc::UtcTime};

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
/// Metadata that says that there is no data, in whose place the payload is JSON's `null`.
const NO_DATA: &str = "ce_nodata";
/// Metadata that lists, separated by commas, the attributes whose values are JSON numbers or booleans.
const LITERALS: &str = "ce_literals";
/// Attributes that are texts in every CloudEvent.
const TEXTS: [&str; 8] = ["specversion", "id", "source", "type", "time", "subject", "datacontenttype", "dataschema"];
/// A pair of a subscription's filter that is no filter: it asks for events as CloudEvents, in the mode that is its value.
pub const WISH: &str = "cloudevents";
/// Attributes that have a place of their own in an event.
const PLACED: [&str; 3] = ["specversion", "type", "time"];

/// Attributes that have the same name among the metadata as here: of traces (CloudEvents' extension Distributed Tracing).
const SHARED: [&str; 2] = ["traceparent", "tracestate"];

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

/// Where the attributes of an event are in an HTTP request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentMode {
    /// In the body, with the data.
    Structured,
    /// In headers; the body is the data.
    Binary,
}

impl ContentMode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Structured, Self::Binary];

    /// As it is asked for.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Structured => "structured",
            Self::Binary => "binary",
        }
    }

    /// The mode of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
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
    /// Names of the attributes whose values are numbers or booleans.
    literals: Vec<String>,
    /// `None`: it has no data.
    payload: Option<String>,
    is_base64: bool,
}

/// The body of `POST /eventhandler/publish` that says the same.
pub fn publish_form(event: &HttpEvent<'_>) -> Result<String, CloudEventError> {
    form(parts(event)?)
}

fn parts(event: &HttpEvent<'_>) -> Result<Parts, CloudEventError> {
    let essence = event.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        STRUCTURED => structured(event.body),
        _ if essence.starts_with("application/cloudevents") => {
            Err(CloudEventError::Kind(format!("{essence} is not taken: send one event as {STRUCTURED}, or its attributes as headers.")))
        }
        _ if !event.attributes.is_empty() => binary(event),
        _ => {
            let told =
                format!("Expected a CloudEvent: a body of {STRUCTURED}, or the headers ce-specversion, ce-id, ce-source and ce-type.");
            Err(CloudEventError::Kind(told))
        }
    }
}

/// Attributes are headers, the body is the data.
fn binary(event: &HttpEvent<'_>) -> Result<Parts, CloudEventError> {
    let mut attributes = BTreeMap::new();
    for (name, value) in event.attributes {
        let name = name.to_ascii_lowercase();
        let value = from_header(value)
            .ok_or_else(|| wrong(format!("The header ce-{name} is not percent-encoded UTF-8, or has a quote that is not closed.")))?;
        put(&mut attributes, &name, value)?;
    }
    if !event.content_type.is_empty() {
        attributes.insert("datacontenttype".into(), event.content_type.to_owned());
    }
    let (payload, is_base64) = match std::str::from_utf8(event.body) {
        Ok("") => (None, false),
        Ok(text) => (Some(text.to_owned()), false),
        Err(_) => (Some(base64::encode(event.body)), true),
    };
    Ok(Parts { attributes, literals: Vec::new(), payload, is_base64 })
}

/// Reads an event in the JSON event format. The data keeps its text, and numbers and booleans keep their spelling.
fn structured(body: &[u8]) -> Result<Parts, CloudEventError> {
    let text = std::str::from_utf8(body).map_err(|error| wrong(format!("The body is no JSON object: {error}.")))?;
    let Members(members) = serde_json::from_str(text).map_err(|error| wrong(format!("The body is no JSON object: {error}.")))?;
    let (mut attributes, mut literals, mut data, mut encoded) = (BTreeMap::new(), Vec::new(), None, None);
    for (name, value) in members {
        let literal = value.get();
        match (name.as_str(), literal.as_bytes()[0]) {
            (_, b'n') => {}
            ("data", _) if data.is_some() => return Err(wrong("The member data was given twice.")),
            ("data", _) => {
                data = Some(
                    portable(literal)
                        .ok_or_else(|| wrong(format!("data is nested more than {DEPTH_MAX} levels deep, or has half a surrogate pair.")))?,
                )
            }
            ("data_base64", b'"') if encoded.is_some() => return Err(wrong("The member data_base64 was given twice.")),
            ("data_base64", b'"') => encoded = Some(string(literal)?),
            (_, b'"') => put(&mut attributes, &name, string(literal)?)?,
            (_, b'{' | b'[') => return Err(wrong(format!("The attribute {name} is no text, number or boolean."))),
            _ if TEXTS.contains(&name.as_str()) => return Err(wrong(format!("The attribute {name} is {literal}; a text is expected."))),
            _ => {
                put(&mut attributes, &name, literal.to_owned())?;
                literals.push(name);
            }
        }
    }
    // Data without a media type is JSON (JSON event format, section 3.1.1).
    let is_json = attributes.get("datacontenttype").is_none_or(|kind| is_json(kind));
    let (payload, is_base64) = match (data, encoded) {
        (Some(_), Some(_)) => return Err(wrong("An event has data or data_base64, not both.")),
        (None, Some(text)) => {
            let bytes = base64::decode(&text).ok_or_else(|| wrong("data_base64 is not Base64 (RFC 4648, section 4)."))?;
            (Some(base64::encode(&bytes)), true)
        }
        // Of another kind than JSON a text stands for itself.
        (Some(literal), None) if !is_json && literal.starts_with('"') => (Some(string(literal)?), false),
        (Some(literal), None) => (Some(literal.to_owned()), false),
        (None, None) => (None, false),
    };
    Ok(Parts { attributes, literals, payload, is_base64 })
}

fn string(literal: &str) -> Result<String, CloudEventError> {
    serde_json::from_str(literal).map_err(|error| wrong(format!("{literal} is no text: {error}.")))
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
    let Said { event_type, source, time, metadata, payload } = said(parts)?;
    let source = system(&source)?;
    Ok(json!({"eventType": event_type, "source": source, "metaData": metadata, "payload": payload, "timeStamp": time}).to_string())
}

/// What a CloudEvent says, as an event of a cloud has it.
struct Said {
    event_type: String,
    source: String,
    time: Option<String>,
    metadata: BTreeMap<String, String>,
    payload: String,
}

fn said(parts: Parts) -> Result<Said, CloudEventError> {
    let Parts { mut attributes, literals, payload, mut is_base64 } = parts;
    let version = attributes.remove("specversion").ok_or_else(|| wrong("The attribute specversion is missing."))?;
    if version != VERSION {
        return Err(wrong(format!("specversion is {version:?}; {VERSION:?} is expected.")));
    }
    let is_given = |name: &str| attributes.get(name).is_some_and(|text| !text.is_empty());
    if let Some(missing) = ["id", "source", "type"].into_iter().find(|name| !is_given(name)) {
        return Err(wrong(format!("The attribute {missing} is missing or empty.")));
    }
    let source = attributes["source"].clone();
    let event_type = attributes.remove("type").expect("it was asked for");
    let time = attributes.remove("time").map(|time| UtcTime::parse(&time).map_or(time, |utc| utc.to_string()));
    let key = |name: String| if SHARED.contains(&name.as_str()) { name } else { format!("{PREFIX}{name}") };
    let mut metadata: BTreeMap<String, String> = attributes.into_iter().map(|(name, value)| (key(name), value)).collect();
    if !literals.is_empty() {
        metadata.insert(LITERALS.into(), literals.join(","));
    }
    let payload = match payload.filter(|payload| !payload.is_empty()) {
        None => {
            metadata.insert(NO_DATA.into(), "true".into());
            is_base64 = false;
            "null".to_owned()
        }
        // A payload must not be blank, and data may be.
        Some(payload) if payload.trim().is_empty() => {
            is_base64 = true;
            base64::encode(payload.as_bytes())
        }
        Some(payload) => payload,
    };
    if is_base64 {
        metadata.insert(BASE64.into(), "true".into());
    }
    Ok(Said { event_type, source, time, metadata, payload })
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

/// Whether a media type is JSON's.
fn is_json(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.ends_with("/json") || essence.ends_with("+json")
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !name.is_empty() && name.len() <= NAME_LENGTH_MAX && name.bytes().all(is_letter)
}

#[cfg(test)]
mod tests;
