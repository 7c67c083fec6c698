//! Events on stdout: as they come, or what is kept of them.

use std::{
    io,
    time::{Duration, Instant, SystemTime},
};

use bodkin_arrowhead::utc::UtcTime;
use bodkin_client::{CallError, CoreSystems, Event, EventForm, Events, Part, Start, StreamRequest};
use clap::{Args, ValueEnum};
use serde_json::json;
use tokio::time::timeout;

use super::{
    realtime::{self, RealtimeOptions, TailWish},
    subscription::EventFilter,
};
use crate::cli::{lookup, printer::Printer, registry::RegistryOptions};

/// As whom events are heard in real time if no system is named.
const REALTIME_NAME: &str = "bodkin-event-tail";
/// Name of the event that tells a loss.
const LOST: &str = "bodkin-lost";
/// Name of the event that tells whether deadlines are guaranteed.
const GUARANTEE: &str = "bodkin-guarantee";
/// The comment that ends a replay.
const LIVE: &str = "live";
/// The comment that comes when nothing else was sent.
const HEARTBEAT: &str = "heartbeat";
/// Time between two attempts to open a broken stream again.
const RETRY_PERIOD: Duration = Duration::from_secs(1);
/// A stream that has beaten and is silent for so long is taken for broken: four of the heartbeats that are missing.
const SILENCE_MAX: Duration = Duration::from_secs(60);

#[derive(Args, Clone, Debug)]
pub struct Tailing {
    #[command(flatten)]
    heard: Heard,
    /// End after so many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Begin with what is kept from this time (UTC), for example 2031-01-01T00:00:00Z; 0 is everything kept [default: now]
    #[arg(long, value_name = "TIME", conflicts_with_all = ["after", "realtime"])]
    since: Option<String>,
    /// Begin behind the event of this id
    #[arg(long, value_name = "EVENT", conflicts_with = "realtime")]
    after: Option<String>,
    /// Seconds to try to open a broken stream again, then end with exit code 1
    #[arg(long, value_name = "S", default_value_t = 300)]
    reconnect_max_s: u64,
    #[command(flatten)]
    realtime: RealtimeOptions,
    #[command(flatten)]
    wish: TailWish,
}

#[derive(Args, Clone, Debug)]
pub struct Replaying {
    #[command(flatten)]
    heard: Heard,
    /// From this time (UTC), for example 2031-01-01T00:00:00Z; 0 is everything kept
    #[arg(long, value_name = "TIME", required_unless_present = "after", conflicts_with = "after")]
    since: Option<String>,
    /// Behind the event of this id
    #[arg(long, value_name = "EVENT")]
    after: Option<String>,
}

/// Which events are printed, and how.
#[derive(Args, Clone, Debug)]
struct Heard {
    /// Event type
    #[arg(value_name = "TYPE")]
    event_type: String,
    #[command(flatten)]
    filter: EventFilter,
    /// Name or id of a registered system: only the publishers it may hear [default: the own certificate's; all in insecure mode]
    #[arg(long, value_name = "SYSTEM")]
    system: Option<String>,
    /// The payload alone, or the whole event as JSON
    #[arg(long, value_enum, value_name = "FORM", default_value = "payload")]
    form: Form,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    Payload,
    Event,
}

impl Heard {
    async fn request(self, cloud: &CoreSystems, since: Option<String>, after: Option<String>) -> anyhow::Result<StreamRequest> {
        let consumer = match self.system {
            Some(system) => Some(lookup::reference(cloud, &system).await?),
            None => None,
        };
        let form = match self.form {
            Form::Payload => EventForm::Payload,
            Form::Event => EventForm::Event,
        };
        let start = match (since, after) {
            (_, Some(id)) => Start::After(id),
            (Some(instant), None) => Start::Since(instant),
            (None, None) => Start::Now,
        };
        Ok(StreamRequest {
            event_type: self.event_type,
            form,
            consumer,
            start,
            metadata: self.filter.metadata,
            severity: self.filter.severity.map(|severity| severity.as_str().to_owned()),
            payload: self.filter.payload,
        })
    }
}

