//! A system's identity: the triple of name, address and port.

use std::{borrow::Borrow, fmt::Write, net::Ipv6Addr, sync::Arc};

use crate::{
    address::{self, Address, AddressError},
    core_service,
    error::ArrowheadError,
    form::SystemRequest,
    metadata::Metadata,
    name::{NamingRules, SystemName, TEXT_LENGTH_MAX},
    record::System,
};

/// Longest public key text a system may register, in characters.
pub const AUTHENTICATION_INFO_LENGTH_MAX: usize = 2047;

/// A system to be registered.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemRegistration {
    /// Its name.
    pub name: SystemName,
    /// Where it is.
    pub address: Address,
    /// Where it listens.
    pub port: u16,
    /// Base64 of its public key.
    pub authentication_info: Option<Arc<str>>,
    /// Free pairs.
    pub metadata: Option<Metadata>,
}

/// Whether the reserved names of the core systems are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreSystemNames {
    /// As a provider in `/register`: in secure mode the certificate decides.
    Allowed,
    /// In every operation on systems.
    Refused,
}

impl SystemRegistration {
    /// Checks a form in upstream's order (reference 3.2, point 2).
    pub fn parse(form: SystemRequest, core_systems: CoreSystemNames, rules: &NamingRules, origin: &str) -> Result<Self, ArrowheadError> {
        let name = parse_name(form.system_name.as_deref().unwrap_or_default(), core_systems, origin)?;
        let port = parse_port(form.port, origin)?;
        let address = parse_address(form.address.as_deref().unwrap_or_default(), rules, origin)?;
        let authentication_info = parse_authentication_info(form.authentication_info)?;
        Ok(Self { name, address, port, authentication_info, metadata: Metadata::parse_optional(form.metadata, origin)? })
    }

    /// What the system is known by.
    pub fn key(&self) -> SystemKey {
        SystemKey::new(self.name.as_str(), self.address.as_str(), self.port)
    }
}

fn parse_name(text: &str, core_systems: CoreSystemNames, origin: &str) -> Result<SystemName, ArrowheadError> {
    let refused = |message: String| ArrowheadError::bad_payload(message, origin);
    let name = SystemName::parse(text).map_err(|error| refused(format!("System name {error}")))?;
    if core_systems == CoreSystemNames::Refused && core_service::is_core_system(name.as_str()) {
        return Err(refused(format!("System name '{name}' is a reserved arrowhead core system name.")));
    }
    Ok(name)
}

fn parse_address(text: &str, rules: &NamingRules, origin: &str) -> Result<Address, ArrowheadError> {
    Address::parse(text, rules).map_err(|error| match error {
        AddressError::Refused(_) => ArrowheadError::bad_payload(format!("{error} Address detection process was skipped."), origin),
        AddressError::TooLong => ArrowheadError::database(),
    })
}

fn parse_authentication_info(info: Option<String>) -> Result<Option<Arc<str>>, ArrowheadError> {
    let is_too_long = info.as_ref().is_some_and(|info| info.chars().count() > AUTHENTICATION_INFO_LENGTH_MAX);
    if is_too_long { Err(ArrowheadError::database()) } else { Ok(info.map(Arc::from)) }
}

/// The members of a system that change (reference 3.5). Absent and blank ones keep what is there.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemPatch {
    name: Option<SystemName>,
    address: Option<Address>,
    port: Option<u16>,
    authentication_info: Option<Arc<str>>,
    metadata: Option<Metadata>,
}

impl SystemPatch {
    /// Checks what is given; at least one member must be.
    pub fn parse(form: SystemRequest, rules: &NamingRules, origin: &str) -> Result<Self, ArrowheadError> {
        Self::parse_optional(Some(form), rules, origin)?.ok_or_else(|| ArrowheadError::bad_payload(EMPTY_PATCH, origin))
    }

    /// As [`Self::parse`], but nothing given is no patch.
    pub fn parse_optional(form: Option<SystemRequest>, rules: &NamingRules, origin: &str) -> Result<Option<Self>, ArrowheadError> {
        let Some(form) = form else { return Ok(None) };
        let name = not_blank(form.system_name).map(|name| parse_name(&name, CoreSystemNames::Refused, origin)).transpose()?;
        let port = form.port.map(|port| parse_port(Some(port), origin)).transpose()?;
        let address = not_blank(form.address).map(|address| parse_address(&address, rules, origin)).transpose()?;
        let authentication_info = parse_authentication_info(not_blank(form.authentication_info))?;
        let metadata = Metadata::parse_optional(form.metadata, origin)?;
        let is_empty = (&name, &address, port) == (&None, &None, None) && authentication_info.is_none() && metadata.is_none();
        Ok((!is_empty).then_some(Self { name, address, port, authentication_info, metadata }))
    }

    /// The public key, where one is given.
    pub fn authentication_info(&self) -> &Option<Arc<str>> {
        &self.authentication_info
    }

    /// The system as it is to be.
    pub fn apply(self, current: SystemRegistration) -> SystemRegistration {
        SystemRegistration {
            name: self.name.unwrap_or(current.name),
            address: self.address.unwrap_or(current.address),
            port: self.port.unwrap_or(current.port),
            authentication_info: self.authentication_info.or(current.authentication_info),
            metadata: self.metadata.or(current.metadata),
        }
    }

