//! One connection to a NATS server: greeting, requests and their answers, signs of life.
//!
//! ```text
//! bytes ─> receive ─> Event             (it is open, an answer has come, nobody listens)
//! request, beat ─> take_out ─> bytes
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::protocol::{
    Connect, Credentials, Decoder, Headers, Info, Limits, Message, Operation, ProtocolError, Subject, connect, ping, pong, publish,
    subscribe,
};

/// Requests that wait for their answers at the same time.
pub const REQUESTS_MAX: usize = 1024;
/// Bytes that wait to be written, beyond which no further message is taken: one may be on top.
pub const OUT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes that wait to be written, beyond which the server is given up: it makes us answer, and does not read.
pub const OUT_BYTES_STUCK: usize = 16 * 1024 * 1024;
/// The number of the subscription to answers.
const INBOX_NUMBER: u64 = 1;
/// Those of what is listened to begin with it.
const HEARD_NUMBER: u64 = 2;
/// The status of a request that nobody listens to.
const NO_RESPONDERS: u16 = 503;

/// Who connects, and how long it waits.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the server shows of us.
    pub name: String,
    /// Who we are.
    pub credentials: Credentials,
    /// Answers come below this subject; nobody else may guess it, so its end is random.
    pub inbox: Subject,
    /// Is the socket below TLS?
    pub is_encrypted: bool,
    /// From the connection to the end of the greetings.
    pub greeting_wait_max: Duration,
    /// Without a byte from the server for so long it is asked whether it is there, and after as long again given up.
    pub silence_max: Duration,
}

/// A request of this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(u64);

/// What a connection tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Greetings are over: the server knows us, and hears us.
    Open,
    /// An answer.
    Answer(RequestId, Message),
    /// A message of what is listened to, by its place among [`Client::listening_below`].
    Heard(usize, Message),
    /// Nobody listens to what the request was sent to: of JetStream, there is no such stream, or no JetStream.
    NobodyListens(RequestId),
    /// No answer has come in time: it is not known what has become of the request.
    NoAnswer(RequestId),
    /// The server has refused something, in its words, and goes on; the request, if it was one, gets no answer.
    Refused(String),
    /// The server is about to go: connect to another one.
    Leaving,
}

/// Why a connection is at its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Its bytes are not the protocol's.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// It asks for TLS on a connection that has none.
    #[error("the server asks for TLS, which is not set up for it")]
    TlsRequired,
    /// It is too old.
    #[error("the server {0:?} knows no headers: NATS 2.2 or later is needed")]
    NoHeaders(String),
    /// Something came before its greeting.
    #[error("the server does not begin with INFO")]
    NoGreeting,
    /// It does not take who we are.
    #[error("the server refuses this connection: {0}")]
    Denied(String),
    /// Nothing of a NATS server has come.
    #[error(
        "expected INFO of a NATS server within {0:?}, and none came: check that the address is that of a NATS server without handshake_first"
    )]
    NoInfo(Duration),
    /// It does not greet.
    #[error("the server has not greeted within {0:?}")]
    GreetingWait(Duration),
    /// It is silent.
    #[error("the server has been silent for {0:?}")]
    Silent(Duration),
    /// It makes us write, and does not read.
    #[error("{OUT_BYTES_STUCK} bytes wait to be written, and the server does not read them")]
    Stuck,
}

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// There is no connection.
    #[error("the connection is not open")]
    Closed,
    /// Its answer would have no place, or its bytes would not.
    #[error("more waits for the server than has room")]
    Full,
    /// The server would end the connection.
    #[error("the server takes messages of {bytes_max} bytes, and this one has {bytes}")]
    TooLong {
        /// Its bytes.
        bytes: usize,
        /// What the server takes.
        bytes_max: usize,
    },
}

/// Where a connection is.
#[derive(Debug)]
enum State {
    /// INFO is waited for.
    Begun,
    /// The first pong is waited for: what CONNECT says has been looked at then.
    Greeting,
    Open,
    Closed(Fault),
}

/// One connection, from its begin to its end.
#[derive(Debug)]
pub struct Client {
    options: Options,
    /// Messages one token below these are heard.
    listens: Vec<Subject>,
    state: State,
    decoder: Decoder,
    out: Vec<u8>,
    info: Option<Info>,
    begun: Duration,
    /// When something has come last.
    heard: Duration,
    /// It was asked whether it is there, and has said nothing since.
    has_asked: bool,
    next_request: u64,
    /// Requests without an answer, and when it is given up.
    waiting: BTreeMap<RequestId, Duration>,
    /// The same by when they are given up.
    ends: BTreeSet<(Duration, RequestId)>,
}

