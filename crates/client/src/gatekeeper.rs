//! Calls to the management of Gatekeeper and Gateway, which Bodkin's own port serves too: other clouds, the relays by which they are reached, and the tunnels to them.

use bodkin_arrowhead::{
    core_service::CoreSystem,
    form::{ActiveSession, CloudRequest, RelayRequest},
};
use http::Method;
use serde_json::json;

use crate::{
    CallError, LogQuery, Monitor, Page,
    answer::{
        AcceptedEvents, DialogueTimes, GatewaySession, HeardEvents, Introduction, KnownCloud, KnownRelay, List, LogEntry, PingedCloud,
        RelayState, SharedEvents, TestedRelay,
    },
    query_string::path_with,
};

const CLOUDS: &str = "/gatekeeper/mgmt/clouds";
const RELAYS: &str = "/gatekeeper/mgmt/relays";
const SESSIONS: &str = "/gateway/mgmt/sessions";

impl Monitor {
    /// All clouds that are known, the own one among them.
    pub async fn clouds(&self, page: &Page) -> Result<List<KnownCloud>, CallError> {
        self.connection().get(&page.of(CLOUDS, &[])).await
    }

    /// Makes another cloud known.
    pub async fn add_cloud(&self, form: &CloudRequest) -> Result<KnownCloud, CallError> {
        let made: List<KnownCloud> = self.connection().ask(Method::POST, CLOUDS, Some(&[form])).await?;
        made.data.into_iter().next().ok_or_else(|| self.nothing_made(CLOUDS))
    }

    /// Replaces what is known of another cloud.
    pub async fn replace_cloud(&self, id: i64, form: &CloudRequest) -> Result<KnownCloud, CallError> {
        self.connection().ask(Method::PUT, &format!("{CLOUDS}/{id}"), Some(form)).await
    }

    /// Forgets another cloud, with its rules and systems.
    pub async fn remove_cloud(&self, id: i64) -> Result<(), CallError> {
        self.connection().delete(&format!("{CLOUDS}/{id}")).await
    }

    /// All relays that are known.
    pub async fn relays(&self, page: &Page) -> Result<List<KnownRelay>, CallError> {
        self.connection().get(&page.of(RELAYS, &[])).await
    }

    /// How it is with the connections to relays.
    pub async fn relay_states(&self) -> Result<List<RelayState>, CallError> {
        self.connection().get("/api/v1/clouds/relays").await
    }

    /// Makes a relay known.
    pub async fn add_relay(&self, form: &RelayRequest) -> Result<KnownRelay, CallError> {
        let made: List<KnownRelay> = self.connection().ask(Method::POST, RELAYS, Some(&[form])).await?;
        made.data.into_iter().next().ok_or_else(|| self.nothing_made(RELAYS))
    }

    /// Forgets a relay; the last one by which a cloud's gatekeeper is reached stays.
    pub async fn remove_relay(&self, id: i64) -> Result<(), CallError> {
        self.connection().delete(&format!("{RELAYS}/{id}")).await
    }

    /// What another cloud's operator needs to know of this one.
    pub async fn introduction(&self) -> Result<Introduction, CallError> {
        self.connection().get("/api/v1/clouds/introduction").await
    }

    /// Asks another cloud's gatekeeper whether it is there. The cloud waits as long as its `neighbor_timeout_ms`; [`Limits::answer_timeout`](crate::Limits::answer_timeout) should be longer.
    pub async fn ping_cloud(&self, id: i64) -> Result<PingedCloud, CallError> {
        self.connection().ask(Method::POST, &format!("/api/v1/clouds/{id}/ping"), None::<&()>).await
    }

    /// Tests a relay together with another cloud: the one of this row id, or one by which the other cloud is called. Where messages are lost that takes
    /// minutes; [`Limits::answer_timeout`](crate::Limits::answer_timeout) should be longer.
    pub async fn test_relay(&self, cloud: i64, relay: Option<i64>) -> Result<TestedRelay, CallError> {
        let path = format!("/api/v1/clouds/{cloud}/relay-test");
        let id = relay.map(|id| id.to_string());
        let path = id.map_or_else(|| path.clone(), |id| path_with(&path, &[("relay", id.as_str())]));
        self.connection().ask(Method::POST, &path, None::<&()>).await
    }

    /// Shares an event type with another cloud, whose row has this id.
    pub async fn share_event(&self, cloud: i64, event_type: &str, deadline_ms: i64) -> Result<SharedEvents, CallError> {
        let form = json!({"eventType": event_type, "deadlineMs": deadline_ms});
        self.connection().ask(Method::POST, &format!("/api/v1/clouds/{cloud}/shared-events"), Some(&form)).await
    }

    /// Ends a share, or any other subscription, by its row id.
    pub async fn remove_shared_events(&self, id: i64) -> Result<(), CallError> {
        self.connection().delete(&format!("/eventhandler/mgmt/subscriptions/{id}")).await
    }

    /// Takes events of a type from another cloud, whose row has this id.
    pub async fn accept_events(&self, cloud: i64, event_type: &str) -> Result<AcceptedEvents, CallError> {
        self.connection()
            .ask(Method::POST, &format!("/api/v1/clouds/{cloud}/accepted-events"), Some(&json!({"eventType": event_type})))
            .await
    }

    /// Takes them no more.
    pub async fn refuse_events(&self, cloud: i64, event_type: &str) -> Result<(), CallError> {
        let path = path_with(&format!("/api/v1/clouds/{cloud}/accepted-events"), &[("event_type", event_type)]);
        self.connection().delete(&path).await
    }

    /// Which event types are accepted of other clouds, and what has come of their events.
    pub async fn heard_events(&self) -> Result<List<HeardEvents>, CallError> {
        self.connection().get("/api/v1/clouds/heard-events").await
    }

    /// How long the parts of dialogues with other clouds have taken since the start.
    pub async fn dialogue_times(&self) -> Result<DialogueTimes, CallError> {
        self.connection().get("/api/v1/stages").await
    }

    /// Tunnels to and from other clouds, and those that have ended last.
    pub async fn gateway_sessions(&self) -> Result<List<GatewaySession>, CallError> {
        self.connection().get("/api/v1/gateway-sessions").await
    }

    /// The sessions that are open, as the Gateway's management has them.
    pub async fn active_sessions(&self, page: &Page) -> Result<List<ActiveSession>, CallError> {
        self.connection().get(&page.of(SESSIONS, &[])).await
    }

    /// Ends a session.
    pub async fn close_session(&self, session: &ActiveSession) -> Result<(), CallError> {
        self.connection().tell(Method::POST, &format!("{SESSIONS}/close"), Some(session)).await
    }

    /// What a core system logged, by Bodkin's own port.
    pub async fn system_logs(&self, system: CoreSystem, query: &LogQuery, page: &Page) -> Result<List<LogEntry>, CallError> {
        self.connection().get(&page.of(&format!("/{}/mgmt/logs", system.name()), &query.parameters())).await
    }

    fn nothing_made(&self, path: &str) -> CallError {
        CallError::Unexpected {
            address: self.address(),
            status: http::StatusCode::CREATED,
            body: format!("a list without a row to POST {path}"),
        }
    }
}
