//! The port of a tunnel: accepts connections, verifies that they are the consumer's, and passes them on to the session.
//!
//! Connections of strangers take slots of [`Handshakes`](crate::handshakes::Handshakes) only, and none of the session's.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use bodkin_arrowhead::{error::ArrowheadError, name::SystemName};
use bodkin_relay::tunnel::CONNECTIONS_MAX;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use super::{
    Gateway,
    ends::{End, EndError},
    lease::Lease,
    tunnel::Tunnel,
};
use crate::handshakes::HandshakeSlot;

/// Maximum number of connections of the consumer that wait for a slot of the session. At the limit the port accepts no connection.
const WAITING_MAX: usize = CONNECTIONS_MAX;
/// Pause after the system refused to accept, so that a lack of descriptors is no busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A leased port, and the task that accepts connections there.
pub(super) struct Entrance {
    pub(super) lease: Lease,
    /// `None`: the port accepts no connection any more.
    pub(super) door: Option<Door>,
}

impl Entrance {
    /// Takes a free port for a consumer, and accepts connections there.
    ///
    /// # Errors
    /// As [`Lease::take`].
    pub(super) async fn take(gateway: &Arc<Gateway>, consumer: &SystemName) -> Result<Self, ArrowheadError> {
        let mut lease = Lease::take(gateway, consumer).await?;
        let door = lease.listener().map(|listener| Door::open(gateway, listener, consumer));
        Ok(Self { lease, door })
    }
}

/// Connections of the consumer that are to be served. Dropping it closes the port.
pub(super) struct Door {
    verified: mpsc::Receiver<End>,
    state: Arc<State>,
    task: JoinHandle<()>,
}

/// What the session and the task of its port share.
#[derive(Default)]
struct State {
    /// The session, which is notified of connections and of refusals.
    session: Mutex<Weak<Tunnel>>,
    /// Connections whose handshake is in progress, or that wait for a slot of the session.
    arriving: AtomicUsize,
}

impl State {
    fn session(&self) -> Option<Arc<Tunnel>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

impl Door {
    fn open(gateway: &Arc<Gateway>, listener: TcpListener, consumer: &SystemName) -> Self {
        let (passed, verified) = mpsc::channel(1);
        let state = Arc::<State>::default();
        let porter = Porter { gateway: gateway.clone(), consumer: consumer.clone(), state: state.clone() };
        Self { verified, state, task: tokio::spawn(porter.serve(listener, passed)) }
    }

    /// Connections are this session's from now on.
    pub(super) fn leads_to(&self, session: &Arc<Tunnel>) {
        *self.state.session.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(session);
    }

    /// The next connection of the consumer.
    pub(super) async fn next(&mut self) -> End {
        match self.verified.recv().await {
            Some(end) => end,
            None => std::future::pending().await,
        }
    }

    /// Whether a connection may become the consumer's: its handshake is in progress, or it waits.
    pub(super) fn has_arrivals(&self) -> bool {
        self.state.arriving.load(Relaxed) > 0
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The task of a port.
#[derive(Clone)]
struct Porter {
    gateway: Arc<Gateway>,
    consumer: SystemName,
    state: Arc<State>,
}

impl Porter {
    async fn serve(self, listener: TcpListener, passed: mpsc::Sender<End>) {
        let (mut handshakes, mut waiting) = (JoinSet::new(), VecDeque::new());
        loop {
            // Of strangers none waits here: whatever their number, connections are accepted.
            let accepts = waiting.len() < WAITING_MAX;
            tokio::select! {
                (stream, address) = self.accept(&listener), if accepts => {
                    let slot = self.gateway.handshakes.admit(address.ip());
                    if let Some(session) = self.state.session() {
                        // During the handshake the other gateway is told of the session.
                        session.used.notify_one();
                    }
                    handshakes.spawn(self.clone().verify(stream, address, slot));
                }
                Some(verified) = handshakes.join_next() => waiting.extend(verified.ok().flatten()),
                slot = passed.reserve(), if !waiting.is_empty() => {
                    let Ok(slot) = slot else { return };
                    slot.send(waiting.pop_front().expect("the branch is enabled if one waits"));
                }
            }
            self.state.arriving.store(handshakes.len() + waiting.len(), Relaxed);
        }
    }

    async fn accept(&self, listener: &TcpListener) -> (TcpStream, SocketAddr) {
        loop {
            match listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    self.gateway.tell_port("connection at the port of a tunnel not accepted", &error.to_string());
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Returns the connection if the consumer's certificate is presented in time.
    async fn verify(self, stream: TcpStream, address: SocketAddr, slot: HandshakeSlot) -> Option<End> {
        let Self { gateway, consumer, state } = &self;
        let patience = gateway.config.patience;
        let verified = tokio::select! {
            verified = timeout(patience, gateway.ends.welcome(stream, address, consumer)) => verified,
            () = slot.evicted() => {
                gateway.counts.handshakes_evicted.fetch_add(1, Relaxed);
                gateway.tell_port("TLS handshake at the port of a tunnel evicted: limit reached", &address.ip().to_string());
                return None;
            }
        };
        let late = |_| Err(EndError(format!("{address} has not done its part of the TLS handshake within {patience:?}")));
        match verified.unwrap_or_else(late) {
            Ok(end) => Some(end),
            Err(error) => {
                gateway.counts.handshakes_failed.fetch_add(1, Relaxed);
                gateway.tell_port("TLS handshake at the port of a tunnel failed", &error.0);
                if let Some(session) = state.session() {
                    session.note_trouble(&format!("a connection to a tunnel's port failed: {error}"));
                }
                None
            }
        }
    }
}
