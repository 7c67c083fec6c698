//! From the greetings to the end of the handshake: commands in, commands out, and at last who the peer is.
//!
//! A state is consumed by the command that it waits for, so none can be in two, and none is left that was passed.

mod client;
mod server;

pub(crate) use client::ClientHandshake;
pub(crate) use server::{Decision, ServerHandshake};

pub use server::Credentials;

use crate::error::ConnectionError;
use crate::limits::Limits;
use crate::metadata::Metadata;
use crate::protection::Protection;

const READY: &str = "READY";

/// One end's handshake, which waits for a command.
pub(crate) enum Handshake {
    Server(ServerHandshake),
    Client(ClientHandshake),
}

/// What follows a command.
pub(crate) enum Progress {
    /// The next command.
    Goes(Handshake),
    /// The host's decision.
    Asks(Decision),
    /// Traffic.
    Done(Established),
}

/// The handshake's result.
pub(crate) struct Established {
    /// The peer's properties.
    pub metadata: Metadata,
    pub protection: Protection,
}

impl Handshake {
    /// Takes a command's body and appends the answer.
    pub fn step(self, body: &mut [u8], limits: &Limits, out: &mut Vec<u8>) -> Result<Progress, ConnectionError> {
        match self {
            Self::Server(server) => server.step(body, limits, out),
            Self::Client(client) => client.step(body, limits, out),
        }
    }
}
