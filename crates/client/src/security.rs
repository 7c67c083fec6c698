//! TLS of a client: who it is, and whose certificate a server has to show.

use std::sync::Arc;

use bodkin_arrowhead::{
    common_name::{CloudCommonName, CommonNameError, SystemCommonName},
    core_service,
};
use bodkin_trust::{
    Certificate, Identity,
    tls::{self, PeerCheck, ServerCheck, TlsError},
};
use rustls::{
    ClientConfig,
    client::Resumption,
    pki_types::{CertificateDer, ServerName},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::tls_failure;

/// Sessions that are kept to be resumed with one server.
const SESSIONS_MAX: usize = 4;

/// Why a client cannot take part in a secure cloud.
#[derive(Debug, thiserror::Error)]
pub enum SecurityError {
    /// TLS cannot be configured.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The own certificate is no system's.
    #[error("the own certificate cannot be used: {0}")]
    OwnName(CommonNameError),
    /// Nothing says which cloud this is.
    #[error("without an own certificate the trusted authority has to name the cloud: {0}")]
    Cloud(CommonNameError),
}

/// Who a client is and whom it believes. With it servers are called over TLS only.
#[derive(Clone, Debug)]
pub struct Security {
    config: Arc<ClientConfig>,
    own_name: Option<SystemCommonName>,
    cloud: CloudCommonName,
}

/// Whose certificate a server has to show, in any case a system's of the cloud that is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The system of this name.
    System(String),
    /// Some core system: Bodkin's own port has no name in Arrowhead.
    CoreSystem,
}

impl Security {
    /// Takes an identity, or none where a server serves clients without one, and the certificates of the authorities
    /// that servers' certificates must lead to. Servers' names are checked: that of the host, and the system's.
    pub fn new(identity: Option<&Identity>, anchors: &[Certificate]) -> Result<Self, SecurityError> {
        Self::with_check(identity, anchors, ServerCheck::HostName)
    }

    /// As [`Self::new`]; with [`ServerCheck::ChainOnly`] a server's certificate need not be made out for the host that it is
    /// called at (Arrowhead's `disable.hostname.verifier`). The system's name is checked all the same.
    pub fn with_check(identity: Option<&Identity>, anchors: &[Certificate], check: ServerCheck) -> Result<Self, SecurityError> {
        let own_name = identity.map(|identity| identity.certificate().system()).transpose().map_err(SecurityError::OwnName)?;
        let cloud = match (&own_name, anchors.first()) {
            (Some(name), _) => name.cloud.clone(),
            (None, Some(anchor)) => CloudCommonName::parse(anchor.common_name().unwrap_or_default()).map_err(SecurityError::Cloud)?,
            (None, None) => return Err(TlsError::NoAnchor.into()),
        };
        Ok(Self { config: tls::client(identity, anchors, check)?, own_name, cloud })
    }

    /// The same towards servers of another cloud, whose authority has to be among those that are believed.
    pub fn towards_cloud(&self, cloud: CloudCommonName) -> Self {
        Self { cloud, ..self.clone() }
    }

    /// The name in the own certificate, where there is one.
    pub fn own_name(&self) -> Option<&SystemCommonName> {
        self.own_name.as_ref()
    }

    /// What connections to one server are made with. Its sessions are its own: rustls keeps them by host name, and on one
    /// host many servers listen.
    pub(crate) fn towards(&self, expected: Expected) -> Towards {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        Towards { security: self.clone(), connector: TlsConnector::from(Arc::new(config)), expected }
    }
}

/// TLS towards one server.
#[derive(Clone)]
pub(crate) struct Towards {
    pub(crate) security: Security,
    connector: TlsConnector,
    expected: Expected,
}

impl Towards {
    /// Does the handshake with the server at `address` (`host:port`). An error is its reason in words, with what to do.
    pub(crate) async fn handshake(&self, address: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        let name = server_name(address).ok_or_else(|| "its address is neither a host name nor an IP address".to_owned())?;
        let stream =
            self.connector.connect(name, stream).await.map_err(|error| self.failure(&error).unwrap_or_else(|| error.to_string()))?;
        // Of a resumed session as well: it keeps the certificate.
        let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        self.check(certificate.ok_or("it has shown no certificate")?)?;
        Ok(stream)
    }

    /// What to do about an error of a connection, where TLS is its reason.
    pub(crate) fn failure(&self, error: &(dyn std::error::Error + 'static)) -> Option<String> {
        tls_failure::told(error, self.security.own_name())
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), String> {
        let certificate = PeerCheck::default().check(certificate, tls::now()).map_err(|error| error.to_string())?;
        let name = certificate.system().map_err(|error| format!("its certificate names no system: {error}"))?;
        let cloud = &self.security.cloud;
        if name.cloud != *cloud {
            return Err(format!("it is {name}, of another cloud than {cloud}: check the address"));
        }
        let is_expected = match &self.expected {
            Expected::System(expected) => name.system.as_str().eq_ignore_ascii_case(expected.trim()),
            Expected::CoreSystem => core_service::is_core_system(name.system.as_str()),
        };
        if is_expected { Ok(()) } else { Err(format!("it is {name}, but {} was expected there: check the address", self.expected)) }
    }
}

impl std::fmt::Debug for Towards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Towards({}, as {:?})", self.expected, self.security.own_name)
    }
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::System(name) => f.write_str(name),
            Self::CoreSystem => f.write_str("a core system"),
        }
    }
}

/// The host of `host:port`, an IPv6 address in brackets.
pub(crate) fn server_name(address: &str) -> Option<ServerName<'static>> {
    let (host, _) = address.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(host.to_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_its_host() {
        for (address, name) in [("127.0.0.1:8443", "127.0.0.1"), ("[::1]:8443", "::1"), ("cloud.example.org:1", "cloud.example.org")] {
            assert_eq!(server_name(address).map(|name| name.to_str().into_owned()).as_deref(), Some(name), "{address}");
        }
        for address in ["", "host", "not a host:1", ":1"] {
            assert_eq!(server_name(address), None, "{address}");
        }
    }
}
