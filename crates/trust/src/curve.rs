//! CURVE keys (ZeroMQ RFC 26) and whose they are: `curve.jsonl` in the trust directory, one JSON object a line.
//!
//! ```text
//! {"system":"sensor","publicKey":"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7","at":"2031-01-01T00:00:00Z"}
//! {"system":"sensor","publicKey":null,"at":"2031-02-01T00:00:00Z"}
//! ```
//!
//! A system has one key: a later line about it replaces the one before, and `null` takes the key away. Keys are Z85 text. The cloud's own pair, whose public key its
//! clients know, is in `zmtp.curve`.

use std::{collections::BTreeMap, fmt, path::Path};

use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use bodkin_arrowhead::{name::SystemName, utc::UtcTime};
pub use bodkin_zmtp::{KeyPair, PublicKey, SecretKey};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{
    directory::{DirectoryError, Result, TrustDirectory},
    file::{self, FileError},
    key::KeyError,
    ledger::{self, LEDGER_BYTES_MAX},
    lock::Lock,
};

/// Largest file of a pair of keys, in bytes.
const PAIR_BYTES_MAX: u64 = 4096;

/// Makes a pair.
pub fn generate() -> std::result::Result<KeyPair, KeyError> {
    let mut octets = [0; 32];
    SystemRandom::new().fill(&mut octets).map_err(|_| KeyError::NotMade("the system gives no random numbers".to_owned()))?;
    Ok(KeyPair::new(SecretKey::from_bytes(&mut octets)))
}

/// Both keys as ZeroMQ's certificate files have them (czmq's `zcert`, pyzmq's `load_certificate`).
pub fn certificate_file(pair: &KeyPair) -> Zeroizing<String> {
    let secret = pair.secret().to_z85();
    Zeroizing::new(format!("metadata\ncurve\n    public-key = \"{}\"\n    secret-key = \"{}\"\n", pair.public(), *secret))
}

