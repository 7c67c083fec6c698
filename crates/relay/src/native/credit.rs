//! What a message costs of a channel's credit.

/// What every message costs besides its length, so that empty ones are bounded too.
pub const MESSAGE_COST: u32 = 64;

/// Credit that a receiver gives a channel in the beginning; what is taken is given anew when it is half of this.
pub const WINDOW_BYTES: u32 = 256 * 1024;

/// What a message of so many bytes costs.
pub fn cost(message_bytes: usize) -> u32 {
    u32::try_from(message_bytes).unwrap_or(u32::MAX).saturating_add(MESSAGE_COST)
}
