//! Bodkin's own interface under `/api/v1`: what Arrowhead's has no word for. Errors are problem details (RFC 9457).

mod audit;
mod certificates;
mod clouds;
mod dead_letters;
mod explain;
mod graphs;
mod neighbours;
mod nodes;
mod onboarding;
mod pair;
mod platform;
mod quality;
mod services;
mod shelves;
pub mod streams;
mod subscriptions;
mod topics;

use std::{collections::BTreeSet, sync::Arc};

use bodkin_arrowhead::{page::PageRequest, service_registry::Deregistration, utc::UtcTime};
use bodkin_store::{
    Store, StoreError,
    event_log::{EventLogReader, LogState},
};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

pub use self::{audit::AuditReaders, onboarding::OnboardingApi, platform::ZmtpPlaces, shelves::Modeller};
use crate::{
    answer::Answer,
    audit::{Act, Audit},
    control::Control,
    fleet::FleetState,
    graph::Deployer,
    inbox::{Inbox, Message},
    pair::PairHandle,
    probe::Probes,
    push::PushContext,
    realtime::Realtime,
    request::Request,
    shelf::Shelf,
    stage::Stages,
    stall::Stalls,
    topics::RealTimeTopics,
};

/// What every path of it begins with.
pub const BASE: &str = "/api/v1/";

/// What the interface is made of.
pub struct Api {
    /// Durable state.
    pub store: Store,
    /// The decisions that are explained.
    pub control: Arc<Control>,
    /// Where time goes.
    pub stages: Arc<Stages>,
    /// The event log, unless it is switched off.
    pub log: Option<EventLogReader>,
    /// Event types whose publishers are answered when the event is synced, as stored.
    pub durable: BTreeSet<Box<str>>,
    /// How long the machine stalls.
    pub stalls: Arc<Stalls>,
    /// How the threads of the data plane are scheduled.
    pub realtime: Arc<Realtime>,
    /// Event-processing graphs.
    pub graphs: Arc<Deployer>,
    /// Where ZMTP is spoken.
    pub zmtp: ZmtpPlaces,
    /// What is told of forwarding to the fleet; `None`: nothing is forwarded.
    pub fleet: Option<Arc<FleetState>>,
    /// The same of the stream between nodes; `None`: there is none.
    pub node_events: Option<Arc<FleetState>>,
    /// Event types that are real-time topics.
    pub topics: Arc<RealTimeTopics>,
    /// The shard, which knows its topics.
    pub inbox: Arc<Inbox>,
    /// Where real-time topics and graphs are served, if not here.
    pub realtime_at: Vec<String>,
    /// The node of the reliable pair; `None` of a cloud by itself.
    pub pair: Option<PairHandle>,
    /// Deliveries to pushed subscriptions.
    pub push: PushContext,
    /// Which providers can be reached.
    pub probes: Arc<Probes>,
    /// When services go.
    pub deregistration: Deregistration,
    /// What became of operations.
    pub audit: Audit,
    /// Who reads of it.
    pub audit_readers: AuditReaders,
    /// How new systems come to their certificates.
    pub onboarding: OnboardingApi,
    /// Reports of measurements.
    pub reports: Shelf,
    /// Nets, calibrations and validations.
    pub models: Shelf,
    /// What draws and fits them.
    pub modeller: Option<Modeller>,
}

/// What an event type has seen since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TopicState {
    /// Its name as stored: upper-case.
    pub event_type: String,
    /// Events that were accepted.
    pub published: u64,
    /// Subscriptions by push.
    pub subscriptions: usize,
    /// Event streams that are live.
    pub streams: usize,
    /// Whether its publishers are answered when the event is synced.
    pub durable: bool,
}

impl Api {
    /// Answers a request below [`BASE`] for which there is a row in `document::monitor`.
    pub async fn answer(&self, request: &Request) -> Answer {
        let act = Act::of_own(request.path.strip_prefix(BASE).unwrap_or_default(), request.method);
        let unavailable = |why: String| Answer::problem(503, &why);
        self.audit.carry_out(act, request, unavailable, self.carry_out(request)).await
    }

    /// The stages of answers, and the parts of dialogues with other clouds.
    fn told_stages(&self) -> Value {
        let mut stages = self.stages.json();
        stages["dialogues"] = self.control.gatekeeper.as_ref().map_or_else(|| json!({}), |gatekeeper| gatekeeper.times.json());
        stages
    }

