//! Calls to the Service Registry.

use bodkin_arrowhead::form::{ServiceQueryForm, ServiceRegistryRequest, SystemRequest};
use http::Method;
use serde_json::{Value, json};

use crate::{
    answer::{Interface, List, Service, ServiceDefinition, ServiceQueryResult, System},
    connection::Connection,
    core_systems::CoreSystems,
    error::CallError,
    page::Page,
    query_string::{encoded, path_with},
};

const SERVICES: &str = "/serviceregistry/mgmt";
const SYSTEMS: &str = "/serviceregistry/mgmt/systems";
const DEFINITIONS: &str = "/serviceregistry/mgmt/services";
const INTERFACES: &str = "/serviceregistry/mgmt/interfaces";

/// How a row is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Members that the form leaves out stay, but for a service's `secure`, which becomes `NOT_SECURE`.
    Patch,
    /// The row becomes what the form says.
    Replace,
}

impl Change {
    fn method(self) -> Method {
        match self {
            Self::Patch => Method::PATCH,
            Self::Replace => Method::PUT,
        }
    }
}

pub(crate) async fn query(registry: &Connection, form: &ServiceQueryForm) -> Result<ServiceQueryResult, CallError> {
    registry.ask(Method::POST, "/serviceregistry/query", Some(form)).await
}

impl CoreSystems {
    /// Registers a service of the caller's own. One that is there is refused.
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

    /// Makes a service by management, whoever offers it. One that is there is refused.
    pub async fn add_service(&self, form: &ServiceRegistryRequest) -> Result<Service, CallError> {
        self.service_registry.ask(Method::POST, SERVICES, Some(form)).await
    }

    /// Finds services, whoever may use them. In a secure cloud systems are told of public core services only.
    pub async fn query(&self, form: &ServiceQueryForm) -> Result<ServiceQueryResult, CallError> {
        query(&self.service_registry, form).await
    }

    /// Makes a system by management. One that is there is refused.
    pub async fn add_system(&self, system: &SystemRequest) -> Result<System, CallError> {
        self.service_registry.ask(Method::POST, SYSTEMS, Some(system)).await
    }

    /// Registers the caller as a system that offers nothing. One that is there is refused.
    pub async fn register_system(&self, system: &SystemRequest) -> Result<System, CallError> {
        self.service_registry.ask(Method::POST, "/serviceregistry/register-system", Some(system)).await
    }

    /// Removes a system with its services, rules and subscriptions.
    pub async fn unregister_system(&self, system: &SystemRequest) -> Result<(), CallError> {
        let (name, address, port) = parts(system);
        let parameters = [("system_name", name), ("address", address), ("port", port.as_str())];
        self.service_registry.delete(&path_with("/serviceregistry/unregister-system", &parameters)).await
    }

    /// Services.
    pub async fn services(&self, page: &Page) -> Result<List<Service>, CallError> {
        self.service_registry.get(&page.of(SERVICES, &[])).await
    }

    /// Services of one definition, which must be known.
    pub async fn services_of(&self, definition: &str, page: &Page) -> Result<List<Service>, CallError> {
        self.service_registry.get(&page.of(&format!("{SERVICES}/servicedef/{}", encoded(definition)), &[])).await
    }

    /// A service by its row id.
    pub async fn service(&self, id: i64) -> Result<Service, CallError> {
        self.service_registry.get(&format!("{SERVICES}/{id}")).await
    }

    /// Changes a service.
    pub async fn change_service(&self, id: i64, change: Change, form: &ServiceRegistryRequest) -> Result<Service, CallError> {
        self.service_registry.ask(change.method(), &format!("{SERVICES}/{id}"), Some(form)).await
    }

    /// Removes a service by its row id.
    pub async fn remove_service(&self, id: i64) -> Result<(), CallError> {
        self.service_registry.delete(&format!("{SERVICES}/{id}")).await
    }

    /// Systems.
    pub async fn systems(&self, page: &Page) -> Result<List<System>, CallError> {
        self.service_registry.get(&page.of(SYSTEMS, &[])).await
    }

    /// A system by its row id.
    pub async fn system(&self, id: i64) -> Result<System, CallError> {
        self.service_registry.get(&format!("{SYSTEMS}/{id}")).await
    }

    /// Changes a system.
    pub async fn change_system(&self, id: i64, change: Change, form: &SystemRequest) -> Result<System, CallError> {
        self.service_registry.ask(change.method(), &format!("{SYSTEMS}/{id}"), Some(form)).await
    }

    /// Removes a system by its row id, with its services, rules and subscriptions.
    pub async fn remove_system(&self, id: i64) -> Result<(), CallError> {
        self.service_registry.delete(&format!("{SYSTEMS}/{id}")).await
    }

    /// Service definitions.
    pub async fn service_definitions(&self, page: &Page) -> Result<List<ServiceDefinition>, CallError> {
        self.service_registry.get(&page.of(DEFINITIONS, &[])).await
    }

    /// A service definition by its row id.
    pub async fn service_definition(&self, id: i64) -> Result<ServiceDefinition, CallError> {
        self.service_registry.get(&format!("{DEFINITIONS}/{id}")).await
    }

    /// Makes a service definition that nobody offers yet.
    pub async fn add_service_definition(&self, name: &str) -> Result<ServiceDefinition, CallError> {
        self.service_registry.ask(Method::POST, DEFINITIONS, Some(&definition_form(name))).await
    }

    /// Renames a service definition, for all who offer it.
    pub async fn rename_service_definition(&self, id: i64, name: &str) -> Result<ServiceDefinition, CallError> {
        self.service_registry.ask(Method::PUT, &format!("{DEFINITIONS}/{id}"), Some(&definition_form(name))).await
    }

    /// Removes a service definition with its services and rules.
    pub async fn remove_service_definition(&self, id: i64) -> Result<(), CallError> {
        self.service_registry.delete(&format!("{DEFINITIONS}/{id}")).await
    }

    /// Interfaces.
    pub async fn interfaces(&self, page: &Page) -> Result<List<Interface>, CallError> {
        self.service_registry.get(&page.of(INTERFACES, &[])).await
    }

    /// An interface by its row id.
    pub async fn interface(&self, id: i64) -> Result<Interface, CallError> {
        self.service_registry.get(&format!("{INTERFACES}/{id}")).await
    }

    /// Makes an interface that nobody has yet.
    pub async fn add_interface(&self, name: &str) -> Result<Interface, CallError> {
        self.service_registry.ask(Method::POST, INTERFACES, Some(&interface_form(name))).await
    }

    /// Renames an interface, for all who have it.
    pub async fn rename_interface(&self, id: i64, name: &str) -> Result<Interface, CallError> {
        self.service_registry.ask(Method::PUT, &format!("{INTERFACES}/{id}"), Some(&interface_form(name))).await
    }

    /// Removes an interface from all who have it.
    pub async fn remove_interface(&self, id: i64) -> Result<(), CallError> {
        self.service_registry.delete(&format!("{INTERFACES}/{id}")).await
    }
}

fn definition_form(name: &str) -> Value {
    json!({"serviceDefinition": name})
}

fn interface_form(name: &str) -> Value {
    json!({"interfaceName": name})
}

/// Name, address and port for query parameters; what is absent is empty, and refused by the core system.
pub(crate) fn parts(system: &SystemRequest) -> (&str, &str, String) {
    let name = system.system_name.as_deref().unwrap_or_default();
    let address = system.address.as_deref().unwrap_or_default();
    (name, address, system.port.map(|port| port.to_string()).unwrap_or_default())
}
