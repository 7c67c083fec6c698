//! Onboarding: a new system comes to its certificate in one call, because the operator has granted it before.
//!
//! A grant says who may come (whoever knows a secret, or has a device's certificate), how often, until when, and what the
//! certificate then says. What the new system asks for decides nothing but which of the granted names it takes.

use std::{fmt, net::IpAddr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    caller::OPERATOR,
    core_service,
    name::{NameError, SystemName, is_name_part},
    pinned::PAIR_NODES,
    utc::UtcTime,
};

/// Grants that there may be; one more is refused.
pub const GRANTS_MAX: usize = 10_000;
/// Certificates that one grant may be good for.
pub const USES_MAX: u32 = 100_000;
/// Longest time that a grant may count.
pub const LIFETIME_MAX: Duration = Duration::from_secs(365 * 86_400);
/// How long a grant counts that does not say it.
pub const LIFETIME_DEFAULT: Duration = Duration::from_secs(3600);
/// DNS names and IP addresses that the certificates of a grant may be made out for.
pub const ALTERNATIVE_NAMES_MAX: usize = 32;
/// Longest name of a device, in characters.
pub const DEVICE_LENGTH_MAX: usize = 255;

/// Which systems a grant is for: one name, or all that begin as the pattern does (`sensor-*`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    prefix: String,
    is_open: bool,
}

/// What is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is no name.
    #[error("The name {0}")]
    Name(#[from] NameError),
    /// It begins as no name does.
    #[error("'{0}' is the beginning of no system's name; expected is a name, or its beginning with a * behind it, such as sensor-*.")]
    Prefix(String),
    /// It is not to be given away.
    #[error("'{0}' is the name of a core system or of the operator: no grant is made for it.")]
    Reserved(String),
}

impl NamePattern {
    /// Takes a name, or the beginning of names with `*` behind it.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let text = text.trim().to_ascii_lowercase();
        match text.strip_suffix('*') {
            // Any letter that follows makes a name of it.
            Some(prefix) if is_name_part(&format!("{prefix}a")) => Ok(Self { prefix: prefix.to_owned(), is_open: true }),
            Some(_) => Err(PatternError::Prefix(text)),
            None => {
                let name = SystemName::parse(&text)?;
                if is_reserved(name.as_str()) {
                    return Err(PatternError::Reserved(text));
                }
                Ok(Self { prefix: text, is_open: false })
            }
        }
    }

    /// Whether the grant is for this system. No pattern is for core systems, the operator and the nodes of a reliable pair.
    pub fn fits(&self, name: &SystemName) -> bool {
        let name = name.as_str();
        !is_reserved(name) && if self.is_open { name.starts_with(&self.prefix) } else { name == self.prefix }
    }

    /// The only system that it is for; `None` if there are many.
    pub fn only(&self) -> Option<SystemName> {
        (!self.is_open).then(|| SystemName::from_stored(&self.prefix))
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.prefix, if self.is_open { "*" } else { "" })
    }
}

fn is_reserved(name: &str) -> bool {
    name == OPERATOR || core_service::is_core_system(name) || PAIR_NODES.contains(&name)
}

/// A grant as an operator asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GrantRequest {
    /// A name, or the beginning of names with `*` behind it.
    pub system_name: String,
    /// The common name of the device's certificate; without it a secret is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// How often it can be used; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses: Option<u32>,
    /// Seconds that it counts; [`LIFETIME_DEFAULT`] if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
    /// DNS names and IP addresses that the certificate counts for as a server's, besides the system's name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternative_names: Vec<String>,
}

/// A grant to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGrant {
    /// For whom.
    pub systems: NamePattern,
    /// The device; `None` where a secret is asked for.
    pub device: Option<String>,
    /// How often.
    pub uses: u32,
    /// Until when.
    pub expires_at: UtcTime,
    /// What else the certificate counts for.
    pub alternative_names: Vec<String>,
}

