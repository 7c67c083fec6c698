//! Carries a connection to NATS: what was accepted here goes out, and what other nodes send goes to the shard.

use std::{
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use bodkin_arrowhead::{record::SystemId, utc::UtcTime};
use bodkin_broker::EventId;
use bodkin_nats::{
    client::{Client, Event, Fault, NotTaken, Options},
    protocol::{Headers, Message as NatsMessage, Subject},
    servers::{Pause, Servers},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{mpsc, oneshot},
    time::{sleep, timeout},
};

use super::{Crossing, NatsPlace, NodeEvent, Outgoing, account::Account, token};
use crate::{
    inbox::{Inbox, Message},
    probe::random_part,
};

/// Connecting to a server.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(3);
/// For a server's greeting.
const GREETING_TIME_MAX: Duration = Duration::from_secs(5);
/// Without a sign of life a server is asked for one, and given up after as long again.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// For the server to take what was written.
const WRITE_TIME_MAX: Duration = Duration::from_secs(10);
/// Between tries to connect: events wait meanwhile, as far as they have room.
const PAUSE: Pause = Pause { least: Duration::from_millis(100), most: Duration::from_secs(2) };
/// Bytes that are read at a time; their events are one message to the shard.
const READ_BYTES: usize = 64 * 1024;
/// Bytes that are written at a time, beyond which the next event waits.
const WRITE_BYTES: usize = 256 * 1024;

/// Who has accepted the event: the name of its node's.
const NODE: &str = "Bodkin-Node";
/// Its identity there.
const EVENT: &str = "Bodkin-Event";
/// When, in nanoseconds since 1970.
const TIME: &str = "Bodkin-Time";

/// Why a connection is at its end.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error(transparent)]
    System(#[from] io::Error),
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("the server has closed the connection")]
    Closed,
    #[error("the server takes nothing, or is not reached, for {} s", .0.as_secs())]
    Slow(Duration),
    #[error("the server is about to go")]
    Leaving,
}

/// What carries events between this node and NATS.
pub struct Carrier {
    place: NatsPlace,
    /// All events of the cloud are one token below it.
    subject: Subject,
    /// This node's name.
    node: String,
    crossing: Crossing,
    waiting: mpsc::Receiver<Outgoing>,
    inbox: Arc<Inbox>,
    account: Account,
    started: Instant,
}

impl Carrier {
    /// Of this node, in this cloud, both of whose names are tokens of a subject; with it the shard's end.
    pub fn new(place: NatsPlace, cloud: &str, node: &str, inbox: Arc<Inbox>) -> (Self, Crossing) {
        let subject = Subject::new(&format!("bodkin.{cloud}.events")).expect("a cloud's name in the database is hexadecimal digits");
        let (crossing, waiting) = Crossing::new();
        let carrier = Self {
            place,
            subject,
            node: node.to_owned(),
            crossing: crossing.clone(),
            waiting,
            inbox,
            account: Account::default(),
            started: Instant::now(),
        };
        (carrier, crossing)
    }

    /// Runs until it is aborted.
    pub async fn run(mut self) {
        let mut servers = Servers::new(self.place.servers.len(), PAUSE);
        let mut is_told = false;
        loop {
            let random = random_part(Duration::from_nanos(u32::MAX.into())).as_nanos();
            let (at, pause) = servers.next(u32::try_from(random).unwrap_or(u32::MAX));
            sleep(pause).await;
            let (host, port) = self.place.servers[at].clone();
            let Err(end) = self.carry((&host, port), &mut servers, &mut is_told).await;
            self.crossing.counts.is_connected.store(false, Relaxed);
            self.crossing.counts.losses.fetch_add(1, Relaxed);
            if !std::mem::replace(&mut is_told, true) {
                tracing::error!(host, port, error = %end, "NATS is not reached: live subscribers at other nodes do not hear what is published here, and those here not what is published there");
            }
        }
    }

    /// One connection, to its end.
    async fn carry(&mut self, server: (&str, u16), servers: &mut Servers, is_told: &mut bool) -> Result<std::convert::Infallible, End> {
        let connected = timeout(CONNECT_TIME_MAX, TcpStream::connect(server)).await;
        let mut stream = connected.map_err(|_| End::Slow(CONNECT_TIME_MAX))??;
        stream.set_nodelay(true)?;
        let mut client = Client::new(self.options(), self.started.elapsed()).listening_below(self.subject.clone());
        let (mut read, mut write, mut events) = (vec![0; READ_BYTES], Vec::new(), Vec::new());
        loop {
            let beat = client.beat(self.started.elapsed(), &mut events)?;
            client.take_out(&mut write);
            if !write.is_empty() {
                timeout(WRITE_TIME_MAX, stream.write_all(&write)).await.map_err(|_| End::Slow(WRITE_TIME_MAX))??;
                write.clear();
            }
            tokio::select! {
                bytes = stream.read(&mut read) => {
                    let bytes = bytes?;
                    if bytes == 0 {
                        return Err(End::Closed);
                    }
                    client.receive(&read[..bytes], self.started.elapsed(), &mut events)?;
                }
                Some(event) = self.waiting.recv(), if client.is_open() => self.send_all(&mut client, event),
                () = sleep(beat.saturating_sub(self.started.elapsed())) => {}
            }
            let mut heard = Vec::new();
            for event in events.drain(..) {
                match event {
                    Event::Open => {
                        servers.reached();
                        self.crossing.counts.is_connected.store(true, Relaxed);
                        *is_told = false;
                        tracing::info!(host = server.0, port = server.1, subject = %self.subject, "events go to the other nodes, and theirs come, by NATS");
                    }
                    Event::Heard(message) => heard.extend(self.heard(&message)),
                    Event::Refused(words) => {
                        tracing::error!(
                            words,
                            "NATS refuses what goes from node to node: let its user publish and subscribe below the subject"
                        );
                    }
                    Event::Leaving => return Err(End::Leaving),
                    Event::Answer(..) | Event::NobodyListens(_) | Event::NoAnswer(_) => unreachable!("nothing is asked"),
                }
            }
            self.hand_over(heard).await;
        }
    }

