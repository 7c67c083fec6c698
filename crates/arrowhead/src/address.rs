//! Network addresses as the Service Registry stores them.

use std::{
    fmt::Write,
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use serde::{Deserialize, Serialize, Serializer};

use crate::name::{NamingRules, TEXT_LENGTH_MAX, is_name_part};

/// What an address is, as queries by address type see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum AddressKind {
    /// Dot-separated name parts.
    Hostname,
    /// Dotted quad.
    Ipv4,
    /// Eight groups of four hexadecimal digits.
    Ipv6,
}

impl AddressKind {
    /// The wire's spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hostname => "HOSTNAME",
            Self::Ipv4 => "IPV4",
            Self::Ipv6 => "IPV6",
        }
    }
}

/// A checked, lower-case address; IPv6 is written out in full.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    text: Arc<str>,
    kind: AddressKind,
}

/// Why a text is no address Bodkin takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// No address, or a forbidden one.
    #[error("Network address verification failure: {0}")]
    Refused(String),
    /// Longer than [`TEXT_LENGTH_MAX`] characters.
    #[error("the address is longer than {TEXT_LENGTH_MAX} characters")]
    TooLong,
}

impl Address {
    /// Trims, lower-cases, writes IPv6 out and checks what the rules forbid.
    pub fn parse(text: &str, rules: &NamingRules) -> Result<Self, AddressError> {
        let text = text.trim().to_ascii_lowercase();
        if text.is_empty() {
            return Err(AddressError::Refused("Network address is empty.".into()));
        }
        if text.contains(':') {
            return Self::parse_ipv6(&text, rules);
        }
        match text.parse::<Ipv4Addr>() {
            Ok(ip) => Self::check_ipv4(ip, &text, rules),
            Err(_) => Self::parse_hostname(text, rules),
        }
    }

    fn check_ipv4(ip: Ipv4Addr, text: &str, rules: &NamingRules) -> Result<Self, AddressError> {
        if ip.is_unspecified() {
            return Err(AddressError::Refused(format!("{text} placeholder address is denied.")));
        }
        if ip.is_broadcast() || ip.is_multicast() {
            return Err(AddressError::Refused(format!("{text} broadcast or multicast address is denied.")));
        }
        check_reach(text, ip.is_loopback(), ip.is_link_local(), rules)?;
        Ok(Self { text: text.into(), kind: AddressKind::Ipv4 })
    }

    fn parse_ipv6(text: &str, rules: &NamingRules) -> Result<Self, AddressError> {
        let ip: Ipv6Addr = text.parse().map_err(|_| AddressError::Refused(format!("{text} is not a valid IPv6 address.")))?;
        if ip.is_unspecified() {
            return Err(AddressError::Refused(format!("{text} unspecified address is denied.")));
        }
        if ip.is_multicast() {
            return Err(AddressError::Refused(format!("{text} multicast address is denied.")));
        }
        check_reach(text, ip.is_loopback(), ip.is_unicast_link_local(), rules)?;
        let mut text = String::with_capacity(39);
        write_out(ip, &mut text);
        Ok(Self { text: text.into(), kind: AddressKind::Ipv6 })
    }

    fn parse_hostname(text: String, rules: &NamingRules) -> Result<Self, AddressError> {
        // A dot at the end marks a name that is complete (RFC 1034, section 3.1).
        let name = text.strip_suffix('.').unwrap_or(&text);
        if text.len() > TEXT_LENGTH_MAX && name.split('.').all(is_name_part) {
            return Err(AddressError::TooLong);
        }
        if !name.split('.').all(is_name_part) {
            return Err(AddressError::Refused(format!("{text} is neither an IP address nor a host name of dot-separated name parts.")));
        }
        check_reach(&text, matches!(name, "localhost" | "loopback"), false, rules)?;
        Ok(Self { text: text.into(), kind: AddressKind::Hostname })
    }

    /// Takes a text that was checked when it was stored.
    pub fn from_stored(text: &str) -> Self {
        let kind = if text.contains(':') {
            AddressKind::Ipv6
        } else if text.parse::<Ipv4Addr>().is_ok() {
            AddressKind::Ipv4
        } else {
            AddressKind::Hostname
        };
        Self { text: text.into(), kind }
    }

    /// The stored form.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Host name, IPv4 or IPv6.
    pub fn kind(&self) -> AddressKind {
        self.kind
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

fn check_reach(text: &str, itself: bool, link_local: bool, rules: &NamingRules) -> Result<(), AddressError> {
    if itself && !rules.allow_self_addressing {
        return Err(AddressError::Refused(format!("{text} self-addressing is denied.")));
    }
    if link_local && !rules.allow_non_routable_addressing {
        return Err(AddressError::Refused(format!("{text} non-routable address is denied.")));
    }
    Ok(())
}

/// Appends eight groups of four hexadecimal digits.
pub fn write_out(ip: Ipv6Addr, text: &mut String) {
    for (index, group) in ip.segments().into_iter().enumerate() {
        let _ = write!(text, "{}{group:04x}", if index == 0 { "" } else { ":" });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Option<(&str, AddressKind)>) {
        let parsed = Address::parse(text, &NamingRules::default()).ok();
        assert_eq!(parsed.as_ref().map(|a| (a.as_str(), a.kind())), expected, "{text}");
    }

    #[test]
    fn addresses_are_normalised_or_refused() {
        check(" 192.168.0.1 ", Some(("192.168.0.1", AddressKind::Ipv4)));
        check("Sensor.Plant.LOCAL", Some(("sensor.plant.local", AddressKind::Hostname)));
        check("::1", Some(("0000:0000:0000:0000:0000:0000:0000:0001", AddressKind::Ipv6)));
        check("::FFFF:10.0.0.1", Some(("0000:0000:0000:0000:0000:ffff:0a00:0001", AddressKind::Ipv6)));
        for refused in
            ["", " ", "0.0.0.0", "255.255.255.255", "224.0.0.1", "239.1.2.3", "::", "ff02::1", "256.1.1.1", "a_b", "a..b", "-a", "1.2.3"]
        {
            check(refused, None);
        }
    }

    #[test]
    fn self_and_link_local_addresses_obey_the_rules() {
        let closed = NamingRules { allow_self_addressing: false, allow_non_routable_addressing: false, ..NamingRules::default() };
        for refused in ["127.0.0.1", "127.9.9.9", "::1", "localhost", "localhost.", "loopback", "169.254.1.1", "fe80::1"] {
            assert!(Address::parse(refused, &closed).is_err(), "{refused}");
            assert!(Address::parse(refused, &NamingRules::default()).is_ok(), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn a_parsed_address_parses_to_itself(text in "[0-9a-f:.xyz-]{0,45}") {
            if let Ok(address) = Address::parse(&text, &NamingRules::default()) {
                prop_assert_eq!(&Address::parse(address.as_str(), &NamingRules::default()).unwrap(), &address);
                prop_assert_eq!(Address::from_stored(address.as_str()), address);
            }
        }

        #[test]
        fn every_ipv6_address_is_written_out(bits in 2u128..(0xff00u128 << 112)) {
            let address = Address::parse(&Ipv6Addr::from(bits).to_string(), &NamingRules::default()).unwrap();
            prop_assert_eq!(address.as_str().len(), 39);
            prop_assert_eq!(address.as_str().parse::<Ipv6Addr>().unwrap(), Ipv6Addr::from(bits));
        }
    }
}
