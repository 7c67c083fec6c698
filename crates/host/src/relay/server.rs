//! Bodkin's own relay: it lets clouds in by their certificates, and carries what they say to each other without looking into it.
//!
//! ```text
//! client ══ TLS ══ Flow ── frames ──> Hub (pure: topics, queues, credit) ── bytes ──> Flow of another client
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bodkin_relay::native::{
    Assembly, Reason,
    hub::{ClientId, ConnectionId, Hub, HubCounts, HubLimits, Limit, Standing},
};
use bodkin_trust::{Certificate, tls::RELAY_PROTOCOL};
use rustls::{ServerConfig, ServerConnection, pki_types::CertificateDer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, Semaphore},
    task::yield_now,
    time::{Instant, interval, sleep_until, timeout},
};

use super::flow::{Flow, PIECE_BYTES, READS_MAX};
use crate::{
    async_channel::Socket,
    channel::Channel,
    listener,
    seldom::{Seldom, SeldomOf},
    stopping::{Serving, Stopping},
};

/// For a client's part of the TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// Handshakes at the same time; one more connection is closed at once, told in the log.
pub const HANDSHAKES_MAX: usize = 128;
/// How often it is looked who is silent, which queues nobody uses, and whose certificate still counts.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Pause after the system refused to accept, so that a lack of descriptors is no busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// For clients to be told that the relay stops.
const STOP_MAX: Duration = Duration::from_secs(2);
/// Maximum length of a common name in logs and metrics, in characters.
const NAME_CHARACTERS_MAX: usize = 64;
/// Digits of a key's fingerprint behind a client's name.
const FINGERPRINT_DIGITS: usize = 8;

/// Whom a relay lets in, and what it shows them.
pub trait Admission: Send + Sync + 'static {
    /// What the next connection is made with.
    fn tls(&self) -> Arc<ServerConfig>;

    /// Whether who was let in with this chain, its own certificate first, still is.
    fn still_admits(&self, chain: &[CertificateDer<'_>]) -> bool;
}

/// A running relay.
pub struct RelayServer {
    /// Where it listens.
    pub address: SocketAddr,
    house: Arc<House>,
}

/// What all its tasks share.
struct House {
    admission: Arc<dyn Admission>,
    /// Tasks change the hub in the order in which they acquire this one permit. The lock alone is unfair: a task with many turns would keep the others out.
    turns: Semaphore,
    hub: Mutex<Hub>,
    /// Connections that were closed and that the hub does not know to be yet.
    gone: Mutex<Vec<ConnectionId>>,
    /// Rung when the hub has pending work, or a connection is gone.
    work: Notify,
    /// Who is told that something is to be written.
    bells: Mutex<BTreeMap<ConnectionId, Arc<Notify>>>,
    stopping: Stopping,
    handshakes: Semaphore,
    /// Times of the hub count from here.
    started: Instant,
    refused: AtomicU64,
    told_refused: SeldomOf,
    told_full: Seldom,
    /// By client and limit.
    told_at_limit: SeldomOf,
}

/// What a relay has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounts {
    /// What passes.
    pub hub: HubCounts,
    /// Connections that were closed before they were clients: in the handshake, or because they do not speak the protocol.
    pub refused: u64,
}

impl RelayServer {
    /// Begins to serve. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub fn start(listen: SocketAddr, limits: HubLimits, admission: Arc<dyn Admission>) -> io::Result<Self> {
        let listeners = listener::bind(listen)?;
        let address = listeners[0].local_addr()?;
        let house = Arc::new(House {
            admission,
            turns: Semaphore::new(1),
            hub: Mutex::new(Hub::new(limits)),
            gone: Mutex::default(),
            work: Notify::new(),
            bells: Mutex::default(),
            stopping: Stopping::default(),
            handshakes: Semaphore::new(HANDSHAKES_MAX),
            started: Instant::now(),
            refused: AtomicU64::new(0),
            told_refused: SeldomOf::default(),
            told_full: Seldom::default(),
            told_at_limit: SeldomOf::default(),
        });
        for listener in listeners {
            tokio::spawn(accept(TcpListener::from_std(listener)?, house.clone(), house.stopping.serve()));
        }
        tokio::spawn(look(house.clone(), house.stopping.serve()));
        tokio::spawn(work(house.clone(), house.stopping.serve()));
        Ok(Self { address, house })
    }

    /// What is there, and what was counted.
    pub fn counts(&self) -> RelayCounts {
        RelayCounts { hub: self.house.hub().counts(), refused: self.house.refused.load(Relaxed) }
    }

    /// Returns how often each limit refused something to each client.
    pub fn refusals(&self) -> Vec<(Arc<str>, Limit, u64)> {
        self.house.hub().refusals()
    }

    /// Accepts nobody any more, tells all clients that it stops, and waits a moment for them to have read it. What waits in queues is lost, and said in the log.
    pub async fn stop(&self) {
        let stopping = self.house.change(|hub| {
            hub.stop();
            hub.counts().waiting_bytes
        });
        let waiting_bytes = stopping.await;
        if !self.house.stopping.stop(STOP_MAX).await {
            tracing::warn!("the time to stop was over before all clients of the relay had read that it stops");
        }
        tracing::info!(waiting_bytes, "the relay has stopped; what waited for a listener is lost");
    }
}

