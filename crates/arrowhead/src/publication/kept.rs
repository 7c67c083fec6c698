//! The texts of a publication in a buffer of their own, for who keeps an event longer than the request that it came in.

use super::{JsonText, MetadataText, Publication};
use crate::event_handler::EventFacts;

/// A publication's texts, as the literals that they came as: what is kept is read again without being parsed.
#[derive(Debug, Default)]
pub struct KeptTexts {
    /// One behind the other.
    literals: String,
    /// Where each ends: event type, payload, metadata, time stamp. An empty one is none.
    ends: [usize; 4],
}

impl KeptTexts {
    /// Keeps the texts of a publication, in place of what was kept.
    pub fn keep(&mut self, publication: &Publication<'_>) {
        let Publication { event_type, payload, metadata, time_stamp, .. } = publication;
        let texts = [event_type.0, payload.0, metadata.map_or("", |metadata| metadata.0), time_stamp.map_or("", |text| text.0)];
        self.literals.clear();
        for (text, end) in texts.into_iter().zip(&mut self.ends) {
            self.literals.push_str(text);
            *end = self.literals.len();
        }
    }

    /// What is kept, with the facts of the event.
    pub fn publication(&self, facts: EventFacts) -> Publication<'_> {
        let [event_type, payload, metadata, time_stamp] = self.ends;
        let text = |from, to| Some(&self.literals[from..to]).filter(|text| !text.is_empty());
        Publication {
            event_type: JsonText(&self.literals[..event_type]),
            payload: JsonText(&self.literals[event_type..payload]),
            metadata: text(payload, metadata).map(MetadataText),
            time_stamp: text(metadata, time_stamp).map(JsonText),
            facts,
        }
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.literals.is_empty()
    }

    /// Lets the texts go, and the memory beyond so many bytes.
    pub fn clear(&mut self, bytes_max: usize) {
        self.literals.clear();
        self.literals.shrink_to(bytes_max);
        self.ends = [0; 4];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{record::SystemId, utc::UtcTime};

    #[test]
    fn what_is_kept_is_the_event_that_came() {
        let facts = EventFacts { source: SystemId(7), time: UtcTime::from_unix_seconds(1_767_225_600) };
        let mut kept = KeptTexts::default();
        for json in [
            r#"{"eventType":"HOT","metaData":{"a":"b"},"payload":"1 \"2\"","timeStamp":"2026-01-01T00:00:00Z"}"#,
            r#"{"eventType":"a","metaData":null,"payload":42,"timeStamp":null}"#,
        ] {
            let came = Publication::reread(json, facts.source, facts.time).unwrap();
            kept.keep(&came);
            let again = kept.publication(facts);
            assert_eq!((again.event_type(), again.payload()), (came.event_type(), came.payload()));
            assert_eq!((again.facts().source, again.facts().time), (facts.source, facts.time));
            assert_eq!(again.metadata_value("a"), came.metadata_value("a"));
            let json = |publication: &Publication<'_>| {
                let mut json = Vec::new();
                publication.push_event_json(&mut json);
                String::from_utf8(json).unwrap()
            };
            assert_eq!(json(&again), json(&came));
        }
        assert!(!kept.is_empty());
        kept.clear(0);
        assert!(kept.is_empty());
    }
}
