//! The test data of Deliorman 2020, section 5.3: services of which every one is unique, and rules that map each to a consumer.
//!
//! Entry `n` is a function of the seed and of `n` alone, so that a run can take any of them without making those before.
//! As there, names, paths and ports are random, versions are 0 to 30 and interfaces one of four; uniqueness is not left to
//! chance: each name spells a 64-bit number in which different entries differ. He draws ports from 0 to 65,536; here they
//! are 1 to 65,535, the ones that exist. Names begin with a letter, as Arrowhead's name rule wants.

pub mod load;
mod order;

pub use order::consumers;

use serde_json::{Value, json};

use crate::request;

/// What Deliorman's services offer in insecure mode: JSON, XML, CSV and TEXT over HTTP.
pub const INTERFACES: [&str; 4] = ["HTTP-INSECURE-JSON", "HTTP-INSECURE-XML", "HTTP-INSECURE-CSV", "HTTP-INSECURE-TEXT"];
/// The highest version of a service.
pub const VERSION_MAX: u64 = 30;
/// How many services he made.
pub const SERVICES: u32 = 10_000;
/// Odd, so that its multiples by different entries differ (the golden ratio's fraction of 2^64).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The endless list of entries under one seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    seed: u64,
}

/// One service and its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Name of the service definition.
    pub definition: String,
    /// Name of the provider's system.
    pub provider: String,
    /// Port of the provider, 1 to 65,535.
    pub port: u16,
    /// Path of the service.
    pub uri: String,
    /// Version, 0 to [`VERSION_MAX`].
    pub version: u64,
    /// One of [`INTERFACES`].
    pub interface: &'static str,
}

/// What is drawn for an entry; each has random numbers of its own.
#[derive(Debug, Clone, Copy)]
enum Part {
    Definition,
    Provider,
    Port,
    Uri,
    Version,
    Interface,
}

impl Data {
    /// The data of this seed.
    pub fn of_seed(seed: u64) -> Self {
        Self { seed }
    }

    /// The `n`th service.
    pub fn service(self, n: u32) -> Service {
        let draw = |part| self.draw(part, n);
        let interface = usize::try_from(draw(Part::Interface) % 4).expect("below 4");
        Service {
            definition: name(draw(Part::Definition)),
            provider: name(draw(Part::Provider)),
            port: u16::try_from(1 + draw(Part::Port) % u64::from(u16::MAX)).expect("at most 65,535"),
            uri: name(draw(Part::Uri)),
            version: draw(Part::Version) % (VERSION_MAX + 1),
            interface: INTERFACES[interface],
        }
    }

    /// A number that differs from that of every other entry in the same part.
    fn draw(self, part: Part, n: u32) -> u64 {
        let start = scramble(self.seed ^ scramble(part as u64 + 1));
        scramble(start.wrapping_add(u64::from(n).wrapping_mul(GOLDEN)))
    }
}

impl Service {
    /// The provider as requests give it.
    pub fn system(&self, address: &str) -> Value {
        request::system(&self.provider, address, self.port)
    }

    /// The body of its registration; in secure mode with the public key of the provider, and asking for tokens.
    pub fn registration(&self, address: &str, authentication_info: Option<&str>) -> Value {
        let mut provider = self.system(address);
        let (mut secure, mut interface) = ("NOT_SECURE", self.interface.to_string());
        if let Some(info) = authentication_info {
            provider["authenticationInfo"] = json!(info);
            (secure, interface) = ("TOKEN", interface.replace("-INSECURE-", "-SECURE-"));
        }
        json!({
            "serviceDefinition": self.definition,
            "providerSystem": provider,
            "serviceUri": self.uri,
            "secure": secure,
            "metadata": {},
            "version": self.version,
            "interfaces": [interface],
        })
    }
}

/// The finishing step of splitmix64: one to one on 64 bits, and each bit of the result depends on every bit of the input.
fn scramble(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A letter and the number in 13 digits of base 36, all that 64 bits need.
fn name(mut number: u64) -> String {
    let mut digits = [b'0'; 13];
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdefghijklmnopqrstuvwxyz"[usize::try_from(number % 36).expect("below 36")];
        number /= 36;
    }
    format!("s{}", String::from_utf8_lossy(&digits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn in_secure_mode_a_service_asks_for_tokens() {
        let service = Data::of_seed(1).service(0);
        let (plain, secure) = (service.registration("127.0.0.1", None), service.registration("127.0.0.1", Some("key")));
        assert_eq!((&plain["secure"], &secure["secure"]), (&json!("NOT_SECURE"), &json!("TOKEN")));
        assert!(secure["interfaces"][0].as_str().unwrap().starts_with("HTTP-SECURE-"));
        assert_eq!(secure["providerSystem"]["authenticationInfo"], "key");
        assert_eq!(plain["providerSystem"], service.system("127.0.0.1"));
    }

    #[test]
    fn every_entry_is_unique_and_obeys_the_name_rule() {
        let data = Data::of_seed(7);
        let mut seen: [BTreeSet<String>; 3] = Default::default();
        for n in 0..SERVICES {
            let service = data.service(n);
            for (seen, name) in seen.iter_mut().zip([service.definition, service.provider, service.uri]) {
                assert!(name.len() <= 63 && name.starts_with('s') && name.chars().all(|letter| letter.is_ascii_alphanumeric()), "{name}");
                assert!(seen.insert(name), "entry {n} repeats one before it");
            }
        }
    }

    #[test]
    fn a_seed_always_gives_the_same_and_another_seed_something_else() {
        let first = Data::of_seed(1).service(4711);
        assert_eq!(first, Data::of_seed(1).service(4711));
        let other = Data::of_seed(2).service(4711);
        assert!(first.definition != other.definition && first.provider != other.provider && first.uri != other.uri);
        // A state that is named in a report means the same services in every later version.
        assert_eq!((first.definition.as_str(), first.port, first.version), ("s24irsvde7nq22", 63348, 24));
    }

    #[test]
    fn versions_interfaces_and_ports_are_spread_evenly() {
        let (mut versions, mut interfaces, mut ports) = (BTreeMap::new(), BTreeMap::new(), [0u32; 16]);
        for n in 0..SERVICES {
            let service = Data::of_seed(3).service(n);
            *versions.entry(service.version).or_insert(0u32) += 1;
            *interfaces.entry(service.interface).or_insert(0u32) += 1;
            ports[usize::from(service.port / 4096)] += 1;
        }
        assert!(versions.keys().copied().eq(0..=VERSION_MAX) && interfaces.len() == INTERFACES.len());
        // Chi-square against the even spread; the bounds are those that one seed in a thousand passes.
        let even = |counts: &[u32]| {
            let expected = f64::from(SERVICES) / counts.len() as f64;
            counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum::<f64>()
        };
        assert!(even(&versions.into_values().collect::<Vec<_>>()) < 59.7);
        assert!(even(&interfaces.into_values().collect::<Vec<_>>()) < 16.3);
        assert!(even(&ports) < 37.7);
    }
}
