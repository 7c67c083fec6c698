//! From a message of the fleet to an event: whose it is, and whether it is one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bodkin_arrowhead::{
    name::EventType,
    publication::cloud_event::{FleetCommand, HttpEvent},
    record::SystemId,
};
use bodkin_broker::{Incarnation, Sequence};
use bodkin_nats::protocol::{Message, token_of};
use serde::Deserialize;

use super::{
    super::config::{ALL_EDGES, FleetConfig},
    FleetEvent,
};

/// What a message is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// An event for this edge.
    Event(Box<FleetEvent>),
    /// One for all edges that is none of this one's: of another type, or made here.
    NotOurs,
    /// Nothing that could ever be published here.
    Wrong(String),
}

/// What this edge takes.
pub(super) struct Reader {
    /// In front of the edge and the event type in a subject.
    prefix: String,
    edge: String,
    event_types: BTreeSet<Box<str>>,
    source: SystemId,
}

impl Reader {
    /// Of an edge, whose events from the fleet are published as `source`'s.
    pub fn new(config: &FleetConfig, source: SystemId) -> Self {
        let from = config.from.as_ref();
        let event_types = from.map(|from| from.event_types.iter().cloned().collect()).unwrap_or_default();
        Self { prefix: from.map(|from| format!("{}.", from.prefix)).unwrap_or_default(), edge: config.edge.clone(), event_types, source }
    }

    /// Reads a message.
    pub fn read(&self, incarnation: Incarnation, sequence: u64, message: &Message) -> Read {
        let place = message.subject.strip_prefix(&*self.prefix).and_then(|rest| rest.split_once('.'));
        let Some((to, token)) = place else { return Read::Wrong(format!("its subject is {}", message.subject)) };
        let Ok(headers) = &message.headers else { return Read::Wrong("its headers are none".to_owned()) };
        let lower: Vec<(String, &str)> = headers.fields().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let content_type = lower.iter().find(|(name, _)| name == "content-type").map_or("", |(_, value)| value);
        if let Some((_, coding)) = lower.iter().find(|(name, value)| name == "content-encoding" && !value.eq_ignore_ascii_case("identity"))
        {
            return Read::Wrong(format!("its content coding {coding:?} is not accepted"));
        }
        let attributes: Vec<(&str, &str)> = lower.iter().filter_map(|(name, value)| Some((name.strip_prefix("ce-")?, *value))).collect();
        let event = HttpEvent { content_type, attributes: &attributes, body: &message.payload };
        let command = match FleetCommand::read(&event, &format!("{}-{sequence}", incarnation.0)) {
            Ok(command) => command,
            Err(error) => return Read::Wrong(format!("it is no CloudEvent: {error}")),
        };
        let FleetCommand { event_type, edge, event, metadata } = command;
        if !says_the_same(token, &event_type) {
            let told = format!("its subject ends with {token:?}, and its type is {}: both are to say the same", event_type.as_str());
            return Read::Wrong(told);
        }
        // What this edge has forwarded does not come back to it.
        if edge.as_deref() == Some(&*self.edge) {
            return Read::NotOurs;
        }
        if !self.event_types.contains(event_type.as_str()) {
            let told = || format!("{} is none of the event types that this edge takes (from_fleet)", event_type.as_str());
            return if to == ALL_EDGES { Read::NotOurs } else { Read::Wrong(told()) };
        }
        let (event, metadata) = (event.into(), metadata.into());
        Read::Event(Box::new(FleetEvent { incarnation, sequence: Sequence(sequence), source: self.source, event, metadata }))
    }
}

/// In the metadata of an event: how many messages the stream had let go of before this one came, at the most. So it is told at its place, and whoever leads next counts on from there.
const LOST: &str = "fleetLost";

/// Metadata that say so; they have what names the message already.
pub(super) fn telling_lost(metadata: &str, lost: u64) -> Arc<str> {
    let whole = metadata.strip_suffix('}').expect("metadata are a JSON object");
    format!("{whole},\"{LOST}\":\"{lost}\"}}").into()
}

/// How many were lost in front of an event, by its JSON.
pub(super) fn lost_of(event: &str) -> u64 {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Told {
        #[serde(default)]
        meta_data: BTreeMap<String, String>,
    }
    if !event.contains(LOST) {
        return 0;
    }
    let told: Option<Told> = serde_json::from_str(event).ok();
    told.and_then(|told| told.meta_data.get(LOST)?.parse().ok()).unwrap_or_default()
}

