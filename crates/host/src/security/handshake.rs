//! The TLS handshake of a connection that has come in: its deadlines, how many there are, and what is told of those that fail.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bodkin_trust::tls::Refusal;
use rustls::server::{Accepted, Acceptor};
use tokio::{
    net::TcpStream,
    sync::Semaphore,
    time::{Instant, timeout, timeout_at},
};

use super::{
    Peer, Security,
    turns::{TURN_TIME, Turns, UnderWay},
};
use crate::{
    answer::{self, Answer, DateText, Recipient},
    async_channel::{AsyncChannel, Socket},
    audit::Audit,
    channel::Channel,
    handshakes::{HandshakeSlot, Handshakes},
    quotas::Quotas,
    seldom::SeldomOf,
    server::Port,
};

/// How long a client that keeps the server waiting is one of them. After that its handshake is slow, and has a slot among the slow ones.
const COMPUTED_TIME: Duration = Duration::from_millis(250);
/// What a record of the handshake begins with (RFC 8446, section 5.1).
const HANDSHAKE_RECORD: u8 = 22;

/// A port that speaks TLS.
pub struct SecurePort {
    security: Arc<Security>,
    port: Port,
    timeout: Duration,
    audit: Audit,
    handshakes: Arc<Handshakes>,
    slow: Arc<Handshakes>,
    computed: Arc<Semaphore>,
    turns: Turns,
    refused: SeldomOf,
    strangers: SeldomOf,
}

/// Why a connection is not served.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The client does not speak TLS.
    #[error("it does not speak TLS: is it calling http:// instead of https://?")]
    Plain,
    /// The client is too slow.
    #[error("the handshake was not done within {0:?}")]
    Late(Duration),
    /// A newer handshake has its slot.
    #[error("a newer handshake replaced it, because {0} were in progress and most of them with its address")]
    Evicted(usize),
    /// The client is gone.
    #[error("it has ended the connection in the handshake")]
    Ended(#[source] io::Error),
    /// Something is wrong with what it says or shows.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl SecurePort {
    /// `timeout` is how long a client may take for its part of the handshake.
    pub fn new(security: Arc<Security>, port: Port, timeout: Duration, audit: Audit, quotas: &Quotas) -> Self {
        let handshakes = if port == Port::Monitor { &quotas.monitor_handshakes } else { &quotas.handshakes };
        Self {
            security,
            port,
            timeout,
            audit,
            handshakes: handshakes.clone(),
            slow: quotas.slow_handshakes.clone(),
            computed: quotas.computed_handshakes.clone(),
            turns: Turns::new(),
            refused: SeldomOf::default(),
            strangers: SeldomOf::default(),
        }
    }

    /// Returns a slot for the handshake of a connection that was just accepted.
    pub fn handshake(&self, address: SocketAddr) -> HandshakeSlot {
        self.handshakes.admit(address.ip())
    }

    /// A request of the port is being answered, until what it gives is dropped: handshakes go by turns beside many of them.
    pub fn answering(&self) -> UnderWay<'_> {
        self.turns.begin()
    }

    /// The cloud's certificates.
    pub fn security(&self) -> &Arc<Security> {
        &self.security
    }

    /// Does the handshake. Returns `None` if it fails, which is logged; a client that is refused is in the audit log too.
    pub async fn welcome(&self, stream: TcpStream, address: SocketAddr, slot: HandshakeSlot) -> Option<(AsyncChannel, Peer)> {
        let done = tokio::select! {
            biased;
            done = self.shake_hands(stream, address) => done,
            () = slot.evicted() => Err(Failure::Evicted(self.handshakes.max)),
        };
        match done {
            Ok((channel, peer)) => {
                self.tell_stranger(&peer, address);
                Some((channel, peer))
            }
            Err(failure) => {
                Box::pin(self.tell(&failure, address)).await;
                None
            }
        }
    }

    async fn shake_hands(&self, stream: TcpStream, address: SocketAddr) -> Result<(AsyncChannel, Peer), Failure> {
        stream.set_nodelay(true).map_err(Failure::Ended)?;
        let late = |_| Failure::Late(self.timeout);
        let deadline = Instant::now() + self.timeout;
        let mut first = [0];
        match timeout_at(deadline, stream.peek(&mut first)).await.map_err(late)?.map_err(Failure::Ended)? {
            0 => Err(Failure::Ended(io::ErrorKind::UnexpectedEof.into())),
            _ if first[0] != HANDSHAKE_RECORD => {
                Box::pin(tell_plain(Channel::plain(Socket(stream)))).await;
                Err(Failure::Plain)
            }
            // Boxed, so that a silent client holds no memory for its handshake.
            _ => Box::pin(self.negotiate(Socket(stream), address, deadline)).await,
        }
    }

    async fn negotiate(&self, mut socket: Socket, address: SocketAddr, deadline: Instant) -> Result<(AsyncChannel, Peer), Failure> {
        let late = |_| Failure::Late(self.timeout);
        let accepted = timeout_at(deadline, client_hello(&mut socket, &self.slow, address)).await.map_err(late)??;
        // Waiting for a turn costs the client none of its time.
        let turn = self.turns.take().await;
        let computed = self.computed.acquire().await.expect("the semaphore is never closed");
        let deadline = Instant::now() + self.timeout;
        let trust = self.security.trust();
        let session = accepted.into_connection(trust.server(self.port)).map_err(|(error, mut alert)| {
            // As far as the socket takes it now: the client is refused either way.
            let _ = alert.write_all(&mut socket);
            Refusal::without_certificate(error)
        })?;
        let mut channel = Channel::tls(socket, Box::new(session.into()));
        let mut done = None;
        if let Some(turn) = turn {
            done = timeout_at(deadline, timeout(TURN_TIME, channel.handshake())).await.map_err(late)?.ok();
            drop(turn);
        }
        if done.is_none() {
            done = timeout_at(deadline, timeout(COMPUTED_TIME, channel.handshake())).await.map_err(late)?.ok();
        }
        drop(computed);
        let done = match done {
            Some(done) => done,
            None => {
                let slot = self.slow.admit(address.ip());
                tokio::select! {
                    biased;
                    done = timeout_at(deadline, channel.handshake()) => done.map_err(late)?,
                    () = slot.evicted() => return Err(Failure::Evicted(self.slow.max)),
                }
            }
        };
        if let Err(error) = done {
            return Err(fail(channel, error).await);
        }
        let peer = self.security.peer(channel.session().expect("it was made above"), &trust)?;
        if !peer.has_certificate() && self.port != Port::Monitor {
            return Err(Refusal::without_certificate(rustls::Error::NoCertificatesPresented).into());
        }
        Ok((channel, peer))
    }

    async fn tell(&self, failure: &Failure, address: SocketAddr) {
        let name = match failure {
            Failure::Refused(refusal) => refusal.name(),
            Failure::Plain | Failure::Late(_) | Failure::Evicted(_) => None,
            // Whoever looks whether the port is open says nothing.
            Failure::Ended(error) => {
                return tracing::debug!(system = self.port.name(), %address, %error, "a connection ended in the handshake");
            }
        };
        let (certificate, reason) = (name.unwrap_or("none"), failure.to_string());
        if let Some(times) = self.refused.due(&format!("{certificate} {reason}")) {
            tracing::warn!(system = self.port.name(), %address, certificate, reason, times, "a client was refused in the TLS handshake");
            if let Failure::Refused(refusal) = failure {
                self.audit.refused_connection(address.ip(), refusal.name(), self.port.name(), &reason, times).await;
            }
        }
    }

    /// A certificate of ours that names no system is let in and may do nothing; its owner is told for each request, and the operator here.
    fn tell_stranger(&self, peer: &Peer, address: SocketAddr) {
        if !peer.is_stranger() {
            return;
        }
        if let Some(times) = self.strangers.due(peer.name()) {
            let expected = format!("<system>.{}", self.security.trust().cloud);
            tracing::warn!(system = self.port.name(), %address, certificate = peer.name(), expected, times,
                "a certificate names no system of this cloud: all its requests are refused");
        }
    }
}

