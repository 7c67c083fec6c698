//! Where the core systems are, and the providers that the Orchestrator names.

use bodkin_arrowhead::{caller::OPERATOR, core_service::CoreSystem, form::ServiceQueryForm};

use crate::{answer::Offer, connection::Connection, error::CallError, limits::Limits, security::Security};

/// The core systems of a local cloud, with a kept connection to each.
#[derive(Debug)]
pub struct CoreSystems {
    pub(crate) service_registry: Connection,
    pub(crate) authorization: Connection,
    pub(crate) orchestrator: Connection,
    pub(crate) event_handler: Connection,
}

impl CoreSystems {
    /// Asks the Service Registry at `host:port` of an insecure cloud where the others are, with the default limits.
    pub async fn discover(service_registry: impl ToString) -> Result<Self, CallError> {
        Self::discover_within(service_registry, Limits::default()).await
    }

    /// As [`Self::discover`] with limits of the caller's.
    pub async fn discover_within(service_registry: impl ToString, limits: Limits) -> Result<Self, CallError> {
        Self::beside(Connection::new(service_registry, limits)).await
    }

    /// As [`Self::discover_within`] in a secure cloud: every core system has to show its own certificate.
    pub async fn discover_securely(service_registry: impl ToString, limits: Limits, security: &Security) -> Result<Self, CallError> {
        Self::beside(Connection::secure(service_registry, limits, security, CoreSystem::ServiceRegistry.name())).await
    }

    async fn beside(registry: Connection) -> Result<Self, CallError> {
        // What every system may look up in secure mode (reference section 11).
        Ok(Self {
            authorization: find(&registry, "Authorization", CoreSystem::Authorization, "auth-public-key").await?,
            orchestrator: find(&registry, "Orchestrator", CoreSystem::Orchestrator, "orchestration-service").await?,
            event_handler: find(&registry, "Event Handler", CoreSystem::EventHandler, "event-publish").await?,
            service_registry: registry,
        })
    }

    /// Whether the cloud's operator calls, for whom management is, and not what systems do for themselves (reference section 11).
    pub fn is_operator(&self) -> bool {
        let own_name = self.service_registry.security().and_then(Security::own_name);
        own_name.is_some_and(|name| name.system.as_str() == OPERATOR)
    }

    /// Host and port of the Event Handler.
    pub fn event_handler_address(&self) -> &str {
        self.event_handler.address()
    }

    /// Host and port of the Orchestrator.
    pub fn orchestrator_address(&self) -> &str {
        self.orchestrator.address()
    }

    /// A connection to the provider that was offered: over TLS where the service is secured, and then only to the system of that name.
    pub fn provider(&self, offer: &Offer) -> Result<Connection, CallError> {
        let (address, limits) = (offer.provider.host_and_port(), *self.service_registry.limits());
        match (offer.is_secure(), self.service_registry.security()) {
            (false, _) => Ok(Connection::new(address, limits)),
            (true, Some(security)) => Ok(Connection::secure(address, limits, security, &offer.provider.system_name)),
            (true, None) => Err(CallError::Tls { address, why: "its service is for who has a certificate: give one".to_owned() }),
        }
    }
}

/// A connection to the provider of a core service. Of several the last counts, as among Arrowhead's own core systems.
async fn find(registry: &Connection, told: &'static str, system: CoreSystem, definition: &'static str) -> Result<Connection, CallError> {
    let form = ServiceQueryForm { service_definition_requirement: Some(definition.into()), ..ServiceQueryForm::default() };
    let found = crate::service_registry::query(registry, &form).await.map_err(|error| registry.perhaps_secure(error))?;
    let last = found.service_query_data.last().map(|service| registry.beside(service.provider.host_and_port(), system.name()));
    last.ok_or_else(|| CallError::NotOffered { registry: registry.address().to_owned(), system: told, definition })
}
