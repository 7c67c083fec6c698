//! `bodkin cloud share-event`, `shared-events`, `unshare-event`, `accept-event`, `refuse-event` and `heard-events`: event types that clouds share.

use anyhow::bail;
use bodkin_arrowhead::shared_event::{DEADLINE_MS_DEFAULT, Share};
use bodkin_client::{
    Monitor,
    answer::{AcceptedEvents, Delivery, HeardEvents, KnownCloud, SharedEvents},
};
use clap::Args;
use serde_json::json;

use crate::cli::{printer::Printer, table::Table};

/// An event type for another cloud.
#[derive(Args, Clone, Debug)]
pub struct Sharing {
    /// The event type
    #[arg(value_name = "TYPE")]
    event_type: String,
    /// The cloud: NAME, NAME.OPERATOR or its id
    #[arg(value_name = "CLOUD")]
    pub cloud: String,
    /// Milliseconds from being accepted here to being taken there, at least 100; what is later is counted
    #[arg(long, value_name = "MS", default_value_t = i64::from(DEADLINE_MS_DEFAULT))]
    deadline_ms: i64,
}

/// An event type that is shared, by this cloud or another.
#[derive(Args, Clone, Debug)]
pub struct Shared {
    /// The event type
    #[arg(value_name = "TYPE")]
    event_type: String,
    /// The cloud: NAME, NAME.OPERATOR or its id
    #[arg(value_name = "CLOUD")]
    pub cloud: String,
}

/// Shares an event type.
pub async fn share(monitor: &Monitor, sharing: &Sharing, cloud: &KnownCloud, printer: Printer) -> anyhow::Result<()> {
    let made = monitor.share_event(cloud.id, &sharing.event_type, sharing.deadline_ms).await?;
    let SharedEvents { event_type, cloud, deadline_ms, .. } = &made;
    let told = format!(
        "shared: {event_type} with {cloud}, within {deadline_ms} ms. Its operator has to accept it there: bodkin cloud accept-event {event_type} with this cloud's name; and it hears the publishers that a rule grants it: bodkin auth intercloud add --cloud {cloud} --provider SYSTEM --service SERVICE"
    );
    Ok(printer.done(&made, &told)?)
}

/// The subscriptions that are shares, with the share that each is.
fn shares(deliveries: Vec<Delivery>) -> Vec<(Delivery, Share)> {
    deliveries.into_iter().filter_map(|delivery| Share::of_notify_uri(&delivery.notify_uri).map(|share| (delivery, share))).collect()
}

/// Lists what is shared, and how it goes.
pub async fn list_shared(monitor: &Monitor, printer: Printer) -> anyhow::Result<()> {
    let rows: Vec<_> = shares(monitor.deliveries().await?.data);
    let mut table =
        Table::new(&["ID", "EVENT TYPE", "CLOUD", "DEADLINE MS", "STATE", "TAKEN", "LATE", "LOST", "DEAD", "BEHIND", "LAST ERROR"]);
    let cloud = |share: &Share| format!("{}.{}", share.name, share.operator);
    for (delivery, share) in &rows {
        table.push([
            delivery.id.to_string(),
            delivery.event_type.clone(),
            cloud(share),
            share.deadline_ms.to_string(),
            delivery.state.clone(),
            delivery.delivered.to_string(),
            delivery.late.to_string(),
            delivery.lost.to_string(),
            delivery.dead_letters.to_string(),
            delivery.behind.map_or_else(String::new, |behind| behind.to_string()),
            delivery.last_error.clone().unwrap_or_default(),
        ]);
    }
    if printer.is_json() {
        let row =
            |(delivery, share): &(Delivery, Share)| json!({"cloud": cloud(share), "deadlineMs": share.deadline_ms, "delivery": delivery});
        let data: Vec<_> = rows.iter().map(row).collect();
        return Ok(printer.document(&json!({"data": data, "count": data.len()}))?);
    }
    Ok(printer.table(&table, "no event types are shared")?)
}

/// Shares an event type no more.
pub async fn unshare(monitor: &Monitor, shared: &Shared, cloud: &KnownCloud, printer: Printer) -> anyhow::Result<()> {
    let wanted = |(delivery, share): &(Delivery, Share)| {
        let is_cloud =
            share.name.as_str().eq_ignore_ascii_case(&cloud.name) && share.operator.as_str().eq_ignore_ascii_case(&cloud.operator);
        is_cloud && delivery.event_type.to_lowercase() == shared.event_type.trim().to_lowercase()
    };
    let Some((delivery, _)) = shares(monitor.deliveries().await?.data).into_iter().find(wanted) else {
        bail!("{} is not shared with {}.{}; see bodkin cloud shared-events", shared.event_type, cloud.name, cloud.operator)
    };
    monitor.remove_shared_events(delivery.id).await?;
    let told = format!("not shared any more: {} with {}.{}", delivery.event_type, cloud.name, cloud.operator);
    Ok(printer.done(&json!({"removed": delivery}), &told)?)
}

/// Takes events of a type from another cloud.
pub async fn accept(monitor: &Monitor, accepted: &Shared, cloud: &KnownCloud, printer: Printer) -> anyhow::Result<()> {
    let made = monitor.accept_events(cloud.id, &accepted.event_type).await?;
    let AcceptedEvents { event_type, cloud, .. } = &made;
    let told = format!(
        "accepted: {event_type} of {cloud}. It is heard by whom a rule lets hear events of other clouds: bodkin auth add --consumer SYSTEM --provider gatekeeper --service inter-cloud-events"
    );
    Ok(printer.done(&made, &told)?)
}

/// Takes them no more.
pub async fn refuse(monitor: &Monitor, accepted: &Shared, cloud: &KnownCloud, printer: Printer) -> anyhow::Result<()> {
    monitor.refuse_events(cloud.id, &accepted.event_type).await?;
    let (event_type, cloud) = (accepted.event_type.trim().to_uppercase(), format!("{}.{}", cloud.name, cloud.operator));
    let told = format!("not accepted any more: {event_type} of {cloud}");
    Ok(printer.done(&json!({"eventType": event_type, "cloud": cloud}), &told)?)
}

/// Lists what has come of the events of other clouds.
pub async fn list_heard(monitor: &Monitor, printer: Printer) -> anyhow::Result<()> {
    let heard = monitor.heard_events().await?;
    let mut table = Table::new(&["CLOUD", "EVENT TYPE", "ACCEPTED", "TAKEN", "LOST", "REPEATED", "REFUSED"]);
    for HeardEvents { cloud, event_type, accepted, taken, lost, repeated, refused } in &heard.data {
        let cloud = cloud.clone().unwrap_or_else(|| "not known any more".to_owned());
        let accepted = if *accepted { "yes" } else { "no" };
        let [taken, lost, repeated, refused] = [taken, lost, repeated, refused].map(u64::to_string);
        table.push([cloud, event_type.clone(), accepted.to_owned(), taken, lost, repeated, refused]);
    }
    Ok(printer.rows(&heard, &table, "no event types of other clouds are accepted, and no events have come since the start")?)
}