    async fn carry_out(&self, request: &Request) -> Answer {
        let path = request.path.strip_prefix(BASE).unwrap_or_default();
        match path {
            "platform" => self.platform(),
            "stages" => Answer::json(200, &self.told_stages()),
            "event-log" => self.event_log(),
            "event-types" => self.event_types().await,
            "streams" => self.streams().await,
            "fleet" => self.show_fleet(),
            "fleet/adopt" => self.adopt_lane(request),
            "services" => self.services(request),
            "quality" => self.quality(request),
            "services/query" => self.query_services(request).await,
            "access/explain" => self.explain_access(request),
            "authorization/explain" => self.explain_authorization(request),
            "orchestration" => self.orchestrate(request).await,
            "topics" => self.topics(request).await,
            "graphs" => self.graphs(request).await,
            "graphs/move" => self.move_operator(request).await,
            "audit" => self.show_audit_log(request).await,
            "audit/chains" => self.verify_logs_of_nodes().await,
            "nodes" => self.nodes(),
            "nodes/events" => self.show_node_events(),
            "pair/hand-over" => self.hand_over().await,
            "clouds" => self.list_clouds(),
            "gateway-sessions" => self.list_gateway_sessions(),
            "relays" => self.list_relays(),
            path if is_at(path, "clouds") => self.clouds(request).await,
            "stages/fits" => self.fits(request).await,
            path if is_at(path, "reports") => self.shelf(&self.reports, request).await,
            path if is_at(path, "models") => self.shelf(&self.models, request).await,
            path if is_at(path, "certificates") => self.certificates(request).await,
            path if is_at(path, "onboarding") => self.onboarding.answer(request).await,
            path if is_at(path, "subscriptions") => self.subscriptions(request).await,
            path if is_at(path, "dead-letters") => self.dead_letters(request).await,
            _ => Answer::problem(404, &format!("Nothing is at {}.", request.path)),
        }
    }

    /// What the event log holds; `None` if it is switched off.
    pub fn log_state(&self) -> Option<LogState> {
        self.log.as_ref().map(EventLogReader::state)
    }

    fn event_log(&self) -> Answer {
        let Some(state) = self.log_state() else {
            return Answer::problem(404, "The event log is switched off (event_log = false).");
        };
        let oldest = (state.first < state.next).then(|| UtcTime::from_unix_nanos(state.oldest_ns));
        Answer::json(
            200,
            &json!({
                "segments": state.segments,
                "bytes": state.bytes,
                "firstPosition": state.first.0,
                "nextPosition": state.next.0,
                "syncedPosition": state.synced.0,
                "oldest": oldest,
                "skipped": state.skipped,
                "suspended": state.suspended,
            }),
        )
    }

    fn show_node_events(&self) -> Answer {
        match &self.node_events {
            Some(events) => Answer::json(200, &events.view_between_nodes()),
            None => Answer::problem(404, "Events between nodes go by no stream (node_events_stream)."),
        }
    }

    fn show_fleet(&self) -> Answer {
        match &self.fleet {
            Some(fleet) => Answer::json(200, &fleet.view()),
            None => Answer::problem(404, "Nothing is forwarded to a fleet: the configuration has no table [fleet]."),
        }
    }

    /// Has a stopped lane continue behind another process's batch.
    fn adopt_lane(&self, request: &Request) -> Answer {
        let name = request.parameter("lane").unwrap_or_default();
        let lane = self.fleet.as_ref().and_then(|fleet| fleet.lanes.iter().find(|lane| lane.name == name));
        match lane {
            Some(lane) if lane.adopt() => Answer::json(200, &json!({ "lane": name })),
            Some(_) => Answer::problem(409, &format!("Lane {name} does not stand: nothing is to be decided.")),
            None => Answer::problem(404, &format!("There is no lane {name:?} to a fleet's stream.")),
        }
    }

    /// All event types that anybody has published, subscribed to or declared durable.
    async fn event_types(&self) -> Answer {
        let (ask, told) = oneshot::channel();
        self.inbox.post(Message::Topics(ask));
        let Ok(mut topics) = told.await else {
            return Answer::problem(503, "The local cloud is shutting down.");
        };
        topics.sort_unstable_by(|a, b| a.event_type.cmp(&b.event_type));
        let known = topics.len();
        for name in &self.durable {
            if topics[..known].binary_search_by(|topic| topic.event_type.as_str().cmp(name)).is_err() {
                topics.push(TopicState { event_type: name.to_string(), published: 0, subscriptions: 0, streams: 0, durable: true });
            }
        }
        topics.sort_unstable_by(|a, b| a.event_type.cmp(&b.event_type));
        list(&topics, topics.len() as u64)
    }
}

/// Whether a path is a resource or below it.
fn is_at(path: &str, resource: &str) -> bool {
    path.strip_prefix(resource).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Which page of a list is asked for: all of it without `page` and `item_per_page`.
fn asked_page(request: &Request) -> Result<PageRequest, Answer> {
    let refused = |why: &str| Answer::problem(400, why);
    let number = |name: &str| request.parameter(name).map(str::parse::<i64>).transpose();
    let (Ok(page), Ok(items)) = (number("page"), number("item_per_page")) else {
        return Err(refused("page and item_per_page are whole numbers."));
    };
    PageRequest::parse(page, items, None, None, "").map_err(|error| refused(&error.error_message))
}

/// A list and how many there are of all.
fn list(data: &[impl Serialize], count: u64) -> Answer {
    /// Written as it is, without a tree of values in between.
    #[derive(Serialize)]
    struct List<'d, T> {
        count: u64,
        data: &'d [T],
    }
    Answer::json(200, &List { count, data })
}

/// A change that breaks a rule, or that the database did not take.
fn not_stored(error: &StoreError) -> Answer {
    match error {
        StoreError::Refused(error) => Answer::problem(400, &error.error_message),
        StoreError::Unavailable(message) => Answer::problem(503, message),
    }
}
