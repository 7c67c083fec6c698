//! Where NATS is, and as whom it is used.

use std::{fmt, sync::Arc};

use bodkin_nats::{protocol::Credentials, servers::SERVERS_MAX};

use super::NatsTls;

/// Where servers listen by default.
const PORT: u16 = 4222;

/// Why a text names no servers of NATS.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoNats {
    /// No place of a server.
    #[error("{0:?} is no server: nats://HOST:PORT, or tls://HOST:PORT, is expected")]
    Server(String),
    /// Another form of a list.
    #[error("NATS is named as nats://USER:PASSWORD@HOST:PORT,HOST:PORT (or nats://TOKEN@..., or without either; tls:// in TLS)")]
    Form,
    /// Too few or too many.
    #[error("servers are 1 to {SERVERS_MAX}, and not {0}")]
    Servers(usize),
    /// TLS is asked for, and there is nothing that servers would be believed by.
    #[error("servers in TLS are believed by an authority's certificate: name its file (PEM)")]
    NoTrust,
}

/// A server that is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsServer {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Is it spoken to in TLS?
    pub is_tls: bool,
}

impl fmt::Display for NatsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, (open, close)) =
            (if self.is_tls { "tls" } else { "nats" }, if self.host.contains(':') { ("[", "]") } else { ("", "") });
        write!(f, "{scheme}://{open}{}{close}:{}", self.host, self.port)
    }
}

/// Reads the place of a server.
///
/// # Errors
/// It is none.
pub fn parse_server(text: &str) -> Result<NatsServer, NoNats> {
    let wrong = || NoNats::Server(text.to_owned());
    let (is_tls, place) = match text.trim().split_once("://") {
        Some(("nats", place)) => (false, place),
        Some(("tls", place)) => (true, place),
        _ => return Err(wrong()),
    };
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
            (host, port.strip_prefix(':').or(port.is_empty().then_some("")).ok_or_else(wrong)?)
        }
        None => place.split_once(':').unwrap_or((place, "")),
    };
    let port = if port.is_empty() { PORT } else { port.parse().map_err(|_| wrong())? };
    let is_host = !host.is_empty() && !host.contains(['/', '@', '?', '#', ' ']) && (place.starts_with('[') || !host.contains(':'));
    if is_host && port > 0 { Ok(NatsServer { host: host.to_owned(), port, is_tls }) } else { Err(wrong()) }
}

/// Servers of NATS, and as whom they are used. Shown without secrets.
#[derive(Clone)]
pub struct NatsPlace {
    /// Servers that are tried one after the other.
    pub servers: Vec<NatsServer>,
    /// How servers in TLS are verified, and what this node presents to them.
    pub tls: Option<Arc<NatsTls>>,
    /// Who we are.
    pub credentials: Credentials,
}

impl NatsPlace {
    /// Reads a URL of several servers; `tls` is for servers in TLS.
    ///
    /// # Errors
    /// It is none, or asks for TLS without that.
    pub fn parse(url: &str, tls: Option<Arc<NatsTls>>) -> Result<Self, NoNats> {
        let (scheme, rest) = url.split_once("://").ok_or(NoNats::Form)?;
        if !matches!(scheme, "nats" | "tls") {
            return Err(NoNats::Form);
        }
        let (credentials, servers) = match rest.rsplit_once('@') {
            None => (Credentials::None, rest),
            // A scheme and a user in front of each server: all but the last would be a part of a password.
            Some((who, _)) if who.contains("://") => return Err(NoNats::Form),
            Some((who, servers)) => (credentials(who), servers),
        };
        let named = servers.trim_end_matches('/').split(',');
        let servers = named.map(|server| parse_server(&format!("{scheme}://{server}"))).collect::<Result<Vec<_>, _>>()?;
        if servers.len() > SERVERS_MAX {
            return Err(NoNats::Servers(servers.len()));
        }
        if scheme == "tls" && tls.is_none() {
            return Err(NoNats::NoTrust);
        }
        Ok(Self { servers, tls, credentials })
    }
}

fn credentials(who: &str) -> Credentials {
    match who.split_once(':') {
        Some((user, password)) => Credentials::User { user: user.to_owned(), password: password.to_owned() },
        None => Credentials::Token(who.to_owned()),
    }
}

impl fmt::Display for NatsPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(NatsServer::to_string).collect();
        f.write_str(&servers.join(","))
    }
}

impl fmt::Debug for NatsPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} as {:?}", self.credentials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_scheme_a_host_and_a_port() {
        for (text, told) in [
            ("nats://10.0.0.1:4223", "nats://10.0.0.1:4223"),
            (" tls://hub.example ", "tls://hub.example:4222"),
            ("nats://[::1]:5", "nats://[::1]:5"),
            ("nats://[::1]", "nats://[::1]:4222"),
        ] {
            assert_eq!(parse_server(text).expect(text).to_string(), told);
        }
        for text in
            ["", "hub:4222", "http://hub", "nats://", "nats://u:p@hub:4222", "nats://hub:0", "nats://hub:x", "nats://::1:5", "nats://[::1"]
        {
            assert_eq!(parse_server(text), Err(NoNats::Server(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn servers_and_who_we_are_are_read_and_no_secret_is_shown() {
        let place = NatsPlace::parse("nats://bodkin:secret@one,two:4333,[::1]:1/", None).unwrap();
        assert_eq!(place.to_string(), "nats://one:4222,nats://two:4333,nats://[::1]:1");
        assert!(!format!("{place} {place:?}").contains("secret"));
        let credentials = |url: &str| NatsPlace::parse(url, None).unwrap().credentials;
        assert_eq!(credentials("nats://word@h"), Credentials::Token("word".to_owned()));
        assert_eq!(credentials("nats://h"), Credentials::None);
    }

    #[test]
    fn what_names_no_server_is_told() {
        let refused = |url: &str| NatsPlace::parse(url, None).expect_err(url);
        assert_eq!((refused("http://h"), refused("h")), (NoNats::Form, NoNats::Form));
        assert_eq!(refused("nats://u:p@one:4222,nats://u:p@two:4222"), NoNats::Form);
        assert_eq!(refused("tls://h"), NoNats::NoTrust);
        for wrong in ["nats://", "nats://h:x", "nats://h:0", "nats://a,,b", "nats://h/x"] {
            assert!(matches!(refused(wrong), NoNats::Server(_)), "{wrong}");
        }
    }
}
