//! A client's session with a relay, in whichever protocol: what is asked of it, what it tells, and the bytes of both.
//!
//! ```text
//! bytes ─> receive ─> Event            (a message has come, a listener is heard, a message has gone)
//! listen, send, taken, ... ─> pump ─> take_out ─> bytes
//! ```
//!
//! Time is since any one instant, the same for a session's whole life.

use std::time::Duration;

use crate::{
    Destination,
    native::{FrameError, Reason},
    stomp::StompError,
};

/// Bytes that wait to be written, beyond which no further message is added to them: one of 4 MiB may be on top.
pub const OUT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that wait to be written, beyond which the other end is given up: it makes us answer, and does not read.
pub const OUT_BYTES_STUCK: usize = 16 * 1024 * 1024;

/// Who listens: a number of the caller's, used once.
pub type Listener = u64;
/// A message that is to be sent: a number of the caller's, used once.
pub type Sending = u64;

/// What the other end is told when a message was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// So many bytes may come in its place; several may be added up and told at once.
    Credit(u32),
    /// What a broker knows the message by.
    Ack {
        /// The broker's word for it.
        ack: String,
        /// Its length.
        bytes: usize,
    },
}

/// A relay's no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why; `None` of a broker, which has words only, and of a relay that has just closed a channel.
    pub reason: Option<Reason>,
    /// The same in words.
    pub words: String,
}

/// What a session tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Both ends have greeted: the rest may be asked.
    Open,
    /// The relay knows of the listener: what is sent from now on is heard.
    Listening(Listener),
    /// A message has come, and waits to be taken.
    Message {
        /// For whom.
        listener: Listener,
        /// What it says.
        text: String,
        /// What is told when it was taken.
        receipt: Receipt,
    },
    /// A message of bytes has come, and waits to be taken.
    Bytes {
        /// For whom.
        listener: Listener,
        /// What it says, its zero byte included.
        bytes: Vec<u8>,
        /// What is told when it was taken.
        receipt: Receipt,
    },
    /// A message has come that is no text, nor said to be of bytes: it was passed over.
    NoText(Listener),
    /// The relay ends it; nothing more comes.
    Over {
        /// For whom.
        listener: Listener,
        /// Why.
        refusal: Refusal,
    },
    /// A message is among the bytes that are written next.
    Sent(Sending),
    /// The relay does not take a message.
    NotSent {
        /// Which.
        sending: Sending,
        /// Why.
        refusal: Refusal,
    },
}

/// Why a session cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionFault {
    /// The relay's bytes are no frames.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The broker's bytes are no frames, or none that it may send.
    #[error(transparent)]
    Stomp(#[from] StompError),
    /// A frame came that does not belong here.
    #[error("{found} came where {expected} was expected")]
    Unexpected {
        /// What may come.
        expected: &'static str,
        /// What came.
        found: &'static str,
    },
    /// A frame names a channel, a subscription or a receipt that there is not.
    #[error("it says something of {what} {number}, which there is not")]
    Unknown {
        /// A channel, a subscription.
        what: &'static str,
        /// Its number.
        number: u64,
    },
    /// More was sent than was asked for.
    #[error("it sends more than it was given credit for")]
    NoCredit,
    /// It ends the session.
    #[error("it ends the connection: {0}")]
    Refused(String),
    /// There is no version in common.
    #[error("it speaks the versions {oldest} to {newest} of the relay protocol, and this is version 1")]
    Version {
        /// Its newest.
        newest: u16,
        /// Its oldest.
        oldest: u16,
    },
    /// Nothing has come for too long.
    #[error("nothing was heard from it for too long")]
    Silent,
    /// It does not read what it makes us write.
    #[error("it does not read: {OUT_BYTES_STUCK} bytes wait to be written")]
    Stuck,
}

/// One connection's session. Behind a fault it is done with.
pub trait Session: Send {
    /// Takes what has come. What is told counts even if a fault follows it.
    fn receive(&mut self, bytes: &[u8], now: Duration, events: &mut Vec<Event>) -> Result<(), SessionFault>;

    /// Listens; [`Event::Listening`] or [`Event::Over`] follows.
    fn listen(&mut self, listener: Listener, destination: &Destination);

    /// Listens no more.
    fn leave(&mut self, listener: Listener);

    /// A message, or several, were taken.
    fn taken(&mut self, listener: Listener, receipt: Receipt);

    /// Sends; [`Event::Sent`] or [`Event::NotSent`] follows. The text is checked: it is not too long and has no zero byte.
    fn send(&mut self, sending: Sending, destination: &Destination, text: String, now: Duration, events: &mut Vec<Event>);

    /// Sends a message of bytes, which is checked: it is not too long, and begins with a zero byte, which no text has. A broker is sent texts only: then it is
    /// [`Event::NotSent`].
    fn send_bytes(&mut self, sending: Sending, destination: &Destination, bytes: Vec<u8>, now: Duration, events: &mut Vec<Event>);

    /// Does not send what has not gone yet.
    fn give_up(&mut self, sending: Sending);

    /// Removes a queue, where the protocol can say that.
    fn remove(&mut self, destination: &Destination, events: &mut Vec<Event>);

    /// Does what the time asks for, and says when to look again at the latest.
    fn beat(&mut self, now: Duration) -> Result<Duration, SessionFault>;

    /// Puts the messages that may go behind what is to be written, and exchanges that for `out`, which is empty.
    fn take_out(&mut self, now: Duration, out: &mut Vec<u8>, events: &mut Vec<Event>);

    /// Says that this is the end, where the protocol can.
    fn end(&mut self);
}
