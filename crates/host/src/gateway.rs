//! Tunnels to and from other clouds (reference section 8): consumers of this cloud reach providers of others by ports of the [`Gateway`], and consumers of others
//! reach providers of this one.
//!
//! ```text
//! consumer ══ TLS ══ lane ─┐                                                   ┌─ lane ══ TLS ══ provider
//!                          ├─ Tunnel (hear, speak) ── Relay ══ .. ══ Tunnel ───┤
//! consumer ══ TLS ══ lane ─┘                                                   └─ lane ══ TLS ══ provider
//! ```
//!
//! What a session may do is decided in `relay::tunnel`; here are the sockets, the tasks (two for each session, one for each connection), the ports and the places.

mod door;
mod ends;
mod grant;
mod hearing;
mod lane;
mod lease;
mod reuse;
mod secrecy;
mod speech;
mod tunnel;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use bodkin_arrowhead::{
    common_name::SystemCommonName,
    dialogue::SessionId,
    error::ArrowheadError,
    form::{ActiveSession, SystemRequest},
    gateway::{ConsumerConnection, ProviderConnection},
    record::Relay as RelayRecord,
    snapshot::Snapshot,
};
use bodkin_relay::tunnel::{PortPool, PortRange, Reason, Side, Terms};
use bodkin_trust::{Identity, draw_numbered_tunnel, jose::UnusableKey};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};

use self::{
    door::Entrance,
    grant::Entering,
    lease::Holders,
    reuse::{Former, Route},
    secrecy::PeerKeys,
    tunnel::{ConsumerParts, EntranceSource, Tunnel},
};
pub use self::{
    ends::{End, EndError, Ends, SecureEnds},
    grant::GrantPlace,
    view::SessionView,
};
use crate::{
    control::Control,
    gatekeeper::{GatekeeperError, Keys, Links},
    handshakes::Handshakes,
    relay::{Relay, RelayError, RelayPlace},
    seldom::SeldomOf,
    shares::{Place, Shares},
};

/// Sessions at the same time, of both sides: each has two listeners at its relay, of which there may be 4,096.
pub const SESSIONS_MAX: usize = 2_000;
/// Of these, those to and from one other cloud: none keeps the others from theirs.
pub const SESSIONS_OF_ONE_MAX: usize = 1_500;
/// Maximum number of TLS handshakes in progress, at the ports of all tunnels together.
pub(crate) const HANDSHAKES_MAX: usize = 512;
/// Sessions that are over, and still shown.
const ENDED_SHOWN: usize = 100;
/// For all sessions to be told that the gateway stops.
const STOP_MAX: Duration = Duration::from_secs(3);
/// How often it is looked for relays that no tunnel can go by any more.
const LOOK: Duration = Duration::from_secs(10);

/// How a Gateway is configured.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// Where consumers connect.
    pub listen: IpAddr,
    /// The address that they are told.
    pub address: String,
    /// The ports at which they do.
    pub ports: PortRange,
    /// Maximum number of ports that one consumer holds; 0: half of them, at least one.
    pub ports_of_one: usize,
    /// For how long sessions wait.
    pub terms: Terms,
    /// For a TLS handshake, and for a provider to be connected to.
    pub patience: Duration,
}

/// What became of sessions since the start.
#[derive(Debug, Default)]
pub struct GatewayCounts {
    /// Begun, of both sides.
    pub opened: AtomicU64,
    /// Over.
    pub closed: AtomicU64,
    /// Tunnels that were asked for and could not be begun.
    pub refused: AtomicU64,
    /// Tunnels that were asked for, and led to a session in use of the same consumer, provider, and service.
    pub shared: AtomicU64,
    /// Connections of consumers, and to providers.
    pub connections: AtomicU64,
    /// Of these, those that broke, or could not be made.
    pub broken: AtomicU64,
    /// Bytes of connections that were sent to other gateways.
    pub bytes_to_peers: AtomicU64,
    /// Bytes of connections that came from other gateways.
    pub bytes_from_peers: AtomicU64,
    /// TLS handshakes at ports of tunnels that failed: no certificate of the consumer, or too slow.
    pub handshakes_failed: AtomicU64,
    /// TLS handshakes at ports of tunnels that newer ones replaced.
    pub handshakes_evicted: AtomicU64,
    /// Messages that were not taken: forged, repeated, of another session.
    pub strays: AtomicU64,
}

