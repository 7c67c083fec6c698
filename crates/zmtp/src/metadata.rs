//! The properties that each side tells the other in READY or INITIATE (RFC 37, Connection Metadata).
//!
//! ```text
//! property = name length 1 | name | value length 4, big endian | value
//! ```

use crate::error::{ConnectionError, shown};
use crate::limits::Limits;
use crate::socket_type::SocketType;

const SOCKET_TYPE: &str = "Socket-Type";
const IDENTITY: &str = "Identity";
const RESOURCE: &str = "Resource";
const IDENTITY_BYTES_MAX: usize = 255;
const NAME_BYTES_MAX: usize = 255;

/// Properties of one side, each of which is right: a socket type, and whatever else was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    socket_type: SocketType,
    /// As on the wire.
    bytes: Vec<u8>,
}

/// A property of our own that nobody may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a property needs {0}")]
pub struct PropertyError(&'static str);

impl Metadata {
    /// Of a socket of this type, with nothing but that.
    pub fn of(socket_type: SocketType) -> Self {
        let mut bytes = Vec::new();
        push(SOCKET_TYPE, socket_type.name().as_bytes(), &mut bytes);
        Self { socket_type, bytes }
    }

    /// With one more property: `Identity`, `Resource`, or one of the application's own, whose name begins with `X-`.
    ///
    /// # Errors
    /// The name or the value does not have its form, or the name is there already.
    pub fn with(mut self, name: &str, value: &[u8]) -> Result<Self, PropertyError> {
        check_property(self.socket_type, name.as_bytes(), value).map_err(PropertyError)?;
        if self.get(name).is_some() {
            return Err(PropertyError("a name that was not used before"));
        }
        push(name, value, &mut self.bytes);
        Ok(self)
    }

    /// What kind of socket it is.
    pub fn socket_type(&self) -> SocketType {
        self.socket_type
    }

    /// `Identity`, of at most 255 octets; empty if none was told or the socket type has none. Whoever sends it chooses it: it proves
    /// nothing.
    pub fn identity(&self) -> &[u8] {
        if self.socket_type.has_identity() { self.get(IDENTITY).unwrap_or_default() } else { &[] }
    }

    /// `Resource`: which of several sockets at this address is meant.
    pub fn resource(&self) -> Option<&str> {
        self.get(RESOURCE).and_then(|resource| std::str::from_utf8(resource).ok())
    }

    /// A property's value; case does not matter in names.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.properties().find(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// All properties, name and value, in the order they came.
    pub fn properties(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        Properties(&self.bytes).map(|property| property.expect("properties were read once"))
    }

    /// As on the wire.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads what a peer tells.
    pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, ConnectionError> {
        if bytes.len() > limits.metadata_bytes_max {
            return Err(ConnectionError::TooMuch { what: "bytes of properties", came: bytes.len() as u64, max: limits.metadata_bytes_max });
        }
        let mut names: Vec<&[u8]> = Vec::new();
        let mut socket_type = None;
        for property in Properties(bytes) {
            let (name, value) = property?;
            if names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                return Err(ConnectionError::Metadata { expected: "each name once" });
            }
            names.push(name);
            if names.len() > limits.properties_max {
                return Err(ConnectionError::TooMuch { what: "properties", came: names.len() as u64, max: limits.properties_max });
            }
            if name.eq_ignore_ascii_case(SOCKET_TYPE.as_bytes()) {
                let known = SocketType::parse(value).ok_or_else(|| ConnectionError::SocketType { came: shown(value) })?;
                socket_type = Some(known);
            }
        }
        let socket_type = socket_type.ok_or(ConnectionError::Metadata { expected: "a Socket-Type" })?;
        for property in Properties(bytes) {
            let (name, value) = property?;
            check_property(socket_type, name, value).map_err(|expected| ConnectionError::Metadata { expected })?;
        }
        Ok(Self { socket_type, bytes: bytes.to_vec() })
    }
}

/// What the names that the standard knows ask of their values, and the names themselves.
fn check_property(socket_type: SocketType, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    let is_name_octet = |octet: &u8| octet.is_ascii_alphanumeric() || b"-_.+".contains(octet);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.iter().all(is_name_octet) {
        return Err("names of 1 to 255 letters, digits and -_.+");
    }
    if is(IDENTITY) && socket_type.has_identity() && (value.len() > IDENTITY_BYTES_MAX || value.first() == Some(&0)) {
        return Err("an Identity of at most 255 octets that does not begin with a zero");
    }
    let is_resource_octet = |octet: &u8| octet.is_ascii_alphanumeric() || b"$-_@.&+".contains(octet);
    if is(RESOURCE) && !value.split(|&octet| octet == b'/').all(|part| !part.is_empty() && part.iter().all(is_resource_octet)) {
        return Err("a Resource of names with a slash between them");
    }
    Ok(())
}

