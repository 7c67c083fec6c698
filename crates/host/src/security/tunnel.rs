//! TLS at the two ends of a tunnel, as the Gateway: consumers connect, and providers are connected to. Either has to be the system whose tunnel it is.
//!
//! What they speak in it is theirs: no protocol is offered or asked for (RFC 7301).

use std::{io, sync::Arc};

use bodkin_arrowhead::name::SystemName;
use bodkin_trust::{
    Certificate, Identity,
    tls::{self, ClientCertificate, PeerCheck, Refusal, ServerCheck, TlsError},
};
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use tokio::net::TcpStream;

use super::{Peer, Security, host_name};
use crate::{
    async_channel::{AsyncChannel, Socket},
    channel::Channel,
};

/// What either end is spoken to with.
#[derive(Clone, Debug)]
pub(super) struct TunnelTls {
    consumers: Arc<ServerConfig>,
    providers: Arc<ClientConfig>,
}

impl TunnelTls {
    pub(super) fn new(gateway: &Identity, anchors: &[Certificate], server_check: ServerCheck, check: &PeerCheck) -> Result<Self, TlsError> {
        let mut consumers = (*tls::server(gateway, anchors, ClientCertificate::Required, check.clone())?).clone();
        let mut providers = (*tls::client_with_check(Some(gateway), anchors, server_check, check.clone())?).clone();
        consumers.alpn_protocols.clear();
        providers.alpn_protocols.clear();
        Ok(Self { consumers: Arc::new(consumers), providers: Arc::new(providers) })
    }
}

/// Why an end of a tunnel is not spoken to.
#[derive(Debug, thiserror::Error)]
pub enum TunnelEndError {
    /// This cloud has no certificate for a Gateway.
    #[error("this cloud has no Gateway")]
    NoGateway,
    /// No certificate can be made out for the provider's address.
    #[error("no certificate can be made out for the address {0}")]
    Address(String),
    /// What it shows or says is refused.
    #[error("it is refused: {}{refusal}", .refusal.name().map_or_else(String::new, |name| format!("it shows the certificate of {name}, but ")))]
    Refused {
        /// Why.
        #[from]
        refusal: Refusal,
    },
    /// Another system is there.
    #[error("it shows the certificate of {found}, and the tunnel is for {expected}")]
    Name {
        /// The name in the certificate.
        found: String,
        /// Whose tunnel it is.
        expected: SystemName,
    },
    /// The connection is gone.
    #[error("the TLS handshake was not done: {0}")]
    Io(io::Error),
}

impl From<io::Error> for TunnelEndError {
    fn from(error: io::Error) -> Self {
        error.downcast::<Refusal>().map_or_else(Self::Io, Self::from)
    }
}

impl Security {
    /// Does the handshake with whoever has connected to a tunnel's port.
    pub(crate) async fn welcome_consumer(&self, stream: TcpStream, consumer: &SystemName) -> Result<(AsyncChannel, Peer), TunnelEndError> {
        let trust = self.trust();
        let tls = trust.tunnels.as_ref().ok_or(TunnelEndError::NoGateway)?;
        let session = ServerConnection::new(tls.consumers.clone()).map_err(Refusal::without_certificate)?;
        self.meet(stream, session.into(), &trust, consumer).await
    }

    /// Does the handshake with a provider.
    pub(crate) async fn reach_provider(
        &self,
        stream: TcpStream,
        address: &str,
        provider: &SystemName,
    ) -> Result<(AsyncChannel, Peer), TunnelEndError> {
        let trust = self.trust();
        let tls = trust.tunnels.as_ref().ok_or(TunnelEndError::NoGateway)?;
        let host = host_name(address).ok_or_else(|| TunnelEndError::Address(address.to_owned()))?;
        let session = ClientConnection::new(tls.providers.clone(), host).map_err(Refusal::without_certificate)?;
        self.meet(stream, session.into(), &trust, provider).await
    }

    async fn meet(
        &self,
        stream: TcpStream,
        session: Connection,
        trust: &super::Trust,
        expected: &SystemName,
    ) -> Result<(AsyncChannel, Peer), TunnelEndError> {
        let mut channel = Channel::tls(Socket(stream), Box::new(session));
        if let Err(error) = channel.handshake().await {
            // So that it can read why; how the end goes does not matter any more.
            let _ = channel.linger().await;
            return Err(error.into());
        }
        let peer = self.peer(channel.session().expect("it was made above"), trust)?;
        if !peer.is(expected) {
            let _ = channel.linger().await;
            return Err(TunnelEndError::Name { found: peer.name().to_owned(), expected: expected.clone() });
        }
        Ok((channel, peer))
    }
}
