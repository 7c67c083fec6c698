//! The kept connection to a subscriber: HTTP/1.1, one event after the other, or several in flight for who has proved able.

use std::{
    borrow::Cow,
    io::{self, Write},
    time::{Duration, Instant},
};

use bodkin_arrowhead::{
    error::ArrowheadError,
    publication::{Publication, cloud_event::Outgoing},
    record::System,
    trace::Cause,
    utc::UtcTime,
};
use bodkin_broker::{EventId, Outcome};
use bodkin_store::event_log::Position;
use bytes::Bytes;
use tokio::time::timeout;

use super::{
    neighbor::Neighbor,
    response::{Response, ResponseError, ResponseReader},
    traced::Sending,
    webhook::{Grant, Sink, Webhook, write_question},
};
use crate::{
    async_channel::{AsyncChannel, Socket},
    channel::Channel,
    control::Endpoint,
    destination::{DestinationError, Destinations},
    replay::source,
    security::{Peer, Security, SubscriberError},
    trace::Traces,
};

/// Bytes of answers that are read at once.
const PIECE_BYTES: usize = 4 * 1024;
/// The status of a sink that was given up.
const GONE: u16 = 410;

/// An event on its way to a subscriber.
#[derive(Clone, Debug)]
pub struct PushEvent {
    /// Its place in the event log; `None` where there is none.
    pub position: Option<Position>,
    /// Its identity.
    pub id: EventId,
    /// When it was accepted, in nanoseconds since 1970 (UTC).
    pub accepted_ns: u64,
    /// The event as JSON.
    pub json: Bytes,
}

/// Why an event was not taken.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// No connection, or a broken one.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// There is no connection to the registered address, or may be none.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// Who listens there is not the subscriber.
    #[error(transparent)]
    Subscriber(#[from] SubscriberError),
    /// The registration is gone.
    #[error("the subscriber is not registered any more")]
    Gone,
    /// Nothing came in time.
    #[error("no answer within {0:?}")]
    Late(Duration),
    /// An answer that says no.
    #[error("the subscriber answered {status}{hint}", status = .0.status, hint = .1)]
    Status(Response, &'static str),
    /// What came is no answer.
    #[error("{0}")]
    Response(#[from] ResponseError),
    /// A sink of CloudEvents that has not said that it wants them.
    #[error(
        "the sink has not allowed CloudEvents of {origin}: it answered OPTIONS with {status} {told}; it has to say WebHook-Allowed-Origin: {origin}"
    )]
    NotWanted {
        /// Of its answer.
        status: u16,
        /// Who has asked.
        origin: String,
        /// What was missing.
        told: &'static str,
    },
    /// The other cloud, or the relay to it, does not take it now.
    #[error("{}", .0.error_message)]
    Cloud(Box<ArrowheadError>),
    /// It wants what we do not speak.
    #[error("the subscriber wants https (it registered authenticationInfo), which insecure mode does not speak")]
    Insecure,
}

impl PushError {
    /// Whose trouble it is: a request that is wrong stays wrong, everything else may pass.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Status(response, _) if matches!(response.status, 400..500) && !matches!(response.status, 408 | 429) => Outcome::Refused,
            Self::Status(response, _) => Outcome::Failed { retry_after: response.retry_after },
            Self::Cloud(error) if matches!(error.error_code, 400..500) => Outcome::Refused,
            _ => Outcome::Failed { retry_after: None },
        }
    }
}

/// Where events go.
#[derive(Clone, Debug)]
pub struct Target<'t> {
    /// The subscriber as it is registered.
    pub subscriber: &'t System,
    /// The path it is notified at.
    pub notify_uri: &'t str,
    /// Where it may be connected to.
    pub destinations: &'t Destinations,
    /// What https is spoken with; `None` in insecure mode.
    pub security: Option<&'t Security>,
    /// For each answer.
    pub timeout: Duration,
    /// The cloud that they go to instead of the subscriber.
    pub neighbor: Option<Neighbor<'t>>,
    /// Where spans of traces go.
    pub traces: Option<&'t Traces>,
    /// How it wants CloudEvents; `None`: it gets events as Arrowhead has them.
    pub webhook: Option<Webhook>,
}

impl Target<'_> {
    /// The host, an address of IPv6 in brackets, and the port.
    fn place(&self) -> (Cow<'_, str>, u16) {
        let address = self.subscriber.address.as_str();
        let host = if address.contains(':') { format!("[{address}]").into() } else { address.into() };
        (host, self.subscriber.port)
    }
}

/// The connection, while there is one.
#[derive(Debug, Default)]
pub struct Link {
    open: Option<(AsyncChannel, Peer)>,
    /// Where the connection was made to: management may move a subscriber.
    connected_to: Option<Endpoint>,
    reader: ResponseReader,
    out: Vec<u8>,
    /// Whether the present connection has answered.
    is_proved: bool,
    /// What the sink says of CloudEvents.
    grant: Grant,
}

