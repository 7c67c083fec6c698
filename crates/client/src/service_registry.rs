//! Calls to the Service Registry.

use bodkin_arrowhead::form::{ServiceQueryForm, ServiceRegistryRequest, SystemRequest};
use http::Method;

use crate::{
    answer::{Interface, List, Service, ServiceDefinition, ServiceQueryResult, System},
    connection::Connection,
    core_systems::CoreSystems,
    error::CallError,
    query_string::path_with,
};

pub(crate) async fn query(registry: &Connection, form: &ServiceQueryForm) -> Result<ServiceQueryResult, CallError> {
    registry.ask(Method::POST, "/serviceregistry/query", Some(form)).await
}

impl CoreSystems {
    /// Registers a service. One that is there is refused.
    pub async fn register(&self, form: &ServiceRegistryRequest) -> Result<Service, CallError> {
        self.service_registry.ask(Method::POST, "/serviceregistry/register", Some(form)).await
    }

    /// Removes a service; system and definition stay.
    pub async fn unregister(&self, definition: &str, provider: &SystemRequest, service_uri: &str) -> Result<(), CallError> {
        let (name, address, port) = parts(provider);
        let parameters = [
            ("service_definition", definition),
            ("system_name", name),
            ("address", address),
            ("port", &port),
            ("service_uri", service_uri),
        ];
        self.service_registry.delete(&path_with("/serviceregistry/unregister", &parameters)).await
    }

    /// Finds services, whoever may use them.
    pub async fn query(&self, form: &ServiceQueryForm) -> Result<ServiceQueryResult, CallError> {
        query(&self.service_registry, form).await
    }

    /// Registers a system that offers nothing. One that is there is refused.
    pub async fn register_system(&self, system: &SystemRequest) -> Result<System, CallError> {
        self.service_registry.ask(Method::POST, "/serviceregistry/register-system", Some(system)).await
    }

    /// Removes a system with its services, rules and subscriptions.
    pub async fn unregister_system(&self, system: &SystemRequest) -> Result<(), CallError> {
        let (name, address, port) = parts(system);
        let parameters = [("system_name", name), ("address", address), ("port", port.as_str())];
        self.service_registry.delete(&path_with("/serviceregistry/unregister-system", &parameters)).await
    }

    /// All services.
    pub async fn services(&self) -> Result<List<Service>, CallError> {
        self.service_registry.get("/serviceregistry/mgmt").await
    }

    /// Removes a service by its row id.
    pub async fn remove_service(&self, id: i64) -> Result<(), CallError> {
        self.service_registry.delete(&format!("/serviceregistry/mgmt/{id}")).await
    }

    /// All systems.
    pub async fn systems(&self) -> Result<List<System>, CallError> {
        self.service_registry.get("/serviceregistry/mgmt/systems").await
    }

    /// Removes a system by its row id, with its services, rules and subscriptions.
    pub async fn remove_system(&self, id: i64) -> Result<(), CallError> {
        self.service_registry.delete(&format!("/serviceregistry/mgmt/systems/{id}")).await
    }

    /// All service definitions.
    pub async fn service_definitions(&self) -> Result<List<ServiceDefinition>, CallError> {
        self.service_registry.get("/serviceregistry/mgmt/services").await
    }

    /// All interfaces.
    pub async fn interfaces(&self) -> Result<List<Interface>, CallError> {
        self.service_registry.get("/serviceregistry/mgmt/interfaces").await
    }
}

/// Name, address and port for query parameters; what is absent is empty, and refused by the core system.
pub(crate) fn parts(system: &SystemRequest) -> (&str, &str, String) {
    let name = system.system_name.as_deref().unwrap_or_default();
    let address = system.address.as_deref().unwrap_or_default();
    (name, address, system.port.map(|port| port.to_string()).unwrap_or_default())
}
