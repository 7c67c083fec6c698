//! Taking the ports.

use std::net::SocketAddr;

use super::{Port, StartError};
use crate::{
    config::{HostConfig, ZmtpConfig},
    listener,
    security::Trust,
    shard::EndpointConfig,
};

/// The listening sockets of every port.
pub(super) fn ports(config: &HostConfig) -> Result<[Vec<std::net::TcpListener>; 5], StartError> {
    let mut listeners = Vec::with_capacity(Port::ALL.len());
    for (port, number) in Port::ALL.into_iter().zip(config.ports) {
        let address = SocketAddr::new(config.listen, number);
        let group = listener::bind(address).map_err(|error| StartError::Listen { address, name: port.name(), error })?;
        listeners.push(group);
    }
    Ok(listeners.try_into().expect("there is a listener for every port"))
}

/// The listening sockets of the ZMTP port.
pub(super) fn zmtp(config: &HostConfig, trust: Option<&Trust>) -> Result<EndpointConfig, StartError> {
    let Some(ZmtpConfig { port, system }) = &config.zmtp else { return Ok(EndpointConfig::default()) };
    if trust.is_some_and(|trust| trust.curve.is_none()) {
        tracing::info!("there is no ZMTP port: beside key stores nothing says whose a CURVE key is; the trust directory does");
        return Ok(EndpointConfig::default());
    }
    let address = SocketAddr::new(config.listen, *port);
    let listeners = listener::bind(address).map_err(|error| StartError::Listen { address, name: "zmtp", error })?;
    Ok(EndpointConfig { listeners, system: system.clone() })
}
