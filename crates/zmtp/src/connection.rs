//! One connection: bytes in, events out, and bytes to send.
//!
//! ```text
//! Greeting -> Handshake -> (Deciding -> Handshake) -> Traffic
//!     `-----------`-------------`-----------------------`----> Closed
//! ```

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use std::time::Duration;

use crate::assembly::{Assembly, Found, Place, Rules};
use crate::command::{self, Command};
use crate::error::{ConnectionError, ascii};
use crate::event::{Event, Peer, Received};
use crate::greeting::{GreetingReader, greeting};
use crate::handshake::{ClientHandshake, Decision, Established, Handshake, Progress, ServerHandshake};
use crate::limits::Limits;
use crate::message::Message;
use crate::protection::Protection;
use crate::random::Random;
use crate::sender::Sender;
use crate::settings::{ClientSettings, NULL, ServerSettings};

/// The protocol's state of one connection. It has no socket: the host reads and writes.
///
/// [`server`](Self::server) or [`client`](Self::client) makes it and appends the first bytes to send. What is read goes to
/// [`receive`](Self::receive), again and again until it finds nothing more. What is to be sent is appended to the `out` of each call:
/// after one call of `receive` that is at most the longest command of a handshake, so that a host whose peer does not read may stop calling it.
/// How long a handshake may take is for the host to say; it drops the connection.
pub struct Connection {
    limits: Limits,
    mechanism: &'static str,
    /// Whether the standard lets this end send ERROR: a server, and anybody with NULL.
    tells_errors: bool,
    assembly: Assembly,
    state: State,
}

enum State {
    Greeting {
        reader: GreetingReader,
        handshake: Box<Handshake>,
    },
    Handshake {
        minor: u8,
        handshake: Box<Handshake>,
    },
    /// Inside a step of the handshake.
    Stepping,
    Deciding {
        minor: u8,
        decision: Box<Decision>,
    },
    Traffic(Traffic),
    Closed(ConnectionError),
}

struct Traffic {
    peer: Peer,
    protection: Protection,
    /// Whether [`Event::Ready`] was given out.
    announced: bool,
}

/// What was found, and where; [`Event`] without the borrow.
enum Outcome {
    Authenticate,
    Ready,
    Message { place: Place, frames: usize },
    Subscribe(Place),
    Cancel(Place),
    Ping { ttl: Duration },
    Pong(Place),
}

/// How far one step came.
enum Step {
    /// So many bytes are taken, and there may be more in the rest.
    Goes(usize),
    /// All bytes are taken.
    Starves,
    Finds(usize, Outcome),
}

impl Connection {
    /// The end that was connected to. Appends our greeting.
    pub fn server(settings: Arc<ServerSettings>, random: Random, out: &mut Vec<u8>) -> Self {
        let mechanism = settings.security.mechanism();
        out.extend_from_slice(&greeting(mechanism, mechanism != NULL));
        let limits = settings.limits;
        let handshake = Handshake::Server(ServerHandshake::new(settings, random));
        Self::new(limits, mechanism, true, handshake)
    }

    /// The end that connects. Appends our greeting and the first command.
    pub fn client(settings: Arc<ClientSettings>, random: Random, out: &mut Vec<u8>) -> Self {
        let mechanism = settings.security.mechanism();
        out.extend_from_slice(&greeting(mechanism, false));
        let limits = settings.limits;
        let handshake = Handshake::Client(ClientHandshake::begin(settings, random, out));
        Self::new(limits, mechanism, mechanism == NULL, handshake)
    }

    fn new(limits: Limits, mechanism: &'static str, tells_errors: bool, handshake: Handshake) -> Self {
        let state = State::Greeting { reader: GreetingReader::new(), handshake: Box::new(handshake) };
        Self { limits, mechanism, tells_errors, assembly: Assembly::new(), state }
    }

    /// Takes bytes that were read, up to the first event. They are changed: a box is opened where it stands. The event may borrow from them.
    ///
    /// # Errors
    /// The peer's fault. What may be told of it is appended to `out`; when that is sent, the host drops the connection. Every further call
    /// returns the same.
    ///
    /// # Panics
    /// The host has not answered [`Event::Authenticate`].
    pub fn receive<'b>(&'b mut self, input: &'b mut [u8], out: &mut Vec<u8>) -> Result<Received<'b>, ConnectionError> {
        let mut taken = 0;
        loop {
            match self.step(&mut input[taken..], out)? {
                Step::Goes(more) => taken += more,
                Step::Starves => return Ok(Received { taken: input.len(), event: None }),
                Step::Finds(more, outcome) => {
                    let event = Some(self.event(outcome, &input[taken..]));
                    return Ok(Received { taken: taken + more, event });
                }
            }
        }
    }

