//! What becomes of a session.

use std::{io, time::Duration};

use bodkin_broker::{Epoch, publisher::Session, wire::WireError};
use bodkin_zmtp::ConnectionError;

use super::guaranteed::Guaranteed;

/// Why a session has ended. It is begun again by itself.
#[derive(Debug, thiserror::Error)]
pub enum SessionEnd {
    /// The network did not take or keep the connection.
    #[error("the connection broke: {0}")]
    Network(#[from] io::Error),
    /// The broker closed it.
    #[error("the broker closed the connection")]
    Closed,
    /// Connection and handshake took too long.
    #[error("the broker did not finish its handshake within {} ms", .0.as_millis())]
    Handshake(Duration),
    /// The broker gave no sign of life.
    #[error("the broker gave no sign of life")]
    Silent,
    /// The broker broke ZMTP's rules, or has told us that we did.
    #[error(transparent)]
    Zmtp(#[from] ConnectionError),
    /// A command or header that cannot be read.
    #[error("the broker's message cannot be read: {0}")]
    Wire(#[from] WireError),
    /// A message that is neither a command nor an event.
    #[error(
        "expected a command of one frame or an event of three (event type, payload, header) or four (and metadata), came {frames} frames: is this port Bodkin's?"
    )]
    Frames {
        /// How many frames it has.
        frames: usize,
    },
    /// An event type that is not UTF-8.
    #[error("the broker's event type is not UTF-8")]
    EventType,
    /// Metadata that are not UTF-8.
    #[error("the metadata of the broker's event are not UTF-8")]
    Metadata,
    /// A message that goes the other way.
    #[error("the broker sent {0}, which is not sent to such a client")]
    Unexpected(&'static str),
}

impl SessionEnd {
    /// Whether the broker speaks another mechanism than this client, which trying again does not change.
    pub fn is_other_mechanism(&self) -> bool {
        matches!(self, Self::Zmtp(ConnectionError::Mechanism { .. }))
    }
}

/// What has happened to the sessions, to the right to lead, and to what is guaranteed.
#[derive(Debug)]
pub enum SessionReport {
    /// The session's handshake is over.
    Ready(Session),
    /// It is over, and will be begun again.
    Ended(Session, SessionEnd),
    /// This broker leads from now on.
    Leads(Session, Epoch),
    /// Nobody is known to lead.
    Leaderless,
    /// A broker says that it leads in an epoch that is over, and is not believed.
    StaleEpoch(Session, Epoch),
    /// Both lead in one epoch, so they are no pair: the second one is not believed.
    TwoLeaders(Epoch),
    /// The broker that leads says what it guarantees from now on: when it begins to lead, and whenever that changes.
    Guaranteed(Session, Guaranteed),
}
