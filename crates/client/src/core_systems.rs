//! Where the core systems are.

use bodkin_arrowhead::form::ServiceQueryForm;

use crate::{connection::Connection, error::CallError, limits::Limits};

/// The core systems of a local cloud, with a kept connection to each.
#[derive(Debug)]
pub struct CoreSystems {
    pub(crate) service_registry: Connection,
    pub(crate) authorization: Connection,
    pub(crate) orchestrator: Connection,
    pub(crate) event_handler: Connection,
}

impl CoreSystems {
    /// Asks the Service Registry at `host:port` where the others are, with the default limits.
    pub async fn discover(service_registry: impl ToString) -> Result<Self, CallError> {
        Self::discover_within(service_registry, Limits::default()).await
    }

    /// As [`Self::discover`] with limits of the caller's.
    pub async fn discover_within(service_registry: impl ToString, limits: Limits) -> Result<Self, CallError> {
        let registry = Connection::new(service_registry, limits);
        let authorization = find(&registry, "Authorization", "auth-public-key").await?;
        let orchestrator = find(&registry, "Orchestrator", "orchestration-service").await?;
        let event_handler = find(&registry, "Event Handler", "event-publish").await?;
        Ok(Self {
            service_registry: registry,
            authorization: Connection::new(authorization, limits),
            orchestrator: Connection::new(orchestrator, limits),
            event_handler: Connection::new(event_handler, limits),
        })
    }

    /// Host and port of the Event Handler.
    pub fn event_handler_address(&self) -> &str {
        self.event_handler.address()
    }

    /// Host and port of the Orchestrator.
    pub fn orchestrator_address(&self) -> &str {
        self.orchestrator.address()
    }
}

/// Address of the provider of a core service, one that every system may ask for in secure mode. Of several the last counts, as among Arrowhead's own core systems.
async fn find(registry: &Connection, system: &'static str, definition: &'static str) -> Result<String, CallError> {
    let form = ServiceQueryForm { service_definition_requirement: Some(definition.into()), ..ServiceQueryForm::default() };
    let found = crate::service_registry::query(registry, &form).await?;
    let last = found.service_query_data.last().map(|service| service.provider.host_and_port());
    last.ok_or_else(|| CallError::NotOffered { registry: registry.address().to_owned(), system, definition })
}
