//! Event types that are shared with other clouds: what is said of an event to another cloud's gatekeeper, and what that cloud counts.
//!
//! A share is a subscription by push whose subscriber stands for a cloud: it goes on from the event log behind a relay that was away, and has dead letters, as any other.
//! Every event has the identity that it has in its own cloud, so that the other one takes it once and sees what is missing.

mod account;

use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Map, Value, value::RawValue};

pub use self::account::{ACCOUNTS_MAX, Account, Accounts, Taken};
use crate::{
    error::ArrowheadError,
    form::CloudRequest,
    gatekeeper::check_asker,
    json,
    name::{CloudName, EventType},
    record::Cloud,
};

/// Shortest deadline of an event between clouds, in milliseconds (Wang 2019: the class of what goes to a cloud).
pub const DEADLINE_MS_MIN: u32 = 100;
/// Where nothing is said: a second.
pub const DEADLINE_MS_DEFAULT: u32 = 1000;
/// Longest: a day.
pub const DEADLINE_MS_MAX: u32 = 24 * 3600 * 1000;
/// Event types of one cloud that may be accepted here.
pub const ACCEPTED_EVENTS_MAX: usize = 1024;
/// What the notify URI of a share begins with; nobody can subscribe with one, for those begin with a slash.
const SCHEME: &str = "relay:";
const DEADLINE_KEY: &str = "?deadline_ms=";
/// Pairs that this cloud adds to the metadata of what it has heard.
const CLOUD_KEY: &str = "cloud";
const PUBLISHER_KEY: &str = "publisher";
const IDENTITY_KEY: &str = "identity";

/// To which cloud the events of a subscription go, and how soon they should be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Who runs the cloud.
    pub operator: CloudName,
    /// Its name.
    pub name: CloudName,
    /// From being accepted here to being taken there, in milliseconds: [`DEADLINE_MS_MIN`] to [`DEADLINE_MS_MAX`].
    pub deadline_ms: u32,
}

impl Share {
    /// With this cloud. A deadline that is out of its range is refused.
    pub fn new(cloud: &Cloud, deadline_ms: i64) -> Result<Self, ArrowheadError> {
        let in_range = u32::try_from(deadline_ms).ok().filter(|ms| (DEADLINE_MS_MIN..=DEADLINE_MS_MAX).contains(ms));
        let deadline_ms = in_range.ok_or_else(|| {
            ArrowheadError::invalid_parameter(format!(
                "deadlineMs is {deadline_ms}: between clouds it must be {DEADLINE_MS_MIN} to {DEADLINE_MS_MAX}."
            ))
        })?;
        Ok(Self { operator: cloud.operator.clone(), name: cloud.name.clone(), deadline_ms })
    }

    /// The notify URI of its subscription.
    pub fn notify_uri(&self) -> String {
        format!("{SCHEME}{}.{}{DEADLINE_KEY}{}", self.name, self.operator, self.deadline_ms)
    }

    /// The share that a notify URI says; `None`: it is a path at a subscriber.
    pub fn of_notify_uri(uri: &str) -> Option<Self> {
        let (cloud, deadline_ms) = uri.strip_prefix(SCHEME)?.split_once(DEADLINE_KEY)?;
        let (name, operator) = cloud.split_once('.')?;
        Some(Self {
            operator: CloudName::parse(operator).ok()?,
            name: CloudName::parse(name).ok()?,
            deadline_ms: deadline_ms.parse().ok()?,
        })
    }

    /// Name of the system that stands for the cloud among the subscribers.
    pub fn system_name(&self) -> String {
        format!("{}-{}", self.name, self.operator)
    }
}

/// What an event is known by in the cloud that has published it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedIdentity {
    /// Its publisher.
    pub publisher: u64,
    /// Which run of it.
    pub incarnation: u64,
    /// Its number among those of its publisher, run and event type.
    pub sequence: u64,
}

impl SharedIdentity {
    /// The numbers of a text as [`Display`](std::fmt::Display) writes it.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('-').map(|number| number.parse().ok());
        let identity = Self { publisher: numbers.next()??, incarnation: numbers.next()??, sequence: numbers.next()?? };
        numbers.next().is_none().then_some(identity)
    }
}

/// `PUBLISHER-INCARNATION-SEQUENCE`.
impl std::fmt::Display for SharedIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}-{}", self.publisher, self.incarnation, self.sequence)
    }
}

