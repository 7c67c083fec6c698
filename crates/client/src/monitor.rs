//! Calls to Bodkin's own port (8440): readiness, deliveries, dead letters, event types, the event log, states of services,
//! explanations.

use bodkin_arrowhead::{
    form::{OrchestrationForm, ServiceQueryForm},
    onboarding::GrantRequest,
};
use http::Method;
use serde_json::{Map, Value};

use crate::{
    answer::{
        AccessExplanation, AdoptedLane, DashboardLink, DeadLetter, Delivery, EndedSessions, EventLogState, EventTypeState,
        ExplainedOrchestration, Explanation, GraphMove, GraphState, HandedOver, List, MoveForm, NodeOverview, NodeState, OnboardingGrant,
        PlatformState, RealTimeTopic, Removed, Replayed, ServiceQueryResult, ServiceState,
    },
    connection::Connection,
    error::CallError,
    limits::Limits,
    page::Page,
    query_string::path_with,
    security::Security,
};

const DELIVERIES: &str = "/api/v1/subscriptions";
const DEAD_LETTERS: &str = "/api/v1/dead-letters";
const TOPICS: &str = "/api/v1/topics";
const GRAPHS: &str = "/api/v1/graphs";
const GRANTS: &str = "/api/v1/onboarding/grants";

/// Bodkin's own port, with a kept connection.
#[derive(Debug)]
pub struct Monitor {
    connection: Connection,
}

impl Monitor {
    /// The port at `host:port`, or of both nodes of a pair (`host:port,host:port`); nothing is connected before the first call.
    pub fn new(address: impl ToString, limits: Limits) -> Self {
        Self { connection: Connection::new(address, limits) }
    }

    /// As [`Self::new`] over TLS.
    pub fn secure(address: impl ToString, limits: Limits, security: &Security) -> Self {
        Self { connection: Connection::to_core_system(address, limits, security) }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Host and port of it.
    pub fn address(&self) -> String {
        self.connection.address()
    }

    /// Whether every listener answers and no shutdown has begun.
    pub async fn is_ready(&self) -> Result<bool, CallError> {
        Ok(self.connection.send(Method::GET, "/readyz", None).await?.status.is_success())
    }

    /// A metric without labels; `None` if there is none of this name.
    pub async fn gauge(&self, name: &str) -> Result<Option<f64>, CallError> {
        let answer = self.connection.send(Method::GET, "/metrics", None).await?;
        let text = String::from_utf8_lossy(&answer.body);
        Ok(text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok()))
    }

    /// How each pushed subscription is delivered.
    pub async fn deliveries(&self) -> Result<List<Delivery>, CallError> {
        self.connection.get(DELIVERIES).await
    }

    /// How one is.
    pub async fn delivery(&self, id: i64) -> Result<Delivery, CallError> {
        self.connection.get(&format!("{DELIVERIES}/{id}")).await
    }

    /// Pushes nothing to a subscriber until [`Self::resume`]; its events stay in the event log.
    pub async fn pause(&self, id: i64) -> Result<Delivery, CallError> {
        self.connection.ask(Method::POST, &format!("{DELIVERIES}/{id}/pause"), None::<&()>).await
    }

    /// Pushes to a subscriber again, at once.
    pub async fn resume(&self, id: i64) -> Result<Delivery, CallError> {
        self.connection.ask(Method::POST, &format!("{DELIVERIES}/{id}/resume"), None::<&()>).await
    }

    /// Events that a subscriber did not take; without `subscription` those of all.
    pub async fn dead_letters(&self, subscription: Option<i64>, page: &Page) -> Result<List<DeadLetter>, CallError> {
        let id = subscription.map(|id| id.to_string());
        self.connection.get(&page.of(DEAD_LETTERS, &of_subscription(id.as_deref()))).await
    }

