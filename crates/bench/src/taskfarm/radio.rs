//! How long things take on the radio of the thesis' nodes: IEEE 802.15.4-2011, O-QPSK in the 2.4 GHz band, no beacons.
//!
//! Times in microseconds. A symbol lasts 16 us, an octet two symbols: 250 kbit/s.

/// One octet on the air.
pub const OCTET_US: u64 = 32;
/// Octets in front of a frame: preamble, delimiter, length (11.1).
pub const PHYSICAL_OCTETS: u64 = 6;
/// Longest frame with its check sequence (aMaxPHYPacketSize).
pub const FRAME_OCTETS_MAX: usize = 127;
/// Octets of an acknowledgement.
pub const ACK_OCTETS: u64 = 5;
/// Unit of random delays (aUnitBackoffPeriod, 20 symbols).
pub const BACKOFF_US: u64 = 320;
/// Clear channel assessment: 8 symbols (8.2.7).
pub const ASSESSMENT_US: u64 = 128;
/// From receiving to sending, and back (aTurnaroundTime, 12 symbols).
pub const TURNAROUND_US: u64 = 192;
/// How long a sender waits for an acknowledgement (macAckWaitDuration, 54 symbols).
pub const ACK_WAIT_US: u64 = 864;
/// Pause behind a frame of at most [`SHORT_FRAME_OCTETS`] (macSIFSPeriod), and behind a longer one (macLIFSPeriod).
pub const SHORT_PAUSE_US: u64 = 192;
/// See [`SHORT_PAUSE_US`].
pub const LONG_PAUSE_US: u64 = 640;
/// Longest frame that the short pause follows (aMaxSIFSFrameSize).
pub const SHORT_FRAME_OCTETS: usize = 18;
/// Exponents of the first random delay and of the longest one (macMinBE, macMaxBE).
pub const EXPONENT_MIN: u32 = 3;
/// See [`EXPONENT_MIN`].
pub const EXPONENT_MAX: u32 = 5;
/// How often the channel may be found busy, one time after the other, before the radio gives a frame up (macMaxCSMABackoffs).
pub const BUSY_MAX: u32 = 4;
/// How often a station's driver begins anew with a frame that was given up so: the standard leaves that to whoever is above.
pub const BUSY_ROUNDS_MAX: u32 = 10;
/// How often a frame is sent again that was not acknowledged (macMaxFrameRetries).
pub const RETRIES_MAX: u32 = 3;

/// How long a frame of so many octets is on the air.
pub fn air_us(octets: u64) -> u64 {
    (octets + PHYSICAL_OCTETS) * OCTET_US
}

/// The pause behind a frame.
pub fn pause_us(octets: usize) -> u64 {
    if octets <= SHORT_FRAME_OCTETS { SHORT_PAUSE_US } else { LONG_PAUSE_US }
}

/// The least that a frame takes which is acknowledged, without random delays: what the channel can carry at the most.
pub fn least_us(octets: usize) -> u64 {
    air_us(octets as u64) + TURNAROUND_US + air_us(ACK_OCTETS)
}
