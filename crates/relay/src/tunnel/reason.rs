//! Why a tunnel's session ends.

use std::time::Duration;

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Nobody has ever connected.
    #[error("nobody has connected for {0:?}")]
    Unused(Duration),
    /// Nobody has connected any more, or without keep-alives nothing was said.
    #[error("nobody has used it for {0:?}")]
    Idle(Duration),
    /// The provider's gateway was never heard.
    #[error("the other gateway has not answered within {0:?}")]
    NoAnswer(Duration),
    /// The other gateway was heard, and is not any more.
    #[error("nothing was heard of the other gateway for {0:?}")]
    Silent(Duration),
    /// The relay has lost messages.
    #[error("{0} messages of the other gateway were lost at the relay")]
    Lost(u64),
    /// The relay cannot go on.
    #[error("{0}")]
    Relay(String),
    /// The other gateway has ended it, in its words.
    #[error("the other gateway has closed it: {0}")]
    Peer(String),
    /// The other gateway does not keep to the protocol.
    #[error("the other gateway has sent what it may not send: {0}")]
    Fault(String),
    /// The queues of the session carry messages that have no use in the session.
    #[error("{0} messages in a row were forged, of another session, or without use")]
    Strays(usize),
    /// Its only connection has ended.
    #[error("the connection has ended{}", .0.as_ref().map_or_else(String::new, |why| format!(": {why}")))]
    Ended(Option<String>),
    /// A core system, or the operator, has closed it.
    #[error("it was closed by {0}")]
    Closed(&'static str),
    /// A newer session of the same consumer, provider, and service has its port.
    #[error("a newer session of the same consumer, provider, and service replaced it while nobody was connected")]
    Replaced,
    /// The gateway stops.
    #[error("the gateway stops")]
    Stopping,
}

impl Reason {
    /// The other gateway has sent what it may not send.
    pub(super) fn fault(what: &str) -> Self {
        Self::Fault(what.to_owned())
    }
}
