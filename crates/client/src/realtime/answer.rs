//! What every broker is told, by publishers and subscribers alike: who we are, that we want to know what is guaranteed, and what our clock shows.

use bodkin_broker::{Epoch, Incarnation, publisher::Session, wire::ClientFrame};

use super::clock;

/// Something to be sent on a session, whether its broker leads or not.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// To a broker whose handshake is over.
    Hello(Session),
    /// Behind it.
    Watch(Session),
    /// To one that has asked for the time.
    Clock { session: Session, sent_utc_ns: u64, received_utc_ns: u64 },
}

impl Answer {
    /// What a broker is told first.
    pub fn first(session: Session) -> [Self; 2] {
        [Self::Hello(session), Self::Watch(session)]
    }

    /// What this command is answered with, if every client answers it alike.
    pub fn to(session: Session, command: &ClientFrame<'_>) -> Option<Self> {
        match *command {
            ClientFrame::ClockRequest { sent_utc_ns, .. } => Some(Self::Clock { session, sent_utc_ns, received_utc_ns: clock::utc_ns() }),
            _ => None,
        }
    }

    pub fn session(self) -> Session {
        match self {
            Self::Hello(session) | Self::Watch(session) | Self::Clock { session, .. } => session,
        }
    }

    pub fn command(self, epoch: Epoch, incarnation: Incarnation, name: &str) -> ClientFrame<'_> {
        match self {
            Self::Hello(_) => ClientFrame::Hello { epoch, incarnation, name },
            Self::Watch(_) => ClientFrame::WatchGuarantee { epoch },
            Self::Clock { sent_utc_ns, received_utc_ns, .. } => {
                ClientFrame::ClockReply { epoch, sent_utc_ns, received_utc_ns, replied_utc_ns: clock::utc_ns() }
            }
        }
    }
}
