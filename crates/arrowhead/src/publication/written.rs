//! An event as this node has written it itself: read again without a parser.

use super::{EventFacts, JsonText, MetadataText, Publication};
use crate::{record::SystemId, utc::UtcTime};

impl<'a> Publication<'a> {
    /// Reads an event as [`Self::push_event_json`] writes it: for what is known to be unchanged since, by a checksum say, as nothing is checked of its texts. `None`: it has another form.
    pub fn written(event: &'a str, source: SystemId, time: UtcTime) -> Option<Self> {
        let (event_type, rest) = literal(event.strip_prefix("{\"eventType\":")?)?;
        let rest = rest.strip_prefix(",\"metaData\":")?;
        let (metadata, rest) = match rest.strip_prefix("null") {
            Some(rest) => (None, rest),
            None => object(rest).map(|(object, rest)| (Some(MetadataText(object)), rest))?,
        };
        let (payload, rest) = literal(rest.strip_prefix(",\"payload\":")?)?;
        let (time_stamp, rest) = literal(rest.strip_prefix(",\"timeStamp\":")?)?;
        let (event_type, payload, time_stamp) = (JsonText(event_type), JsonText(payload), Some(JsonText(time_stamp)));
        (rest == "}").then_some(Self { event_type, payload, metadata, time_stamp, facts: EventFacts { source, time } })
    }
}

/// A string literal with its quotes, and what is behind it.
fn literal(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut from = 0;
    loop {
        let quote = from + inner[from..].find('"')?;
        let backslashes = inner[..quote].bytes().rev().take_while(|byte| *byte == b'\\').count();
        if backslashes.is_multiple_of(2) {
            return Some(text.split_at(quote + 2));
        }
        from = quote + 1;
    }
}

/// An object of scalars with its braces, and what is behind it.
fn object(text: &str) -> Option<(&str, &str)> {
    let mut rest = text.strip_prefix('{')?;
    loop {
        let at = rest.find(['"', '}'])?;
        if rest.as_bytes()[at] == b'}' {
            return Some(text.split_at(text.len() - rest.len() + at + 1));
        }
        (_, rest) = literal(&rest[at..])?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SOURCE: SystemId = SystemId(7);

    fn time() -> UtcTime {
        UtcTime::from_unix_seconds(1_767_225_600)
    }

    fn texts<'a>(publication: &'a Publication<'_>) -> (&'a str, Option<&'a str>, &'a str, Option<&'a str>) {
        (publication.event_type.0, publication.metadata(), publication.payload.0, publication.time_stamp.map(|text| text.0))
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_as_the_parser_reads_it(
            event_type in any::<String>(),
            payload in r#"["\\}{,:a-z\PC]{0,30}"#,
            metadata in prop::collection::btree_map(r#"["\\}{a-z]{0,5}"#, prop_oneof![r#"["\\}{,]{0,9}"#.prop_map(serde_json::Value::from), any::<i64>().prop_map(serde_json::Value::from), any::<bool>().prop_map(serde_json::Value::from)], 0..4),
            has_metadata: bool,
            is_stamped: bool,
        ) {
            let came = serde_json::json!({
                "eventType": event_type, "payload": payload,
                "metaData": has_metadata.then_some(metadata),
                "timeStamp": is_stamped.then_some("2026-01-01T00:00:00Z"),
            }).to_string();
            let mut bytes = Vec::new();
            Publication::reread(&came, SOURCE, time()).unwrap().push_event_json(&mut bytes);
            let event = std::str::from_utf8(&bytes).unwrap();
            let written = Publication::written(event, SOURCE, time()).expect("its own form");
            let parsed = Publication::reread(event, SOURCE, time()).unwrap();
            prop_assert_eq!(texts(&written), texts(&parsed));
            for cut in (0..event.len()).filter(|at| event.is_char_boundary(*at)) {
                prop_assert!(Publication::written(&event[..cut], SOURCE, time()).is_none(), "{}", &event[..cut]);
            }
        }
    }

    #[test]
    fn another_form_is_left_to_the_parser() {
        for event in [
            r#"{"eventType":"a","payload":"x"}"#,
            r#"{"eventType":"a","metaData":null,"payload":42,"timeStamp":"t"}"#,
            r#"{"eventType":"a","metaData":[],"payload":"x","timeStamp":"t"}"#,
            r#"{"eventType":"a","metaData":null,"payload":"x","timeStamp":null}"#,
            r#"{"eventType":"a","metaData":null,"payload":"x","timeStamp":"t"} "#,
            r#"{"payload":"x","metaData":null,"eventType":"a","timeStamp":"t"}"#,
        ] {
            assert!(Publication::written(event, SOURCE, time()).is_none(), "{event}");
        }
    }
}
