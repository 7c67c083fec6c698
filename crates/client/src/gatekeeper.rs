//! Calls to the Gatekeeper's management, which Bodkin's own port serves too: other clouds, and the relays by which they are reached.

use bodkin_arrowhead::form::{CloudRequest, RelayRequest};
use http::Method;

use crate::{
    CallError, LogQuery, Monitor, Page,
    answer::{Introduction, KnownCloud, KnownRelay, List, LogEntry, PingedCloud, RelayState},
};

const CLOUDS: &str = "/gatekeeper/mgmt/clouds";
const RELAYS: &str = "/gatekeeper/mgmt/relays";

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

    /// Asks another cloud's gatekeeper whether it is there.
    pub async fn ping_cloud(&self, id: i64) -> Result<PingedCloud, CallError> {
        self.connection().ask(Method::POST, &format!("/api/v1/clouds/{id}/ping"), None::<&()>).await
    }

    /// What the Gatekeeper logged.
    pub async fn gatekeeper_logs(&self, query: &LogQuery, page: &Page) -> Result<List<LogEntry>, CallError> {
        self.connection().get(&page.of("/gatekeeper/mgmt/logs", &query.parameters())).await
    }

    fn nothing_made(&self, path: &str) -> CallError {
        CallError::Unexpected {
            address: self.address(),
            status: http::StatusCode::CREATED,
            body: format!("a list without a row to POST {path}"),
        }
    }
}