/// The Gateway of a cloud.
pub struct Gateway {
    own: SystemCommonName,
    keys: ArcSwap<Keys>,
    links: Box<dyn Links>,
    ends: Box<dyn Ends>,
    config: GatewayConfig,
    ports: Mutex<PortPool>,
    /// Which consumers hold how many ports.
    holders: Arc<Holders>,
    /// Requests for a tunnel that are carried out, by what makes them equal.
    turns: Mutex<BTreeMap<Route, Weak<tokio::sync::Mutex<()>>>>,
    sessions: Mutex<BTreeMap<SessionId, Arc<Tunnel>>>,
    /// Queue ids of sessions that are being entered.
    entering: Mutex<BTreeSet<SessionId>>,
    /// Those that there may be, by the other cloud's name.
    places: Shares,
    /// Keys of other gateways, by their text: those of a gateway are there once, however many sessions it has.
    peers: Mutex<BTreeMap<String, Weak<PeerKeys>>>,
    ended: Mutex<VecDeque<SessionView>>,
    /// Times of sessions count from here.
    started: Instant,
    /// A session has come to its end.
    one_less: Notify,
    told: SeldomOf,
    /// TLS handshakes in progress at all ports.
    handshakes: Arc<Handshakes>,
    /// For whoever watches.
    pub counts: GatewayCounts,
}

impl Gateway {
    /// For the Gateway's identity.
    pub fn new(identity: &Identity, config: GatewayConfig, links: Box<dyn Links>, ends: Box<dyn Ends>) -> Result<Self, GatekeeperError> {
        Ok(Self {
            own: identity.certificate().system()?,
            keys: ArcSwap::from_pointee(Keys::new(identity)?),
            links,
            ends,
            ports: Mutex::new(PortPool::new(config.ports)),
            holders: Arc::new(Holders::new(&config)),
            turns: Mutex::default(),
            config,
            sessions: Mutex::default(),
            entering: Mutex::default(),
            places: Shares::new(SESSIONS_MAX, SESSIONS_OF_ONE_MAX),
            peers: Mutex::default(),
            ended: Mutex::default(),
            started: Instant::now(),
            one_less: Notify::new(),
            told: SeldomOf::default(),
            handshakes: Handshakes::new(HANDSHAKES_MAX),
            counts: GatewayCounts::default(),
        })
    }

    /// Base64 of its public key, by which gateways of other clouds know it.
    pub fn authentication_info(&self) -> String {
        self.keys.load().authentication_info.clone()
    }

    /// It, as it stands in results in the place of a provider that is reached by `port`.
    pub fn as_provider(&self, port: u16) -> SystemRequest {
        SystemRequest {
            system_name: Some(self.own.system.as_str().to_owned()),
            address: Some(self.config.address.clone()),
            port: Some(port.into()),
            authentication_info: Some(self.authentication_info()),
            metadata: None,
        }
    }

    /// Who it is.
    pub fn own_name(&self) -> &SystemCommonName {
        &self.own
    }

    /// Goes on with another identity. Sessions that are not numbered are sealed for the former key, and end when the other gateway sends by it.
    pub fn replace_identity(&self, identity: &Identity) -> Result<(), UnusableKey> {
        let keys = Keys::new(identity)?;
        if keys.authentication_info != self.authentication_info() {
            tracing::warn!(system = "gateway", "the Gateway has another key: tunnels that are being opened have to be asked for again");
            self.keys.store(Arc::new(keys));
        }
        Ok(())
    }

    /// Opens the provider's end of a tunnel.
    ///
    /// # Errors
    /// 400 where the other gateway's key is none; 502 where the relay cannot be used; 503 where there are too many sessions.
    pub async fn connect_provider(self: &Arc<Self>, connection: ProviderConnection) -> Result<OpenedTunnel, ArrowheadError> {
        let ProviderConnection { form, peer_key } = connection;
        let opened = async {
            let place = self.place(&form.consumer_cloud())?;
            let peer_keys = self.peer_keys(&peer_key)?;
            let (queue_id, peer, side) = (draw_numbered_tunnel(), self.own.clone(), Side::Provider);
            Tunnel::begin(self, tunnel::Parts { form, queue_id: queue_id.clone(), peer, peer_keys, side, consumer: None, place }).await?;
            Ok(OpenedTunnel { queue_id, peer_name: self.own.clone(), key: self.authentication_info() })
        };
        let opened = opened.await;
        self.counts.refused.fetch_add(opened.is_err().into(), Relaxed);
        opened
    }

