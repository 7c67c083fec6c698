//! The way back: messages of a stream for one taker, in their order, each taken once.
//!
//! ```text
//! connected ─> STREAM.INFO ─> what the taker remembers of it ─> CONSUMER.INFO (and CONSUMER.CREATE, if it may) ─> pulls ─> Told::Take ─> done ─> +ACK
//! ```
//!
//! A durable consumer keeps the taker's place at the servers, and brings at least once: what was brought over a connection that was cut comes again, behind what is newer. So nothing is taken until it is known that nothing
//! in front of it is missing. While everything comes, each message has the consumer's next number. Where one is passed over, and on every new connection, the consumer is asked how many it has brought that were not acknowledged,
//! and so many are collected before any is taken, by their place in the stream ([`order`]). What was taken already is known by the taker's own memory, not by the servers', and is acknowledged again.

mod consumer;
mod memory;
mod order;
mod recall;
mod settings;
mod told;
mod unsaid;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use self::{
    consumer::{CLAIMS_MAX, REWINDS_MAX},
    order::{Came, Order},
    unsaid::Unsaid,
};
pub use self::{
    memory::Memory,
    recall::{Noted, Recall},
    settings::{ACK_PENDING_DEFAULT, ACK_PENDING_MAX, ACK_WAIT, IntakeSetup, NoIntake},
    told::{Delivery, Told},
};
use crate::{
    client::{Client, Event, Fault, Options, RequestId},
    forwarder::QUESTION_WAIT_MAX,
    jetstream::{Ack, AnswerError, Delivered, ErrorKind, Pull, Question, StreamInfo, consumer_info, stream_info},
    lane::Refusal,
    protocol::{Headers, Message, Subject, words},
};

/// Messages that are asked for at once.
const PULL_MESSAGES: u64 = 64;
/// Bytes of them, at the least: more where the server takes longer messages.
const PULL_BYTES_MIN: u64 = 4 << 20;
/// How long a pull stands.
const PULL_MAX: Duration = Duration::from_secs(30);
/// Without a message for so long the server says that it is there; twice as long without a word it is asked how the consumer is.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How often the stream is looked at while messages come, so that what it lets go of is told from what was never for us.
const LOOK_PERIOD: Duration = Duration::from_secs(10);
/// Messages behind which it is looked at sooner.
const LOOK_MESSAGES: usize = 10_000;
/// Messages that are kept until they are done, or until others come: a consumer has no more than half of them under way.
const UNDER_WAY_MAX: usize = 2 * ACK_PENDING_MAX.unsigned_abs() as usize;
/// What was brought and has to come again is waited for so many times the consumer's own wait, one message behind the other.
const SETTLE_WAITS: u32 = 2;

/// Whose answer it is.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Stream,
    Consumer,
    Make,
    /// This process is noted at the consumer.
    Claim,
    /// The consumer is deleted, to be made behind what is remembered.
    Rewind,
    /// The stream, while messages come.
    Glance,
    /// The consumer behind that: whether anything up to there is still to come.
    GlanceBehind,
}

#[derive(Clone, Debug)]
enum Standing {
    /// Ask for the stream once this time has come.
    Unknown(Duration),
    Asked,
    /// The taker has to say what it remembers.
    Unremembered,
    /// What was taken is to be acknowledged before the consumer is asked.
    Draining,
    /// Messages come.
    Open,
}

