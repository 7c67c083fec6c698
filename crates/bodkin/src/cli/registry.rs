//! Which local cloud a command is for.

use std::{net::IpAddr, path::Path, time::Duration};

use anyhow::Context;
use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_client::{CoreSystems, Limits, Monitor};
use bodkin_host::Port;
use clap::Args;

use super::credentials::CredentialOptions;
use crate::settings::{host_of_this_machine, port_offset_of_this_machine};

/// How long a command waits for what a cloud has to ask others for: the cloud gives up first, each step behind its `neighbor_timeout_ms`, and says why.
const OTHER_CLOUDS_MAX: Duration = Duration::from_secs(600);
/// The Service Registry's port without an offset.
const REGISTRY_PORT: u16 = CoreSystem::ServiceRegistry.default_port();

/// Options that say where the Service Registry is; the other core systems are found through it.
#[derive(Args, Clone, Debug)]
pub struct RegistryOptions {
    /// The cloud's Service Registry, of a reliable pair both nodes' (HOST:PORT,HOST:PORT) [default: port 8443, plus the port offset, where /etc/bodkin/bodkin.toml has the cloud listen, or else at 127.0.0.1]
    #[arg(long, global = true, help_heading = "Which cloud", env = "BODKIN_SERVICE_REGISTRY", value_name = "HOST:PORT", value_parser = parse_addresses)]
    service_registry: Option<String>,
    /// The port offset that the cloud on this machine was started with; a cloud that --service-registry names has that of its Service Registry's port [default: what /etc/bodkin/bodkin.toml says, or else 0]
    #[arg(long, global = true, help_heading = "Which cloud", env = "BODKIN_PORT_OFFSET", value_name = "N")]
    port_offset: Option<u16>,
    /// Bodkin's own port [default: on the Service Registry's host, the Service Registry's port minus 3]
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
        let address = self.monitor_address()?;
        Ok(match self.credentials.security()? {
            Some(security) => Monitor::secure(address, limits, &security),
            None => Monitor::new(address, limits),
        })
    }

    /// Returns true if the commands show a certificate.
    ///
    /// # Errors
    /// Returns an error if a named certificate cannot be read.
    pub fn is_secure(&self) -> anyhow::Result<bool> {
        Ok(self.credentials.security()?.is_some())
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

    fn monitor_address(&self) -> anyhow::Result<String> {
        match &self.monitor {
            Some(monitor) => Ok(monitor.clone()),
            None => Ok(self.addresses(Port::Monitor.default_port()).context("name Bodkin's own port by --monitor HOST:PORT")?.join(",")),
        }
    }

    /// Returns where the cloud has the port whose standard number is `standard_port`: one address for each Service Registry,
    /// with its port offset, or that of this machine's cloud. Both nodes of a pair may run on one machine.
    ///
    /// # Errors
    /// Returns an error if a Service Registry's port is no standard port plus an offset: another cloud may be at any port that
    /// is derived from it.
    pub fn addresses(&self, standard_port: u16) -> anyhow::Result<Vec<String>> {
        match &self.service_registry {
            Some(registries) => registries.split(',').map(|registry| beside(registry, standard_port)).collect(),
            None => Ok(vec![on_this_machine(standard_port, self.port_offset())]),
        }
    }

    fn port_offset(&self) -> u16 {
        self.port_offset.unwrap_or_else(port_offset_of_this_machine)
    }

    fn service_registry(&self) -> String {
        self.service_registry.clone().unwrap_or_else(|| on_this_machine(REGISTRY_PORT, self.port_offset()))
    }
}

/// Returns the address of a port on a Service Registry's host, with the Service Registry's port offset.
fn beside(registry: &str, standard_port: u16) -> anyhow::Result<String> {
    let (host, port) = registry.rsplit_once(':').unwrap_or((registry, ""));
    let offset = port.parse::<u16>().ok().and_then(|port| port.checked_sub(REGISTRY_PORT));
    let port = offset.and_then(|offset| standard_port.checked_add(offset)).with_context(|| {
        format!("the cloud's port {standard_port} does not follow from --service-registry {registry}: {REGISTRY_PORT} plus a port offset is expected there")
    })?;
    Ok(format!("{host}:{port}"))
}

/// Host and port of the cloud of this machine.
fn on_this_machine(port: u16, port_offset: u16) -> String {
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
        for (registry, monitor, port_offset, address) in [
            (None, None, Some(100), "127.0.0.1:8540"),
            (Some("[::1]:18443"), None, Some(10_000), "[::1]:18440"),
            (Some("h:8443,h:8543"), None, None, "h:8440,h:8540"),
            // The offset of this machine's cloud, as of an exported variable, is not that of another one.
            (Some("h:8443,h:8543"), None, Some(200), "h:8440,h:8540"),
            (Some("h:1"), Some("i:2"), Some(0), "i:2"),
        ] {
            let options = options(registry, monitor, port_offset);
            assert_eq!(options.monitor_address().expect("it follows"), address, "{options:?}");
        }
        for registry in ["h:1", "h:8442", "h:8443,h:443"] {
            let error = format!("{:#}", options(Some(registry), None, Some(0)).monitor_address().expect_err(registry));
            assert!(error.contains("--monitor") && error.contains("8443 plus a port offset"), "{error}");
        }
        assert_eq!(options(Some("h:8543,i:8443"), None, None).addresses(5570).expect("they follow"), ["h:5670", "i:5570"]);
        assert!(options(Some("h:65535"), None, None).addresses(60_000).is_err());
    }
}
