//! The file by which one cloud is made known to another: who it is, its gatekeeper's key, and the relays by which it is reached (`docs/formats/introduction.md`).

use std::{fmt, fs, path::Path};

use anyhow::{Context, bail};
use bodkin_arrowhead::{form::RelayRequest, name::CloudName};
use bodkin_client::answer::KnownRelay;
use bodkin_trust::{
    base64,
    certificate::Fingerprint,
    jose::{SealingKey, VerifyingKey},
};
use serde::{Deserialize, Serialize};

/// The version that is written and read.
pub const VERSION: u32 = 1;
/// Bytes of a file; a longer one is none.
const BYTES_MAX: u64 = 64 * 1024;
/// Relays in it.
const RELAYS_MAX: usize = 16;

/// What is said at the beginning of a file.
const HEAD: &str = "\
# What another cloud needs to know of this one. Hand the file to its operator, and read him the fingerprint by another way
# (a call, a visit): bodkin cloud add FILE --fingerprint SHA256
";

/// What a cloud says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Introduction {
    /// The version of the form.
    #[serde(rename = "bodkin_introduction")]
    pub version: u32,
    /// Who runs it.
    pub operator: String,
    /// Its name.
    pub name: String,
    /// Base64 of its gatekeeper's public key.
    pub gatekeeper_key: String,
    /// The relays by which it is reached.
    pub relay: Vec<IntroducedRelay>,
}

/// A relay by which a cloud is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntroducedRelay {
    /// Host name or IP address.
    address: String,
    /// Where it listens.
    port: u16,
    /// Whether it is reached by TLS.
    secure: bool,
    /// What it is for.
    #[serde(rename = "type")]
    relay_type: String,
    /// Base64 of its public key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

impl IntroducedRelay {
    /// Whether it is one that is known here: by its key, if both know it, and otherwise by its place.
    pub fn is(&self, known: &KnownRelay) -> bool {
        match (&self.key, &known.authentication_info) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => self.address.eq_ignore_ascii_case(&known.address) && self.port == known.port,
        }
    }
}

impl From<KnownRelay> for IntroducedRelay {
    fn from(relay: KnownRelay) -> Self {
        let KnownRelay { address, port, secure, relay_type, authentication_info: key, .. } = relay;
        Self { address, port, secure, relay_type, key }
    }
}

impl From<&IntroducedRelay> for RelayRequest {
    fn from(relay: &IntroducedRelay) -> Self {
        Self {
            address: Some(relay.address.clone()),
            port: Some(relay.port.into()),
            authentication_info: relay.key.clone(),
            secure: Some(relay.secure),
            exclusive: Some(false),
            relay_type: Some(relay.relay_type.clone()),
        }
    }
}

/// SHA-256 of everything that a file says, in groups that can be read aloud.
pub struct Spoken(Fingerprint);

impl Spoken {
    /// Whether a text is it, however its digits are grouped.
    pub fn is(&self, text: &str) -> bool {
        let digits: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
        digits.eq_ignore_ascii_case(&self.0.to_string())
    }
}

impl fmt::Display for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let groups: Vec<&str> = digits.as_bytes().chunks(4).map(|group| std::str::from_utf8(group).expect("digits are text")).collect();
        f.write_str(&groups.join("-"))
    }
}

