//! What a connection tells its host.

use std::time::Duration;

use crate::handshake::Credentials;
use crate::message::Message;
use crate::metadata::Metadata;

/// Something that came from the peer, borrowed from where it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'b> {
    /// The peer has shown who it is. The host answers with [`allow`](crate::Connection::allow) or
    /// [`refuse`](crate::Connection::refuse) before it goes on.
    Authenticate(Credentials<'b>),
    /// The handshake is over: [`peer`](crate::Connection::peer) says who is there, and messages may be sent.
    Ready,
    /// A whole message.
    Message(Message<'b>),
    /// The peer wants messages whose first frame begins so; once more each time it says so. It comes as a command from any peer, and as a
    /// message from SUB and XSUB.
    Subscribe(&'b [u8]),
    /// The peer wants them once less.
    Cancel(&'b [u8]),
    /// The peer asked for a sign of life, which was written already.
    Ping {
        /// After so long a silence we may take it for dead; zero if it does not say.
        ttl: Duration,
    },
    /// The peer answered a [`ping`](crate::Sender::ping).
    Pong {
        /// What was sent with it.
        context: &'b [u8],
    },
}

/// What one call of [`receive`](crate::Connection::receive) found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'b> {
    /// Bytes of the input that are done with.
    pub taken: usize,
    /// What came with them. If nothing, all bytes are taken and more are needed.
    pub event: Option<Event<'b>>,
}

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its properties.
    pub metadata: Metadata,
    /// Minor version of ZMTP that both speak: 0 or 1.
    pub minor: u8,
}
