//! Which local cloud a command is for.

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_client::{CallError, CoreSystems};
use clap::Args;

/// Options that say where the Service Registry is; the other core systems are found through it.
#[derive(Args, Clone, Debug)]
pub struct RegistryOptions {
    /// The cloud's Service Registry [default: 127.0.0.1:8443, plus the port offset]
    #[arg(long, global = true, env = "BODKIN_SERVICE_REGISTRY", value_name = "HOST:PORT", value_parser = parse_host_and_port)]
    service_registry: Option<String>,
    /// The port offset that the cloud on this machine was started with
    #[arg(long, global = true, env = "BODKIN_PORT_OFFSET", value_name = "N", default_value_t = 0)]
    port_offset: u16,
}

impl RegistryOptions {
    /// Finds the core systems.
    pub async fn discover(&self) -> Result<CoreSystems, CallError> {
        match &self.service_registry {
            Some(address) => CoreSystems::discover(address).await,
            None => CoreSystems::discover(default_address(self.port_offset)).await,
        }
    }
}

fn default_address(port_offset: u16) -> String {
    format!("127.0.0.1:{}", u32::from(CoreSystem::ServiceRegistry.default_port()) + u32::from(port_offset))
}

fn parse_host_and_port(text: &str) -> Result<String, String> {
    let address = text.trim().trim_start_matches("http://").trim_end_matches('/');
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
        for (text, address) in [("h:1", "h:1"), ("[::1]:8443", "[::1]:8443"), ("http://127.0.0.1:8443/", "127.0.0.1:8443")] {
            assert_eq!(parse_host_and_port(text).as_deref(), Ok(address));
        }
        for bad in ["", "h", ":1", "h:", "h:x", "h:70000", "::1:8443", "https://h"] {
            assert!(parse_host_and_port(bad).is_err(), "{bad}");
        }
        assert_eq!(default_address(10_000), "127.0.0.1:18443");
    }
}