    /// Answers [`Event::Authenticate`]: the peer may come in.
    ///
    /// # Panics
    /// Nobody asked.
    pub fn allow(&mut self, out: &mut Vec<u8>) {
        let State::Deciding { minor, decision } = std::mem::replace(&mut self.state, State::Stepping) else {
            panic!("no decision is waited for")
        };
        self.go(minor, decision.allow(out));
    }

    /// Ends the connection and tells the peer why, if it may be told: of the reason the first 255 characters, in ASCII.
    pub fn refuse(&mut self, reason: &str, out: &mut Vec<u8>) {
        self.close(ConnectionError::Denied { reason: reason.to_owned() }, out);
    }

    /// Who is at the other end, once the handshake is over.
    pub fn peer(&self) -> Option<&Peer> {
        match &self.state {
            State::Traffic(traffic) => Some(&traffic.peer),
            _ => None,
        }
    }

    /// What writes to the peer, once the handshake is over.
    pub fn sender(&mut self) -> Option<Sender<'_>> {
        match &mut self.state {
            State::Traffic(traffic) => Some(traffic.sender()),
            _ => None,
        }
    }

    /// Returns the size of the memory for messages that are not whole, in bytes.
    pub fn kept_bytes(&self) -> usize {
        self.assembly.capacity()
    }

    /// Gives back the memory that was needed for messages which came in pieces, as far as it is not needed now.
    pub fn shrink(&mut self) {
        self.assembly.shrink();
    }

    fn step(&mut self, input: &mut [u8], out: &mut Vec<u8>) -> Result<Step, ConnectionError> {
        let step = match &self.state {
            State::Greeting { .. } => self.take_greeting(input),
            State::Handshake { .. } => self.take_handshake(input, out),
            State::Deciding { .. } => panic!("the host was asked whether the peer may come in, and has not answered"),
            State::Traffic(_) => self.take_traffic(input, out),
            State::Stepping => unreachable!("no call returns amid a step"),
            State::Closed(error) => return Err(error.clone()),
        };
        step.inspect_err(|error| self.close(error.clone(), out))
    }

    fn take_greeting(&mut self, input: &[u8]) -> Result<Step, ConnectionError> {
        let State::Greeting { reader, .. } = &mut self.state else { unreachable!("a greeting is waited for") };
        let taken = reader.take(input, self.mechanism)?;
        let Some(minor) = reader.minor() else { return Ok(Step::Starves) };
        if let State::Greeting { handshake, .. } = std::mem::replace(&mut self.state, State::Stepping) {
            self.state = State::Handshake { minor, handshake };
        }
        Ok(Step::Goes(taken))
    }

    fn take_handshake(&mut self, input: &mut [u8], out: &mut Vec<u8>) -> Result<Step, ConnectionError> {
        let (taken, found) = self.assembly.next(input, &self.limits, &mut Rules::Handshake)?;
        let body = match found {
            None => return Ok(Step::Starves),
            Some(Found::Command(place)) => place.bytes_mut(input, self.assembly.kept_mut()),
            Some(Found::Message { .. }) => unreachable!("a message in a handshake is an error"),
        };
        let State::Handshake { minor, handshake } = std::mem::replace(&mut self.state, State::Stepping) else {
            unreachable!("a command of the handshake is waited for")
        };
        let progress = handshake.step(body, &self.limits, out)?;
        self.go(minor, progress);
        Ok(match self.state {
            State::Deciding { .. } => Step::Finds(taken, Outcome::Authenticate),
            _ => Step::Goes(taken),
        })
    }

    fn go(&mut self, minor: u8, progress: Progress) {
        self.state = match progress {
            Progress::Goes(handshake) => State::Handshake { minor, handshake: Box::new(handshake) },
            Progress::Asks(decision) => State::Deciding { minor, decision: Box::new(decision) },
            Progress::Done(Established { metadata, protection }) => {
                State::Traffic(Traffic { peer: Peer { metadata, minor }, protection, announced: false })
            }
        };
    }

    fn take_traffic(&mut self, input: &mut [u8], out: &mut Vec<u8>) -> Result<Step, ConnectionError> {
        let State::Traffic(traffic) = &mut self.state else { unreachable!("the handshake is over") };
        if !std::mem::replace(&mut traffic.announced, true) {
            return Ok(Step::Finds(0, Outcome::Ready));
        }
        let (taken, found) = self.assembly.next(input, &self.limits, &mut Rules::Traffic(&mut traffic.protection))?;
        let kept = self.assembly.kept();
        let outcome = match found {
            None => return Ok(Step::Starves),
            Some(Found::Message { place, frames }) => traffic.message(place, frames, input, kept),
            Some(Found::Command(place)) => traffic.command(place, input, kept, out)?,
        };
        Ok(outcome.map_or(Step::Goes(taken), |outcome| Step::Finds(taken, outcome)))
    }

    /// The event of what was found.
    fn event<'b>(&'b self, outcome: Outcome, input: &'b [u8]) -> Event<'b> {
        let bytes = |place: Place| place.bytes(input, self.assembly.kept());
        match (outcome, &self.state) {
            (Outcome::Authenticate, State::Deciding { decision, .. }) => Event::Authenticate(decision.credentials()),
            (Outcome::Message { place, frames }, State::Traffic(traffic)) => {
                Event::Message(Message::new(bytes(place), frames, traffic.protection.bytes()))
            }
            (Outcome::Ready, _) => Event::Ready,
            (Outcome::Subscribe(place), _) => Event::Subscribe(bytes(place)),
            (Outcome::Cancel(place), _) => Event::Cancel(bytes(place)),
            (Outcome::Ping { ttl }, _) => Event::Ping { ttl },
            (Outcome::Pong(place), _) => Event::Pong { context: bytes(place) },
            (Outcome::Authenticate | Outcome::Message { .. }, _) => unreachable!("each is found in its own state"),
        }
    }

    /// Tells the peer of its fault, where it may be told, and takes nothing more.
    fn close(&mut self, error: ConnectionError, out: &mut Vec<u8>) {
        let denied = matches!(error, ConnectionError::Denied { .. });
        let tells = self.tells_errors && error.may_be_told();
        match &mut self.state {
            State::Closed(_) => return,
            // Who may not speak ZMTP 3 at all is told nothing.
            State::Greeting { .. } => {}
            State::Handshake { .. } | State::Stepping | State::Deciding { .. } if tells => command::push_error(&error.to_string(), out),
            // What fails inside CURVE may be anybody's on the way.
            State::Traffic(traffic) if tells && (denied || traffic.protection.bytes() == 0) => {
                traffic.sender().error(&error.to_string(), out)
            }
            _ => {}
        }
        self.state = State::Closed(error);
    }
}

