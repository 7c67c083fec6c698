//! What the options say of tunnels to other clouds.

use std::time::Duration;

use anyhow::bail;
use bodkin_host::PortRange;

use super::Settings;

/// Shortest time without a connection after which a session is closed: half of it is what the other gateway may be silent for.
const IDLE_MIN_MS: u64 = 600;

/// How the Gateway is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tunnels {
    pub(super) ports: PortRange,
    pub(super) is_mandatory: bool,
    pub(super) idle_timeout: Duration,
}

impl Settings {
    /// What complete settings say.
    pub(super) fn tunnels(&self) -> anyhow::Result<Tunnels> {
        let all = "complete settings have every option";
        let (first, last) = (self.gateway_min_port.expect(all), self.gateway_max_port.expect(all));
        if first == 0 || last < first {
            bail!("gateway_min_port is {first} and gateway_max_port {last}: ports from the first to the last are expected, from 1 on");
        }
        let ports = match self.offset() {
            None => PortRange::Any,
            Some(offset) => match (first.checked_add(offset), last.checked_add(offset)) {
                (Some(first), Some(last)) => PortRange::Ports { first, last },
                _ => bail!("--port-offset {offset} moves gateway_max_port, which is {last}, beyond 65535"),
            },
        };
        let (is_mandatory, idle_ms) = (self.gateway_is_mandatory.expect(all), self.gateway_idle_timeout_ms.expect(all));
        if is_mandatory && self.insecure.expect(all) {
            bail!("gateway_is_mandatory needs secure mode: without certificates there is no Gateway");
        }
        if idle_ms < IDLE_MIN_MS {
            bail!("gateway_idle_timeout_ms must be at least {IDLE_MIN_MS}, not {idle_ms}");
        }
        Ok(Tunnels { ports, is_mandatory, idle_timeout: Duration::from_millis(idle_ms) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl Fn(&mut Settings), expected: Result<PortRange, &str>) {
        let mut settings = Settings::defaults();
        change(&mut settings);
        match (settings.tunnels(), expected) {
            (Ok(tunnels), Ok(ports)) => assert_eq!(tunnels.ports, ports),
            (Err(error), Err(told)) => assert!(error.to_string().contains(told), "{error}"),
            (found, _) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn tunnels_have_ports_and_certificates() {
        let ports = |first, last| Ok(PortRange::Ports { first, last });
        check(|_| {}, ports(8000, 8100));
        check(|settings| settings.port_offset = Some(100), ports(8100, 8200));
        check(|settings| settings.any_port = Some(true), Ok(PortRange::Any));
        check(|settings| settings.gateway_max_port = Some(8000), ports(8000, 8000));
        check(|settings| settings.gateway_max_port = Some(7999), Err("from the first to the last"));
        check(|settings| settings.gateway_min_port = Some(0), Err("from 1 on"));
        check(|settings| settings.port_offset = Some(57_500), Err("beyond 65535"));
        check(|settings| settings.gateway_idle_timeout_ms = Some(599), Err("at least 600"));
        check(|settings| (settings.gateway_is_mandatory, settings.insecure) = (Some(true), Some(true)), Err("secure mode"));
    }
}