    /// Pushes dead letters again, in order; what is taken is removed.
    pub async fn replay_dead_letters(&self, subscription: Option<i64>) -> Result<Replayed, CallError> {
        let id = subscription.map(|id| id.to_string());
        let path = path_with(&format!("{DEAD_LETTERS}/replay"), &of_subscription(id.as_deref()));
        self.connection.ask(Method::POST, &path, None::<&()>).await
    }

    /// Removes dead letters.
    pub async fn remove_dead_letters(&self, subscription: Option<i64>) -> Result<Removed, CallError> {
        let id = subscription.map(|id| id.to_string());
        self.connection.ask(Method::DELETE, &path_with(DEAD_LETTERS, &of_subscription(id.as_deref())), None::<&()>).await
    }

    /// Whether a consumer may use a service, and why: both are named, or the consumer by its id. Further parameters are
    /// `provider` (name or id) and `interface`, which may be repeated.
    pub async fn explain_authorization(&self, consumer: &str, service: &str, further: &[(&str, &str)]) -> Result<Explanation, CallError> {
        self.explain(("consumer", consumer), service, further).await
    }

    /// The same for the systems of another cloud, `OPERATOR/NAME`.
    pub async fn explain_intercloud(&self, cloud: &str, service: &str, further: &[(&str, &str)]) -> Result<Explanation, CallError> {
        self.explain(("cloud", cloud), service, further).await
    }

    async fn explain(&self, consumer: (&str, &str), service: &str, further: &[(&str, &str)]) -> Result<Explanation, CallError> {
        let parameters = [&[consumer, ("service", service)], further].concat();
        self.connection.get(&path_with("/api/v1/authorization/explain", &parameters)).await
    }

    /// The services that fit, whoever may use them: for the operator, whom the Service Registry's query is not for.
    pub async fn find_services(&self, form: &ServiceQueryForm) -> Result<ServiceQueryResult, CallError> {
        self.connection.ask(Method::POST, "/api/v1/services/query", Some(form)).await
    }

    /// What a consumer would be given, and why. Nothing is kept by it.
    pub async fn explain_orchestration(&self, form: &OrchestrationForm) -> Result<ExplainedOrchestration, CallError> {
        self.connection.ask(Method::POST, "/api/v1/orchestration?explain=true", Some(form)).await
    }

    /// Whether a caller (the name of a system, or a whole common name) may make a request to a path. Further parameters are
    /// `method`, `system`, `service` and `external`.
    pub async fn explain_access(&self, caller: &str, path: &str, further: &[(&str, &str)]) -> Result<AccessExplanation, CallError> {
        let parameters = [&[("caller", caller), ("path", path)], further].concat();
        self.connection.get(&path_with("/api/v1/access/explain", &parameters)).await
    }

    /// Grants by which new systems come to their certificates.
    pub async fn onboarding_grants(&self) -> Result<List<OnboardingGrant>, CallError> {
        self.connection.get(GRANTS).await
    }

    /// Makes a grant; the answer has its secret, which nobody is told again.
    pub async fn grant_onboarding(&self, request: &GrantRequest) -> Result<OnboardingGrant, CallError> {
        self.connection.ask(Method::POST, GRANTS, Some(request)).await
    }

    /// Takes a grant back.
    pub async fn remove_onboarding_grant(&self, id: i64) -> Result<(), CallError> {
        self.connection.delete(&format!("{GRANTS}/{id}")).await
    }

    /// All real-time topics.
    pub async fn topics(&self) -> Result<List<RealTimeTopic>, CallError> {
        self.connection.get(TOPICS).await
    }

    /// The node at a glance.
    pub async fn overview(&self) -> Result<NodeOverview, CallError> {
        self.connection.get("/api/v1/overview").await
    }

    /// The nodes that serve this cloud from a database that they share; none of a cloud with a database of its own.
    pub async fn nodes(&self) -> Result<List<NodeState>, CallError> {
        self.connection.get("/api/v1/nodes").await
    }

    /// What deadlines and leases count on, and what the machine shows of it.
    pub async fn platform(&self) -> Result<PlatformState, CallError> {
        self.connection.get("/api/v1/platform").await
    }

