//! What an event stream's listener wants to hear, and in which form: asked for every live event and every replayed one.

use std::collections::BTreeMap;

use bodkin_arrowhead::{
    error::ArrowheadError,
    event_filter::{EventFilter, FilterError, SEVERITY_KEY, Severity},
    name::EventType,
    publication::Publication,
    record::SystemId,
    snapshot::Snapshot,
    utc::UtcTime,
};
use bodkin_broker::{
    EventId,
    timing::Wish,
    topic::form::{Field, read_wish},
};

use crate::{
    answer::Refusal,
    control::missing,
    document,
    request::Request,
    resume_token::{CloudTag, ResumeToken},
};

/// Where CloudEvents are published, and heard.
pub const CLOUD_EVENTS: &str = "/api/v1/events";

/// What a frame of a stream looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamForm {
    /// The improved Event Handler's: `event:` is the event type, `data:` the payload.
    Payload,
    /// `data:` is the event as JSON.
    Event,
    /// `data:` is the event as a CloudEvent in JSON.
    CloudEvent,
}

/// Where a stream begins that does not begin with the present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Behind this event.
    Event(EventId),
    /// With the first event of this time or later, in nanoseconds since 1970.
    Time(u64),
    /// With the oldest event that is kept: what the listener named is no event of ours.
    Oldest,
}

/// A listener's wishes.
#[derive(Debug)]
pub struct Listening {
    /// Which events.
    pub event_type: EventType,
    /// What a frame looks like.
    pub form: StreamForm,
    /// Who listens; `None` hears every publisher (insecure mode only).
    pub consumer: Option<SystemId>,
    /// The resume token that the listener brought, of whichever node.
    pub resume: Option<ResumeToken>,
    /// Whether events were lost that are in no log here: the replay reports it.
    pub has_lost: bool,
    filter: EventFilter,
}

impl Listening {
    /// Reads form, event type and filter of a request; `header` is its `eventtype`. Who listens is looked up by the caller.
    pub fn parse(request: &Request, header: Option<&str>, consumer: Option<SystemId>) -> Result<Self, Refusal> {
        let refused = |message: String| ArrowheadError::bad_payload(message, &request.path);
        document::query::check_events(request).map_err(|fault| refused(fault.to_string()))?;
        let named = |parameter: &str| {
            let missing = || {
                refused(format!(
                    "The parameter {parameter} names the event type to hear and is missing: {}?{parameter}=NAME.",
                    request.path
                ))
            };
            request.parameter(parameter).ok_or_else(missing)
        };
        let (form, name) = match request.path.as_str() {
            "/eventhandler/events" => (StreamForm::Event, named("event_type")?),
            CLOUD_EVENTS => (StreamForm::CloudEvent, named("type")?),
            // Upstream's own stream answers as its framework does.
            _ if request.parameter("eventtype").zip(header).is_some_and(|(parameter, header)| !parameter.eq_ignore_ascii_case(header)) => {
                return Err(refused("The header eventtype and the parameter eventtype name two event types.".to_owned()).into());
            }
            _ => (StreamForm::Payload, header.or_else(|| request.parameter("eventtype")).ok_or_else(|| missing("eventtype"))?),
        };
        let event_type = EventType::parse(name);
        let event_type = event_type.map_err(|error| refused(format!("Event type {error}")))?;
        let filter = parse_filter(request).map_err(|error| refused(format!("Filter: {error}.")))?;
        Ok(Self { event_type, form, consumer, resume: None, has_lost: false, filter })
    }

    /// Whether the listener is to get an event of its event type. `text` is a buffer of the caller's.
    pub fn hears(&self, snapshot: &Snapshot, event: &Publication<'_>, text: &mut String) -> bool {
        self.consumer.is_none_or(|consumer| snapshot.may_hear(consumer, event.facts().source)) && self.filter.passes(event, text)
    }
}

/// The parameters `severity`, `metadata.KEY` and `payload.PLACE`.
fn parse_filter(request: &Request) -> Result<EventFilter, FilterError> {
    let named = |prefix: &str| {
        let pairs = request.query.iter().filter_map(|(name, value)| Some((name.strip_prefix(prefix)?.to_owned(), value.clone())));
        pairs.collect::<BTreeMap<String, String>>()
    };
    let severity = request.parameter(SEVERITY_KEY);
    let severity = severity.map(|text| Severity::parse(text).ok_or_else(|| FilterError::Severity(text.to_owned()))).transpose()?;
    EventFilter::new(named("metadata.").into(), severity, &named("payload."))
}

/// Reads what a stream asks of its topic, in the keys of a file of topics: `deadline_ms` (or `_us`, `_s`) and `loss_tolerance`. Nobody can wait for a stream,
/// for it does not acknowledge.
pub fn parse_wish(request: &Request) -> Result<Wish, Refusal> {
    let refused = |message: String| Refusal::from(ArrowheadError::bad_payload(message, &request.path));
    if request.parameter("required").is_some_and(|text| text.trim() != "false") {
        let told = "An event stream does not acknowledge, so that events cannot wait for it (required): subscribe by a DEALER (ZMTP).";
        return Err(refused(told.to_owned()));
    }
    let is_asked = |name: &str| name == "loss_tolerance" || name == "deadline" || name.starts_with("deadline_");
    let asked = request.query.iter().filter(|(name, _)| is_asked(name));
    let wish = read_wish(asked.map(|(name, value)| (name.as_str(), Field::Number(value.trim()))));
    wish.map_err(|errors| refused(format!("{}.", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))))
}

/// The id that a listener names, and the place behind it.
fn last_event_id<'r>(request: &'r Request, header: Option<&'r str>) -> Option<(&'r str, Option<&'r str>)> {
    let named = header.or_else(|| request.parameter("last_event_id")).map(str::trim).filter(|id| !id.is_empty())?;
    Some(named.split_once('@').map_or((named, None), |(id, place)| (id, Some(place))))
}

/// Reads the resume token behind the id that a listener names.
///
/// # Errors
/// Returns a refusal if the token belongs to another cloud, whose ids and positions mean nothing here.
pub fn parse_token(request: &Request, header: Option<&str>, cloud: CloudTag) -> Result<Option<ResumeToken>, Refusal> {
    let token = last_event_id(request, header).and_then(|(_, token)| token?.parse::<ResumeToken>().ok());
    match token {
        Some(token) if token.cloud() != cloud => {
            let told = format!(
                "The last event id belongs to cloud {}, and this is cloud {cloud}: connect to the cloud that sent the id, or without an id.",
                token.cloud()
            );
            Err(ArrowheadError::bad_payload(told, &request.path).into())
        }
        token => Ok(token),
    }
}

/// Reads where a stream begins: `header` is its `Last-Event-ID`, which a parameter of that name may stand for. An id that is
/// none of ours is no error, for a listener that is refused does not come back: it gets everything.
pub fn parse_since(request: &Request, header: Option<&str>) -> Result<Option<Since>, Refusal> {
    if let Some((id, _)) = last_event_id(request, header) {
        return Ok(Some(id.parse().map_or(Since::Oldest, Since::Event)));
    }
    let Some(text) = request.parameter("since").map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    if text == "0" {
        return Ok(Some(Since::Time(0)));
    }
    let refused = |error| Refusal::from(ArrowheadError::bad_payload(format!("Since {error}"), &request.path));
    Ok(Some(Since::Time(UtcTime::parse(text).map_err(refused)?.unix_nanos())))
}
