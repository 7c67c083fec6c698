//! The cloud with its publishers, and the runs against it and against the bare relay.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::callers::Callers;
use super::manner::{Afflictions, Manner};
use super::payload::PAYLOAD_BYTES;
use super::publisher::{PublishRequest, PublisherOrder, PublisherReport};
use super::pushed::PushOrder;
use super::relay::{FRAME_BYTES_MIN, RelayOrder};
use super::role::{RoleOrder, Told};
use super::run::Run;
use super::scenario::Shape;
use super::side::Side;
use super::subscriber::SubscriberOrder;
use super::subscription::Publishers;
use super::tally::{Sent, SubscriberReport};
use crate::cloud::Cloud;
use crate::endpoint::Endpoint;
use crate::options::Transport;
use crate::request::{self, RunTag};

/// Longest wait for a side to say that it listens or that its streams are open.
const OPEN_WAIT_MAX: Duration = Duration::from_secs(60);
/// Longest time that one round of a scenario may take beyond the shortest run.
const ROUND_WAIT_MAX: Duration = Duration::from_secs(1800);
/// Port of the subscriber that opens streams, where nothing listens.
const SUBSCRIBER_PORT: u16 = 8999;
/// Stands where the payload will be; no JSON, name or head has it.
const PLACEHOLDER: &str = "~";

/// A cloud, its publishers, and how many of what a run has.
pub struct Rig {
    /// How many of what.
    pub shape: Shape,
    /// The cloud.
    pub cloud: Cloud,
    publishers: Publishers,
    /// Who opens the streams, as their query says it; otherwise they hear every publisher.
    subscriber: Option<String>,
    tag: RunTag,
    /// Runs against the server so far; each has an event type of its own.
    runs: u16,
    /// Bytes of an event as the server sends it, which the relay sends too.
    pub frame_bytes: usize,
}

impl Rig {
    /// Registers the publishers.
    ///
    /// # Errors
    /// The Service Registry refuses them.
    pub fn new(cloud: Cloud, shape: Shape, address: &str) -> anyhow::Result<Self> {
        Self::tagged(cloud, shape, address, RunTag::now())
    }

    /// As [`Rig::new`] with one registered system that opens all streams, and names that are the same in every run, for they are in
    /// certificates.
    ///
    /// # Errors
    /// As [`Rig::new`].
    pub fn with_subscriber(cloud: Cloud, shape: Shape, address: &str) -> anyhow::Result<Self> {
        let mut rig = Self::tagged(cloud, shape, address, RunTag::of_ms(0))?;
        let name = rig.tag.subscriber(0);
        rig.publishers.admit(&rig.cloud, &name, SUBSCRIBER_PORT)?;
        rig.subscriber = Some(format!("&system_name={name}&address={address}&port={SUBSCRIBER_PORT}"));
        Ok(rig)
    }

    fn tagged(cloud: Cloud, shape: Shape, address: &str, tag: RunTag) -> anyhow::Result<Self> {
        let publishers = Publishers::register(&cloud, &tag, shape.publishers, address)?;
        Ok(Self { shape, cloud, publishers, subscriber: None, tag, runs: 0, frame_bytes: FRAME_BYTES_MIN })
    }

    /// One run against the server.
    ///
    /// # Errors
    /// A side fails, or the server refuses publishers or subscribers.
    pub fn broker_run(&mut self, transport: Transport, afflictions: Afflictions, seconds: u32) -> anyhow::Result<Run> {
        let handler = self.cloud.event_handler()?.clone();
        let event_type = self.tag.event_type(self.runs);
        self.runs += 1;
        let resident = self.cloud.resident();
        if let Some(resident) = resident {
            resident.reset_peak()?;
        }
        let publishers = self.publisher_order(&handler, handler.address, &event_type, seconds)?;
        let manners = self.shape.manners(afflictions);
        let mut run = match transport {
            Transport::Sse => both_sides(self.subscriber_order(handler.address, &handler, &event_type, manners)?, publishers)?,
            Transport::Push => self.push_run(&event_type, manners, publishers)?,
        };
        run.peak_rss_mb = resident.map(|resident| resident.peak_mb()).transpose()?;
        Ok(run)
    }

    fn push_run(&self, event_type: &str, manners: Vec<Manner>, publishers: PublisherOrder) -> anyhow::Result<Run> {
        let order = PushOrder { manners, publishers: usize::from(self.shape.publishers) };
        let mut subscriber = Side::start("push side", &RoleOrder::Push(order))?;
        let Told::PushListening { ports } = subscriber.hear(OPEN_WAIT_MAX)? else {
            bail!("the push side told something else than where it listens")
        };
        let subscribed = self.publishers.subscribe(&self.cloud, event_type, &ports)?;
        let run = publish_beside(&mut subscriber, publishers);
        subscribed.end(&self.cloud)?;
        run
    }

