//! What the two ends say.

use crate::Destination;

/// A channel of a connection: one destination, in one direction. The client numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u32);

impl Channel {
    /// Stands for the connection itself in [`Frame::Refused`].
    pub const CONNECTION: Self = Self(0);
}

/// What the client does on a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends messages; the relay gives credit.
    Send,
    /// Listens for messages; the client gives credit.
    Listen,
}

/// Why the relay refuses or ends something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no version that both know.
    Version,
    /// This client may not do that with this destination.
    NotAllowed,
    /// The relay has as many channels, destinations or bytes as it may have.
    Full,
    /// The channel's number is in use, or not in use.
    Channel,
    /// More was sent than there was credit for.
    NoCredit,
    /// The queue was removed, with what was in it.
    Removed,
    /// Nothing was heard for too long.
    Silent,
    /// The relay is stopping: come back.
    Stopping,
}

/// A frame. Integers are unsigned; what is borrowed is the buffer's that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The first frame of either side; its layout never changes.
    Greeting {
        /// The newest version that the sender speaks.
        newest: u16,
        /// The oldest.
        oldest: u16,
    },
    /// The client opens a channel.
    Open {
        /// Its number: any but 0 that is not in use on this connection.
        channel: Channel,
        /// What it is for.
        role: Role,
        /// Which destination.
        destination: Destination,
    },
    /// Either side closes a channel. What a listener was sent is its own; what waits goes to another one, or waits on.
    Close {
        /// Its number, which may be used again when the other side has said so too.
        channel: Channel,
    },
    /// A message, in either direction.
    Message {
        /// On which channel.
        channel: Channel,
        /// What it says, at most [`MESSAGE_BYTES_MAX`](super::MESSAGE_BYTES_MAX) bytes.
        bytes: &'a [u8],
    },
    /// The receiver of a channel's messages takes so many bytes more. The sender may write a message while its credit is above zero: one message may
    /// exceed it, and what it exceeds it by is paid from the next credit.
    Credit {
        /// Which channel.
        channel: Channel,
        /// So many bytes, at least 1.
        bytes: u32,
    },
    /// The client removes a queue with all that waits in it.
    Remove {
        /// Which one.
        destination: Destination,
    },
    /// The relay refuses or ends a channel, or with [`Channel::CONNECTION`] the whole connection.
    Refused {
        /// Which one.
        channel: Channel,
        /// Why.
        reason: Reason,
        /// The same in words, for a log; at most 1024 bytes.
        words: &'a str,
    },
    /// Is the other side there? It answers with [`Self::Pong`].
    Ping {
        /// Any number.
        token: u64,
    },
    /// The other side is there.
    Pong {
        /// The number that was asked with.
        token: u64,
    },
}
