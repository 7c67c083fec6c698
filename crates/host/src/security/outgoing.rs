//! TLS towards subscribers, as the Event Handler, towards services that are measured, as the Orchestrator, and towards relays.

use std::{io, net::IpAddr, sync::Arc};

use bodkin_arrowhead::{core_service::CoreSystem, name::SystemName, record::System};
use bodkin_trust::{
    base64,
    tls::{self, Refusal},
};
use rustls::{ClientConfig, ClientConnection, pki_types::ServerName};
use tokio::net::TcpStream;

use super::{Peer, Security, SecurityError, Trust};
use crate::{
    async_channel::{AsyncChannel, Socket},
    channel::Channel,
};

/// Why a subscriber is not spoken to.
#[derive(Debug, thiserror::Error)]
pub enum SubscriberError {
    /// No certificate can be made out for its address.
    #[error("no certificate can be made out for the address {0}, under which the subscriber is registered")]
    Address(String),
    /// What it shows or says is refused.
    #[error("the subscriber is refused: {}{refusal}", shown(.refusal))]
    Refused {
        /// Why.
        #[from]
        refusal: Refusal,
    },
    /// Another system listens there.
    #[error("{found} listens there, and the subscriber is {expected}: it gets nothing")]
    Name {
        /// The name in the certificate.
        found: String,
        /// The system that is registered.
        expected: SystemName,
    },
    /// The connection is gone.
    #[error("the TLS handshake was not done: {0}")]
    Io(io::Error),
}

fn shown(refusal: &Refusal) -> String {
    refusal.name().map_or_else(String::new, |name| format!("it shows the certificate of {name}, but "))
}

impl From<io::Error> for SubscriberError {
    fn from(error: io::Error) -> Self {
        error.downcast::<Refusal>().map_or_else(Self::Io, Self::from)
    }
}

impl Security {
    /// Does the handshake with a subscriber, whose certificate has to be its own.
    pub async fn call(&self, stream: TcpStream, subscriber: &System) -> Result<(AsyncChannel, Peer), SubscriberError> {
        let trust = self.trust();
        self.shake_hands(stream, (&trust, &trust.towards_subscribers), subscriber.address.as_str(), &subscriber.system_name).await
    }

    /// Does the handshake with a provider whose service is measured, and whose certificate has to be its own.
    pub(crate) async fn ask_provider(
        &self,
        stream: TcpStream,
        address: &str,
        provider: &SystemName,
    ) -> Result<AsyncChannel, SubscriberError> {
        let trust = self.trust();
        Ok(self.shake_hands(stream, (&trust, &trust.towards_services), address, provider).await?.0)
    }

    async fn shake_hands(
        &self,
        stream: TcpStream,
        (trust, config): (&Trust, &Arc<ClientConfig>),
        address: &str,
        expected: &SystemName,
    ) -> Result<(AsyncChannel, Peer), SubscriberError> {
        let host = host_name(address).ok_or_else(|| SubscriberError::Address(address.to_owned()))?;
        let session = ClientConnection::new(config.clone(), host).map_err(Refusal::without_certificate)?;
        let mut channel = Channel::tls(Socket(stream), Box::new(session.into()));
        channel.handshake().await?;
        let peer = self.peer(channel.session().expect("it was made above"), trust)?;
        if !peer.is(expected) {
            return Err(SubscriberError::Name { found: peer.name().to_owned(), expected: expected.clone() });
        }
        Ok((channel, peer))
    }

    /// What a core system connects to a relay with, whose key is `authentication_info` where its record has one. `None`: that is no Base64.
    pub(crate) fn towards_relay(
        &self,
        system: CoreSystem,
        authentication_info: Option<&str>,
    ) -> Result<Option<Arc<ClientConfig>>, SecurityError> {
        let key = match authentication_info.map(base64::decode) {
            Some(None) => return Ok(None),
            key => key.flatten(),
        };
        let trust = self.trust();
        Ok(Some(tls::towards_relay(trust.identity(system), trust.anchors(), key, self.config.server_check(), trust.check.clone())?))
    }
}

/// A registered address as certificates have it; the registry keeps IPv6 addresses in their longest form.
pub(crate) fn host_name(address: &str) -> Option<ServerName<'static>> {
    match address.parse::<IpAddr>() {
        Ok(address) => Some(ServerName::from(address)),
        Err(_) => ServerName::try_from(address.to_owned()).ok(),
    }
}