/// Of which cloud, by its name and operator, and with which identity an event was heard that was published here as the own Gatekeeper's; `None`: its metadata, which this cloud has
/// written, does not say so.
pub fn recalled(event: &str) -> Option<(String, SharedIdentity)> {
    let metadata = serde_json::from_str::<Members>(event).ok()?.meta_data?;
    let text = |key: &str| metadata.get(key)?.as_str();
    Some((text(CLOUD_KEY)?.to_owned(), SharedIdentity::parse(text(IDENTITY_KEY)?)?))
}

/// What another cloud is told of an event.
#[derive(Clone, Debug)]
pub struct SharedEvent {
    /// Of the event.
    pub identity: SharedIdentity,
    /// Its publisher's name there.
    pub publisher: String,
    /// The event's JSON, as subscribers get it.
    pub event: String,
    /// The event type as it is stored.
    pub event_type: EventType,
    metadata: Map<String, Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Said<'e> {
    requester_cloud: &'e CloudRequest,
    identity: SharedIdentity,
    publisher: &'e str,
    event: &'e RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Heard {
    requester_cloud: Option<CloudRequest>,
    identity: Option<SharedIdentity>,
    publisher: Option<String>,
    event: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Members {
    event_type: Option<String>,
    #[serde(default)]
    meta_data: Option<Map<String, Value>>,
    payload: Option<IgnoredAny>,
}

/// The question's JSON: will you take this event? `event` is its JSON as subscribers get it.
///
/// # Errors
/// It is no JSON.
pub fn question(asker: &CloudRequest, identity: SharedIdentity, publisher: &str, event: &str) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Said { requester_cloud: asker, identity, publisher, event: serde_json::from_str(event)? })
}

impl SharedEvent {
    /// Reads what `asker` says, whose key has signed it.
    pub fn parse(text: &str, asker: &Cloud) -> Result<Self, ArrowheadError> {
        let refused = |what: &str| ArrowheadError::invalid_parameter(format!("The shared event: {what}."));
        let heard: Heard = json::parse_object(text).map_err(|error| refused(&error.to_string()))?;
        check_asker(heard.requester_cloud.as_ref(), asker)?;
        let event = heard.event.ok_or_else(|| refused("event is null"))?;
        let members: Members = json::parse_object(event.get()).map_err(|error| refused(&error.to_string()))?;
        let event_type = EventType::parse(members.event_type.as_deref().unwrap_or_default());
        if members.payload.is_none() {
            return Err(refused("payload is null"));
        }
        Ok(Self {
            identity: heard.identity.ok_or_else(|| refused("identity is null"))?,
            publisher: heard.publisher.unwrap_or_default(),
            event_type: event_type.map_err(|error| refused(&format!("event type {error}")))?,
            metadata: members.meta_data.unwrap_or_default(),
            event: event.get().to_owned(),
        })
    }

    /// Whether this cloud's operator accepts events of this type from this cloud.
    ///
    /// # Errors
    /// He does not, or not any more: a refusal (401) that says what would change that.
    pub fn check_accepted(&self, cloud: &Cloud) -> Result<(), ArrowheadError> {
        if cloud.accepted_events.contains(&self.event_type) {
            return Ok(());
        }
        let event_type = self.event_type.as_str();
        Err(ArrowheadError::auth(format!(
            "Events of type {event_type} are not accepted of cloud {0}.{1}: the operator of the cloud that should hear them has to say so (bodkin cloud accept-event {event_type} {0}.{1}).",
            cloud.name, cloud.operator
        )))
    }

