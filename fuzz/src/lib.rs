//! The body of every fuzz target: bytes in, a panic when a promise is broken.
//!
//! A target's file in `fuzz_targets` only calls its function here, and so does the test that replays the seeds.

mod certificate;
mod connection;
mod event_log;
mod form;
mod nats;
mod net;
mod relay;
mod text;
mod token;
mod tunnel;
mod wire;
mod zmtp;

pub use self::{
    certificate::certificate,
    connection::{event_stream, http_request, request_target},
    event_log::event_log,
    form::{event_filter, json_form, publication},
    nats::nats,
    net::net,
    relay::relay,
    text::text,
    token::token,
    tunnel::tunnel,
    wire::wire,
    zmtp::zmtp,
};

/// A target and its name, which is that of its folder of seeds.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 16] = [
    ("certificate", certificate),
    ("event_filter", event_filter),
    ("event_log", event_log),
    ("event_stream", event_stream),
    ("http_request", http_request),
    ("json_form", json_form),
    ("nats", nats),
    ("net", net),
    ("publication", publication),
    ("relay", relay),
    ("request_target", request_target),
    ("text", text),
    ("token", token),
    ("tunnel", tunnel),
    ("wire", wire),
    ("zmtp", zmtp),
];
