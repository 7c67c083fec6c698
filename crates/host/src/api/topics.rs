//! `/api/v1/topics`: which event types are real-time topics, what they promise, and what became of their events.

use std::sync::atomic::Ordering::Relaxed;

use bodkin_broker::{
    timing::{Nanos, Span},
    topic::{LossTolerance, TopicSpec},
};
use serde::Serialize;

use super::{Api, list};
use crate::{
    answer::Answer,
    topics::{RealTimeTopic, TopicCounts},
};

/// A topic as it is told. Times are whole microseconds, rounded up; `null` is infinite.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TopicView<'t> {
    event_type: &'t str,
    period_us: i64,
    deadline_us: Option<i64>,
    loss_tolerance: Option<u32>,
    retention: u32,
    level: u8,
    publishers: u32,
    durable: bool,
    accepted: u64,
    excess: u64,
    refused: u64,
    dispatched: u64,
    late: u64,
    shed: u64,
}

impl Api {
    pub(super) fn list_topics(&self) -> Answer {
        let topics = self.topics.all();
        let data: Vec<TopicView<'_>> = topics.iter().map(|topic| view(topic)).collect();
        list(&data, data.len() as u64)
    }
}

fn view(topic: &RealTimeTopic) -> TopicView<'_> {
    let TopicSpec { period, deadline, loss_tolerance, retention, level, publishers, .. } = topic.spec;
    let TopicCounts { accepted, excess, refused, dispatched, late, shed } = &topic.counts;
    TopicView {
        event_type: &topic.event_type,
        period_us: micros(period.gap()),
        deadline_us: match deadline {
            Span::Finite(deadline) => Some(micros(deadline)),
            Span::Infinite => None,
        },
        loss_tolerance: match loss_tolerance {
            LossTolerance::AtMost(losses) => Some(losses),
            LossTolerance::Any => None,
        },
        retention,
        level: level.get(),
        publishers: publishers.get(),
        durable: topic.is_durable,
        accepted: accepted.load(Relaxed),
        excess: excess.load(Relaxed),
        refused: refused.load(Relaxed),
        dispatched: dispatched.load(Relaxed),
        late: late.load(Relaxed),
        shed: shed.load(Relaxed),
    }
}

fn micros(time: Nanos) -> i64 {
    (time.get() + 999).div_euclid(1_000)
}
