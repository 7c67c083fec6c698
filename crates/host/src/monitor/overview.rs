//! `GET /api/v1/overview`: this node at a glance, with every number of `/metrics` that needs no label.

use std::{collections::BTreeMap, sync::atomic::Ordering::Relaxed};

use bodkin_arrowhead::utc::UtcTime;
use serde::Serialize;
use serde_json::Number;

use super::{Monitor, TOPIC_COUNTS, VERSION, told};
use crate::{answer::Answer, control::now, server::Port};

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
}

impl Monitor {
    pub(super) fn overview(&self) -> Answer {
        let (cloud, secure) = self.api.own_cloud();
        let unlabelled = self.gauges().into_iter().chain(self.counters());
        let mut numbers: BTreeMap<String, Number> = unlabelled.map(|(name, _, value)| (name.to_owned(), told(name, value))).collect();
        let topics = self.api.topics.all();
        for (name, _, count) in TOPIC_COUNTS {
            let sum: u64 = topics.iter().map(|topic| count(&topic.counts).load(Relaxed)).sum();
            numbers.insert(format!("bodkin_topic_{name}_total"), sum.into());
        }
        Answer::json(
            200,
            &Overview {
                version: VERSION,
                at: now(),
                uptime_s: self.api.push.started.elapsed().as_secs(),
                cloud: cloud.to_string(),
                secure,
                ports: Port::ALL.iter().zip(&self.addresses).map(|(port, address)| (port.name(), address.port())).collect(),
                numbers,
            },
        )
    }
}
