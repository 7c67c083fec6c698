//! Taking the ports.

use std::{io, net::SocketAddr, os::unix::net::UnixListener, sync::Arc};

use bodkin_store::Store;

use super::{
    Port, StartError,
    ipc::{self, SocketFile},
};
use crate::{
    config::{HostConfig, IpcConfig, RelayConfig, ZmtpConfig},
    listener,
    relay::{CloudAdmission, server::RelayServer},
    security::{Security, SecurityError, Trust},
    shard::EndpointConfig,
};

/// The listening sockets of every port that is served.
pub(super) fn ports(config: &HostConfig) -> Result<Vec<Vec<std::net::TcpListener>>, StartError> {
    let served = Port::served(config.core_systems());
    let mut listeners = Vec::with_capacity(served.len());
    for (port, number) in served.iter().zip(config.ports) {
        let address = SocketAddr::new(config.listen, number);
        let group = listener::bind(address).map_err(|error| StartError::Listen { address, name: port.name(), error })?;
        listeners.push(group);
    }
    Ok(listeners)
}

/// The listening sockets of the ZMTP port, and of the path beside it.
pub(super) fn zmtp(config: &HostConfig, trust: Option<&Trust>) -> Result<(EndpointConfig, Option<SocketFile>), StartError> {
    let Some(ZmtpConfig { port, system, ipc }) = &config.zmtp else { return Ok(Default::default()) };
    if trust.is_some_and(|trust| trust.curve.is_none()) {
        tracing::info!("there is no ZMTP port: beside key stores nothing says whose a CURVE key is; the trust directory does");
        return Ok(Default::default());
    }
    let address = SocketAddr::new(config.listen, *port);
    let listeners = listener::bind(address).map_err(|error| StartError::Listen { address, name: "zmtp", error })?;
    let (ipc, file) = ipc.as_ref().map(|ipc| self::ipc(config, ipc)).transpose()?.flatten().unzip();
    Ok((EndpointConfig { listeners, ipc, system: system.clone() }, file))
}

/// The relay inside this cloud, where one is configured.
pub(super) fn relay(config: &HostConfig, security: Option<&Arc<Security>>, store: &Store) -> Result<Option<RelayServer>, StartError> {
    let (Some(RelayConfig { listen, limits }), Some(security)) = (config.relay, security) else { return Ok(None) };
    let admission = CloudAdmission::new(security.clone(), store.clone()).map_err(SecurityError::from)?;
    let started = RelayServer::start(listen, limits, Arc::new(admission));
    started.map(Some).map_err(|error| StartError::Listen { address: listen, name: "relay", error })
}

/// Where nobody has named a path, a cloud does not fail for it.
fn ipc(config: &HostConfig, IpcConfig { path, access }: &IpcConfig) -> Result<Option<(UnixListener, SocketFile)>, StartError> {
    let place = path.clone().unwrap_or_else(|| config.data.join(IpcConfig::DEFAULT_NAME));
    match ipc::bind(&place, *access) {
        Ok(bound) => Ok(Some(bound)),
        Err(error) if path.is_some() => Err(StartError::Ipc { path: place, error }),
        Err(error) => {
            tracing::warn!(%error, path = %place.display(), "ZMTP is not spoken on ipc://");
            Ok(None)
        }
    }
}

/// What is to be done where a port cannot be listened on.
pub(super) fn way_to_listen(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => {
            "This machine has no such address: give one of those that `ip address` shows, or 0.0.0.0 for all of them (--listen)."
        }
        io::ErrorKind::PermissionDenied => "The system does not let this user listen there: choose other ports with --port-offset.",
        _ => "Stop what uses the port, or move all ports with --port-offset.",
    }
}
