//! Event Handler: subscriptions, and which of them hear an event (reference section 6).

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Serialize;

use crate::{
    authorization::permitted_publishers,
    caller::Authorized,
    error::ArrowheadError,
    event_filter::{EventFilter, FilterError, Severity},
    form::{SubscriptionRequest, SystemRequest},
    metadata::Metadata,
    name::{EventType, TEXT_LENGTH_MAX},
    publication::{
        Publication,
        cloud_event::{self, ContentMode},
    },
    record::{EventTypeRow, Subscription, SubscriptionBounds, SubscriptionId, System, SystemId, Timestamps},
    shared_event::Share,
    snapshot::Snapshot,
    system::{SystemKey, SystemReference},
    utc::UtcTime,
};

/// Path of the operation, as errors name it.
pub const SUBSCRIBE_ORIGIN: &str = "/eventhandler/subscribe";

/// How far a time in a request may lie from now (upstream's `time_stamp_tolerance_seconds`).
pub const TIME_STAMP_TOLERANCE: Duration = Duration::from_secs(120);

/// A subscription to be made; it replaces the subscriber's former one to the same event type.
#[derive(Clone, Debug, PartialEq)]
pub struct SubscriptionPut {
    /// Which events.
    pub event_type: EventType,
    /// Who receives them.
    pub subscriber: SystemKey,
    /// Path at the subscriber, starting with `/`.
    pub notify_uri: Arc<str>,
    /// Pairs given as a filter.
    pub filter: Option<Metadata>,
    /// Whether the filter is used.
    pub match_metadata: bool,
    /// Only events of at least this severity.
    pub min_severity: Option<Severity>,
    /// Conditions on fields of a JSON payload, by their place.
    pub payload_filter: Option<Metadata>,
    /// All three as they are matched.
    pub matched: EventFilter,
    /// What is asked of a real-time topic.
    pub bounds: SubscriptionBounds,
    /// No events earlier than this; whole seconds.
    pub start_date: Option<UtcTime>,
    /// No events later than this; whole seconds.
    pub end_date: Option<UtcTime>,
    /// Only these publishers.
    pub sources: Option<Vec<SystemKey>>,
}

impl SubscriptionPut {
    /// Checks a form (reference 6.1); that the systems are registered is the database's part.
    pub fn parse(form: Authorized<SubscriptionRequest>, now: UtcTime) -> Result<Self, ArrowheadError> {
        let form = form.into_inner();
        let refused = |message: &str| ArrowheadError::bad_payload(message, SUBSCRIBE_ORIGIN);
        let subscriber = SystemReference::parse(form.subscriber_system.as_ref(), "Subscriber system", SUBSCRIBE_ORIGIN)?;
        if subscriber.port == 0 {
            return Err(ArrowheadError::invalid_parameter("Subscriber system: port must be between 1 and 65535."));
        }
        let event_type = EventType::parse(form.event_type.as_deref().unwrap_or_default());
        let event_type = event_type.map_err(|error| refused(&format!("Event type {error}")))?;
        let notify_uri = parse_notify_uri(form.notify_uri.as_deref().unwrap_or_default())?;
        let match_metadata = form.match_meta_data.unwrap_or(false);
        if match_metadata && form.filter_meta_data.as_ref().is_none_or(|filter| filter.is_empty()) {
            return Err(refused("matchMetaData is true, but filterMetaData is null or empty."));
        }
        let (start_date, end_date) = (parse_date(form.start_date, "Start date", now)?, parse_date(form.end_date, "End date", now)?);
        if let (Some(start), Some(end)) = (start_date, end_date)
            && start >= end
        {
            return Err(ArrowheadError::invalid_parameter("Start date must be earlier than end date."));
        }
        let sources = form.sources.filter(|sources| !sources.is_empty()).map(parse_sources).transpose()?;
        let filter = form.filter_meta_data.map(|pairs| Metadata::parse_filter(pairs, SUBSCRIBE_ORIGIN)).transpose()?;
        if let Some(word) = filter.as_ref().and_then(wish).filter(|word| ContentMode::parse(word).is_none()) {
            let [structured, binary] = ContentMode::ALL.map(ContentMode::as_str);
            let told = format!(
                "filterMetaData: {} is {word:?}; {structured} or {binary} is expected, the mode in which CloudEvents are posted.",
                cloud_event::WISH
            );
            return Err(refused(&told));
        }
        let min_severity = form.min_severity.map(|text| Severity::parse(&text).ok_or(FilterError::Severity(text))).transpose();
        let min_severity = min_severity.map_err(|error| refused(&format!("minSeverity: {error}.")))?;
        let payload_filter = form.payload_filter.map(|pairs| Metadata::parse_filter(pairs, SUBSCRIBE_ORIGIN)).transpose()?;
        let matched = Subscription::matched(filter.as_ref(), match_metadata, min_severity, payload_filter.as_ref());
        let matched = matched.map_err(|error| refused(&format!("payloadFilter: {error}.")))?;
        let bounds = parse_bounds(form.deadline_us, form.loss_tolerance, form.required)?;
        Ok(Self {
            event_type,
            subscriber: subscriber.key,
            notify_uri,
            filter,
            match_metadata,
            min_severity,
            payload_filter,
            matched,
            bounds,
            start_date,
            end_date,
            sources,
        })
    }
}