/// Messages of a stream, over one connection after the other.
#[derive(Debug)]
pub struct Intake {
    setup: IntakeSetup,
    ask_stream: Question,
    ask_consumer: Question,
    /// What the taker remembers; `None`: it was not asked yet.
    memory: Option<Memory>,
    stream: Option<Box<StreamInfo>>,
    order: Order,
    /// Taken, and not done: where each is acknowledged.
    taken: BTreeMap<u64, String>,
    unsaid: Unsaid,
    /// Everything up to here was told to be taken, or is known.
    told_through: u64,
    /// The same at the last look at the stream, where there was one, and what has come since.
    seen_through: Option<u64>,
    remembered_seen: u64,
    /// The stream's newest message at the last look at which nothing waited for us.
    quiet_through: u64,
    since: BTreeSet<u64>,
    /// The stream was asked for that.
    is_glancing: bool,
    /// The consumer was compared with the memory since the start.
    is_compared: bool,
    /// How often its deletion was asked for over this connection, because it is ahead of the memory.
    rewinds: u32,
    /// The process that was noted at the consumer when this one asked to be noted; `None`: it has not asked since the start. A process that was replaced does not
    /// ask again, so the same name there means that the request was lost.
    claimed_over: Option<Option<String>>,
    /// How often this process asked for that over this connection.
    claims: u32,
    client: Option<Client>,
    /// Where pulls are answered.
    pulled: Option<Subject>,
    standing: Standing,
    asked: BTreeMap<RequestId, Purpose>,
    /// Messages that pulls may still bring, by the pulls' numbers.
    pulls: BTreeMap<u64, (u64, Duration)>,
    next_pull: u64,
    /// Something was asked for on this connection.
    has_pulled: bool,
    /// When something has come of the consumer last.
    heard: Duration,
    /// Messages that had not come then.
    waiting: u64,
    /// Whether a message has come since the server said last that the next one is too long for a pull.
    has_come: bool,
    looked: Duration,
    /// How long the next one that was brought before is waited for, and until when.
    settle_max: Duration,
    settle_until: Duration,
}

impl Intake {
    /// Without a connection.
    ///
    /// # Errors
    /// A name makes no subject.
    pub fn new(setup: IntakeSetup) -> Result<Self, crate::protocol::SubjectError> {
        let ask_stream = setup.api.stream_info(&setup.stream)?;
        let ask_consumer = setup.api.consumer_info(&setup.stream, &setup.consumer.durable_name)?;
        setup.api.create_consumer(&setup.stream, &setup.consumer)?;
        setup.api.delete_consumer(&setup.stream, &setup.consumer.durable_name)?;
        Ok(Self {
            setup,
            ask_stream,
            ask_consumer,
            memory: None,
            stream: None,
            order: Order::default(),
            taken: BTreeMap::new(),
            unsaid: Unsaid::default(),
            told_through: 0,
            seen_through: None,
            remembered_seen: 0,
            quiet_through: 0,
            since: BTreeSet::new(),
            is_glancing: false,
            is_compared: false,
            rewinds: 0,
            claimed_over: None,
            claims: 0,
            client: None,
            pulled: None,
            standing: Standing::Unknown(Duration::ZERO),
            asked: BTreeMap::new(),
            pulls: BTreeMap::new(),
            next_pull: 1,
            has_pulled: false,
            heard: Duration::ZERO,
            waiting: 0,
            has_come: true,
            looked: Duration::ZERO,
            settle_max: Duration::ZERO,
            settle_until: Duration::ZERO,
        })
    }

    /// A server is connected to; what is pulled comes one token below `pulled`, which nobody else may guess.
    pub fn connected(&mut self, options: Options, pulled: Subject, now: Duration) {
        self.disconnected();
        self.client = Some(Client::new(options, now).listening_below(pulled.clone()));
        self.pulled = Some(pulled);
        self.standing = Standing::Unknown(now);
    }

    /// The connection is at its end. What was taken is still to be done; what was collected comes again.
    pub fn disconnected(&mut self) {
        (self.client, self.pulled, self.asked) = (None, None, BTreeMap::new());
        (self.is_glancing, self.has_pulled, self.rewinds, self.claims) = (false, false, 0, 0);
        self.pulls.clear();
        self.drop_collected();
    }

    /// What was collected is forgotten, and has to come again.
    fn drop_collected(&mut self) {
        for (sequence, message) in self.order.take_collected() {
            self.unsaid.comes_again(sequence, message);
        }
        self.order = Order::default();
    }

    /// What the taker remembers of the stream that was told, and up to where it has looked whether anything is gone ([`Self::seen_through`]).
    pub fn remembers(&mut self, memory: Memory, seen_through: u64) {
        (self.memory, self.remembered_seen) = (Some(memory), seen_through);
        if matches!(self.standing, Standing::Unremembered) {
            self.standing = Standing::Draining;
        }
    }

