//! The kept connection to a subscriber: HTTP/1.1, one event after the other, or several in flight for who has proved able.

use std::{
    io::{self, Write},
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use bodkin_arrowhead::record::System;
use bodkin_broker::{EventId, Outcome};
use bodkin_store::event_log::Position;
use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};

use super::lookup::Lookups;
use super::response::{Response, ResponseError, ResponseReader};
use crate::control::Endpoint;

/// Addresses of a host name that are tried.
const ADDRESSES_MAX: usize = 8;

/// An event on its way to a subscriber.
#[derive(Clone, Debug)]
pub struct PushEvent {
    /// Its place in the event log; `None` where there is none.
    pub position: Option<Position>,
    /// Its identity.
    pub id: EventId,
    /// The event as JSON.
    pub json: Bytes,
}

/// Why an event was not taken.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// No connection, or a broken one.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The registered address is one of many, of the link, or of ourselves.
    #[error("no address of {0} may be pushed to")]
    Forbidden(String),
    /// The registration is gone.
    #[error("the subscriber is not registered any more")]
    Gone,
    /// Nothing came in time.
    #[error("no answer within {0:?}")]
    Late(Duration),
    /// An answer that says no.
    #[error("the subscriber answered {}", .0.status)]
    Status(Response),
    /// What came is no answer.
    #[error("{0}")]
    Response(#[from] ResponseError),
    /// It wants what we do not speak.
    #[error("the subscriber wants https (it registered authenticationInfo), which insecure mode does not speak")]
    Secure,
}

impl PushError {
    /// Whose trouble it is: a request that is wrong stays wrong, everything else may pass.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Status(response) if matches!(response.status, 400..500) && !matches!(response.status, 408 | 429) => Outcome::Refused,
            Self::Status(response) => Outcome::Failed { retry_after: response.retry_after },
            _ => Outcome::Failed { retry_after: None },
        }
    }
}

/// Where events go.
#[derive(Clone, Copy, Debug)]
pub struct Target<'t> {
    /// The subscriber as it is registered.
    pub subscriber: &'t System,
    /// The path it is notified at.
    pub notify_uri: &'t str,
    /// Bodkin's own listeners, which are never pushed to.
    pub own: &'t [SocketAddr],
    /// Who resolves its name, if it has one.
    pub lookups: &'t Lookups,
    /// For each answer.
    pub timeout: Duration,
}

/// The connection, while there is one.
#[derive(Debug, Default)]
pub struct Link {
    stream: Option<TcpStream>,
    /// Where the connection was made to: management may move a subscriber.
    connected_to: Option<Endpoint>,
    reader: ResponseReader,
    out: Vec<u8>,
    /// Whether the present connection has answered.
    is_proved: bool,
}

impl Link {
    /// Whether several events may be in flight: the connection has answered in HTTP/1.1 and stayed open.
    pub fn is_proved(&self) -> bool {
        self.is_proved && self.stream.is_some()
    }

    /// Closes the connection.
    pub fn close(&mut self) {
        self.stream = None;
    }

    /// Posts an event.
    pub async fn post(&mut self, target: &Target<'_>, event: &PushEvent) -> Result<(), PushError> {
        let mut answers = Vec::with_capacity(1);
        self.post_all(target, std::slice::from_ref(event), &mut answers).await?;
        match answers.first() {
            Some(response) if matches!(response.status, 200..300) => Ok(()),
            Some(response) => Err(PushError::Status(*response)),
            None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }

    /// Posts events, all of them before the first answer is read, and gives the answers in their order. There are fewer
    /// answers than events if the subscriber closed the connection behind the last of them; without any it is an error.
    ///
    /// A kept connection may have been closed by the subscriber meanwhile: then the events are sent on a new one.
    pub async fn post_all(&mut self, target: &Target<'_>, events: &[PushEvent], answers: &mut Vec<Response>) -> Result<(), PushError> {
        if target.subscriber.authentication_info.is_some() {
            return Err(PushError::Secure);
        }
        self.write_requests(target, events);
        let endpoint = Endpoint::of(target.subscriber);
        let is_there = self.connected_to.as_ref() == Some(&endpoint);
        let is_kept = is_there && self.stream.as_ref().is_some_and(is_open) && self.reader.is_empty();
        if is_kept {
            match self.exchange(target.timeout, events.len(), answers).await {
                Err(PushError::Io(_)) if answers.is_empty() => {}
                done => return done,
            }
        }
        self.stream = None;
        self.stream = Some(connect(target).await?);
        self.connected_to = Some(endpoint);
        (self.reader, self.is_proved) = (ResponseReader::default(), false);
        self.exchange(target.timeout, events.len(), answers).await
    }

    fn write_requests(&mut self, target: &Target<'_>, events: &[PushEvent]) {
        self.out.clear();
        let (address, port) = (target.subscriber.address.as_str(), target.subscriber.port);
        let (open, close) = if address.contains(':') { ("[", "]") } else { ("", "") };
        for event in events {
            let head = format_args!(
                "POST {} HTTP/1.1\r\nHost: {open}{address}{close}:{port}\r\nContent-Type: application/json\r\n\
                 Accept: text/plain, application/json\r\nBodkin-Event-Id: {}\r\nContent-Length: {}\r\n\r\n",
                target.notify_uri,
                event.id,
                event.json.len(),
            );
            self.out.write_fmt(head).expect("a vector takes everything");
            self.out.extend_from_slice(&event.json);
        }
    }

    /// Sends what is written and reads as many answers, unless the connection ends behind one. A connection that cannot be
    /// used again is closed.
    async fn exchange(&mut self, patience: Duration, wanted: usize, answers: &mut Vec<Response>) -> Result<(), PushError> {
        let mut stream = self.stream.take().expect("there is a connection");
        timeout(patience, stream.write_all(&self.out)).await.map_err(|_| PushError::Late(patience))??;
        while answers.len() < wanted {
            match timeout(patience, read_answer(&mut stream, &mut self.reader)).await {
                Ok(Ok(response)) => {
                    answers.push(response);
                    if !response.keeps_alive {
                        return Ok(());
                    }
                }
                Ok(Err(PushError::Io(_))) if !answers.is_empty() => return Ok(()),
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(PushError::Late(patience)),
            }
        }
        self.is_proved = true;
        self.stream = Some(stream);
        Ok(())
    }
}

async fn read_answer(stream: &mut TcpStream, reader: &mut ResponseReader) -> Result<Response, PushError> {
    loop {
        if let Some(response) = reader.take()? {
            return Ok(response);
        }
        if stream.read_buf(reader.space()).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
    }
}

/// Whether the subscriber has neither closed the connection nor said something unasked.
fn is_open(stream: &TcpStream) -> bool {
    let mut byte = [0];
    matches!(stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

async fn connect(target: &Target<'_>) -> Result<TcpStream, PushError> {
    let (late, until) = (PushError::Late(target.timeout), Instant::now() + target.timeout);
    let subscriber = (target.subscriber.address.as_str(), target.subscriber.port);
    let found = timeout_at(until, target.lookups.addresses(subscriber.0, subscriber.1)).await.map_err(|_| late)??;
    let addresses: Vec<SocketAddr> = found.into_iter().filter(|address| may_push_to(address, target.own)).take(ADDRESSES_MAX).collect();
    if addresses.is_empty() {
        return Err(PushError::Forbidden(subscriber.0.to_owned()));
    }
    connect_to_one(&addresses, target.timeout, until).await
}

/// Connects to the first of the addresses that accepts. One that says nothing has its share of the time that is left, and those
/// behind it have theirs. `patience` is what the whole time was, to be told.
async fn connect_to_one(addresses: &[SocketAddr], patience: Duration, until: Instant) -> Result<TcpStream, PushError> {
    let mut refused = PushError::Late(patience);
    for (index, address) in addresses.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - index).expect("they are few");
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(error)) => refused = error.into(),
            Err(_) => refused = PushError::Late(patience),
        }
    }
    Err(refused)
}

