//! What the options say of DNS-SD.

use anyhow::bail;
use bodkin_host::Announced;

use super::Settings;

/// Nothing is announced.
pub const OFF: &str = "off";

impl Settings {
    /// What complete settings say.
    pub(super) fn announced(&self) -> anyhow::Result<Option<Announced>> {
        match self.dns_sd.as_deref().expect("complete settings have every option").trim() {
            OFF => Ok(None),
            "cloud" => Ok(Some(Announced::CoreSystems)),
            "services" => Ok(Some(Announced::Services)),
            other => bail!("dns_sd is '{other}', where off, cloud or services is expected"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_off_unless_the_operator_says_what() {
        let config = |dns_sd: &str| Settings { dns_sd: Some(dns_sd.to_owned()), ..Settings::defaults() }.announced();
        assert_eq!(Settings::defaults().announced().unwrap(), None);
        assert_eq!(config("cloud").unwrap(), Some(Announced::CoreSystems));
        assert_eq!(config(" services ").unwrap(), Some(Announced::Services));
        assert!(config("on").unwrap_err().to_string().contains("off, cloud or services"));
    }
}
