//! `event publish --realtime` and `event tail --realtime`: by ZMTP, with acknowledgements, to one broker or to both of a pair.

use std::{
    collections::BTreeMap,
    net::ToSocketAddrs,
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, anyhow, bail};
use bodkin_client::realtime::{
    Beginning, BrokerAddress, Brokers, ClientSecurity, Event, Guarantee, Guaranteed, PublicKey, PublisherId, PublisherReport,
    RealtimePublisher, RealtimeSubscriber, RefusalReason, Retention, SessionEnd, SessionReport, StreamCounters, SubscriberConfig,
    SubscriberReport, Subscription, SuspendedBy, WhenFull,
};
use bodkin_trust::curve;
use clap::Args;
use serde_json::json;

use crate::cli::{
    printer::Printer,
    registry::{RegistryOptions, parse_host_and_port},
};

/// Standard port of ZMTP.
const ZMTP_PORT: u16 = 5570;
/// Longest wait between two looks at what has come.
const TURN_MAX: Duration = Duration::from_millis(100);
/// Events behind which a subscriber knows what it has had.
const WINDOW_EVENTS: u32 = 4096;
/// Publishers that are heard.
const STREAMS_MAX: usize = 10_000;

/// How the brokers are reached.
#[derive(Args, Clone, Debug)]
pub struct RealtimeOptions {
    /// By ZMTP, numbered and acknowledged: an event is safe when it is said to be covered
    #[arg(long)]
    pub realtime: bool,
    /// A broker's ZMTP port or path (ipc://PATH); twice for both nodes of a pair [default: port 5570, plus the port offset, on the Service Registry's host]
    #[arg(long = "zmtp", value_name = "HOST:PORT", value_parser = parse_broker, requires = "realtime", num_args = 1)]
    zmtp: Vec<String>,
    /// File with the own pair of CURVE keys, which secure mode asks for: bodkin cert curve --system NAME makes it
    #[arg(long, value_name = "FILE", requires_all = ["realtime", "server_key"])]
    curve: Option<PathBuf>,
    /// Public CURVE key of the cloud's ZMTP port: bodkin cert curve shows it
    #[arg(long, value_name = "KEY", requires = "curve", value_parser = str::parse::<PublicKey>, allow_hyphen_values = true)]
    server_key: Option<PublicKey>,
}

impl RealtimeOptions {
    /// What the end of a session says, and what to do where the broker and this program speak other mechanisms, which no further attempt changes.
    fn never_begins(&self, end: &SessionEnd) -> Option<String> {
        let advice = match self.curve {
            None => {
                "the cloud is in secure mode, where ZMTP asks for keys: give the system's by --curve FILE (bodkin cert curve --system NAME makes them) \
                 and the cloud's by --server-key KEY (bodkin cert curve shows it)"
            }
            Some(_) => "the cloud is in insecure mode, where ZMTP has no keys: leave out --curve and --server-key",
        };
        end.is_other_mechanism().then(|| format!("{end}; {advice}"))
    }

    fn brokers(&self, registry: &RegistryOptions, name: &str) -> anyhow::Result<Brokers> {
        let texts = if self.zmtp.is_empty() {
            registry.addresses(ZMTP_PORT).context("name the broker by --zmtp HOST:PORT")?
        } else {
            self.zmtp.clone()
        };
        let addresses = texts.iter().map(|text| resolve(text)).collect::<anyhow::Result<Vec<BrokerAddress>>>()?;
        let brokers = match &addresses[..] {
            [address] => Brokers::one(name, address.clone()),
            [first, second] => Brokers::pair(name, first.clone(), second.clone()),
            _ => bail!("--zmtp names one broker, or both of a pair"),
        };
        let security = match (&self.curve, &self.server_key) {
            (Some(file), Some(server)) => ClientSecurity::Curve { own: curve::read_pair(file)?.into(), server: server.clone() },
            _ => ClientSecurity::Null,
        };
        Ok(Brokers { security, ..brokers })
    }
}

