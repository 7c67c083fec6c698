//! The mechanism CURVE (RFC 25, RFC 26): keys, handshake of either side, and the boxes that every frame travels in.
//!
//! ```text
//! client                                                    server
//!   HELLO     C', box of zeros (C' to S)               ->
//!                                                      <-   WELCOME   box of S' and the cookie (S to C')
//!   INITIATE  cookie, box of C, vouch, properties      ->             (C' to S')
//!                                                      <-   READY     box of properties (S' to C')
//!   MESSAGE   box of flags and payload (C' to S')      <->  MESSAGE
//! ```
//! C and S are keys that last, C' and S' are this connection's.

mod boxes;
mod channel;
mod client;
mod keys;
mod server;
mod z85;

pub(crate) use channel::Channel;
pub(crate) use client::{CurveClient, ExpectReady};
pub(crate) use server::{CurveServer, ExpectInitiate, Initiated};

pub use keys::{KeyError, KeyPair, PublicKey, SecretKey};

const HELLO: &str = "HELLO";
const WELCOME: &str = "WELCOME";
const INITIATE: &str = "INITIATE";
const READY: &str = "READY";