    /// One run against the bare relay, with the same bytes as to the server, whatever that is called.
    ///
    /// # Errors
    /// A side fails.
    pub fn relay_run(&self, seconds: u32) -> anyhow::Result<Run> {
        let handler = self.cloud.event_handler()?;
        let event_type = self.tag.event_type(self.runs);
        let mut publishers = self.publisher_order(handler, handler.address, &event_type, seconds)?;
        let order = RelayOrder {
            message_bytes: publishers.requests[0].text.len(),
            payload_at: publishers.requests[0].payload_at,
            frame_bytes: self.frame_bytes,
            subscribers: self.shape.subscribers,
            publishers: usize::from(self.shape.publishers) * usize::try_from(self.shape.connections)?,
        };
        let mut relay = Side::start("relay", &RoleOrder::Relay(order))?;
        let Told::Listening(addresses) = relay.hear(OPEN_WAIT_MAX)? else { bail!("the relay told something else than where it listens") };
        publishers.address = addresses.publishers;
        let manners = self.shape.manners(Afflictions::NONE);
        both_sides(self.subscriber_order(addresses.subscribers, handler, &event_type, manners)?, publishers)
    }

    fn publisher_order(&self, handler: &Endpoint, address: SocketAddr, event_type: &str, seconds: u32) -> anyhow::Result<PublisherOrder> {
        let Shape { publishers, events_per_round, connections, rate_per_s, .. } = self.shape;
        let requests = self.publishers.systems().iter().map(|source| publish_request(handler, event_type, source));
        let callers = self.callers((0..publishers).map(|n| self.tag.publisher(n)).collect())?;
        let requests = requests.collect::<Result<_, _>>()?;
        Ok(PublisherOrder { address, requests, callers, connections, events_per_round, seconds, rate_per_s })
    }

    fn subscriber_order(
        &self,
        address: SocketAddr,
        handler: &Endpoint,
        event_type: &str,
        manners: Vec<Manner>,
    ) -> anyhow::Result<SubscriberOrder> {
        let request = opening(handler, event_type, self.subscriber.as_deref().unwrap_or_default())?;
        let callers = self.callers(vec![self.tag.subscriber(0)])?;
        Ok(SubscriberOrder { address, request, callers, manners, publishers: usize::from(self.shape.publishers) })
    }

    /// In secure mode these systems; otherwise nobody in particular.
    fn callers(&self, systems: Vec<String>) -> anyhow::Result<Callers> {
        Callers::new(self.cloud.certificates.as_deref(), systems)
    }
}

/// A publish request with room for the payload; of one length for all publishers of a run.
///
/// # Errors
/// The source is no text.
pub fn publish_request(handler: &Endpoint, event_type: &str, source: &Value) -> anyhow::Result<PublishRequest> {
    let placeholder = PLACEHOLDER.repeat(PAYLOAD_BYTES);
    let body = json!({ "eventType": event_type, "source": source, "payload": placeholder });
    let text = String::from_utf8(request::post(handler, "/eventhandler/publish", &body))?;
    let payload_at = text.find(&placeholder).context("the placeholder is in the request")?;
    Ok(PublishRequest { text, payload_at })
}

fn opening(handler: &Endpoint, event_type: &str, subscriber: &str) -> anyhow::Result<String> {
    let path = format!("/eventhandler/subscription?eventtype={event_type}{subscriber}");
    Ok(String::from_utf8(request::get(handler, &path, "text/event-stream"))?)
}

fn both_sides(subscribers: SubscriberOrder, publishers: PublisherOrder) -> anyhow::Result<Run> {
    let mut subscriber = Side::start("subscriber side", &RoleOrder::Subscriber(subscribers))?;
    let Told::Subscribed = subscriber.hear(OPEN_WAIT_MAX)? else { bail!("the subscriber side told something else than its start") };
    publish_beside(&mut subscriber, publishers)
}

/// Publishes, tells the subscriber side what was sent, and hears what came.
fn publish_beside(subscriber: &mut Side, publishers: PublisherOrder) -> anyhow::Result<Run> {
    let report_wait_max = Duration::from_secs(u64::from(publishers.seconds)) + ROUND_WAIT_MAX;
    let mut publisher = Side::start("publisher side", &RoleOrder::Publisher(publishers))?;
    let published: PublisherReport = match publisher.hear(report_wait_max)? {
        Told::Published(published) => published,
        _ => bail!("the publisher side told something else than its report"),
    };
    subscriber.give(&Sent(published.sent.clone()))?;
    let received: SubscriberReport = match subscriber.hear(report_wait_max)? {
        Told::Received(received) => received,
        _ => bail!("the subscriber side told something else than its report"),
    };
    Ok(Run { published, received, peak_rss_mb: None })
}
