//! Bodkin's own port: whether it lives, whether it is ready, and what it measures.

mod async_api;
mod certificates;
mod disk;
mod fleet;
mod graphs;
mod numbers;
mod overview;
mod pair;
mod quality;
mod quotas;
mod relay;
mod sign_in;
mod stalls;
mod tunnel;

use std::{
    fmt::Write,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use bodkin_arrowhead::{
    access::{Access, Denial, Why},
    core_service::CoreSystem,
};
use bodkin_store::Store;

pub(crate) use self::numbers::resident_memory_bytes;
use crate::{
    answer::Answer,
    api::{self, Api},
    control::now,
    dashboard::{self, sign_in::SignIn},
    disk::DataDisk,
    dns_sd::DnsSdCounts,
    document,
    live::{self, Board},
    node_events::Crossing,
    pair::{PairHandle, Trouble},
    push::delivery::State,
    quotas::Quotas,
    relay::server::RelayServer,
    request::{Method, Request},
    route,
    security::{Peer, Security},
    server::Port,
    shared,
    stage::{Histogram, Stage, Stages},
    topics::{RealTimeTopic, TopicCounts, parties::Awaited},
    trace::caused_by,
};

/// Real-time topics that have their own lines in the metrics, in the order of their event types; what the others count is summed under the event type "".
const METRICS_TOPICS_MAX: usize = 1_000;

/// A metric without a label: its name, what it means, and its value; durations are whole nanoseconds, and told in seconds by names that end so.
type Number = (&'static str, &'static str, u64);

/// A number as it is told: whole, or in seconds.
fn told(name: &str, value: u64) -> serde_json::Number {
    let seconds = || serde_json::Number::from_f64(value as f64 / 1e9).expect("it is finite");
    if name.ends_with("_seconds") { seconds() } else { value.into() }
}

const BUILD: &str = "bodkin_build_info";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is counted of each real-time topic: a part of the metric's name, what it means, and where it is.
type TopicCount = (&'static str, &'static str, fn(&TopicCounts) -> &AtomicU64);
const TOPIC_COUNTS: [TopicCount; 8] = [
    ("accepted", "Events of real-time topics that were taken.", |counts| &counts.accepted),
    ("excess", "Of these, events that came faster than their topic's period allows.", |counts| &counts.excess),
    ("refused", "Events of real-time topics that were not taken.", |counts| &counts.refused),
    (
        "publisher_rejected",
        "Events rejected because the topic's declaration does not name their publisher, or because no publisher slot was free.",
        |counts| &counts.publisher_rejected,
    ),
    ("dispatched", "Events of real-time topics handed to their subscribers.", |counts| &counts.dispatched),
    ("late", "Of these, events that were due before.", |counts| &counts.late),
    ("shed", "Events of real-time topics taken and dropped in front of their dispatch.", |counts| &counts.shed),
    ("lost", "Events of real-time topics that full subscriber queues have cost, once for each subscriber.", |counts| &counts.lost),
];

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
    /// Events that another cloud has taken later than their share says.
    pub shared_late: AtomicU64,
    /// Events that came by ZMTP sockets which take no answer (PUB, PUSH), and were refused.
    pub refused_untold: AtomicU64,
    /// Connections on the Event Handler's port.
    pub connections: AtomicU64,
    /// Links of the ZMTP port and path.
    pub zmtp_connections: AtomicU64,
    /// Event streams and pushed subscriptions.
    pub subscriptions: AtomicU64,
    /// As of the last second: events of real-time topics that wait for their turn.
    pub waiting: AtomicU64,
    /// Likewise: replicas that were sent to the Backup since the start.
    pub replicated: AtomicU64,
    /// Likewise, of these, those that were due before.
    pub replicated_late: AtomicU64,
    /// Likewise: replicas that were not needed, because their events were covered before.
    pub replicas_saved: AtomicU64,
    /// Services that are announced by multicast DNS.
    pub announced: Arc<DnsSdCounts>,
}

/// Answers on the monitor's port.
pub struct Monitor {
    /// For the sizes of things.
    pub store: Store,
    /// Where time goes.
    pub stages: Arc<Stages>,
    /// The control plane's connections.
    pub quotas: Quotas,
    /// The shard's counts.
    pub events: Arc<EventCounts>,
    /// By what accepted events go to the other nodes of this cloud.
    pub crossing: Option<Crossing>,
    /// Bodkin's own interface.
    pub api: Api,
    /// The node of the reliable pair; `None` of a cloud by itself.
    pub pair: Option<PairHandle>,
    /// The cloud's certificates; `None` in insecure mode.
    pub security: Option<Arc<Security>>,
    /// Browsers of the operator that are signed in; `None` in insecure mode.
    pub sign_in: Option<SignIn>,
    /// The relay inside this cloud.
    pub relay: Option<RelayServer>,
    /// Where the data directory is.
    pub disk: DataDisk,
    /// Where each port listens that is served, in the order of [`Port::ALL`].
    pub addresses: Vec<SocketAddr>,
    /// What live streams tell.
    pub live: Board,
    /// Whether every listener answers, and no shutdown has begun.
    pub ready: AtomicBool,
}

