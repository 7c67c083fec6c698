//! Where a tunnel's bytes come from and go to: consumers that connect, and providers that are connected to, both with certificates of this cloud.

use std::{fmt, future::Future, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use bodkin_arrowhead::{name::SystemName, system::SystemReference};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

use crate::{async_channel::AsyncChannel, destination::Destinations, security::Security};

/// A consumer or provider that says nothing is asked by TCP after so long whether it is there, and again as often as the next says.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEP_ALIVE_RETRIES: u32 = 4;

/// What is waited for.
pub type Waited<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An open connection.
pub struct End {
    /// Its bytes.
    pub channel: AsyncChannel,
    /// Completes, with the reason, when the certificate that was shown does not count any more.
    pub refused: Waited<'static, String>,
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndError(pub String);

impl fmt::Display for EndError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The two ends.
pub trait Ends: Send + Sync + 'static {
    /// Does the handshake with whoever has connected, which has to be this consumer.
    fn welcome<'a>(&'a self, stream: TcpStream, address: SocketAddr, consumer: &'a SystemName) -> Waited<'a, Result<End, EndError>>;

    /// Connects to a provider, which has to be this one, within `patience`.
    fn reach<'a>(&'a self, provider: &'a SystemReference, name: &'a SystemName, patience: Duration) -> Waited<'a, Result<End, EndError>>;
}

/// Those of a cloud: mutual TLS.
pub struct SecureEnds {
    security: Arc<Security>,
    destinations: Destinations,
}

impl SecureEnds {
    /// As the Gateway, with the certificates that count at the time.
    pub fn new(security: Arc<Security>, destinations: Destinations) -> Self {
        Self { security, destinations }
    }
}

impl Ends for SecureEnds {
    fn welcome<'a>(&'a self, stream: TcpStream, address: SocketAddr, consumer: &'a SystemName) -> Waited<'a, Result<End, EndError>> {
        Box::pin(async move {
            set_up(&stream).map_err(|error| EndError(error.to_string()))?;
            let welcomed = self.security.welcome_consumer(stream, consumer).await;
            let (channel, peer) = welcomed.map_err(|error| EndError(format!("{address} was not let in: {error}")))?;
            let security = self.security.clone();
            Ok(End { channel, refused: Box::pin(async move { security.until_refused(&peer).await.to_string() }) })
        })
    }

    fn reach<'a>(&'a self, provider: &'a SystemReference, name: &'a SystemName, patience: Duration) -> Waited<'a, Result<End, EndError>> {
        Box::pin(async move {
            let told = |error: &dyn fmt::Display| EndError(format!("the provider {provider} is not reached: {error}"));
            let connected = self.destinations.connect(&provider.address, provider.port, patience).await;
            let stream = connected.map_err(|error| told(&error))?;
            set_up(&stream).map_err(|error| told(&error))?;
            let (channel, peer) = self.security.reach_provider(stream, &provider.address, name).await.map_err(|error| told(&error))?;
            let security = self.security.clone();
            Ok(End { channel, refused: Box::pin(async move { security.until_refused(&peer).await.to_string() }) })
        })
    }
}

/// Bytes go at once, and an end that is gone without a word is found out.
fn set_up(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let keep_alive = TcpKeepalive::new().with_time(KEEP_ALIVE).with_interval(KEEP_ALIVE_INTERVAL).with_retries(KEEP_ALIVE_RETRIES);
    SockRef::from(stream).set_tcp_keepalive(&keep_alive)
}
