//! `bodkin event`: what happened, who hears it, and who did not take it.

mod dead;
mod delivery;
mod realtime;
mod subscription;
mod tail;

use bodkin_arrowhead::form::EventPublishRequest;
use clap::{Args, Subcommand};
use serde_json::json;

use self::{
    dead::DeadCommand,
    realtime::{PublishWait, RealtimeOptions},
    subscription::{NewSubscription, Unsubscribed},
    tail::{Replaying, Tailing},
};
use super::{
    lookup,
    page::PageOptions,
    pair::{metadata, parse_pair},
    printer::Printer,
    registry::RegistryOptions,
};
use crate::DONE;

/// Options of `bodkin event`.
#[derive(Args, Clone, Debug)]
pub struct EventOptions {
    #[command(flatten)]
    registry: RegistryOptions,
    #[command(subcommand)]
    command: EventCommand,
}

/// What to do with events.
#[derive(Subcommand, Clone, Debug)]
enum EventCommand {
    /// List event types, and push subscriptions with the state of their delivery
    List,
    /// Publish an event
    Publish(NewEvent),
    /// Print events as they come, until Ctrl-C; goes on where it was when the connection breaks
    #[command(alias = "listen")]
    Tail(Tailing),
    /// Print the events that are kept, and end when the present is reached
    Replay(Replaying),
    /// Have events posted to a system; replaces its former subscription to the event type
    Subscribe(NewSubscription),
    /// End a system's subscription to an event type
    Unsubscribe(Unsubscribed),
    /// List push subscriptions as they were made
    Subscriptions(PageOptions),
    /// Show one push subscription and its delivery
    Show(Id),
    /// Make a push subscription what is given
    Replace {
        #[command(flatten)]
        id: Id,
        #[command(flatten)]
        subscription: NewSubscription,
    },
    /// Remove a push subscription
    Remove(Id),
    /// Post nothing to a subscriber until it is resumed; its events stay in the event log
    Pause(Id),
    /// Post to a paused or failing subscriber again, at once
    Resume(Id),
    /// Dead letters: events that a subscriber did not take
    #[command(subcommand)]
    Dead(DeadCommand),
    /// Show what the event log keeps
    Log,
}

#[derive(Args, Clone, Debug)]
struct Id {
    /// Id of the subscription, as the list shows it
    #[arg(value_name = "ID")]
    id: i64,
}

#[derive(Args, Clone, Debug)]
struct NewEvent {
    /// Event type, for example OVERHEATED
    #[arg(value_name = "TYPE")]
    event_type: String,
    /// What happened
    #[arg(value_name = "PAYLOAD", allow_negative_numbers = true)]
    payload: String,
    /// Name or id of the registered system that publishes; by its own certificate NAME@HOST:PORT; with --realtime the name
    #[arg(long, value_name = "SYSTEM")]
    system: String,
    /// A free pair; may be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair, conflicts_with = "realtime")]
    metadata: Vec<(String, String)>,
    /// When it happened (UTC) [default: now]
    #[arg(long, value_name = "TIME", conflicts_with = "realtime")]
    time: Option<String>,
    #[command(flatten)]
    realtime: RealtimeOptions,
    #[command(flatten)]
    wait: PublishWait,
}

/// Carries a command out; gives the exit code.
pub async fn run(options: EventOptions, printer: Printer) -> anyhow::Result<u8> {
    let registry = options.registry;
    match options.command {
        EventCommand::List => delivery::list(&registry.monitor()?, printer).await?,
        EventCommand::Pause(Id { id }) => delivery::pause(&registry.monitor()?, id, printer).await?,
        EventCommand::Resume(Id { id }) => delivery::resume(&registry.monitor()?, id, printer).await?,
        EventCommand::Dead(command) => return dead::run(&registry.monitor()?, command, printer).await,
        EventCommand::Log => delivery::log(&registry.monitor()?, printer).await?,
        EventCommand::Show(Id { id }) => delivery::show(&registry.discover().await?, &registry.monitor()?, id, printer).await?,
        EventCommand::Publish(event) => publish(&registry, event, printer).await?,
        EventCommand::Tail(options) => tail::tail(&registry, options, printer).await?,
        EventCommand::Replay(options) => tail::replay(&registry.discover().await?, options, printer).await?,
        EventCommand::Subscribe(new) => subscription::subscribe(&registry.discover().await?, new, printer).await?,
        EventCommand::Unsubscribe(ended) => subscription::unsubscribe(&registry.discover().await?, ended, printer).await?,
        EventCommand::Subscriptions(page) => subscription::list(&registry.discover().await?, page.into(), printer).await?,
        EventCommand::Replace { id: Id { id }, subscription } => {
            subscription::replace(&registry.discover().await?, id, subscription, printer).await?;
        }
        EventCommand::Remove(Id { id }) => subscription::remove(&registry.discover().await?, id, printer).await?,
    }
    Ok(DONE)
}

async fn publish(registry: &RegistryOptions, event: NewEvent, printer: Printer) -> anyhow::Result<()> {
    if event.realtime.realtime {
        let told = (event.system.as_str(), event.event_type.as_str(), event.payload.as_str());
        return realtime::publish(registry, &event.realtime, &event.wait, told, printer).await;
    }
    let cloud = registry.discover().await?;
    let source = lookup::reference(&cloud, &event.system).await?;
    let form = EventPublishRequest {
        event_type: Some(event.event_type.clone()),
        source: Some(source.clone()),
        meta_data: metadata(event.metadata),
        payload: Some(event.payload),
        time_stamp: event.time,
    };
    cloud.publish(&form).await.map_err(|error| {
        let (name, is_denied) = (source.system_name.as_deref().unwrap_or_default(), error.is_denied());
        let error = anyhow::Error::from(error);
        // The operator manages, and publishes nothing.
        if is_denied { error.context(format!("{name} publishes with its own certificate, named by --cert")) } else { error }
    })?;
    Ok(printer.done(&json!({"published": form}), &format!("published: {} by {}", event.event_type, lookup::told_form(&source)))?)
}
