//! `bench event`: Rocha 2019, chapter 7. Publishers by REST, subscribers by server-sent events, and a bare relay as floor.
//!
//! The processes are the server or the relay in the middle, one for the publisher side and one for the subscriber side.
//! Runs against relay and server alternate, under the same placement, with the same bytes in and out.

mod order;
mod payload;
mod publisher;
mod relay;
pub mod role;
mod side;
mod sse;
mod subscriber;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::{Context, bail};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::client::Client;
use crate::cloud::Cloud;
use crate::endpoint::Endpoint;
use crate::expectation::Faults;
use crate::load::Measured;
use crate::machine::Conditions;
use crate::options::{EventOptions, Scenario};
use crate::published;
use crate::report::{Outcome, Report};
use crate::request::{self, Identified, RunTag};
use crate::statistics::{Figure, Latencies, Series, Unit};

use payload::PAYLOAD_BYTES;
use publisher::{PublishRequest, PublisherOrder, PublisherReport};
use relay::{FRAME_BYTES_MIN, RelayOrder};
use role::{RoleOrder, Told};
use side::Side;
use subscriber::{Sent, SubscriberOrder, SubscriberReport};

/// Longest wait for a side to say that it listens or that its streams are open.
const OPEN_WAIT_MAX: Duration = Duration::from_secs(60);
/// Longest time that one round of a scenario may take beyond the shortest run.
const ROUND_WAIT_MAX: Duration = Duration::from_secs(1800);
/// Length of the warm-up of relay and server, in s each.
const WARM_UP_SECONDS: u32 = 1;
/// Port of the first publisher, where nothing listens; each has its own of four digits.
const PUBLISHER_PORT_FIRST: u16 = 9000;
/// Stands where the payload will be; no JSON, name or head has it.
const PLACEHOLDER: &str = "~";

/// How many of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    publishers: u16,
    subscribers: usize,
    events_per_round: u64,
}

impl Scenario {
    fn shape(self) -> Shape {
        let (publishers, subscribers, events_per_round) = match self {
            Self::A => (1, 1, 2000),
            Self::B1 => (1, 1, 9000),
            Self::B6 => (1, 6, 9000),
            Self::C => (10, 10, 1000),
        };
        Shape { publishers, subscribers, events_per_round }
    }
}

/// Runs the scenario and reports it.
///
/// # Errors
/// The server does not start, a side fails, or the publishers are refused.
pub fn run(options: &EventOptions) -> anyhow::Result<Report> {
    let placement = match options.core {
        Some(core) => pin(core, options.target.target.is_some())?,
        None => "placed by the kernel".to_string(),
    };
    let cloud = Cloud::open(&options.target)?;
    let tag = RunTag::now();
    let mut bench = Bench {
        shape: options.scenario.shape(),
        cloud,
        tag,
        address: options.target.provider_address.clone(),
        runs: 0,
        frame_bytes: FRAME_BYTES_MIN,
    };
    bench.register_publishers()?;
    let warm_up = format!("{WARM_UP_SECONDS} s of each");
    let mut conditions = Conditions::begin(placement, bench.cloud.description(), warm_up, options.repeat);
    if let Some(directory) = bench.cloud.directory() {
        conditions.data_on(&directory.data());
    }
    let Shape { publishers, subscribers, events_per_round } = bench.shape;
    let each = format!("{publishers} publishers x {subscribers} subscribers x {events_per_round} events, at least {} s", options.seconds);
    let mut report = Report::new(format!("event scenario {:?}: {each}; {PAYLOAD_BYTES}-byte payloads, closed loop", options.scenario));

    let (mut broker, mut relay, mut ratios) = (Outcome::new("broker".into()), Outcome::new("relay".into()), Series::default());
    let warm = bench.broker_run(WARM_UP_SECONDS)?;
    bench.frame_bytes = warm.bytes_per_delivery().context("the warm-up delivered nothing")?;
    bench.relay_run(WARM_UP_SECONDS)?;
    for _ in 0..options.repeat {
        let floor = bench.relay_run(options.seconds)?;
        let ours = bench.broker_run(options.seconds)?;
        ratios.push(ours.ratios(&floor));
        relay.push(floor.figures(), floor.measured());
        broker.push(ours.figures(), ours.measured());
    }
    report.note(format!("relay: {} bytes to each subscriber per event, as the server's mean in the warm-up", bench.frame_bytes));
    let mut compared = Outcome::new("broker to relay, run by run".into());
    compared.series = ratios;
    for key in ["p50_ratio", "mean_ratio"] {
        report.ratio(format!("{key}, broker to relay"), compared.series.summary(key).unwrap_or(0.0));
    }
    report.outcomes = vec![broker, relay, compared];
    report.published = published::of_scenario(options.scenario);
    bench.cloud.close()?;
    conditions.end();
    report.conditions = Some(conditions);
    Ok(report)
}