    /// Opens the consumer's end of a tunnel; gives its port, which may be that of a former request ([`reuse`]). Where that comes to nothing, or nobody waits for it any more, the other gateway is told that nobody comes.
    ///
    /// # Errors
    /// 400 where the other gateway's key is none, or its queue id is that of a session; 502 where the relay cannot be used; 503 where there are too many sessions,
    /// or the consumer holds its share of the ports; 504 where no port is free.
    pub async fn connect_consumer(self: &Arc<Self>, connection: ConsumerConnection) -> Result<u16, ArrowheadError> {
        let ConsumerConnection { form, queue_id, peer, peer_key } = connection;
        let grant = GrantPlace::new(self, tunnel::relay_place(&form), queue_id.clone(), peer.clone());
        let opened = async {
            let _entering = Entering::reserve(self, &queue_id, &peer)?;
            let place = self.place(&form.provider_cloud())?;
            let peer_keys = self.peer_keys(&peer_key)?;
            let route = Route::new(&form, &peer, &peer_key);
            let _turn = self.turn(&route).await;
            let entrance = match self.former(&route) {
                Some(Former::InUse(port)) => return Ok((port, false)),
                Some(Former::Unused(former)) => EntranceSource::Former(former),
                None => EntranceSource::Taken(Entrance::take(self, &form.consumer).await?),
            };
            let (consumer, side) = (Some(ConsumerParts { route, entrance }), Side::Consumer);
            let ends = tunnel::Parts { form, queue_id: queue_id.clone(), peer: peer.clone(), peer_keys, side, consumer, place };
            let port = Tunnel::begin(self, ends).await?.port();
            Ok((port.expect("a session at the consumer's side has a port"), true))
        };
        let opened = opened.await;
        match &opened {
            Ok((_, true)) => grant.leave(),
            // The other gateway is told that nobody comes by the new tunnel.
            Ok((_, false)) => _ = self.counts.shared.fetch_add(1, Relaxed),
            Err(_) => _ = self.counts.refused.fetch_add(1, Relaxed),
        }
        opened.map(|(port, _)| port)
    }

    /// The sessions that there are, in the order in which they were begun.
    pub fn active(&self) -> Vec<ActiveSession> {
        let mut active: Vec<Arc<Tunnel>> = self.sessions().values().cloned().collect();
        active.sort_by_key(|tunnel| tunnel.started);
        active.iter().map(|tunnel| tunnel.told()).collect()
    }

    /// How it is with each of them, and with those that have ended last.
    pub fn views(&self) -> Vec<SessionView> {
        let active: Vec<SessionView> = self.sessions().values().map(|tunnel| tunnel.view()).collect();
        let mut views: Vec<SessionView> = self.ended.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        // Of the same time, a session that has replaced another one comes after it.
        views.extend(active);
        views.sort_by_key(|one| one.started_at);
        views
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.sessions().len()
    }

    /// Ports that are free; `None`: as many as the system gives.
    pub fn free_ports(&self) -> Option<usize> {
        self.ports().free()
    }

    /// Ports that the consumer with the most of them holds.
    pub fn ports_held_by_one(&self) -> usize {
        self.holders.largest()
    }

    /// Ends the session of a queue id; false: there is none.
    pub fn close(&self, queue_id: &str, by: &'static str) -> bool {
        let tunnel = SessionId::parse(queue_id).ok().and_then(|id| self.sessions().get(&id).cloned());
        tunnel.map(|tunnel| tunnel.close(Reason::Closed(by))).is_some()
    }

    /// Ends the session that a consumer reaches by a port; false: there is none.
    pub fn close_port(&self, port: u16, by: &'static str) -> bool {
        let tunnel = self.at_port(port);
        tunnel.map(|tunnel| tunnel.close(Reason::Closed(by))).is_some()
    }

    /// Ends the session of a port, unless somebody is connected: it may be that of a former request.
    pub fn close_unused_port(&self, port: u16, by: &'static str) {
        if let Some(tunnel) = self.at_port(port).filter(|tunnel| tunnel.session().connections() == 0) {
            tunnel.close(Reason::Closed(by));
        }
    }

    /// The session of a port. A former one that has given its port away, and ends, comes last.
    fn at_port(&self, port: u16) -> Option<Arc<Tunnel>> {
        let sessions = self.sessions();
        let at_port = sessions.values().filter(|tunnel| tunnel.port() == Some(port));
        at_port.max_by_key(|tunnel| tunnel.is_open()).cloned()
    }

    /// Ends all sessions, and waits until the other gateways are told, or for a moment.
    pub async fn stop(&self) {
        let sessions: Vec<Arc<Tunnel>> = self.sessions().values().cloned().collect();
        sessions.iter().for_each(|tunnel| tunnel.close(Reason::Stopping));
        let all_over = async {
            loop {
                let one_less = self.one_less.notified();
                if self.sessions().is_empty() {
                    break;
                }
                one_less.await;
            }
        };
        if timeout(STOP_MAX, all_over).await.is_err() {
            tracing::warn!(system = "gateway", sessions = self.count(), "the time to stop was over before all sessions were closed");
        }
    }

    /// How it is with the connection to each relay.
    pub fn relays(&self) -> Vec<(String, String)> {
        self.links.all().iter().map(|relay| (relay.place().to_string(), relay.state().to_string())).collect()
    }

