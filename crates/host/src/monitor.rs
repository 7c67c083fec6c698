//! Bodkin's own port: whether it lives, whether it is ready, and what it measures.

use std::{
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_store::Store;

use crate::{
    answer::Answer,
    api::{self, Api},
    control::now,
    document,
    listener::Traffic,
    push::delivery::State,
    request::{Method, Request},
    route,
    server::Port,
    stage::{Stage, Stages},
};

/// What the shard and the push deliveries count.
#[derive(Default)]
pub struct EventCounts {
    /// Events that were accepted.
    pub published: AtomicU64,
    /// Events put into subscribers' queues.
    pub delivered: AtomicU64,
    /// Events lost because a subscriber's queue was full, or because the event log did not keep them long enough.
    pub lost: AtomicU64,
    /// Pushed events that the subscriber did not take.
    pub push_failures: AtomicU64,
    /// Attempts to push an event.
    pub push_attempts: AtomicU64,
    /// Pushed events that the subscriber took.
    pub push_delivered: AtomicU64,
    /// Pushed events that were given up, and can be replayed.
    pub dead_letters: AtomicU64,
    /// Connections on the Event Handler's port.
    pub connections: AtomicU64,
    /// Event streams and pushed subscriptions.
    pub subscriptions: AtomicU64,
}

/// Answers on the monitor's port.
pub struct Monitor {
    /// For the sizes of things.
    pub store: Store,
    /// Where time goes.
    pub stages: Arc<Stages>,
    /// The control plane's connections.
    pub traffic: Arc<Traffic>,
    /// The shard's counts.
    pub events: Arc<EventCounts>,
    /// Bodkin's own interface.
    pub api: Api,
    /// Whether every listener answers, and no shutdown has begun.
    pub ready: AtomicBool,
}

impl Monitor {
    /// Answers one request.
    pub async fn answer(&self, request: &Request) -> Answer {
        if let Some(answer) = document::answer(Port::Monitor, request).or_else(|| unroutable(request)) {
            return answer;
        }
        match request.path.as_str() {
            "/healthz" => Answer::text(200, "ok\n"),
            "/readyz" if self.ready.load(Relaxed) => Answer::text(200, "ready\n"),
            "/readyz" => Answer::text(503, "not ready\n"),
            "/metrics" => Answer { content_type: Some("text/plain; version=0.0.4; charset=utf-8"), ..Answer::text(200, self.metrics()) },
            _ => self.api.answer(request).await,
        }
    }

    /// Prometheus's text form.
    fn metrics(&self) -> String {
        let mut text = String::with_capacity(32 * 1024);
        let snapshot = self.store.snapshot();
        let gauges = [
            ("bodkin_services", "Service Registry entries.", snapshot.entries().len() as u64),
            ("bodkin_systems", "Registered systems.", snapshot.systems().len() as u64),
            ("bodkin_authorization_rules", "Intracloud authorization rules.", snapshot.rules().len() as u64),
            ("bodkin_event_subscriptions", "Event streams and pushed subscriptions.", self.events.subscriptions.load(Relaxed)),
            ("bodkin_control_connections", "Open connections of the control plane.", self.traffic.connections.load(Relaxed) as u64),
            ("bodkin_event_connections", "Open connections of the Event Handler.", self.events.connections.load(Relaxed)),
            ("bodkin_resident_memory_bytes", "Memory in use.", resident_memory_bytes()),
        ];
        let counters = [
            ("bodkin_events_published_total", "Accepted events.", &self.events.published),
            ("bodkin_events_delivered_total", "Events put into subscribers' queues.", &self.events.delivered),
            (
                "bodkin_events_lost_total",
                "Events lost to full subscriber queues, or gone from the event log before they were delivered.",
                &self.events.lost,
            ),
            ("bodkin_push_attempts_total", "Attempts to push an event.", &self.events.push_attempts),
            ("bodkin_push_delivered_total", "Pushed events that the subscriber took.", &self.events.push_delivered),
            ("bodkin_push_failures_total", "Attempts to push an event that failed.", &self.events.push_failures),
            ("bodkin_dead_letters_total", "Pushed events that were given up.", &self.events.dead_letters),
        ];
        let log = self.api.log_state();
        let (bytes, records, suspended) =
            log.map_or((0, 0, 0), |log| (log.bytes, log.next.0.saturating_sub(log.first.0), u64::from(log.suspended.is_some())));
        let gauges = gauges.into_iter().chain([
            ("bodkin_event_log_bytes", "Bytes of the event log's files.", bytes),
            ("bodkin_event_log_events", "Events that are kept.", records),
            ("bodkin_event_log_suspended", "1 while the disk takes nothing and events are not kept.", suspended),
        ]);
        for (name, help, value) in gauges {
            push(&mut text, format_args!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n"));
        }
        for (name, help, value) in counters {
            push(&mut text, format_args!("# HELP {name} {help}\n# TYPE {name} counter\n{name} {}\n", value.load(Relaxed)));
        }
        self.push_deliveries(&mut text);
        self.push_stages(&mut text);
        text
    }

    /// How many pushed subscriptions are in which state.
    fn push_deliveries(&self, text: &mut String) {
        const NAME: &str = "bodkin_push_subscriptions";
        let mut counts = [0u64; State::ALL.len()];
        for delivery in self.api.push.deliveries.all().values() {
            counts[delivery.state() as usize] += 1;
        }
        push(text, format_args!("# HELP {NAME} Pushed subscriptions by the state of their delivery.\n# TYPE {NAME} gauge\n"));
        for (state, count) in State::ALL.into_iter().zip(counts) {
            push(text, format_args!("{NAME}{{state=\"{}\"}} {count}\n", state.name()));
        }
    }

    /// The stages with coarse bounds; the whole histograms are at `/api/v1/stages`.
    fn push_stages(&self, text: &mut String) {
        const NAME: &str = "bodkin_stage_seconds";
        push(text, format_args!("# HELP {NAME} Time of the stages of an answer's making.\n# TYPE {NAME} histogram\n"));
        for system in CoreSystem::ALL {
            for stage in Stage::ALL {
                let histogram = self.stages.of(system, stage);
                let labels = format!("system=\"{}\",stage=\"{}\"", system.name(), stage.name());
                let buckets = histogram.buckets();
                // From 1 us to 17.2 s, each bound four times the one before.
                for exponent in (10..=34).step_by(2) {
                    let bound_ns = 1u64 << exponent;
                    let below: u64 = buckets.iter().take_while(|(upper, _)| *upper < bound_ns).map(|(_, count)| count).sum();
                    push(text, format_args!("{NAME}_bucket{{{labels},le=\"{}\"}} {below}\n", bound_ns as f64 / 1e9));
                }
                let count: u64 = buckets.iter().map(|(_, count)| count).sum();
                push(text, format_args!("{NAME}_bucket{{{labels},le=\"+Inf\"}} {count}\n"));
                push(text, format_args!("{NAME}_sum{{{labels}}} {}\n{NAME}_count{{{labels}}} {count}\n", histogram.sum_ns() as f64 / 1e9));
            }
        }
    }
}

/// The answer to a path or method that no operation is described for, and to the question which there are.
fn unroutable(request: &Request) -> Option<Answer> {
    let path = &request.path;
    let methods = document::methods_at(path);
    let asked = if request.method == Method::Head { Method::Get } else { request.method };
    let is_api = path.starts_with(api::BASE);
    if methods.is_empty() {
        let problem = || Answer::problem(404, "Not found", &format!("Nothing is at {path}."));
        return Some(if is_api { problem() } else { Answer::not_found(path, now()) });
    }
    if methods.contains(&asked) {
        return None;
    }
    let allow = match asked {
        Method::Options => route::allow_for_options(&methods, methods.contains(&Method::Get)),
        _ => route::allow(&methods),
    };
    let answer = match asked {
        Method::Options => Answer::empty(200),
        _ if is_api => Answer::problem(405, "Method not allowed", &format!("This resource takes {allow}.")),
        _ => Answer::empty(405),
    };
    Some(Answer { header: Some(("Allow", allow)), ..answer })
}

fn push(text: &mut String, part: std::fmt::Arguments<'_>) {
    text.write_fmt(part).expect("a string takes everything");
}

/// `VmRSS` of this process; 0 where the system does not tell.
fn resident_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}
