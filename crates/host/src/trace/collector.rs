//! Where the collector of traces is.

use std::{fmt, str::FromStr};

/// The path of OTLP/HTTP under which traces are told.
const TRACES: &str = "/v1/traces";
/// The port of OTLP/HTTP.
const DEFAULT_PORT: u16 = 4318;

/// A collector that takes OTLP/HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// Host name or IP address, the latter without brackets.
    pub host: String,
    /// Where it listens.
    pub port: u16,
    /// Where traces are posted.
    pub path: String,
}

/// Why a text is no collector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CollectorError {
    /// It is spoken with in the clear.
    #[error("'{0}' is https, which is not spoken with collectors: put one on this machine in front, which forwards what it is told")]
    Https(String),
    /// Anything else.
    #[error("'{0}' is given, where http://HOST:PORT is expected, such as http://127.0.0.1:{DEFAULT_PORT}")]
    Form(String),
}

impl FromStr for Collector {
    type Err = CollectorError;

    /// Reads `http://HOST[:PORT][/PATH]`; without a path it is the standard's behind the place.
    fn from_str(text: &str) -> Result<Self, CollectorError> {
        let malformed = || CollectorError::Form(text.to_owned());
        if text.starts_with("https://") {
            return Err(CollectorError::Https(text.to_owned()));
        }
        let rest = text.strip_prefix("http://").ok_or_else(malformed)?;
        let (place, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (host, port) = match place.strip_prefix('[') {
            Some(address) => {
                let (host, behind) = address.split_once(']').ok_or_else(malformed)?;
                (host, behind.strip_prefix(':').or_else(|| behind.is_empty().then_some("")).ok_or_else(malformed)?)
            }
            None => place.split_once(':').unwrap_or((place, "")),
        };
        let port = if port.is_empty() { DEFAULT_PORT } else { port.parse().ok().filter(|port| *port > 0).ok_or_else(malformed)? };
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || !is_plain(host) || host.contains(['@', '?', '#']) || !is_plain(path) || path.contains('#') {
            return Err(malformed());
        }
        let path = match path.trim_end_matches('/') {
            "" => TRACES.to_owned(),
            path => path.to_owned(),
        };
        Ok(Self { host: host.to_owned(), port, path })
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "http://{open}{}{close}:{}{}", self.host, self.port, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_has_a_place_and_a_path() {
        for (text, told) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://collector/", "http://collector:4318/v1/traces"),
            ("http://[::1]:9", "http://[::1]:9/v1/traces"),
            ("http://[::1]", "http://[::1]:4318/v1/traces"),
            ("http://c:80/otlp/v1/traces", "http://c:80/otlp/v1/traces"),
        ] {
            assert_eq!(text.parse::<Collector>().unwrap().to_string(), told, "{text}");
        }
        for text in [
            "",
            "127.0.0.1:4318",
            "http://",
            "http://:1",
            "http://c:0",
            "http://c:x",
            "http://[::1",
            "http://[::1]x",
            "http://a b",
            "http://u@c",
            "ftp://c",
        ] {
            assert!(matches!(text.parse::<Collector>(), Err(CollectorError::Form(_))), "{text}");
        }
        assert!("https://c".parse::<Collector>().unwrap_err().to_string().contains("in front"));
    }
}
