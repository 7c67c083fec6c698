//! `bodkin topic list|add|remove`: the real-time topics of a running cloud.

use anyhow::{Context, bail};
use bodkin_client::{Monitor, answer::RealTimeTopic};
use clap::Args;
use serde_json::{Map, Number, Value, json};

use crate::{
    DONE,
    cli::{printer::Printer, table::Table},
};

/// What is told of a deadline while the cloud's configuration states no longest stall of the machine.
const UNSTATED: &str = "unstated";

/// A topic to be made.
#[derive(Args, Clone, Debug)]
pub struct NewTopic {
    /// The event type
    #[arg(value_name = "EVENT_TYPE")]
    event_type: String,
    /// What it promises, such as period_ms=100
    #[arg(value_name = "KEY=VALUE", required = true)]
    terms: Vec<String>,
}

impl NewTopic {
    fn declaration(&self) -> anyhow::Result<Map<String, Value>> {
        let mut declaration = Map::from_iter([("event_type".to_owned(), json!(self.event_type))]);
        for term in &self.terms {
            let (key, value) = term.split_once('=').with_context(|| format!("expected KEY=VALUE, such as period_ms=100, not '{term}'"))?;
            let value = if key == "publisher" { names_of(value) } else { value_of(value) };
            if declaration.insert(key.to_owned(), value).is_some() {
                bail!("{key} is given twice");
            }
        }
        Ok(declaration)
    }
}

/// Reads names of systems separated by commas.
fn names_of(text: &str) -> Value {
    match text.split_once(',') {
        None => text.into(),
        Some(_) => text.split(',').collect(),
    }
}

fn value_of(text: &str) -> Value {
    match (text, serde_json::from_str::<Number>(text)) {
        (_, Ok(number)) => number.into(),
        ("true", _) => true.into(),
        ("false", _) => false.into(),
        _ => text.into(),
    }
}

/// Lists them.
pub async fn list(monitor: &Monitor, printer: Printer) -> anyhow::Result<u8> {
    let topics = monitor.topics().await?;
    let header = [
        "EVENT TYPE",
        "PERIOD",
        "DEADLINE",
        "LEVEL",
        "DECLARED BY",
        "GUARANTEE",
        "ACCEPTED",
        "EXCESS",
        "REFUSED",
        "LATE",
        "SHED",
        "LOST",
        "FLEET",
        "PUBLISHERS",
        "REJECTED LAST",
        "WAITS FOR",
    ];
    let mut table = Table::new(&header);
    for topic in &topics.data {
        let RealTimeTopic { accepted, excess, refused, late, shed, lost, .. } = topic;
        let [accepted, excess, refused, late, shed, lost] = [accepted, excess, refused, late, shed, lost].map(u64::to_string);
        let deadline = topic.deadline_us.map_or_else(|| "none".to_owned(), milliseconds);
        let (name, level) = (topic.event_type.clone(), topic.level.to_string());
        table.push([
            name,
            milliseconds(topic.period_us),
            deadline,
            level,
            topic.declared_by.clone(),
            topic.guarantee.clone().unwrap_or_default(),
            accepted,
            excess,
            refused,
            late,
            shed,
            lost,
            if topic.fleet { "forwarded" } else { "" }.to_owned(),
            publishers(topic),
            topic.rejected_publisher.as_ref().map_or_else(String::new, |rejected| format!("{} at {}", rejected.system, rejected.at)),
            topic.waits_for.as_ref().map_or_else(String::new, |awaited| format!("{} since {}", awaited.subscriber, awaited.since)),
        ]);
    }
    printer.rows(&topics, &table, "no real-time topics: every event is best effort")?;
    Ok(DONE)
}

/// The systems that hold the topic's slots and, of those that its declaration names, the others.
fn publishers(topic: &RealTimeTopic) -> String {
    let systems = &topic.publisher_slots.systems;
    let holds = |name: &str| systems.iter().any(|holder| holder.system == name);
    let more = topic.publisher_slots.held.saturating_sub(systems.len() as u64);
    let held = systems.iter().map(|holder| format!("{} since {}", holder.system, holder.since));
    let named = topic.publisher.iter().filter(|name| !holds(name)).map(|name| format!("{name} (reserved)"));
    held.chain((more > 0).then(|| format!("and {more} more"))).chain(named).collect::<Vec<_>>().join(", ")
}

fn milliseconds(micros: u64) -> String {
    format!("{} ms", micros as f64 / 1e3)
}

/// Makes one, or tells what would have to change.
pub async fn add(monitor: &Monitor, new: NewTopic, printer: Printer) -> anyhow::Result<u8> {
    let topic = monitor.declare_topic(&new.declaration()?).await?;
    printer.done(&topic, &format!("admitted: {} is a real-time topic", topic.event_type))?;
    if topic.guarantee.as_deref() == Some(UNSTATED) {
        eprintln!(
            "guarantee: {UNSTATED}, because [platform] of the cloud's configuration states no blocking_us; write a value above the longest stall that bodkin doctor measures"
        );
    }
    Ok(DONE)
}

/// Takes one back.
pub async fn remove(monitor: &Monitor, event_type: &str, printer: Printer) -> anyhow::Result<u8> {
    monitor.remove_topic(event_type).await?;
    printer.done(&json!({"eventType": event_type}), &format!("removed: events of {event_type} are best effort"))?;
    Ok(DONE)
}