impl Debug for Connection {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Greeting { .. } => "greeting".to_owned(),
            State::Handshake { .. } | State::Stepping => "handshake".to_owned(),
            State::Deciding { .. } => "deciding".to_owned(),
            State::Traffic(traffic) => format!("traffic with {}", traffic.peer.metadata.socket_type()),
            State::Closed(error) => format!("closed: {error}"),
        };
        write!(f, "Connection {{ mechanism: {}, state: {state}, .. }}", self.mechanism)
    }
}

impl Traffic {
    fn sender(&mut self) -> Sender<'_> {
        Sender { protection: &mut self.protection, minor: self.peer.minor }
    }

    /// A message, or the subscription that it is.
    fn message(&self, place: Place, frames: usize, input: &[u8], kept: &[u8]) -> Option<Outcome> {
        if frames == 1 && self.peer.metadata.socket_type().subscribes() {
            let message = Message::new(place.bytes(input, kept), frames, self.protection.bytes());
            let [payload] = message.split().expect("one frame");
            match payload.split_first() {
                Some((1, prefix)) => return Some(Outcome::Subscribe(place.tail(prefix.len()))),
                Some((0, prefix)) => return Some(Outcome::Cancel(place.tail(prefix.len()))),
                _ => {}
            }
        }
        Some(Outcome::Message { place, frames })
    }

    /// A command; nothing comes of one that nobody knows.
    fn command(&mut self, place: Place, input: &[u8], kept: &[u8], out: &mut Vec<u8>) -> Result<Option<Outcome>, ConnectionError> {
        Ok(match Command::parse(place.bytes(input, kept))? {
            Command::Ping { ttl, context } => {
                self.sender().pong(context, out);
                Some(Outcome::Ping { ttl })
            }
            Command::Pong { context } => Some(Outcome::Pong(place.tail(context.len()))),
            Command::Subscribe { prefix } => Some(Outcome::Subscribe(place.tail(prefix.len()))),
            Command::Cancel { prefix } => Some(Outcome::Cancel(place.tail(prefix.len()))),
            Command::Error { reason } => return Err(ConnectionError::Told { reason: ascii(reason) }),
            Command::Unknown => None,
        })
    }
}