/// Why a grant is not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// The name is no pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// Never, or too often.
    #[error("A grant can be used 1 to {USES_MAX} times, not {0} times.")]
    Uses(u32),
    /// For no time, or too long.
    #[error("A grant counts for 1 to {max} seconds, not for {0}.", max = LIFETIME_MAX.as_secs())]
    Lifetime(u64),
    /// What is no device's name.
    #[error("The device's name is blank or longer than {DEVICE_LENGTH_MAX} characters.")]
    Device,
    /// Too many names.
    #[error("A certificate counts for {ALTERNATIVE_NAMES_MAX} further names at the most, not for {0}.")]
    Names(usize),
    /// What is no name.
    #[error("'{0}' is neither a host name nor an IP address.")]
    Name(String),
}

impl NewGrant {
    /// Checks what an operator asks for.
    pub fn parse(request: GrantRequest, now: UtcTime) -> Result<Self, GrantError> {
        let systems = NamePattern::parse(&request.system_name)?;
        let uses = request.uses.unwrap_or(1);
        if !(1..=USES_MAX).contains(&uses) {
            return Err(GrantError::Uses(uses));
        }
        let seconds = request.expires_in_seconds.unwrap_or(LIFETIME_DEFAULT.as_secs());
        if !(1..=LIFETIME_MAX.as_secs()).contains(&seconds) {
            return Err(GrantError::Lifetime(seconds));
        }
        let device = request.device.map(|device| device.trim().to_owned());
        if device.as_ref().is_some_and(|device| device.is_empty() || device.chars().count() > DEVICE_LENGTH_MAX) {
            return Err(GrantError::Device);
        }
        let names = request.alternative_names;
        if names.len() > ALTERNATIVE_NAMES_MAX {
            return Err(GrantError::Names(names.len()));
        }
        match names.iter().find(|name| !is_host(name)) {
            Some(wrong) => Err(GrantError::Name(wrong.clone())),
            None => Ok(Self { systems, device, uses, expires_at: now.plus(Duration::from_secs(seconds)), alternative_names: names }),
        }
    }
}

fn is_host(name: &str) -> bool {
    let is_part = |part: &str| (1..=63).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    name.parse::<IpAddr>().is_ok() || (name.len() <= 253 && name.split('.').all(is_part))
}

/// A grant that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Row id.
    pub id: i64,
    /// For whom.
    pub systems: NamePattern,
    /// The device; `None` where it takes a secret.
    pub device: Option<String>,
    /// How often it can still be used.
    pub uses_left: u32,
    /// Until when.
    pub expires_at: UtcTime,
    /// What else the certificate counts for.
    pub alternative_names: Vec<String>,
    /// When it was made.
    pub created_at: UtcTime,
}

/// Why a grant is not good for what is asked. Only the last is told to who asks: they know the secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotGranted {
    /// There is none, or the secret is another.
    #[error("no such grant, or another secret")]
    Unknown,
    /// It is over.
    #[error("the grant has expired")]
    Expired,
    /// It was used as often as it may be.
    #[error("the grant is used up")]
    UsedUp,
    /// It is for other systems.
    #[error("The grant is for {pattern}: {}", told(asked.as_deref()))]
    Name {
        /// For whom it is.
        pattern: String,
        /// Who was asked for.
        asked: Option<String>,
    },
}

fn told(asked: Option<&str>) -> String {
    asked.map_or("say which of them you are (systemName).".to_owned(), |name| format!("'{name}' is not one of them."))
}

