//! Why a connection ends: always the peer's fault, with what was expected, what came, and what to do.

use thiserror::Error;

/// A fault of the peer. The connection takes nothing more; the text is what an ERROR command tells.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// The first octets are those of no version of ZMTP, or of ZMTP 1.0.
    #[error("expected a ZMTP 3 greeting, came octet {came:02x} at {at}: speak ZMTP 3.0 or newer")]
    Signature {
        /// Place of the octet.
        at: usize,
        /// The octet.
        came: u8,
    },
    /// ZMTP 1 or 2.
    #[error("expected ZMTP 3, came major version {came}: use a library that speaks ZMTP 3.0 or newer")]
    Version {
        /// The major version.
        came: u8,
    },
    /// Another mechanism than ours.
    #[error("expected mechanism {expected}, came {came:?}: both ends must be set to the same")]
    Mechanism {
        /// Ours.
        expected: &'static str,
        /// Theirs.
        came: String,
    },
    /// Flags that no frame has.
    #[error("expected the flags of a frame, came {came:02x}: bits 3 to 7 are zero, and a command is one frame")]
    Flags {
        /// The octet of flags.
        came: u8,
    },
    /// Bit 63 of a size.
    #[error("expected a size below 2^63, came {came:#x}")]
    Size {
        /// The size.
        came: u64,
    },
    /// A frame, a command or a message beyond its limit.
    #[error("{what}: {came} came, at most {max} are taken here; send less or have the limit raised")]
    TooMuch {
        /// What is limited.
        what: &'static str,
        /// How much of it came.
        came: u64,
        /// The limit.
        max: usize,
    },
    /// A frame of a message before the handshake is over.
    #[error("expected a command, came a message: wait for READY before sending messages")]
    Early,
    /// A command whose name cannot be read.
    #[error("expected a command's name of letters with its length, came something else")]
    CommandName,
    /// A command out of its order.
    #[error("expected {expected}, came {came}")]
    Order {
        /// The command's name.
        expected: &'static str,
        /// The name that came.
        came: String,
    },
    /// A command whose body does not have its form.
    #[error("{command}: expected {expected}")]
    Malformed {
        /// The command's name.
        command: &'static str,
        /// The form.
        expected: &'static str,
    },
    /// Properties that cannot be read.
    #[error("properties: expected {expected}")]
    Metadata {
        /// What they should be.
        expected: &'static str,
    },
    /// A socket type that is none.
    #[error("expected a Socket-Type of ZMTP, came {came:?}")]
    SocketType {
        /// The property.
        came: String,
    },
    /// A socket type that this end does not take.
    #[error("{came} sockets are not taken here, only {taken}")]
    NotTaken {
        /// The peer's socket type.
        came: &'static str,
        /// Those that are taken.
        taken: String,
    },
    /// A CURVE box that does not open: a wrong key, or changed on its way.
    #[error("{command}: the box does not open; expected the right keys and an unchanged text")]
    Forged {
        /// The command's name.
        command: &'static str,
    },
    /// A CURVE nonce that is not above the one before: something came twice or out of order.
    #[error("expected a nonce above {last}, came {came}")]
    Nonce {
        /// The last one.
        last: u64,
        /// The one that came.
        came: u64,
    },
    /// A CURVE public key with which anybody could open the boxes.
    #[error("{command}: expected a public key that a secret key belongs to")]
    WeakKey {
        /// The command's name.
        command: &'static str,
    },
    /// The host does not allow this peer, or no longer.
    #[error("{reason}")]
    Denied {
        /// The host's reason.
        reason: String,
    },
    /// The peer sent ERROR.
    #[error("the peer ended the connection: {reason:?}")]
    Told {
        /// The peer's reason.
        reason: String,
    },
}

impl ConnectionError {
    /// Whether the peer may be told. Who sends ERROR is not answered with one; what fails behind the handshake of CURVE is no peer
    /// that we know (RFC 26, MESSAGE).
    pub(crate) fn may_be_told(&self) -> bool {
        !matches!(self, Self::Told { .. } | Self::Forged { .. } | Self::Nonce { .. })
    }
}

/// The most of a peer's word that an error repeats.
const SHOWN_BYTES_MAX: usize = 32;

/// The beginning of a word that a peer sent, for people to read.
pub(crate) fn shown(bytes: &[u8]) -> String {
    ascii(&bytes[..bytes.len().min(SHOWN_BYTES_MAX)])
}

/// What a peer sent as text, for people to read.
pub(crate) fn ascii(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| if byte.is_ascii_graphic() || byte == b' ' { char::from(byte) } else { '?' }).collect()
}
