//! Events that another cloud has shared with this one.

use super::{Authorized, MetadataText, Publication, Scratch, fold_event_type};
use crate::{error::ArrowheadError, json, record::SystemId, utc::UtcTime};

/// An event of another cloud, whose key has signed it: the neighbor's operator has shared it, and who may hear `source`, this cloud's own Gatekeeper, may hear it. `event` is
/// its JSON as subscribers get it, `metadata` what it has here, a JSON object of scalars. On success `scratch.event_type` names the topic.
///
/// # Errors
/// It is no event.
pub fn relayed<'a>(
    event: &'a str,
    metadata: &'a str,
    source: SystemId,
    time: UtcTime,
    scratch: &mut Scratch,
) -> Result<Authorized<Publication<'a>>, ArrowheadError> {
    reread_with("shared event", event, metadata, source, time, scratch)
}

/// An event that was accepted elsewhere, with other metadata than it had there; `what` it is in a refusal.
fn reread_with<'a>(
    what: &str,
    event: &'a str,
    metadata: &'a str,
    source: SystemId,
    time: UtcTime,
    scratch: &mut Scratch,
) -> Result<Authorized<Publication<'a>>, ArrowheadError> {
    let refused = |error: serde_json::Error| ArrowheadError::invalid_parameter(format!("The {what}: {error}."));
    let mut publication = Publication::reread(event, source, time).map_err(refused)?;
    let metadata: MetadataText<'a> = serde_json::from_str(metadata).map_err(refused)?;
    publication.metadata = Some(metadata);
    fold_event_type(publication.event_type, &mut scratch.event_type)?;
    Ok(Authorized::new(publication))
}

/// An event that another node of this cloud has accepted, by the same rules and rows; who may hear its source there may hear it here. On success `scratch.event_type` names
/// the topic.
///
/// # Errors
/// It is no event.
pub fn of_node<'a>(
    event: &'a str,
    source: SystemId,
    time: UtcTime,
    scratch: &mut Scratch,
) -> Result<Authorized<Publication<'a>>, ArrowheadError> {
    let refused = |error: serde_json::Error| ArrowheadError::invalid_parameter(format!("The event of another node: {error}."));
    let publication = Publication::reread(event, source, time).map_err(refused)?;
    fold_event_type(publication.event_type, &mut scratch.event_type)?;
    Ok(Authorized::new(publication))
}

/// An event of the fleet that this edge belongs to: who runs the fleet's servers has let it be sent, and who may hear `source`, this cloud's own Event Handler, may hear it. `metadata` say
/// first which message of the fleet it was. On success `scratch.event_type` names the topic.
///
/// # Errors
/// It is no event.
pub fn of_fleet<'a>(
    event: &'a str,
    metadata: &'a str,
    source: SystemId,
    time: UtcTime,
    scratch: &mut Scratch,
) -> Result<Authorized<Publication<'a>>, ArrowheadError> {
    reread_with("event of the fleet", event, metadata, source, time, scratch)
}

impl Publication<'_> {
    /// Whether it has come from the fleet: its number is the stream's, which has others between.
    pub fn is_of_fleet(&self) -> bool {
        self.metadata.is_some_and(|metadata| metadata.0.starts_with("{\"fleet\":\""))
    }
}

/// When an event says that it was made; `None`: it does not, or in no form that is known.
pub fn told_time(event: &str) -> Option<UtcTime> {
    let form: super::PublishForm<'_> = json::parse_object(event).ok()?;
    UtcTime::parse(&form.time_stamp?.text()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_another_cloud_keeps_its_time_and_gets_new_metadata() {
        let event = r#"{"eventType":"heat","metaData":{"a":"1"},"payload":"x","timeStamp":"2026-01-01T00:00:00Z"}"#;
        let mut scratch = Scratch::default();
        let time = told_time(event).unwrap();
        let publication = relayed(event, r#"{"cloud":"two.test"}"#, SystemId(4), time, &mut scratch).unwrap();
        assert_eq!((scratch.event_type.as_str(), publication.facts().source), ("HEAT", SystemId(4)));
        let mut written = Vec::new();
        publication.push_event_json(&mut written);
        let written = String::from_utf8(written).unwrap();
        assert_eq!(written, r#"{"eventType":"heat","metaData":{"cloud":"two.test"},"payload":"x","timeStamp":"2026-01-01T00:00:00Z"}"#);
        assert!(relayed(event, r#"{"cloud":{}}"#, SystemId(4), time, &mut scratch).is_err());
        assert!(relayed(r#"{"eventType":"heat"}"#, "{}", SystemId(4), time, &mut scratch).is_err());
        assert_eq!(told_time(r#"{"payload":"x"}"#), None);
    }
}