impl Monitor {
    /// Returns why requests have to go to another node; `None` if this one serves.
    fn unready(&self) -> Option<&'static str> {
        if !self.ready.load(Relaxed) {
            return Some("not ready\n");
        }
        if let Some(leadership) = self.pair.as_ref().map(|pair| pair.leadership()) {
            let troubles = leadership.troubles();
            if troubles.has(Trouble::Record) {
                return Some("the pair's record cannot be written\n");
            }
            if leadership.is_excluded() {
                return Some("this node's certificate is revoked, and it takes no part in the pair\n");
            }
            if !leadership.leads() {
                // The other node's ledger has the revocation, and refuses the connection by which this node would learn of it.
                let is_revoked_there = troubles.has(Trouble::RevokedThere);
                return Some(if is_revoked_there {
                    "this node's certificate is revoked at another node, which refuses it\n"
                } else {
                    "not leading\n"
                });
            }
        }
        self.api.graphs.table().is_exhausted().then_some("operators of graphs do not end\n")
    }

    /// Returns what `/readyz` says of a node that serves: 200, with what it refuses. Another node could not do better, or would lead.
    fn readiness(&self) -> Answer {
        let is_shared_away = self.store.standing().is_some_and(|standing| standing.away.is_some());
        let refused = if is_shared_away {
            return shared::readiness(&self.store);
        } else if self.disk.refuses() {
            "ready to read: the database takes no change, and changes are refused\n"
        } else if self.api.audit.log().check().is_err() {
            "ready to read: the audit log cannot be written, and changes are refused\n"
        } else if self.api.log_state().is_some_and(|log| log.suspended.is_some()) {
            "ready: the event log is suspended, and durable events are refused\n"
        } else {
            return shared::readiness(&self.store);
        };
        Answer::text(200, refused)
    }
}

impl Monitor {
    /// True if the sender may make the request, as far as method and path tell.
    pub fn admits(&self, request: &Request) -> bool {
        access(&request.path).admit(&request.caller).is_ok()
    }

    /// Answers one request.
    pub async fn answer(&self, request: &Request, peer: &Peer) -> Answer {
        if let Some(denial) = self.refuse(request) {
            return self.api.audit.denied(request, denial).await;
        }
        if let Some(answer) = self.sign_in(request, peer).await {
            return answer;
        }
        // The operator manages the core systems here as on their own ports: a page calls one port, and shows one certificate.
        if let Some(system) = managed(&request.path).filter(|system| self.serves(*system)) {
            return self.api.control.answer(system, request).await;
        }
        let (span, cause) = self.api.control.begin_answer_here(request);
        let answer = match cause {
            None => self.answer_here(request).await,
            cause => caused_by(cause, Box::pin(self.answer_here(request))).await,
        };
        self.api.control.end_answer_here(span, request, &answer);
        answer
    }

    /// Answers what is this port's own.
    async fn answer_here(&self, request: &Request) -> Answer {
        if let Some(pair) = self.pair.as_ref().filter(|pair| request.path == "/" && !pair.leadership().leads()) {
            // A database that cannot be read is no reason to say nothing.
            let leader = self.store.read(|draft| draft.leader()).await.ok().flatten();
            let page = dashboard::follower::page(request, pair.leadership(), leader.as_ref(), self.port_of(CoreSystem::EventHandler));
            return document::read_only(request.method, page);
        }
        let file = dashboard::answer(request, self.port_of(CoreSystem::EventHandler));
        if let Some(answer) = file.or_else(|| document::answer(Port::Monitor, request)).or_else(|| unroutable(request)) {
            return answer;
        }
        if let Err(fault) = document::query::check(request)
            && request.path.starts_with(api::BASE)
        {
            return Answer::problem(400, &fault.to_string());
        }
        match request.path.as_str() {
            "/healthz" => Answer::text(200, "ok\n"),
            "/readyz" => self.unready().map_or_else(|| self.readiness(), |why| Answer::text(503, why)),
            "/asyncapi.json" => self.async_api(request),
            "/api/v1/overview" => self.overview(),
            "/api/v1/live" => live::answer(request),
            "/metrics" => Answer { content_type: Some("text/plain; version=0.0.4; charset=utf-8"), ..Answer::text(200, self.metrics()) },
            _ => self.api.answer(request).await,
        }
    }

    fn serves(&self, system: CoreSystem) -> bool {
        Port::ALL.iter().take(self.addresses.len()).any(|port| *port == Port::System(system))
    }