fn parse_broker(text: &str) -> Result<String, String> {
    if text.starts_with("ipc://") {
        text.parse().map(|address: BrokerAddress| address.to_string()).map_err(|error| error.to_string())
    } else {
        parse_host_and_port(text)
    }
}

/// A path stands for itself; a host is looked up.
fn resolve(text: &str) -> anyhow::Result<BrokerAddress> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let mut addresses = text.to_socket_addrs().with_context(|| format!("{text} cannot be resolved"))?;
    addresses.next().map(BrokerAddress::Tcp).with_context(|| format!("{text} has no address"))
}

/// How long a publisher waits.
#[derive(Args, Clone, Debug)]
pub struct PublishWait {
    /// Milliseconds to wait until the event is covered, then end with exit code 1
    #[arg(long, value_name = "MS", default_value_t = 10_000, requires = "realtime")]
    covered_within_ms: u64,
}

/// What a subscriber asks.
#[derive(Args, Clone, Debug)]
pub struct TailWish {
    /// Creation to arrival that is asked of the topic; what took longer by this host's clock is counted
    #[arg(long, value_name = "MS", requires = "realtime")]
    deadline_ms: Option<u64>,
    /// Losses in a row that are asked of the topic at the most; longer ones are told as broken
    #[arg(long, value_name = "EVENTS", requires = "realtime")]
    loss_tolerance: Option<u32>,
    /// Events wait until they are acknowledged here, and for so many seconds when nobody is there
    #[arg(long, value_name = "S", requires = "realtime")]
    required_for_s: Option<u64>,
}

/// Publishes one event and waits until it is covered.
pub async fn publish(
    registry: &RegistryOptions,
    options: &RealtimeOptions,
    wait: &PublishWait,
    (system, event_type, payload): (&str, &str, &str),
    printer: Printer,
) -> anyhow::Result<()> {
    let mut publisher = RealtimePublisher::connect(options.brokers(registry, system)?)?;
    let topic = publisher.add_topic(event_type, Retention::new(1, 1, WhenFull::Block));
    publisher.publish(topic, payload.as_bytes())?;
    let (begun, window) = (Instant::now(), Duration::from_millis(wait.covered_within_ms));
    let mut last_end = None;
    loop {
        let left = window.saturating_sub(begun.elapsed());
        if left.is_zero() {
            let why = last_end.unwrap_or_else(|| "no broker has said so".to_owned());
            bail!("the event is not covered within {} ms: {why}", window.as_millis());
        }
        publisher.ready(left.min(TURN_MAX)).await?;
        let (mut is_covered, mut refused) = (false, None);
        publisher.turn(Duration::ZERO, |report| match report {
            PublisherReport::Covered { .. } => is_covered = true,
            PublisherReport::NotTaken { text, .. } => refused = Some(text.to_owned()),
            PublisherReport::Excess { .. } => {
                refused = Some("it came faster than its topic's period allows, and is never covered".to_owned());
            }
            PublisherReport::Lost { .. } => refused = Some("the broker has dropped it".to_owned()),
            PublisherReport::Session(SessionReport::Ended(_, end)) => {
                refused = options.never_begins(&end).or(refused.take());
                last_end = Some(end.to_string());
            }
            PublisherReport::Session(_) | PublisherReport::CoveredUnpublished { .. } => {}
        })?;
        if let Some(why) = refused {
            bail!("the event is not covered: {why}");
        }
        if is_covered {
            let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            let document = json!({"covered": {"eventType": event_type, "system": system, "afterUs": micros}});
            return Ok(printer
                .done(&document, &format!("covered: {event_type} by {system}, {} ms after it was published", micros as f64 / 1e3))?);
        }
    }
}

