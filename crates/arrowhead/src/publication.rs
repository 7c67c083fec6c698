//! A published event, read and written without an allocation.
//!
//! A publication's texts stay the JSON literals they came as: what a subscriber gets as Event JSON is written from the
//! same bytes, and only a `data:` line with the payload itself needs the escapes resolved.

pub mod cloud_event;
mod derived;
mod escape;
mod kept;
mod relayed;
mod text;
mod traced;
mod written;

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;

pub(crate) use self::traced::metadata_value;
pub use self::{
    derived::derived,
    kept::KeptTexts,
    relayed::{of_fleet, of_node, relayed, told_time},
    text::JsonText,
};
use crate::{
    access::{Claim, Claims},
    caller::Authorized,
    error::ArrowheadError,
    event_handler::{EventFacts, TIME_STAMP_TOLERANCE},
    json,
    name::TEXT_LENGTH_MAX,
    record::{System, SystemId},
    snapshot::Snapshot,
    system::SystemKey,
    utc::UtcTime,
};

/// Path of the operation, as errors name it.
pub const PUBLISH_ORIGIN: &str = "/eventhandler/publish";

/// An event's metadata: a JSON object of scalars, checked but not taken apart.
#[derive(Clone, Copy, Debug)]
pub struct MetadataText<'a>(&'a str);

impl<'de: 'a, 'a> Deserialize<'de> for MetadataText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = <&RawValue>::deserialize(deserializer)?.get();
        each_pair(object, |_, _| ()).map(|()| Self(object)).map_err(de::Error::custom)
    }
}

impl<'a> MetadataText<'a> {
    /// The value of a key, escapes resolved. A repeated key's last value counts.
    fn find(self, wanted: &str) -> Option<Cow<'a, str>> {
        metadata_value(self.0, wanted)
    }
}

/// Calls `visit` for every pair of a JSON object of scalars.
fn each_pair<'a>(object: &'a str, visit: impl FnMut(JsonText<'a>, Option<JsonText<'a>>)) -> Result<(), serde_json::Error> {
    struct PairVisitor<F>(F);
    impl<'de, F: FnMut(JsonText<'de>, Option<JsonText<'de>>)> de::Visitor<'de> for PairVisitor<F> {
        type Value = ();
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a map of texts")
        }
        fn visit_map<A: de::MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((key, value)) = map.next_entry()? {
                (self.0)(key, value);
            }
            Ok(())
        }
    }
    serde_json::Deserializer::from_str(object).deserialize_map(PairVisitor(visit))
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Source<'a> {
    #[serde(borrow)]
    system_name: Option<JsonText<'a>>,
    #[serde(borrow)]
    address: Option<JsonText<'a>>,
    #[serde(deserialize_with = "json::integer")]
    port: Option<i64>,
}

/// The body of `POST /eventhandler/publish`, borrowed from the request.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PublishForm<'a> {
    #[serde(borrow)]
    event_type: Option<JsonText<'a>>,
    #[serde(borrow, deserialize_with = "json::object")]
    source: Option<Source<'a>>,
    #[serde(borrow)]
    meta_data: Option<MetadataText<'a>>,
    #[serde(borrow)]
    payload: Option<JsonText<'a>>,
    #[serde(borrow)]
    time_stamp: Option<JsonText<'a>>,
    /// When an event was created that did not come as JSON.
    #[serde(skip)]
    created: Created,
    /// The source, where it was found already.
    #[serde(skip)]
    found: Option<SystemId>,
}

/// When an event was created that did not come as JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Created {
    /// It does not say.
    #[default]
    Unsaid,
    /// It says so, and is asked what a time stamp in JSON is.
    Stamped(UtcTime),
    /// It says so, and the caller has looked at it: a publisher that keeps its events may send an old one.
    Checked(UtcTime),
}

impl<'a> PublishForm<'a> {
    /// An event that a registered system publishes by other means than JSON.
    pub fn of(source: &'a System, event_type: JsonText<'a>, payload: JsonText<'a>, created: Created) -> Self {
        // Names and addresses have no character that JSON would escape, and are scalars as they are.
        let [system_name, address] = [source.system_name.as_str(), source.address.as_str()].map(|text| Some(JsonText(text)));
        let found = source.id;
        let source = Source { system_name, address, port: Some(source.port.into()) };
        Self { event_type: Some(event_type), source: Some(source), payload: Some(payload), created, found: Some(found), ..Self::default() }
    }