impl SubscriptionPut {
    /// All events of a type for another cloud; `subscriber` is the system that stands for it.
    pub fn shared(event_type: EventType, subscriber: SystemKey, share: &Share) -> Self {
        let matched = Subscription::matched(None, false, None, None).expect("no filter is a filter");
        Self {
            event_type,
            subscriber,
            notify_uri: share.notify_uri().into(),
            filter: None,
            match_metadata: false,
            min_severity: None,
            payload_filter: None,
            matched,
            bounds: SubscriptionBounds::default(),
            start_date: None,
            end_date: None,
            sources: None,
        }
    }
}

/// The mode of CloudEvents that is asked for among the pairs of a filter, as it was written. They are where upstream's form, record and clients have room for it.
fn wish(filter: &Metadata) -> Option<&str> {
    filter.pairs().get(cloud_event::WISH).map(String::as_str)
}

fn parse_sources(forms: Vec<Option<SystemRequest>>) -> Result<Vec<SystemKey>, ArrowheadError> {
    forms.iter().flatten().map(|form| SystemReference::parse(Some(form), "Source", SUBSCRIBE_ORIGIN).map(|source| source.key)).collect()
}

/// A path at the subscriber: no other host can be named, and nothing that would end the request line early. What is none is refused with what is wrong.
pub fn parse_notify_uri(text: &str) -> Result<Arc<str>, ArrowheadError> {
    let refused = |message: &str| ArrowheadError::bad_payload(message, SUBSCRIBE_ORIGIN);
    let path = text.trim();
    if path.is_empty() {
        return Err(refused("Notify URI is null or blank."));
    }
    if path.contains("://") || path.starts_with("//") {
        return Err(refused("Notify URI must be a path at the subscriber, for example /notify, not an address."));
    }
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(&byte);
    if !path.bytes().all(is_path) {
        return Err(refused("Notify URI has a character that a path cannot have (RFC 3986); write it percent-encoded."));
    }
    if path.chars().count() > TEXT_LENGTH_MAX {
        return Err(ArrowheadError::database());
    }
    Ok(if path.starts_with('/') { path.into() } else { format!("/{path}").into() })
}

/// What is asked of a real-time topic; whether it can be is the admission test's to say.
fn parse_bounds(
    deadline_us: Option<i64>,
    loss_tolerance: Option<i64>,
    required: Option<bool>,
) -> Result<SubscriptionBounds, ArrowheadError> {
    let refused = |message: String| ArrowheadError::bad_payload(message, SUBSCRIBE_ORIGIN);
    if required == Some(true) {
        let told = "Events cannot wait for a pushed subscription (required): what it has not taken it gets from the event log. \
            Who is to be waited for subscribes by a DEALER (ZMTP).";
        return Err(refused(told.to_owned()));
    }
    let is_time = |us: i64| (1..=SubscriptionBounds::DEADLINE_US_MAX).contains(&us);
    if let Some(us) = deadline_us.filter(|us| !is_time(*us)) {
        return Err(refused(format!("deadlineUs is {us}: it must be 1 to {}, which are 366 days.", SubscriptionBounds::DEADLINE_US_MAX)));
    }
    let tolerance = |losses: i64| u32::try_from(losses).map_err(|_| refused(format!("lossTolerance is {losses}: it must be 0 or more.")));
    Ok(SubscriptionBounds { deadline_us, loss_tolerance: loss_tolerance.map(tolerance).transpose()? })
}

fn parse_date(text: Option<String>, what: &str, now: UtcTime) -> Result<Option<UtcTime>, ArrowheadError> {
    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    let date = UtcTime::parse(&text).map_err(|error| ArrowheadError::invalid_parameter(format!("{what} {error}")))?;
    if date < now.minus(TIME_STAMP_TOLERANCE) {
        return Err(ArrowheadError::invalid_parameter(format!("{what} is in the past.")));
    }
    Ok(Some(date.whole_seconds()))
}

