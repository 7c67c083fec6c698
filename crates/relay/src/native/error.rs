//! What is wrong with a peer's bytes.

use crate::DestinationError;

/// Why a connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame is longer than any may be.
    #[error("a frame of at most {limit} bytes expected, one of {found} announced")]
    Long {
        /// The limit.
        limit: usize,
        /// What its first bytes say.
        found: usize,
    },
    /// The frame ends in the middle of a field.
    #[error("the frame ends within {0}")]
    Short(&'static str),
    /// Something follows the last field.
    #[error("{0} bytes follow the frame's last field: none expected")]
    Trailing(usize),
    /// A kind that there is not.
    #[error("kind {0} is no kind of the relay protocol (1 to 9)")]
    Kind(u8),
    /// A field has a value that it may not have.
    #[error("{field} has the value {found}: {expected} expected")]
    Value {
        /// Which field.
        field: &'static str,
        /// What it may have.
        expected: &'static str,
        /// What it has.
        found: u64,
    },
    /// A text that is not UTF-8.
    #[error("{0} is not UTF-8")]
    Text(&'static str),
    /// A destination that there cannot be.
    #[error(transparent)]
    Destination(#[from] DestinationError),
}
