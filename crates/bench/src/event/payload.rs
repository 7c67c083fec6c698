//! The 71 bytes that travel: who sent them, which in order they are, and when.
//!
//! ```text
//! bodkin-bench p=0003 s=0000012345 t=00000123456789012345 ...............
//!              |      |            |
//!              |      |            +- CLOCK_MONOTONIC when the publisher sent it, ns, 20 digits
//!              |      +- sequence of this publisher from 0, 10 digits
//!              +- publisher from 0, 4 digits
//! ```
//!
//! All of it is ASCII that JSON writes as it is, so that a request is made once and only these digits change in it.

use nix::time::{ClockId, clock_gettime};

/// Length of a payload, as in Rocha 2019, chapter 7.
pub const PAYLOAD_BYTES: usize = 71;

/// How every payload begins.
pub const PREFIX: &[u8] = b"bodkin-bench p=";
const PUBLISHER_AT: usize = PREFIX.len();
const SEQUENCE_AT: usize = PUBLISHER_AT + 4 + 3;
const STAMP_AT: usize = SEQUENCE_AT + 10 + 3;
const FILL_AT: usize = STAMP_AT + 20 + 1;
const _: () = assert!(FILL_AT < PAYLOAD_BYTES);

/// What a payload says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload {
    /// Index of the publisher, 0 to 9,999.
    pub publisher: u16,
    /// Place of the event in its publisher's order, from 0.
    pub sequence: u64,
    /// Time of the send in ns of CLOCK_MONOTONIC, which all processes of a machine share.
    pub sent_ns: u64,
}

impl Payload {
    /// Writes the payload into `bytes`, which may have held one before.
    pub fn write(self, bytes: &mut [u8; PAYLOAD_BYTES]) {
        bytes[..PUBLISHER_AT].copy_from_slice(PREFIX);
        digits(&mut bytes[PUBLISHER_AT..PUBLISHER_AT + 4], u64::from(self.publisher));
        bytes[SEQUENCE_AT - 3..SEQUENCE_AT].copy_from_slice(b" s=");
        digits(&mut bytes[SEQUENCE_AT..SEQUENCE_AT + 10], self.sequence);
        bytes[STAMP_AT - 3..STAMP_AT].copy_from_slice(b" t=");
        digits(&mut bytes[STAMP_AT..STAMP_AT + 20], self.sent_ns);
        bytes[FILL_AT - 1] = b' ';
        bytes[FILL_AT..].fill(b'.');
    }

    /// Reads a payload; `None` when these bytes are not one.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != PAYLOAD_BYTES || !bytes.starts_with(PREFIX) {
            return None;
        }
        Some(Self {
            publisher: u16::try_from(number(&bytes[PUBLISHER_AT..PUBLISHER_AT + 4])?).ok()?,
            sequence: number(&bytes[SEQUENCE_AT..SEQUENCE_AT + 10])?,
            sent_ns: number(&bytes[STAMP_AT..STAMP_AT + 20])?,
        })
    }
}

/// Now, in ns of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has CLOCK_MONOTONIC");
    let seconds = u64::try_from(now.tv_sec()).expect("the clock starts at 0");
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec()).expect("nanoseconds are below 10^9")
}

fn digits(out: &mut [u8], mut value: u64) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + u8::try_from(value % 10).expect("a digit is below 10");
        value /= 10;
    }
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.iter().try_fold(0u64, |value, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_comes_back_and_is_plain_json_text() {
        let mut bytes = [0; PAYLOAD_BYTES];
        for (publisher, sequence, sent_ns) in [(0, 0, 0), (9_999, 9_999_999_999, u64::MAX), (7, 12_345, monotonic_ns())] {
            let payload = Payload { publisher, sequence, sent_ns };
            payload.write(&mut bytes);
            assert_eq!(Payload::read(&bytes), Some(payload));
            let text = std::str::from_utf8(&bytes).unwrap();
            assert_eq!(serde_json::to_string(text).unwrap().len(), PAYLOAD_BYTES + 2, "nothing needs an escape");
        }
    }

    #[test]
    fn what_is_no_payload_is_refused() {
        let mut bytes = [0; PAYLOAD_BYTES];
        Payload { publisher: 1, sequence: 2, sent_ns: 3 }.write(&mut bytes);
        assert_eq!(Payload::read(&bytes[..70]), None);
        bytes[STAMP_AT + 2] = b'x';
        assert_eq!(Payload::read(&bytes), None);
        assert_eq!(Payload::read(&[b'9'; PAYLOAD_BYTES]), None);
    }

    #[test]
    fn the_clock_goes_forward() {
        let before = monotonic_ns();
        assert!(monotonic_ns() >= before);
    }
}