    /// What the taker remembers of the stream that was told cannot be said now: it is asked again some time.
    pub fn does_not_remember(&mut self, now: Duration) {
        if matches!(self.standing, Standing::Unremembered) {
            self.standing = Standing::Unknown(now + self.setup.look_every);
        }
    }

    /// How far everything is done with; `None`: it is not known yet.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// Nothing up to here will be told as lost any more; 0: nobody has looked.
    pub fn seen_through(&self) -> u64 {
        self.seen_through.unwrap_or_default()
    }

    /// Messages that were told to be taken and are not done.
    pub fn taken(&self) -> usize {
        self.taken.len()
    }

    /// Messages that the consumer had not brought when something was heard of it last.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// One that was taken is where it is not lost.
    pub fn done(&mut self, sequence: u64) {
        self.end(sequence, Ack::Taken);
    }

    /// One that was taken can never be taken: it is not to come again.
    pub fn refused(&mut self, sequence: u64) {
        self.end(sequence, Ack::Never);
    }

    fn end(&mut self, sequence: u64, ack: Ack) {
        let Some(reply) = self.taken.remove(&sequence) else { return };
        let through = self.taken.first_key_value().map_or(self.told_through, |(first, _)| first - 1);
        if let Some(memory) = &mut self.memory {
            memory.note(sequence);
            memory.reach(through);
        }
        self.acknowledge(&reply, ack);
    }

    /// One that does not get through comes again, and is acknowledged then. Without a connection it is said on the next one, so that it does not come again before what is newer.
    fn acknowledge(&mut self, reply: &str, ack: Ack) {
        match (&mut self.client, Subject::new(reply)) {
            (Some(client), Ok(subject)) => drop(client.publish(&subject, &Headers::default(), ack.words())),
            (None, _) => self.unsaid.is_done(reply, ack),
            (_, Err(_)) => {}
        }
    }

    /// Bytes have come from the server.
    ///
    /// # Errors
    /// The connection is at its end: close it, and tell by [`Self::disconnected`].
    pub fn receive(&mut self, bytes: &[u8], now: Duration, told: &mut Vec<Told>) -> Result<(), Fault> {
        let Some(client) = &mut self.client else { return Ok(()) };
        let mut events = Vec::new();
        let received = client.receive(bytes, now, &mut events);
        self.take(events, now, told);
        received
    }

    /// Does what is due. `Ok` has when to come again at the latest; sooner when something comes.
    ///
    /// # Errors
    /// The connection is at its end: close it, and tell by [`Self::disconnected`].
    pub fn step(&mut self, now: Duration, told: &mut Vec<Told>) -> Result<Duration, Fault> {
        let Some(client) = &mut self.client else { return Ok(Duration::MAX) };
        let mut events = Vec::new();
        let beat = client.beat(now, &mut events);
        self.take(events, now, told);
        let next = beat?;
        if !self.client.as_ref().is_some_and(Client::is_open) {
            return Ok(next);
        }
        Ok(next.min(self.proceed(now, told)))
    }

    fn proceed(&mut self, now: Duration, told: &mut Vec<Told>) -> Duration {
        match self.standing {
            Standing::Unknown(at) if at <= now => {
                self.looked = now;
                self.ask(self.ask_stream.clone(), Purpose::Stream, now, told);
                now
            }
            Standing::Unknown(at) => at,
            Standing::Draining if self.taken.is_empty() => {
                self.ask(self.ask_consumer.clone(), Purpose::Consumer, now, told);
                now
            }
            Standing::Asked | Standing::Unremembered | Standing::Draining => Duration::MAX,
            Standing::Open => self.keep_open(now),
        }
    }

