//! STOMP 1.2 (<https://stomp.github.io/stomp-specification-1.2.html>), as far as a client of a broker between clouds needs it.
//!
//! ```text
//! bytes ─> Decoder (limits, escapes, lengths) ─> Frame ─> ServerFrame (CONNECTED, MESSAGE, RECEIPT, ERROR)
//! bytes <───────────────────────── Frame::write <─ Frame <─ request::{connect, subscribe, send_text, ...}
//! ```
//!
//! Messages are texts, because JMS' TextMessage is what Java gatekeepers and gateways take. Whoever sends anything at all is alive
//! ([`Pulse`]): the decoder passes over the line ends that are heart-beats.

mod client;
mod decoder;
mod error;
mod escape;
mod frame;
mod heart_beat;
mod logins;
pub mod request;
mod server;

pub use self::{
    client::Client,
    decoder::{Decoder, Limits},
    error::StompError,
    frame::{Command, Frame},
    heart_beat::{Beat, HeartBeat, Pulse},
    logins::{LOGINS_MAX, Logins, LoginsError},
    server::ServerFrame,
};