fn push(name: &str, value: &[u8], bytes: &mut Vec<u8>) {
    bytes.push(u8::try_from(name.len()).expect("a name of at most 255 octets"));
    bytes.extend_from_slice(name.as_bytes());
    bytes.extend_from_slice(&u32::try_from(value.len()).expect("a value below 2^31 octets").to_be_bytes());
    bytes.extend_from_slice(value);
}

/// Name and value.
type Property<'b> = (&'b [u8], &'b [u8]);

/// Each property; an error where the octets are none.
struct Properties<'b>(&'b [u8]);

/// The first property, and what follows it.
fn split_property(bytes: &[u8]) -> Option<(Property<'_>, &[u8])> {
    let (&name_bytes, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(name_bytes))?;
    let (value_bytes, rest) = rest.split_first_chunk()?;
    let (value, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*value_bytes)).ok()?)?;
    Some(((name, value), rest))
}

impl<'b> Iterator for Properties<'b> {
    type Item = Result<Property<'b>, ConnectionError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let split = split_property(self.0);
        self.0 = split.map_or(&[], |(_, rest)| rest);
        Some(split.map(|(property, _)| property).ok_or(ConnectionError::Metadata { expected: "whole names and values with their lengths" }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { metadata_bytes_max: 400, properties_max: 3, ..Limits::default() }
    }

    fn wire(properties: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        properties.iter().for_each(|(name, value)| push(name, value, &mut bytes));
        bytes
    }

    #[track_caller]
    fn refused(bytes: &[u8], expected: &str) {
        let error = Metadata::parse(bytes, &limits()).expect_err("these are no good properties");
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn properties_are_read_whatever_the_case_of_their_names() {
        let bytes = wire(&[("socket-TYPE", b"DEALER"), ("X-Line", b"7"), ("IDENTITY", b"w1")]);
        let metadata = Metadata::parse(&bytes, &limits()).expect("good properties");
        assert_eq!((metadata.socket_type(), metadata.identity()), (SocketType::Dealer, &b"w1"[..]));
        assert_eq!((metadata.get("x-line"), metadata.get("y"), metadata.resource()), (Some(&b"7"[..]), None, None));
        assert_eq!(metadata.as_bytes(), bytes);
    }

    #[test]
    fn an_identity_counts_where_the_type_has_one() {
        let bytes = wire(&[("Socket-Type", b"PUB"), ("Identity", b"\0")]);
        assert_eq!(Metadata::parse(&bytes, &limits()).map(|metadata| metadata.identity().len()), Ok(0));
    }

    #[test]
    fn our_own_properties_are_checked_as_theirs() {
        let dealer = || Metadata::of(SocketType::Dealer);
        let full =
            dealer().with("Identity", b"w1").and_then(|metadata| metadata.with("Resource", b"plant/line-7")).expect("good properties");
        assert_eq!(Metadata::parse(full.as_bytes(), &limits()).as_ref(), Ok(&full));
        assert_eq!(full.resource(), Some("plant/line-7"));
        for (name, value) in
            [("Identity", &b"\0a"[..]), ("Identity", &[1; 256]), ("Resource", b"a//b"), ("", b""), ("a b", b""), ("Socket-Type", b"PUB")]
        {
            assert!(dealer().with(name, value).is_err(), "{name} {value:?}");
        }
    }

    #[test]
    fn wrong_properties_are_refused() {
        refused(b"", "a Socket-Type");
        refused(&wire(&[("X-Line", b"7")]), "a Socket-Type");
        refused(&wire(&[("Socket-Type", b"RADIO")]), "\"RADIO\"");
        refused(&wire(&[("Socket-Type", b"pub")]), "\"pub\"");
        refused(&wire(&[("Socket-Type", b"PUB"), ("socket-type", b"SUB")]), "each name once");
        refused(&wire(&[("Socket-Type", b"REQ"), ("Identity", b"\0")]), "an Identity");
        refused(&wire(&[("Socket-Type", b"REQ"), ("Resource", b"")]), "a Resource");
        refused(&wire(&[("Socket-Type", b"REQ"), ("a/b", b"")]), "names of 1 to 255");
        refused(&wire(&[("Socket-Type", b"REQ"), ("a", b""), ("b", b""), ("c", b"")]), "properties: 4 came, at most 3");
        refused(&wire(&[("Socket-Type", b"REQ"), ("a", &[0; 400])]), "bytes of properties");
        let whole = wire(&[("Socket-Type", b"REQ")]);
        for end in 1..whole.len() {
            refused(&whole[..end], "whole names and values");
        }
        refused(&[&whole[..], b"\0\0\0\0\0"].concat(), "names of 1 to 255");
        refused(&[&whole[..], b"\x01a\xff\xff\xff\xff"].concat(), "whole names and values");
    }
}
