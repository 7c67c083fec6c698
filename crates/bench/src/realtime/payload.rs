//! Sixteen characters that travel: which topic, which event of it, and when it was due or sent.
//!
//! ```text
//! topic (18 bits) | sequence (24 bits) | stamp (54 bits): ns of CLOCK_MONOTONIC, which all processes of a machine share
//! ```
//!
//! 96 bits, six to a character of a URL-safe alphabet, for events are text. A longer payload is filled up with dots.

/// Length of the shortest payload, that of Wang 2019, chapter 3.
pub const PAYLOAD_BYTES_MIN: usize = 16;
/// Topics that can be told apart.
pub const TOPICS_MAX: u32 = 1 << TOPIC_BITS;

const TOPIC_BITS: u32 = 18;
const SEQUENCE_BITS: u32 = 24;
const STAMP_BITS: u32 = 54;
const CHARACTER_BITS: u32 = 6;
const _: () = assert!(TOPIC_BITS + SEQUENCE_BITS + STAMP_BITS == PAYLOAD_BYTES_MIN as u32 * CHARACTER_BITS);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// By byte its six bits; those of no character are [`NO_CHARACTER`].
const BITS: [u8; 256] = bits();
const NO_CHARACTER: u8 = 0xff;
const FILL: u8 = b'.';

/// What a payload says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload {
    /// Number of the topic in its workload, below [`TOPICS_MAX`].
    pub topic: u32,
    /// Place of the event in its topic, from 0, below 2^24.
    pub sequence: u32,
    /// In ns, below 2^54 (208 days).
    pub stamp_ns: u64,
}

impl Payload {
    /// Writes it to the front of `bytes`, at least [`PAYLOAD_BYTES_MIN`] of them.
    pub fn write(self, bytes: &mut [u8]) {
        let mut word = (u128::from(self.topic) << (SEQUENCE_BITS + STAMP_BITS))
            | (u128::from(self.sequence) << STAMP_BITS)
            | u128::from(self.stamp_ns & ((1 << STAMP_BITS) - 1));
        for byte in bytes[..PAYLOAD_BYTES_MIN].iter_mut().rev() {
            *byte = ALPHABET[(word & 0x3f) as usize];
            word >>= CHARACTER_BITS;
        }
    }

    /// Reads one from the front; `None` when these bytes are none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut word = 0u128;
        for byte in bytes.get(..PAYLOAD_BYTES_MIN)? {
            let bits = BITS[usize::from(*byte)];
            if bits == NO_CHARACTER {
                return None;
            }
            word = word << CHARACTER_BITS | u128::from(bits);
        }
        Some(Self {
            topic: (word >> (SEQUENCE_BITS + STAMP_BITS)) as u32,
            sequence: (word >> STAMP_BITS) as u32 & ((1 << SEQUENCE_BITS) - 1),
            stamp_ns: word as u64 & ((1 << STAMP_BITS) - 1),
        })
    }
}

/// A payload of this length with nothing written yet.
pub fn blank(bytes: usize) -> Vec<u8> {
    vec![FILL; bytes.max(PAYLOAD_BYTES_MIN)]
}

const fn bits() -> [u8; 256] {
    let mut bits = [NO_CHARACTER; 256];
    let mut value = 0;
    while value < ALPHABET.len() {
        bits[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_comes_back_and_is_text() {
        let mut bytes = blank(20);
        for (topic, sequence, stamp_ns) in
            [(0, 0, 0), (TOPICS_MAX - 1, (1 << SEQUENCE_BITS) - 1, (1 << STAMP_BITS) - 1), (7, 12_345, 1 << 50)]
        {
            let payload = Payload { topic, sequence, stamp_ns };
            payload.write(&mut bytes);
            assert_eq!(Payload::read(&bytes), Some(payload));
            assert_eq!(std::str::from_utf8(&bytes).unwrap()[PAYLOAD_BYTES_MIN..], *"....");
        }
    }

    #[test]
    fn what_is_no_payload_is_refused() {
        assert_eq!(Payload::read(&blank(16)), None);
        assert_eq!(Payload::read(b"AAAAAAAAAAAAAAA"), None);
        assert!(Payload::read(b"AAAAAAAAAAAAAAAA").is_some());
    }
}