/// Reads such a file, which has a secret key.
pub fn read_pair(path: &Path) -> std::result::Result<KeyPair, FileError> {
    let content = Zeroizing::new(file::read(path, PAIR_BYTES_MAX)?);
    let of = |name: &str| {
        let text = std::str::from_utf8(&content).ok()?;
        let value = text.lines().find_map(|line| line.trim().strip_prefix(name)?.trim_start().strip_prefix('='))?;
        Some(value.trim().trim_matches('"'))
    };
    let refused = |why: &str| FileError::content(path, why);
    let secret: SecretKey =
        of("secret-key").and_then(|text| text.parse().ok()).ok_or_else(|| refused("it has no secret-key of 40 characters"))?;
    let pair = KeyPair::new(secret);
    match of("public-key").map(str::parse::<PublicKey>) {
        None => Ok(pair),
        Some(Ok(public)) if public == *pair.public() => Ok(pair),
        Some(_) => Err(refused("its public-key is not that of its secret-key")),
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
    pub fn curve_keys(&self) -> Result<BTreeMap<PublicKey, SystemName>> {
        let path = self.curve();
        let content = match file::read(&path, LEDGER_BYTES_MAX) {
            Ok(content) => content,
            Err(error) if error.is_missing() => return Ok(BTreeMap::new()),
            Err(error) => return Err(error.into()),
        };
        parse(&content).map_err(|why| FileError::content(&path, why).into())
    }

    /// The pair by which the cloud's ZMTP port is known; made if there is none.
    pub fn ensure_server_pair(&self) -> Result<KeyPair> {
        let path = self.server_pair();
        let _lock = Lock::take(self.path())?;
        match read_pair(&path) {
            Err(error) if error.is_missing() => {}
            read => return Ok(read?),
        }
        let pair = generate()?;
        file::write_private(&path, certificate_file(&pair).as_bytes())?;
        Ok(pair)
    }

    /// Binds a system to its key, in place of the one before, or to none.
    pub fn bind_curve_key(&self, system: &SystemName, key: Option<&PublicKey>, now: UtcTime) -> Result<()> {
        let _lock = Lock::take(self.path())?;
        let bound = self.curve_keys()?;
        match key.and_then(|key| bound.get(key)) {
            Some(owner) if owner == system => return Ok(()),
            Some(owner) => return Err(DirectoryError::CurveKeyTaken(owner.clone())),
            None => {}
        }
        let (system, public_key) = (system.as_str().to_owned(), key.map(|key| key.to_string()));
        Ok(ledger::append(&self.curve(), &[Binding { system, public_key, at: now.whole_seconds() }])?)
    }
}

fn parse(content: &[u8]) -> std::result::Result<BTreeMap<PublicKey, SystemName>, String> {
    let mut keys: BTreeMap<SystemName, PublicKey> = BTreeMap::new();
    for (binding, number) in ledger::lines::<Binding>(content)?.into_iter().zip(1..) {
        let told = |error: &dyn fmt::Display| format!("line {number}: {error}");
        let system = SystemName::parse(&binding.system).map_err(|error| told(&error))?;
        match binding.public_key {
            Some(key) => keys.insert(system, key.trim().parse().map_err(|error: bodkin_zmtp::KeyError| told(&error))?),
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
            let pair = generate().unwrap();
            directory.bind_curve_key(&system(name), Some(pair.public()), now()).unwrap();
            pair
        };
        let (first, other, second) = (bound("sensor"), bound("display"), bound("sensor"));
        let keys = directory.curve_keys().unwrap();
        assert_eq!((keys.get(second.public()), keys.get(other.public())), (Some(&system("sensor")), Some(&system("display"))));
        assert_eq!((keys.get(first.public()), keys.len()), (None, 2));
        directory.bind_curve_key(&system("sensor"), None, now()).unwrap();
        assert_eq!(directory.curve_keys().unwrap().into_values().collect::<Vec<_>>(), [system("display")]);
    }

    #[test]
    fn a_key_is_of_one_system_only() {
        let (_place, directory) = directory();
        let key: PublicKey = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7".parse().unwrap();
        for _ in 0..2 {
            directory.bind_curve_key(&system("sensor"), Some(&key), now()).unwrap();
        }
        let refused = directory.bind_curve_key(&system("display"), Some(&key), now());
        assert!(matches!(refused, Err(DirectoryError::CurveKeyTaken(owner)) if owner == system("sensor")));
        let line = |system: &str| format!("{{\"system\":\"{system}\",\"publicKey\":\"{key}\",\"at\":\"2031-01-01T00:00:00Z\"}}\n");
        assert_eq!(parse((line("sensor") + &line("display")).as_bytes()), Err("one key is bound to two systems".to_owned()));
        assert!(parse(line("no name").as_bytes()).unwrap_err().starts_with("line 1: "));
        assert!(parse(line("sensor").replace("rq:r", "short").as_bytes()).unwrap_err().contains("40 characters"));
    }

    #[test]
    fn the_clouds_pair_is_made_once_and_kept_as_zeromq_keeps_pairs() {
        let (_place, directory) = directory();
        let pair = directory.ensure_server_pair().unwrap();
        assert_eq!(directory.ensure_server_pair().unwrap().public(), pair.public());
        let path = directory.path().join("zmtp.curve");
        let text = std::fs::read_to_string(&path).unwrap();
        let keys: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
        assert_eq!((keys[0], keys[1]), (pair.public().to_string().as_str(), pair.secret().to_z85().as_str()));
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        let other = generate().unwrap().public().to_string();
        for (from, to, told) in [(keys[0], other.as_str(), "is not that of its secret-key"), (keys[1], "short", "no secret-key")] {
            std::fs::write(&path, text.replace(from, to)).unwrap();
            assert!(read_pair(&path).unwrap_err().to_string().contains(told));
        }
    }
}
