//! Under which names clients may call Bodkin.
//!
//! A browser that an attacker's page has sent to the attacker's own name can be made to reach us under that name (DNS
//! rebinding), and then takes us for the attacker's server. It says that name in `Host`, so names that cannot be ours are
//! refused. What nobody can rebind is taken without a list: IP addresses, and names without a dot, which no public name
//! server answers for.

use std::net::{IpAddr, Ipv6Addr};

/// In a configured list: every name is taken.
const ANY_NAME: &str = "*";
/// The top-level name that always means this machine.
const LOCALHOST: &str = "localhost";

/// The names that are ours beside those that need no list.
#[derive(Clone, Debug, Default)]
pub struct OwnNames {
    names: Vec<Box<str>>,
    any: bool,
}

impl OwnNames {
    /// Takes names as an operator writes them, in any case; `*` switches the check off.
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let names = names.into_iter().map(|name| plain(name.trim())).filter(|name| !name.is_empty());
        let names: Vec<Box<str>> = names.map(written_in_host).collect();
        Self { any: names.iter().any(|name| **name == *ANY_NAME), names }
    }

    /// Whether a request with this `Host` may be meant for us. An absent one (HTTP/1.0) or an empty one names nobody else.
    pub fn accept(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else { return false };
        name.is_empty() || is_address(name) || is_single_label(name) || self.any || self.contain(name)
    }

    /// Whether a name or address is this machine's for certain: loopback or one of the list.
    pub fn contain(&self, name: &str) -> bool {
        let name = plain(name);
        let is_loopback = || address(name).is_some_and(|address| address.is_loopback());
        is_local(name) || is_loopback() || self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// A name or address as `Host` has it.
fn written_in_host(name: &str) -> Box<str> {
    if name.parse::<Ipv6Addr>().is_ok() { format!("[{name}]").into() } else { name.to_ascii_lowercase().into() }
}

/// `Host` or an origin's authority without its port; `None` where that is no port.
pub fn name_of(host: &str) -> Option<&str> {
    let bytes = host.as_bytes();
    // An IPv6 address has its own colons in brackets. Loops over bytes: hosts are short, and this is on the path of events.
    let begin = if bytes.first() == Some(&b'[') { bytes.iter().position(|byte| *byte == b']')? } else { 0 };
    let at = begin + bytes[begin..].iter().position(|byte| *byte == b':').unwrap_or(bytes.len() - begin);
    let is_port = |port: &[u8]| port.iter().all(u8::is_ascii_digit);
    is_port(bytes.get(at + 1..).unwrap_or_default()).then(|| plain(&host[..at]))
}

/// Without the dot that ends a fully qualified name.
fn plain(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

fn address(name: &str) -> Option<IpAddr> {
    match name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => name.parse().ok(),
    }
}

fn is_address(name: &str) -> bool {
    // Only what begins like an address is worth the attempt.
    name.starts_with(|first: char| first.is_ascii_digit() || first == '[') && address(name).is_some()
}

fn is_single_label(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn is_local(name: &str) -> bool {
    let above = name.len().checked_sub(LOCALHOST.len()).and_then(|at| Some((name.get(..at)?, name.get(at..)?)));
    above.is_some_and(|(above, last)| last.eq_ignore_ascii_case(LOCALHOST) && (above.is_empty() || above.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_rebound_needs_no_list() {
        let hosts = [
            "",
            "127.0.0.1",
            "127.0.0.1:8443",
            "192.168.7.9:8443",
            "[::1]:8443",
            "[fe80::1]",
            "localhost",
            "LOCALHOST:8455",
            "localhost.",
            "cloud.localhost",
            "bodkin",
            "bodkin:8443",
            "my_container-1",
        ];
        hosts.iter().for_each(|host| assert!(OwnNames::default().accept(host), "{host}"));
    }

    #[test]
    fn other_names_need_one() {
        let hosts = [
            "evil.example",
            "evil.example:8443",
            "evil.example.",
            "127.0.0.1.evil.example",
            "1.2.3",
            "notlocalhost.example",
            "evil.localhost.example",
            "user@127.0.0.1",
            "[::1].evil.example",
            "a b",
            "127.0.0.1:80:90",
            "127.0.0.1:port",
            "é.example",
            "éocalhost",
        ];
        let own = OwnNames::new(["Cloud.Factory.Example", " other.example. "]);
        hosts.iter().for_each(|host| assert!(!own.accept(host), "{host}"));
        ["cloud.factory.example", "CLOUD.factory.example.:8443", "other.example"]
            .iter()
            .for_each(|host| assert!(own.accept(host), "{host}"));
        assert!(OwnNames::new(["*"]).accept("evil.example"));
    }

    #[test]
    fn only_certain_names_are_this_machines() {
        let own = OwnNames::new(["cloud.example", "192.168.7.9", "2001:db8::7", ""]);
        let certain = ["localhost", "127.0.0.1", "127.8.8.8", "[::1]", "cloud.example", "192.168.7.9", "[2001:db8::7]"];
        certain.iter().for_each(|name| assert!(own.contain(name), "{name}"));
        ["", "192.168.7.8", "bodkin", "8.8.8.8", "evil.example"].iter().for_each(|name| assert!(!own.contain(name), "{name}"));
        assert!(!OwnNames::new(["*"]).contain("evil.example"));
    }
}