    /// The provider of an entry as it is to be: an absent public key is none, as upstream has it, and metadata stay with the
    /// system they belong to.
    pub fn apply_to_provider(self, current: SystemRegistration) -> SystemRegistration {
        let (key, authentication_info, metadata) = (current.key(), self.authentication_info.clone(), self.metadata.clone());
        let patched = self.apply(current);
        let metadata = if patched.key() == key { patched.metadata } else { metadata };
        SystemRegistration { authentication_info, metadata, ..patched }
    }
}

/// What a patch is answered that gives nothing.
pub(crate) const EMPTY_PATCH: &str = "Patch request is empty.";

/// A text that is there and not blank.
pub(crate) fn not_blank(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

fn parse_port(port: Option<i64>, origin: &str) -> Result<u16, ArrowheadError> {
    let port = port.ok_or_else(|| ArrowheadError::bad_payload("System port is null.", origin))?;
    u16::try_from(port).map_err(|_| ArrowheadError::bad_payload(format!("System port must be between 0 and 65535, not {port}."), origin))
}

/// The identity of a system in one text, normalised so that equal systems have equal keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SystemKey(Arc<str>);

impl SystemKey {
    /// The key of a stored system.
    pub fn of(system: &System) -> Self {
        Self::new(system.system_name.as_str(), system.address.as_str(), system.port)
    }

    /// Trims and lower-cases; IPv6 is written out.
    pub fn new(name: &str, address: &str, port: u16) -> Self {
        let mut key = String::with_capacity(name.len() + address.len() + 7);
        Self::write(&mut key, name, address, port);
        Self(key.into())
    }

    /// As [`Self::new`] into a buffer of the caller's, which is cleared first.
    pub fn write(key: &mut String, name: &str, address: &str, port: u16) {
        key.clear();
        let _ = writeln!(key, "{port}");
        push_lower_case(key, name.trim());
        key.push('\n');
        let address = address.trim();
        match address.contains(':').then(|| address.parse::<Ipv6Addr>()) {
            Some(Ok(ip)) => address::write_out(ip, key),
            _ => push_lower_case(key, address),
        }
    }

    /// The key's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Name, address and port as they are stored.
    pub fn parts(&self) -> (&str, &str, u16) {
        let mut lines = self.0.split('\n');
        let mut next = || lines.next().expect("a key has three lines");
        let port = next().parse().expect("a key starts with a port");
        let name = next();
        (name, next(), port)
    }
}

impl Borrow<str> for SystemKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

fn push_lower_case(key: &mut String, text: &str) {
    // The separator is in no checked name or address; in an unchecked one it must not look like a shorter text.
    key.extend(text.chars().map(|character| if character == '\n' { '\0' } else { character.to_ascii_lowercase() }));
}

/// A system that a request refers to: complete, but perhaps not registered.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemReference {
    /// The name as given, trimmed.
    pub name: String,
    /// The address as given, trimmed.
    pub address: String,
    /// The port.
    pub port: u16,
    /// What it is looked up by.
    pub key: SystemKey,
}

impl SystemReference {
    /// Checks that name, address and port are there (`what` names the member in the message).
    pub fn parse(form: Option<&SystemRequest>, what: &str, origin: &str) -> Result<Self, ArrowheadError> {
        let form = form.ok_or_else(|| ArrowheadError::bad_payload(format!("{what} is null."), origin))?;
        let text = |text: &Option<String>, member: &str| match text.as_deref().map(str::trim) {
            None | Some("") => Err(ArrowheadError::bad_payload(format!("{what}: {member} is null or blank."), origin)),
            Some(text) => Ok(text.to_owned()),
        };
        let name = text(&form.system_name, "system name")?;
        let address = text(&form.address, "address")?;
        let port = parse_port(form.port, origin)?;
        let key = SystemKey::new(&name, &address, port);
        Ok(Self { name, address, port, key })
    }

    /// Whether name and address are no longer than a row keeps them.
    pub fn is_storable(&self) -> bool {
        [&self.name, &self.address].iter().all(|text| text.chars().count() <= TEXT_LENGTH_MAX)
    }
}

/// As other systems name it.
impl From<&System> for SystemRequest {
    fn from(system: &System) -> Self {
        Self {
            system_name: Some(system.system_name.as_str().to_owned()),
            address: Some(system.address.as_str().to_owned()),
            port: Some(system.port.into()),
            authentication_info: system.authentication_info.as_deref().map(str::to_owned),
            metadata: None,
        }
    }
}

impl std::fmt::Display for SystemReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "name: {}, address: {}, port: {}", self.name, self.address, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_systems_have_equal_keys() {
        assert_eq!(SystemKey::new(" Sensor ", "HOST.local ", 80), SystemKey::new("sensor", "host.local", 80));
        assert_eq!(SystemKey::new("a", "::1", 80), SystemKey::new("a", "0000:0000:0000:0000:0000:0000:0000:0001", 80));
        assert_ne!(SystemKey::new("a", "b", 80), SystemKey::new("a", "b", 81));
    }
}
