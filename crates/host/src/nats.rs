//! Connections to NATS servers, for whatever is said over them: events that go to a fleet and come from there, and events between nodes.
//!
//! ```text
//! Speaker (a machine of the crate nats) <─> Line: one connection after the other to a list of servers, carried by a LineThread <─> Connection: bytes, plain or in TLS
//! ```

mod connection;
mod line;
mod place;
mod thread;
mod tls;

use std::hash::{BuildHasher, RandomState};

use bodkin_nats::protocol::Subject;

pub(crate) use self::{
    connection::Connection,
    line::{Line, LineEnd, Speaker},
    thread::{LineThread, Stop},
};
pub use self::{
    place::{NatsPlace, NatsServer, NoNats, parse_server},
    tls::{CertificateFiles, CertificateSettings, NatsTls, NatsTlsError},
};

/// A subject that nobody guesses, for answers.
pub(crate) fn inbox() -> Subject {
    let random = RandomState::new();
    Subject::new(&format!("_INBOX.{:016x}{:016x}", random.hash_one(1), random.hash_one(2))).expect("digits are a token")
}