/// Pins this process to one core; every process started from now on inherits that.
fn pin(core: usize, foreign_server: bool) -> anyhow::Result<String> {
    let mut cores = CpuSet::new();
    cores.set(core).with_context(|| format!("there is no core {core}"))?;
    sched_setaffinity(Pid::from_raw(0), &cores).with_context(|| format!("cannot run on core {core}"))?;
    let who = if foreign_server { "relay, publishers and subscribers" } else { "server, relay, publishers and subscribers" };
    Ok(format!("{who} on core {core}"))
}

struct Bench {
    shape: Shape,
    cloud: Cloud,
    tag: RunTag,
    address: String,
    /// Runs against the server so far; each has an event type of its own.
    runs: u16,
    frame_bytes: usize,
}

/// Both sides' reports of one run.
struct Run {
    published: PublisherReport,
    received: SubscriberReport,
    peak_rss_mb: Option<f64>,
}

impl Bench {
    fn source(&self, publisher: u16) -> Value {
        request::system(&self.tag.publisher(publisher), &self.address, PUBLISHER_PORT_FIRST + publisher)
    }

    fn register_publishers(&self) -> anyhow::Result<()> {
        let registry = &self.cloud.service_registry;
        let mut client = Client::connect(registry)?;
        for publisher in 0..self.shape.publishers {
            let register = request::post(registry, "/serviceregistry/register-system", &self.source(publisher));
            let _: Identified = client.ask(&register, 201)?;
        }
        Ok(())
    }

    /// The publish requests of a run, all of one length.
    fn publish_requests(&self, handler: &Endpoint, event_type: &str) -> anyhow::Result<Vec<PublishRequest>> {
        (0..self.shape.publishers).map(|publisher| publish_request(handler, event_type, &self.source(publisher))).collect()
    }

    fn broker_run(&mut self, seconds: u32) -> anyhow::Result<Run> {
        let handler = self.cloud.event_handler()?.clone();
        let event_type = self.tag.event_type(self.runs);
        self.runs += 1;
        let resident = self.cloud.resident();
        if let Some(resident) = resident {
            resident.reset_peak()?;
        }
        let requests = self.publish_requests(&handler, &event_type)?;
        let opening = opening(&handler, &event_type)?;
        let subscribers = self.subscriber_order(handler.address, opening);
        let publishers = PublisherOrder { address: handler.address, requests, events_per_round: self.shape.events_per_round, seconds };
        let mut run = both_sides(subscribers, publishers)?;
        run.peak_rss_mb = resident.map(|resident| resident.peak_mb()).transpose()?;
        Ok(run)
    }

    fn relay_run(&self, seconds: u32) -> anyhow::Result<Run> {
        // The same bytes as to the server, whatever it is called.
        let handler = self.cloud.event_handler()?;
        let event_type = self.tag.event_type(self.runs);
        let requests = self.publish_requests(handler, &event_type)?;
        let order = RelayOrder {
            message_bytes: requests[0].text.len(),
            payload_at: requests[0].payload_at,
            frame_bytes: self.frame_bytes,
            subscribers: self.shape.subscribers,
            publishers: usize::from(self.shape.publishers),
        };
        let mut relay = Side::start("relay", &RoleOrder::Relay(order))?;
        let Told::Listening(addresses) = relay.hear(OPEN_WAIT_MAX)? else { bail!("the relay told something else than where it listens") };
        let subscribers = self.subscriber_order(addresses.subscribers, opening(handler, &event_type)?);
        let events_per_round = self.shape.events_per_round;
        both_sides(subscribers, PublisherOrder { address: addresses.publishers, requests, events_per_round, seconds })
    }

    fn subscriber_order(&self, address: std::net::SocketAddr, request: String) -> SubscriberOrder {
        SubscriberOrder { address, request, subscribers: self.shape.subscribers, publishers: usize::from(self.shape.publishers) }
    }
}

