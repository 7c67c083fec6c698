//! Push subscriptions as they were made: list, make, replace, remove.

use bodkin_arrowhead::{
    event_filter::Severity,
    form::SubscriptionRequest,
    publication::cloud_event::{self, ContentMode},
};
use bodkin_client::{CoreSystems, Page, answer::Subscription};
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use serde_json::json;

use crate::cli::{
    details::Details,
    lookup,
    pair::{metadata, parse_pair},
    printer::Printer,
    system::pairs,
    table::Table,
};

const LIST_COMMAND: &str = "bodkin event list";

fn severity() -> impl TypedValueParser<Value = Severity> {
    PossibleValuesParser::new(Severity::ALL.map(Severity::as_str)).map(|name| Severity::parse(&name).expect("it is one of them"))
}

fn content_mode() -> impl TypedValueParser<Value = ContentMode> {
    PossibleValuesParser::new(ContentMode::ALL.map(ContentMode::as_str)).map(|name| ContentMode::parse(&name).expect("it is one of them"))
}

/// Which of the events of a type are heard.
#[derive(Args, Clone, Debug)]
pub struct EventFilter {
    /// A pair the event's metadata must have; may be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub metadata: Vec<(String, String)>,
    /// Only events whose metadata says this severity or a graver one
    #[arg(long, value_parser = severity(), value_name = "LEVEL", ignore_case = true)]
    pub severity: Option<Severity>,
    /// A condition on a field of the JSON payload, for example 'temperature/value=>21.5'; may be repeated
    #[arg(long = "payload", value_name = "FIELD=CONDITION", value_parser = parse_pair)]
    pub payload: Vec<(String, String)>,
}

/// A subscription that is made, or what one is replaced by.
#[derive(Args, Clone, Debug)]
pub struct NewSubscription {
    /// Event type
    #[arg(value_name = "TYPE")]
    event_type: String,
    /// Name or id of the registered system that events are posted to; by its own certificate NAME@HOST:PORT
    #[arg(long, value_name = "SYSTEM")]
    system: String,
    /// Path at the system that events are posted to
    #[arg(long, value_name = "PATH")]
    notify_uri: String,
    /// Post CloudEvents, with their attributes in the body (structured) or in headers (binary), to a sink that agrees
    #[arg(long = "cloudevents", value_name = "MODE", value_parser = content_mode())]
    content_mode: Option<ContentMode>,
    #[command(flatten)]
    filter: EventFilter,
    /// Creation to arrival that is asked of a real-time topic
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..))]
    deadline_ms: Option<u32>,
    /// Losses in a row that are asked of it at the most
    #[arg(long, value_name = "EVENTS")]
    loss_tolerance: Option<u32>,
    /// Name or id of a publisher to hear; may be repeated [default: all the system may hear]
    #[arg(long = "source", value_name = "SYSTEM")]
    sources: Vec<String>,
    /// No events earlier than this (UTC)
    #[arg(long, value_name = "TIME")]
    start: Option<String>,
    /// No events later than this (UTC)
    #[arg(long, value_name = "TIME")]
    end: Option<String>,
}

/// A subscription that is ended.
#[derive(Args, Clone, Debug)]
pub struct Unsubscribed {
    /// Event type
    #[arg(value_name = "TYPE")]
    event_type: String,
    /// Name or id of the subscriber; by its own certificate NAME@HOST:PORT
    #[arg(long, value_name = "SYSTEM")]
    system: String,
}

impl NewSubscription {
    async fn form(self, cloud: &CoreSystems) -> anyhow::Result<SubscriptionRequest> {
        let subscriber = lookup::reference(cloud, &self.system).await?;
        let mut sources = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            sources.push(Some(lookup::reference(cloud, source).await?));
        }
        // The wish is a pair of the filter that filters nothing.
        let is_filtered = !self.filter.metadata.is_empty();
        let wish = self.content_mode.map(|mode| (cloud_event::WISH.to_owned(), mode.as_str().to_owned()));
        Ok(SubscriptionRequest {
            event_type: Some(self.event_type),
            subscriber_system: Some(subscriber),
            match_meta_data: Some(is_filtered),
            filter_meta_data: metadata(self.filter.metadata.into_iter().chain(wish).collect()),
            notify_uri: Some(self.notify_uri),
            start_date: self.start,
            end_date: self.end,
            sources: (!sources.is_empty()).then_some(sources),
            min_severity: self.filter.severity.map(|severity| severity.as_str().to_owned()),
            payload_filter: metadata(self.filter.payload),
            deadline_us: self.deadline_ms.map(|ms| i64::from(ms) * 1000),
            loss_tolerance: self.loss_tolerance.map(i64::from),
            required: None,
        })
    }
}

