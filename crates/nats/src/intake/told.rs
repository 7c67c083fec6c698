//! What an intake tells its taker.

use super::NoIntake;
use crate::{jetstream::StreamInfo, protocol::Message};

/// A message to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its sequence in the stream: which one it is for ever.
    pub sequence: u64,
    /// The message.
    pub message: Message,
}

/// What an intake tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The server of this name knows us.
    Open(String),
    /// The stream is like this: say what is remembered of it ([`super::Intake::remembers`]).
    Stream(Box<StreamInfo>),
    /// The consumer is there, and so many of its messages have not come yet.
    Ready(u64),
    /// Nothing comes; it is looked again.
    None(NoIntake),
    /// Take this, behind everything that was told before, and say [`super::Intake::done`] or [`super::Intake::refused`].
    Take(Delivery),
    /// Messages that had not come will not: the stream has let go of them, or they were acknowledged behind the memory and the consumer cannot be made again. At
    /// most so many were for this taker.
    Lost(u64),
    /// One that was taken came again.
    Repeated,
    /// The server has refused something, in its words.
    Refused(String),
    /// The server is about to go, or is not to bring anything more here: connect to another one.
    Leaving,
}