    /// Has the other node of a reliable pair lead; the answer comes when it does.
    pub async fn hand_over(&self) -> Result<HandedOver, CallError> {
        self.connection.ask(Method::POST, "/api/v1/pair/hand-over", None::<&()>).await
    }

    /// Makes a link that signs the operator's browser in to the dashboard, once.
    ///
    /// # Errors
    /// Returns an error if the caller is not the operator or is at another machine, or if too many links are pending.
    pub async fn make_dashboard_link(&self, expires_in_seconds: u64) -> Result<DashboardLink, CallError> {
        let form = serde_json::json!({"expiresInSeconds": expires_in_seconds});
        self.connection.ask(Method::POST, "/api/v1/dashboard/links", Some(&form)).await
    }

    /// Ends every session of the dashboard, and withdraws every pending link.
    ///
    /// # Errors
    /// Returns an error if the caller is not the operator.
    pub async fn end_dashboard_sessions(&self) -> Result<EndedSessions, CallError> {
        self.connection.ask(Method::DELETE, "/api/v1/dashboard/sessions", None::<&()>).await
    }

    /// Has a stopped lane to the fleet's stream continue behind another process's batch.
    ///
    /// # Errors
    /// Returns an error if there is no such lane, or the lane does not stand.
    pub async fn adopt_lane(&self, lane: &str) -> Result<AdoptedLane, CallError> {
        self.connection.ask(Method::POST, &path_with("/api/v1/fleet/adopt", &[("lane", lane)]), None::<&()>).await
    }

    /// Makes an event type a real-time topic: the keys of a topic in a file of topics, times with their unit in the key.
    pub async fn declare_topic(&self, declaration: &Map<String, Value>) -> Result<RealTimeTopic, CallError> {
        self.connection.ask(Method::POST, TOPICS, Some(declaration)).await
    }

    /// Takes the promises of an event type back.
    pub async fn remove_topic(&self, event_type: &str) -> Result<(), CallError> {
        self.connection.delete(&path_with(TOPICS, &[("event_type", event_type)])).await
    }

    /// All event-processing graphs.
    pub async fn graphs(&self) -> Result<List<GraphState>, CallError> {
        self.connection.get(GRAPHS).await
    }

    /// Has a graph run, in the place of the one of its name; `file` is the text of its file. While an operator of that one is between two edges this is refused, unless `force` is given: it is lost then.
    pub async fn deploy_graph(&self, file: &str, force: bool) -> Result<GraphState, CallError> {
        self.connection.ask(Method::POST, GRAPHS, Some(&serde_json::json!({ "file": file, "force": force }))).await
    }

    /// A step of the move of an operator to another edge, as far as this edge has to do with it.
    pub async fn move_operator(&self, form: &MoveForm) -> Result<GraphMove, CallError> {
        self.connection.ask(Method::POST, &format!("{GRAPHS}/move"), Some(form)).await
    }

    /// Has a graph run no more. While an operator of it is between two edges this is refused, unless `force` is given: it is lost then.
    pub async fn remove_graph(&self, name: &str, force: bool) -> Result<(), CallError> {
        let force = if force { "true" } else { "false" };
        self.connection.delete(&path_with(GRAPHS, &[("name", name), ("force", force)])).await
    }

    /// All event types.
    pub async fn event_types(&self) -> Result<List<EventTypeState>, CallError> {
        self.connection.get("/api/v1/event-types").await
    }

    /// The event log as it is.
    pub async fn event_log(&self) -> Result<EventLogState, CallError> {
        self.connection.get("/api/v1/event-log").await
    }

    /// What is known of the life of each service.
    pub async fn service_states(&self) -> Result<List<ServiceState>, CallError> {
        self.connection.get("/api/v1/services").await
    }
}

fn of_subscription(id: Option<&str>) -> Vec<(&'static str, &str)> {
    id.map(|id| ("subscription", id)).into_iter().collect()
}
