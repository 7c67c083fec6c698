//! The first part of a message: what was done to the rest.

use serde::{Deserialize, Deserializer, de::IgnoredAny};

use super::Refused;
use crate::base64;

/// The members that decide. Others (`typ`, `kid`) say nothing about how a message is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Which signature, or how the content key is wrapped.
    pub alg: String,
    /// How the content is encrypted.
    pub enc: Option<String>,
    /// What the content is.
    pub cty: Option<String>,
    zip: Present,
    crit: Present,
}

impl Header {
    /// Reads the part. Content that is compressed, and extensions that must be understood, are refused: we know none.
    pub fn read(part: &str) -> Result<Self, Refused> {
        let json = base64::decode_url_safe(part).and_then(|json| String::from_utf8(json).ok()).ok_or(Refused)?;
        let header: Self = bodkin_arrowhead::json::parse_object(&json).map_err(|_| Refused)?;
        if header.zip.0 || header.crit.0 { Err(Refused) } else { Ok(header) }
    }
}

/// Whether a member is there, whatever it says.
#[derive(Debug, Default)]
struct Present(bool);

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(true))
    }
}