    fn port_of(&self, system: CoreSystem) -> u16 {
        let at = Port::ALL.iter().position(|port| *port == Port::System(system)).expect("every core system has a port");
        self.addresses[at].port()
    }

    /// Prometheus's text form.
    fn metrics(&self) -> String {
        let mut text = String::with_capacity(32 * 1024);
        for (kind, numbers) in [("gauge", self.gauges()), ("counter", self.counters())] {
            for (name, help, value) in numbers {
                let value = told(name, value);
                push(&mut text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"));
            }
        }
        push(&mut text, format_args!("# HELP {BUILD} Which Bodkin this is.\n# TYPE {BUILD} gauge\n{BUILD}{{version=\"{VERSION}\"}} 1\n"));
        self.push_certificates(&mut text);
        self.push_deliveries(&mut text);
        self.push_topics(&mut text);
        self.push_graphs(&mut text);
        self.push_stages(&mut text);
        self.push_fleet_ages(&mut text);
        self.push_relay_refusals(&mut text);
        self.push_quotas(&mut text);
        text
    }

    /// What became of the events of each real-time topic.
    fn push_topics(&self, text: &mut String) {
        let topics = self.api.topics.all();
        let (told, summed) = topics.split_at(topics.len().min(METRICS_TOPICS_MAX));
        for (name, help, count) in TOPIC_COUNTS {
            push(text, format_args!("# HELP bodkin_topic_{name}_total {help}\n# TYPE bodkin_topic_{name}_total counter\n"));
            for topic in told {
                let event_type = label(&topic.event_type);
                let value = count(&topic.counts).load(Relaxed);
                push(text, format_args!("bodkin_topic_{name}_total{{event_type=\"{event_type}\"}} {value}\n"));
            }
            if !summed.is_empty() {
                let value: u64 = summed.iter().map(|topic| count(&topic.counts).load(Relaxed)).sum();
                push(text, format_args!("bodkin_topic_{name}_total{{event_type=\"\"}} {value}\n"));
            }
        }
        push_waits(text, &topics);
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
                let labels = format!("system=\"{}\",stage=\"{}\"", system.name(), stage.name());
                push_histogram(text, NAME, &labels, self.stages.of(system, stage));
            }
        }
    }
}

/// For how long each topic has waited for a required subscriber.
fn push_waits(text: &mut String, topics: &[Arc<RealTimeTopic>]) {
    const NAME: &str = "bodkin_topic_waiting_seconds";
    const HELP: &str = "Time for which a topic has rejected events because this required subscriber has not acknowledged earlier ones.";
    push(text, format_args!("# HELP {NAME} {HELP}\n# TYPE {NAME} gauge\n"));
    let at = now();
    for (event_type, Awaited { subscriber, since, .. }) in overview::waiting(topics).take(METRICS_TOPICS_MAX) {
        let (event_type, subscriber) = (label(&event_type), label(&subscriber));
        let waited_s = at.unix_seconds().saturating_sub(since.unix_seconds());
        push(text, format_args!("{NAME}{{event_type=\"{event_type}\",subscriber=\"{subscriber}\"}} {waited_s}\n"));
    }
}

/// Where new systems come to their certificate.
const ONBOARDING: &str = "/api/v1/onboarding";

/// Whom a path is for in secure mode.
pub fn access(path: &str) -> Access {
    match path {
        // Who comes to its first certificate has none; the secret is asked instead.
        "/healthz" | "/readyz" | ONBOARDING | sign_in::ENTER => Access::Anyone,
        _ if path.starts_with(api::BASE) => Access::Operator,
        _ => Access::Cloud,
    }
}

/// The answer to a request that its sender may not make.
fn refuse_stranger(request: &Request) -> Option<Answer> {
    access(&request.path).admit(&request.caller).err().map(|denial| denied(&denial, request))
}

/// 401 to whom we do not know, 403 to a system of the cloud.
pub fn denied(denial: &Denial, request: &Request) -> Answer {
    let told = match &*denial.caller.common_name {
        "" => "Show the certificate of a system of this cloud.".to_owned(),
        _ => format!("{}: {}.", denial.error(&request.url).error_message, denial.why),
    };
    let answer = match denial.why {
        Why::NoSystemOfCloud => Answer::problem(401, &told),
        _ => Answer::problem(403, &told),
    };
    answer.because(&denial.why.to_string())
}

/// The core system whose management a path is.
fn managed(path: &str) -> Option<CoreSystem> {
    let (base, below) = path.strip_prefix('/')?.split_once('/')?;
    let is_management = below == "mgmt" || below.starts_with("mgmt/");
    CoreSystem::ALL.into_iter().find(|system| is_management && system.name() == base)
}