/// Whether a token of a subject is an event type, in any case.
fn says_the_same(token: &str, event_type: &EventType) -> bool {
    token.to_uppercase() == token_of(event_type.as_str()).to_uppercase()
}

#[cfg(test)]
mod tests {
    use bodkin_nats::protocol::Headers;

    use super::*;

    fn read(subject: &str, payload: &str) -> Read {
        read_with(Headers::default(), subject, payload)
    }

    fn read_with(headers: Headers, subject: &str, payload: &str) -> Read {
        let reader = Reader {
            prefix: "commands.".to_owned(),
            edge: "edge-7".to_owned(),
            event_types: ["SETPOINT", "A B"].map(Box::from).into(),
            source: SystemId(4),
        };
        let message = Message {
            subject: subject.to_owned(),
            subscription: 2,
            reply: None,
            headers: Ok(headers),
            payload: payload.as_bytes().to_vec(),
        };
        reader.read(Incarnation(5), 9, &message)
    }

    fn event(event_type: &str, more: &str) -> String {
        format!(r#"{{"specversion":"1.0","id":"1","source":"/planner","type":"{event_type}","data":"x"{more}}}"#)
    }

    #[test]
    fn commands_for_this_edge_and_events_for_all_are_taken() {
        for (subject, event_type) in
            [("commands.edge-7.setpoint", "Setpoint"), ("commands.all.SETPOINT", "setpoint"), ("commands.all.a%20b", "a b")]
        {
            let Read::Event(read) = read(subject, &event(event_type, "")) else { panic!("{subject}") };
            assert_eq!((read.sequence, read.incarnation, read.source), (Sequence(9), Incarnation(5), SystemId(4)));
            assert!(read.metadata.starts_with(r#"{"fleet":"5-9","ce-"#), "{}", read.metadata);
            let event = format!(r#"{{"payload":"{{\"fleetLost\":3}}","metaData":{}}}"#, telling_lost(&read.metadata, 12));
            assert_eq!((lost_of(&event), lost_of(r#"{"payload":"fleetLost"}"#)), (12, 0));
        }
    }

    #[test]
    fn binary_mode_command_has_headers_as_attributes() {
        let headers = |event_type: &str| {
            let named = [("ce-specversion", "1.0"), ("CE-Id", "41"), ("ce-source", "/planner"), ("Ce-Type", event_type)];
            named.into_iter().fold(Headers::default(), |headers, (name, value)| headers.with(name, value))
        };
        let Read::Event(read) = read_with(headers("Setpoint"), "commands.edge-7.setpoint", "21.5") else { panic!("it is an event") };
        assert!(read.event.contains(r#""payload":"21.5""#), "{}", read.event);
        assert!(read.metadata.contains(r#""ce-id":"41""#) && read.metadata.contains(r#""ce-source":"/planner""#), "{}", read.metadata);
        assert!(
            matches!(read_with(headers("other"), "commands.edge-7.setpoint", "21.5"), Read::Wrong(why) if why.contains("both are to say the same"))
        );
        let coded = read_with(headers("setpoint").with("Content-Encoding", "gzip"), "commands.edge-7.setpoint", "21.5");
        assert!(matches!(coded, Read::Wrong(why) if why.contains("gzip")));
        assert_eq!(read_with(headers("setpoint").with("ce-edge", "edge-7"), "commands.all.setpoint", "21.5"), Read::NotOurs);
    }

    #[test]
    fn what_was_made_here_or_is_others_is_passed_over() {
        assert_eq!(read("commands.all.setpoint", &event("setpoint", r#","edge":"edge-7""#)), Read::NotOurs, "it does not come back");
        assert!(matches!(read("commands.all.setpoint", &event("setpoint", r#","edge":"edge-8""#)), Read::Event(_)));
        assert_eq!(read("commands.all.weather", &event("weather", "")), Read::NotOurs);
    }

    #[test]
    fn what_can_never_be_published_is_told_by_its_fault() {
        for (subject, payload, told) in [
            ("commands.edge-7.setpoint", "21.5".to_owned(), "no CloudEvent"),
            ("commands.edge-7.setpoint", event("other", ""), "both are to say the same"),
            ("commands.edge-7.weather", event("weather", ""), "none of the event types"),
            ("other", event("setpoint", ""), "its subject is other"),
        ] {
            let Read::Wrong(why) = read(subject, &payload) else { panic!("{subject} is taken") };
            assert!(why.contains(told), "{subject}: {why}");
        }
    }
}