fn publish_request(handler: &Endpoint, event_type: &str, source: &Value) -> anyhow::Result<PublishRequest> {
    let placeholder = PLACEHOLDER.repeat(PAYLOAD_BYTES);
    let body = json!({ "eventType": event_type, "source": source, "payload": placeholder });
    let text = String::from_utf8(request::post(handler, "/eventhandler/publish", &body))?;
    let payload_at = text.find(&placeholder).context("the placeholder is in the request")?;
    Ok(PublishRequest { text, payload_at })
}

fn opening(handler: &Endpoint, event_type: &str) -> anyhow::Result<String> {
    let path = format!("/eventhandler/subscription?eventtype={event_type}");
    Ok(String::from_utf8(request::get(handler, &path, "text/event-stream"))?)
}

fn both_sides(subscribers: SubscriberOrder, publishers: PublisherOrder) -> anyhow::Result<Run> {
    let report_wait_max = Duration::from_secs(u64::from(publishers.seconds)) + ROUND_WAIT_MAX;
    let mut subscriber = Side::start("subscriber side", &RoleOrder::Subscriber(subscribers))?;
    let Told::Subscribed = subscriber.hear(OPEN_WAIT_MAX)? else { bail!("the subscriber side told something else than its start") };
    let mut publisher = Side::start("publisher side", &RoleOrder::Publisher(publishers))?;
    let Told::Published(published) = publisher.hear(report_wait_max)? else {
        bail!("the publisher side told something else than its report")
    };
    subscriber.give(&Sent(published.sent.clone()))?;
    let Told::Received(received) = subscriber.hear(report_wait_max)? else {
        bail!("the subscriber side told something else than its report")
    };
    Ok(Run { published, received, peak_rss_mb: None })
}

impl Run {
    fn latency(&self) -> Latencies {
        Latencies::from_counts(&self.received.latency)
    }

    fn bytes_per_delivery(&self) -> Option<usize> {
        usize::try_from(self.received.bytes.checked_div(self.received.deliveries)?).ok()
    }

    /// What stands behind the figures. Faults are what the publishers were refused; what was lost or late is a figure.
    fn measured(&self) -> Measured {
        let faults = Faults { count: self.published.refused, first: self.published.refusals.clone() };
        Measured { latencies: self.latency(), faults, time_line: self.received.time_line.clone() }
    }

    fn figures(&self) -> Vec<Figure> {
        let (published, received) = (&self.published, &self.received);
        let events = published.sent.iter().sum::<u64>();
        let seconds = |end_ns: u64| end_ns.saturating_sub(published.first_ns).max(1) as f64 / 1e9;
        let mut figures = self.latency().figures("", Unit::Us, &[50.0, 90.0, 99.0, 99.9]);
        figures.push(Figure::median("events_per_s", events as f64 / seconds(published.last_ns)));
        figures.push(Figure::median("deliveries_per_s", received.deliveries as f64 / seconds(received.last_ns)));
        figures.push(Figure::sum("lost", received.lost));
        figures.push(Figure::sum("out_of_order", received.out_of_order));
        figures.push(Figure::sum("duplicates", received.duplicates));
        figures.push(Figure::sum("foreign", received.foreign));
        figures.push(Figure::sum("errors", published.refused));
        if let Some(peak_rss_mb) = self.peak_rss_mb {
            figures.push(Figure::max("peak_rss_mb", peak_rss_mb));
        }
        figures.extend(Latencies::from_counts(&published.acknowledged).figures("acknowledged_", Unit::Us, &[50.0, 99.0]));
        figures.push(Figure::sum("events", events));
        figures.push(Figure::sum("deliveries", received.deliveries));
        figures.push(Figure::median("duration_s", seconds(published.last_ns)));
        figures
    }

    fn ratios(&self, floor: &Self) -> Vec<Figure> {
        let (ours, floor) = (self.latency(), floor.latency());
        let ratio = |ours: f64, floor: f64| if floor > 0.0 { ours / floor } else { 0.0 };
        vec![
            Figure::median("p50_ratio", ratio(ours.percentile(50.0, Unit::Us), floor.percentile(50.0, Unit::Us))),
            Figure::median("mean_ratio", ratio(ours.mean(Unit::Us), floor.mean(Unit::Us))),
        ]
    }
}
