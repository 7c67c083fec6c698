//! The core systems register their own services (reference section 10), so that clients find them by a query.

use std::net::SocketAddr;

use bodkin_arrowhead::{
    core_service::CoreSystem,
    error::ArrowheadError,
    form::{ServiceRegistryRequest, SystemRequest},
    name::{NamingRules, SystemName},
    record::SystemId,
    service_registry::Registration,
    snapshot::Snapshot,
    system::CoreSystemNames,
};
use bodkin_store::{Store, StoreError};

use crate::{config::HostConfig, security::Trust, server::Port};

/// Registers every core system's services at the address where it listens; those of an earlier start go, and the systems keep their rows.
pub async fn register(store: &Store, config: &HostConfig, addresses: &[SocketAddr], trust: Option<&Trust>) -> Result<(), StoreError> {
    // What an operator configured for its own address is taken as it is.
    let naming = NamingRules {
        strict_service_definition: false,
        allow_self_addressing: true,
        allow_non_routable_addressing: true,
        secure_services: trust.is_some(),
        ..config.naming
    };
    let mut services = Vec::new();
    for (port, address) in Port::ALL.into_iter().zip(addresses) {
        let Port::System(system) = port else { continue };
        for (definition, uri) in system.services() {
            let provider = provider(system, &config.domain_name, address.port(), trust);
            services.push(registration(definition, uri, provider, &naming)?);
        }
    }
    store.write(|draft| draft.register_core_services(services), |_, ()| ()).await
}

/// What the reliable pair that serves a plant's real-time topics is found by where it is a cloud of its own beside this one.
const REALTIME_SERVICE: &str = "realtime-service-registry";
/// Who offers that.
const REALTIME_SYSTEM: &str = "realtimepair";

/// Registers where the Service Registries of the reliable pair are (`host:port` each), so that clients find it by a query or an orchestration at any node. Of a cloud
/// whose database is this node's own nothing is done.
pub async fn register_realtime(store: &Store, places: &[String], is_secure: bool) -> Result<(), StoreError> {
    if store.shared_names().is_none() {
        return Ok(());
    }
    let naming = NamingRules {
        strict_service_definition: false,
        allow_self_addressing: true,
        allow_non_routable_addressing: true,
        // Whose key that is this cloud does not know.
        secure_services: false,
        ..NamingRules::default()
    };
    let place = |place: &String| {
        // The configuration was looked at.
        let (address, port) = place.rsplit_once(':').expect("it is HOST:PORT");
        let provider = SystemRequest {
            system_name: Some(REALTIME_SYSTEM.into()),
            address: Some(address.trim_matches(['[', ']']).into()),
            port: port.parse().ok(),
            ..SystemRequest::default()
        };
        let interface = if is_secure { "HTTP-SECURE-JSON" } else { "HTTP-INSECURE-JSON" };
        let form = ServiceRegistryRequest {
            service_definition: Some(REALTIME_SERVICE.into()),
            provider_system: Some(provider),
            service_uri: Some("/serviceregistry".into()),
            secure: Some("NOT_SECURE".into()),
            interfaces: Some(vec![Some(interface.into())]),
            ..ServiceRegistryRequest::default()
        };
        Registration::parse(form, CoreSystemNames::Refused, &naming, "start")
    };
    let places = places.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    store.write(move |draft| draft.offer_at(&SystemName::from_stored(REALTIME_SYSTEM), places), |_, ()| ()).await
}

/// The system as which this cloud's own Event Handler is registered.
pub(crate) fn event_handler(snapshot: &Snapshot) -> Option<SystemId> {
    own(snapshot, CoreSystem::EventHandler, "event-publish")
}

/// The system as which one of the own core systems is registered, by one of its services.
pub(crate) fn own(snapshot: &Snapshot, system: CoreSystem, definition: &str) -> Option<SystemId> {
    let mut providers = snapshot.entries_of(snapshot.definition_by_name(definition)?.id).map(|entry| entry.provider);
    providers.find(|id| snapshot.system(*id).is_some_and(|found| found.system_name.as_str() == system.name()))
}

fn provider(system: CoreSystem, address: &str, port: u16, trust: Option<&Trust>) -> SystemRequest {
    SystemRequest {
        system_name: Some(system.name().into()),
        address: Some(address.to_owned()),
        port: Some(port.into()),
        authentication_info: trust.map(|trust| trust.authentication_info(system)),
        ..SystemRequest::default()
    }
}

/// In secure mode a certificate is asked for, and the provider's public key is there.
fn registration(definition: &str, uri: &str, provider: SystemRequest, naming: &NamingRules) -> Result<Registration, ArrowheadError> {
    let (interface, secure) = match provider.authentication_info {
        Some(_) => ("HTTP-SECURE-JSON", "CERTIFICATE"),
        None => ("HTTP-INSECURE-JSON", "NOT_SECURE"),
    };
    let form = ServiceRegistryRequest {
        service_definition: Some(definition.into()),
        provider_system: Some(provider),
        service_uri: Some(uri.into()),
        secure: Some(secure.into()),
        interfaces: Some(vec![Some(interface.into())]),
        ..ServiceRegistryRequest::default()
    };
    Registration::parse(form, CoreSystemNames::Allowed, naming, "start")
}