    fn options(&self) -> Options {
        Options {
            name: format!("bodkin node {}", self.node),
            credentials: self.place.credentials.clone(),
            // Nothing is asked, so nothing is answered.
            inbox: Subject::new(&format!("_INBOX.{}", self.node)).expect("a node's name is a token"),
            is_encrypted: false,
            greeting_wait_max: GREETING_TIME_MAX,
            silence_max: SILENCE_MAX,
        }
    }

    /// Sends an event, and what waits behind it as far as it is written at once.
    fn send_all(&mut self, client: &mut Client, first: Outgoing) {
        let mut next = Some(first);
        let mut bytes = 0;
        while let Some(event) = next {
            bytes += event.json.len();
            self.send(client, &event);
            next = if bytes < WRITE_BYTES { self.waiting.try_recv().ok() } else { None };
        }
    }

    fn send(&self, client: &mut Client, Outgoing { event_type, id, time, json }: &Outgoing) {
        let counts = &self.crossing.counts;
        counts.waiting_bytes.fetch_sub(json.len(), Relaxed);
        let headers = Headers::default().with(NODE, &self.node).with(EVENT, id).with(TIME, time.unix_nanos());
        let sent = Subject::new(&format!("{}.{}", self.subject, token(event_type))).map(|subject| client.publish(&subject, &headers, json));
        match sent {
            Ok(Ok(())) => counts.sent.fetch_add(1, Relaxed),
            Ok(Err(NotTaken::TooLong { .. } | NotTaken::Full | NotTaken::Closed)) | Err(_) => counts.unsent.fetch_add(1, Relaxed),
        };
    }

    /// The event of a message, unless it came before; one that is none is counted.
    fn heard(&mut self, message: &NatsMessage) -> Option<NodeEvent> {
        let counts = &self.crossing.counts;
        let taken = read(message).and_then(|(node, event)| {
            let missing = self.account.take(node, &message.subject, event.source, event.incarnation, event.sequence)?;
            Some(NodeEvent { missing, ..event })
        });
        match &taken {
            Some(event) => {
                counts.heard.fetch_add(1, Relaxed);
                counts.missing.fetch_add(event.missing, Relaxed);
            }
            None => {
                counts.refused.fetch_add(1, Relaxed);
            }
        }
        taken
    }

    /// Has the shard deliver events; more are read when it has.
    async fn hand_over(&self, events: Vec<NodeEvent>) {
        if events.is_empty() {
            return;
        }
        let (done, delivered) = oneshot::channel();
        self.inbox.post(Message::FromNodes { events, done });
        // A shard that has ended delivers nothing.
        let _ = delivered.await;
    }
}

/// The event that a message is, and the node that has accepted it.
fn read(message: &NatsMessage) -> Option<(&str, NodeEvent)> {
    let headers = message.headers.as_ref().ok()?;
    let id: EventId = headers.get(EVENT)?.parse().ok()?;
    let source = SystemId(i64::try_from(id.publisher.0).ok()?);
    let time = UtcTime::from_unix_nanos(headers.get(TIME)?.parse().ok()?);
    let event = String::from_utf8(message.payload.clone()).ok()?;
    if id.sequence.0 == 0 {
        return None;
    }
    Some((headers.get(NODE)?, NodeEvent { source, incarnation: id.incarnation, sequence: id.sequence, time, event, missing: 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, time: &str, payload: &[u8]) -> NatsMessage {
        NatsMessage {
            subject: "bodkin.c.events.HEAT".into(),
            subscription: 2,
            reply: None,
            headers: Ok(Headers::default().with(NODE, "0f").with(EVENT, id).with(TIME, time)),
            payload: payload.to_vec(),
        }
    }

    #[test]
    fn what_is_no_event_is_none() {
        let good = message("1-2-3-4", "5", b"{}");
        let (node, event) = read(&good).unwrap();
        assert_eq!((node, event.source, event.sequence.0, event.time.unix_nanos()), ("0f", SystemId(1), 4, 5));
        let wrong =
            [message("1-2-3-0", "5", b"{}"), message("1-2-3", "5", b""), message("1-2-3-4", "x", b""), message("1-2-3-4", "5", &[0xff])];
        assert!(wrong.iter().all(|message| read(message).is_none()));
        assert!(read(&NatsMessage { headers: Ok(Headers::default()), ..good }).is_none());
    }
}
