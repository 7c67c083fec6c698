//! What an event stream is asked for.

use bodkin_arrowhead::form::SystemRequest;

use crate::{query_string::path_with, service_registry::parts};

/// What the `data` of a stream's events is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventForm {
    /// The payload; the event type is the `event` field.
    #[default]
    Payload,
    /// The event as JSON, with its metadata and time stamp.
    Event,
}

/// Where a stream begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the next event.
    #[default]
    Now,
    /// With what is kept from this instant (UTC, `2031-01-01T00:00:00Z`); `0` is everything kept.
    Since(String),
    /// Behind the event of this id. If that is no longer kept: with everything kept, and an event `bodkin-lost` before it.
    After(String),
}

/// What an event stream is asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamRequest {
    /// Which events.
    pub event_type: String,
    /// What their `data` is.
    pub form: EventForm,
    /// A registered system: only the publishers it may hear. Absent: all (insecure mode only).
    pub consumer: Option<SystemRequest>,
    /// Where it begins.
    pub start: Start,
    /// Pairs an event's metadata must have.
    pub metadata: Vec<(String, String)>,
    /// Least severity of an event, `Debugging` to `Critical`.
    pub severity: Option<String>,
    /// Conditions on the JSON payload, such as `>21.5`, by JSON pointer without its first slash.
    pub payload: Vec<(String, String)>,
}

impl StreamRequest {
    /// All events of a type from now on, by their payloads.
    pub fn of(event_type: &str) -> Self {
        Self { event_type: event_type.to_owned(), ..Self::default() }
    }

    pub(crate) fn path(&self) -> String {
        let (path, key) = match self.form {
            EventForm::Payload => ("/eventhandler/subscription", "eventtype"),
            EventForm::Event => ("/eventhandler/events", "event_type"),
        };
        let mut parameters = vec![(key.to_owned(), self.event_type.as_str())];
        let port;
        if let Some(consumer) = &self.consumer {
            let (name, address, number) = parts(consumer);
            port = number;
            parameters.extend([("system_name".into(), name), ("address".into(), address), ("port".into(), port.as_str())]);
        }
        match &self.start {
            Start::Now => {}
            Start::Since(instant) => parameters.push(("since".into(), instant)),
            Start::After(id) => parameters.push(("last_event_id".into(), id)),
        }
        parameters.extend(self.metadata.iter().map(|(key, value)| (format!("metadata.{key}"), value.as_str())));
        parameters.extend(self.severity.as_deref().map(|severity| ("severity".into(), severity)));
        parameters.extend(self.payload.iter().map(|(pointer, condition)| (format!("payload.{pointer}"), condition.as_str())));
        let parameters: Vec<(&str, &str)> = parameters.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        path_with(path, &parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_asked_for_is_in_the_path() {
        assert_eq!(StreamRequest::of("A B").path(), "/eventhandler/subscription?eventtype=A%20B");
        let request = StreamRequest {
            form: EventForm::Event,
            start: Start::After("1-2-3-4".into()),
            metadata: vec![("unit".into(), "C&F".into())],
            severity: Some("Warning".into()),
            payload: vec![("t/value".into(), ">=21.5".into())],
            ..StreamRequest::of("T")
        };
        let path =
            "/eventhandler/events?event_type=T&last_event_id=1-2-3-4&metadata.unit=C%26F&severity=Warning&payload.t%2Fvalue=%3E%3D21.5";
        assert_eq!(request.path(), path);
        assert_eq!(
            StreamRequest { start: Start::Since("0".into()), ..StreamRequest::of("T") }.path(),
            "/eventhandler/subscription?eventtype=T&since=0"
        );
    }
}