impl Client {
    /// Connected to a server just now.
    pub fn new(options: Options, now: Duration) -> Self {
        Self {
            options,
            listens: Vec::new(),
            state: State::Begun,
            decoder: Decoder::new(Limits::default()),
            out: Vec::new(),
            info: None,
            begun: now,
            heard: now,
            has_asked: false,
            next_request: 1,
            waiting: BTreeMap::new(),
            ends: BTreeSet::new(),
        }
    }

    /// The same, which hears what others publish one token below this subject, too.
    #[must_use]
    pub fn listening_below(mut self, subject: Subject) -> Self {
        self.listens.push(subject);
        self
    }

    /// What the server has said of itself.
    pub fn info(&self) -> Option<&Info> {
        self.info.as_ref()
    }

    /// Are greetings over, and is it not at its end?
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    /// Bytes have come.
    ///
    /// # Errors
    /// The connection is at its end; what was told before counts.
    pub fn receive(&mut self, mut bytes: &[u8], now: Duration, events: &mut Vec<Event>) -> Result<(), Fault> {
        if let State::Closed(fault) = &self.state {
            return Err(fault.clone());
        }
        if !bytes.is_empty() {
            (self.heard, self.has_asked) = (now, false);
        }
        let received = self.take(&mut bytes, events);
        self.closing(received)
    }

    fn take(&mut self, bytes: &mut &[u8], events: &mut Vec<Event>) -> Result<(), Fault> {
        while let Some(operation) = self.decoder.receive(bytes)? {
            match operation {
                Operation::Info(info) => self.greet(info, events)?,
                _ if matches!(self.state, State::Begun) => return Err(Fault::NoGreeting),
                Operation::Message(message) if message.subscription == INBOX_NUMBER => self.answered(message, events),
                Operation::Message(message) => events.extend(self.listened(&message).map(|at| Event::Heard(at, message))),
                Operation::Ping => {
                    if self.out.len() > OUT_BYTES_STUCK {
                        return Err(Fault::Stuck);
                    }
                    pong(&mut self.out);
                }
                Operation::Pong if matches!(self.state, State::Greeting) => {
                    self.state = State::Open;
                    events.push(Event::Open);
                }
                Operation::Pong | Operation::Ok => {}
                Operation::Refused(words) => events.push(refused(words, self.is_open())?),
            }
        }
        Ok(())
    }

    fn greet(&mut self, info: Info, events: &mut Vec<Event>) -> Result<(), Fault> {
        if info.tls_required && !self.options.is_encrypted {
            return Err(Fault::TlsRequired);
        }
        if !info.headers {
            return Err(Fault::NoHeaders(info.server));
        }
        // A stored message comes back in JSON, in base64: a third more, and what is beside it.
        self.decoder.limit(Limits { message_bytes_max: info.max_payload.saturating_mul(2).max(Limits::default().message_bytes_max) });
        if info.lame_duck {
            events.push(Event::Leaving);
        }
        self.info = Some(info);
        if matches!(self.state, State::Begun) {
            let Options { name, credentials, is_encrypted, inbox, .. } = &self.options;
            let nonce = self.info.as_ref().and_then(|info| info.nonce.as_deref());
            connect(&Connect::new(name, credentials, nonce, *is_encrypted), &mut self.out);
            subscribe(inbox, true, INBOX_NUMBER, &mut self.out);
            for (subject, number) in self.listens.iter().zip(HEARD_NUMBER..) {
                subscribe(subject, true, number, &mut self.out);
            }
            ping(&mut self.out);
            self.state = State::Greeting;
        }
        Ok(())
    }

    /// Which of what is listened to a message is of. The server names the number of our subscription; one that is none of ours is nobody's.
    fn listened(&self, message: &Message) -> Option<usize> {
        let at = usize::try_from(message.subscription.checked_sub(HEARD_NUMBER)?).ok()?;
        (at < self.listens.len()).then_some(at)
    }

    /// A message for the inbox: whatever is not the answer to a request that waits is passed over, for it may be a late one.
    fn answered(&mut self, message: Message, events: &mut Vec<Event>) {
        let below = message.subject.strip_prefix(self.options.inbox.as_str()).and_then(|rest| rest.strip_prefix('.'));
        let Some(request) = below.and_then(|number| number.parse().ok()).map(RequestId) else { return };
        let Some(end) = self.waiting.remove(&request) else { return };
        self.ends.remove(&(end, request));
        let status = message.headers.as_ref().ok().and_then(|headers| headers.status.as_ref());
        let is_alone = message.payload.is_empty() && status.is_some_and(|status| status.code == NO_RESPONDERS);
        events.push(if is_alone { Event::NobodyListens(request) } else { Event::Answer(request, message) });
    }

