//! A gateway of these tests: its ends are plain sockets.

use std::{
    net::SocketAddr,
    sync::{Arc, LazyLock},
    time::Duration,
};

use bodkin_arrowhead::{
    common_name::{CloudCommonName, SystemCommonName},
    error::ArrowheadError,
    json,
    name::SystemName,
    system::SystemReference,
};
use bodkin_relay::tunnel::{PortRange, Terms};
use bodkin_trust::{
    Authority, Identity, Profile, base64,
    jose::{SealingKey, VerifyingKey},
};
use tokio::net::TcpStream;

use crate::{
    async_channel::Socket,
    channel::Channel,
    control::now,
    gateway::{End, EndError, Ends, Gateway, GatewayConfig, OpenedTunnel, SESSIONS_MAX, ends::Waited},
    relay::memory::MemoryRelay,
};

const DAY: Duration = Duration::from_secs(86_400);
/// For what happens soon.
pub const SOON: Duration = Duration::from_secs(60);
/// How long sessions of these tests wait.
pub const IDLE: Duration = Duration::from_secs(3);

static IDENTITIES: LazyLock<[Identity; 3]> = LazyLock::new(|| {
    ["one", "two", "three"].map(|cloud| {
        let name = CloudCommonName::parse(&format!("{cloud}.aitia.arrowhead.eu")).unwrap();
        let authority = Authority::root(now(), DAY).unwrap().issue_cloud(&name, now(), DAY).unwrap();
        let name = SystemCommonName::parse(&format!("gateway.{name}")).unwrap();
        authority.issue(&Profile::system(&name, &[], now(), DAY)).unwrap()
    })
});

/// Whose gateway it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    One,
    Two,
    Stranger,
}

impl Cloud {
    pub fn gateway(self) -> &'static Identity {
        &IDENTITIES[self as usize]
    }

    pub fn name(self) -> SystemCommonName {
        self.gateway().certificate().system().unwrap()
    }

    pub fn key(self) -> String {
        base64::encode(self.gateway().certificate().public_key_info())
    }

    pub fn sealing(self) -> SealingKey {
        SealingKey::from_authentication_info(&self.key()).unwrap()
    }

    pub fn verifying(self) -> VerifyingKey {
        VerifyingKey::from_authentication_info(&self.key()).unwrap()
    }
}

/// Requests as gatekeepers make them.
pub mod request {
    use bodkin_arrowhead::gateway::{ConsumerConnection, ProviderConnection};

    use super::*;

