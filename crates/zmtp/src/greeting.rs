//! The greeting: 64 octets that each side sends first (RFC 37, Version Negotiation).
//!
//! ```text
//! ff | padding 8 | 7f | major | minor | mechanism 20, zero padded | as-server | filler 31, zeros
//! ```
//! Padding, as-server and filler are not looked at: libzmq says 0 for as-server even where it is the server.

use crate::error::{ConnectionError, shown};

/// Length of a greeting.
pub const GREETING_BYTES: usize = 64;

/// The minor version that we speak, and the highest that a connection can have.
const MINOR: u8 = 1;
const SIGNATURE_END: usize = 9;
const MAJOR_AT: usize = 10;
const MINOR_AT: usize = 11;
const MECHANISM_AT: usize = 12;
const MECHANISM_BYTES: usize = 20;
const AS_SERVER_AT: usize = 32;

/// Ours. The last octet of the padding is 1, so that a peer of ZMTP 1.0 takes what it reads for a frame of one octet and waits.
pub(crate) fn greeting(mechanism: &str, as_server: bool) -> [u8; GREETING_BYTES] {
    let mut bytes = [0; GREETING_BYTES];
    bytes[0] = 0xff;
    bytes[SIGNATURE_END - 1] = 1;
    bytes[SIGNATURE_END] = 0x7f;
    bytes[MAJOR_AT] = 3;
    bytes[MINOR_AT] = MINOR;
    bytes[MECHANISM_AT..][..mechanism.len()].copy_from_slice(mechanism.as_bytes());
    bytes[AS_SERVER_AT] = u8::from(as_server);
    bytes
}

/// Reads the peer's greeting, however it comes in.
#[derive(Debug)]
pub(crate) struct GreetingReader {
    bytes: [u8; GREETING_BYTES],
    filled: usize,
}

impl GreetingReader {
    pub fn new() -> Self {
        Self { bytes: [0; GREETING_BYTES], filled: 0 }
    }

    /// Takes what is the greeting's from the beginning of `input`, and says how much. What is wrong is said as soon as it is in.
    pub fn take(&mut self, input: &[u8], mechanism: &'static str) -> Result<usize, ConnectionError> {
        let taken = input.len().min(GREETING_BYTES - self.filled);
        self.bytes[self.filled..][..taken].copy_from_slice(&input[..taken]);
        self.filled += taken;
        self.check(mechanism)?;
        Ok(taken)
    }

    fn check(&self, mechanism: &'static str) -> Result<(), ConnectionError> {
        let octet = |at: usize| self.bytes[..self.filled].get(at).copied();
        if let Some(came) = octet(0).filter(|&octet| octet != 0xff) {
            return Err(ConnectionError::Signature { at: 0, came });
        }
        // A peer of ZMTP 1.0 may begin with ff too, for a long frame, whose flags stand here and have this bit clear.
        if let Some(came) = octet(SIGNATURE_END).filter(|octet| octet & 1 == 0) {
            return Err(ConnectionError::Signature { at: SIGNATURE_END, came });
        }
        if let Some(came) = octet(MAJOR_AT).filter(|&major| major < 3) {
            return Err(ConnectionError::Version { came });
        }
        if self.filled < MECHANISM_AT + MECHANISM_BYTES {
            return Ok(());
        }
        let came = &self.bytes[MECHANISM_AT..][..MECHANISM_BYTES];
        let name = came.strip_prefix(mechanism.as_bytes());
        if name.is_none_or(|padding| padding.iter().any(|&octet| octet != 0)) {
            let end = came.iter().rposition(|&octet| octet != 0).map_or(0, |last| last + 1);
            return Err(ConnectionError::Mechanism { expected: mechanism, came: shown(&came[..end]) });
        }
        Ok(())
    }

    /// The minor version of the connection, once the greeting is whole: the lower one. A higher major version speaks ours to us.
    pub fn minor(&self) -> Option<u8> {
        (self.filled == GREETING_BYTES).then(|| if self.bytes[MAJOR_AT] > 3 { MINOR } else { MINOR.min(self.bytes[MINOR_AT]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Octets of a greeting that are other than ours, and what is read: the minor version and after how many octets it is known.
    #[track_caller]
    fn check(changes: &[(usize, u8)], expected: Result<u8, ConnectionError>, known_at: usize) {
        let mut bytes = greeting("NULL", false);
        for &(at, octet) in changes {
            bytes[at] = octet;
        }
        let mut reader = GreetingReader::new();
        for (at, octet) in bytes.iter().enumerate() {
            match reader.take(&[*octet], "NULL") {
                Ok(taken) => assert_eq!(taken, 1),
                Err(error) => return assert_eq!((Err(error), at + 1), (expected, known_at)),
            }
        }
        assert_eq!((Ok(reader.minor().expect("a whole greeting")), GREETING_BYTES), (expected, known_at));
        assert_eq!(reader.take(b"x", "NULL"), Ok(0), "what follows is not the greeting's");
    }

    #[test]
    fn a_greeting_says_version_and_mechanism() {
        check(&[], Ok(1), 64);
        check(&[(MINOR_AT, 0)], Ok(0), 64);
        check(&[(MINOR_AT, 7)], Ok(1), 64);
        check(&[(MAJOR_AT, 4), (MINOR_AT, 0)], Ok(1), 64);
        check(&[(8, 0), (1, 9), (AS_SERVER_AT, 1), (63, 5)], Ok(1), 64);
    }

    #[test]
    fn what_is_no_greeting_of_zmtp_3_is_refused_at_its_octet() {
        check(&[(0, 1)], Err(ConnectionError::Signature { at: 0, came: 1 }), 1);
        check(&[(9, 0x7e)], Err(ConnectionError::Signature { at: 9, came: 0x7e }), 10);
        check(&[(MAJOR_AT, 1)], Err(ConnectionError::Version { came: 1 }), 11);
        check(&[(MAJOR_AT, 2)], Err(ConnectionError::Version { came: 2 }), 11);
        let mechanism = |came: &str| Err(ConnectionError::Mechanism { expected: "NULL", came: came.into() });
        check(&[(12, b'F')], mechanism("FULL"), 32);
        check(&[(16, b'S')], mechanism("NULLS"), 32);
        check(&[(15, 0)], mechanism("NUL"), 32);
        check(&[(31, 0xff)], mechanism("NULL????????????????"), 32);
        check(&[(12, 0), (13, 0), (14, 0), (15, 0)], mechanism(""), 32);
    }
}
