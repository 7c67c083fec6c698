//! A session: what its tasks share, how it begins, and how it ends.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bodkin_arrowhead::{
    common_name::SystemCommonName,
    dialogue::SessionId,
    error::ArrowheadError,
    form::ActiveSession,
    gateway::{SessionForm, control_queue},
    utc::UtcTime,
};
use bodkin_relay::tunnel::{Connection, Event, Frame, Reason, Session, SessionState, Side};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::timeout,
};

use super::{
    Gateway, SessionView,
    door::Entrance,
    hearing::Hearing,
    lane::{Lane, LaneEnd, PIECES_MAX, PLAIN_PIECES_MAX},
    reuse::Route,
    secrecy::PeerKeys,
    speech::{SAID_MAX, Said, Speech, WORDS_MAX},
    tell_end,
};
use crate::{
    control::now,
    relay::{Destination, Relay, RelayPlace},
    shares::Place,
};

/// For a session to give its port to a newer one, which takes another one then.
const HAND_OVER_MAX: Duration = Duration::from_secs(1);

/// What a session is made of.
pub(super) struct Parts {
    pub(super) form: SessionForm,
    pub(super) queue_id: SessionId,
    /// The provider's gateway, by whose name the queues are called.
    pub(super) peer: SystemCommonName,
    pub(super) peer_keys: Arc<PeerKeys>,
    pub(super) side: Side,
    /// On the consumer's side.
    pub(super) consumer: Option<ConsumerParts>,
    /// Among the sessions that there may be.
    pub(super) place: Place,
}

/// What a session at the consumer's side has besides.
pub(super) struct ConsumerParts {
    pub(super) route: Route,
    pub(super) entrance: EntranceSource,
}

/// Where the consumer's port comes from.
pub(super) enum EntranceSource {
    /// The pool.
    Taken(Entrance),
    /// A session that nobody is connected to, and that ends.
    Former(Arc<Tunnel>),
}

impl EntranceSource {
    /// # Errors
    /// The former session does not give its port, and none is free.
    async fn get(self, gateway: &Arc<Gateway>, form: &SessionForm) -> Result<Entrance, ArrowheadError> {
        match self {
            Self::Taken(entrance) => Ok(entrance),
            Self::Former(former) => match former.hand_over().await {
                Some(entrance) => Ok(entrance),
                // Its consumer has connected meanwhile, or it has ended.
                None => Entrance::take(gateway, &form.consumer).await,
            },
        }
    }
}

/// The queues of a session, from where one of its gateways stands.
pub(super) struct Queues {
    pub(super) out: Destination,
    pub(super) out_control: Destination,
    pub(super) into: Destination,
    pub(super) into_control: Destination,
}

impl Queues {
    pub(super) fn new(queue_id: &SessionId, peer: &SystemCommonName, side: Side) -> Result<Self, ArrowheadError> {
        let queue = |name: &str| {
            Destination::queue(name)
                .map_err(|error| ArrowheadError::invalid_parameter(format!("A tunnel's queue cannot be named: {error}.")))
        };
        let (request, response) = (queue_id.request_queue(peer), queue_id.response_queue(peer));
        let (out, into) = if side == Side::Consumer { (request, response) } else { (response, request) };
        Ok(Self {
            out: queue(&out)?,
            out_control: queue(&control_queue(&out))?,
            into: queue(&into)?,
            into_control: queue(&control_queue(&into))?,
        })
    }
}

pub(super) fn relay_place(form: &SessionForm) -> RelayPlace {
    let relay = &form.relay;
    let (address, authentication_info) = (relay.address.clone(), relay.authentication_info.clone());
    RelayPlace { address, port: relay.port, secure: relay.secure, authentication_info }
}

/// What the tasks of a session share.
pub(super) struct Tunnel {
    pub(super) gateway: Arc<Gateway>,
    pub(super) side: Side,
    pub(super) form: SessionForm,
    pub(super) queue_id: SessionId,
    peer: SystemCommonName,
    pub(super) peer_keys: Arc<PeerKeys>,
    pub(super) started: UtcTime,
    port: Option<u16>,
    /// At the consumer's side.
    pub(super) route: Option<Route>,
    /// Where a newer session waits for the port.
    successor: Mutex<Option<oneshot::Sender<Entrance>>>,
    pub(super) relay: Arc<dyn Relay>,
    pub(super) queues: Queues,
    session: Mutex<Session>,
    lanes: Mutex<BTreeMap<Connection, LaneEnd>>,
    pub(super) say: mpsc::Sender<Said>,
    words: mpsc::Sender<Frame>,
    /// Rung when the session is to be looked at.
    pub(super) changed: Notify,
    /// Rung when a consumer has connected.
    pub(super) used: Notify,
    bytes_to_peer: AtomicU64,
    bytes_from_peer: AtomicU64,
    /// Attempts to send a message that has not gone.
    pub(super) sent_again: AtomicU64,
    interruptions: AtomicU64,
    trouble: Mutex<Option<String>>,
    /// The other gateway is known to take messages of bytes.
    peer_takes_bytes: AtomicBool,
    /// Given back when nothing is left of the session.
    _place: Place,
}