/// The answer to a path or method that no operation is described for, and to the question which there are.
fn unroutable(request: &Request) -> Option<Answer> {
    let path = &request.path;
    let methods = document::methods_at(path);
    let asked = if request.method == Method::Head { Method::Get } else { request.method };
    let is_api = path.starts_with(api::BASE);
    if methods.is_empty() {
        let problem = || Answer::problem(404, &format!("Nothing is at {path}."));
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
        _ if is_api => Answer::problem(405, &format!("This resource takes {allow}.")),
        _ => Answer::empty(405),
    };
    Some(Answer { header: Some(("Allow", allow)), ..answer })
}

fn push(text: &mut String, part: std::fmt::Arguments<'_>) {
    text.write_fmt(part).expect("a string takes everything");
}

/// A histogram with coarse bounds, and with these labels.
fn push_histogram(text: &mut String, name: &str, labels: &str, histogram: &Histogram) {
    let buckets = histogram.buckets();
    // From 1 us to 17.2 s, each bound four times the one before.
    for exponent in (10..=34).step_by(2) {
        let bound_ns = 1u64 << exponent;
        let below: u64 = buckets.iter().take_while(|(upper, _)| *upper < bound_ns).map(|(_, count)| count).sum();
        push(text, format_args!("{name}_bucket{{{labels},le=\"{}\"}} {below}\n", bound_ns as f64 / 1e9));
    }
    let count: u64 = buckets.iter().map(|(_, count)| count).sum();
    push(text, format_args!("{name}_bucket{{{labels},le=\"+Inf\"}} {count}\n"));
    push(text, format_args!("{name}_sum{{{labels}}} {}\n{name}_count{{{labels}}} {count}\n", histogram.sum_ns() as f64 / 1e9));
}

/// A label's value, which escapes these three (Prometheus's text form).
fn label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::{caller::Caller, common_name::CloudCommonName};

    use super::*;

    /// The status of the refusal to each of: nobody, a system of another cloud, a system, a core system, the operator.
    fn check(path: &str, expected: [Option<u16>; 5]) {
        let cloud = CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap();
        let names = ["", "a.other.operator.arrowhead.eu", "a.cloud.operator.arrowhead.eu", "orchestrator.cloud.operator.arrowhead.eu"];
        let callers = names.into_iter().chain(["sysop.cloud.operator.arrowhead.eu"]).map(|name| Caller::certified(name, &cloud));
        for method in [Method::Get, Method::Head, Method::Post, Method::Delete, Method::Options] {
            let statuses = callers.clone().map(|caller| refuse_stranger(&request(method, path, caller)).map(|answer| answer.status));
            assert_eq!(statuses.collect::<Vec<_>>(), expected, "{method:?} {path}");
            assert!(refuse_stranger(&request(method, path, Caller::Anonymous)).is_none(), "insecure mode refuses nobody");
        }
    }

    fn request(method: Method, path: &str, caller: Caller) -> Request {
        Request {
            caller,
            sender: None,
            method,
            path: path.into(),
            query: Vec::new(),
            url: format!("http://h:8440{path}"),
            content_type: String::new(),
            bearer: None,
            if_none_match: None,
            accepts_html: false,
            is_forged: false,
            trace: None,
            says_empty: false,
            body: Vec::new(),
        }
    }

    #[test]
    fn without_a_credential_only_health_is_told_and_first_certificates_given() {
        check("/healthz", [None; 5]);
        check("/readyz", [None; 5]);
        check(ONBOARDING, [None; 5]);
        for path in ["/", "/dashboard.js", "/metrics", "/openapi.json", "/v2/api-docs", "/swagger-ui.html", "/nothing", "/healthz/x"] {
            check(path, [Some(401), Some(401), None, None, None]);
        }
        for row in document::monitor_paths().filter(|path| path.starts_with(api::BASE) && path != ONBOARDING) {
            check(&row.replace("{id}", "1"), [Some(401), Some(401), Some(403), Some(403), None]);
        }
        check("/api/v1/nothing", [Some(401), Some(401), Some(403), Some(403), None]);
    }

    #[test]
    fn a_refusal_is_a_problem_that_says_what_to_do() {
        let cloud = CloudCommonName::parse("cloud.operator.arrowhead.eu").unwrap();
        let told = |caller: Caller| {
            let answer = refuse_stranger(&request(Method::Get, "/api/v1/stages", caller)).unwrap();
            assert_eq!(answer.content_type, Some("application/problem+json"));
            String::from_utf8(answer.body).unwrap()
        };
        assert!(told(Caller::unidentified()).contains("Show the certificate of a system of this cloud."));
        let sensor = told(Caller::certified("sensor.cloud.operator.arrowhead.eu", &cloud));
        assert!(sensor.contains("sensor.cloud.operator.arrowhead.eu is unauthorized to access http://h:8440/api/v1/stages"), "{sensor}");
        assert!(sensor.contains("this is for sysop only"), "{sensor}");
    }
}
