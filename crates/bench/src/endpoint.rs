//! Where a system answers.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use anyhow::{Context, bail};

use crate::wire::Caller;

/// A system's address, resolved once, the name by which it is called, and who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// `host:port` as it was given: the `Host` of requests.
    pub authority: String,
    /// Where connections go.
    pub address: SocketAddr,
    /// As whom they are made.
    pub caller: Caller,
}

impl Endpoint {
    /// The endpoint of `host:port`.
    ///
    /// # Errors
    /// The port is missing, or the name has no address.
    pub fn resolve(authority: &str) -> anyhow::Result<Self> {
        let mut addresses = authority.to_socket_addrs().with_context(|| format!("{authority} is not HOST:PORT of a known host"))?;
        let address = addresses.next().with_context(|| format!("{authority} has no address"))?;
        Ok(Self { authority: authority.to_string(), address, caller: Caller::Nobody })
    }

    /// The same, called as someone.
    pub fn called_as(&self, caller: &Caller) -> Self {
        Self { caller: caller.clone(), ..self.clone() }
    }
}

impl FromStr for Endpoint {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let Some(rest) = text.strip_prefix("http://") else {
            bail!("{text} does not start with http:// (a secure cloud under load is the bench's own: --secure)");
        };
        let authority = rest.trim_end_matches('/');
        if authority.contains('/') {
            bail!("{text} has a path; give http://HOST:PORT");
        }
        Self::resolve(authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_scheme_host_and_port() {
        let endpoint: Endpoint = "http://127.0.0.1:8443/".parse().unwrap();
        assert_eq!((endpoint.authority.as_str(), endpoint.address.port()), ("127.0.0.1:8443", 8443));
        for refused in ["https://127.0.0.1:8443", "127.0.0.1:8443", "http://127.0.0.1", "http://127.0.0.1:8443/serviceregistry"] {
            assert!(refused.parse::<Endpoint>().is_err(), "{refused}");
        }
    }
}