/// Whether an event passes a subscription's own limits: publisher, dates and filter. `text` is a buffer of the caller's.
///
/// Authorization is asked of the snapshot, so a changed rule counts for the next event.
pub fn hears(snapshot: &Snapshot, subscription: &Subscription, event: &Publication<'_>, text: &mut String) -> bool {
    let facts = event.facts();
    let named = subscription.sources.as_ref().is_none_or(|sources| sources.contains(&facts.source));
    let started = subscription.start_date.is_none_or(|start| facts.time >= start);
    let ended = subscription.end_date.is_some_and(|end| facts.time > end.plus(TIME_STAMP_TOLERANCE));
    named && started && !ended && subscription.matched.passes(event, text) && subscription.may_hear(snapshot, facts.source)
}

/// What the limits of a subscription look at.
#[derive(Clone, Copy, Debug)]
pub struct EventFacts {
    /// Who published.
    pub source: SystemId,
    /// The event's time stamp.
    pub time: UtcTime,
}

/// A subscription with the rows it refers to. Serialised it is `SubscriptionResponse`, nulls kept.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionView {
    id: SubscriptionId,
    event_type: Arc<EventTypeRow>,
    subscriber_system: Arc<System>,
    filter_meta_data: Option<Metadata>,
    notify_uri: Arc<str>,
    match_meta_data: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_severity: Option<Severity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_filter: Option<Metadata>,
    #[serde(flatten)]
    bounds: SubscriptionBounds,
    start_date: Option<UtcTime>,
    end_date: Option<UtcTime>,
    sources: Vec<Arc<System>>,
    #[serde(flatten)]
    timestamps: Timestamps,
}

impl SubscriptionView {
    /// The subscription's view in the snapshot it is of. Without named sources these are the publishers authorised now.
    pub fn new(snapshot: &Snapshot, subscription: &Subscription) -> Self {
        let sources = match &subscription.sources {
            Some(ids) => ids.iter().filter_map(|id| snapshot.system(*id)).cloned().collect(),
            None => permitted_publishers(snapshot, subscription.subscriber),
        };
        Self {
            id: subscription.id,
            event_type: snapshot.event_type(subscription.event_type).expect("a subscription's event type is there").clone(),
            subscriber_system: snapshot.system(subscription.subscriber).expect("a subscription's subscriber is there").clone(),
            filter_meta_data: subscription.filter.clone(),
            notify_uri: subscription.notify_uri.clone(),
            match_meta_data: subscription.match_metadata,
            min_severity: subscription.min_severity,
            payload_filter: subscription.payload_filter.clone(),
            bounds: subscription.bounds,
            start_date: subscription.start_date,
            end_date: subscription.end_date,
            sources,
            timestamps: subscription.timestamps,
        }
    }
}

impl Subscription {
    /// Whether its subscriber, or the cloud that its events go to, may hear what `source` publishes.
    pub fn may_hear(&self, snapshot: &Snapshot, source: SystemId) -> bool {
        match &self.share {
            Some(share) => snapshot.may_be_shared(share, source),
            None => snapshot.may_hear(self.subscriber, source),
        }
    }

    /// How events are posted as CloudEvents; `None`: as Arrowhead has them.
    pub fn content_mode(&self) -> Option<ContentMode> {
        self.filter.as_ref().and_then(wish).and_then(ContentMode::parse).filter(|_| self.share.is_none())
    }

    /// Whether `later` is to the same event type for the same subscriber: what was not delivered to this one is for that one.
    pub fn is_continued_by(&self, later: &Self) -> bool {
        (self.event_type, self.subscriber) == (later.event_type, later.subscriber)
    }

    /// The filter as it is matched: metadata only if `matchMetaData` was given, and without the wish for CloudEvents.
    pub fn matched(
        filter: Option<&Metadata>,
        match_metadata: bool,
        min_severity: Option<Severity>,
        payload_filter: Option<&Metadata>,
    ) -> Result<EventFilter, FilterError> {
        let none = Metadata::default();
        let mut metadata = filter.filter(|_| match_metadata).cloned().unwrap_or_default();
        if wish(&metadata).is_some_and(|word| ContentMode::parse(word).is_some()) {
            let is_wish = |key: &str| key == cloud_event::WISH;
            let pairs = metadata.pairs().iter().filter(|(key, _)| !is_wish(key));
            metadata = pairs.map(|(key, value)| (key.clone(), value.clone())).collect::<BTreeMap<_, _>>().into();
        }
        EventFilter::new(metadata, min_severity, payload_filter.unwrap_or(&none).pairs())
    }
}
