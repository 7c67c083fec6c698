//! The control plane's connections: requests in, answers out, each with its deadline.

mod accept;
mod bind;
mod live;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_store::Store;
use bodkin_trust::tls::PeerError;
use tokio::{net::TcpStream, time::timeout};

pub use self::{
    accept::{Places, STRANGERS_MAX, Traffic, hand_over, serve},
    bind::{BACKLOG, bind},
};
use crate::{
    answer::{self, Answer, DateText, Recipient},
    async_channel::{AsyncChannel, Socket},
    channel::Channel,
    control::Control,
    gate::{Admission, Gate, Reader},
    http::{HttpError, RequestReader},
    limits::Limits,
    monitor::Monitor,
    problem,
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
    async fn answer(&self, request: &Request) -> Answer {
        match self {
            Self::System(system, control) => control.answer(*system, request).await,
            Self::Monitor(monitor) => monitor.answer(request).await,
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
    /// What is connected, here and on the ports that share the limits.
    pub traffic: Arc<Traffic>,
    /// Tells when to stop.
    pub stopping: Arc<Stopping>,
    /// What TLS is spoken with; `None` in insecure mode.
    pub security: Option<Arc<SecurePort>>,
    /// Places behind the handshake; `None` where everybody who is welcome has one.
    pub places: Option<Places>,
}

/// Shakes hands with a client. `None` if it is not welcome, or the cloud stops meanwhile: nothing was asked yet.
async fn welcome(port: &SecurePort, stream: TcpStream, address: SocketAddr, serving: &mut Serving) -> Option<(AsyncChannel, Peer)> {
    tokio::select! {
        biased;
        welcomed = port.welcome(stream, address) => welcomed,
        () = serving.over() => None,
    }
}

fn too_many() -> Answer {
    Answer::text(503, "Too many connections.")
}

/// Serves one connection until either side ends it.
async fn converse(stream: TcpStream, address: SocketAddr, context: &PortContext, serving: Serving) -> io::Result<()> {
    match exchange(stream, address, context, serving).await? {
        Some(mut last_words) => last_words.linger().await,
        None => Ok(()),
    }
}

/// Answers the requests of a connection. Gives it if the client has yet to read the last answer.
async fn exchange(stream: TcpStream, address: SocketAddr, context: &PortContext, mut serving: Serving) -> io::Result<Option<AsyncChannel>> {
    let PortContext { service, limits, .. } = context;
    let ends = (address.ip(), stream.local_addr()?.ip());
    let welcomed = match &context.security {
        Some(port) => welcome(port, stream, address, &mut serving).await,
        None => {
            stream.set_nodelay(true)?;
            Some((Channel::plain(Socket(stream)), Peer::anonymous()))
        }
    };
    let Some((mut channel, peer)) = welcomed else { return Ok(None) };
    let place = context.places.as_ref().map(|places| places.take(&peer));
    if let Some(None) = place {
        say_last(&mut channel, &too_many(), None, limits).await?;
        return Ok(Some(channel));
    }
    let mut reader = RequestReader::new(limits.body_bytes_max);
    let mut date = DateText::default();
    loop {
        let received = receive(&mut channel, &mut reader, context, ends, &peer, &mut serving).await?;
        let Arrived { request, keep_alive, page, answer, is_standby } = match received {
            Received::Request(arrived) => *arrived,
            Received::Closed => {
                channel.close();
                return Ok(None);
            }
            Received::Broken(status, told) => {
                let answer = Answer::text(status, told);
                let is_own = reader.target().is_some_and(problem::is_told_at);
                let answer = if is_own { problem::told(answer) } else { answer };
                say_last(&mut channel, &answer, context.gate.reader_of(&reader).as_deref(), limits).await?;
                return Ok(Some(channel));
            }
        };
        let mut answer = match answer {
            Some(answer) if is_standby => context.gate.standby_answer(service.store(), *answer, problem::is_told_at(&request.path)).await,
            Some(answer) => *answer,
            None => {
                let _under_way = context.security.as_ref().map(|port| port.answering());
                service.answer(&request).await
            }
        };
        if let (parts, Service::Monitor(monitor)) = (answer.live, service)
            && !parts.is_empty()
        {
            match monitor.live.enter(&request) {
                Some(reader) => {
                    let asked = (&request, page.as_deref());
                    live::tell(&mut channel, context, (&**monitor, parts, &reader), asked, &peer, &mut serving).await?;
                    return Ok(Some(channel));
                }
                None => answer = crate::live::too_many(),
            }
        }
        if problem::is_told_at(&request.path) {
            answer = problem::told(answer);
        }
        let keep_alive = keep_alive && !answer.close && !serving.is_over();
        let started = Instant::now();
        let mut out = Vec::with_capacity(512 + answer.body.len());
        let is_head = request.method == Method::Head;
        let recipient = Recipient { keep_alive, is_head, reader: page.as_deref(), is_secure: channel.is_tls() };
        answer::push_answer(&mut out, &answer, date.at(SystemTime::now()), recipient);
        send(&mut channel, &out, limits).await?;
        service.record(Stage::Send, started.elapsed());
        if !keep_alive {
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
    keep_alive: bool,
    /// Whose page may read the answer.
    page: Reader,
    /// The answer, where the gate has one.
    answer: Option<Box<Answer>>,
    is_standby: bool,
}

enum Received {
    Request(Box<Arrived>),
    Closed,
    Broken(u16, String),
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
    let PortContext { service, gate, limits, .. } = context;
    let mut first_byte: Option<Instant> = reader.is_amid_request().then(Instant::now);
    loop {
        match reader.next() {
            Ok(Some(raw)) => {
                service.record(Stage::Receive, first_byte.map_or(Duration::ZERO, |first| first.elapsed()));
                let Admission { reader: page, answer, is_standby } = match service {
                    Service::System(..) => gate.admit(&raw),
                    Service::Monitor(_) => gate.admit_at_monitor(&raw),
                };
                let request = Request::from_raw(&raw, peer.caller.clone()).over(&raw, ends.0, ends.1);
                return Ok(Received::Request(Box::new(Arrived { request, keep_alive: raw.keep_alive, page, answer, is_standby })));
            }
            Ok(None) => {}
            Err(error) => return Ok(broken(error)),
        }
        if reader.take_expects_continue() {
            channel.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
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
                    let told = || Received::Broken(408, "The request did not arrive in time.".to_owned());
                    return Ok(first_byte.map_or(Received::Closed, |_| told()));
                }
            }
        }
        match channel.read(reader.space()) {
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

fn broken(error: HttpError) -> Received {
    let (status, told) = error.told();
    Received::Broken(status, told)
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
