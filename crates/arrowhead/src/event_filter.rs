//! Which events a subscriber wants: by metadata, by severity, by fields of a JSON payload.
//!
//! Filtering by metadata is upstream's (reference 6.2). Severity and payload are the "event filtering rules" that the
//! Arrowhead papers describe and upstream does not have. A filter is asked for every event, so nothing is allocated here
//! once the caller's buffer has grown.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserializer, Serialize,
    de::{self, DeserializeSeed, IgnoredAny, Visitor},
};

use crate::{metadata::Metadata, publication::Publication};

/// The metadata key that holds an event's severity.
pub const SEVERITY_KEY: &str = "severity";
/// Conditions of one filter.
const CONDITIONS_MAX: usize = 16;
/// Characters of a condition or of where it looks.
const CONDITION_LENGTH_MAX: usize = 255;

/// How grave an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Severity {
    /// Of use while something is developed.
    Debugging,
    /// All is as it should be.
    Informational,
    /// As it should be, and worth knowing.
    Notification,
    /// May become an error.
    Warning,
    /// Something does not work.
    Error,
    /// Something has to be done at once.
    Critical,
}

impl Severity {
    /// All of them, the least grave first.
    pub const ALL: [Self; 6] = [Self::Debugging, Self::Informational, Self::Notification, Self::Warning, Self::Error, Self::Critical];

    /// The spelling in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debugging => "Debugging",
            Self::Informational => "Informational",
            Self::Notification => "Notification",
            Self::Warning => "Warning",
            Self::Error => "Error",
            Self::Critical => "Critical",
        }
    }

    /// Reads a severity in any case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.as_str().eq_ignore_ascii_case(text.trim()))
    }
}

/// Why a filter was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// No severity has this name.
    #[error("severity '{0}' is none of Debugging, Informational, Notification, Warning, Error, Critical")]
    Severity(String),
    /// A condition that compares by size needs a number.
    #[error("condition '{0}' compares by size, so a number must follow the sign")]
    NotANumber(String),
    /// A condition or its place is too long.
    #[error("a payload condition or its place has more than {CONDITION_LENGTH_MAX} characters")]
    TooLong,
    /// Too many conditions.
    #[error("a filter has {CONDITIONS_MAX} payload conditions at the most")]
    TooMany,
}

/// What an event must have. The default is met by every event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventFilter {
    metadata: Metadata,
    severity: Option<Severity>,
    payload: Vec<Condition>,
}

impl EventFilter {
    /// Metadata pairs (values in any case), the least severity, and conditions on fields of a JSON payload by their place.
    ///
    /// A place is a JSON Pointer (RFC 6901) without its first slash. A condition is `=x`, `!=x`, `<n`, `<=n`, `>n`, `>=n`, or
    /// a bare `x` that means `=x`.
    pub fn new(metadata: Metadata, severity: Option<Severity>, payload: &BTreeMap<String, String>) -> Result<Self, FilterError> {
        if payload.len() > CONDITIONS_MAX {
            return Err(FilterError::TooMany);
        }
        let payload = payload.iter().map(|(place, condition)| Condition::parse(place, condition)).collect::<Result<_, _>>()?;
        Ok(Self { metadata, severity, payload })
    }

    /// Whether every event passes.
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an event passes. `text` is a buffer that is kept by the caller.
    pub fn passes(&self, event: &Publication<'_>, text: &mut String) -> bool {
        self.metadata.pairs().iter().all(|(key, value)| has_pair(event, key, value))
            && self.severity.is_none_or(|least| {
                event.metadata_value(SEVERITY_KEY).and_then(|found| Severity::parse(&found)).is_some_and(|found| found >= least)
            })
            && (self.payload.is_empty() || self.payload_passes(event, text))
    }

    fn payload_passes(&self, event: &Publication<'_>, text: &mut String) -> bool {
        let payload = event.payload();
        let json = match payload.plain() {
            Some(plain) => plain,
            None => {
                text.clear();
                payload.push_to(text);
                text
            }
        };
        self.payload.iter().all(|condition| condition.met_by(json))
    }
}

