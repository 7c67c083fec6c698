//! Frames: an octet of flags, a size of one octet or of eight, and a body (RFC 37, Framing).

use crate::error::ConnectionError;

/// Longest head of a frame: flags and a size of eight octets.
pub const HEAD_BYTES_MAX: usize = 9;

const SHORT_HEAD_BYTES: usize = 2;
const MORE: u8 = 1;
const LONG: u8 = 1 << 1;
const COMMAND: u8 = 1 << 2;

/// The octets in front of a body that is written beside them, so that a payload which many receive is never copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    bytes: [u8; HEAD_BYTES_MAX],
    length: usize,
}

impl FrameHead {
    /// Head of a message's frame whose body has so many bytes; `more` if the message goes on behind it.
    pub fn message(body_bytes: usize, more: bool) -> Self {
        Self::new(if more { MORE } else { 0 }, body_bytes)
    }

    /// Head of a command whose body has so many bytes.
    pub fn command(body_bytes: usize) -> Self {
        Self::new(COMMAND, body_bytes)
    }

    fn new(flags: u8, body_bytes: usize) -> Self {
        let mut bytes = [0; HEAD_BYTES_MAX];
        let length = if let Ok(short) = u8::try_from(body_bytes) {
            [bytes[0], bytes[1]] = [flags, short];
            SHORT_HEAD_BYTES
        } else {
            bytes[0] = flags | LONG;
            bytes[1..].copy_from_slice(&(body_bytes as u64).to_be_bytes());
            HEAD_BYTES_MAX
        };
        Self { bytes, length }
    }

    /// Two octets, or nine for a body of more than 255.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A head that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub more: bool,
    pub command: bool,
    pub head_bytes: usize,
    pub body_bytes: u64,
}

impl Head {
    /// Reads the head at the beginning of `bytes`; nothing as long as it is not whole.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, ConnectionError> {
        let Some(&flags) = bytes.first() else { return Ok(None) };
        let (more, command) = (flags & MORE != 0, flags & COMMAND != 0);
        if flags & !(MORE | LONG | COMMAND) != 0 || (more && command) {
            return Err(ConnectionError::Flags { came: flags });
        }
        let head_bytes = Self::head_bytes(flags);
        let body_bytes = match bytes.get(1..head_bytes) {
            None => return Ok(None),
            Some(size) => size.iter().fold(0, |size, &octet| size << 8 | u64::from(octet)),
        };
        if body_bytes >> 63 != 0 {
            return Err(ConnectionError::Size { came: body_bytes });
        }
        Ok(Some(Self { more, command, head_bytes, body_bytes }))
    }

    /// Length of the head that begins with these flags.
    pub fn head_bytes(flags: u8) -> usize {
        if flags & LONG == 0 { SHORT_HEAD_BYTES } else { HEAD_BYTES_MAX }
    }

    /// Length of the whole frame. Its body must have been found to be within a limit.
    pub fn frame_bytes(&self) -> usize {
        self.head_bytes + usize::try_from(self.body_bytes).expect("a body within its limit")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(more: bool, command: bool, head_bytes: usize, body_bytes: u64) -> Result<Option<Head>, ConnectionError> {
        Ok(Some(Head { more, command, head_bytes, body_bytes }))
    }

    #[test]
    fn a_head_says_flags_and_size() {
        let rows: &[(&[u8], _)] = &[
            (&[], Ok(None)),
            (&[0], Ok(None)),
            (&[0, 2], head(false, false, 2, 2)),
            (&[1, 0], head(true, false, 2, 0)),
            (&[4, 255], head(false, true, 2, 255)),
            (&[2, 0, 0, 0, 0, 0, 0, 1], Ok(None)),
            (&[2, 0, 0, 0, 0, 0, 0, 1, 0], head(false, false, 9, 256)),
            (&[3, 0, 0, 0, 0, 0, 0, 0, 3], head(true, false, 9, 3)),
            (&[6, 0x7f, 255, 255, 255, 255, 255, 255, 255], head(false, true, 9, i64::MAX as u64)),
            (&[2, 0x80, 0, 0, 0, 0, 0, 0, 0], Err(ConnectionError::Size { came: 1 << 63 })),
            (&[8], Err(ConnectionError::Flags { came: 8 })),
            (&[0x80, 0], Err(ConnectionError::Flags { came: 0x80 })),
            (&[5, 0], Err(ConnectionError::Flags { came: 5 })),
            (&[7], Err(ConnectionError::Flags { came: 7 })),
        ];
        for (bytes, expected) in rows {
            assert_eq!(&Head::parse(bytes), expected, "{bytes:02x?}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for body_bytes in [0, 1, 255, 256, 65_536, 1 << 40] {
            for more in [false, true] {
                let written = FrameHead::message(body_bytes, more);
                let length = if body_bytes < 256 { 2 } else { 9 };
                assert_eq!(Head::parse(written.as_bytes()), head(more, false, length, body_bytes as u64));
            }
            let written = FrameHead::command(body_bytes);
            assert_eq!(Head::parse(written.as_bytes()).map(|head| head.map(|head| head.command)), Ok(Some(true)));
        }
    }
}