    /// With metadata that are said in JSON, as the member `metaData` is.
    ///
    /// # Errors
    /// They are no object of texts, numbers and booleans.
    pub fn with_metadata(self, json: &'a str) -> Result<Self, ArrowheadError> {
        let expected = |error: serde_json::Error| {
            let told = format!("Metadata: {error}. Expected a JSON object of texts, numbers and booleans, such as {{\"room\":\"7\"}}.");
            ArrowheadError::bad_payload(told, PUBLISH_ORIGIN)
        };
        Ok(Self { meta_data: Some(serde_json::from_str(json).map_err(expected)?), ..self })
    }
}

impl Claims for PublishForm<'_> {
    fn claim(&self) -> Claim<'_> {
        let name = self.source.as_ref().and_then(|source| source.system_name);
        Claim { system: name.map(JsonText::text), ..Claim::default() }
    }
}

/// An event that may be published.
#[derive(Debug)]
pub struct Publication<'a> {
    event_type: JsonText<'a>,
    payload: JsonText<'a>,
    metadata: Option<MetadataText<'a>>,
    time_stamp: Option<JsonText<'a>>,
    facts: EventFacts,
}

/// Buffers a publication is checked with, kept by the caller so that nothing is allocated.
#[derive(Debug, Default)]
pub struct Scratch {
    key: String,
    /// The event type in its stored form: trimmed, upper-case.
    pub event_type: String,
}

/// Decides whether an event may be published (reference 6.2). On success `scratch.event_type` names the topic.
///
/// An unregistered source is refused with 400, where upstream fails with 500.
pub fn authorize<'a>(
    snapshot: &Snapshot,
    form: &Authorized<PublishForm<'a>>,
    now: UtcTime,
    scratch: &mut Scratch,
) -> Result<Authorized<Publication<'a>>, ArrowheadError> {
    let refused = |message: &str| ArrowheadError::bad_payload(message, PUBLISH_ORIGIN);
    let event_type = form.event_type.filter(|text| !text.is_blank()).ok_or_else(|| refused("Event type is null or blank."))?;
    fold_event_type(event_type, &mut scratch.event_type)?;
    let payload = form.payload.filter(|text| !text.is_blank()).ok_or_else(|| refused("Payload is null or blank."))?;
    let time = match form.created {
        Created::Stamped(created) => check_time_stamp(created, now)?,
        Created::Checked(created) => created,
        Created::Unsaid => parse_time_stamp(form.time_stamp, now)?,
    };
    let found = form.found.filter(|found| snapshot.system(*found).is_some());
    let source = found.map_or_else(|| registered_source(snapshot, form.source.as_ref(), &mut scratch.key), Ok)?;
    let time_stamp = form.time_stamp.filter(|text| !text.is_blank());
    Ok(Authorized::new(Publication { event_type, payload, metadata: form.meta_data, time_stamp, facts: EventFacts { source, time } }))
}

fn fold_event_type(text: JsonText<'_>, folded: &mut String) -> Result<(), ArrowheadError> {
    folded.clear();
    match text.plain() {
        Some(plain) if plain.is_ascii() => {
            folded.push_str(plain.trim());
            folded.make_ascii_uppercase();
        }
        _ => folded.push_str(&text.text().trim().to_uppercase()),
    }
    if folded.chars().count() > TEXT_LENGTH_MAX {
        return Err(ArrowheadError::bad_payload(format!("Event type is longer than {TEXT_LENGTH_MAX} characters."), PUBLISH_ORIGIN));
    }
    Ok(())
}

fn parse_time_stamp(text: Option<JsonText<'_>>, now: UtcTime) -> Result<UtcTime, ArrowheadError> {
    let refused = |message: String| ArrowheadError::bad_payload(message, PUBLISH_ORIGIN);
    let Some(text) = text.filter(|text| !text.is_blank()) else { return Ok(now) };
    check_time_stamp(UtcTime::parse(&text.text()).map_err(|error| refused(format!("Time stamp {error}")))?, now)
}

fn check_time_stamp(time: UtcTime, now: UtcTime) -> Result<UtcTime, ArrowheadError> {
    let refused = |message: String| ArrowheadError::bad_payload(message, PUBLISH_ORIGIN);
    if time < now.minus(TIME_STAMP_TOLERANCE) || time > now.plus(TIME_STAMP_TOLERANCE) {
        return Err(refused(format!("Time stamp {time} is more than {} seconds away from now, {now}.", TIME_STAMP_TOLERANCE.as_secs())));
    }
    Ok(time)
}