fn has_pair(event: &Publication<'_>, key: &str, value: &str) -> bool {
    let equal = |found: &str| found.eq_ignore_ascii_case(value) || found.to_lowercase() == value.to_lowercase();
    event.metadata_value(key).is_some_and(|found| equal(&found))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A condition on one field.
#[derive(Clone, Debug, PartialEq)]
struct Condition {
    /// Member names or array indexes, from the outermost on.
    place: Vec<Box<str>>,
    comparison: Comparison,
    text: Box<str>,
    number: Option<f64>,
}

impl Condition {
    fn parse(place: &str, condition: &str) -> Result<Self, FilterError> {
        if place.chars().count().max(condition.chars().count()) > CONDITION_LENGTH_MAX {
            return Err(FilterError::TooLong);
        }
        let signs = [
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
            ("=", Comparison::Equal),
        ];
        let signed = signs.into_iter().find_map(|(sign, comparison)| Some((condition.strip_prefix(sign)?, comparison)));
        let (text, comparison) = signed.unwrap_or((condition, Comparison::Equal));
        let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
        let by_size = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        if by_size && number.is_none() {
            return Err(FilterError::NotANumber(condition.to_owned()));
        }
        let place = place.split('/').map(|token| token.replace("~1", "/").replace("~0", "~").into()).collect();
        Ok(Self { place, comparison, text: text.into(), number })
    }

    /// Whether the field is there and as it should be. A payload that is not JSON does not pass.
    fn met_by(&self, json: &str) -> bool {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let met = Seek { condition: self, place: &self.place }.deserialize(&mut deserializer);
        met.is_ok_and(|met| met) && deserializer.end().is_ok()
    }

    fn met_by_number(&self, found: f64) -> bool {
        let Some(number) = self.number else { return self.comparison == Comparison::NotEqual };
        match self.comparison {
            Comparison::Equal => found == number,
            Comparison::NotEqual => found != number,
            Comparison::Less => found < number,
            Comparison::LessOrEqual => found <= number,
            Comparison::Greater => found > number,
            Comparison::GreaterOrEqual => found >= number,
        }
    }

    fn met_by_text(&self, found: &str) -> bool {
        match self.comparison {
            Comparison::Equal => found == &*self.text,
            Comparison::NotEqual => found != &*self.text,
            _ => false,
        }
    }
}

/// Walks to a field and asks the condition there; everything else is passed over.
struct Seek<'c> {
    condition: &'c Condition,
    place: &'c [Box<str>],
}

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Seek<'_> {
    fn leaf(&self, met: impl FnOnce(&Condition) -> bool) -> bool {
        self.place.is_empty() && met(self.condition)
    }
}

impl<'de> Visitor<'de> for Seek<'_> {
    type Value = bool;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_str<E>(self, found: &str) -> Result<bool, E> {
        Ok(self.leaf(|condition| condition.met_by_text(found)))
    }
    fn visit_bool<E>(self, found: bool) -> Result<bool, E> {
        Ok(self.leaf(|condition| condition.met_by_text(if found { "true" } else { "false" })))
    }
    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(self.leaf(|condition| condition.met_by_text("null")))
    }
    fn visit_f64<E>(self, found: f64) -> Result<bool, E> {
        Ok(self.leaf(|condition| condition.met_by_number(found)))
    }
    fn visit_i64<E>(self, found: i64) -> Result<bool, E> {
        Ok(self.leaf(|condition| condition.met_by_number(found as f64)))
    }
    fn visit_u64<E>(self, found: u64) -> Result<bool, E> {
        Ok(self.leaf(|condition| condition.met_by_number(found as f64)))
    }
    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let Some((wanted, place)) = self.place.split_first() else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(false);
        };
        let mut met = false;
        while let Some(is_wanted) = map.next_key_seed(KeyIs(wanted))? {
            if is_wanted {
                met = map.next_value_seed(Seek { condition: self.condition, place })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(met)
    }
    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let (wanted, place) = self.place.split_first().map_or((None, &[][..]), |(index, place)| (index.parse::<usize>().ok(), place));
        let (mut index, mut met) = (0, false);
        loop {
            if Some(index) == wanted {
                let Some(found) = list.next_element_seed(Seek { condition: self.condition, place })? else { return Ok(met) };
                met = found;
            } else if list.next_element::<IgnoredAny>()?.is_none() {
                return Ok(met);
            }
            index += 1;
        }
    }
}

struct KeyIs<'k>(&'k str);