impl Tunnel {
    /// Listens at the relay, and begins the session's tasks.
    ///
    /// # Errors
    /// The relay cannot be used, or no port is free.
    pub(super) async fn begin(gateway: &Arc<Gateway>, parts: Parts) -> Result<Arc<Self>, ArrowheadError> {
        let Parts { form, queue_id, peer, peer_keys, side, consumer, place } = parts;
        let queues = Queues::new(&queue_id, &peer, side)?;
        let relay = gateway.links.link(&relay_place(&form));
        // Both are asked for in one passage.
        let (data, control) = tokio::try_join!(gateway.listen(&*relay, &queues.into), gateway.listen(&*relay, &queues.into_control))?;
        let (route, entrance) = match consumer {
            Some(ConsumerParts { route, entrance }) => (Some(route), Some(entrance.get(gateway, &form).await?)),
            None => (None, None),
        };
        let is_numbered = queue_id.is_of_numbered_tunnel();
        // The provider's gateway has drawn the id; the consumer's is known by what it says.
        let takes_bytes = side == Side::Consumer && queue_id.is_of_tunnel_in_bytes();
        let ((say, said), (words, heard)) = (mpsc::channel(SAID_MAX), mpsc::channel(WORDS_MAX));
        let tunnel = Arc::new(Self {
            gateway: gateway.clone(),
            side,
            form,
            queue_id,
            peer,
            peer_keys,
            started: now(),
            port: entrance.as_ref().map(|entrance| entrance.lease.port()),
            route,
            successor: Mutex::default(),
            relay,
            queues,
            session: Mutex::new(Session::new(side, gateway.config.terms, is_numbered, gateway.time())),
            lanes: Mutex::default(),
            say,
            words,
            changed: Notify::new(),
            used: Notify::new(),
            bytes_to_peer: AtomicU64::new(0),
            bytes_from_peer: AtomicU64::new(0),
            sent_again: AtomicU64::new(0),
            interruptions: AtomicU64::new(0),
            trouble: Mutex::default(),
            peer_takes_bytes: AtomicBool::new(takes_bytes),
            _place: place,
        });
        gateway.counts.opened.fetch_add(1, Relaxed);
        gateway.sessions().insert(tunnel.queue_id.clone(), tunnel.clone());
        let speech = Speech { said, words: heard };
        tokio::spawn(Hearing::new(tunnel.clone(), data, control, speech, entrance).run());
        Ok(tunnel)
    }

    /// Ends this session, and gives its port to a newer one; `None`: a consumer is connected, or the session ends.
    async fn hand_over(&self) -> Option<Entrance> {
        let (give, given) = oneshot::channel();
        {
            let mut successor = self.successor();
            if !self.is_open() {
                return None;
            }
            *successor = Some(give);
        }
        self.changed.notify_one();
        timeout(HAND_OVER_MAX, given).await.ok()?.ok()
    }

    /// Where a newer session waits for the port.
    pub(super) fn successor(&self) -> MutexGuard<'_, Option<oneshot::Sender<Entrance>>> {
        self.successor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session's machine. The lock is held for no longer than a call of it.
    pub(super) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The consumer's port.
    pub(super) fn port(&self) -> Option<u16> {
        self.port
    }

    pub(super) fn is_numbered(&self) -> bool {
        self.session().is_numbered() == Some(true)
    }

    /// The other gateway's cloud, `name.operator`.
    pub(super) fn peer_cloud(&self) -> String {
        match self.side {
            Side::Consumer => self.form.provider_cloud(),
            Side::Provider => self.form.consumer_cloud(),
        }
    }

    /// The other gateway is told of the session, and has to answer in time.
    pub(super) fn asks(&self) {
        self.session().asked(self.gateway.time());
        self.changed.notify_one();
    }

    /// The other gateway has said something in bytes.
    pub(super) fn peer_takes_bytes(&self) {
        self.peer_takes_bytes.store(true, Relaxed);
    }

    /// Whether what is said by number goes as bytes: the other gateway takes them, and the relay carries them at present.
    pub(super) fn speaks_in_bytes(&self) -> bool {
        self.peer_takes_bytes.load(Relaxed) && self.relay.carries_bytes()
    }

    /// Whether requests of a consumer are gathered, because the other gateway hands each message on by itself.
    pub(super) fn keeps_requests_whole(&self) -> bool {
        self.side == Side::Consumer && !self.is_numbered()
    }

    /// For how long a consumer or provider may take nothing of what is written to it.
    pub(super) fn stall_max(&self) -> Duration {
        self.gateway.config.terms.idle
    }

