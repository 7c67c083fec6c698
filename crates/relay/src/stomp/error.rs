//! What is wrong with a peer's bytes.

use crate::DestinationError;

/// Why a connection cannot go on. Nothing behind the fault is read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StompError {
    /// The first line of a frame is no command of STOMP 1.2.
    #[error("a command of STOMP 1.2 expected, {0:?} found: is it a STOMP port?")]
    Command(String),
    /// Command and headers are longer than they may be.
    #[error("the head of a frame has more than {limit} bytes")]
    HeadBytes {
        /// The limit.
        limit: usize,
    },
    /// There are more headers than there may be.
    #[error("a frame has more than {limit} headers")]
    Headers {
        /// The limit.
        limit: usize,
    },
    /// The body is longer than it may be.
    #[error("the body of a frame has more than {limit} bytes")]
    BodyBytes {
        /// The limit.
        limit: usize,
    },
    /// A line of the head is no header.
    #[error("a header (name:value in UTF-8, with \\r, \\n, \\c and \\\\ for what ends it) expected, {0:?} found")]
    Header(String),
    /// The length of the body is no number.
    #[error("content-length: a number expected, {0:?} found")]
    ContentLength(String),
    /// The body is followed by something else than a zero byte.
    #[error("a zero byte expected behind the body's {length} bytes, {found} found")]
    NoEnd {
        /// What `content-length` said.
        length: usize,
        /// The byte.
        found: u8,
    },
    /// A frame has a body that may have none.
    #[error("{0} has no body by STOMP 1.2, and came with one")]
    Body(&'static str),
    /// A frame came that the other end does not send.
    #[error("a frame of a server (CONNECTED, MESSAGE, RECEIPT, ERROR) expected, {0} found")]
    NotOfServer(&'static str),
    /// A frame lacks a header.
    #[error("{command} without {header}")]
    Missing {
        /// Of the frame.
        command: &'static str,
        /// What it lacks.
        header: &'static str,
    },
    /// A header says something that it may not say.
    #[error("{header}: {expected} expected, {found:?} found")]
    Value {
        /// Its name.
        header: &'static str,
        /// What it may say.
        expected: &'static str,
        /// What it says.
        found: String,
    },
    /// A message's destination is none of ours.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// The message is no text.
    #[error("the message is not UTF-8: a text message expected")]
    NotText,
}
