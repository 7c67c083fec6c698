//! The control plane's connections: requests in, answers out, each with its deadline.

mod accept;
mod bind;
mod live;

use std::{
    io, mem,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use bodkin_arrowhead::{access::Access, core_service::CoreSystem, service_registry::Sender};
use bodkin_store::Store;
use bodkin_trust::tls::PeerError;
use tokio::{net::TcpStream, time::timeout};

pub use self::{
    accept::{PortQuotas, hand_over, serve},
    bind::{BACKLOG, bind},
};
use crate::{
    answer::{self, Answer, DateText, Recipient},
    async_channel::{AsyncChannel, Socket},
    channel::Channel,
    control::Control,
    dashboard::sign_in::{Cookie, Session},
    gate::{Admission, Gate, Reader},
    handshakes::HandshakeSlot,
    http::{HttpError, Persistence, RawRequest, RequestReader},
    limits::Limits,
    monitor::Monitor,
    problem,
    quotas::{ConnectionPermit, ENROLLMENT_BODY_BYTES_MAX},
    request::{Method, Request},
    security::{self, Peer, SecurePort},
    stage::Stage,
    stopping::{Serving, Stopping},
};

/// Who answers on a port.
#[derive(Clone)]
pub enum Service {
    /// One of the core systems.
    System(CoreSystem, Arc<Control>),
    /// Bodkin's own port.
    Monitor(Arc<Monitor>),
}

impl Service {
    async fn answer(&self, request: &Request, peer: &Peer) -> Answer {
        match self {
            Self::System(system, control) => control.answer(*system, request).await,
            Self::Monitor(monitor) => monitor.answer(request, peer).await,
        }
    }

    /// Returns what the cookie of a request is worth. A certificate counts before a cookie.
    fn cookie(&self, raw: &RawRequest<'_>, sender: Option<&Sender>, gate: &Gate, peer: &Peer) -> Cookie {
        match self {
            Self::Monitor(monitor) if !peer.has_certificate() => {
                monitor.sign_in.as_ref().map_or(Cookie::None, |sign_in| sign_in.session(raw, sender, gate, Instant::now()))
            }
            _ => Cookie::None,
        }
    }

    /// Returns what the gate says of a request.
    fn admission(&self, gate: &Gate, raw: &RawRequest<'_>) -> Admission {
        match self {
            Self::System(..) => gate.admit(raw),
            Self::Monitor(_) => gate.admit_at_monitor(raw),
        }
    }

    /// Bytes that the body of a peer's request can have. At the operator's port other clients enroll only.
    fn body_bytes_max(&self, peer: &Peer, limits: &Limits) -> usize {
        match self {
            Self::Monitor(_) if Access::Operator.admit(&peer.caller).is_err() => limits.body_bytes_max.min(ENROLLMENT_BODY_BYTES_MAX),
            _ => limits.body_bytes_max,
        }
    }

    /// True if the sender may make the request, as far as method and path tell.
    fn admits(&self, request: &Request) -> bool {
        match self {
            Self::System(system, _) => Control::admits(*system, request),
            Self::Monitor(monitor) => monitor.admits(request),
        }
    }

    fn store(&self) -> &Store {
        match self {
            Self::System(_, control) => &control.store,
            Self::Monitor(monitor) => &monitor.store,
        }
    }

    fn record(&self, stage: Stage, duration: Duration) {
        if let Self::System(system, control) = self {
            control.stages.record(*system, stage, duration);
        }
    }
}

/// What a port's connections are served with.
#[derive(Clone)]
pub struct PortContext {
    /// Who answers.
    pub service: Service,
    /// What every request passes first.
    pub gate: Arc<Gate>,
    /// The limits.
    pub limits: Limits,
    /// The quotas of its clients.
    pub quotas: PortQuotas,
    /// Tells when to stop.
    pub stopping: Arc<Stopping>,
    /// What TLS is spoken with; `None` in insecure mode.
    pub security: Option<Arc<SecurePort>>,
}

/// How far a connection was when it was accepted.
enum Begun {
    /// The client is admitted; insecure mode.
    Admitted(ConnectionPermit),
    /// The client has to do its TLS handshake.
    Handshake(HandshakeSlot),
}

/// Does the handshake with a client. Returns `None` if it fails, is replaced by a newer one, or the cloud stops meanwhile.
async fn welcome(
    port: &SecurePort,
    stream: TcpStream,
    address: SocketAddr,
    slot: HandshakeSlot,
    serving: &mut Serving,
) -> Option<(AsyncChannel, Peer)> {
    tokio::select! {
        biased;
        welcomed = port.welcome(stream, address, slot) => welcomed,
        () = serving.over() => None,
    }
}

/// Serves one connection until either side ends it.
async fn converse(stream: TcpStream, address: SocketAddr, context: &PortContext, begun: Begun, serving: Serving) -> io::Result<()> {
    match exchange(stream, address, context, begun, serving).await? {
        Some(mut last_words) => Box::pin(last_words.linger()).await,
        None => Ok(()),
    }
}

/// Answers the requests of a connection. Returns it if the client has yet to read the last answer.
async fn exchange(
    stream: TcpStream,
    address: SocketAddr,
    context: &PortContext,
    begun: Begun,
    mut serving: Serving,
) -> io::Result<Option<AsyncChannel>> {
    let PortContext { service, limits, .. } = context;
    let ends = (address.ip(), stream.local_addr()?.ip());
    let (mut channel, peer, permit) = match (&context.security, begun) {
        (Some(port), Begun::Handshake(slot)) => {
            let Some((channel, peer)) = welcome(port, stream, address, slot, &mut serving).await else { return Ok(None) };
            let permit = context.quotas.admit(&peer, address.ip(), true);
            (channel, peer, permit)
        }
        (_, Begun::Admitted(permit)) => {
            stream.set_nodelay(true)?;
            (Channel::plain(Socket(stream)), Peer::anonymous(), Ok(permit))
        }
        (None, Begun::Handshake(_)) => unreachable!("an insecure port has no handshakes"),
    };
    let permit = match permit {
        Ok(permit) => permit,
        Err(exceeded) => {
            Box::pin(say_last(&mut channel, &Answer::quota(exceeded), None, limits)).await?;
            return Ok(Some(channel));
        }
    };
    let body_bytes_max = service.body_bytes_max(&peer, limits);
    let mut reader = RequestReader::new(body_bytes_max).within(permit.buffer_quota());
    let mut date = DateText::default();
    loop {
        let received = receive(&mut channel, &mut reader, context, ends, &peer, &mut serving).await?;
        let Arrived { request, keep_alive, page, answer, is_standby, session } = match received {
            Received::Request(arrived) => *arrived,
            Received::Closed => {
                channel.close();
                return Ok(None);
            }
            Received::Broken(answer) => {
                let is_own = reader.target().is_some_and(problem::is_told_at);
                let answer = if is_own { problem::told(answer) } else { answer };
                Box::pin(say_last(&mut channel, &answer, context.gate.reader_of(&reader).as_deref(), limits)).await?;
                return Ok(Some(channel));
            }
        };
        let mut answer = match answer {
            Some(answer) if is_standby => {
                Box::pin(context.gate.standby_answer(service.store(), *answer, problem::is_told_at(&request.path))).await
            }
            Some(answer) => *answer,
            None => {
                let _under_way = context.security.as_ref().map(|port| port.answering());
                // Boxed, so that a connection without a request does not hold memory for answering one.
                Box::pin(service.answer(&request, &peer)).await
            }
        };
        if let (parts, Service::Monitor(monitor)) = (answer.live, service)
            && !parts.is_empty()
        {
            match monitor.live.enter(&request) {
                Some(reader) => {
                    let asked = (&request, page.as_deref());
                    let by = (session.as_ref().map_or(&peer, |session| &session.peer), session.as_deref());
                    Box::pin(live::tell(&mut channel, context, (&**monitor, parts, &reader), asked, by, &mut serving)).await?;
                    return Ok(Some(channel));
                }
                None => answer = crate::live::too_many(),
            }
        }
        if problem::is_told_at(&request.path) {
            answer = problem::told(answer);
        }
        let keep_alive = keep_alive.only_if(!answer.close && !serving.is_over());
        let started = Instant::now();
        let mut out = Vec::with_capacity(512 + answer.body.len());
        let is_head = request.method == Method::Head;
        let recipient = Recipient { keep_alive, is_head, reader: page.as_deref(), is_secure: channel.is_tls() };
        answer::push_answer(&mut out, &answer, date.at(SystemTime::now()), recipient);
        send(&mut channel, &out, limits).await?;
        service.record(Stage::Send, started.elapsed());
        if !keep_alive.keeps() {
            return Ok(Some(channel));
        }
        // An idle connection costs next to nothing.
        reader.shrink(0);
    }
}

/// Says the last answer of a connection, whose reader may be a page.
async fn say_last(channel: &mut AsyncChannel, answer: &Answer, reader: Option<&str>, limits: &Limits) -> io::Result<()> {
    let recipient = Recipient { reader, is_secure: channel.is_tls(), ..Recipient::CLOSED };
    let mut out = Vec::new();
    answer::push_answer(&mut out, answer, DateText::default().at(SystemTime::now()), recipient);
    send(channel, &out, limits).await
}

/// A whole request, and what the gate says of it.
struct Arrived {
    request: Request,
    keep_alive: Persistence,
    /// Whose page may read the answer.
    page: Reader,
    /// The answer, where the gate has one.
    answer: Option<Box<Answer>>,
    is_standby: bool,
    /// The session of the operator's browser, if its cookie stands for one.
    session: Option<Arc<Session>>,
}

enum Received {
    Request(Box<Arrived>),
    Closed,
    /// The connection ends with this answer.
    Broken(Answer),
}

/// Reads one request: `idle_timeout` until its first byte, `header_timeout` for its head, `body_timeout` more for its body.
/// `ends` are the peer's address and the own. A peer whose certificate does not count any more asks nothing more, and nobody does of
/// a cloud that stops, but for what has come.
async fn receive(
    channel: &mut AsyncChannel,
    reader: &mut RequestReader,
    context: &PortContext,
    ends: (IpAddr, IpAddr),
    peer: &Peer,
    serving: &mut Serving,
) -> io::Result<Received> {
    let PortContext { service, limits, .. } = context;
    let mut is_head_checked = false;
    let mut first_byte: Option<Instant> = reader.is_amid_request().then(Instant::now);
    loop {
        match reader.next() {
            Ok(Some(raw)) => {
                service.record(Stage::Receive, first_byte.map_or(Duration::ZERO, |first| first.elapsed()));
                return Ok(Received::Request(Box::new(arrived(&raw, context, ends, peer))));
            }
            Ok(None) => {}
            Err(error) => {
                // A client that may not make the request is not told how long its body could be.
                if let Some(refused) = refused_by_head(reader, context, ends, peer) {
                    return Ok(refused);
                }
                let head = reader.head().ok().flatten().map(|raw| arrived(&raw, context, ends, peer));
                let is_operator = head.is_some_and(|arrived| Access::Operator.admit(&arrived.request.caller).is_ok());
                if error == HttpError::BodyTooLong && is_operator && reader.raise_body_limit(limits.body_bytes_max) {
                    continue;
                }
                return Ok(Received::Broken(Answer::of_http_error(error)));
            }
        }
        if reader.is_amid_body()
            && !mem::replace(&mut is_head_checked, true)
            && let Some(refused) = refused_by_head(reader, context, ends, peer)
        {
            return Ok(refused);
        }
        if reader.take_expects_continue() {
            send(channel, b"HTTP/1.1 100 Continue\r\n\r\n", limits).await?;
        }
        let patience = match first_byte {
            None => limits.idle_timeout,
            Some(first) => limits.request_timeout(reader.is_amid_body()).saturating_sub(first.elapsed()),
        };
        tokio::select! {
            biased;
            error = refused(context, peer) => {
                security::tell_refused(peer, &error);
                return Ok(Received::Closed);
            }
            readable = timeout(patience, readable(channel, serving)) => match readable {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) => return Ok(Received::Closed),
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    let late = || Received::Broken(Answer::text(408, "The request did not arrive in time."));
                    return Ok(first_byte.map_or(Received::Closed, |_| late()));
                }
            }
        }
        let space = match reader.space() {
            Ok(space) => space,
            Err(error) => return Ok(Received::Broken(Answer::of_http_error(error))),
        };
        match channel.read(space) {
            Ok(0) if reader.is_amid_request() => return Ok(Received::Broken(Answer::incomplete())),
            Ok(0) => return Ok(Received::Closed),
            Ok(bytes) => {
                first_byte.get_or_insert_with(Instant::now);
                reader.fill(bytes);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns a request with what the gate says of it, and with the session of its cookie.
fn arrived(raw: &RawRequest<'_>, context: &PortContext, ends: (IpAddr, IpAddr), peer: &Peer) -> Arrived {
    let PortContext { service, gate, .. } = context;
    let Admission { reader: page, answer, is_standby } = service.admission(gate, raw);
    let mut request = Request::from_raw(raw, peer.caller.clone()).over(raw, ends.0, ends.1);
    let session = match service.cookie(raw, request.sender.as_ref(), gate, peer) {
        Cookie::None => None,
        Cookie::Foreign => {
            request.is_forged = true;
            None
        }
        Cookie::Session(session) => {
            request.caller = session.peer.caller.clone();
            Some(session)
        }
    };
    Arrived { request, keep_alive: raw.keep_alive, page, answer, is_standby, session }
}

/// Returns a request whose head is enough to refuse it: its body is not read. Its connection is closed after the answer.
fn refused_by_head(reader: &RequestReader, context: &PortContext, ends: (IpAddr, IpAddr), peer: &Peer) -> Option<Received> {
    let raw = match reader.head() {
        Ok(head) => head?,
        Err(error) => return Some(Received::Broken(Answer::of_http_error(error))),
    };
    let mut arrived = arrived(&raw, context, ends, peer);
    let is_refused = arrived.answer.is_some() || !context.service.admits(&arrived.request);
    arrived.keep_alive = Persistence::Close;
    is_refused.then(|| Received::Request(Box::new(arrived)))
}

/// Waits until there is something to read. False: the cloud stops, and nothing has come.
async fn readable(channel: &mut AsyncChannel, serving: &mut Serving) -> io::Result<bool> {
    tokio::select! {
        biased;
        readable = channel.readable() => return readable.map(|()| true),
        () = serving.over() => {}
    }
    let has_come = channel.has_come()?;
    if has_come {
        channel.readable().await?;
    }
    Ok(has_come)
}

/// Completes when the peer's certificate does not count any more.
async fn refused(context: &PortContext, peer: &Peer) -> PeerError {
    match &context.security {
        Some(port) => port.security().until_refused(peer).await,
        None => std::future::pending().await,
    }
}

async fn send(channel: &mut AsyncChannel, bytes: &[u8], limits: &Limits) -> io::Result<()> {
    timeout(limits.send_timeout, channel.write_all(bytes)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use std::{io::Write, net::TcpStream as Client};

    use tokio::net::TcpListener;

    use super::*;

    pub(super) fn ends() -> (TcpListener, Client) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Client::connect(listener.local_addr().unwrap()).unwrap();
        listener.set_nonblocking(true).unwrap();
        (TcpListener::from_std(listener).unwrap(), client)
    }

    /// The runtime, which has one thread here, learns of nothing before this one waits.
    #[tokio::test]
    async fn what_has_come_is_read_though_the_cloud_stops() {
        let (listener, mut client) = ends();
        let mut channel = Channel::plain(Socket(listener.accept().await.unwrap().0));
        let stopping = Stopping::default();
        let mut serving = stopping.serve();
        client.write_all(b"x").unwrap();
        assert!(!stopping.stop(Duration::ZERO).await, "it is waited for");
        assert!(readable(&mut channel, &mut serving).await.unwrap());
        assert_eq!(channel.read(&mut [0; 8]).unwrap(), 1);
        assert_eq!(channel.read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(!readable(&mut channel, &mut serving).await.unwrap(), "nothing more has come");
    }
}