/// Subscribes a system.
pub async fn subscribe(cloud: &CoreSystems, new: NewSubscription, printer: Printer) -> anyhow::Result<()> {
    let (system, event_type, notify_uri) = (new.system.clone(), new.event_type.clone(), new.notify_uri.clone());
    let form = new.form(cloud).await?;
    cloud.subscribe(&form).await?;
    printer.done(&json!({"subscribed": form}), &format!("subscribed: {system} to {event_type}, posted to {notify_uri}"))?;
    // A system by its own certificate may subscribe, and not look at the list.
    if !printer.is_json()
        && let Ok(subscriptions) = cloud.subscriptions(&Page::default()).await
        && let Some(subscriber) = &form.subscriber_system
    {
        let is_it = |row: &&Subscription| {
            let system = &row.subscriber_system;
            let is_subscriber =
                subscriber.system_name.as_ref() == Some(&system.system_name) && subscriber.port == Some(i64::from(system.port));
            is_subscriber && row.event_type.event_type_name.eq_ignore_ascii_case(&event_type)
        };
        if let Some(advice) = subscriptions.data.iter().find(is_it).and_then(advice) {
            printer.remark(&advice)?;
        }
    }
    Ok(())
}

/// What to do about a subscription that hears nobody.
fn advice(subscription: &Subscription) -> Option<String> {
    let subscriber = &subscription.subscriber_system.system_name;
    subscription.sources.is_empty().then(|| {
        format!(
            "it hears nobody yet: no rule lets {subscriber} use a service of a publisher; \
             bodkin auth add --consumer {subscriber} --provider PUBLISHER --service SERVICE makes one"
        )
    })
}

/// Ends a system's subscription to an event type.
pub async fn unsubscribe(cloud: &CoreSystems, ended: Unsubscribed, printer: Printer) -> anyhow::Result<()> {
    let Unsubscribed { event_type, system } = ended;
    let subscriber = lookup::reference(cloud, &system).await?;
    cloud.unsubscribe(&event_type, &subscriber).await?;
    let sentence = format!("no subscription to {event_type} is left for {}", lookup::told_form(&subscriber));
    Ok(printer.done(&json!({"unsubscribed": {"eventType": event_type, "subscriberSystem": subscriber}}), &sentence)?)
}

/// Lists subscriptions.
pub async fn list(cloud: &CoreSystems, page: Page, printer: Printer) -> anyhow::Result<()> {
    let subscriptions = cloud.subscriptions(&page).await?;
    Ok(printer.rows(&subscriptions, &table(&subscriptions.data), "no push subscriptions")?)
}

/// The subscription of an id.
pub async fn found(cloud: &CoreSystems, id: i64) -> anyhow::Result<Subscription> {
    lookup::found(cloud.subscription(id).await, "subscription", id, LIST_COMMAND)
}

/// Makes a subscription another.
pub async fn replace(cloud: &CoreSystems, id: i64, new: NewSubscription, printer: Printer) -> anyhow::Result<()> {
    found(cloud, id).await?;
    let changed = cloud.change_subscription(id, &new.form(cloud).await?).await?;
    Ok(printer.done(&changed, &format!("replaced: subscription {id}: {}", told(&changed)))?)
}

/// Removes a subscription.
pub async fn remove(cloud: &CoreSystems, id: i64, printer: Printer) -> anyhow::Result<()> {
    let subscription = found(cloud, id).await?;
    cloud.remove_subscription(id).await?;
    Ok(printer.done(&json!({"removed": subscription}), &format!("removed: subscription {id}: {}", told(&subscription)))?)
}

fn told(subscription: &Subscription) -> String {
    format!("{} to {}", subscription.subscriber_system.system_name, subscription.event_type.event_type_name)
}

/// All that is known of a subscription as it was made.
pub fn details(subscription: &Subscription) -> Details {
    Details::default()
        .with("id", subscription.id)
        .with("event type", &subscription.event_type.event_type_name)
        .with("subscriber", format!("{}, id {}", lookup::told(&subscription.subscriber_system), subscription.subscriber_system.id))
        .with("posted to", &subscription.notify_uri)
        .with("filter", filter(subscription))
        .with_some("deadline", subscription.deadline_us.map(|us| format!("{} ms", us as f64 / 1e3)).as_ref())
        .with_some("losses", subscription.loss_tolerance.map(|losses| format!("{losses} in a row at the most")).as_ref())
        .with("hears", advice(subscription).unwrap_or_else(|| heard(subscription)))
        .with_some("start", subscription.start_date.as_ref())
        .with_some("end", subscription.end_date.as_ref())
        .with_times(subscription.created_at.as_ref(), subscription.updated_at.as_ref())
}

fn filter(subscription: &Subscription) -> String {
    let metadata = pairs(subscription.filter_meta_data.as_ref().filter(|_| subscription.match_meta_data));
    let severity = subscription.min_severity.as_ref().map(|level| format!("severity>={level}"));
    let payload = pairs(subscription.payload_filter.as_ref());
    let parts = [metadata, severity.unwrap_or_default(), payload];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn heard(subscription: &Subscription) -> String {
    let names: Vec<&str> = subscription.sources.iter().map(|source| source.system_name.as_str()).collect();
    names.join(", ")
}

fn table(subscriptions: &[Subscription]) -> Table {
    let mut table = Table::new(&["ID", "EVENT TYPE", "SUBSCRIBER", "POSTED TO", "FILTER", "HEARS"]);
    for subscription in subscriptions {
        table.push([
            subscription.id.to_string(),
            subscription.event_type.event_type_name.clone(),
            subscription.subscriber_system.system_name.clone(),
            format!("{}{}", subscription.subscriber_system.host_and_port(), subscription.notify_uri),
            filter(subscription),
            heard(subscription),
        ]);
    }
    table
}
