//! `bodkin event`: what happened.

use anyhow::bail;
use bodkin_arrowhead::form::{EventPublishRequest, SubscriptionRequest};
use bodkin_client::{CoreSystems, EventForm, answer::Subscription};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::{
    lookup,
    pair::{metadata, parse_pair},
    printer::Printer,
    registry::RegistryOptions,
    system::pairs,
    table::Table,
};

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
    /// Publish an event
    Publish {
        /// Event type, for example OVERHEATED
        #[arg(value_name = "TYPE")]
        event_type: String,
        /// What happened
        #[arg(value_name = "PAYLOAD")]
        payload: String,
        /// Name or id of the registered system that publishes
        #[arg(long, value_name = "SYSTEM")]
        system: String,
        /// A free pair; may be repeated
        #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
        metadata: Vec<(String, String)>,
    },
    /// Have events posted to a system; replaces its former subscription to the event type
    Subscribe(NewSubscription),
    /// Print events as they come, until Ctrl-C
    Listen(Listening),
    /// End a system's subscription to an event type
    Unsubscribe {
        /// Event type
        #[arg(value_name = "TYPE")]
        event_type: String,
        /// Name or id of the subscriber
        #[arg(long, value_name = "SYSTEM")]
        system: String,
    },
    /// List all push subscriptions
    Subscriptions,
    /// Remove a push subscription
    Remove {
        /// Id of the subscription, as the list shows it
        #[arg(value_name = "ID")]
        id: i64,
    },
}

#[derive(Args, Clone, Debug)]
struct NewSubscription {
    /// Event type
    #[arg(value_name = "TYPE")]
    event_type: String,
    /// Name or id of the registered system that events are posted to
    #[arg(long, value_name = "SYSTEM")]
    system: String,
    /// Path at the system that events are posted to
    #[arg(long, value_name = "PATH")]
    notify_uri: String,
    /// A pair the event's metadata must have; may be repeated
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
    metadata: Vec<(String, String)>,
    /// Name or id of a publisher to hear; may be repeated [default: all the system may hear]
    #[arg(long = "source", value_name = "SYSTEM")]
    sources: Vec<String>,
}

#[derive(Args, Clone, Debug)]
struct Listening {
    /// Event type
    #[arg(value_name = "TYPE")]
    event_type: String,
    /// End after so many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Name or id of a registered system: hear only the publishers it may hear [default: all, insecure mode only]
    #[arg(long, value_name = "SYSTEM")]
    system: Option<String>,
    /// The payload alone, or the whole event as JSON
    #[arg(long, value_enum, default_value = "payload")]
    form: ListenForm,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ListenForm {
    Payload,
    Event,
}

/// Carries a command out.
pub async fn run(options: EventOptions, printer: Printer) -> anyhow::Result<()> {
    let cloud = options.registry.discover().await?;
    match options.command {
        EventCommand::Publish { event_type, payload, system, metadata: pairs } => {
            let source = lookup::system(&cloud, &system).await?;
            let form = EventPublishRequest {
                event_type: Some(event_type),
                source: Some(lookup::form(&source)),
                meta_data: metadata(pairs),
                payload: Some(payload),
                time_stamp: None,
            };
            cloud.publish(&form).await?;
            let sentence = format!("published: {} by {}", form.event_type.as_deref().unwrap_or_default(), lookup::told(&source));
            printer.done(&json!({"published": form}), &sentence)?;
        }
        EventCommand::Subscribe(new) => subscribe(&cloud, new, printer).await?,
        EventCommand::Listen(options) => listen(&cloud, options, printer).await?,
        EventCommand::Unsubscribe { event_type, system } => {
            let subscriber = lookup::system(&cloud, &system).await?;
            cloud.unsubscribe(&event_type, &lookup::form(&subscriber)).await?;
            let sentence = format!("no subscription to {event_type} is left for {}", lookup::told(&subscriber));
            printer.done(&json!({"unsubscribed": {"eventType": event_type, "subscriberSystem": subscriber}}), &sentence)?;
        }
        EventCommand::Subscriptions => {
            let subscriptions = cloud.subscriptions().await?;
            printer.rows(&subscriptions, table(&subscriptions.data), "no push subscriptions")?;
        }
        EventCommand::Remove { id } => {
            cloud.remove_subscription(id).await?;
            printer.done(&json!({"removed": {"id": id}}), &format!("no subscription {id} is left"))?;
        }
    }
    Ok(())
}

async fn subscribe(cloud: &CoreSystems, new: NewSubscription, printer: Printer) -> anyhow::Result<()> {
    let subscriber = lookup::system(cloud, &new.system).await?;
    let mut sources = Vec::with_capacity(new.sources.len());
    for source in &new.sources {
        sources.push(Some(lookup::form(&lookup::system(cloud, source).await?)));
    }
    let form = SubscriptionRequest {
        event_type: Some(new.event_type.clone()),
        subscriber_system: Some(lookup::form(&subscriber)),
        match_meta_data: Some(!new.metadata.is_empty()),
        filter_meta_data: metadata(new.metadata),
        notify_uri: Some(new.notify_uri.clone()),
        sources: (!sources.is_empty()).then_some(sources),
        ..SubscriptionRequest::default()
    };
    cloud.subscribe(&form).await?;
    let sentence = format!("subscribed: {} to {}, posted to {}", lookup::told(&subscriber), new.event_type, new.notify_uri);
    Ok(printer.done(&json!({"subscribed": form}), &sentence)?)
}

async fn listen(cloud: &CoreSystems, options: Listening, printer: Printer) -> anyhow::Result<()> {
    let Listening { event_type, count, system, form } = options;
    let consumer = match system {
        Some(system) => Some(lookup::form(&lookup::system(cloud, &system).await?)),
        None => None,
    };
    let form = match form {
        ListenForm::Payload => EventForm::Payload,
        ListenForm::Event => EventForm::Event,
    };
    let mut events = cloud.events(&event_type, form, consumer.as_ref()).await?;
    eprintln!("listening to {event_type}; Ctrl-C ends");
    let mut left = count.unwrap_or(u64::MAX);
    while left > 0 {
        let event = tokio::select! {
            event = events.next() => event,
            stopped = tokio::signal::ctrl_c() => return Ok(stopped?),
        };
        let Some(event) = event else {
            match events.end() {
                Some(why) => return Err(why.clone().into()),
                None => bail!("the event stream has ended"),
            }
        };
        printer.done(&json!({"id": event.id, "event": event.event, "data": event.data}), &event.data)?;
        left -= 1;
    }
    Ok(())
}

fn table(subscriptions: &[Subscription]) -> Option<Table> {
    let mut table = Table::new(&["ID", "EVENT TYPE", "SUBSCRIBER", "POSTED TO", "FILTER", "HEARS"]);
    for subscription in subscriptions {
        let heard: Vec<&str> = subscription.sources.iter().map(|source| source.system_name.as_str()).collect();
        table.push([
            subscription.id.to_string(),
            subscription.event_type.event_type_name.clone(),
            subscription.subscriber_system.system_name.clone(),
            format!("{}{}", subscription.subscriber_system.host_and_port(), subscription.notify_uri),
            pairs(subscription.filter_meta_data.as_ref().filter(|_| subscription.match_meta_data)),
            heard.join(", "),
        ]);
    }
    (!subscriptions.is_empty()).then_some(table)
}
