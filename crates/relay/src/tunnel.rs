//! Tunnels: what the gateways of two clouds say to each other over a relay, so that a consumer of one reaches a provider of the other.
//!
//! ```text
//! consumer ══ TLS ══ Gateway ── Frames, sealed and numbered ──> REQ-.. ──> Gateway ══ TLS ══ provider
//!                            <── RESP-.. ──
//! ```
//!
//! Between two Bodkins a [`Session`] carries several connections, each with credit of its own, and knows by the numbers of its messages when a relay has lost some
//! ([`Numbers`]). With a gateway of upstream's it carries one, as the bytes come, but for HTTP requests, which are kept whole ([`WholeRequests`]).
//! A gateway's ports are a [`PortPool`].

mod control;
mod exchanges;
mod frame;
mod numbers;
mod port_pool;
mod reason;
mod session;
mod whole_requests;

pub use self::{
    control::Control,
    exchanges::PLAIN_REQUESTS_MAX,
    frame::{Frame, FrameFault, PIECE_BYTES_MAX, WORDS_BYTES_MAX},
    numbers::{Numbers, Place},
    port_pool::{PortPool, PortRange},
    reason::Reason,
    session::{CONNECTIONS_HELD_MAX, CONNECTIONS_MAX, Event, Look, Session, SessionState, Side, Terms, WINDOW_BYTES},
    whole_requests::{REQUEST_BYTES_MAX, WholeRequests},
};

/// A connection of a session: consumers' connections are numbered from 1 on.
pub type Connection = u32;
