//! `/api/v1/topics`: which event types are real-time topics, what they promise, and what became of their events; they are declared and
//! removed here while the cloud runs.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use bodkin_arrowhead::name::EventType;
use bodkin_broker::{
    Terms,
    timing::Span,
    topic::{LossTolerance, TopicSpec},
};
use serde::Serialize;
use serde_json::Map;
use tokio::sync::oneshot;

use super::{Api, list, not_stored};
use crate::{
    answer::Answer,
    document::async_api::Promised,
    inbox::Message,
    request::{Method, Request},
    shared,
    stall::Guarantee,
    topics::{
        Declarer, Latency, RealTimeTopic, TopicCounts, TopicError, declaration,
        parties::{Awaited, PartiesView, Rejection, SlotHolder},
    },
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
    publisher: Vec<&'t str>,
    publisher_slots: PublisherSlots,
    required_for_max_us: i64,
    durable: bool,
    fleet: bool,
    declared_by: Declarer,
    guarantee: Option<Guarantee>,
    accepted: u64,
    excess: u64,
    refused: u64,
    publisher_rejected: u64,
    rejected_publisher: Option<Rejection>,
    waits_for: Option<Awaited>,
    dispatched: u64,
    late: u64,
    shed: u64,
    lost: u64,
    longest_loss_run: u64,
    /// Upper bound (`null`: any length) and count of each bucket that is not empty.
    loss_runs: Vec<(Option<u64>, u64)>,
    /// `null`: none went out, or it is none of the topics whose latencies are kept.
    latency: Option<LatencyView>,
}

/// Which systems hold a topic's publisher slots.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PublisherSlots {
    /// All of them; `systems` lists the first of them.
    held: usize,
    systems: Vec<SlotHolder>,
}

/// How old a topic's events when they went out, in whole microseconds, rounded up.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LatencyView {
    p50_us: u64,
    p99_us: u64,
    worst_us: u64,
    /// Upper bound and count of each bucket that is not empty.
    buckets_us: Vec<(u64, u64)>,
}

impl LatencyView {
    fn of(latency: &Latency) -> Option<Self> {
        let us = |ns: u64| ns.div_ceil(1_000);
        Some(Self {
            p50_us: us(latency.quantile_ns(0.5)?),
            p99_us: us(latency.quantile_ns(0.99)?),
            worst_us: us(latency.worst_ns()?),
            buckets_us: latency.buckets().into_iter().map(|(upper, count)| (us(upper), count)).collect(),
        })
    }
}

impl Api {
    /// Answers a request at `topics`; that the method fits was seen before.
    pub(super) async fn topics(&self, request: &Request) -> Answer {
        match request.method {
            Method::Post => self.declare_topic(request).await,
            Method::Delete => self.remove_topic(request).await,
            _ => self.list_topics(),
        }
    }

    /// Admits a topic, keeps its declaration and tells the shard; or changes nothing.
    async fn declare_topic(&self, request: &Request) -> Answer {
        if let Some(refusal) = shared::refuse_here(&self.store, &self.realtime_at, "a real-time topic") {
            return refusal;
        }
        let Ok(text) = String::from_utf8(request.body.clone()) else { return no_topic("expected a JSON object in UTF-8") };
        let declared = match declaration::parse(&text, self.topics.platform()) {
            Ok(declared) => declared,
            Err(told) => return no_topic(&told),
        };
        let (topics, event_type) = (self.topics.clone(), declared.event_type.clone());
        // Among many topics, to find what would have to change takes its time.
        let admitted = tokio::task::spawn_blocking(move || topics.admit(&declared, Declarer::Operator)).await;
        let (topic, terms) = match admitted {
            Ok(Ok(admitted)) => admitted,
            Ok(Err(error)) => return not_admitted(&error),
            Err(error) => return Answer::problem(503, &format!("The admission test ended: {error}.")),
        };
        let kept = event_type.clone();
        if let Err(error) = self.store.write(move |draft| draft.declare_topic(&kept, &text), |_, ()| ()).await {
            self.topics.withdraw(event_type.as_str());
            return not_stored(&error);
        }
        match self.tell_shard(topic.clone(), terms).await {
            Ok(()) => Answer::json(201, &self.topic_view(&topic)),
            Err(answer) => {
                self.topics.withdraw(event_type.as_str());
                match self.store.write(move |draft| draft.forget_topic(&event_type), |_, _| ()).await {
                    Ok(()) => answer,
                    Err(error) => not_stored(&error),
                }
            }
        }
    }