/// Registered addresses are self-asserted: nothing is pushed to many at once, to the link's own range, or to ourselves.
fn may_push_to(address: &SocketAddr, own: &[SocketAddr]) -> bool {
    let ip = address.ip().to_canonical();
    let forbidden = ip.is_unspecified()
        || ip.is_multicast()
        || match ip {
            IpAddr::V4(ip) => ip.is_broadcast() || ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        };
    let is_own = |listener: &SocketAddr| {
        listener.port() == address.port() && (listener.ip() == ip || listener.ip().is_unspecified() || ip.is_loopback())
    };
    !forbidden && !own.iter().any(is_own)
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, SockAddr, Socket, Type};

    use super::*;

    /// A listener whose queue is full, so that who connects gets no answer; the connections that fill it.
    fn black_hole() -> (SocketAddr, Socket, Vec<Socket>) {
        let socket = |_| Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let listener = socket(0);
        listener.bind(&SockAddr::from("127.0.0.1:0".parse::<SocketAddr>().unwrap())).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let filling: Vec<Socket> = (0..4).map(socket).collect();
        for one in &filling {
            one.set_nonblocking(true).unwrap();
            // The last ones are on their way for ever.
            let _ = one.connect(&address);
        }
        (address.as_socket().unwrap(), listener, filling)
    }

    #[test]
    fn an_address_that_says_nothing_leaves_time_for_the_next() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let good = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (silent, _listener, _filling) = black_hole();
        let patience = Duration::from_millis(600);
        let connect = |addresses: &[SocketAddr]| {
            runtime.block_on(async {
                connect_to_one(addresses, patience, Instant::now() + patience).await.map(|stream| stream.peer_addr().unwrap())
            })
        };
        let good = good.local_addr().unwrap();
        assert_eq!(connect(&[silent, silent, good]).unwrap(), good);
        let begun = std::time::Instant::now();
        assert!(matches!(connect(&[silent, silent]), Err(PushError::Late(_))));
        assert!(begun.elapsed() >= patience, "{:?}", begun.elapsed());
        let refused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(matches!(connect(&[silent, refused]), Err(PushError::Io(_))));
    }

    #[test]
    fn nothing_is_pushed_to_many_to_the_link_or_to_ourselves() {
        let own = ["127.0.0.1:8455".parse().unwrap(), "0.0.0.0:8443".parse().unwrap()];
        for refused in [
            "0.0.0.0:80",
            "224.0.0.1:80",
            "255.255.255.255:80",
            "169.254.1.1:80",
            "[fe80::1]:80",
            "[ff02::1]:80",
            "[::]:80",
            "[::ffff:169.254.1.1]:80",
            "127.0.0.1:8455",
            "127.9.9.9:8455",
            "192.168.0.7:8443",
            "[::1]:8443",
        ] {
            assert!(!may_push_to(&refused.parse().unwrap(), &own), "{refused}");
        }
        for allowed in ["127.0.0.1:80", "192.168.0.7:8455", "[2001:db8::1]:80"] {
            assert!(may_push_to(&allowed.parse().unwrap(), &own), "{allowed}");
        }
    }
}