/// What a subscriber has seen, for the end.
#[derive(Default)]
struct Seen {
    late: u64,
    /// A guarantee was pending or suspended.
    was_weak: bool,
    refused: Option<(RefusalReason, String)>,
}

/// Prints events until Ctrl-C or the count is reached, and then what was lost, doubled and late.
pub async fn tail(
    registry: &RegistryOptions,
    options: &RealtimeOptions,
    wish: &TailWish,
    (name, event_type, count): (&str, &str, Option<u64>),
    printer: Printer,
) -> anyhow::Result<()> {
    // What is printed is acknowledged at once: the program may end with it.
    let config = SubscriberConfig {
        acknowledge_every: 1,
        acknowledge_after: Duration::from_millis(1),
        window: WINDOW_EVENTS,
        streams_max: STREAMS_MAX,
    };
    let mut subscriber = RealtimeSubscriber::connect(options.brokers(registry, name)?, config)?;
    let deadline = wish.deadline_ms.map(Duration::from_millis);
    let topic = subscriber.subscribe(
        event_type,
        Subscription {
            loss_tolerance: wish.loss_tolerance,
            deadline,
            required_for: wish.required_for_s.map(Duration::from_secs),
            beginning: Beginning::Present,
        },
    );
    eprintln!("listening to {event_type} by ZMTP; Ctrl-C ends");
    let (mut left, mut seen) = (count.unwrap_or(u64::MAX), Seen::default());
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    while left > 0 {
        tokio::select! {
            ready = subscriber.ready(TURN_MAX) => ready?,
            stopped = &mut interrupted => {
                stopped?;
                break;
            }
        }
        let mut printed = Ok(());
        subscriber.turn(Duration::ZERO, |report| {
            if let SubscriberReport::Session(SessionReport::Ended(_, end)) = &report
                && let Some(why) = options.never_begins(end)
            {
                printed = Err(anyhow!("{why}"));
            }
            if left > 0 && printed.is_ok() {
                printed = seen.tell(report, deadline, printer, &mut left);
            }
        })?;
        printed?;
        if let Some((reason, text)) = seen.refused.take() {
            bail!("not subscribed ({reason:?}): {text}");
        }
    }
    let counters: BTreeMap<PublisherId, StreamCounters> = subscriber.counters(topic).collect();
    seen.sum_up(&counters, deadline, printer)
}

/// Says what the broker guarantees from now on.
fn tell_guaranteed(guaranteed: Guaranteed, printer: Printer) -> anyhow::Result<()> {
    let Guaranteed { deadlines, losses, .. } = guaranteed;
    let word = |guarantee| match guarantee {
        Guarantee::Pending => "pending",
        Guarantee::Unstated => "unstated",
        Guarantee::Held => "held",
        Guarantee::Suspended => "suspended",
    };
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let causes: Vec<&str> = guaranteed.causes().map(SuspendedBy::as_str).collect();
    let told = json!({
        "deadlines": word(deadlines), "causes": causes, "losses": word(losses),
        "worstUs": micros(guaranteed.worst_stall), "blockingUs": micros(guaranteed.blocking),
        "clockDifferenceUs": micros(guaranteed.clock_difference), "clockErrorUs": micros(guaranteed.clock_error),
        "publisherExcessUs": micros(guaranteed.publisher_excess),
        "brokerBackupUs": micros(guaranteed.broker_backup), "brokerBackupStatedUs": micros(guaranteed.broker_backup_stated),
    });
    let by = if causes.is_empty() { String::new() } else { format!(" by {}", causes.join(", ")) };
    eprintln!("bodkin: guarantee of deadlines {}{by}, of losses {}: {told}", word(deadlines), word(losses));
    if printer.is_json() {
        printer.document(&json!({"guaranteed": told}))?;
    }
    Ok(())
}

