//! Relays between clouds, as gatekeepers and gateways see them: messages go to destinations and come from them.
//!
//! ```text
//! gatekeeper, gateway ── Relay: send, listen, remove ──> one task for each relay ══ TLS ══ relay ══ the other clouds
//! ```
//!
//! A relay keeps nothing that was sent over a connection that breaks: whoever counts on a message says so in an answer of its own. So [`Relay::send`] is done
//! when the message is on its way, and a listener is told where messages may be missing ([`Heard::Interrupted`]).

mod admission;
mod dialer;
pub(crate) mod flow;
#[cfg(test)]
mod lab;
mod link;
#[cfg(test)]
pub(crate) mod memory;
pub mod server;
mod task;

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bodkin_arrowhead::record;
pub use bodkin_relay::{Destination, native::MESSAGE_BYTES_MAX};
use bodkin_relay::{
    native::{Reason, WINDOW_BYTES},
    session::{Listener, Receipt},
};
use tokio::sync::mpsc;

pub use self::{
    admission::{CloudAdmission, Guests, ListedAdmission},
    dialer::{DialError, Dialer},
    link::Relays,
};

/// Connecting, with the TLS handshake and the protocol's greeting.
pub const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Shortest time between two attempts to connect. Each failure doubles it up to [`RETRY_MAX`]; whoever wants to send or to listen meanwhile has it tried as soon as this has passed.
pub const RETRY_MIN: Duration = Duration::from_secs(1);
/// Longest time between two attempts.
pub const RETRY_MAX: Duration = Duration::from_secs(60);
/// Listeners at one relay; one more is refused ([`RelayError::Listeners`]). A tunnel has two at either end.
pub const LISTENERS_MAX: usize = 4_096;
/// Messages that are under way to one relay at the same time; who sends one more waits until one has gone.
pub const SENDS_MAX: usize = 4_096;

/// What is asked of a relay, until it is answered. May be given up at any time: a message that has not gone then does not go.
pub type Asked<'a, T> = Pin<Box<dyn Future<Output = Result<T, RelayError>> + Send + 'a>>;

/// A relay that clouds meet at.
pub trait Relay: Send + Sync + 'static {
    /// Where it is.
    fn place(&self) -> &RelayPlace;

    /// How it is with the connection.
    fn state(&self) -> LinkState;

    /// Sends a message: done when it is on its way, which waits for as long as the destination takes none. Messages of one sender to one destination stay in their order.
    ///
    /// # Errors
    /// There is no connection and none can be made, or it breaks before the message has gone; the relay refuses; the message has more than
    /// [`MESSAGE_BYTES_MAX`] bytes, or a zero byte, which STOMP has no word for.
    fn send<'a>(&'a self, destination: &'a Destination, message: String) -> Asked<'a, ()>;

    /// Whether messages of bytes may be sent at present: Bodkin's own relay carries them, a broker has texts only.
    fn carries_bytes(&self) -> bool {
        matches!(self.state(), LinkState::Open(Protocol::Native))
    }

    /// Sends a message of bytes, as [`Self::send`] does a text. It begins with a zero byte, which no text has: by that it is known.
    ///
    /// # Errors
    /// As of [`Self::send`]; it does not begin so; the relay carries texts only ([`Self::carries_bytes`]).
    fn send_bytes<'a>(&'a self, destination: &'a Destination, message: Vec<u8>) -> Asked<'a, ()>;

    /// Listens: done when the relay has been told, so that whoever is told of it behind can send. Ends when the [`Messages`] are dropped.
    ///
    /// # Errors
    /// There is no connection and none can be made; there are [`LISTENERS_MAX`] listeners; the relay refuses.
    fn listen<'a>(&'a self, destination: &'a Destination) -> Asked<'a, Messages>;

    /// Removes a queue with what waits in it. Where the relay does that by itself some time after the last one has listened, as brokers do, nothing is said.
    ///
    /// # Errors
    /// There is no connection and none can be made.
    fn remove<'a>(&'a self, destination: &'a Destination) -> Asked<'a, ()>;
}

/// Where a relay is, and how it is known again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelayPlace {
    /// Host name or IP address.
    pub address: Arc<str>,
    /// Port.
    pub port: u16,
    /// Whether it is reached by TLS. Without, it is a broker that speaks STOMP.
    pub secure: bool,
    /// Base64 of its public key: whoever shows another one is not it. `None`: its certificate has to lead to an authority that this cloud believes.
    pub authentication_info: Option<Arc<str>>,
}

impl From<&record::Relay> for RelayPlace {
    fn from(relay: &record::Relay) -> Self {
        let (address, authentication_info) = (relay.address.clone(), relay.authentication_info.clone());
        Self { address, port: relay.port, secure: relay.secure, authentication_info }
    }
}

impl fmt::Display for RelayPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.address.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{open}{}{close}:{}", self.address, self.port)
    }
}

/// What a relay is spoken to in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Bodkin's own, which it has chosen in the TLS handshake.
    Native,
    /// STOMP 1.2.
    Stomp,
}

/// How it is with a connection to a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// It is being made.
    Connecting,
    /// It is there.
    Open(Protocol),
    /// There is none, for this reason, and it will be tried again.
    Down(Arc<str>),
    /// Nobody wants it any more.
    Ended,
}

impl fmt::Display for LinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connecting => f.write_str("connecting"),
            Self::Open(Protocol::Native) => f.write_str("open (bodkin-relay/1)"),
            Self::Open(Protocol::Stomp) => f.write_str("open (STOMP 1.2)"),
            Self::Down(reason) => write!(f, "down: {reason}"),
            Self::Ended => f.write_str("ended"),
        }
    }
}

