//! What the options say of a relay inside this cloud, and of what others ask for.

use anyhow::{Context, bail};
use bodkin_arrowhead::dialogue::FixedAnswers;
use bodkin_host::{HubLimits, Logins, RelayConfig};
use bodkin_trust::file;

use super::{Settings, given};

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

    /// What other clouds are answered whatever they ask.
    pub(super) fn fixed_answers(&self) -> anyhow::Result<FixedAnswers> {
        let Some(path) = given(&self.fixed_answers) else { return Ok(FixedAnswers::default()) };
        let text = std::fs::read_to_string(&path).with_context(|| format!("fixed_answers: cannot read {}", path.display()))?;
        FixedAnswers::parse(&text).with_context(|| format!("fixed_answers: {}", path.display()))
    }

    /// What brokers are told that ask for a name and a passcode.
    pub(super) fn relay_logins(&self) -> anyhow::Result<Logins> {
        let Some(path) = given(&self.relay_logins) else { return Ok(Logins::default()) };
        let content = file::read_private(&path).context("relay_logins")?;
        let place = path.display();
        let text = std::str::from_utf8(&content).with_context(|| format!("relay_logins: {place} is no UTF-8 text"))?;
        Logins::parse(text).with_context(|| format!("relay_logins: {place}"))
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

    #[test]
    fn logins_are_read_from_a_file_that_nobody_else_reads() {
        let place = tempfile::TempDir::new().unwrap();
        let path = place.path().join("logins");
        let read = || Settings { relay_logins: Some(path.clone()), ..Settings::defaults() }.relay_logins();
        assert_eq!(Settings::defaults().relay_logins().unwrap(), Logins::default());
        file::write_private(&path, b"relay.example:61614 bodkin secret\n").unwrap();
        assert!(read().unwrap().of("relay.example", 61614).is_some());
        file::write_private(&path, b"relay.example bodkin secret\n").unwrap();
        let told = format!("{:#}", read().unwrap_err());
        assert!(told.contains("logins: line 1 is no 'HOST:PORT NAME PASSCODE'") && !told.contains("secret"), "{told}");
        file::write_public(&path, b"relay.example:61614 bodkin secret\n").unwrap();
        assert!(format!("{:#}", read().unwrap_err()).contains("chmod 600"));
    }
}
