//! A port of the pool, and the socket that listens there: given back when it is dropped.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bodkin_arrowhead::{error::ArrowheadError, name::SystemName};
use bodkin_relay::tunnel::PortRange;
use tokio::net::TcpListener;

use super::{Gateway, GatewayConfig, SESSIONS_MAX};

/// Holders of ports that the log names when no port is free.
const HOLDERS_LOGGED: usize = 5;

/// How many ports each consumer holds.
#[derive(Debug)]
pub(super) struct Holders {
    of_one_max: usize,
    held: Mutex<BTreeMap<String, usize>>,
}

impl Holders {
    pub(super) fn new(config: &GatewayConfig) -> Self {
        let half = (config.ports.count().unwrap_or(SESSIONS_MAX) / 2).max(1);
        let of_one_max = if config.ports_of_one == 0 { half } else { config.ports_of_one };
        Self { of_one_max, held: Mutex::default() }
    }

    /// # Errors
    /// 503 where the consumer holds its share.
    fn hold(self: &Arc<Self>, consumer: &SystemName) -> Result<Held, ArrowheadError> {
        let mut all = self.lock();
        let held = all.entry(consumer.as_str().to_owned()).or_default();
        if *held >= self.of_one_max {
            return Err(ArrowheadError::unavailable(format!(
                "Consumer {consumer} has tunnels at {held} ports, and gets no more (gateway_ports_per_consumer). Try again when one of its sessions has ended."
            )));
        }
        *held += 1;
        Ok(Held { holders: self.clone(), consumer: consumer.as_str().to_owned() })
    }

    /// Ports that the consumer with the most holds.
    pub(super) fn largest(&self) -> usize {
        self.lock().values().copied().max().unwrap_or_default()
    }

    /// The consumers with the most ports, as the log names them.
    fn named(&self) -> String {
        let mut held: Vec<(usize, String)> = self.lock().iter().map(|(consumer, held)| (*held, consumer.clone())).collect();
        held.sort_unstable_by(|one, other| other.cmp(one));
        let named: Vec<String> = held.iter().take(HOLDERS_LOGGED).map(|(held, consumer)| format!("{consumer}: {held}")).collect();
        named.join(", ")
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A port of a consumer's share.
struct Held {
    holders: Arc<Holders>,
    consumer: String,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut all = self.holders.lock();
        if let Some(held) = all.get_mut(&self.consumer) {
            *held -= 1;
            if *held == 0 {
                all.remove(&self.consumer);
            }
        }
    }
}

/// A port, for as long as this is there.
pub(super) struct Lease {
    gateway: Arc<Gateway>,
    /// As the pool knows it.
    taken: u16,
    address: SocketAddr,
    listener: Option<TcpListener>,
    _held: Held,
}

impl Lease {
    /// Takes a port for a consumer that is free and can be listened on.
    ///
    /// # Errors
    /// 503 where the consumer holds its share; 504 where no port is free.
    pub(super) async fn take(gateway: &Arc<Gateway>, consumer: &SystemName) -> Result<Self, ArrowheadError> {
        let held = gateway.holders.hold(consumer);
        let held = held.inspect_err(|_| gateway.tell_port("tunnel refused: consumer holds its share of the ports", consumer.as_str()))?;
        // One that another program uses goes behind the others; each is tried once.
        let attempts_max = gateway.ports().range().count().unwrap_or(1);
        let mut trouble = None;
        for _ in 0..attempts_max {
            let Some(taken) = gateway.ports().take() else { break };
            match TcpListener::bind((gateway.config.listen, taken)).await.and_then(|listener| Ok((listener.local_addr()?, listener))) {
                Ok((address, listener)) => {
                    return Ok(Self { gateway: gateway.clone(), taken, address, listener: Some(listener), _held: held });
                }
                Err(error) => {
                    gateway.ports().give_back(taken);
                    trouble = Some(format!(" Port {taken} is free here and cannot be listened on: {error}."));
                }
            }
        }
        gateway.tell_port("tunnel refused: no port free; consumers with the most ports", &gateway.holders.named());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_with_the_most_ports_are_named_first() {
        let holders = Arc::new(Holders { of_one_max: 3, held: Mutex::default() });
        let hold = |name: &str| holders.hold(&SystemName::parse(name).unwrap());
        let held = ["a", "b", "b", "c"].map(|name| hold(name).unwrap());
        assert_eq!((holders.named().as_str(), holders.largest()), ("b: 2, c: 1, a: 1", 2));
        let third = hold("b").unwrap();
        assert!(hold("b").is_err_and(|error| error.error_message.contains("b has tunnels at 3 ports")));
        drop((held, third));
        assert_eq!((holders.named().as_str(), holders.largest()), ("", 0), "all are given back");
    }
}