    /// Sends a message that has an answer, which is waited for until `wait_max` from now.
    ///
    /// # Errors
    /// It is not taken.
    pub fn request(
        &mut self,
        subject: &Subject,
        headers: &Headers,
        payload: &[u8],
        now: Duration,
        wait_max: Duration,
    ) -> Result<RequestId, NotTaken> {
        if self.waiting.len() == REQUESTS_MAX {
            return Err(NotTaken::Full);
        }
        let request = RequestId(self.next_request);
        let reply = Subject::new(&format!("{}.{}", self.options.inbox, request.0)).expect("a number is a token");
        self.send(subject, Some(&reply), headers, payload)?;
        self.next_request += 1;
        let end = now + wait_max;
        self.waiting.insert(request, end);
        self.ends.insert((end, request));
        Ok(request)
    }

    /// Sends a message that has no answer: whoever listens now hears it, once at the most.
    ///
    /// # Errors
    /// It is not taken.
    pub fn publish(&mut self, subject: &Subject, headers: &Headers, payload: &[u8]) -> Result<(), NotTaken> {
        self.send(subject, None, headers, payload)
    }

    /// Sends a message whose answers come as what is listened to does.
    ///
    /// # Errors
    /// It is not taken.
    pub fn publish_answered(&mut self, subject: &Subject, reply: &Subject, payload: &[u8]) -> Result<(), NotTaken> {
        self.send(subject, Some(reply), &Headers::default(), payload)
    }

    fn send(&mut self, subject: &Subject, reply: Option<&Subject>, headers: &Headers, payload: &[u8]) -> Result<(), NotTaken> {
        let Some(info) = self.info.as_ref().filter(|_| self.is_open()) else { return Err(NotTaken::Closed) };
        if self.out.len() > OUT_BYTES_MAX {
            return Err(NotTaken::Full);
        }
        let bytes_max = info.max_payload;
        let begin = self.out.len();
        publish(subject, reply, headers, payload, &mut self.out);
        // The line is not counted by the server; a message that has room with it has room.
        let bytes = self.out.len() - begin;
        if bytes > bytes_max {
            self.out.truncate(begin);
            return Err(NotTaken::TooLong { bytes, bytes_max });
        }
        Ok(())
    }

    /// Time has passed: requests are given up, and a silent server is asked, then given up. `Ok` has when to come again at the latest.
    ///
    /// # Errors
    /// The connection is at its end.
    pub fn beat(&mut self, now: Duration, events: &mut Vec<Event>) -> Result<Duration, Fault> {
        if let State::Closed(fault) = &self.state {
            return Err(fault.clone());
        }
        while let Some((end, request)) = self.ends.first().copied().filter(|(end, _)| *end <= now) {
            self.ends.remove(&(end, request));
            self.waiting.remove(&request);
            events.push(Event::NoAnswer(request));
        }
        let alive = self.alive(now);
        self.closing(alive)?;
        let request_end = self.ends.first().map(|(end, _)| *end);
        Ok(self.silence_end().min(request_end.unwrap_or(Duration::MAX)))
    }

    fn alive(&mut self, now: Duration) -> Result<(), Fault> {
        if !self.is_open() {
            let wait_max = self.options.greeting_wait_max;
            return match self.state {
                _ if now < self.begun + wait_max => Ok(()),
                State::Begun => Err(Fault::NoInfo(wait_max)),
                _ => Err(Fault::GreetingWait(wait_max)),
            };
        }
        if now < self.silence_end() {
            return Ok(());
        }
        if self.has_asked {
            return Err(Fault::Silent(now - self.heard));
        }
        self.has_asked = true;
        ping(&mut self.out);
        Ok(())
    }

    fn silence_end(&self) -> Duration {
        match self.is_open() {
            false => self.begun + self.options.greeting_wait_max,
            true => self.heard + self.options.silence_max * if self.has_asked { 2 } else { 1 },
        }
    }

    /// Bytes for the server, behind what is in `out`.
    pub fn take_out(&mut self, out: &mut Vec<u8>) {
        if out.is_empty() {
            // A batch is not copied once more.
            std::mem::swap(out, &mut self.out);
        } else {
            out.append(&mut self.out);
        }
    }

    fn closing(&mut self, result: Result<(), Fault>) -> Result<(), Fault> {
        if let Err(fault) = &result {
            self.state = State::Closed(fault.clone());
            self.out.clear();
        }
        result
    }
}

/// Words behind which a server goes on; behind all others it closes, and in front of the end of the greetings they are about who we are.
fn refused(words: String, is_open: bool) -> Result<Event, Fault> {
    let goes_on = ["permissions violation", "invalid subject"].iter().any(|begin| words.to_ascii_lowercase().starts_with(begin));
    if goes_on && is_open { Ok(Event::Refused(words)) } else { Err(Fault::Denied(words)) }
}

#[cfg(test)]
mod tests;
