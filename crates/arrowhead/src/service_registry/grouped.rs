//! All services twice grouped, and every name with its id: what the management tool's forms are filled with.

use std::sync::Arc;

use serde::Serialize;

use crate::{
    address::Address,
    metadata::Metadata,
    name::{InterfaceName, ServiceDefinition, SystemName},
    record::{DefinitionId, EntryView, InterfaceId, System, SystemId},
    snapshot::Snapshot,
};

/// The answer of `GET /serviceregistry/mgmt/grouped`. Groups and what is in them are in the order of ids; none is empty.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupedServices {
    services_grouped_by_systems: Vec<ServicesOfSystem>,
    services_grouped_by_service_definition: Vec<ProvidersOfDefinition>,
    auto_complete_data: AutoCompleteData,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ServicesOfSystem {
    system_id: SystemId,
    system_name: SystemName,
    address: Address,
    port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
    services: Vec<EntryView>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProvidersOfDefinition {
    service_definition_id: DefinitionId,
    service_definition: ServiceDefinition,
    provider_services: Vec<EntryView>,
}

/// Every name there is, offered or not: a rule may name a consumer that offers nothing.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AutoCompleteData {
    service_list: Vec<Named<DefinitionId, ServiceDefinition>>,
    system_list: Vec<Arc<System>>,
    interface_list: Vec<Named<InterfaceId, InterfaceName>>,
}

#[derive(Debug, Serialize)]
struct Named<I, N> {
    id: I,
    value: N,
}

impl GroupedServices {
    /// Groups what is registered.
    pub fn new(snapshot: &Snapshot) -> Self {
        let by_system = snapshot.systems().map(|system| ServicesOfSystem {
            system_id: system.id,
            system_name: system.system_name.clone(),
            address: system.address.clone(),
            port: system.port,
            metadata: system.metadata.clone(),
            services: snapshot.entries_of_provider(system.id).map(|entry| snapshot.view(entry)).collect(),
        });
        let by_definition = snapshot.definitions().map(|definition| ProvidersOfDefinition {
            service_definition_id: definition.id,
            service_definition: definition.service_definition.clone(),
            provider_services: snapshot.entries_of_by_id(definition.id).into_iter().map(|entry| snapshot.view(entry)).collect(),
        });
        let definitions = snapshot.definitions().map(|row| Named { id: row.id, value: row.service_definition.clone() });
        let interfaces = snapshot.interfaces().map(|row| Named { id: row.id, value: row.interface_name.clone() });
        Self {
            services_grouped_by_systems: by_system.filter(|group| !group.services.is_empty()).collect(),
            services_grouped_by_service_definition: by_definition.filter(|group| !group.provider_services.is_empty()).collect(),
            auto_complete_data: AutoCompleteData {
                service_list: definitions.collect(),
                system_list: snapshot.systems().cloned().collect(),
                interface_list: interfaces.collect(),
            },
        }
    }
}
