//! Names that cannot hold a wrong value.
//!
//! The **name part rule**: 1 to 63 characters, a letter first, then letters, digits and dashes, no dash at the end.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};

/// Longest text upstream's columns hold, in characters.
pub const TEXT_LENGTH_MAX: usize = 255;
const NAME_PART_LENGTH_MAX: usize = 63;

/// Which of upstream's configurable rules are on. The defaults are those of upstream's shipped configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamingRules {
    /// Service definitions obey the name part rule; otherwise any text that is not blank.
    pub strict_service_definition: bool,
    /// Interfaces are HTTP or HTTPS with JSON or XML only.
    pub strict_interface_name: bool,
    /// 127.x, ::1, localhost and loopback may be registered.
    pub allow_self_addressing: bool,
    /// 169.254.x and fe80:: may be registered.
    pub allow_non_routable_addressing: bool,
    /// Services secured by certificate or token may be registered; insecure mode has nothing to secure them with.
    pub secure_services: bool,
}

impl Default for NamingRules {
    fn default() -> Self {
        Self {
            strict_service_definition: true,
            strict_interface_name: false,
            allow_self_addressing: true,
            allow_non_routable_addressing: true,
            secure_services: false,
        }
    }
}

impl NamingRules {
    /// The same rules for names that were registered elsewhere: upstream does not check such service definitions.
    pub fn lenient_definition(&self) -> Self {
        Self { strict_service_definition: false, ..*self }
    }
}

/// Whether `text` obeys the name part rule (no trimming here).
pub fn is_name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    bytes.len() <= NAME_PART_LENGTH_MAX
        && first.is_ascii_alphabetic()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

macro_rules! name_type {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text in its stored case.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Takes a text that was checked when it was stored.
            pub fn from_stored(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    };
}

name_type! {
    /// A system's name: the name part rule, lower-case.
    SystemName
}
name_type! {
    /// A cloud's operator or name: the name part rule, lower-case.
    CloudName
}
name_type! {
    /// A service definition: trimmed, lower-case, at most [`TEXT_LENGTH_MAX`] characters.
    ServiceDefinition
}
name_type! {
    /// An interface: `PROTOCOL-SECURE-FORMAT` or `PROTOCOL-INSECURE-FORMAT`, upper-case.
    InterfaceName
}
name_type! {
    /// An event type: trimmed, upper-case, at most [`TEXT_LENGTH_MAX`] characters.
    EventType
}

/// Why a text is not the name it should be. The text says what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing but white space, or absent.
    #[error("is null or blank.")]
    Blank,
    /// The name part rule is broken.
    #[error(
        "has invalid format. Names may only contain letters (english alphabet), numbers and dash (-), have to start with a letter \
         (also cannot end with dash), and are at most 63 characters long."
    )]
    NamePart,
    /// Longer than [`TEXT_LENGTH_MAX`].
    #[error("is longer than {TEXT_LENGTH_MAX} characters.")]
    TooLong,
    /// Not `PROTOCOL-(SECURE|INSECURE)-FORMAT`.
    #[error("has invalid format. Expected PROTOCOL-SECURE-FORMAT or PROTOCOL-INSECURE-FORMAT, for example HTTP-INSECURE-JSON.")]
    Interface,
}

fn not_blank(text: &str) -> Result<&str, NameError> {
    let text = text.trim();
    if text.is_empty() { Err(NameError::Blank) } else { Ok(text) }
}

fn name_part(text: &str) -> Result<Arc<str>, NameError> {
    let text = not_blank(text)?;
    if is_name_part(text) { Ok(text.to_ascii_lowercase().into()) } else { Err(NameError::NamePart) }
}

impl SystemName {
    /// Trims, checks and lower-cases.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        name_part(text).map(Self)
    }
}

impl CloudName {
    /// Trims, checks and lower-cases.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        name_part(text).map(Self)
    }
}

