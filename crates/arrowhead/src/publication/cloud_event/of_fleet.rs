//! CloudEvents that come to an edge from its fleet: commands, and event types that all edges share.

use serde_json::json;

use super::{CloudEventError, HttpEvent, STRUCTURED, Said, parts, said};
use crate::name::{EventType, NameError};

/// The extension attribute that says which edge an event was made at.
const EDGE: &str = "ce-edge";

/// An event of the fleet. Its source is the fleet's own, of any form: here it is published as an own system's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetCommand {
    /// Its type, as stored.
    pub event_type: EventType,
    /// The edge that it was made at, where it says so (the extension attribute `edge`).
    pub edge: Option<String>,
    /// Its JSON, as [`Publication::reread`](crate::publication::Publication::reread) reads it.
    pub event: String,
    /// Its metadata, as a JSON object: `fleet` in front, which message of the fleet it was, then the attributes.
    pub metadata: String,
}

impl FleetCommand {
    /// Reads it: in the structured mode without a word about it, too, for who sends by hand writes no headers. `message` names the message.
    ///
    /// # Errors
    /// It is no CloudEvent, or its type none.
    pub fn read(event: &HttpEvent<'_>, message: &str) -> Result<Self, CloudEventError> {
        let is_bare = event.content_type.is_empty() && event.attributes.is_empty();
        let content_type = if is_bare { STRUCTURED } else { event.content_type };
        let Said { event_type, time, metadata, payload, .. } = said(parts(&HttpEvent { content_type, ..*event })?)?;
        let parsed = EventType::parse(&event_type);
        let parsed = parsed.map_err(|error: NameError| CloudEventError::Wrong(format!("The attribute type: it {error}.")))?;
        let edge = metadata.get(EDGE).cloned();
        let attributes = json!(metadata).to_string();
        Ok(Self {
            event_type: parsed,
            edge,
            event: json!({"eventType": event_type, "payload": payload, "timeStamp": time}).to_string(),
            // An event has an id and a source at the least.
            metadata: format!("{{\"fleet\":{},{}", json!(message), &attributes[1..]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        publication::{Publication, Scratch, of_fleet},
        record::SystemId,
        utc::UtcTime,
    };

    const BARE: &str = r#"{"specversion":"1.0","id":"7","source":"/planner","type":"setpoint","edge":"west","data":{"t":21}}"#;

    fn read(content_type: &str, attributes: &[(&str, &str)], body: &str) -> Result<FleetCommand, CloudEventError> {
        FleetCommand::read(&HttpEvent { content_type, attributes, body: body.as_bytes() }, "5-9")
    }

    #[test]
    fn an_event_of_the_fleet_is_read_in_either_mode_and_by_hand() {
        let bare = read("", &[], BARE).expect("a CloudEvent");
        assert_eq!((bare.event_type.as_str(), bare.edge.as_deref()), ("SETPOINT", Some("west")));
        assert_eq!(read(STRUCTURED, &[], BARE), Ok(bare.clone()));
        let attributes = [("specversion", "1.0"), ("id", "7"), ("source", "/planner"), ("type", "setpoint"), ("edge", "west")];
        let binary = read("application/json", &attributes, r#"{"t":21}"#).expect("a CloudEvent");
        assert_eq!((&binary.event, &binary.edge), (&bare.event, &bare.edge));
        let mut scratch = Scratch::default();
        let publication =
            of_fleet(&bare.event, &bare.metadata, SystemId(4), UtcTime::from_unix_seconds(9), &mut scratch).expect("an event");
        assert_eq!((scratch.event_type.as_str(), publication.payload().text().as_ref()), ("SETPOINT", r#"{"t":21}"#));
        assert_eq!(publication.metadata_value("ce-id").as_deref(), Some("7"));
        assert!(publication.is_of_fleet());
        let mut json = Vec::new();
        publication.push_event_json(&mut json);
        let again = Publication::reread(std::str::from_utf8(&json).unwrap(), SystemId(4), UtcTime::from_unix_seconds(9)).unwrap();
        assert!(again.is_of_fleet(), "as a replica and the event log have it");
    }

    #[test]
    fn what_is_no_event_is_told_by_its_fault() {
        for (content_type, body, told) in [
            ("", "", "no JSON object"),
            ("", "21.5", "no JSON object"),
            ("", r#"{"specversion":"1.0","id":"7","type":"a"}"#, "source is missing"),
            ("", r#"{"specversion":"1.0","id":"7","source":"/p","type":" "}"#, "type"),
            ("text/plain", "21", "Expected a CloudEvent"),
        ] {
            let error = read(content_type, &[], body).expect_err(body).to_string();
            assert!(error.contains(told), "{body}: {error}");
        }
    }
}