impl<'de> DeserializeSeed<'de> for KeyIs<'_> {
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyIs<'_> {
    type Value = bool;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }
    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::{publication::Publication, record::SystemId, utc::UtcTime};

    fn passes(filter: &EventFilter, metadata: Value, payload: &str) -> bool {
        let event = json!({"eventType": "T", "metaData": metadata, "payload": payload, "timeStamp": "2026-11-21T00:00:00Z"}).to_string();
        let publication = Publication::reread(&event, SystemId(1), UtcTime::from_unix_seconds(0)).unwrap();
        filter.passes(&publication, &mut String::new())
    }

    fn on_payload(place: &str, condition: &str) -> Result<EventFilter, FilterError> {
        EventFilter::new(Metadata::default(), None, &BTreeMap::from([(place.into(), condition.into())]))
    }

    #[test]
    fn conditions_look_at_one_field_of_a_json_payload() {
        let payload = r#"{"temperature":{"value":21.5,"unit":"°C"},"ok":true,"none":null,"list":[1,{"a/b":"x~y"}],"text":"5"}"#;
        for (place, condition, expected) in [
            ("temperature/value", ">21", true),
            ("temperature/value", ">21.5", false),
            ("temperature/value", ">=21.5", true),
            ("temperature/value", "<= 21.5", true),
            ("temperature/value", "<21.5", false),
            ("temperature/value", "21.50", true),
            ("temperature/value", "!=21.5", false),
            ("temperature/value", "!=hot", true),
            ("temperature/unit", "°C", true),
            ("temperature/unit", "=°c", false),
            ("temperature/unit", "!=K", true),
            ("temperature/unit", ">1", false),
            ("temperature", "=21.5", false),
            ("temperature", "!=21.5", false),
            ("ok", "true", true),
            ("ok", "=false", false),
            ("none", "null", true),
            ("list/0", "1", true),
            ("list/1/a~1b", "x~y", true),
            ("list/2", "1", false),
            ("list/x", "1", false),
            ("list", "1", false),
            ("text", "5", true),
            ("text", ">4", false),
            ("missing", "!=1", false),
            ("ok/deeper", "true", false),
        ] {
            assert_eq!(passes(&on_payload(place, condition).unwrap(), json!(null), payload), expected, "{place} {condition}");
        }
        let filter = on_payload("a", "1").unwrap();
        for (payload, expected) in
            [("{\"a\":1}", true), ("{\"a\":1} ", true), ("{\"a\":1}x", false), ("{\"a\":1", false), ("1", false), ("", false)]
        {
            assert_eq!(passes(&filter, json!(null), payload), expected, "{payload}");
        }
        assert!(passes(&on_payload("", "7").unwrap(), json!(null), r#"{"":7}"#));
    }

    #[test]
    fn severity_and_metadata_are_metadata_of_the_event() {
        let filter =
            EventFilter::new(Metadata::from(BTreeMap::from([("Unit".into(), "ß".into())])), Some(Severity::Warning), &BTreeMap::new());
        let filter = filter.unwrap();
        for (metadata, expected) in [
            (json!({"Unit": "ß", "severity": "warning"}), true),
            (json!({"Unit": "ẞ", "severity": " CRITICAL "}), true),
            (json!({"unit": "ß", "severity": "Warning"}), false),
            (json!({"Unit": "ß", "severity": "Notification"}), false),
            (json!({"Unit": "ß", "severity": "loud"}), false),
            (json!({"Unit": "ß"}), false),
            (json!(null), false),
        ] {
            assert_eq!(passes(&filter, metadata.clone(), "p"), expected, "{metadata}");
        }
        assert!(EventFilter::default().is_open() && passes(&EventFilter::default(), json!(null), "p"));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert_eq!(on_payload("a", ">b"), Err(FilterError::NotANumber(">b".into())));
        assert_eq!(on_payload("a", "<"), Err(FilterError::NotANumber("<".into())));
        assert_eq!(on_payload(&"a".repeat(256), "1"), Err(FilterError::TooLong));
        let many = (0..17).map(|n| (n.to_string(), String::new())).collect();
        assert_eq!(EventFilter::new(Metadata::default(), None, &many), Err(FilterError::TooMany));
        assert_eq!(Severity::parse("loud"), None);
    }

    proptest! {
        #[test]
        fn any_payload_is_answered(payload in ".{0,60}", place in "[a-z/~01]{0,8}", condition in "[<>=!]{0,2}[0-9a-z]{0,3}") {
            if let Ok(filter) = on_payload(&place, &condition) {
                passes(&filter, json!(null), &payload);
            }
        }

        #[test]
        fn a_member_is_found_however_deep(names in prop::collection::vec("[a-z~/\"\\\\]{0,4}", 1..8), value in -1000i32..1000) {
            let payload = names.iter().rev().fold(json!(value), |inner, name| json!({name.as_str(): inner})).to_string();
            let place = names.iter().map(|name| name.replace('~', "~0").replace('/', "~1")).collect::<Vec<_>>().join("/");
            let met = |condition: String| passes(&on_payload(&place, &condition).unwrap(), json!(null), &payload);
            prop_assert_eq!((met(format!("={value}")), met(format!(">{value}"))), (true, false));
        }
    }
}
