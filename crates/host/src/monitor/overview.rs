//! `GET /api/v1/overview`: this node at a glance, with every number of `/metrics` that needs no label.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use bodkin_arrowhead::utc::UtcTime;
use serde::Serialize;
use serde_json::Number;

use super::{Monitor, TOPIC_COUNTS, VERSION, told};
use crate::{
    answer::Answer,
    control::now,
    fleet::FleetState,
    server::Port,
    topics::{
        RealTimeTopic,
        parties::{Awaited, Rejection, SlotHolder},
    },
};

/// The node as it is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Overview {
    version: &'static str,
    at: UtcTime,
    uptime_s: u64,
    /// The end of its systems' names in certificates.
    cloud: String,
    secure: bool,
    /// Of every listener, by its name.
    ports: BTreeMap<&'static str, u16>,
    /// By the metric's name; those of real-time topics summed over all.
    numbers: BTreeMap<String, Number>,
    /// Publishers that real-time topics have rejected a short time ago, at most [`REPORTED_TOPICS_MAX`].
    rejected_publishers: Vec<RejectedPublisher>,
    /// Real-time topics that wait for a required subscriber, at most [`REPORTED_TOPICS_MAX`].
    waiting_topics: Vec<WaitingTopic>,
    /// What is wrong with the node's pair, each with what to do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pair_troubles: Vec<String>,
    /// Lanes to the fleet's stream that are refused or stopped, each with the server's words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fleet_troubles: Vec<String>,
    /// Metrics whose 0 is no trouble yet: the first connection is still being made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    connecting: Vec<&'static str>,
    /// By the metric of a connection to NATS servers that is 0: the reason of the last failure.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    disconnected: BTreeMap<&'static str, String>,
}

/// Topics that the overview reports by name.
const REPORTED_TOPICS_MAX: usize = 16;

/// A publisher that a topic has rejected, and who holds the topic's publisher slots.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RejectedPublisher {
    event_type: Arc<str>,
    #[serde(flatten)]
    rejection: Rejection,
    holders: Vec<SlotHolder>,
}

/// A topic that rejects events because a required subscriber has not acknowledged earlier ones.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitingTopic {
    event_type: Arc<str>,
    #[serde(flatten)]
    awaited: Awaited,
}

/// Returns the topics that wait for a required subscriber.
pub(super) fn waiting(topics: &[Arc<RealTimeTopic>]) -> impl Iterator<Item = (Arc<str>, Awaited)> {
    topics.iter().filter_map(|topic| Some((topic.event_type.clone(), topic.counts.parties.notable()?.awaited?)))
}

fn waiting_topics(topics: &[Arc<RealTimeTopic>]) -> Vec<WaitingTopic> {
    waiting(topics).take(REPORTED_TOPICS_MAX).map(|(event_type, awaited)| WaitingTopic { event_type, awaited }).collect()
}

fn rejected_publishers(topics: &[Arc<RealTimeTopic>], now: UtcTime) -> Vec<RejectedPublisher> {
    let rejected = topics.iter().filter_map(|topic| {
        let view = topic.counts.parties.notable()?;
        let rejection = view.recent_rejection(now)?.clone();
        Some(RejectedPublisher { event_type: topic.event_type.clone(), rejection, holders: view.holders.to_vec() })
    });
    rejected.take(REPORTED_TOPICS_MAX).collect()
}

impl Monitor {
    /// Returns the metrics of connections of which the first one is still being made.
    fn connecting(&self) -> Vec<&'static str> {
        let fleet = self.forwarding().map(|fleet| ("bodkin_fleet_connected", &fleet.connecting));
        let from_fleet = self.way_back().map(|back| ("bodkin_from_fleet_connected", &back.connecting));
        let nodes = self.crossing.iter().map(|crossing| ("bodkin_node_events_connected", &crossing.counts.connecting));
        fleet.chain(from_fleet).chain(nodes).filter(|(_, connecting)| connecting.is_recent()).map(|(metric, _)| metric).collect()
    }

    /// Returns why connections to NATS servers are not open, by their metrics.
    fn disconnected(&self) -> BTreeMap<&'static str, String> {
        let of =
            |metric, is_connected: &AtomicBool, trouble: Option<String>| Some((metric, trouble.filter(|_| !is_connected.load(Relaxed))?));
        let fleet = self.forwarding().filter_map(|fleet| of("bodkin_fleet_connected", &fleet.is_connected, fleet.trouble()));
        let from_fleet = self.way_back().filter_map(|back| of("bodkin_from_fleet_connected", &back.is_connected, back.trouble()));
        let nodes = self.crossing.iter();
        let nodes = nodes.filter_map(|crossing| of("bodkin_node_events_connected", &crossing.counts.is_connected, crossing.trouble()));
        fleet.chain(from_fleet).chain(nodes).collect()
    }

    pub(super) fn overview(&self) -> Answer {
        let (cloud, secure) = match self.api.own_cloud() {
            Ok(own) => own,
            Err(answer) => return answer,
        };
        let unlabelled = self.gauges().into_iter().chain(self.counters());
        let mut numbers: BTreeMap<String, Number> = unlabelled.map(|(name, _, value)| (name.to_owned(), told(name, value))).collect();
        let topics = self.api.topics.all();
        for (name, _, count) in TOPIC_COUNTS {
            let sum: u64 = topics.iter().map(|topic| count(&topic.counts).load(Relaxed)).sum();
            numbers.insert(format!("bodkin_topic_{name}_total"), sum.into());
        }
        let at = now();
        Answer::json(
            200,
            &Overview {
                version: VERSION,
                at,
                uptime_s: self.api.push.started.elapsed().as_secs(),
                cloud: cloud.to_string(),
                secure,
                ports: Port::ALL.iter().zip(&self.addresses).map(|(port, address)| (port.name(), address.port())).collect(),
                numbers,
                rejected_publishers: rejected_publishers(&topics, at),
                waiting_topics: waiting_topics(&topics),
                pair_troubles: self.pair.as_ref().map(|pair| pair.leadership().troubles().texts()).unwrap_or_default(),
                connecting: self.connecting(),
                disconnected: self.disconnected(),
                fleet_troubles: self.forwarding().flat_map(FleetState::lane_troubles).collect(),
            },
        )
    }
}