    /// Takes a declaration back: the event type promises nothing any more.
    async fn remove_topic(&self, request: &Request) -> Answer {
        let name = request.parameter("event_type").unwrap_or_default();
        let event_type = match EventType::parse(name) {
            Ok(event_type) => event_type,
            Err(error) => return no_topic(&format!("event_type {error}")),
        };
        if self.topics.get(event_type.as_str()).is_some_and(|topic| topic.declarer == Declarer::Configuration) {
            let told = format!("{} is declared in the configuration: remove it there, and start again.", event_type.as_str());
            return Answer::problem(409, &told);
        }
        let forgotten = event_type.clone();
        match self.store.write(move |draft| draft.forget_topic(&forgotten), |_, was_kept| was_kept).await {
            Err(error) => return not_stored(&error),
            Ok(false) => return Answer::problem(404, &format!("{} is not declared as a topic.", event_type.as_str())),
            Ok(true) => {}
        }
        match self.topics.withdraw(event_type.as_str()) {
            Some((topic, terms)) => self.tell_shard(topic, terms).await.map_or_else(|answer| answer, |()| Answer::empty(200)),
            // It did not fit beside the configuration's topics, and so was not served.
            None => Answer::empty(200),
        }
    }

    /// Has the shard take a topic's terms over; the error is what to answer.
    async fn tell_shard(&self, topic: Arc<RealTimeTopic>, terms: Terms) -> Result<(), Answer> {
        let (done, told) = oneshot::channel();
        self.inbox.post(Message::Admit { topic, terms, done });
        match told.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Answer::problem(503, &format!("The topic was not made: {error}."))),
            Err(_) => Err(Answer::problem(503, "The local cloud is shutting down.")),
        }
    }

    /// What each topic promises.
    pub fn promised(&self) -> Vec<Promised> {
        let promised = |topic: &Arc<RealTimeTopic>| {
            let TopicView { event_type, period_us, deadline_us, loss_tolerance, retention, .. } = self.topic_view(topic);
            Promised { event_type: event_type.to_owned(), period_us, deadline_us, loss_tolerance, retention }
        };
        self.topics.all().iter().map(promised).collect()
    }

    fn topic_view<'t>(&self, topic: &'t RealTimeTopic) -> TopicView<'t> {
        view(topic, self.stalls.guarantee())
    }

    fn list_topics(&self) -> Answer {
        let topics = self.topics.all();
        let data: Vec<TopicView<'_>> = topics.iter().map(|topic| self.topic_view(topic)).collect();
        list(&data, data.len() as u64)
    }
}

fn view(topic: &RealTimeTopic, guarantee: Guarantee) -> TopicView<'_> {
    let TopicSpec { period, deadline, loss_tolerance, retention, level, publishers, .. } = *topic.spec;
    let TopicCounts {
        accepted,
        excess,
        refused,
        publisher_rejected,
        dispatched,
        late,
        shed,
        lost,
        longest_loss_run,
        loss_runs,
        latency,
        parties,
    } = &*topic.counts;
    let PartiesView { holders, held, rejection, awaited } = parties.view();
    TopicView {
        event_type: &topic.event_type,
        period_us: period.gap().micros_up(),
        deadline_us: match deadline {
            Span::Finite(deadline) => Some(deadline.micros_up()),
            Span::Infinite => None,
        },
        loss_tolerance: match loss_tolerance {
            LossTolerance::AtMost(losses) => Some(losses),
            LossTolerance::Any => None,
        },
        retention,
        level: level.get(),
        publishers: publishers.get(),
        publisher: topic.permitted.names().collect(),
        publisher_slots: PublisherSlots { held, systems: holders.to_vec() },
        required_for_max_us: topic.spec.required_for_max.micros_up(),
        durable: topic.is_durable,
        fleet: topic.spec.fleet,
        declared_by: topic.declarer,
        guarantee: (deadline != Span::Infinite).then_some(guarantee),
        accepted: accepted.load(Relaxed),
        excess: excess.load(Relaxed),
        refused: refused.load(Relaxed),
        publisher_rejected: publisher_rejected.load(Relaxed),
        rejected_publisher: rejection,
        waits_for: awaited,
        dispatched: dispatched.load(Relaxed),
        late: late.load(Relaxed),
        shed: shed.load(Relaxed),
        lost: lost.load(Relaxed),
        longest_loss_run: longest_loss_run.load(Relaxed),
        loss_runs: loss_runs.buckets(),
        latency: latency.as_deref().and_then(LatencyView::of),
    }
}

/// A refusal: its reasons and the smallest changes that would do are members as well.
fn not_admitted(error: &TopicError) -> Answer {
    let (reasons, changes) = error.refusal().unwrap_or_default();
    let members = Map::from_iter([("reasons".to_owned(), reasons.into()), ("changes".to_owned(), changes.into())]);
    Answer::problem_with(409, &format!("{error}."), members)
}

fn no_topic(told: &str) -> Answer {
    Answer::problem(400, &format!("{}.", told.trim_end_matches('.')))
}
