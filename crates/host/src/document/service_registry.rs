//! Operations of the Service Registry (reference 3.1).

use super::description::{Description, Tag::*, delete, get, paging, patch, post, put};

const BY_ROW: &[&str] = paging!("id|createdAt|updatedAt");
const SYSTEM: &[&str] = &["system_name word", "address address", "port port"];

/// A row each.
pub const OPERATIONS: &[Description] = &[
    post(Client, "register", "ServiceRegistryRequest", "ServiceRegistryResponse", "Registers a service.").created(),
    delete(Client, "unregister", "Removes a service.").asking(&[
        "service_definition text",
        "system_name text",
        "address text",
        "port port",
        "service_uri text - may be empty",
    ]),
    post(Client, "query", "ServiceQueryForm", "ServiceQueryResult", "Finds services."),
    post(Client, "register-system", "SystemRequest", "SystemResponse", "Registers a system.").created(),
    delete(Client, "unregister-system", "Removes a system and all that depends on it.").asking(SYSTEM),
    post(Private, "query/multi", "ServiceQueryFormList", "ServiceQueryResultList", "Answers several queries, in their order."),
    get(Private, "query/system/{id}", "SystemResponse", "The system of an id."),
    post(Private, "query/system", "SystemRequest", "SystemResponse", "The system of a name, address and port."),
    get(Private, "query/all", "Page[ServiceRegistryResponse]", "All services."),
    get(Private, "query/provider/{id}", "Page[ServiceRegistryResponse]", "The services of a provider."),
    post(Private, "query/definition", "[name]", "Page[ServiceRegistryResponse]", "The services of several definitions."),
    get(Private, "pull-systems", "Page[SystemResponse]", "All systems.").asking(paging!("id|createdAt|updatedAt|systemName|address|port")),
    get(Private, "pull-config", "SystemConfig", "The rules for names and addresses."),
    get(Management, "mgmt/systems", "Page[SystemResponse]", "All systems.")
        .asking(paging!("id|createdAt|updatedAt|systemName|address|port")),
    get(Management, "mgmt/systems/{id}", "SystemResponse", "A system."),
    post(Management, "mgmt/systems", "SystemRequest", "SystemResponse", "Makes a system.").created(),
    put("mgmt/systems/{id}", "SystemRequest", "SystemResponse", "Replaces a system."),
    patch("mgmt/systems/{id}", "SystemPatch", "SystemResponse", "Changes members of a system."),
    delete(Management, "mgmt/systems/{id}", "Removes a system and all that depends on it."),
    get(Management, "mgmt/services", "Page[ServiceDefinitionResponse]", "All service definitions.").asking(BY_ROW),
    get(Management, "mgmt/services/{id}", "ServiceDefinitionResponse", "A service definition."),
    post(Management, "mgmt/services", "ServiceDefinitionRequest", "ServiceDefinitionResponse", "Makes a service definition.").created(),
    put("mgmt/services/{id}", "ServiceDefinitionRequest", "ServiceDefinitionResponse", "Renames a service definition."),
    patch("mgmt/services/{id}", "ServiceDefinitionRequest", "ServiceDefinitionResponse", "Renames a service definition."),
    delete(Management, "mgmt/services/{id}", "Removes a service definition and all that depends on it."),
    get(Management, "mgmt/interfaces", "Page[ServiceInterfaceResponse]", "All interfaces.")
        .asking(paging!("id|createdAt|updatedAt|interfaceName")),
    get(Management, "mgmt/interfaces/{id}", "ServiceInterfaceResponse", "An interface."),
    post(Management, "mgmt/interfaces", "ServiceInterfaceRequest", "ServiceInterfaceResponse", "Makes an interface.").created(),
    put("mgmt/interfaces/{id}", "ServiceInterfaceRequest", "ServiceInterfaceResponse", "Renames an interface."),
    patch("mgmt/interfaces/{id}", "ServiceInterfaceRequest", "ServiceInterfaceResponse", "Renames an interface."),
    delete(Management, "mgmt/interfaces/{id}", "Removes an interface and all that depends on it."),
    get(Management, "mgmt", "Page[ServiceRegistryResponse]", "All services.").asking(BY_ROW),
    get(Management, "mgmt/{id}", "ServiceRegistryResponse", "A service."),
    post(Management, "mgmt", "ServiceRegistryRequest", "ServiceRegistryResponse", "Makes a service.").created(),
    put("mgmt/{id}", "ServiceRegistryRequest", "ServiceRegistryResponse", "Replaces a service."),
    patch("mgmt/{id}", "ServiceRegistryPatch", "ServiceRegistryResponse", "Changes members of a service."),
    delete(Management, "mgmt/{id}", "Removes a service."),
    get(Management, "mgmt/servicedef/{serviceDefinition}", "Page[ServiceRegistryResponse]", "The services of a definition.").asking(BY_ROW),
    get(Management, "mgmt/grouped", "GroupedServices", "All services by system and by definition."),
];
