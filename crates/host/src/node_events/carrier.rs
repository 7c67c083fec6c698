//! Carries a connection to NATS: what was accepted here goes out, and what other nodes send goes to the shard.

use std::{
    collections::{BTreeSet, VecDeque},
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bodkin_arrowhead::{record::SystemId, utc::UtcTime};
use bodkin_broker::EventId;
use bodkin_nats::{
    client::{Client, Event, Fault, NotTaken, Options},
    protocol::{Headers, Message as NatsMessage, Subject, token_of},
    servers::Pause,
};
use bodkin_store::event_log::{EventLogReader, Position};
use tokio::sync::oneshot;

use super::{Crossing, FromNode, NodeEvent, Outgoing, account::Account};
use crate::{
    fleet::{Greeted, greet},
    inbox::{Inbox, Message},
    nats::{Line, LineThread, NatsPlace, NatsServer, Speaker, Stop},
    resume_token::{CloudTag, LogPlace, ResumeToken},
    trace::now_ns,
};

/// Between tries to connect: events wait meanwhile, as far as they have room.
const PAUSE: Pause = Pause { least: Duration::from_millis(100), most: Duration::from_secs(2) };
/// Bytes that are sent at a time, beyond which the next event waits.
const SENT_BYTES: usize = 256 * 1024;

/// Maximum number of different reasons of one outage in the log.
const REASONS_MAX: usize = 32;

/// Who has accepted the event: the name of its node's.
const NODE: &str = "Bodkin-Node";
/// Its identity there.
const EVENT: &str = "Bodkin-Event";
/// When, in nanoseconds since 1970.
const TIME: &str = "Bodkin-Time";
/// Its position in the event log of its node, if that keeps one.
const POSITION: &str = "Bodkin-Position";

/// The thread that carries events between this node and NATS.
#[derive(Debug)]
pub struct NodeEvents(LineThread<Outgoing>);

impl NodeEvents {
    /// Begins to carry events of this node in this cloud, both of whose names are tokens of a subject; with it the shard's end.
    ///
    /// # Errors
    /// The system has no thread or no poll for it.
    pub fn start(
        place: NatsPlace,
        (cloud, node): (&str, &str),
        log: Option<&EventLogReader>,
        inbox: Arc<Inbox>,
    ) -> io::Result<(Self, Crossing)> {
        let subject = subject(cloud);
        let line = Line::new(format!("bodkin node {node}"), place, PAUSE)?;
        let token = log.map(|log| {
            let mut token = ResumeToken::new(CloudTag::of(cloud), number_of(node), now_ns());
            token.reach(number_of(node), LogPlace { next: log.end(), time_ns: now_ns() });
            token
        });
        let (crossing, outgoing) = Crossing::at_most_once(line.waker()?, token);
        let exchange = Exchange {
            subject,
            node: node.to_owned(),
            crossing: crossing.clone(),
            outgoing: outgoing.clone(),
            waiting: VecDeque::new(),
            client: None,
            account: Account::default(),
            heard: Vec::new(),
            is_leaving: false,
            reported: BTreeSet::new(),
        };
        let carrier = Carrier { line, exchange, inbox };
        let thread = LineThread::start("node-events", outgoing, |stop| carrier.run(&stop))?;
        Ok((Self(thread), crossing))
    }

    /// Looks whether a server accepts this node and its subscription to the events of its cloud; waits for some seconds at the most.
    ///
    /// # Errors
    /// Why the server is not reached, or refuses the connection or the subscription.
    pub fn look(place: &NatsPlace, server: &NatsServer, (cloud, node): (&str, &str)) -> Result<Greeted, String> {
        greet(place, server, format!("bodkin doctor for {node}"), subject(cloud))
    }

    /// Ends the thread, which sends nothing more. Waits for it, so it is not for a thread that serves others.
    pub fn stop(self) {
        self.0.stop();
    }
}

/// The subject of a cloud's events, which are one token below it.
fn subject(cloud: &str) -> Subject {
    Subject::new(&format!("bodkin.{cloud}.events")).expect("a cloud's name in the database is hexadecimal digits")
}

struct Carrier {
    line: Line,
    exchange: Exchange,
    inbox: Arc<Inbox>,
}

impl Carrier {
    fn run(mut self, stop: &Stop) {
        while !stop.is_told() {
            let turned = self.line.turn(&mut self.exchange);
            if self.exchange.client.as_ref().is_some_and(Client::is_open) {
                self.line.reached();
            }
            self.hand_over();
            let next = turned.unwrap_or_else(|end| {
                let counts = &self.exchange.crossing.counts;
                counts.is_connected.store(false, Relaxed);
                counts.losses.fetch_add(1, Relaxed);
                let reason = end.to_string();
                counts.set_trouble(Some(reason.clone()));
                if self.exchange.is_new(reason) {
                    tracing::error!(server = %end.server, error = %end.error, "NATS is not reached: live subscribers at other nodes do not hear what is published here, and those here not what is published there");
                }
                Duration::ZERO
            });
            if let Err(error) = self.line.wait(next) {
                tracing::error!(%error, "the thread between nodes cannot wait for its connection");
                std::thread::sleep(PAUSE.least);
            }
        }
    }

    /// Has the shard deliver events; more are read when it has.
    fn hand_over(&mut self) {
        let events = std::mem::take(&mut self.exchange.heard);
        if events.is_empty() {
            return;
        }
        let (done, delivered) = oneshot::channel();
        self.inbox.post(Message::FromNodes { events: events.into(), done });
        // A shard that has ended delivers nothing.
        let _ = delivered.blocking_recv();
    }
}

/// What is said over the line.
struct Exchange {
    /// All events of the cloud are one token below it.
    subject: Subject,
    /// This node's name.
    node: String,
    crossing: Crossing,
    /// Where the shard puts events.
    outgoing: Arc<Inbox<Outgoing>>,
    /// Events that were taken from the shard and are not sent.
    waiting: VecDeque<Outgoing>,
    client: Option<Client>,
    account: Account,
    /// Events for the shard.
    heard: Vec<FromNode>,
    is_leaving: bool,
    /// Reasons of this outage that are in the log.
    reported: BTreeSet<String>,
}

impl Speaker for Exchange {
    fn connected(&mut self, options: Options, now: Duration) {
        self.client = Some(Client::new(options, now).listening_below(self.subject.clone()));
        self.is_leaving = false;
    }

    fn disconnected(&mut self) {
        self.client = None;
    }

    fn receive(&mut self, bytes: &[u8], now: Duration) -> Result<(), Fault> {
        let Some(client) = &mut self.client else { return Ok(()) };
        let mut events = Vec::new();
        let received = client.receive(bytes, now, &mut events);
        self.take(events);
        received
    }

    fn step(&mut self, now: Duration, has_room: bool) -> Result<Duration, Fault> {
        let Some(client) = &mut self.client else { return Ok(Duration::MAX) };
        let next = client.beat(now, &mut Vec::new())?;
        if !client.is_open() || !has_room {
            return Ok(next);
        }
        if self.waiting.is_empty() {
            let mut taken = Vec::new();
            self.outgoing.take(&mut taken);
            self.waiting.extend(taken);
        }
        Ok(if self.send_some() { now } else { next })
    }

    fn take_out(&mut self, out: &mut Vec<u8>) {
        if let Some(client) = &mut self.client {
            client.take_out(out);
        }
    }

    fn leaves(&mut self) -> bool {
        self.is_leaving
    }
}

impl Exchange {
    /// Returns true if the log does not have this reason of the outage yet.
    fn is_new(&mut self, reason: String) -> bool {
        self.reported.len() < REASONS_MAX && self.reported.insert(reason)
    }

    fn take(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Open => {
                    self.crossing.counts.is_connected.store(true, Relaxed);
                    self.crossing.counts.connecting.connected();
                    self.crossing.counts.set_trouble(None);
                    self.reported.clear();
                    let server = self.client.as_ref().and_then(Client::info).map(|info| info.server.as_str());
                    tracing::info!(server, subject = %self.subject, "events go to the other nodes, and theirs come, by NATS");
                }
                Event::Heard(_, message) => self.hear(&message),
                Event::Refused(words) => {
                    tracing::error!(
                        words,
                        "NATS refuses what goes from node to node: let its user publish and subscribe below the subject"
                    );
                }
                Event::Leaving => self.is_leaving = true,
                Event::Answer(..) | Event::NobodyListens(_) | Event::NoAnswer(_) => unreachable!("nothing is asked"),
            }
        }
    }

    /// Sends events as far as they are written at once; true: more wait.
    fn send_some(&mut self) -> bool {
        let mut bytes = 0;
        while bytes < SENT_BYTES {
            let Some(event) = self.waiting.pop_front() else { return false };
            bytes += event.json.len();
            self.send(&event);
        }
        !self.waiting.is_empty()
    }

    fn send(&mut self, event: &Outgoing) {
        let Outgoing { event_type, id, time, position, json } = event;
        let (counts, client) = (&self.crossing.counts, self.client.as_mut().expect("it is open"));
        self.crossing.sends(event);
        let headers = Headers::default().with(NODE, &self.node).with(EVENT, id).with(TIME, time.unix_nanos());
        let headers = match position {
            Some(position) => headers.with(POSITION, position.0),
            None => headers,
        };
        let sent =
            Subject::new(&format!("{}.{}", self.subject, token_of(event_type))).map(|subject| client.publish(&subject, &headers, json));
        match sent {
            Ok(Ok(())) => counts.sent.fetch_add(1, Relaxed),
            Ok(Err(NotTaken::TooLong { .. } | NotTaken::Full | NotTaken::Closed)) | Err(_) => counts.unsent.fetch_add(1, Relaxed),
        };
    }

    /// Notes the event of a message, unless it came before; one that is none is counted.
    fn hear(&mut self, message: &NatsMessage) {
        let counts = &self.crossing.counts;
        let taken = read(message).and_then(|(node, event)| {
            let missing = self.account.take(node, &message.subject, event.source, event.incarnation, event.sequence)?;
            Some(NodeEvent { missing, ..event })
        });
        match taken {
            Some(event) => {
                counts.heard.fetch_add(1, Relaxed);
                counts.missing.fetch_add(event.missing, Relaxed);
                self.heard.push(FromNode::Event(event));
            }
            None => {
                counts.refused.fetch_add(1, Relaxed);
            }
        }
    }
}

/// A position that has a next one.
fn position_of(digits: &str) -> Option<Position> {
    digits.parse().ok().filter(|position| *position < u64::MAX).map(Position)
}

/// The number of a node, whose name is 16 hexadecimal digits.
fn number_of(node: &str) -> u64 {
    u64::from_str_radix(node, 16).expect("a node's name is 16 hexadecimal digits")
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
    let node = headers.get(NODE)?;
    let place = match headers.get(POSITION) {
        Some(position) => Some((u64::from_str_radix(node, 16).ok()?, position_of(position)?)),
        None => None,
    };
    let event = NodeEvent { source, incarnation: id.incarnation, sequence: id.sequence, time, event, missing: 0, place, origin: None };
    Some((node, event))
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
