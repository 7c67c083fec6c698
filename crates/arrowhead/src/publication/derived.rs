//! Events that a graph has made, and what tells them from others.

use super::{JsonText, MetadataText, Publication, traced};
use crate::{caller::Authorized, event_handler::EventFacts, record::SystemId, trace::Cause, utc::UtcTime};

/// Metadata of what a graph has made.
const DERIVED: &str = r#"{"derived":"true"}"#;
/// The same of what was made of events that were not valid.
const MARKED: &str = r#"{"derived":"true","marked":"true"}"#;

/// An event that a graph has made of events that might be published: who operates the cloud has deployed the graph, so that its topics are the graph's to write. It counts as
/// published by who published the event that it is named after, and who may hear that system may hear it. What it is caused by is carried in metadata that are written into a
/// buffer of the caller's.
pub fn derived<'a>(
    event_type: JsonText<'a>,
    payload: JsonText<'a>,
    is_marked: bool,
    source: SystemId,
    time: UtcTime,
    caused: Option<(&Cause, &'a mut String)>,
) -> Authorized<Publication<'a>> {
    let plain = if is_marked { MARKED } else { DERIVED };
    let text = match caused {
        None => plain,
        Some((cause, metadata)) => {
            metadata.clear();
            metadata.push_str(&plain[..plain.len() - 1]);
            traced::push_pairs(cause, false, metadata);
            metadata.push('}');
            metadata
        }
    };
    let metadata = Some(MetadataText(text));
    Authorized::new(Publication { event_type, payload, metadata, time_stamp: None, facts: EventFacts { source, time } })
}

impl Publication<'_> {
    /// Whether a graph has made it.
    pub fn is_derived(&self) -> bool {
        self.is_marked() || self.is_as_written(DERIVED)
    }

    /// Whether a graph has made it of events that were not valid.
    pub fn is_marked(&self) -> bool {
        self.is_as_written(MARKED)
    }

    /// Whether its metadata are these, perhaps with what it is caused by behind them.
    fn is_as_written(&self, plain: &str) -> bool {
        let behind = self.metadata.and_then(|metadata| metadata.0.strip_prefix(&plain[..plain.len() - 1]));
        behind.is_some_and(|behind| behind == "}" || behind.starts_with(traced::CAUSED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_graph_has_made_is_its_sources_event_and_may_be_marked() {
        let (mut event_type, mut payload) = (String::new(), String::new());
        let texts = [JsonText::write("MEAN", &mut event_type), JsonText::write("[1,2]", &mut payload)];
        for is_marked in [false, true] {
            let made = derived(texts[0], texts[1], is_marked, SystemId(7), UtcTime::from_unix_seconds(9), None);
            assert_eq!((made.is_marked(), made.metadata_value("marked").is_some(), made.is_derived()), (is_marked, is_marked, true));
            assert_eq!((made.facts().source, made.created()), (SystemId(7), Some(UtcTime::from_unix_seconds(9))));
            let mut json = Vec::new();
            made.push_event_json(&mut json);
            let told: serde_json::Value = serde_json::from_slice(&json).unwrap();
            assert_eq!((&told["payload"], &told["metaData"]["derived"]), (&"[1,2]".into(), &"true".into()));
        }
        let stamped = r#"{"eventType":"a","payload":"1","timeStamp":"2026-01-01T00:00:00Z"}"#;
        let stamped = Publication::reread(stamped, SystemId(1), UtcTime::from_unix_seconds(1)).unwrap();
        assert_eq!(stamped.created(), None);
    }

    #[test]
    fn it_is_still_a_graphs_when_it_says_what_it_is_caused_by() {
        let context = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let cause = Cause::parse(context.as_bytes(), [&b"a=1"[..]]).unwrap();
        let (mut event_type, mut payload, mut metadata) = (String::new(), String::new(), "left over".to_owned());
        let texts = [JsonText::write("MEAN", &mut event_type), JsonText::write("1", &mut payload)];
        for is_marked in [false, true] {
            let time = UtcTime::from_unix_seconds(9);
            let made = derived(texts[0], texts[1], is_marked, SystemId(7), time, Some((&cause, &mut metadata)));
            assert_eq!((made.is_derived(), made.is_marked(), made.cause()), (true, is_marked, Some(cause.clone())));
            // As a replica and the event log have it.
            let mut json = Vec::new();
            made.push_event_json(&mut json);
            let again = Publication::reread(std::str::from_utf8(&json).unwrap(), SystemId(7), time).unwrap();
            assert_eq!((again.is_derived(), again.is_marked(), again.cause()), (true, is_marked, Some(cause.clone())));
        }
        let other = r#"{"eventType":"a","metaData":{"derived":"true","room":"7"},"payload":"1"}"#;
        assert!(!Publication::reread(other, SystemId(7), UtcTime::from_unix_seconds(9)).unwrap().is_derived());
    }
}
