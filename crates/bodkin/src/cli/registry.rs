//! Which local cloud a command is for.

use std::{net::IpAddr, path::Path, time::Duration};

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_client::{CoreSystems, Limits, Monitor};
use bodkin_host::Port;
use clap::Args;

use super::credentials::CredentialOptions;
use crate::settings::{host_of_this_machine, port_offset_of_this_machine};

/// How long a command waits for what a cloud has to ask others for: the cloud gives up first, each step behind its `neighbor_timeout_ms`, and says why.
const OTHER_CLOUDS_MAX: Duration = Duration::from_secs(600);

/// Options that say where the Service Registry is; the other core systems are found through it.
#[derive(Args, Clone, Debug)]
pub struct RegistryOptions {
    /// The cloud's Service Registry, of a reliable pair both nodes' (HOST:PORT,HOST:PORT) [default: port 8443, plus the port offset, where /etc/bodkin/bodkin.toml has the cloud listen, or else at 127.0.0.1]
    #[arg(long, global = true, help_heading = "Which cloud", env = "BODKIN_SERVICE_REGISTRY", value_name = "HOST:PORT", value_parser = parse_addresses)]
    service_registry: Option<String>,
    /// The port offset that the cloud on this machine was started with [default: what /etc/bodkin/bodkin.toml says, or else 0; 0 with --service-registry]
    #[arg(long, global = true, help_heading = "Which cloud", env = "BODKIN_PORT_OFFSET", value_name = "N")]
    port_offset: Option<u16>,
    /// Bodkin's own port [default: on the Service Registry's host, the Service Registry's port minus 3; with --port-offset 8440 plus the offset]
    #[arg(long, global = true, help_heading = "Which cloud", env = "BODKIN_MONITOR", value_name = "HOST:PORT", value_parser = parse_addresses)]
    monitor: Option<String>,
    #[command(flatten)]
    credentials: CredentialOptions,
}

impl RegistryOptions {
    /// Finds the core systems.
    pub async fn discover(&self) -> anyhow::Result<CoreSystems> {
        let (registry, limits) = (self.service_registry(), Limits::default());
        Ok(match self.credentials.security()? {
            Some(security) => CoreSystems::discover_securely(registry, limits, &security).await?,
            None => CoreSystems::discover_within(registry, limits).await?,
        })
    }

    /// Bodkin's own port.
    pub fn monitor(&self) -> anyhow::Result<Monitor> {
        self.monitor_within(Limits::default())
    }

    /// The same for what other clouds are asked for.
    pub fn monitor_towards_others(&self) -> anyhow::Result<Monitor> {
        self.monitor_within(Limits { answer_timeout: OTHER_CLOUDS_MAX, ..Limits::default() })
    }

    fn monitor_within(&self, limits: Limits) -> anyhow::Result<Monitor> {
        let address = self.monitor_address();
        Ok(match self.credentials.security()? {
            Some(security) => Monitor::secure(address, limits, &security),
            None => Monitor::new(address, limits),
        })
    }

    /// Bodkin's own port of another cloud, as whose operator these certificates act, or else those of a directory.
    pub fn other_monitor(&self, address: &str, trust: Option<&Path>) -> anyhow::Result<Monitor> {
        let credentials = trust.map(|trust| self.credentials.with_trust(trust));
        let security = credentials.as_ref().unwrap_or(&self.credentials).security()?;
        Ok(match security {
            Some(security) => Monitor::secure(address, Limits::default(), &security),
            None => Monitor::new(address, Limits::default()),
        })
    }

    /// What is added to every standard port. The operator's file tells it of this machine's cloud, not of one that is named.
    pub fn port_offset(&self) -> u16 {
        let said = || if self.service_registry.is_some() { 0 } else { port_offset_of_this_machine() };
        self.port_offset.unwrap_or_else(said)
    }

    fn monitor_address(&self) -> String {
        self.monitor.clone().unwrap_or_else(|| {
            let registries = self.service_registry();
            let mut monitors: Vec<String> = registries.split(',').map(|registry| self.monitor_of(registry)).collect();
            monitors.dedup();
            monitors.join(",")
        })
    }

