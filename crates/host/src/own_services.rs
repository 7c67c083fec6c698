//! The core systems register their own services (reference section 10), so that clients find them by a query.

use std::net::SocketAddr;

use bodkin_arrowhead::{
    core_service::CoreSystem,
    error::ArrowheadError,
    form::{ServiceRegistryRequest, SystemRequest},
    name::NamingRules,
    service_registry::Registration,
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
