//! A port of the pool, and the socket that listens there: given back when it is dropped.

use std::{net::SocketAddr, sync::Arc};

use bodkin_arrowhead::error::ArrowheadError;
use bodkin_relay::tunnel::PortRange;
use tokio::net::TcpListener;

use super::Gateway;

/// A port, for as long as this is there.
pub(super) struct Lease {
    gateway: Arc<Gateway>,
    /// As the pool knows it.
    taken: u16,
    address: SocketAddr,
    listener: Option<TcpListener>,
}

impl Lease {
    /// Takes a port that is free and can be listened on.
    ///
    /// # Errors
    /// 504 where there is none.
    pub(super) async fn take(gateway: &Arc<Gateway>) -> Result<Self, ArrowheadError> {
        // One that another program uses goes behind the others; each is tried once.
        let attempts_max = gateway.ports().range().count().unwrap_or(1);
        let mut trouble = None;
        for _ in 0..attempts_max {
            let Some(taken) = gateway.ports().take() else { break };
            match TcpListener::bind((gateway.config.listen, taken)).await.and_then(|listener| Ok((listener.local_addr()?, listener))) {
                Ok((address, listener)) => return Ok(Self { gateway: gateway.clone(), taken, address, listener: Some(listener) }),
                Err(error) => {
                    gateway.ports().give_back(taken);
                    trouble = Some(format!(" Port {taken} is free here and cannot be listened on: {error}."));
                }
            }
        }
        Err(none_free(gateway.config.ports, &trouble.unwrap_or_default()))
    }

    /// Where it listens.
    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The socket, once.
    pub(super) fn listener(&mut self) -> Option<TcpListener> {
        self.listener.take()
    }
}

/// That there is no port for a tunnel.
pub(super) fn none_free(ports: PortRange, trouble: &str) -> ArrowheadError {
    let range = match ports {
        PortRange::Ports { first, last } => format!(" from {first} to {last} (gateway_min_port, gateway_max_port)"),
        PortRange::Any => String::new(),
    };
    let told = format!("No port{range} is free for a tunnel. Try again when a session has ended.{trouble}");
    ArrowheadError { error_code: 504, ..ArrowheadError::unavailable(told) }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.gateway.ports().give_back(self.taken);
    }
}
