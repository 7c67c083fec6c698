//! CURVE keys (ZeroMQ RFC 26) and whose they are: `curve.jsonl` in the trust directory, one JSON object a line.
//!
//! ```text
//! {"system":"sensor","publicKey":"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7","at":"2031-01-01T00:00:00Z"}
//! {"system":"sensor","publicKey":null,"at":"2031-02-01T00:00:00Z"}
//! ```
//!
//! A system has one key: of its lines the one with the latest time counts, and `null` takes the key away. Of two lines that bind one key, the later one counts. Nodes of
//! one cloud exchange these lines ([`crate::shared_ledger`]); the order of times, then of texts, is the same at each of them. Keys are Z85 text. The cloud's own pair,
//! whose public key its clients know, is in `zmtp.curve`.

use std::{collections::BTreeMap, path::Path, time::Duration};

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Binding {
    pub(crate) system: String,
    pub(crate) public_key: Option<String>,
    #[serde(deserialize_with = "ledger::time")]
    pub(crate) at: UtcTime,
    /// The node of the cloud that has brought it; `None`: the one whose file this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<String>,
}

impl Binding {
    /// The line without its end and without a node: the same at each node.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(&Self { node: None, ..self.clone() }).expect("bindings are plain values")
    }

    /// Returns the system and its key.
    fn parts(&self) -> std::result::Result<(SystemName, Option<PublicKey>), String> {
        let system = SystemName::parse(&self.system).map_err(|error| error.to_string())?;
        let key = self.public_key.as_ref().map(|key| key.trim().parse().map_err(|error: bodkin_zmtp::KeyError| error.to_string()));
        Ok((system, key.transpose()?))
    }

    /// Returns true if the name and the key are such.
    pub(crate) fn is_valid(&self) -> bool {
        self.parts().is_ok()
    }
}

impl TrustDirectory {
    /// Whose each CURVE key is.
    pub fn curve_keys(&self) -> Result<BTreeMap<PublicKey, SystemName>> {
        let path = self.curve();
        keys_of(self.curve_bindings()?).map_err(|why| FileError::content(&path, why).into())
    }

    /// The lines, in the order of the file; none if there is no file.
    pub(crate) fn curve_bindings(&self) -> Result<Vec<Binding>> {
        let path = self.curve();
        match file::read(&path, LEDGER_BYTES_MAX) {
            Ok(content) => ledger::lines(&content).map_err(|why| FileError::content(&path, why).into()),
            Err(error) if error.is_missing() => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
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

    /// Binds a system to its key, in place of the one before, or to none. The binding is later than all that the file has, also if the clock was set back.
    pub fn bind_curve_key(&self, system: &SystemName, key: Option<&PublicKey>, now: UtcTime) -> Result<()> {
        let _lock = Lock::take(self.path())?;
        let bindings = self.curve_bindings()?;
        let behind_last = bindings.iter().map(|binding| binding.at.plus(Duration::from_nanos(1))).max();
        let at = behind_last.map_or(now, |behind_last| behind_last.max(now));
        let bound = keys_of(bindings).map_err(|why| FileError::content(&self.curve(), why))?;
        match key.and_then(|key| bound.get(key)) {
            Some(owner) if owner == system => return Ok(()),
            Some(owner) => return Err(DirectoryError::CurveKeyTaken(owner.clone())),
            None => {}
        }
        let (system, public_key) = (system.as_str().to_owned(), key.map(|key| key.to_string()));
        Ok(ledger::append(&self.curve(), &[Binding { system, public_key, at, node: None }])?)
    }
}

/// Whose each key is by these lines.
fn keys_of(bindings: Vec<Binding>) -> std::result::Result<BTreeMap<PublicKey, SystemName>, String> {
    let mut numbered: Vec<(usize, Binding)> = (1..).zip(bindings).collect();
    numbered.sort_by_cached_key(|(_, binding)| (binding.at, binding.text()));
    let mut keys: BTreeMap<SystemName, PublicKey> = BTreeMap::new();
    for (number, binding) in numbered {
        let (system, key) = binding.parts().map_err(|error| format!("line {number}: {error}"))?;
        match key {
            Some(key) => {
                keys.retain(|_, bound| *bound != key);
                keys.insert(system, key);
            }
            None => drop(keys.remove(&system)),
        }
    }
    Ok(keys.into_iter().map(|(system, key)| (key, system)).collect())
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
        let line = |system: &str, second: u32| {
            format!("{{\"system\":\"{system}\",\"publicKey\":\"{key}\",\"at\":\"2031-01-01T00:00:0{second}Z\"}}\n")
        };
        let parse = |text: String| keys_of(ledger::lines(text.as_bytes()).unwrap());
        // Two nodes may bind one key to two systems at the same time: the later line counts wherever it is.
        for text in [line("sensor", 1) + &line("display", 2), line("display", 2) + &line("sensor", 1)] {
            assert_eq!(parse(text).unwrap().into_values().collect::<Vec<_>>(), [system("display")]);
        }
        assert!(parse(line("no name", 1)).unwrap_err().starts_with("line 1: "));
        assert!(parse(line("sensor", 1).replace("rq:r", "short")).unwrap_err().contains("40 characters"));
    }

    #[test]
    fn binding_counts_although_the_clock_was_set_back() {
        let (_place, directory) = directory();
        let pair = generate().unwrap();
        directory.bind_curve_key(&system("sensor"), Some(pair.public()), now()).unwrap();
        directory.bind_curve_key(&system("sensor"), None, now().minus(Duration::from_secs(3_600))).unwrap();
        assert!(directory.curve_keys().unwrap().is_empty());
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
