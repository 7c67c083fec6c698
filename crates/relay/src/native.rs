//! Bodkin's own relay protocol, version 1 (`docs/formats/relay.md`): frames on an ordered connection, which is TLS with certificates at both ends.
//!
//! ```text
//! client                                     relay
//! Greeting ───────────────────────────────>
//!          <─────────────────────────────── Greeting
//! Open 1 Send REQ-... ─────────────────────>
//!          <─────────────────────────────── Credit 1, 262144
//! Message 1 ───────────────────────────────>            a sender writes while its credit is above zero,
//!                                                       a listener gives credit anew for what it has taken
//! ```
//!
//! Credit is for each channel, so that a tunnel whose receiver is slow holds up its own sender and nobody else on the connection.

mod assembly;
mod client;
mod codec;
mod credit;
mod error;
mod frame;
pub mod hub;

pub use self::{
    assembly::Assembly,
    client::Client,
    codec::{FRAME_BYTES_MAX, HEAD_BYTES, MESSAGE_BYTES_MAX, read, write},
    credit::{MESSAGE_COST, WINDOW_BYTES, cost},
    error::FrameError,
    frame::{Channel, Frame, Reason, Role},
};

/// The protocol's newest version, and the oldest that is understood.
pub const VERSIONS: std::ops::RangeInclusive<u16> = 1..=1;

/// The version that two ends speak, of the newest and oldest that each says; `None`: they have none in common, and the connection is closed.
pub fn agree(ours: std::ops::RangeInclusive<u16>, theirs: std::ops::RangeInclusive<u16>) -> Option<u16> {
    let newest = *ours.end().min(theirs.end());
    (ours.contains(&newest) && theirs.contains(&newest)).then_some(newest)
}

#[cfg(test)]
mod tests {
    use super::agree;

    #[test]
    fn the_newest_version_that_both_know_is_spoken() {
        for (ours, theirs, expected) in
            [(1..=1, 1..=1, Some(1)), (1..=3, 2..=5, Some(3)), (2..=5, 1..=3, Some(3)), (1..=1, 2..=3, None), (4..=5, 2..=3, None)]
        {
            assert_eq!(agree(ours.clone(), theirs.clone()), expected, "{ours:?} {theirs:?}");
        }
    }
}
