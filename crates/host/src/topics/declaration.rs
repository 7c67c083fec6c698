//! A topic as the operator declares it while the cloud runs: JSON with the keys of a file of topics (`docs/formats/topics.md`).

use std::{borrow::Cow, collections::BTreeMap};

use bodkin_arrowhead::name::EventType;
use bodkin_broker::topic::{
    Platform,
    form::{Field, read_topic},
};
use serde_json::value::RawValue;

use super::{DeclaredTopic, PublisherList};

/// A value of the declaration: a number keeps its digits, for no number of nanoseconds is rounded.
enum Value<'t> {
    Number(&'t str),
    Text(Cow<'t, str>),
    Texts(Vec<Cow<'t, str>>),
    Boolean(bool),
    Other,
}

/// Keys that are names of the cloud, which the form of a topic has none of.
const NAMES: [&str; 2] = ["event_type", "publisher"];

/// Reads a declaration; the error says which key is wrong, and how.
pub fn parse(json: &str, platform: &Platform) -> Result<DeclaredTopic, String> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> =
        serde_json::from_str(json).map_err(|_| "expected a JSON object with the keys of a topic".to_owned())?;
    let values: Vec<(&str, Value<'_>)> = members.iter().map(|(key, raw)| (&**key, Value::of(raw.get()))).collect();
    let event_type = match values.iter().find(|(key, _)| *key == "event_type") {
        Some((_, Value::Text(name))) => EventType::parse(name).map_err(|error| format!("event_type {error}"))?,
        Some(_) => return Err("event_type must be a text".to_owned()),
        None => return Err("event_type is missing".to_owned()),
    };
    let fields = values.iter().filter(|(key, _)| !NAMES.contains(key)).map(|(key, value)| (*key, value.field()));
    let form = read_topic(fields, platform).map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))?;
    let permitted = match values.iter().find(|(key, _)| *key == "publisher") {
        None => PublisherList::default(),
        Some((_, Value::Text(name))) => PublisherList::parse([&**name], form.spec.publishers)?,
        Some((_, Value::Texts(names))) => PublisherList::parse(names.iter().map(|name| &**name), form.spec.publishers)?,
        Some(_) => return Err("publisher must be the name of a system, or a list of names".to_owned()),
    };
    match form.count {
        1 => Ok(DeclaredTopic { event_type, spec: form.spec.into(), permitted }),
        count => Err(format!("count is {count}, and a topic that is declared here is one event type")),
    }
}

impl<'t> Value<'t> {
    fn of(json: &'t str) -> Self {
        match json.as_bytes() {
            [b'-' | b'0'..=b'9', ..] => Self::Number(json),
            [b'"', ..] => serde_json::from_str(json).map_or(Self::Other, Self::Text),
            [b'[', ..] => serde_json::from_str(json).map_or(Self::Other, Self::Texts),
            b"true" => Self::Boolean(true),
            b"false" => Self::Boolean(false),
            _ => Self::Other,
        }
    }

    fn field(&self) -> Field<'_> {
        match self {
            Self::Number(digits) => Field::Number(digits),
            Self::Text(text) => Field::Text(text),
            Self::Boolean(boolean) => Field::Boolean(*boolean),
            Self::Texts(_) | Self::Other => Field::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use bodkin_broker::{
        timing::{Nanos, Span},
        topic::{LossTolerance, Period},
    };

    use super::*;

    #[test]
    fn a_declaration_has_the_keys_of_a_file_and_is_read_to_the_nanosecond() {
        let json = r#"{"event_type":"hot","period_ms":0.000001,"deadline_ms":"inf","loss_tolerance":3,"durable":true}"#;
        let topic = parse(json, &Platform::default()).unwrap();
        assert_eq!((topic.event_type.as_str(), topic.spec.period), ("HOT", Period::Every(Nanos::new(1))));
        assert_eq!((topic.spec.deadline, topic.spec.loss_tolerance), (Span::Infinite, LossTolerance::AtMost(3)));
        assert!(topic.spec.durable);
    }

    #[test]
    fn publisher_is_one_name_or_a_list() {
        let permitted = |publisher: &str| {
            let json = format!(r#"{{"event_type":"hot","period_ms":1,"publishers":2,"publisher":{publisher}}}"#);
            parse(&json, &Platform::default()).unwrap().permitted.to_string()
        };
        assert_eq!(permitted(r#""Sensor""#), "sensor");
        assert_eq!(permitted(r#"["b","\u0061"]"#), "a, b");
    }

    #[test]
    fn a_mistake_is_told_by_its_key() {
        let cases = [
            ("[]", "expected a JSON object with the keys of a topic"),
            ("{}", "event_type is missing"),
            (r#"{"event_type":5}"#, "event_type must be a text"),
            (r#"{"event_type":" "}"#, "event_type is null or blank."),
            (r#"{"event_type":"a"}"#, "period_ms is missing"),
            (r#"{"event_type":"a","period_ms":[5]}"#, "period_ms must be a number or inf"),
            (r#"{"event_type":"a","period":5}"#, "period needs its unit: period_us, period_ms or period_s; period_ms is missing"),
            (
                r#"{"event_type":"a","period_ms":5,"publisher":["b","c"]}"#,
                "publisher names more systems than publishers allows: expected at most publishers = 1",
            ),
            (r#"{"event_type":"a","period_ms":5,"publisher":["b",5]}"#, "publisher must be the name of a system, or a list of names"),
            (r#"{"event_type":"a","period_ms":5,"count":2}"#, "count is 2, and a topic that is declared here is one event type"),
        ];
        for (json, told) in cases {
            assert_eq!(parse(json, &Platform::default()).unwrap_err(), told, "{json}");
        }
    }
}
