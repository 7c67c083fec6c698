//! Who speaks with other clouds.

use std::sync::Arc;

use bodkin_arrowhead::core_service::CoreSystem;

use super::StartError;
use crate::{
    config::HostConfig,
    destination::Destinations,
    gatekeeper::Gatekeeper,
    gateway::{Gateway, SecureEnds},
    relay::{Dialer, Relays},
    security::Security,
};

/// The Gatekeeper, in a cloud that has one.
pub(super) fn gatekeeper(
    config: &HostConfig,
    security: Option<&Arc<Security>>,
    destinations: &Destinations,
) -> Result<Option<Gatekeeper>, StartError> {
    let Some(security) = having(security, CoreSystem::Gatekeeper) else { return Ok(None) };
    let patience = config.limits.neighbor_timeout;
    let relays = Relays::new(dialer(config, security, destinations));
    let gatekeeper = Gatekeeper::new(security.trust().identity(CoreSystem::Gatekeeper), patience, Box::new(relays))?;
    Ok(Some(gatekeeper.answering(config.fixed_answers.clone())))
}

/// The Gateway, in a cloud that has one. Relays know the Gatekeeper's key of each cloud, so that is what it shows them, on connections of its own: what a tunnel
/// carries never holds up a dialogue.
pub(super) fn gateway(
    config: &HostConfig,
    security: Option<&Arc<Security>>,
    destinations: &Destinations,
) -> Result<Option<Gateway>, StartError> {
    let Some(security) = having(security, CoreSystem::Gateway) else {
        if config.gateway_is_mandatory {
            tracing::error!(
                "gateway_is_mandatory is set and this cloud has no Gateway: whoever asks from another cloud is refused. Put gateway.p12 beside the other key stores"
            );
        }
        return Ok(None);
    };
    let relays = Relays::new(dialer(config, security, destinations));
    let ends = SecureEnds::new(security.clone(), destinations.clone());
    Ok(Some(Gateway::new(security.trust().identity(CoreSystem::Gateway), config.gateway(), Box::new(relays), Box::new(ends))?))
}

fn having(security: Option<&Arc<Security>>, system: CoreSystem) -> Option<&Arc<Security>> {
    security.filter(|security| security.trust().systems().contains(&system))
}

/// Both show relays the Gatekeeper's certificate, and brokers that ask for it a name and a passcode.
fn dialer(config: &HostConfig, security: &Arc<Security>, destinations: &Destinations) -> Dialer {
    Dialer::new(destinations.clone(), security.clone(), CoreSystem::Gatekeeper).with_logins(config.relay_logins.clone())
}