fn registered_source(snapshot: &Snapshot, source: Option<&Source<'_>>, key: &mut String) -> Result<SystemId, ArrowheadError> {
    let refused = |message: &str| ArrowheadError::bad_payload(message, PUBLISH_ORIGIN);
    fn given(text: Option<JsonText<'_>>) -> Option<Cow<'_, str>> {
        text.map(JsonText::text).filter(|text| !text.trim().is_empty())
    }
    let source = source.ok_or_else(|| refused("Source is null."))?;
    let name = given(source.system_name).ok_or_else(|| refused("Source: system name is null or blank."))?;
    let address = given(source.address).ok_or_else(|| refused("Source: address is null or blank."))?;
    let port = source.port.ok_or_else(|| refused("Source: port is null."))?;
    let port = u16::try_from(port).ok().filter(|port| *port > 0).ok_or_else(|| refused("Source: port must be between 1 and 65535."))?;
    SystemKey::write(key, &name, &address, port);
    let found = snapshot.system_by_key(key).map(|system| system.id);
    found.ok_or_else(|| {
        ArrowheadError::invalid_parameter(format!("Source system with name: {name}, address: {address}, port: {port} is not registered."))
    })
}

impl<'a> Publication<'a> {
    /// Reads an accepted event again, as [`Self::push_event_json`] wrote it.
    pub fn reread(event: &'a str, source: SystemId, time: UtcTime) -> Result<Self, serde_json::Error> {
        let form: PublishForm<'a> = json::parse_object(event)?;
        let missing = || de::Error::custom("an event without type or payload");
        Ok(Self {
            event_type: form.event_type.ok_or_else(missing)?,
            payload: form.payload.ok_or_else(missing)?,
            metadata: form.meta_data,
            time_stamp: form.time_stamp,
            facts: EventFacts { source, time },
        })
    }

    /// Who published, and when.
    pub fn facts(&self) -> EventFacts {
        self.facts
    }

    /// When the event was created, as far as anybody knows better than that it was before it came: a time stamp in JSON has whole seconds mostly, and only says about when.
    pub fn created(&self) -> Option<UtcTime> {
        self.time_stamp.is_none().then_some(self.facts.time)
    }

    /// The metadata as JSON, as published; `None`: there are none.
    pub fn metadata(&self) -> Option<&str> {
        self.metadata.map(|metadata| metadata.0)
    }

    /// The metadata's value of a key, for filters.
    pub fn metadata_value(&self, key: &str) -> Option<Cow<'_, str>> {
        self.metadata.and_then(|metadata| metadata.find(key))
    }

    /// Bytes of the event's texts beside the payload, as JSON.
    pub fn bytes_beside_payload(&self) -> usize {
        let metadata = self.metadata.map_or(0, |metadata| metadata.0.len());
        self.event_type.0.len() + metadata + self.time_stamp.map_or(0, |text| text.0.len())
    }

    /// The event type as published.
    pub fn event_type(&self) -> JsonText<'_> {
        self.event_type
    }

    /// The payload as published.
    pub fn payload(&self) -> JsonText<'_> {
        self.payload
    }

    /// Appends the Event JSON that subscribers get: type and time as published, a missing time stamp filled in.
    pub fn push_event_json(&self, out: &mut Vec<u8>) {
        use std::io::Write;
        out.extend_from_slice(b"{\"eventType\":");
        self.event_type.push_literal(out);
        out.extend_from_slice(b",\"metaData\":");
        out.extend_from_slice(self.metadata.map_or("null", |metadata| metadata.0).as_bytes());
        out.extend_from_slice(b",\"payload\":");
        self.payload.push_literal(out);
        out.extend_from_slice(b",\"timeStamp\":");
        match self.time_stamp {
            Some(text) => text.push_literal(out),
            None => write!(out, "\"{}\"", self.facts.time).expect("a vector takes everything"),
        }
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::{
        access::Access,
        address::Address,
        caller::Caller,
        name::{NamingRules, SystemName},
        record::Timestamps,
        snapshot::Change,
    };

    #[test]
    fn scalars_are_texts_and_the_rest_is_refused() {
        let form: PublishForm<'_> = json::parse_object(r#"{"eventType":"a","payload":42,"metaData":{"k":true,"n":null}}"#).unwrap();
        assert_eq!(form.payload.unwrap().text(), "42");
        assert_eq!(form.meta_data.unwrap().find("k").unwrap(), "true");
        assert_eq!(form.meta_data.unwrap().find("n"), None);
        for bad in [r#"{"payload":"\ud800"}"#, r#"{"payload":"\\\udc00"}"#, r#"{"metaData":{"\ud800x":1}}"#] {
            assert!(json::parse_object::<PublishForm<'_>>(bad).is_err(), "{bad}");
        }
        for good in [r#"{"payload":"\ud83d\ude00"}"#, r#"{"payload":"\\ud800"}"#, r#"{"payload":"\uFFfd"}"#] {
            assert!(json::parse_object::<PublishForm<'_>>(good).is_ok(), "{good}");
        }
        for bad in [r#"{"payload":{}}"#, r#"{"payload":[1]}"#, r#"{"metaData":{"k":{}}}"#, r#"{"metaData":[]}"#, r#"{"source":1}"#, "[]"] {
            assert!(json::parse_object::<PublishForm<'_>>(bad).is_err(), "{bad}");
        }
        assert!(json::parse_object::<PublishForm<'_>>(r#"{"payload":null,"metaData":null,"source":null}"#).is_ok());
    }

    #[test]
    fn an_event_in_frames_is_asked_what_one_in_json_is() {
        let now = UtcTime::from_unix_seconds(1_000);
        let sensor = System {
            id: SystemId(7),
            system_name: SystemName::parse("sensor").unwrap(),
            address: Address::parse("10.0.0.1", &NamingRules::default()).unwrap(),
            port: 9,
            authentication_info: None,
            metadata: None,
            timestamps: Timestamps { created_at: now, updated_at: now },
        };
        let (mut snapshot, mut scratch) = (Snapshot::default(), Scratch::default());
        let mut publish = |snapshot: &Snapshot, texts: [&str; 2], created| {
            let [mut event_type, mut payload] = [String::new(), String::new()];
            let [event_type, payload] = [JsonText::write(texts[0], &mut event_type), JsonText::write(texts[1], &mut payload)];
            let form =
                Access::Own.admit(&Caller::Anonymous).unwrap().permit(PublishForm::of(&sensor, event_type, payload, created)).unwrap();
            let published = authorize(snapshot, &form, now, &mut scratch)?;
            Ok::<_, ArrowheadError>((published.facts().source, published.facts().time, published.payload().text().into_owned()))
        };
        assert!(
            publish(&snapshot, ["Hot", "1"], Created::Unsaid).unwrap_err().error_message.contains("sensor, address: 10.0.0.1, port: 9")
        );
        snapshot.apply(Change::System(Arc::new(sensor.clone())));
        let payload = "a \"quoted\" \\ line\nand \u{1f600}";
        assert_eq!(publish(&snapshot, ["Hot", payload], Created::Unsaid), Ok((SystemId(7), now, payload.to_owned())));
        let earlier = UtcTime::from_unix_seconds(990);
        assert_eq!(publish(&snapshot, ["Hot", "1"], Created::Stamped(earlier)), Ok((SystemId(7), earlier, "1".to_owned())));
        let old = UtcTime::from_unix_seconds(1);
        assert_eq!(publish(&snapshot, ["Hot", "1"], Created::Checked(old)), Ok((SystemId(7), old, "1".to_owned())));
        for (texts, created) in [(["", "1"], Created::Unsaid), (["Hot", " "], Created::Unsaid), (["Hot", "1"], Created::Stamped(old))] {
            assert!(publish(&snapshot, texts, created).is_err(), "{texts:?}");
        }
    }

    proptest! {
        #[test]
        fn an_event_is_reread_as_it_was_written(event_type in ".+", payload in ".*", pairs in proptest::option::of(proptest::collection::btree_map(".*", ".*", 0..3))) {
            let form = serde_json::json!({"eventType": event_type, "payload": payload, "metaData": pairs, "timeStamp": "x"}).to_string();
            let first = Publication::reread(&form, SystemId(1), UtcTime::from_unix_seconds(1)).unwrap();
            let mut written = Vec::new();
            first.push_event_json(&mut written);
            let again = Publication::reread(std::str::from_utf8(&written).unwrap(), SystemId(1), UtcTime::from_unix_seconds(1)).unwrap();
            prop_assert_eq!((again.event_type().text().into_owned(), again.payload().text().into_owned()), (event_type, payload));
            for (key, value) in pairs.iter().flatten() {
                prop_assert_eq!(again.metadata_value(key), Some(Cow::Borrowed(value.as_str())));
            }
        }
    }
}
