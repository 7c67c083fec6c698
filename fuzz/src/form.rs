//! JSON from outside: every form of the interface, a publication, a filter of events.

use std::collections::BTreeMap;
use std::fmt::Debug;

use bodkin_arrowhead::{
    event_filter::{EventFilter, Severity},
    form::{
        CloudRequest, FlexibleRuleRequest, IdIdList, InterCloudCheckRequest, InterCloudRuleRequest, IntracloudCheckRequest,
        IntracloudRuleRequest, OrchestrationForm, PreferredProvider, PriorityRequest, ServiceQueryForm, ServiceRegistryRequest,
        StoreRequest, StoreSearchRequest, SubscriptionCheckRequest, SubscriptionRequest, SystemRequest, TokenGenerationRequest,
    },
    json,
    metadata::Metadata,
    publication::{Publication, PublishForm},
    record::SystemId,
    utc::UtcTime,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

/// Any bytes as the body of every operation.
pub fn json_form(bytes: &[u8]) {
    let Ok(body) = std::str::from_utf8(bytes) else { return };
    keeps::<SystemRequest>(body);
    keeps::<ServiceRegistryRequest>(body);
    keeps::<ServiceQueryForm>(body);
    keeps::<IntracloudRuleRequest>(body);
    keeps::<IdIdList>(body);
    keeps::<IntracloudCheckRequest>(body);
    keeps::<SubscriptionCheckRequest>(body);
    keeps::<CloudRequest>(body);
    keeps::<PreferredProvider>(body);
    keeps::<OrchestrationForm>(body);
    keeps::<SubscriptionRequest>(body);
    keeps::<InterCloudRuleRequest>(body);
    keeps::<InterCloudCheckRequest>(body);
    keeps::<StoreRequest>(body);
    keeps::<StoreSearchRequest>(body);
    keeps::<PriorityRequest>(body);
    keeps::<FlexibleRuleRequest>(body);
    keeps::<TokenGenerationRequest>(body);
}

/// What is read and written is read again as the same form.
fn keeps<T: DeserializeOwned + Serialize + PartialEq + Debug>(body: &str) {
    let Ok(form) = json::parse_object::<T>(body) else { return };
    let written = serde_json::to_string(&form).expect("a form is JSON");
    let again = json::parse_object::<T>(&written).unwrap_or_else(|error| panic!("{written} was written and not read: {error}"));
    assert_eq!(form, again, "{written}");
}

fn at() -> UtcTime {
    UtcTime::from_unix_seconds(1_900_000_000)
}

/// The event that `body` would be, as the Event Handler reads it.
fn event_of(body: &str) -> Option<Publication<'_>> {
    // The rules of a publish only refuse; whatever they accept has been read by these two.
    json::parse_object::<PublishForm<'_>>(body).ok()?;
    Publication::reread(body, SystemId(1), at()).ok()
}

/// Any bytes as the body of a publish.
pub fn publication(bytes: &[u8]) {
    let Ok(body) = std::str::from_utf8(bytes) else { return };
    let Some(event) = event_of(body) else { return };
    let mut written = Vec::new();
    event.push_event_json(&mut written);
    let written = std::str::from_utf8(&written).expect("an event is UTF-8");
    // Taken as it is written: a number of any size is JSON.
    let value: BTreeMap<String, &RawValue> = serde_json::from_str(written).unwrap_or_else(|error| panic!("{written}: {error}"));
    let members: Vec<&String> = value.keys().collect();
    assert_eq!(members, ["eventType", "metaData", "payload", "timeStamp"], "{written}");
    let again = Publication::reread(written, SystemId(1), at()).unwrap_or_else(|error| panic!("{written}: {error}"));
    assert_eq!(event.event_type().text(), again.event_type().text());
    assert_eq!(event.payload().text(), again.payload().text());
    let payload: String = serde_json::from_str(value["payload"].get()).expect("a payload is a text");
    assert_eq!(payload, again.payload().text());
    let metadata: Option<BTreeMap<String, &RawValue>> =
        serde_json::from_str(value["metaData"].get()).expect("metadata is an object or null");
    for key in metadata.iter().flatten().map(|(key, _)| key) {
        assert_eq!(event.metadata_value(key), again.metadata_value(key), "{key}");
    }
}

/// Three lines: the place of a field, its condition, and the body of a publish that it is held against.
pub fn event_filter(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.splitn(3, '\n');
    let (place, condition, body) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    // A severity that is none has to be refused, not taken for another.
    if let Some(severity) = Severity::parse(condition) {
        assert_eq!(Severity::parse(severity.as_str()), Some(severity));
    }
    let conditions = |condition: &str| BTreeMap::from([(place.to_owned(), condition.to_owned())]);
    let Ok(filter) = EventFilter::new(Metadata::default(), None, &conditions(condition)) else { return };
    let Some(event) = event_of(body) else { return };
    let mut buffer = String::new();
    let passes = filter.passes(&event, &mut buffer);
    assert_eq!(passes, filter.passes(&event, &mut buffer), "the buffer matters");
    // `=x` and `!=x` leave no third possibility open but that the field is not there, when neither passes.
    if let Some(wanted) = condition.strip_prefix('=')
        && let Ok(opposite) = EventFilter::new(Metadata::default(), None, &conditions(&format!("!={wanted}")))
    {
        assert!(!(passes && opposite.passes(&event, &mut buffer)), "{condition} and its opposite both pass");
    }
}