impl Introduction {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is too long, or is none; the error says where and why.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let place = path.display();
        let length = fs::metadata(path).with_context(|| format!("cannot read {place}"))?.len();
        if length > BYTES_MAX {
            bail!("{place} has {length} bytes, and what introduces a cloud has {BYTES_MAX} at the most");
        }
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {place}"))?;
        Self::parse(&text).with_context(|| format!("{place} does not introduce a cloud (bodkin cloud introduce writes such files)"))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let introduction: Self = toml::from_str(text)?;
        let Self { version, operator, name, gatekeeper_key, relay } = &introduction;
        if *version != VERSION {
            bail!("its version is {version}, and this bodkin reads {VERSION}");
        }
        for (what, text) in [("operator", operator), ("name", name)] {
            CloudName::parse(text).map_err(|error| anyhow::anyhow!("{what} {error}"))?;
        }
        let key = base64::decode(gatekeeper_key.trim()).context("gatekeeper_key is no Base64")?;
        SealingKey::new(&key).context("gatekeeper_key")?;
        VerifyingKey::new(&key).context("gatekeeper_key")?;
        if relay.is_empty() || relay.len() > RELAYS_MAX {
            bail!("it has {} relays: expected 1 to {RELAYS_MAX}", relay.len());
        }
        Ok(introduction)
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        format!("{HEAD}{}", toml::to_string(self).expect("texts and numbers are TOML"))
    }

    /// Of what it says; how it is written does not count.
    pub fn fingerprint(&self) -> Spoken {
        let Self { version, operator, name, gatekeeper_key, relay } = self;
        let mut said =
            vec![format!("bodkin introduction {version}"), operator.to_lowercase(), name.to_lowercase(), gatekeeper_key.trim().to_owned()];
        for IntroducedRelay { address, port, secure, relay_type, key } in relay {
            let key = key.as_deref().unwrap_or_default();
            said.extend([address.to_lowercase(), port.to_string(), secure.to_string(), relay_type.clone(), key.to_owned()]);
        }
        // Lengths in front: no two introductions say the same in other places.
        let said: String = said.iter().map(|text| format!("{} {text}\n", text.len())).collect();
        Spoken(Fingerprint::of(said.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use bodkin_trust::{PrivateKey, key::KeySize};

    use super::*;

    static KEY: LazyLock<String> = LazyLock::new(|| base64::encode(&PrivateKey::generate(KeySize::Bits2048).unwrap().public_key_info()));

    fn introduction() -> Introduction {
        Introduction {
            version: VERSION,
            operator: "aitia".into(),
            name: "testcloud1".into(),
            gatekeeper_key: KEY.clone(),
            relay: vec![IntroducedRelay {
                address: "relay.example".into(),
                port: 5571,
                secure: true,
                relay_type: "GENERAL_RELAY".into(),
                key: None,
            }],
        }
    }

    #[test]
    fn what_is_written_is_read_and_has_the_same_fingerprint() {
        let written = introduction();
        let read = Introduction::parse(&written.to_text().replace('\n', "\r\n")).unwrap();
        assert_eq!(read, written);
        let spoken = written.fingerprint();
        assert!(read.fingerprint().is(&spoken.to_string()) && spoken.is(&spoken.to_string().to_uppercase().replace('-', " ")));
        assert!(!spoken.is("") && !spoken.is(&spoken.to_string()[1..]));
    }

    #[test]
    fn whatever_is_changed_has_another_fingerprint() {
        let fingerprint = introduction().fingerprint().to_string();
        let changes: [fn(&mut Introduction); 6] = [
            |changed| changed.operator.push('x'),
            |changed| changed.name.push('x'),
            |changed| changed.relay[0].address.push('x'),
            |changed| changed.relay[0].port += 1,
            |changed| changed.relay[0].secure = false,
            |changed| changed.relay[0].key = Some("key".into()),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut changed = introduction();
            change(&mut changed);
            assert_ne!(changed.fingerprint().to_string(), fingerprint, "change {number}");
        }
    }

    #[test]
    fn what_introduces_nobody_is_refused() {
        let text = introduction().to_text();
        for (from, to, told) in [
            ("bodkin_introduction = 1", "bodkin_introduction = 2", "its version is 2"),
            ("name = \"testcloud1\"", "name = \"test_cloud\"", "name has invalid format"),
            ("secure = true", "secure = true\nsecret = 1", "unknown field"),
            (KEY.as_str(), "AAAA", "gatekeeper_key"),
            (KEY.as_str(), "not Base64!", "no Base64"),
        ] {
            let changed = text.replace(from, to);
            assert_ne!(changed, text, "{from}");
            let error = format!("{:#}", Introduction::parse(&changed).unwrap_err());
            assert!(error.contains(told), "{error}");
        }
        let alone = Introduction { relay: Vec::new(), ..introduction() };
        assert!(format!("{:#}", Introduction::parse(&alone.to_text()).unwrap_err()).contains("it has 0 relays"));
    }
}
