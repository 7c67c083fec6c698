//! Endpoints of the Gateway (reference section 8).

use std::{collections::BTreeSet, sync::Arc};

use bodkin_arrowhead::{
    core_service::CoreSystem,
    error::ArrowheadError,
    form::{ActiveSession, ConsumerConnectionRequest, ProviderConnectionRequest},
    gateway::{ConsumerConnection, ProviderConnection},
    json,
    page::{self, Direction},
};
use serde_json::json;

use super::{Control, Result, page_answer, page_request};
use crate::{
    answer::{Answer, Refusal},
    gateway::{Gateway, OpenedTunnel},
    request::Request,
};

const SYSTEM: CoreSystem = CoreSystem::Gateway;
const CONNECT_PROVIDER: &str = "/gateway/connect_provider";
const CONNECT_CONSUMER: &str = "/gateway/connect_consumer";
const CLOSE_SESSIONS: &str = "/gateway/close_sessions";
const SESSIONS: &str = "/gateway/mgmt/sessions";
const CLOSE: &str = "/gateway/mgmt/sessions/close";
/// Upstream's words for a session that is not there.
const NOT_FOUND: &str = "Active session not found.";

impl Control {
    /// Who carries tunnels.
    pub(in crate::control) fn tunnels(&self) -> Result<&Arc<Gateway>> {
        let none = || {
            let why = "there is none in insecure mode, and beside key stores only with gateway.p12";
            ArrowheadError::arrowhead(format!("This cloud has no Gateway: {why}."))
        };
        Ok(self.gateway.as_ref().ok_or_else(none)?)
    }

    pub(super) fn gateway_key(&self) -> Result<Answer> {
        Ok(Answer::json(200, &self.tunnels()?.authentication_info()))
    }

    pub(super) async fn connect_provider(&self, request: &Request) -> Result<Answer> {
        let form: ProviderConnectionRequest = self.form(SYSTEM, request)?;
        let connection = ProviderConnection::parse(&form, CONNECT_PROVIDER)?;
        let OpenedTunnel { queue_id, peer_name, key } = self.tunnels()?.connect_provider(connection).await?;
        let opened = json!({"queueId": queue_id.as_str(), "peerName": peer_name.to_string(), "providerGWPublicKey": key});
        Ok(Answer::json(201, &opened))
    }

    pub(super) async fn connect_consumer(&self, request: &Request) -> Result<Answer> {
        let form: ConsumerConnectionRequest = self.form(SYSTEM, request)?;
        let connection = ConsumerConnection::parse(&form, CONNECT_CONSUMER)?;
        Ok(Answer::json(201, &self.tunnels()?.connect_consumer(connection).await?))
    }

    /// The ports whose sessions are not ended, and why.
    pub(super) fn close_sessions(&self, request: &Request) -> Result<Answer> {
        let ports: Vec<Option<String>> = self.parsed(SYSTEM, request, json::parse_texts)?;
        if ports.is_empty() {
            return Err(ArrowheadError::bad_payload("The list of ports is empty.", CLOSE_SESSIONS).into());
        }
        let number = |port: Option<String>| port.and_then(|port| port.trim().parse::<i64>().ok());
        let numbers = ports.into_iter().map(|port| number(port).ok_or_else(|| Refusal::malformed("a port is not a number")));
        let ports = numbers.collect::<Result<BTreeSet<i64>>>()?;
        let gateway = self.tunnels()?;
        let failed = ports.into_iter().filter_map(|port| {
            let error = match u16::try_from(port) {
                Ok(number) if gateway.close_port(number, "the Choreographer") => return None,
                Ok(_) => NOT_FOUND.to_owned(),
                Err(_) => format!("Port must be between 0 and 65535, not {port}."),
            };
            Some(json!({"port": port, "error": error}))
        });
        Ok(Answer::json(200, &failed.collect::<Vec<_>>()))
    }

    pub(super) fn list_sessions(&self, request: &Request) -> Result<Answer> {
        let asked = page_request(request, SESSIONS)?;
        let mut active = self.gateway.as_ref().map(|gateway| gateway.active()).unwrap_or_default();
        if asked.direction == Direction::Descending {
            active.reverse();
        }
        let count = active.len();
        let (page, items) = asked.window.unwrap_or((0, usize::MAX));
        let data: Vec<ActiveSession> = active.into_iter().skip(page.saturating_mul(items)).take(items).collect();
        page_answer(Ok(page::Page { data, count }))
    }

    pub(super) fn close_session(&self, request: &Request) -> Result<Answer> {
        let form: ActiveSession = self.form(SYSTEM, request)?;
        let queue_id = form.queue_id.as_deref().map(str::trim).filter(|id| !id.is_empty());
        let queue_id = queue_id.ok_or_else(|| ArrowheadError::bad_payload("Queue id is null or blank.", CLOSE))?;
        if self.tunnels()?.close(queue_id, "the operator") {
            Ok(Answer::empty(200))
        } else {
            Err(ArrowheadError::invalid_parameter(NOT_FOUND).into())
        }
    }
}