    /// Returns the address of Bodkin's own port at the node of a Service Registry. Both nodes of a pair may run on one machine, with different port offsets.
    fn monitor_of(&self, registry: &str) -> String {
        let (host, port) = registry.rsplit_once(':').unwrap_or((registry, ""));
        let registry_port = u32::from(CoreSystem::ServiceRegistry.default_port());
        let of_registry = || port.parse::<u32>().ok()?.checked_sub(registry_port);
        let offset = self.port_offset.map(u32::from).or_else(of_registry).unwrap_or(0);
        format!("{host}:{}", u32::from(Port::Monitor.default_port()) + offset)
    }

    fn service_registry(&self) -> String {
        self.service_registry.clone().unwrap_or_else(|| on_this_machine(CoreSystem::ServiceRegistry.default_port(), self.port_offset()))
    }
}

/// Host and port of the cloud of this machine.
pub fn on_this_machine(port: u16, port_offset: u16) -> String {
    at(host_of_this_machine(), u32::from(port) + u32::from(port_offset))
}

/// What is beyond 65,535 is no port, which the connection will say.
fn at(host: IpAddr, port: u32) -> String {
    match host {
        IpAddr::V4(host) => format!("{host}:{port}"),
        IpAddr::V6(host) => format!("[{host}]:{port}"),
    }
}

/// One address, or those of the two nodes of a reliable pair.
fn parse_addresses(text: &str) -> Result<String, String> {
    let addresses: Vec<String> = text.split(',').map(parse_host_and_port).collect::<Result<_, _>>()?;
    if addresses.len() <= 2 { Ok(addresses.join(",")) } else { Err(format!("a pair has two nodes, and {} were named", addresses.len())) }
}

pub fn parse_host_and_port(text: &str) -> Result<String, String> {
    let address = text.trim().trim_start_matches("http://").trim_start_matches("https://").trim_end_matches('/');
    let expected = || format!("expected HOST:PORT, for example 127.0.0.1:8443, not {text:?}");
    let (host, port) = address.rsplit_once(':').ok_or_else(expected)?;
    let open_ipv6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    if host.is_empty() || open_ipv6 || port.parse::<u16>().is_err() { Err(expected()) } else { Ok(address.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_host_and_port() {
        for (text, address) in [("h:1", "h:1"), ("[::1]:8443", "[::1]:8443"), ("https://127.0.0.1:8443/", "127.0.0.1:8443")] {
            assert_eq!(parse_host_and_port(text).as_deref(), Ok(address));
        }
        for bad in ["", "h", ":1", "h:", "h:x", "h:70000", "::1:8443", "https://h"] {
            assert!(parse_host_and_port(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_addresses("h:1, http://i:2").as_deref(), Ok("h:1,i:2"));
        assert!(parse_addresses("h:1,i:2,j:3").is_err() && parse_addresses("h:1,").is_err());
        let ports: [(IpAddr, &str); 2] =
            [([192, 0, 2, 7].into(), "192.0.2.7:18443"), (std::net::Ipv6Addr::LOCALHOST.into(), "[::1]:18443")];
        assert!(ports.iter().all(|(host, address)| at(*host, 18_443) == *address));
    }

    #[test]
    fn bodkins_own_port_is_on_the_registrys_host() {
        let options = |registry: Option<&str>, monitor: Option<&str>, port_offset| RegistryOptions {
            service_registry: registry.map(str::to_owned),
            monitor: monitor.map(str::to_owned),
            port_offset,
            credentials: CredentialOptions::default(),
        };
        assert_eq!(options(None, None, Some(100)).monitor_address(), "127.0.0.1:8540");
        assert_eq!(options(Some("[::1]:18443"), None, Some(10_000)).monitor_address(), "[::1]:18440");
        assert_eq!(options(Some("h:1,i:1"), None, None).monitor_address(), "h:8440,i:8440");
        assert_eq!(options(Some("h:8443,h:8543"), None, None).monitor_address(), "h:8440,h:8540");
        assert_eq!(options(Some("h:8443,h:8543"), None, Some(100)).monitor_address(), "h:8540");
        assert_eq!(options(Some("h:1"), Some("i:2"), Some(0)).monitor_address(), "i:2");
    }
}
