//! Where NATS is.

use std::fmt;

use bodkin_nats::{protocol::Credentials, servers::SERVERS_MAX};

/// The port of NATS where none is named.
const PORT: u16 = 4222;

/// Why a text names no servers of NATS.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoNats {
    /// Another form.
    #[error("NATS is named as nats://USER:PASSWORD@HOST:PORT,HOST:PORT (or nats://TOKEN@..., or without either)")]
    Form,
    /// A server is none.
    #[error("{0:?} is no HOST or HOST:PORT of a NATS server")]
    Server(String),
    /// Too many.
    #[error("{SERVERS_MAX} NATS servers may be named at the most")]
    Servers,
    /// TLS is asked for.
    #[error("TLS to NATS is not spoken between nodes: reach it through a tunnel on this host, or in a network of the nodes' own")]
    Tls,
}

/// Servers of NATS, and as whom they are used. Shown without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsPlace {
    /// Host and port of each.
    pub servers: Vec<(String, u16)>,
    /// Who we are.
    pub credentials: Credentials,
}

impl NatsPlace {
    /// Reads a URL.
    pub fn parse(url: &str) -> Result<Self, NoNats> {
        if url.starts_with("tls://") {
            return Err(NoNats::Tls);
        }
        let rest = url.strip_prefix("nats://").ok_or(NoNats::Form)?;
        let (credentials, servers) = match rest.rsplit_once('@') {
            None => (Credentials::None, rest),
            Some((who, servers)) => (credentials(who), servers),
        };
        let servers: Vec<_> = servers.trim_end_matches('/').split(',').map(server).collect::<Result<_, _>>()?;
        if servers.len() > SERVERS_MAX {
            return Err(NoNats::Servers);
        }
        Ok(Self { servers, credentials })
    }
}

fn credentials(who: &str) -> Credentials {
    match who.split_once(':') {
        Some((user, password)) => Credentials::User { user: user.to_owned(), password: password.to_owned() },
        None => Credentials::Token(who.to_owned()),
    }
}

fn server(text: &str) -> Result<(String, u16), NoNats> {
    let wrong = || NoNats::Server(text.to_owned());
    // The colons of an IPv6 address stand in brackets.
    let (host, port) = match text.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((host, port)) => (host, port.parse().ok().filter(|port| *port != 0).ok_or_else(wrong)?),
        None => (text, PORT),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || host.contains(['/', '[', ']', ' ']) { Err(wrong()) } else { Ok((host.to_owned(), port)) }
}

impl fmt::Display for NatsPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        write!(f, "nats://{}", servers.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_who_we_are_are_read_and_no_secret_is_shown() {
        let place = NatsPlace::parse("nats://bodkin:secret@one,two:4333,[::1]:1/").unwrap();
        assert_eq!(place.servers, [("one".to_owned(), 4222), ("two".to_owned(), 4333), ("::1".to_owned(), 1)]);
        assert!(!format!("{place} {place:?}").contains("secret"));
        assert_eq!(NatsPlace::parse("nats://word@h").unwrap().credentials, Credentials::Token("word".to_owned()));
        assert_eq!(NatsPlace::parse("nats://h").unwrap().credentials, Credentials::None);
    }

    #[test]
    fn what_names_no_server_is_told() {
        assert_eq!(NatsPlace::parse("http://h"), Err(NoNats::Form));
        assert_eq!(NatsPlace::parse("tls://h"), Err(NoNats::Tls));
        for wrong in ["nats://", "nats://h:x", "nats://h:0", "nats://a,,b", "nats://h/x"] {
            assert!(matches!(NatsPlace::parse(wrong), Err(NoNats::Server(_))), "{wrong}");
        }
    }
}
