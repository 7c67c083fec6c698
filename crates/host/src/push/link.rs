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
    time::timeout,
};

use super::response::{Response, ResponseError, ResponseReader};
use crate::control::Endpoint;

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
        let connected = timeout(target.timeout, connect(target)).await;
        self.stream = Some(connected.map_err(|_| PushError::Late(target.timeout))??);
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
    let subscriber = (target.subscriber.address.as_str(), target.subscriber.port);
    let mut refused = PushError::Forbidden(subscriber.0.to_owned());
    for address in tokio::net::lookup_host(subscriber).await?.filter(|address| may_push_to(address, target.own)) {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => refused = error.into(),
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
    use super::*;

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