impl Grant {
    /// Which system may have a certificate of the grant now: the one that is asked for, or the only one there is.
    pub fn admit(&self, asked: Option<&SystemName>, now: UtcTime) -> Result<SystemName, NotGranted> {
        if now > self.expires_at {
            return Err(NotGranted::Expired);
        }
        if self.uses_left == 0 {
            return Err(NotGranted::UsedUp);
        }
        let name = asked.cloned().or_else(|| self.systems.only()).filter(|name| self.systems.fits(name));
        name.ok_or_else(|| NotGranted::Name { pattern: self.systems.to_string(), asked: asked.map(ToString::to_string) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SystemName {
        SystemName::parse(text).unwrap()
    }

    fn grant(pattern: &str) -> Grant {
        let time = UtcTime::from_unix_seconds;
        let systems = NamePattern::parse(pattern).unwrap();
        Grant { id: 1, systems, device: None, uses_left: 1, expires_at: time(100), alternative_names: Vec::new(), created_at: time(0) }
    }

    #[test]
    fn a_pattern_fits_one_name_or_those_that_begin_with_it() {
        for (pattern, fitting, not_fitting) in [
            ("sensor-7", &["sensor-7", "Sensor-7"][..], &["sensor-77", "sensor"][..]),
            ("Sensor-*", &["sensor-1", "sensor-x-y"], &["sensor", "display", "sensors"]),
            ("*", &["anything"], &["sysop", "serviceregistry", "orchestrator", "gatekeeper"]),
            ("s*", &["sensor"], &["sysop", "systemregistry"]),
        ] {
            let pattern = NamePattern::parse(pattern).unwrap();
            fitting.iter().for_each(|text| assert!(pattern.fits(&name(text)), "{pattern} {text}"));
            not_fitting.iter().for_each(|text| assert!(!pattern.fits(&name(text)), "{pattern} {text}"));
        }
        assert_eq!(NamePattern::parse(" Sensor-7 ").unwrap().only(), Some(name("sensor-7")));
        assert_eq!(NamePattern::parse("sensor-*").unwrap().only(), None);
    }

    #[test]
    fn what_is_no_pattern_or_not_to_be_given_away_is_refused() {
        for text in ["", "7", "-x", "a b", "a*b", "a**", "7*", "-*", "a_*", &format!("{}*", "a".repeat(63))] {
            assert!(matches!(NamePattern::parse(text), Err(PatternError::Name(_) | PatternError::Prefix(_))), "{text}");
        }
        for text in ["sysop", "SysOp", "serviceregistry", "gatekeeper"] {
            assert!(matches!(NamePattern::parse(text), Err(PatternError::Reserved(_))), "{text}");
        }
    }

    #[test]
    fn a_request_for_a_grant_has_bounds() {
        let now = UtcTime::from_unix_seconds(1000);
        let request = || GrantRequest { system_name: "sensor-7".into(), ..GrantRequest::default() };
        let made = NewGrant::parse(request(), now).unwrap();
        assert_eq!((made.uses, made.expires_at), (1, now.plus(LIFETIME_DEFAULT)));
        let uses = |uses| GrantRequest { uses: Some(uses), ..request() };
        let seconds = |seconds| GrantRequest { expires_in_seconds: Some(seconds), ..request() };
        let names = |names: &[&str]| GrantRequest { alternative_names: names.iter().map(|name| name.to_string()).collect(), ..request() };
        let device = |device: &str| GrantRequest { device: Some(device.into()), ..request() };
        for good in
            [uses(USES_MAX), seconds(1), seconds(LIFETIME_MAX.as_secs()), names(&["10.0.0.7", "::1", "sensor-7.local"]), device("d")]
        {
            NewGrant::parse(good, now).unwrap();
        }
        for bad in [
            uses(0),
            uses(USES_MAX + 1),
            seconds(0),
            seconds(LIFETIME_MAX.as_secs() + 1),
            names(&["a b"]),
            names(&[""]),
            names(&["x"; 33]),
            names(&["*.local"]),
            device(" "),
            device(&"d".repeat(256)),
        ] {
            assert!(NewGrant::parse(bad.clone(), now).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_grant_admits_in_its_time_as_often_as_it_may_and_whom_it_is_for() {
        let now = UtcTime::from_unix_seconds(100);
        assert_eq!(grant("sensor-7").admit(None, now), Ok(name("sensor-7")));
        assert_eq!(grant("sensor-*").admit(Some(&name("sensor-9")), now), Ok(name("sensor-9")));
        assert_eq!(grant("sensor-7").admit(None, UtcTime::from_unix_seconds(101)), Err(NotGranted::Expired));
        assert_eq!(Grant { uses_left: 0, ..grant("sensor-7") }.admit(None, now), Err(NotGranted::UsedUp));
        for asked in [None, Some(name("display")), Some(name("sysop"))] {
            let refused = grant("sensor-*").admit(asked.as_ref(), now).unwrap_err();
            assert!(refused.to_string().starts_with("The grant is for sensor-*: "), "{refused}");
        }
    }
}