impl Seen {
    fn tell(&mut self, report: SubscriberReport<'_>, deadline: Option<Duration>, printer: Printer, left: &mut u64) -> anyhow::Result<()> {
        match report {
            SubscriberReport::Event(event) => {
                *left -= 1;
                self.print(&event, deadline, printer)?;
            }
            SubscriberReport::Lost { publisher, from, run, exceeds, .. } => {
                let broken = if exceeds { ", more than is tolerated" } else { "" };
                eprintln!("bodkin: {run} events of publisher {} were lost from {} on{broken}", publisher.0, from.0);
                if printer.is_json() {
                    printer.document(&json!({"lost": {"publisher": publisher.0, "from": from.0, "run": run, "exceeds": exceeds}}))?;
                }
            }
            SubscriberReport::Overrun { events, .. } => {
                eprintln!("bodkin: {events} events could not be brought, because this program did not read")
            }
            SubscriberReport::Subscribed(..) => {}
            SubscriberReport::Refused { reason: reason @ (RefusalReason::NotLeading | RefusalReason::NotRequired), text, .. } => {
                eprintln!("bodkin: {text} ({reason:?})");
            }
            SubscriberReport::Refused { reason, text, .. } => self.refused = Some((reason, text.to_owned())),
            SubscriberReport::TooManyStreams { .. } => eprintln!("bodkin: more than {STREAMS_MAX} publishers: one is not heard"),
            SubscriberReport::Session(SessionReport::Ended(_, end)) => eprintln!("bodkin: {end}"),
            SubscriberReport::Session(SessionReport::Leads(session, epoch)) => {
                eprintln!("bodkin: broker {session:?} leads, epoch {}", epoch.0);
            }
            SubscriberReport::Session(SessionReport::Guaranteed(_, guaranteed)) => {
                // Who is told of nothing that is suspended need not be told that nothing is.
                let is_weak = |guarantee| matches!(guarantee, Guarantee::Pending | Guarantee::Suspended);
                self.was_weak |= is_weak(guaranteed.deadlines) || is_weak(guaranteed.losses);
                if self.was_weak {
                    tell_guaranteed(guaranteed, printer)?;
                }
            }
            SubscriberReport::Session(_) => {}
        }
        Ok(())
    }

    fn print(&mut self, event: &Event<'_>, deadline: Option<Duration>, printer: Printer) -> anyhow::Result<()> {
        let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let age = age.saturating_sub(Duration::from_nanos(event.header.created_utc_ns));
        let is_late = deadline.is_some_and(|deadline| age > deadline);
        self.late += u64::from(is_late);
        let payload = String::from_utf8_lossy(event.payload);
        let document = json!({
            "publisher": event.header.publisher.0, "incarnation": event.header.incarnation.0, "sequence": event.header.sequence.0,
            "ageUs": u64::try_from(age.as_micros()).unwrap_or(u64::MAX), "late": is_late, "outOfOrder": event.is_late, "data": payload,
        });
        Ok(printer.done(&document, &payload)?)
    }

    /// Says what all publishers' streams came to.
    fn sum_up(&self, counters: &BTreeMap<PublisherId, StreamCounters>, deadline: Option<Duration>, printer: Printer) -> anyhow::Result<()> {
        let sum = |of: fn(&StreamCounters) -> u64| counters.values().map(of).sum::<u64>();
        let (received, lost, duplicates) = (sum(|one| one.received), sum(|one| one.lost), sum(|one| one.duplicates));
        let longest = counters.values().map(|one| one.longest_run).max().unwrap_or(0);
        let late = deadline.map(|_| self.late);
        if printer.is_json() {
            let sums = json!({"received": received, "lost": lost, "longestRun": longest, "duplicates": duplicates, "late": late});
            return Ok(printer.document(&json!({"summary": sums}))?);
        }
        let late = late.map_or(String::new(), |late| format!(", {late} beyond the deadline"));
        eprintln!("{received} events received, {lost} lost (longest run {longest}), {duplicates} doubled and dropped{late}");
        Ok(())
    }
}
