//! What is said to a session, and what it says.

use std::{fmt, time::Duration};

use crate::tunnel::{Connection, Frame, Reason};

/// Whose gateway it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The consumer's: it has a port, and opens the session.
    Consumer,
    /// The provider's: it connects to the provider.
    Provider,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Consumer => "consumer",
            Self::Provider => "provider",
        })
    }
}

/// For how long a session waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// For a connection, and of a tunnel without keep-alives, ten times as long, for bytes. Half of it is for how long the other gateway may say nothing while there is a connection.
    pub idle: Duration,
    /// For the provider's gateway to be heard.
    pub opening: Duration,
}

impl Terms {
    /// For how long the other gateway may say nothing while there is a connection.
    pub fn silent(&self) -> Duration {
        self.idle / 2
    }

    /// The same in milliseconds, as the other gateway is told.
    pub fn silent_ms(&self) -> u32 {
        u32::try_from(self.silent().as_millis()).unwrap_or(u32::MAX)
    }
}

/// How it is with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// The other gateway has not been heard.
    Opening,
    /// It can be used.
    Open,
    /// Of every connection one direction has ended.
    HalfClosed,
    /// It is over, and the other gateway is being told.
    Closing,
    /// It is over.
    Closed,
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opening => "opening",
            Self::Open => "open",
            Self::HalfClosed => "half closed",
            Self::Closing => "closing",
            Self::Closed => "closed",
        })
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Connect to the provider.
    Connect(Connection),
    /// Write this to the connection, and say when it is [`Session::taken`](super::Session::taken).
    Bytes(Connection, Vec<u8>),
    /// Nothing more is to be written to the connection.
    End(Connection),
    /// Give the connection up, for this reason.
    Reset(Connection, String),
    /// More may be sent of the connection.
    Credit(Connection),
    /// The connection has had its time: others have come in its place.
    Retire(Connection),
    /// Tell the other gateway.
    Say(Frame),
}

/// What time has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing: look again at this time.
    Wait(Duration),
    /// The other gateway is to be told that this one is there.
    KeepAlive,
    /// The session is over.
    Over(Reason),
}