impl ServiceDefinition {
    /// Trims, checks (strictly or not, as the rules say) and lower-cases.
    pub fn parse(text: &str, rules: &NamingRules) -> Result<Self, NameError> {
        let text = not_blank(text)?;
        if rules.strict_service_definition && !is_name_part(text) {
            return Err(NameError::NamePart);
        }
        not_too_long(text.to_lowercase()).map(|text| Self(text.into()))
    }
}

impl InterfaceName {
    /// Trims, upper-cases and checks.
    pub fn parse(text: &str, rules: &NamingRules) -> Result<Self, NameError> {
        let text = not_blank(text)?.to_uppercase();
        let mut parts = text.split('-');
        let (Some(protocol), Some(security), Some(format), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(NameError::Interface);
        };
        let word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        let known = !rules.strict_interface_name || (matches!(protocol, "HTTP" | "HTTPS") && matches!(format, "JSON" | "XML"));
        if !word(protocol) || !word(format) || !matches!(security, "SECURE" | "INSECURE") || !known {
            return Err(NameError::Interface);
        }
        if text.len() > TEXT_LENGTH_MAX { Err(NameError::TooLong) } else { Ok(Self(text.into())) }
    }
}

/// Asked of the form that is stored: folding the case may make a text longer, as `ß` does in capitals.
fn not_too_long(folded: String) -> Result<String, NameError> {
    if folded.chars().count() > TEXT_LENGTH_MAX { Err(NameError::TooLong) } else { Ok(folded) }
}

impl EventType {
    /// Trims, checks and upper-cases.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        not_too_long(not_blank(text)?.to_uppercase()).map(|text| Self(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn name_parts_start_with_a_letter_and_do_not_end_with_a_dash() {
        for good in ["a", "A1", "a-b", "sensor-1", &"a".repeat(63)] {
            assert!(is_name_part(good), "{good}");
        }
        for bad in ["", "1a", "-a", "a-", "a_b", "a.b", "å", "a b", &"a".repeat(64)] {
            assert!(!is_name_part(bad), "{bad}");
        }
    }

    #[test]
    fn a_name_is_measured_as_it_is_stored() {
        assert_eq!(EventType::parse(&"x".repeat(TEXT_LENGTH_MAX)).map(|name| name.as_str().len()), Ok(TEXT_LENGTH_MAX));
        for long in ["x".repeat(TEXT_LENGTH_MAX + 1), "ß".repeat(TEXT_LENGTH_MAX / 2 + 1)] {
            assert_eq!(EventType::parse(&long), Err(NameError::TooLong), "{long}");
        }
    }

    #[test]
    fn interfaces_have_three_parts() {
        let lenient = NamingRules::default();
        let strict = NamingRules { strict_interface_name: true, ..lenient };
        assert_eq!(InterfaceName::parse(" http-insecure-json ", &lenient).unwrap().as_str(), "HTTP-INSECURE-JSON");
        assert!(InterfaceName::parse("MQTT_5-SECURE-CBOR", &lenient).is_ok());
        assert!(InterfaceName::parse("MQTT-SECURE-JSON", &strict).is_err());
        for bad in ["", "HTTP", "HTTP-JSON", "HTTP-SAFE-JSON", "HTTP-SECURE-", "-SECURE-JSON", "HTTP-SECURE-JSON-X", "HT.TP-SECURE-JSON"] {
            assert!(InterfaceName::parse(bad, &lenient).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_parsed_name_parses_to_itself(text in "\\PC{0,70}") {
            if let Ok(name) = SystemName::parse(&text) {
                prop_assert_eq!(SystemName::parse(name.as_str()).unwrap(), name);
            }
            if let Ok(interface) = InterfaceName::parse(&text, &NamingRules::default()) {
                prop_assert_eq!(InterfaceName::parse(interface.as_str(), &NamingRules::default()).unwrap(), interface);
            }
        }

        #[test]
        fn every_text_of_the_rule_is_a_name(text in "[A-Za-z]([0-9A-Za-z-]{0,61}[0-9A-Za-z])?") {
            prop_assert_eq!(SystemName::parse(&text).unwrap().to_string(), text.to_lowercase());
        }
    }
}