    /// Ends the session; the first reason stays.
    pub(super) fn close(&self, reason: Reason) {
        self.session().close(reason);
        self.changed.notify_one();
    }

    /// Says a word of the session itself, without waiting.
    pub(super) fn word(&self, frame: Frame) {
        if self.words.try_send(frame).is_err() {
            self.close(Reason::Fault(format!("it causes {WORDS_MAX} answers and reads none")));
        }
    }

    /// Makes a connection known; what comes for it waits there.
    pub(super) fn open_lane(&self, number: Connection) -> Lane {
        let pieces_max = if self.is_numbered() { PIECES_MAX } else { PLAIN_PIECES_MAX };
        let ((inbound, received), bell) = (mpsc::channel(pieces_max), Arc::new(Notify::new()));
        self.lanes().insert(number, LaneEnd { inbound, bell: bell.clone() });
        self.gateway.counts.connections.fetch_add(1, Relaxed);
        Lane { number, inbound: received, bell }
    }

    pub(super) fn close_lane(&self, number: Connection) {
        self.lanes().remove(&number);
    }

    /// Everybody is told that nothing more comes.
    pub(super) fn close_lanes(&self) {
        self.lanes().clear();
    }

    pub(super) fn inbound(&self, number: Connection) -> Option<mpsc::Sender<super::lane::Inbound>> {
        self.lanes().get(&number).map(|lane| lane.inbound.clone())
    }

    pub(super) fn ring(&self, number: Connection) {
        if let Some(lane) = self.lanes().get(&number) {
            lane.bell.notify_one();
        }
    }

    fn lanes(&self) -> MutexGuard<'_, BTreeMap<Connection, LaneEnd>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count_to_peer(&self, bytes: usize) {
        self.bytes_to_peer.fetch_add(bytes as u64, Relaxed);
        self.gateway.counts.bytes_to_peers.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn count_from_peer(&self, bytes: usize) {
        self.bytes_from_peer.fetch_add(bytes as u64, Relaxed);
        self.gateway.counts.bytes_from_peers.fetch_add(bytes as u64, Relaxed);
    }

    /// Something went wrong with a connection: it is shown, and told in the log.
    pub(super) fn trouble(&self, what: &str) {
        self.gateway.counts.broken.fetch_add(1, Relaxed);
        self.gateway.tell(&self.peer, what);
        self.note_trouble(what);
    }

    /// Shows what went wrong in the session's view.
    pub(super) fn note_trouble(&self, what: &str) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(what.to_owned());
    }

    /// The connection to the relay was made again.
    pub(super) fn interrupted(&self) {
        self.interruptions.fetch_add(1, Relaxed);
    }

    /// A message was not taken.
    pub(super) fn stray(&self, what: &str) {
        self.gateway.counts.strays.fetch_add(1, Relaxed);
        self.gateway.tell(&self.peer, what);
    }

    /// The session's tasks have ended.
    pub(super) fn forget(&self) {
        self.session().closed();
        self.gateway.forget(self);
        tell_end(&self.view(), now().since(self.started));
    }

    /// As the management is told of it.
    pub(super) fn told(&self) -> ActiveSession {
        self.form.told(&self.queue_id, &self.peer, self.started, self.port)
    }

    /// As whoever watches is told of it.
    pub(super) fn view(&self) -> SessionView {
        let told = self.told();
        let (consumer_cloud, provider_cloud) = (self.form.consumer_cloud(), self.form.provider_cloud());
        let peer = match self.side {
            Side::Consumer => self.peer.to_string(),
            Side::Provider => format!("gateway.{consumer_cloud}.arrowhead.eu"),
        };
        let session = self.session();
        SessionView {
            queue_id: format!("{}..", &self.queue_id.as_str()[..6]),
            side: self.side.to_string(),
            state: session.state().to_string(),
            reason: session.reason().map(Reason::to_string),
            trouble: self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            interruptions: self.interruptions.load(Relaxed),
            peer,
            consumer: self.form.consumer.as_str().to_owned(),
            consumer_cloud,
            provider: self.form.provider_name.as_str().to_owned(),
            provider_cloud,
            service: told.service_definition.unwrap_or_default(),
            relay: self.relay.place().to_string(),
            port: self.port,
            connections: session.connections(),
            bytes_to_peer: self.bytes_to_peer.load(Relaxed),
            bytes_from_peer: self.bytes_from_peer.load(Relaxed),
            numbered: session.is_numbered(),
            started_at: self.started,
        }
    }

    /// Whether it is not over.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.session().state(), SessionState::Closing | SessionState::Closed)
    }

    /// Takes what the machine has to say about the present.
    pub(super) fn with_session<T>(&self, act: impl FnOnce(&mut Session, Duration, &mut Vec<Event>) -> T) -> (T, Vec<Event>) {
        let mut events = Vec::new();
        let done = act(&mut self.session(), self.gateway.time(), &mut events);
        (done, events)
    }
}
