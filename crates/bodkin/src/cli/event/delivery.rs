//! How events are delivered: event types, the state of each push subscription, the event log.

use bodkin_client::{
    CoreSystems, Monitor,
    answer::{Delivery, EventTypeState},
};
use serde_json::json;

use super::subscription;
use crate::cli::{details::Details, lookup, printer::Printer, table::Table};

const LIST_COMMAND: &str = "bodkin event list";

/// Lists event types and deliveries.
pub async fn list(monitor: &Monitor, printer: Printer) -> anyhow::Result<()> {
    let types = monitor.event_types().await?.data;
    let deliveries = monitor.deliveries().await?.data;
    if printer.is_json() {
        return Ok(printer.done(&json!({"eventTypes": types, "subscriptions": deliveries}), "")?);
    }
    printer.table(&type_table(&types), "no event types: nobody has published or subscribed")?;
    if !deliveries.is_empty() {
        printer.done(&(), "")?;
        printer.table(&delivery_table(&deliveries), "")?;
    }
    Ok(())
}

/// Shows a subscription and its delivery.
pub async fn show(cloud: &CoreSystems, monitor: &Monitor, id: i64, printer: Printer) -> anyhow::Result<()> {
    let subscription = subscription::found(cloud, id).await?;
    let delivery = lookup::found(monitor.delivery(id).await, "subscription", id, LIST_COMMAND)?;
    let details = with_delivery(subscription::details(&subscription), &delivery);
    Ok(printer.one(&json!({"subscription": subscription, "delivery": delivery}), &details)?)
}

/// Stops the posts to a subscriber.
pub async fn pause(monitor: &Monitor, id: i64, printer: Printer) -> anyhow::Result<()> {
    let delivery = lookup::found(monitor.pause(id).await, "subscription", id, LIST_COMMAND)?;
    Ok(printer.done(&delivery, &format!("subscription {id} of {} is {}", delivery.subscriber.system_name, delivery.state))?)
}

/// Goes on with them.
pub async fn resume(monitor: &Monitor, id: i64, printer: Printer) -> anyhow::Result<()> {
    let delivery = lookup::found(monitor.resume(id).await, "subscription", id, LIST_COMMAND)?;
    Ok(printer.done(&delivery, &format!("subscription {id} of {} is {}", delivery.subscriber.system_name, delivery.state))?)
}

/// Shows the event log.
pub async fn log(monitor: &Monitor, printer: Printer) -> anyhow::Result<()> {
    let log = monitor.event_log().await?;
    let details = Details::default()
        .with("events", log.next_position.saturating_sub(log.first_position))
        .with("oldest", log.oldest.as_deref().unwrap_or("none"))
        .with("files", log.segments)
        .with("bytes", log.bytes)
        .with("positions", format!("{} to {}", log.first_position, log.next_position))
        .with("suspended", log.suspended.as_deref().unwrap_or("no"));
    Ok(printer.one(&log, &details)?)
}

fn with_delivery(details: Details, delivery: &Delivery) -> Details {
    details
        .with("state", &delivery.state)
        .with("delivered", delivery.delivered)
        .with("attempts", delivery.attempts)
        .with("failures", format!("{}, {} since the last success", delivery.failures, delivery.consecutive_failures))
        .with("behind", behind(delivery))
        .with("lost", delivery.lost)
        .with("dead letters", delivery.dead_letters)
        .with_some("last success", delivery.last_success_at.as_ref())
        .with_some("last failure", delivery.last_failure_at.as_ref())
        .with_some("last error", delivery.last_error.as_ref())
        .with_some("next attempt", delivery.next_attempt_at.as_ref())
}

fn behind(delivery: &Delivery) -> String {
    delivery.behind.map_or_else(|| "unknown".to_owned(), |behind| behind.to_string())
}

fn type_table(types: &[EventTypeState]) -> Table {
    let mut table = Table::new(&["EVENT TYPE", "PUBLISHED", "SUBSCRIPTIONS", "STREAMS", "DURABLE"]);
    for row in types {
        table.push([
            row.event_type.clone(),
            row.published.to_string(),
            row.subscriptions.to_string(),
            row.streams.to_string(),
            if row.durable { "yes" } else { "no" }.to_owned(),
        ]);
    }
    table
}

fn delivery_table(deliveries: &[Delivery]) -> Table {
    let mut table =
        Table::new(&["ID", "EVENT TYPE", "SUBSCRIBER", "POSTED TO", "STATE", "DELIVERED", "BEHIND", "LOST", "DEAD", "LAST ERROR"]);
    for delivery in deliveries {
        let failing = delivery.consecutive_failures > 0;
        table.push([
            delivery.id.to_string(),
            delivery.event_type.clone(),
            delivery.subscriber.system_name.clone(),
            format!("{}{}", delivery.subscriber.host_and_port(), delivery.notify_uri),
            delivery.state.clone(),
            delivery.delivered.to_string(),
            behind(delivery),
            delivery.lost.to_string(),
            delivery.dead_letters.to_string(),
            delivery.last_error.clone().filter(|_| failing).unwrap_or_default(),
        ]);
    }
    table
}