/// Prints events until Ctrl-C or the count is reached. A broken stream is opened again behind the last event that came.
pub async fn tail(registry: &RegistryOptions, options: Tailing, printer: Printer) -> anyhow::Result<()> {
    if options.realtime.realtime {
        let EventFilter { metadata, severity, payload } = &options.heard.filter;
        if !(metadata.is_empty() && severity.is_none() && payload.is_empty()) {
            anyhow::bail!("--realtime hears a topic whole: leave --metadata, --severity and --payload out, or --realtime");
        }
        let name = options.heard.system.as_deref().unwrap_or(REALTIME_NAME);
        let told = (name, options.heard.event_type.as_str(), options.count);
        return realtime::tail(registry, &options.realtime, &options.wish, told, printer).await;
    }
    let cloud = &registry.discover().await?;
    let mut request = options.heard.request(cloud, options.since, options.after).await?;
    let begun = UtcTime::from_system_time(SystemTime::now())?;
    let mut events = cloud.stream(&request).await?;
    eprintln!("listening to {}; Ctrl-C ends", request.event_type);
    let mut left = options.count.unwrap_or(u64::MAX);
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    while left > 0 {
        let next = tokio::select! {
            next = next_event(&mut events) => next,
            stopped = &mut interrupted => return Ok(stopped?),
        };
        match next {
            Ok(event) => {
                left -= u64::from(print(&event, printer)?);
                if !event.id.is_empty() {
                    request.start = Start::After(event.id);
                }
            }
            Err(why) => {
                eprintln!("bodkin: {why}");
                if request.start == Start::Now {
                    // No event has come that could be named, so nothing is heard twice.
                    request.start = Start::Since(begun.to_string());
                }
                let window = Duration::from_secs(options.reconnect_max_s);
                events = tokio::select! {
                    opened = open_again(cloud, &request, window) => opened?,
                    stopped = &mut interrupted => return Ok(stopped?),
                };
                eprintln!("listening to {} again", request.event_type);
            }
        }
    }
    Ok(())
}

/// The next event, or why there is none.
async fn next_event(events: &mut Events) -> Result<Event, String> {
    let mut beats = false;
    loop {
        let silence_max = if beats { SILENCE_MAX } else { Duration::MAX };
        match timeout(silence_max, events.next_part()).await {
            Ok(Some(Part::Event(event))) => return Ok(event),
            Ok(Some(Part::Comment(text))) => beats |= text == HEARTBEAT,
            Ok(None) => return Err(ended(events).to_string()),
            Err(_) => return Err(format!("the event stream was silent for {} s, although it beats", SILENCE_MAX.as_secs())),
        }
    }
}

fn ended(events: &Events) -> CallError {
    events.end().cloned().expect("a stream that gives nothing more says why")
}

/// Tries until the stream is open or `window` has passed. A refusal is final.
async fn open_again(cloud: &CoreSystems, request: &StreamRequest, window: Duration) -> Result<Events, CallError> {
    let begun = Instant::now();
    loop {
        tokio::time::sleep(RETRY_PERIOD).await;
        match cloud.stream(request).await {
            Err(error) if begun.elapsed() < window && !matches!(error, CallError::Refused(_) | CallError::Problem(_)) => {}
            opened => return opened,
        }
    }
}

/// Prints the kept events; ends when the present is reached.
pub async fn replay(cloud: &CoreSystems, options: Replaying, printer: Printer) -> anyhow::Result<()> {
    let request = options.heard.request(cloud, options.since, options.after).await?;
    let mut events = cloud.stream(&request).await?;
    loop {
        match events.next_part().await {
            Some(Part::Event(event)) => {
                print(&event, printer)?;
            }
            Some(Part::Comment(text)) if text == LIVE => return Ok(()),
            Some(Part::Comment(_)) => {}
            None => return Err(ended(&events).into()),
        }
    }
}

/// Prints an event; gives whether it was one: what Bodkin itself tells comes on stderr and to programs.
fn print(event: &Event, printer: Printer) -> io::Result<bool> {
    let told = match event.event.as_str() {
        LOST => Some("events were lost here"),
        GUARANTEE => Some("deadlines"),
        _ => None,
    };
    if let Some(told) = told {
        eprintln!("bodkin: {told}: {}", event.data);
    }
    if printer.is_json() || told.is_none() {
        printer.done(&json!({"id": event.id, "event": event.event, "data": event.data}), &event.data)?;
    }
    Ok(told.is_none())
}