/// Tells who speaks no TLS that it is spoken here: most likely a browser or curl that was given `http://` (RFC 2817, section 4.2).
async fn tell_plain(mut channel: AsyncChannel) {
    let told = "This port speaks TLS: call it by https:// instead of http://, with a certificate of this cloud.\n";
    let answer = Answer { header: Some(("Upgrade", "TLS/1.2, HTTP/1.1".to_owned())), ..Answer::text(426, told) };
    let mut out = Vec::new();
    answer::push_answer(&mut out, &answer, DateText::default().at(SystemTime::now()), Recipient::CLOSED);
    // So little has room in a new socket; how the end goes does not matter.
    if channel.write_all(&out).await.is_ok() {
        let _ = channel.linger().await;
    }
}

/// Lets the client read the alert that says why.
async fn fail(mut channel: AsyncChannel, error: io::Error) -> Failure {
    match error.downcast::<Refusal>() {
        Ok(refusal) => {
            // How the end goes does not matter any more.
            let _ = channel.linger().await;
            refusal.into()
        }
        Err(error) => Failure::Ended(error),
    }
}

/// Reads until the client's first message is whole. Half a message has a slot among the slow handshakes.
async fn client_hello(socket: &mut Socket, slow: &Arc<Handshakes>, address: SocketAddr) -> Result<Accepted, Failure> {
    let ended = || Failure::Ended(io::ErrorKind::UnexpectedEof.into());
    let mut acceptor = Acceptor::default();
    let mut slot = None;
    loop {
        match acceptor.read_tls(socket) {
            Ok(0) => return Err(ended()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let slot = slot.get_or_insert_with(|| slow.admit(address.ip()));
                tokio::select! {
                    biased;
                    readable = socket.0.readable() => readable.map_err(Failure::Ended)?,
                    () = slot.evicted() => return Err(Failure::Evicted(slow.max)),
                }
                continue;
            }
            Err(error) => return Err(Failure::Ended(error)),
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => return Ok(accepted),
            Ok(None) => {}
            Err((error, mut alert)) => {
                // As far as the socket takes it now: the client is refused either way.
                let _ = alert.write_all(socket);
                return Err(Refusal::without_certificate(error).into());
            }
        }
    }
}