impl House {
    fn hub(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bells(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, Arc<Notify>>> {
        self.bells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gone(&self) -> MutexGuard<'_, Vec<ConnectionId>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Changes the hub when it is this task's turn, and wakes those for whom something is to be written then. No two locks are held together.
    async fn change<T>(&self, change: impl FnOnce(&mut Hub) -> T) -> T {
        let turn = self.turns.acquire().await.expect("it is never closed");
        let (changed, woken, refusals, has_work) = {
            let mut hub = self.hub();
            hub.begin_turn();
            (change(&mut hub), hub.take_woken(), hub.take_refusals(), hub.has_work())
        };
        drop(turn);
        self.ring(&woken);
        if has_work {
            self.work.notify_one();
        }
        refusals.into_iter().for_each(|((client, limit), count)| self.report(&client, limit, count));
        changed
    }

    /// Logs, at most once a minute for each client and limit, that a limit has refused something.
    fn report(&self, client: &str, limit: Limit, count: u64) {
        let key = format!("{} {client}", limit.name());
        for times in (0..count).filter_map(|_| self.told_at_limit.due(&key)) {
            tracing::warn!(client, limit = limit.name(), times, "relay refused a client's request: limit reached");
        }
    }

    fn ring(&self, woken: &BTreeSet<ConnectionId>) {
        if woken.is_empty() {
            return;
        }
        let bells = self.bells();
        woken.iter().filter_map(|id| bells.get(id)).for_each(|bell| bell.notify_one());
    }

    /// Tells the log, seldom, of somebody who is not let in.
    fn refuse(&self, address: SocketAddr, reason: &str) {
        self.refused.fetch_add(1, Relaxed);
        if let Some(times) = self.told_refused.due(reason) {
            tracing::warn!(%address, reason, times, "a client of the relay was refused");
        }
    }
}

async fn accept(listener: TcpListener, house: Arc<House>, mut serving: Serving) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = serving.over() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                let (house, serving) = (house.clone(), house.stopping.serve());
                tokio::spawn(async move { receive(stream, address, &house, serving).await });
            }
            Err(error) => {
                tracing::warn!(%error, "the relay cannot accept a connection; is the limit on open files too low?");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Looks at what time brings.
async fn look(house: Arc<House>, mut serving: Serving) {
    let mut period = interval(LOOK_PERIOD);
    loop {
        tokio::select! {
            () = serving.over() => return,
            _ = period.tick() => house.change(|hub| hub.look(house.now())).await,
        }
    }
}

/// Does the hub's pending work in turns, between which others have theirs.
async fn work(house: Arc<House>, mut serving: Serving) {
    loop {
        tokio::select! {
            () = serving.over() => return,
            () = house.work.notified() => {}
        }
        loop {
            let gone = std::mem::take(&mut *house.gone());
            let work = house.change(|hub| {
                gone.into_iter().for_each(|id| hub.disconnect(id, house.now()));
                hub.work(house.now())
            });
            if !work.await || serving.is_over() {
                break;
            }
            yield_now().await;
        }
    }
}

/// Shakes hands with a client and serves it.
async fn receive(stream: TcpStream, address: SocketAddr, house: &House, mut serving: Serving) {
    let Ok(place) = house.handshakes.try_acquire() else {
        house.refused.fetch_add(1, Relaxed);
        if let Some(times) = house.told_full.due() {
            tracing::warn!(times, HANDSHAKES_MAX, "a connection to the relay was closed: too many shake hands");
        }
        return;
    };
    let welcomed = tokio::select! {
        () = serving.over() => return,
        welcomed = welcome(stream, house) => welcomed,
    };
    drop(place);
    match welcomed {
        Ok((flow, chain, client)) => {
            if let Err(error) = serve(flow, &chain, &client, house, serving).await {
                tracing::debug!(%address, %error, "a client of the relay is gone");
            }
        }
        Err(reason) => house.refuse(address, &reason),
    }
}

/// A client as the hub knows it.
struct ClientName {
    id: ClientId,
    /// Its certificate's common name, `#`, and the first digits of its key's fingerprint: certificates of two keys may have one common name.
    name: String,
}

impl ClientName {
    fn of(chain: &[CertificateDer<'_>]) -> Result<Self, String> {
        let own = chain.first().ok_or("it shows no certificate")?;
        let certificate = Certificate::from_der(own).map_err(|error| error.to_string())?;
        let fingerprint = certificate.public_key_fingerprint();
        // The client chose the common name: nothing of it may look like another part of a log line.
        let shown = |character: char| if character.is_ascii_graphic() { character } else { '?' };
        let common_name: String = certificate.told_name().chars().take(NAME_CHARACTERS_MAX).map(shown).collect();
        let digits: String = fingerprint.to_string().chars().take(FINGERPRINT_DIGITS).collect();
        Ok(Self { id: ClientId(fingerprint.0), name: format!("{common_name}#{digits}") })
    }
}

async fn welcome(stream: TcpStream, house: &House) -> Result<(Flow, Vec<CertificateDer<'static>>, ClientName), String> {
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let session = ServerConnection::new(house.admission.tls()).map_err(|error| error.to_string())?;
    let mut channel = Channel::tls(Socket(stream), Box::new(session.into()));
    let done = timeout(HANDSHAKE_MAX, channel.handshake()).await;
    match done {
        Err(_) => return Err(format!("the handshake was not done within {HANDSHAKE_MAX:?}")),
        Ok(Err(error)) => {
            // It is to read the alert that says why; how the end goes does not matter any more.
            let _ = channel.linger().await;
            return Err(error.to_string());
        }
        Ok(Ok(())) => {}
    }
    let session = channel.session().expect("it was made above");
    if session.alpn_protocol() != Some(RELAY_PROTOCOL) {
        return Err("it does not speak bodkin-relay/1: a Java cloud needs a broker".to_owned());
    }
    let chain: Vec<_> =
        session.peer_certificates().unwrap_or_default().iter().map(|certificate| certificate.clone().into_owned()).collect();
    let client = ClientName::of(&chain)?;
    Ok((Flow::new(channel), chain, client))
}

/// Whoever is connected, until it is not any more.
struct Guest<'h> {
    house: &'h House,
    id: ConnectionId,
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.house.bells().remove(&self.id);
        self.house.gone().push(self.id);
        self.house.work.notify_one();
    }
}

/// Serves a client until either side ends it.
async fn serve(mut flow: Flow, chain: &[CertificateDer<'_>], client: &ClientName, house: &House, serving: Serving) -> io::Result<()> {
    if serving.is_over() {
        return Ok(());
    }
    let bell = Arc::new(Notify::new());
    let Some(id) = house.change(|hub| hub.connect(client.id, &client.name, house.now())).await else { return Ok(()) };
    let guest = Guest { house, id };
    house.bells().insert(guest.id, bell.clone());
    let (mut input, mut space) = (Assembly::default(), vec![0; PIECE_BYTES]);
    let mut checks = interval(LOOK_PERIOD);
    loop {
        let standing = write(&mut flow, &guest).await?;
        if standing != Standing::Open && flow.is_written() {
            flow.close().await;
            return Ok(());
        }
        let stalled_from = flow.stalled_from();
        let stalls = async move {
            match stalled_from {
                Some(stalled) => sleep_until(stalled).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = bell.notified() => {}
            ready = flow.ready() => {
                ready?;
                if !read(&mut flow, &mut input, &mut space, &guest).await? {
                    return Ok(());
                }
            }
            _ = checks.tick() => {
                if !house.admission.still_admits(chain) {
                    house.change(|hub| hub.fault(guest.id, Reason::NotAllowed, "your certificate does not count here any more")).await;
                }
            }
            () = stalls => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Writes what the hub has for a client, as far as it is taken.
async fn write(flow: &mut Flow, guest: &Guest<'_>) -> io::Result<Standing> {
    loop {
        flow.write()?;
        let Some(room) = flow.room() else { return Ok(Standing::Open) };
        let standing = guest.house.change(|hub| hub.take_out(guest.id, room)).await;
        if room.is_empty() {
            return Ok(standing);
        }
    }
}

/// Reads what a client says, up to its turn's end; false behind its end.
async fn read(flow: &mut Flow, input: &mut Assembly, space: &mut [u8], guest: &Guest<'_>) -> io::Result<bool> {
    for _ in 0..READS_MAX {
        let bytes = match flow.read(space)? {
            None => return Ok(true),
            Some(0) => return Ok(false),
            Some(bytes) => bytes,
        };
        input.put(&space[..bytes]);
        while !receive_frames(input, guest).await {
            // Without this the thread would not look at other sockets for as long as frames are left.
            yield_now().await;
        }
    }
    Ok(true)
}

/// Gives the hub what has come, for one turn; true when no whole frame is left.
async fn receive_frames(input: &mut Assembly, guest: &Guest<'_>) -> bool {
    let Guest { house, id } = *guest;
    let receiving = house.change(|hub| {
        let now = house.now();
        hub.heard(id, now);
        while !hub.is_turn_over() {
            match input.next_frame() {
                Ok(Some(frame)) => hub.receive(id, frame, now),
                Ok(None) => return true,
                Err(error) => {
                    hub.fault(id, Reason::NotAllowed, &error.to_string());
                    return true;
                }
            }
        }
        false
    });
    receiving.await
}

#[cfg(test)]
mod tests;
