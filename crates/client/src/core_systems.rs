//! Where the core systems are, and the providers that the Orchestrator names.

use std::sync::Arc;

use bodkin_arrowhead::{caller::OPERATOR, core_service::CoreSystem};

use crate::{answer::Offer, connection::Connection, error::CallError, limits::Limits, place::CoreService, security::Security};

const AUTHORIZATION: CoreService = CoreService { system: CoreSystem::Authorization, told: "Authorization", definition: "auth-public-key" };
const ORCHESTRATOR: CoreService =
    CoreService { system: CoreSystem::Orchestrator, told: "Orchestrator", definition: "orchestration-service" };
const EVENT_HANDLER: CoreService = CoreService { system: CoreSystem::EventHandler, told: "Event Handler", definition: "event-publish" };

/// The core systems of a local cloud, with a kept connection to each.
#[derive(Debug)]
pub struct CoreSystems {
    pub(crate) service_registry: Arc<Connection>,
    pub(crate) authorization: Connection,
    pub(crate) orchestrator: Connection,
    pub(crate) event_handler: Connection,
}

impl CoreSystems {
    /// Asks the Service Registry at `host:port` of an insecure cloud where the others are, with the default limits. Of a reliable pair both
    /// nodes are named (`host:port,host:port`): the one that leads is asked, now and whenever another one leads.
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
        let registry = Arc::new(registry);
        Ok(Self {
            authorization: registry.to_registered(AUTHORIZATION).await?,
            orchestrator: registry.to_registered(ORCHESTRATOR).await?,
            event_handler: registry.to_registered(EVENT_HANDLER).await?,
            service_registry: registry,
        })
    }

    /// Whether the cloud's operator calls, for whom management is, and not what systems do for themselves (reference section 11).
    pub fn is_operator(&self) -> bool {
        let own_name = self.service_registry.security().and_then(Security::own_name);
        own_name.is_some_and(|name| name.system.as_str() == OPERATOR)
    }

    /// Host and port of the Event Handler.
    pub fn event_handler_address(&self) -> String {
        self.event_handler.address()
    }

    /// Host and port of the Orchestrator.
    pub fn orchestrator_address(&self) -> String {
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