    fn form(consumer: &str, provider_port: u16, further: &str) -> String {
        format!(
            r#"{{"relay":{{"address":"relay.example","port":5573,"secure":true,"type":"GENERAL_RELAY"}},
            "consumer":{{"systemName":"{consumer}","address":"10.0.0.1","port":8000}},
            "provider":{{"systemName":"sensor","address":"127.0.0.1","port":{provider_port}}},
            "consumerCloud":{{"operator":"aitia","name":"one"}},"providerCloud":{{"operator":"aitia","name":"two"}},"serviceDefinition":"heat",{further}}}"#
        )
    }

    pub fn provider(key: &str, port: u16) -> ProviderConnection {
        let form = form("display", port, &format!(r#""consumerGWPublicKey":"{key}""#));
        ProviderConnection::parse(&json::parse_object(&form).unwrap(), "/x").unwrap()
    }

    pub fn consumer(opened: &OpenedTunnel, port: u16) -> ConsumerConnection {
        consumer_named("display", opened, port)
    }

    pub fn consumer_named(name: &str, opened: &OpenedTunnel, port: u16) -> ConsumerConnection {
        let (id, peer, key) = (opened.queue_id.as_str(), &opened.peer_name, &opened.key);
        let form = form(name, port, &format!(r#""queueId":"{id}","peerName":"{peer}","providerGWPublicKey":"{key}""#));
        ConsumerConnection::parse(&json::parse_object(&form).unwrap(), "/x").unwrap()
    }
}

/// Sockets as they are.
struct PlainEnds;

pub fn plain(stream: TcpStream) -> End {
    End { channel: Channel::plain(Socket(stream)), refused: Box::pin(std::future::pending()) }
}

impl Ends for PlainEnds {
    fn welcome<'a>(&'a self, stream: TcpStream, _: SocketAddr, _: &'a SystemName) -> Waited<'a, Result<End, EndError>> {
        Box::pin(async move { Ok(plain(stream)) })
    }

    fn reach<'a>(&'a self, provider: &'a SystemReference, _: &'a SystemName, _: Duration) -> Waited<'a, Result<End, EndError>> {
        Box::pin(async move {
            let connected = TcpStream::connect((provider.address.as_str(), provider.port)).await;
            connected.map(plain).map_err(|error| EndError(format!("the provider {provider} is not reached: {error}")))
        })
    }
}

pub struct Side {
    cloud: Cloud,
    pub gateway: Arc<Gateway>,
}

impl Side {
    pub fn new(cloud: Cloud, relay: &MemoryRelay) -> Self {
        Self::with(cloud, relay, PortRange::Any, IDLE)
    }

    /// One that waits longer than any of these tests.
    pub fn patient(cloud: Cloud, relay: &MemoryRelay) -> Self {
        Self::with(cloud, relay, PortRange::Any, SOON * 6)
    }

    pub fn with_ports(cloud: Cloud, relay: &MemoryRelay, ports: PortRange) -> Self {
        Self::with(cloud, relay, ports, SOON * 6)
    }

    /// One whose ends are these, and which waits so long for them.
    pub fn with_ends(cloud: Cloud, relay: &MemoryRelay, patience: Duration, ends: Box<dyn Ends>) -> Self {
        Self::made_of(cloud, relay, (PortRange::Any, SOON * 6, patience), ends)
    }

    /// One with these ports, which waits so long for whoever is silent.
    pub fn with(cloud: Cloud, relay: &MemoryRelay, ports: PortRange, idle: Duration) -> Self {
        Self::made_of(cloud, relay, (ports, idle, SOON), Box::new(PlainEnds))
    }

    /// One that lets a consumer have so many ports.
    pub fn sharing(cloud: Cloud, relay: &MemoryRelay, ports_of_one: usize) -> Self {
        Self::sharing_made_of(cloud, relay, (PortRange::Any, SOON * 6, SOON), Box::new(PlainEnds), ports_of_one)
    }

    pub fn made_of(cloud: Cloud, relay: &MemoryRelay, times: (PortRange, Duration, Duration), ends: Box<dyn Ends>) -> Self {
        Self::sharing_made_of(cloud, relay, times, ends, SESSIONS_MAX)
    }

    fn sharing_made_of(
        cloud: Cloud,
        relay: &MemoryRelay,
        (ports, idle, patience): (PortRange, Duration, Duration),
        ends: Box<dyn Ends>,
        ports_of_one: usize,
    ) -> Self {
        let config = GatewayConfig {
            listen: "127.0.0.1".parse().unwrap(),
            address: "127.0.0.1".to_owned(),
            ports,
            ports_of_one,
            terms: Terms { idle, opening: SOON },
            patience,
        };
        let gateway = Gateway::new(cloud.gateway(), config, Box::new(relay.clone()), ends).unwrap();
        Self { cloud, gateway: Arc::new(gateway) }
    }

    /// Opens the provider's end here, for another gateway.
    pub async fn open(&self, consumers: &Self, provider: u16) -> OpenedTunnel {
        self.open_for(consumers.cloud, provider).await
    }

    pub async fn open_for(&self, consumers: Cloud, provider: u16) -> OpenedTunnel {
        self.gateway.connect_provider(request::provider(&consumers.key(), provider)).await.unwrap()
    }

    /// Opens the consumer's end here.
    pub async fn enter(&self, _: &Self, opened: &OpenedTunnel, provider: u16) -> Result<u16, ArrowheadError> {
        self.gateway.connect_consumer(request::consumer(opened, provider)).await
    }

    /// Opens both; gives the consumer's port.
    pub async fn tunnel_to(&self, providers: &Self, provider: u16) -> u16 {
        let opened = providers.open(self, provider).await;
        self.enter(providers, &opened, provider).await.unwrap()
    }

    /// Attempts of all sessions to send what had not gone.
    pub fn sent_again(&self) -> u64 {
        use std::sync::atomic::Ordering::Relaxed;
        self.gateway.sessions().values().map(|tunnel| tunnel.sent_again.load(Relaxed)).sum()
    }
}

/// Looks until something is so, which is to be soon.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < SOON, "it was never so that {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
