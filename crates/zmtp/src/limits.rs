//! What one connection may cost.

/// Bounds on what a peer sends. A larger size is refused when its head is read: before the body is waited for, and before
/// anything is allocated for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one frame of a message.
    pub frame_bytes_max: usize,
    /// Bytes of all frames of one message.
    pub message_bytes_max: usize,
    /// Frames of one message; at least 1.
    pub frames_max: usize,
    /// Bytes of a command's body behind the handshake, its name included.
    pub command_bytes_max: usize,
    /// Bytes of the peer's properties.
    pub metadata_bytes_max: usize,
    /// The peer's properties.
    pub properties_max: usize,
}

impl Limits {
    /// Body of a CURVE `INITIATE` without its properties; the longest command of the other handshakes, a PLAIN `HELLO`, has 518.
    const INITIATE_BYTES: usize = 257;
    const PLAIN_HELLO_BYTES_MAX: usize = 518;

    /// Bytes of a command's body during the handshake.
    pub(crate) fn handshake_bytes_max(&self) -> usize {
        Self::PLAIN_HELLO_BYTES_MAX.max(Self::INITIATE_BYTES.saturating_add(self.metadata_bytes_max))
    }
}

impl Default for Limits {
    /// An event of 64 KiB with room for its event type, its header and the envelopes of some routers.
    fn default() -> Self {
        Self {
            frame_bytes_max: 64 * 1024,
            message_bytes_max: 68 * 1024,
            frames_max: 16,
            command_bytes_max: 1024,
            metadata_bytes_max: 1024,
            properties_max: 16,
        }
    }
}