impl Link {
    /// Whether several events may be in flight: the connection has answered in HTTP/1.1 and stayed open.
    pub fn is_proved(&self) -> bool {
        self.is_proved && self.open.is_some() && self.grant.is_unlimited()
    }

    /// How long a sink of CloudEvents has to be left alone, as it has said.
    pub fn pause(&self) -> Duration {
        self.grant.pause(Instant::now())
    }

    /// Closes the connection.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// Posts an event.
    pub async fn post(&mut self, target: &Target<'_>, event: &PushEvent) -> Result<(), PushError> {
        let mut answers = Vec::with_capacity(1);
        self.post_all(target, std::slice::from_ref(event), &mut answers).await?;
        match answers.first() {
            Some(response) if matches!(response.status, 200..300) => Ok(()),
            Some(response) => Err(refused(*response, target)),
            None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }

    /// Posts events, all of them before the first answer is read, and gives the answers in their order. There are fewer
    /// answers than events if the subscriber closed the connection behind the last of them; without any it is an error.
    ///
    /// A kept connection may have been closed by the subscriber meanwhile: then the events are sent on a new one.
    pub async fn post_all(&mut self, target: &Target<'_>, events: &[PushEvent], answers: &mut Vec<Response>) -> Result<(), PushError> {
        let (sending, before) = (Sending::begin(target, events), answers.len());
        let posted = self.post_each(target, events, &sending, answers).await;
        sending.end(target, events, &answers[before..], posted.as_ref().err());
        posted
    }

    async fn post_each(
        &mut self,
        target: &Target<'_>,
        events: &[PushEvent],
        sending: &Sending,
        answers: &mut Vec<Response>,
    ) -> Result<(), PushError> {
        if let Some(neighbor) = &target.neighbor {
            return neighbor.tell_all(events, sending, answers).await;
        }
        let Some(webhook) = &target.webhook else {
            self.write_requests(target, events, sending);
            return self.send(target, events.len(), answers).await;
        };
        let sink = Sink::new(Endpoint::of(target.subscriber), target.notify_uri);
        if !self.grant.is_of(&sink) {
            self.ask(target, webhook, sink).await?;
        }
        self.write_cloud_events(target, webhook, events, sending);
        let sent = self.send(target, events.len(), answers).await;
        self.grant.spend(Instant::now(), answers.len());
        // A sink that was given up is asked before it is sent anything again.
        if answers.iter().any(|answer| answer.status == GONE) {
            self.grant.end();
        }
        sent
    }

    /// Asks a sink whether it wants CloudEvents.
    async fn ask(&mut self, target: &Target<'_>, webhook: &Webhook, sink: Sink) -> Result<(), PushError> {
        self.out.clear();
        let (address, port) = target.place();
        write_question(&mut self.out, target.notify_uri, format_args!("{address}:{port}"), &webhook.origin);
        let mut answers = Vec::with_capacity(1);
        self.send(target, 1, &mut answers).await?;
        let answer = answers.first().ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        self.grant.take(sink, answer, &webhook.origin)
    }

    /// Sends what is written, and reads so many answers.
    async fn send(&mut self, target: &Target<'_>, wanted: usize, answers: &mut Vec<Response>) -> Result<(), PushError> {
        let endpoint = Endpoint::of(target.subscriber);
        let is_there = self.connected_to.as_ref() == Some(&endpoint);
        if is_there && self.is_open(target) && self.reader.is_empty() {
            match self.exchange(target.timeout, wanted, answers).await {
                Err(PushError::Io(_)) if answers.is_empty() => {}
                done => return done,
            }
        }
        self.close();
        let connected = timeout(target.timeout, connect(target)).await;
        self.open = Some(connected.map_err(|_| PushError::Late(target.timeout))??);
        self.connected_to = Some(endpoint);
        self.reader =
            target.webhook.as_ref().map_or_else(ResponseReader::default, |webhook| ResponseReader::asking_as(&webhook.origin.to_string()));
        self.is_proved = false;
        self.exchange(target.timeout, wanted, answers).await
    }

    fn write_requests(&mut self, target: &Target<'_>, events: &[PushEvent], sending: &Sending) {
        self.out.clear();
        let (address, port) = target.place();
        for (at, event) in events.iter().enumerate() {
            let head = format_args!(
                "POST {} HTTP/1.1\r\nHost: {address}:{port}\r\nContent-Type: application/json\r\n\
                 Accept: text/plain, application/json\r\nBodkin-Event-Id: {}\r\nContent-Length: {}\r\n",
                target.notify_uri,
                event.id,
                event.json.len(),
            );
            self.out.write_fmt(head).expect("a vector takes everything");
            self.write_trace(sending, at);
            self.out.extend_from_slice(b"\r\n");
            self.out.extend_from_slice(&event.json);
        }
    }

    fn write_cloud_events(&mut self, target: &Target<'_>, webhook: &Webhook, events: &[PushEvent], sending: &Sending) {
        self.out.clear();
        let (address, port) = target.place();
        for (at, event) in events.iter().enumerate() {
            let publication = std::str::from_utf8(&event.json)
                .ok()
                .zip(source(event.id))
                .and_then(|(text, source)| Publication::reread(text, source, UtcTime::from_unix_nanos(event.accepted_ns)).ok());
            let publication = publication.expect("an event that was accepted can be read again");
            let mut headers = Vec::new();
            let body = Outgoing::new(&event.id.to_string(), &publication).into_request(webhook.mode, &mut headers);
            let (path, origin, id, bytes) = (target.notify_uri, &webhook.origin, event.id, body.len());
            let head = format_args!(
                "POST {path} HTTP/1.1\r\nHost: {address}:{port}\r\nWebHook-Request-Origin: {origin}\r\nBodkin-Event-Id: {id}\r\nContent-Length: {bytes}\r\n"
            );
            self.out.write_fmt(head).expect("a vector takes everything");
            self.out.extend_from_slice(&headers);
            self.write_trace(sending, at);
            self.out.extend_from_slice(b"\r\n");
            self.out.extend_from_slice(&body);
        }
    }

    fn write_trace(&mut self, sending: &Sending, at: usize) {
        let Some(Cause { context, state }) = sending.cause(at) else { return };
        self.out.write_fmt(format_args!("traceparent: {context}\r\n")).expect("a vector takes everything");
        if let Some(state) = state {
            self.out.write_fmt(format_args!("tracestate: {state}\r\n")).expect("a vector takes everything");
        }
    }

    /// Sends what is written and reads as many answers, unless the connection ends behind one. A connection that cannot be
    /// used again is closed.
    async fn exchange(&mut self, patience: Duration, wanted: usize, answers: &mut Vec<Response>) -> Result<(), PushError> {
        let (mut channel, peer) = self.open.take().expect("there is a connection");
        timeout(patience, channel.write_all(&self.out)).await.map_err(|_| PushError::Late(patience))??;
        while answers.len() < wanted {
            match timeout(patience, read_answer(&mut channel, &mut self.reader)).await {
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
        self.open = Some((channel, peer));
        Ok(())
    }

    /// Whether the subscriber has neither closed the connection nor said something unasked, and is still who it was.
    fn is_open(&mut self, target: &Target<'_>) -> bool {
        let Some((channel, peer)) = &mut self.open else { return false };
        let is_believed = match target.security.filter(|_| target.subscriber.public_key().is_some()) {
            Some(security) => peer.is(&target.subscriber.system_name) && security.check(peer).is_ok(),
            None => !channel.is_tls() && target.subscriber.public_key().is_none(),
        };
        is_believed && matches!(channel.read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

async fn read_answer(channel: &mut AsyncChannel, reader: &mut ResponseReader) -> Result<Response, PushError> {
    loop {
        if let Some(response) = reader.take()? {
            return Ok(response);
        }
        channel.readable().await?;
        let mut piece = [0; PIECE_BYTES];
        match channel.read(&mut piece) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(bytes) => reader.space().extend_from_slice(&piece[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Added to the refusal of a subscriber that is called over http and may expect TLS.
const PLAIN_HINT: &str = " over http; a port that expects TLS answers so: is the subscriber registered without its authenticationInfo?";

/// Returns the error for an answer that is not a success.
pub fn refused(response: Response, target: &Target<'_>) -> PushError {
    let may_expect_tls = response.status == 400 && target.subscriber.public_key().is_none();
    PushError::Status(response, if may_expect_tls { PLAIN_HINT } else { "" })
}

/// Connects by https to a subscriber that has registered a public key, and else by http (reference 6.3).
async fn connect(target: &Target<'_>) -> Result<(AsyncChannel, Peer), PushError> {
    let subscriber = target.subscriber;
    let security = match (subscriber.public_key(), target.security) {
        (Some(_), None) => return Err(PushError::Insecure),
        (Some(_), security) => security,
        (None, _) => None,
    };
    let connected = target.destinations.connect(subscriber.address.as_str(), subscriber.port, target.timeout).await;
    let stream = connected.map_err(|error| match error {
        DestinationError::Late(patience) => PushError::Late(patience),
        error => error.into(),
    })?;
    stream.set_nodelay(true)?;
    match security {
        Some(security) => Ok(security.call(stream, subscriber).await?),
        None => Ok((Channel::plain(Socket(stream)), Peer::anonymous())),
    }
}
