//! CURVE keys (ZeroMQ RFC 26) and whose they are: `curve.jsonl` in the trust directory, one JSON object a line.
//!
//! ```text
//! {"system":"sensor","publicKey":"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7","at":"2031-01-01T00:00:00Z"}
//! {"system":"sensor","publicKey":null,"at":"2031-02-01T00:00:00Z"}
//! ```
//!
//! A system has one key: a later line about it replaces the one before, and `null` takes the key away. Keys are Z85 text.

use std::{collections::BTreeMap, fmt};

use aws_lc_rs::{
    agreement::{PrivateKey, X25519},
    encoding::{AsBigEndian, Curve25519SeedBin},
    error::Unspecified,
};
use bodkin_arrowhead::{name::SystemName, utc::UtcTime};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{
    directory::{DirectoryError, Result, TrustDirectory},
    file::{self, FileError},
    key::KeyError,
    ledger::{self, LEDGER_BYTES_MAX},
    lock::Lock,
    z85,
};

/// Bytes of either key.
const KEY_BYTES: usize = 32;

/// A public CURVE key; its text is Z85.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CurveKey(pub [u8; KEY_BYTES]);

/// A text that is no CURVE key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a CURVE key is 40 characters of Z85 text")]
pub struct CurveKeyError;

impl CurveKey {
    /// Reads its Z85 text.
    pub fn parse(text: &str) -> std::result::Result<Self, CurveKeyError> {
        z85::decode(text.trim()).and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or(CurveKeyError)
    }
}

impl fmt::Display for CurveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&z85::encode(&self.0))
    }
}

impl fmt::Debug for CurveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A pair of CURVE keys. The secret one is wiped when it is dropped.
pub struct CurvePair {
    /// The public key.
    pub public: CurveKey,
    secret: Zeroizing<Vec<u8>>,
}

impl CurvePair {
    /// Makes a pair.
    pub fn generate() -> std::result::Result<Self, KeyError> {
        let not_made = |_: Unspecified| KeyError::NotMade("the system gives no random numbers".to_owned());
        let key = PrivateKey::generate(&X25519).map_err(not_made)?;
        let public = key.compute_public_key().map_err(not_made)?;
        let secret: Curve25519SeedBin<'_> = key.as_be_bytes().map_err(not_made)?;
        let public = public.as_ref().try_into().expect("X25519 keys have 32 bytes");
        Ok(Self { public: CurveKey(public), secret: Zeroizing::new(secret.as_ref().to_vec()) })
    }

    /// Both keys as ZeroMQ's certificate files have them (czmq's `zcert`, pyzmq's `load_certificate`).
    pub fn to_certificate_file(&self) -> Zeroizing<String> {
        let secret = Zeroizing::new(z85::encode(&self.secret));
        Zeroizing::new(format!("metadata\ncurve\n    public-key = \"{}\"\n    secret-key = \"{}\"\n", self.public, *secret))
    }
}

/// A line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Binding {
    system: String,
    public_key: Option<String>,
    #[serde(deserialize_with = "ledger::time")]
    at: UtcTime,
}

impl TrustDirectory {
    /// Whose each CURVE key is.
    pub fn curve_keys(&self) -> Result<BTreeMap<CurveKey, SystemName>> {
        let path = self.curve();
        let content = match file::read(&path, LEDGER_BYTES_MAX) {
            Ok(content) => content,
            Err(error) if error.is_missing() => return Ok(BTreeMap::new()),
            Err(error) => return Err(error.into()),
        };
        parse(&content).map_err(|why| FileError::content(&path, why).into())
    }

    /// Binds a system to its key, in place of the one before, or to none.
    pub fn bind_curve_key(&self, system: &SystemName, key: Option<CurveKey>, now: UtcTime) -> Result<()> {
        let _lock = Lock::take(self.path())?;
        let bound = self.curve_keys()?;
        match key.and_then(|key| bound.get(&key)) {
            Some(owner) if owner == system => return Ok(()),
            Some(owner) => return Err(DirectoryError::CurveKeyTaken(owner.clone())),
            None => {}
        }
        let (system, public_key) = (system.as_str().to_owned(), key.map(|key| key.to_string()));
        Ok(ledger::append(&self.curve(), &[Binding { system, public_key, at: now.whole_seconds() }])?)
    }
}

fn parse(content: &[u8]) -> std::result::Result<BTreeMap<CurveKey, SystemName>, String> {
    let mut keys: BTreeMap<SystemName, CurveKey> = BTreeMap::new();
    for (binding, number) in ledger::lines::<Binding>(content)?.into_iter().zip(1..) {
        let told = |error: &dyn fmt::Display| format!("line {number}: {error}");
        let system = SystemName::parse(&binding.system).map_err(|error| told(&error))?;
        match binding.public_key {
            Some(key) => keys.insert(system, CurveKey::parse(&key).map_err(|error| told(&error))?),
            None => keys.remove(&system),
        };
    }
    let bound = keys.len();
    let keys: BTreeMap<_, _> = keys.into_iter().map(|(system, key)| (key, system)).collect();
    if keys.len() == bound { Ok(keys) } else { Err("one key is bound to two systems".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{directory, now};

    fn system(name: &str) -> SystemName {
        SystemName::parse(name).unwrap()
    }

    #[test]
    fn the_key_made_last_is_the_systems() {
        let (_place, directory) = directory();
        assert!(directory.curve_keys().unwrap().is_empty());
        let bound = |name: &str| {
            let pair = CurvePair::generate().unwrap();
            directory.bind_curve_key(&system(name), Some(pair.public), now()).unwrap();
            pair
        };
        let (first, other, second) = (bound("sensor"), bound("display"), bound("sensor"));
        let keys = directory.curve_keys().unwrap();
        assert_eq!((keys.get(&second.public), keys.get(&other.public)), (Some(&system("sensor")), Some(&system("display"))));
        assert_eq!((keys.get(&first.public), keys.len()), (None, 2));
        directory.bind_curve_key(&system("sensor"), None, now()).unwrap();
        assert_eq!(directory.curve_keys().unwrap().into_values().collect::<Vec<_>>(), [system("display")]);
    }

    #[test]
    fn a_key_is_of_one_system_only() {
        let (_place, directory) = directory();
        let key = CurveKey::parse("rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7").unwrap();
        for _ in 0..2 {
            directory.bind_curve_key(&system("sensor"), Some(key), now()).unwrap();
        }
        let refused = directory.bind_curve_key(&system("display"), Some(key), now());
        assert!(matches!(refused, Err(DirectoryError::CurveKeyTaken(owner)) if owner == system("sensor")));
        let line = |system: &str| format!("{{\"system\":\"{system}\",\"publicKey\":\"{key}\",\"at\":\"2031-01-01T00:00:00Z\"}}\n");
        assert_eq!(parse((line("sensor") + &line("display")).as_bytes()), Err("one key is bound to two systems".to_owned()));
        assert!(parse(line("no name").as_bytes()).unwrap_err().starts_with("line 1: "));
    }

    #[test]
    fn a_pair_is_written_as_zeromq_keeps_it() {
        let pair = CurvePair::generate().unwrap();
        let file = pair.to_certificate_file();
        let keys: Vec<_> = file.split('"').filter_map(|text| CurveKey::parse(text).ok()).collect();
        assert_eq!(keys[0], pair.public);
        // The public key is the secret one times the base point.
        let secret = PrivateKey::from_private_key(&X25519, &keys[1].0).unwrap();
        assert_eq!(secret.compute_public_key().unwrap().as_ref(), pair.public.0);
        assert_eq!(CurveKey::parse("short"), Err(CurveKeyError));
    }
}