    /// Pulls, and looks again now and then.
    fn keep_open(&mut self, now: Duration) -> Duration {
        let is_over = !self.order.is_settled() && now >= self.settle_until;
        let is_silent = now >= self.heard + 2 * HEARTBEAT;
        if is_over || is_silent {
            self.pulls.clear();
            self.standing = Standing::Unknown(now);
            return now;
        }
        let look_at = if self.since.len() < LOOK_MESSAGES { self.looked + LOOK_PERIOD } else { now };
        if self.order.is_settled() && now >= look_at && !self.is_glancing {
            // Pulls go on: what they bring meanwhile is in its order.
            self.looked = now;
            self.is_glancing = self.glance(self.ask_stream.clone(), Purpose::Glance, now);
        }
        self.pulls.retain(|_, (_, until)| *until > now);
        self.pull(now);
        let settle = if self.order.is_settled() { Duration::MAX } else { self.settle_until };
        // Whoever looks already is told when the answer has come, or does not.
        let look = if self.order.is_settled() && !self.is_glancing { self.looked + LOOK_PERIOD } else { Duration::MAX };
        (self.heard + 2 * HEARTBEAT).min(settle).min(look)
    }

    /// Asks for more where less than half of a pull may still come, and there is room for it.
    fn pull(&mut self, now: Duration) {
        let may_come: u64 = self.pulls.values().map(|(messages, _)| messages).sum();
        // What has to come again comes, however little room was set up for: a consumer has no more under way than this.
        let limit = if self.order.is_settled() { self.setup.taken_max as u64 } else { ACK_PENDING_MAX.unsigned_abs() };
        let room = limit.saturating_sub(self.taken.len() as u64 + self.order.len() as u64 + may_come);
        if may_come > PULL_MESSAGES / 2 || room == 0 {
            return;
        }
        let (Some(client), Some(pulled)) = (&mut self.client, &self.pulled) else { return };
        let max_payload = client.info().map_or(0, |info| info.max_payload as u64);
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).expect("seconds");
        let pull = Pull {
            batch: room.min(PULL_MESSAGES),
            // The subject and where the acknowledgement goes count too.
            max_bytes: PULL_BYTES_MIN.max(2 * max_payload),
            expires: nanos(PULL_MAX),
            idle_heartbeat: nanos(HEARTBEAT),
        };
        let consumer = &self.setup.consumer.durable_name;
        let (subject, body) = self.setup.api.next_messages(&self.setup.stream, consumer, &pull).expect("its names have made subjects");
        let reply = Subject::new(&format!("{pulled}.{}", self.next_pull)).expect("a number is a token");
        if client.publish_answered(&subject, &reply, &body).is_ok() {
            self.pulls.insert(self.next_pull, (pull.batch, now + PULL_MAX + HEARTBEAT));
            (self.next_pull, self.has_pulled) = (self.next_pull + 1, true);
        }
    }

    /// Bytes for the server, behind what is in `out`.
    pub fn take_out(&mut self, out: &mut Vec<u8>) {
        if let Some(client) = &mut self.client {
            client.take_out(out);
        }
    }

    fn ask(&mut self, question: Question, purpose: Purpose, now: Duration, told: &mut Vec<Told>) {
        let client = self.client.as_mut().expect("there is a connection");
        match client.request(&question.0, &Headers::default(), &question.1, now, QUESTION_WAIT_MAX) {
            Ok(request) => {
                self.asked.insert(request, purpose);
                self.standing = Standing::Asked;
            }
            Err(_) => self.none(NoIntake::Refused(Refusal::NoAnswer), now, told),
        }
    }

    /// Asks how far something is while messages come, if there is room for the question; without an answer it is asked again some time.
    fn glance(&mut self, (subject, body): Question, purpose: Purpose, now: Duration) -> bool {
        let client = self.client.as_mut().expect("there is a connection");
        let asked = client.request(&subject, &Headers::default(), &body, now, QUESTION_WAIT_MAX);
        asked.is_ok_and(|request| self.asked.insert(request, purpose).is_none())
    }

    fn take(&mut self, events: Vec<Event>, now: Duration, told: &mut Vec<Told>) {
        for event in events {
            match event {
                Event::Open => {
                    told.push(Told::Open(self.client.as_ref().and_then(Client::info).map_or_else(String::new, |info| info.server.clone())));
                }
                Event::Answer(request, message) => self.answered(request, Ok(message), now, told),
                Event::NobodyListens(request) => self.answered(request, Err(Refusal::NobodyListens), now, told),
                Event::NoAnswer(request) => self.answered(request, Err(Refusal::NoAnswer), now, told),
                Event::Refused(words) => {
                    if words.contains(".CONSUMER.DELETE.") {
                        self.rewinds = REWINDS_MAX;
                    }
                    if words.contains(".CONSUMER.CREATE.") {
                        self.claims = CLAIMS_MAX;
                    }
                    told.push(Told::Refused(words));
                }
                Event::Leaving => told.push(Told::Leaving),
                Event::Heard(_, message) => self.heard(message, now, told),
            }
        }
    }

    fn answered(&mut self, request: RequestId, answer: Result<Message, Refusal>, now: Duration, told: &mut Vec<Told>) {
        let Some(purpose) = self.asked.remove(&request) else { return };
        if matches!(purpose, Purpose::Glance) {
            self.is_glancing = false;
        }
        let message = match answer {
            Ok(message) => message,
            Err(refusal) => return self.none(refusal.into(), now, told),
        };
        match purpose {
            Purpose::Stream | Purpose::Glance => match stream_info(&message.payload) {
                Ok(info) => self.stream_is(info, purpose, now, told),
                Err(error) => self.none(Refusal::Answer(error).into(), now, told),
            },
            Purpose::Rewind => {
                // The new consumer counts messages of other subjects as acknowledged, so it is not compared again.
                self.is_compared = match consumer_info(&message.payload) {
                    Err(AnswerError::Refused(error)) => error.kind() == ErrorKind::NoConsumer,
                    _ => true,
                };
                self.make(now, told);
            }
            Purpose::Consumer | Purpose::Make | Purpose::Claim | Purpose::GlanceBehind => match consumer_info(&message.payload) {
                Ok(info) if matches!(purpose, Purpose::GlanceBehind) => self.glanced(&info, now, told),
                Ok(info) => self.consumer_is(&info, now, told),
                Err(AnswerError::Refused(error)) if error.kind() == ErrorKind::NoConsumer && matches!(purpose, Purpose::Consumer) => {
                    if !self.setup.creates {
                        return self.none(Refusal::Answer(AnswerError::Refused(error)).into(), now, told);
                    }
                    self.is_compared = true;
                    self.make(now, told);
                }
                // Who may not change the consumer takes from it all the same.
                Err(_) if matches!(purpose, Purpose::Claim) => {
                    self.claims = CLAIMS_MAX;
                    self.standing = Standing::Draining;
                }
                Err(error) => self.none(Refusal::Answer(error).into(), now, told),
            },
        }
    }

    fn stream_is(&mut self, info: StreamInfo, purpose: Purpose, now: Duration, told: &mut Vec<Told>) {
        if info.config.retention.as_deref().is_some_and(|retention| retention != "limits") {
            return self.none(NoIntake::Retention, now, told);
        }
        let is_same = self.stream.as_ref().is_some_and(|stream| stream.created == info.created);
        self.stream = Some(Box::new(info.clone()));
        if !is_same {
            // What was taken of another stream of this name has no place here.
            self.taken.clear();
            self.unsaid = Unsaid::default();
            (self.order, self.memory, self.told_through, self.seen_through) = (Order::default(), None, 0, None);
            self.since.clear();
            self.quiet_through = 0;
        }
        if self.memory.is_none() {
            self.standing = Standing::Unremembered;
            told.push(Told::Stream(Box::new(info)));
        } else if !matches!(purpose, Purpose::Glance) {
            self.standing = Standing::Draining;
            self.unsaid.take_done().into_iter().for_each(|(reply, ack)| self.acknowledge(&reply, ack));
        } else if matches!(self.standing, Standing::Open) {
            self.see(info.state.first_seq, told);
            self.glance(self.ask_consumer.clone(), Purpose::GlanceBehind, now);
        }
    }

    /// What has come since the last look is not gone; of the rest up to the oldest message nobody knows whose it was.
    fn see(&mut self, first: u64, told: &mut Vec<Told>) {
        let came = self.since.range(..first).count() as u64;
        let seen = self.seen_through.unwrap_or_default();
        let gone = first.saturating_sub(seen + 1).saturating_sub(came);
        if gone > 0 {
            told.push(Told::Lost(gone));
        }
        self.since.clear();
        self.seen_through = Some(seen.max(self.told_through).max(first.saturating_sub(1)));
    }

    fn heard(&mut self, message: Message, now: Duration, told: &mut Vec<Told>) {
        if !matches!(self.standing, Standing::Open) {
            if let Some(Delivered { at, .. }) = Delivered::of(&message) {
                self.unsaid.comes_again(at.stream_seq, message);
            }
            return;
        }
        self.heard = now;
        let Some(delivered) = Delivered::of(&message) else { return self.status(&message, now, told) };
        if self.taken.len() + self.order.len() >= UNDER_WAY_MAX {
            return self.none(NoIntake::TooMany, now, told);
        }
        (self.waiting, self.has_come) = (delivered.pending, true);
        if let Some((left, _)) = self.pulls.values_mut().find(|(left, _)| *left > 0) {
            *left -= 1;
        }
        self.pulls.retain(|_, (left, _)| *left > 0);
        match self.order.came(delivered.at, message) {
            Came::InOrder(ready) => ready.into_iter().for_each(|(sequence, message)| self.ready(sequence, message, told)),
            // However slow the link is, it goes on as long as one comes behind the other.
            Came::Collected(is_awaited) => self.settle_until = if is_awaited { now + self.settle_max } else { self.settle_until },
            Came::PassedOver(message) => {
                self.unsaid.comes_again(delivered.at.stream_seq, message);
                self.pulls.clear();
                self.standing = Standing::Draining;
            }
        }
    }

    /// One that nothing is missing in front of.
    fn ready(&mut self, sequence: u64, message: Message, told: &mut Vec<Told>) {
        let reply = message.reply.clone().unwrap_or_default();
        self.told_through = self.told_through.max(sequence);
        if Some(sequence) > self.seen_through {
            self.since.insert(sequence);
        }
        if let Some(taken) = self.taken.get_mut(&sequence) {
            *taken = reply;
            return;
        }
        if self.memory.as_ref().is_some_and(|memory| memory.knows(sequence)) {
            told.push(Told::Repeated);
            return self.acknowledge(&reply, Ack::Taken);
        }
        self.taken.insert(sequence, reply);
        told.push(Told::Take(Delivery { sequence, message }));
    }

    /// A word about a pull.
    fn status(&mut self, message: &Message, now: Duration, told: &mut Vec<Told>) {
        let Some(status) = message.headers.as_ref().ok().and_then(|headers| headers.status.as_ref()) else { return };
        let pull = message.subject.rsplit('.').next().and_then(|number| number.parse::<u64>().ok());
        let said = status.description.to_ascii_lowercase();
        // The next message has no room in what is left of the pull. In one that has brought nothing it has none at all.
        let is_too_long = said == "message size exceeds maxbytes";
        let is_over = matches!(status.code, 404 | 408) || said == "batch completed" || is_too_long && self.has_come;
        match status.code {
            // It is there.
            100 => {}
            // Nothing has come in time, or as much as was asked for.
            _ if is_over => {
                self.has_come &= !is_too_long;
                self.pulls.retain(|number, _| Some(*number) != pull);
            }
            // The consumer is gone, or has another leader; or nobody answers.
            503 => self.none(Refusal::NobodyListens.into(), now, told),
            _ => self.none(NoIntake::Ended(words(&status.description)), now, told),
        }
    }

    fn none(&mut self, why: NoIntake, now: Duration, told: &mut Vec<Told>) {
        self.pulls.clear();
        self.drop_collected();
        self.standing = Standing::Unknown(now + self.setup.look_every);
        told.push(Told::None(why));
    }
}

#[cfg(test)]
mod tests;