    /// The metadata that the event has here: its own, with the cloud that it has come from, its publisher and its identity there.
    pub fn metadata_from(&self, cloud: &Cloud) -> String {
        let mut metadata = self.metadata.clone();
        metadata.insert(CLOUD_KEY.to_owned(), format!("{}.{}", cloud.name, cloud.operator).into());
        metadata.insert(PUBLISHER_KEY.to_owned(), self.publisher.clone().into());
        metadata.insert(IDENTITY_KEY.to_owned(), self.identity.to_string().into());
        Value::Object(metadata).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cloud() -> Cloud {
        Cloud::neighbor(2, "test", "two")
    }

    #[test]
    fn a_share_is_read_from_its_notify_uri_and_from_no_path() {
        let share = Share::new(&cloud(), 250).unwrap();
        assert_eq!((share.notify_uri().as_str(), share.system_name().as_str()), ("relay:two.test?deadline_ms=250", "two-test"));
        assert_eq!(Share::of_notify_uri(&share.notify_uri()), Some(share));
        for path in
            ["/notify", "/relay:two.test?deadline_ms=250", "relay:two?deadline_ms=250", "relay:two.test", "relay:two.test?deadline_ms=x"]
        {
            assert_eq!(Share::of_notify_uri(path), None, "{path}");
        }
    }

    #[test]
    fn deadlines_below_those_of_the_cloud_class_are_refused() {
        for (deadline_ms, is_taken) in [(99, false), (100, true), (86_400_000, true), (86_400_001, false), (-1, false)] {
            assert_eq!(Share::new(&cloud(), deadline_ms).is_ok(), is_taken, "{deadline_ms}");
        }
        assert!(Share::new(&cloud(), 5).unwrap_err().error_message.contains("deadlineMs is 5: between clouds it must be 100 to"));
    }

    #[test]
    fn an_event_comes_as_it_was_with_where_it_is_from() {
        let asker = CloudRequest { operator: Some("Test".into()), name: Some("two".into()), ..CloudRequest::default() };
        let identity = SharedIdentity { publisher: 3, incarnation: u64::MAX, sequence: 7 };
        let event =
            r#"{"eventType":"heat","metaData":{"room":1,"cloud":"a lie"},"payload":"21 \u00b0","timeStamp":"2026-01-01T00:00:00Z"}"#;
        let said = question(&asker, identity, "sensor", event).unwrap();
        let heard = SharedEvent::parse(&said, &cloud()).unwrap();
        assert_eq!((heard.identity, heard.publisher.as_str(), heard.event.as_str()), (identity, "sensor", event));
        assert_eq!(heard.event_type, EventType::parse("HEAT").unwrap());
        let metadata: Value = serde_json::from_str(&heard.metadata_from(&cloud())).unwrap();
        let added = serde_json::json!({"room": 1, "cloud": "two.test", "publisher": "sensor", "identity": "3-18446744073709551615-7"});
        assert_eq!(metadata, added);
        // By it the event is known again in the event log.
        let logged = serde_json::json!({"eventType": "HEAT", "metaData": metadata, "payload": "21"}).to_string();
        assert_eq!(recalled(&logged), Some(("two.test".to_owned(), identity)));
        for identity in ["", "3", "3-4", "3-4-5-6", "3-4-x", "-3-4-5", "3-4-18446744073709551616"] {
            let other = serde_json::json!({"metaData": {"cloud": "two.test", "identity": identity}, "payload": 1}).to_string();
            assert_eq!(recalled(&other), None, "{identity}");
        }
        assert_eq!([recalled("{}"), recalled("[]"), recalled(r#"{"metaData":{"identity":"1-2-3"}}"#)], [None, None, None]);
    }

    #[test]
    fn only_what_the_operator_accepts_of_this_cloud_is_taken() {
        let identity = SharedIdentity { publisher: 3, incarnation: 1, sequence: 7 };
        let asker = CloudRequest { operator: Some("test".into()), name: Some("two".into()), ..CloudRequest::default() };
        let said = question(&asker, identity, "sensor", r#"{"eventType":"Heat","payload":"1"}"#).unwrap();
        let heard = SharedEvent::parse(&said, &cloud()).unwrap();
        let refused = heard.check_accepted(&cloud()).unwrap_err();
        assert_eq!(refused.error_code, 401);
        assert!(refused.error_message.contains("bodkin cloud accept-event HEAT two.test"), "{}", refused.error_message);
        let of = |event_type: &str| Cloud { accepted_events: [EventType::parse(event_type).unwrap()].into(), ..cloud() };
        assert!(heard.check_accepted(&of("cold")).is_err());
        assert!(heard.check_accepted(&of("heat")).is_ok());
    }

    #[test]
    fn what_is_no_event_is_told() {
        let refused = |text: &str| SharedEvent::parse(text, &cloud()).unwrap_err().error_message;
        let of_two = |rest: &str| format!(r#"{{"requesterCloud":{{"operator":"test","name":"two"}},{rest}}}"#);
        assert!(refused(r#"{"requesterCloud":{"operator":"test","name":"three"}}"#).contains("requesterCloud is another one"));
        assert!(refused(&of_two(r#""identity":{"publisher":1,"incarnation":1,"sequence":1}"#)).contains("event is null"));
        assert!(refused(&of_two(r#""event":{"eventType":"a","payload":"b"}"#)).contains("identity is null"));
        assert!(
            refused(&of_two(r#""event":{"payload":"b"},"identity":{"publisher":1,"incarnation":1,"sequence":1}"#)).contains("event type")
        );
        assert!(
            refused(&of_two(r#""event":{"eventType":"a"},"identity":{"publisher":1,"incarnation":1,"sequence":1}"#))
                .contains("payload is null")
        );
        assert!(refused("[]").starts_with("The shared event: "));
    }
}