    /// Whether a consumer could enter a tunnel to another cloud now.
    ///
    /// # Errors
    /// 503 where there are too many sessions; 504 where no port is free.
    pub fn check_room(&self, cloud: &str) -> Result<(), ArrowheadError> {
        drop(self.place(cloud)?);
        if self.free_ports() == Some(0) { Err(lease::none_free(self.config.ports, "")) } else { Ok(()) }
    }

    /// A place for a session to or from another cloud.
    fn place(&self, cloud: &str) -> Result<Place, ArrowheadError> {
        let told = |full| {
            ArrowheadError::unavailable(format!(
                "The Gateway has {full} sessions, and no more at the same time: cloud {cloud} gets none. Try again later."
            ))
        };
        self.places.try_take(cloud).map_err(told)
    }

    /// Listens at a relay within the patience.
    async fn listen(&self, relay: &dyn Relay, queue: &crate::relay::Destination) -> Result<crate::relay::Messages, ArrowheadError> {
        let unusable = |why: String| ArrowheadError {
            error_code: 502,
            ..ArrowheadError::arrowhead(format!("No tunnel can be opened at the relay {}: {why}.", relay.place()))
        };
        match timeout(self.config.patience, relay.listen(queue)).await {
            Ok(listening) => listening.map_err(|error: RelayError| unusable(error.to_string())),
            Err(_) => Err(unusable(format!("it has not answered within {:?}", self.config.patience))),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Tunnel>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys of another gateway.
    fn peer_keys(&self, key: &str) -> Result<Arc<PeerKeys>, ArrowheadError> {
        let peers = || self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = peers().get(key).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let read = Arc::new(PeerKeys::new(key)?);
        let mut peers = peers();
        // No more than there are sessions.
        peers.retain(|_, known| known.strong_count() > 0);
        peers.insert(key.to_owned(), Arc::downgrade(&read));
        Ok(read)
    }

    fn ports(&self) -> MutexGuard<'_, PortPool> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time since its start.
    fn time(&self) -> Duration {
        self.started.elapsed()
    }

    /// A session is over, and the other gateway told.
    fn forget(&self, tunnel: &Tunnel) {
        self.sessions().remove(&tunnel.queue_id);
        {
            let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.push_back(tunnel.view());
            while ended.len() > ENDED_SHOWN {
                ended.pop_front();
            }
        }
        self.counts.closed.fetch_add(1, Relaxed);
        self.one_less.notify_waiters();
    }

    /// Tells the log, of the same once a minute.
    fn tell(&self, peer: &SystemCommonName, what: &str) {
        if let Some(times) = self.told.due(&format!("{peer} {what}")) {
            tracing::warn!(system = "gateway", peer = %peer, times, "{what}");
        }
    }

    /// Logs what happens at ports of tunnels, once a minute for each kind, with the latest detail.
    fn tell_port(&self, kind: &'static str, latest: &str) {
        if let Some(times) = self.told.due(kind) {
            tracing::warn!(system = "gateway", latest, times, "{kind}");
        }
    }
}

/// The provider's end of a tunnel, as the consumer's gateway needs to know it.
#[derive(Clone, Debug)]
pub struct OpenedTunnel {
    /// What its queues are known by.
    pub queue_id: SessionId,
    /// This gateway.
    pub peer_name: SystemCommonName,
    /// Base64 of its public key.
    pub key: String,
}

/// Keeps the connections to relays that tunnels can go by, and ends others, until the task is aborted. Returns at once where there is no Gateway.
pub async fn keep_links(control: Arc<Control>) {
    let Some(gateway) = control.gateway.clone() else { return };
    loop {
        tokio::time::sleep(LOOK).await;
        let mut wanted = places(&control.store.snapshot());
        wanted.extend(gateway.sessions().values().map(|tunnel| tunnel.relay.place().clone()));
        gateway.links.keep(&wanted);
    }
}

/// Where tunnels can go.
fn places(snapshot: &Snapshot) -> BTreeSet<RelayPlace> {
    let is_for_tunnels = |relay: &RelayRecord| relay.is_dedicated() || relay.is_public_for_tunnels();
    snapshot.relays().filter(|relay| is_for_tunnels(relay)).map(|relay| RelayPlace::from(&**relay)).collect()
}

/// When sessions begin and end is told to whoever reads the log.
fn tell_end(view: &SessionView, begun: Duration) {
    let SessionView { side, peer, consumer, provider, reason, bytes_to_peer, bytes_from_peer, .. } = view;
    let (reason, lasted_s) = (reason.as_deref().unwrap_or_default(), begun.as_secs());
    tracing::info!(
        system = "gateway",
        side,
        peer,
        consumer,
        provider,
        reason,
        bytes_to_peer,
        bytes_from_peer,
        lasted_s,
        "a session is over"
    );
}

#[cfg(test)]
pub(crate) mod tests;