/// Why a relay does not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RelayError {
    /// There is no connection.
    #[error("there is no connection to the relay {place}: {reason}")]
    Down {
        /// Which relay.
        place: String,
        /// Why.
        reason: Arc<str>,
    },
    /// The connection broke before the message had gone.
    #[error("the connection to the relay {place} broke: {reason}")]
    Lost {
        /// Which relay.
        place: String,
        /// Why.
        reason: Arc<str>,
    },
    /// The relay says no.
    #[error("the relay {place} refuses: {words}")]
    Refused {
        /// Which relay.
        place: String,
        /// Its reason; `None` of a broker, which has words only.
        reason: Option<Reason>,
        /// The same in words.
        words: Arc<str>,
    },
    /// The queue that was listened to was removed.
    #[error("the queue {0} was removed")]
    Removed(Destination),
    /// The message is too long for any relay.
    #[error("a message to a relay has at most {MESSAGE_BYTES_MAX} bytes, this one has {0}")]
    TooLong(usize),
    /// The message has a zero byte.
    #[error("a message to a relay is a text without zero bytes, this one has one")]
    ZeroByte,
    /// The message of bytes would be taken for a text.
    #[error("a message of bytes begins with a zero byte, this one does not")]
    NoMark,
    /// Too many listen.
    #[error("at most {LISTENERS_MAX} listeners at one relay")]
    Listeners,
    /// The relay is not wanted any more: its record was removed, or the cloud stops.
    #[error("the relay {0} is not used any more")]
    Ended(String),
}

/// Refuses what no relay can carry.
pub fn check_message(message: &str) -> Result<(), RelayError> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(RelayError::TooLong(message.len()));
    }
    if message.contains('\0') { Err(RelayError::ZeroByte) } else { Ok(()) }
}

/// Refuses what is no message of bytes, or too long for one.
pub fn check_bytes(message: &[u8]) -> Result<(), RelayError> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(RelayError::TooLong(message.len()));
    }
    if message.first() == Some(&0) { Ok(()) } else { Err(RelayError::NoMark) }
}

/// A message, as it goes through a connection's task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// A text.
    Text(String),
    /// Bytes, a zero byte in front.
    Bytes(Vec<u8>),
}

/// What a listener is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A message.
    Message(String),
    /// A message of bytes, the zero byte in front of them included. Only gateways say such.
    Bytes(Vec<u8>),
    /// The connection broke and was made again: what was sent meanwhile, and what was on its way, may be missing.
    Interrupted,
}

/// What the connection's task gives a listener.
#[derive(Debug)]
pub(crate) enum Delivered {
    /// A message of this connection, and what taking it is told by.
    Message(Message, Taken),
    /// As [`Heard::Interrupted`].
    Interrupted,
    /// Nothing more comes.
    Over(RelayError),
}

/// A message was taken. It says nothing to another connection than the one that the message has come by.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) connection: u64,
    pub(crate) receipt: Receipt,
}

/// Told the connection's task by whoever listens.
#[derive(Debug)]
pub(crate) enum Notice {
    /// A listener has taken messages.
    Taken(Listener, Taken),
    /// A listener is gone.
    Left(Listener),
}

/// What comes from a destination. The relay sends no more than is taken: whoever stops calling [`Self::next`] holds up those who send to this destination, and nobody else.
/// Dropped, it listens no more.
#[derive(Debug)]
pub struct Messages {
    listener: Listener,
    /// Bounded by the credit, or the prefetch, that the task gives.
    delivered: mpsc::UnboundedReceiver<Delivered>,
    notices: mpsc::UnboundedSender<Notice>,
    /// Credit of a connection that is to be given back: it is told some thousands of bytes at a time.
    untold: Untold,
    over: Option<RelayError>,
}

#[derive(Debug, Default)]
struct Untold {
    connection: u64,
    bytes: u32,
}

impl Messages {
    /// Of a listener.
    pub(crate) fn new(listener: Listener, delivered: mpsc::UnboundedReceiver<Delivered>, notices: mpsc::UnboundedSender<Notice>) -> Self {
        Self { listener, delivered, notices, untold: Untold::default(), over: None }
    }

    /// Waits for the next message. May be given up: nothing is lost by that.
    ///
    /// # Errors
    /// Nothing more comes: the queue was removed, the relay refuses to go on, or is not used any more. The same error follows at every further call.
    pub async fn next(&mut self) -> Result<Heard, RelayError> {
        if let Some(over) = &self.over {
            return Err(over.clone());
        }
        let ended = || Delivered::Over(RelayError::Ended("that was listened to".to_owned()));
        match self.delivered.recv().await.unwrap_or_else(ended) {
            Delivered::Message(message, taken) => {
                self.tell(taken);
                Ok(match message {
                    Message::Text(text) => Heard::Message(text),
                    Message::Bytes(bytes) => Heard::Bytes(bytes),
                })
            }
            Delivered::Interrupted => Ok(Heard::Interrupted),
            Delivered::Over(error) => Err(self.over.insert(error).clone()),
        }
    }

    fn tell(&mut self, Taken { connection, receipt }: Taken) {
        let receipt = match receipt {
            Receipt::Credit(bytes) => {
                // Credit of a connection that broke went with it.
                let before = if self.untold.connection == connection { self.untold.bytes } else { 0 };
                self.untold = Untold { connection, bytes: before.saturating_add(bytes) };
                if self.untold.bytes < WINDOW_BYTES / 2 {
                    return;
                }
                Receipt::Credit(std::mem::take(&mut self.untold.bytes))
            }
            ack => ack,
        };
        // A task that is gone needs to be told nothing.
        let _ = self.notices.send(Notice::Taken(self.listener, Taken { connection, receipt }));
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        let _ = self.notices.send(Notice::Left(self.listener));
    }
}
