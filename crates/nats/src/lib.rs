//! NATS and its JetStream from a client's end, as pure codecs and machines: no socket, clock or randomness.
//!
//! ```text
//! bytes ─> protocol::Decoder ─> Operation ─> client::Client ─> Event    (a connection: greeting, requests and their answers, pings)
//!                                                 └─> bytes
//! events ─> lane::Batch ─> lane::Lane ─> publications, each answered before the next one
//! ```
//!
//! * [`protocol`]: what is on the wire: subjects, headers, operations of either end;
//! * [`client`]: one connection's machine; [`servers`]: which server is tried next, and when;
//! * [`jetstream`]: the JSON interface of streams, and the errors that it has;
//! * [`lane`]: exactly once into a stream, whatever is cut or killed on the way (`docs/formats/fleet.md`);
//! * [`forwarder`]: lanes on a connection;
//! * [`intake`]: the way back: messages of a stream for one taker, each once and in order.
//!
//! Time is since any one instant, the same for a machine's whole life.

pub mod client;
pub mod forwarder;
pub mod intake;
pub mod jetstream;
pub mod lane;
pub mod protocol;
pub mod servers;
