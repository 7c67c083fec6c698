//! The names in certificates: `<cloud>.<operator>.arrowhead.eu`, and `<system>.` in front of it (reference section 11).

use std::fmt;

use crate::name::{CloudName, SystemName};

/// What every name ends with.
const MASTER: [&str; 2] = ["arrowhead", "eu"];
/// Longest part between dots, as in domain names.
const PART_LENGTH_MAX: usize = 63;

/// A cloud's name in certificates: that of its authority, and the end of its systems' names. Lower-case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloudCommonName {
    /// The cloud's own name.
    pub cloud: CloudName,
    /// Who runs it.
    pub operator: CloudName,
}

/// A system's name in certificates. Lower-case: names compare without regard to case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SystemCommonName {
    /// The system's name in the registry.
    pub system: SystemName,
    /// Its cloud.
    pub cloud: CloudCommonName,
}

/// A common name of another form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the common name {name:?} is not of the form {expected}")]
pub struct CommonNameError {
    /// What came.
    pub name: String,
    /// What was expected.
    pub expected: &'static str,
}

impl CloudCommonName {
    /// What the form is.
    pub const FORM: &'static str = "<cloud>.<operator>.arrowhead.eu";

    /// Takes a common name of four parts.
    pub fn parse(name: &str) -> Result<Self, CommonNameError> {
        let [cloud, operator] = parts(name, Self::FORM)?;
        Ok(Self { cloud: CloudName::from_stored(&cloud), operator: CloudName::from_stored(&operator) })
    }
}

impl SystemCommonName {
    /// What the form is.
    pub const FORM: &'static str = "<system>.<cloud>.<operator>.arrowhead.eu";

    /// Takes a common name of five parts.
    pub fn parse(name: &str) -> Result<Self, CommonNameError> {
        let [system, cloud, operator] = parts(name, Self::FORM)?;
        let cloud = CloudCommonName { cloud: CloudName::from_stored(&cloud), operator: CloudName::from_stored(&operator) };
        Ok(Self { system: SystemName::from_stored(&system), cloud })
    }

    /// The name in tokens: without the master name (reference section 12).
    pub fn in_token(&self) -> String {
        format!("{}.{}.{}", self.system, self.cloud.cloud, self.cloud.operator)
    }
}

impl fmt::Display for CloudCommonName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.arrowhead.eu", self.cloud, self.operator)
    }
}

impl fmt::Display for SystemCommonName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.system, self.cloud)
    }
}

/// The parts in front of the master name. Certificates that were made elsewhere also have underscores in them.
fn parts<const N: usize>(name: &str, expected: &'static str) -> Result<[String; N], CommonNameError> {
    let error = || CommonNameError { name: name.to_owned(), expected };
    let lower = name.to_ascii_lowercase();
    let mut parts = lower.split('.');
    let mut own = [const { String::new() }; N];
    for own in &mut own {
        *own = parts.next().filter(|part| is_part(part)).ok_or_else(error)?.to_owned();
    }
    if parts.eq(MASTER) { Ok(own) } else { Err(error()) }
}

fn is_part(part: &str) -> bool {
    let is_part_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=PART_LENGTH_MAX).contains(&part.len()) && part.bytes().all(is_part_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_has_five_parts_in_any_case() {
        let name = SystemCommonName::parse("Sensor-7.TestCloud1.aitia.Arrowhead.EU").unwrap();
        assert_eq!((name.system.as_str(), name.cloud.cloud.as_str(), name.cloud.operator.as_str()), ("sensor-7", "testcloud1", "aitia"));
        assert_eq!(name.to_string(), "sensor-7.testcloud1.aitia.arrowhead.eu");
        assert_eq!(CloudCommonName::parse("testcloud1.aitia.arrowhead.eu").unwrap(), name.cloud);
    }

    #[test]
    fn other_forms_are_refused() {
        let long = format!("{}.cloud.operator.arrowhead.eu", "a".repeat(64));
        for name in [
            "",
            "sensor",
            "cloud.operator.arrowhead.eu",
            "a.sensor.cloud.operator.arrowhead.eu",
            "sensor.cloud.operator.arrowhead.com",
            "sensor.cloud.operator.arrowhead.eu.",
            ".cloud.operator.arrowhead.eu",
            "sensor..operator.arrowhead.eu",
            "sen sor.cloud.operator.arrowhead.eu",
            "sens\u{f6}r.cloud.operator.arrowhead.eu",
            "sensor\0.cloud.operator.arrowhead.eu",
            &long,
        ] {
            assert_eq!(SystemCommonName::parse(name).unwrap_err().name, name);
        }
        assert!(CloudCommonName::parse("sensor.cloud.operator.arrowhead.eu").is_err());
    }
}
