//! Who speaks with others than clients: with other clouds, and with the collector of traces.

use std::sync::Arc;

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_store::{Store, event_log::EventLogReader};

use super::StartError;
use crate::{
    config::HostConfig,
    destination::Destinations,
    fleet::{self, FleetState, Purpose},
    gatekeeper::Gatekeeper,
    gateway::{Gateway, SecureEnds},
    inbox::Inbox,
    node_events::{Crossing, NodeEvents, NodeLog, NodeStream},
    relay::{Dialer, Relays},
    security::{Security, Trust},
    trace::{Traces, exporter::Exporter},
};

/// The Gatekeeper, in a cloud that has one.
pub(super) fn gatekeeper(
    config: &HostConfig,
    security: Option<&Arc<Security>>,
    destinations: &Destinations,
    traces: Option<Arc<Traces>>,
) -> Result<Option<Gatekeeper>, StartError> {
    let Some(security) = having(security, CoreSystem::Gatekeeper) else { return Ok(None) };
    let patience = config.limits.neighbor_timeout;
    let relays = Relays::new(dialer(config, security, destinations));
    let gatekeeper = Gatekeeper::new(security.trust().identity(CoreSystem::Gatekeeper), patience, Box::new(relays))?;
    Ok(Some(gatekeeper.answering(config.fixed_answers.clone()).telling(traces)))
}

/// What is told of forwarding to the fleet, where anything is; lanes that are new begin with what is published from now on, whoever leads.
pub(super) fn fleet(config: &HostConfig, log: Option<&EventLogReader>) -> Result<Option<Arc<FleetState>>, StartError> {
    let (Some(fleet), Some(log)) = (&config.fleet, log) else { return Ok(None) };
    fleet::begin_lanes(Purpose::Fleet, fleet, &config.data, log).map_err(StartError::Fleet)?;
    Ok(Some(fleet::state(fleet)))
}

/// Where spans of traces go, and who tells the collector of them, if there is one. In secure mode the cloud is told by its name, and else by its address.
pub(super) fn traces(config: &HostConfig, trust: Option<&Trust>) -> (Option<Arc<Traces>>, Option<Exporter>) {
    let Some(wanted) = &config.traces else { return (None, None) };
    let (traces, ended) = Traces::new(wanted.one_in);
    let traces = Arc::new(traces);
    let instance = trust.map_or_else(|| config.domain_name.clone(), |trust| trust.cloud.to_string());
    tracing::info!(collector = %wanted.collector, instance, "traces are told");
    let exporter = Exporter::start(traces.clone(), ended, wanted.collector.clone(), instance);
    (Some(traces), Some(exporter))
}

/// What carries events between the nodes of a shared database.
pub(super) enum BetweenNodes {
    /// At most once.
    AtMostOnce(NodeEvents),
    /// By a stream that keeps them.
    Log(NodeLog),
}

impl BetweenNodes {
    /// Ends it. Waits for its threads, so it is not for one that serves others.
    pub fn stop(self) {
        match self {
            Self::AtMostOnce(node_events) => node_events.stop(),
            Self::Log(log) => log.stop(),
        }
    }
}

/// What carries events between the nodes of a shared database, and the shard's end of it, where that is configured.
pub(super) fn node_events(
    config: &HostConfig,
    store: &Store,
    log: Option<&EventLogReader>,
    inbox: &Arc<Inbox>,
) -> Result<Option<(BetweenNodes, Crossing)>, StartError> {
    let (Some((node, cloud)), Some(place)) = (store.shared_names(), config.nats.clone()) else { return Ok(None) };
    let (between, crossing) = match (&config.node_stream, log) {
        (Some(terms), Some(log)) => {
            let stream = NodeStream::new(place, terms, cloud, node);
            let (between, crossing) = NodeLog::start(&stream, (cloud, store.identity()), &config.data, log, inbox.clone())?;
            (BetweenNodes::Log(between), crossing)
        }
        _ => {
            let (between, crossing) = NodeEvents::start(place, (cloud, node), log, inbox.clone())?;
            (BetweenNodes::AtMostOnce(between), crossing)
        }
    };
    Ok(Some((between, crossing)))
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
    let relays = Relays::new(dialer(config, security, destinations).used_by(CoreSystem::Gateway));
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
