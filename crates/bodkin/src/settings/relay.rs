//! What the options say of a relay inside this cloud.

use anyhow::{Context, bail};
use bodkin_host::{HubLimits, RelayConfig};

use super::Settings;

impl Settings {
    /// What complete settings say; `None`: there is no relay.
    pub(super) fn relay_config(&self) -> anyhow::Result<Option<RelayConfig>> {
        let all = "complete settings have every option";
        let text = self.relay_listen.as_deref().expect(all).trim();
        if text.is_empty() {
            return Ok(None);
        }
        let example = RelayConfig::DEFAULT_PORT;
        let listen =
            text.parse().with_context(|| format!("relay_listen is '{text}', where IP:PORT is expected, such as 0.0.0.0:{example}"))?;
        if self.insecure.expect(all) {
            bail!("relay_listen needs secure mode: a relay knows its clients by their certificates");
        }
        Ok(Some(RelayConfig { listen, limits: HubLimits::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_has_an_address_and_certificates() {
        let config = |listen: &str, insecure| {
            Settings { relay_listen: Some(listen.to_owned()), insecure: Some(insecure), ..Settings::defaults() }.relay_config()
        };
        assert_eq!(config("", true).unwrap(), None);
        let relay = config(" 127.0.0.1:5573 ", false).unwrap().expect("there is one");
        assert_eq!((relay.listen, relay.limits), ("127.0.0.1:5573".parse().unwrap(), HubLimits::default()));
        assert!(config("relay.example:5573", false).unwrap_err().to_string().contains("IP:PORT"));
        assert!(config("127.0.0.1:5573", true).unwrap_err().to_string().contains("secure mode"));
    }
}
