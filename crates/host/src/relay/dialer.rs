//! Connecting to a relay, and finding out what it speaks.

use std::{io, sync::Arc};

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_relay::stomp::{Logins, request::Login};
use bodkin_trust::tls::{RELAY_PROTOCOL, Refusal};
use rustls::{ClientConfig, ClientConnection};

use super::{CONNECT_PATIENCE, Protocol, RelayPlace};
use crate::{
    async_channel::{AsyncChannel, Socket},
    channel::Channel,
    destination::{DestinationError, Destinations},
    security::{Security, SecurityError, host_name},
};

/// Why a relay is not connected to.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// There is no connection.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// No certificate can be made out for its address.
    #[error("no certificate can be made out for the address {0}, which the relay's record has")]
    Address(String),
    /// Its record's key is none.
    #[error("the relay's record has no public key as authenticationInfo: Base64 of the key as in a certificate is expected")]
    Key,
    /// Our own certificates cannot be used.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// What it shows or says is refused.
    #[error("the relay is refused: {0}")]
    Refused(#[from] Refusal),
    /// The connection is gone.
    #[error("the TLS handshake with the relay was not done: {0}")]
    Io(io::Error),
}

impl From<io::Error> for DialError {
    fn from(error: io::Error) -> Self {
        error.downcast::<Refusal>().map_or_else(Self::Io, Self::from)
    }
}

/// TLS towards a relay.
type Tls = dyn Fn(&RelayPlace) -> Result<Arc<ClientConfig>, DialError> + Send + Sync;

/// Connects to relays.
#[derive(Clone)]
pub struct Dialer {
    destinations: Destinations,
    tls: Arc<Tls>,
    /// For the brokers that ask for them.
    logins: Arc<Logins>,
    /// Whose connections they are, as the log is told.
    user: CoreSystem,
}

impl Dialer {
    /// Connects as one of the core systems, with the certificate that counts at the time.
    pub fn new(destinations: Destinations, security: Arc<Security>, system: CoreSystem) -> Self {
        Self::with_tls(destinations, move |place| {
            security.towards_relay(system, place.authentication_info.as_deref())?.ok_or(DialError::Key)
        })
    }

    /// Connects with what `tls` gives for a relay.
    pub(super) fn with_tls(
        destinations: Destinations,
        tls: impl Fn(&RelayPlace) -> Result<Arc<ClientConfig>, DialError> + Send + Sync + 'static,
    ) -> Self {
        Self { destinations, tls: Arc::new(tls), logins: Arc::default(), user: CoreSystem::Gatekeeper }
    }

    /// Tells brokers that ask for it a name and a passcode, beside the certificate.
    pub fn with_logins(self, logins: Arc<Logins>) -> Self {
        Self { logins, ..self }
    }

    /// Tells the log that the connections are this system's; without it they are the Gatekeeper's.
    pub fn used_by(self, user: CoreSystem) -> Self {
        Self { user, ..self }
    }

    /// Whose connections they are.
    pub(super) fn user(&self) -> &'static str {
        self.user.name()
    }

    /// What the broker at a place is told.
    pub(super) fn login(&self, place: &RelayPlace) -> Option<&Login> {
        self.logins.of(&place.address, place.port)
    }

    /// Connects, shakes hands where the record says so, and gives what is spoken there.
    pub(super) async fn dial(&self, place: &RelayPlace) -> Result<(AsyncChannel, Protocol), DialError> {
        let stream = self.destinations.connect(&place.address, place.port, CONNECT_PATIENCE).await?;
        stream.set_nodelay(true)?;
        if !place.secure {
            return Ok((Channel::plain(Socket(stream)), Protocol::Stomp));
        }
        let host = host_name(&place.address).ok_or_else(|| DialError::Address(place.address.to_string()))?;
        let session = ClientConnection::new((self.tls)(place)?, host).map_err(Refusal::without_certificate)?;
        let mut channel = Channel::tls(Socket(stream), Box::new(session.into()));
        channel.handshake().await?;
        let chosen = channel.session().and_then(|session| session.alpn_protocol());
        let protocol = if chosen == Some(RELAY_PROTOCOL) { Protocol::Native } else { Protocol::Stomp };
        Ok((channel, protocol))
    }
}
