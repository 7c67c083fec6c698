//! How a service itself is asked how long it takes: which request, and by which protocol.

use crate::{
    address::Address,
    name::{InterfaceName, SystemName},
    record::EntryView,
};

/// Member of a service's metadata that says by which request it is asked: `off`, a path, or a method and a path.
const PROBE: &str = "qosProbe";
/// Characters of a request's path at the most.
const PATH_MAX: usize = 1024;

/// A request that changes nothing at a service that keeps to HTTP (RFC 9110, section 9.2.1), and has no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeMethod {
    /// What may be done with it?
    Options,
    /// It itself.
    Get,
}

impl ProbeMethod {
    /// The word of a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Options => "OPTIONS",
            Self::Get => "GET",
        }
    }
}

/// A service that is asked, and how.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceProbe {
    /// Who has to be there; by HTTPS its certificate says so.
    pub provider: SystemName,
    /// Host name or IP address.
    pub address: Address,
    /// TCP port.
    pub port: u16,
    /// By HTTPS.
    pub is_secure: bool,
    /// The request's method.
    pub method: ProbeMethod,
    /// The request's path: visible ASCII that begins with `/`.
    pub path: String,
}

impl ServiceProbe {
    /// How a service is asked. None: not at all, since it speaks no HTTP, its provider does not want to be asked, or its path is none that can be asked for.
    pub fn of(view: &EntryView) -> Option<Self> {
        let is_secure = is_secure(view.interfaces.iter().map(|interface| &interface.interface_name))?;
        let wish = view.entry.metadata.as_ref().and_then(|metadata| metadata.pairs().get(PROBE));
        let (method, path) = match wish.map(|wish| wish.trim()) {
            Some(wish) => parse(wish)?,
            None => (ProbeMethod::Options, view.entry.service_uri.trim()),
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let provider = &view.provider;
        let (address, port) = (provider.address.clone(), provider.port);
        is_path(&path).then(|| Self { provider: provider.system_name.clone(), address, port, is_secure, method, path })
    }
}

/// Whether it is asked by HTTPS; none where no interface is of HTTP. Who offers both is asked by HTTPS, as the cloud's systems are meant to.
fn is_secure<'i>(interfaces: impl Iterator<Item = &'i InterfaceName>) -> Option<bool> {
    let spoken = interfaces.filter_map(|name| {
        let (protocol, rest) = name.as_str().split_once('-')?;
        matches!(protocol, "HTTP" | "HTTPS").then(|| protocol == "HTTPS" || rest.starts_with("SECURE-"))
    });
    spoken.max()
}

/// What a provider wants to be asked. None: nothing, also of what cannot be understood.
fn parse(wish: &str) -> Option<(ProbeMethod, &str)> {
    match wish.split_once(' ') {
        Some(("OPTIONS", path)) => Some((ProbeMethod::Options, path.trim())),
        Some(("GET", path)) => Some((ProbeMethod::Get, path.trim())),
        None if wish.starts_with('/') => Some((ProbeMethod::Options, wish)),
        _ => None,
    }
}

/// Whether it can stand in a request's first line: what providers register is theirs to choose, and must not become a request of its own.
fn is_path(path: &str) -> bool {
    path.len() <= PATH_MAX && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::NamingRules;

    fn spoken(names: &[&str]) -> Option<bool> {
        let names: Vec<_> = names.iter().map(|name| InterfaceName::parse(name, &NamingRules::default()).unwrap()).collect();
        is_secure(names.iter())
    }

    #[test]
    fn services_that_speak_http_are_asked_by_what_they_speak() {
        assert_eq!(spoken(&["HTTP-INSECURE-JSON"]), Some(false));
        assert_eq!(spoken(&["HTTP-SECURE-JSON"]), Some(true));
        assert_eq!(spoken(&["HTTP-INSECURE-JSON", "HTTP-SECURE-XML"]), Some(true));
        assert_eq!(spoken(&["MQTT-SECURE-JSON", "HTTP-INSECURE-JSON"]), Some(false));
        assert_eq!(spoken(&["COAP-INSECURE-CBOR"]), None);
        assert_eq!(spoken(&[]), None);
    }

    #[test]
    fn a_provider_says_by_which_request_it_is_asked() {
        assert_eq!(parse("/health"), Some((ProbeMethod::Options, "/health")));
        assert_eq!(parse("GET /health"), Some((ProbeMethod::Get, "/health")));
        assert_eq!(parse("OPTIONS /"), Some((ProbeMethod::Options, "/")));
        for none in ["off", "", "no", "POST /reset", "DELETE /", "get /health", "health"] {
            assert_eq!(parse(none), None, "{none}");
        }
    }

    #[test]
    fn what_would_be_more_than_a_path_is_not_asked_for() {
        for path in ["/", "/heat?unit=k", "/a%20b", "/*"] {
            assert!(is_path(path), "{path}");
        }
        for path in ["/a b", "/a\r\nHost: x", "/\u{e9}", "/a#b", "/\0"] {
            assert!(!is_path(path), "{path:?}");
        }
        assert!(is_path(&format!("/{}", "a".repeat(PATH_MAX - 1))) && !is_path(&format!("/{}", "a".repeat(PATH_MAX))));
    }
}
