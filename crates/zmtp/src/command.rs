//! Commands: one frame whose body is a name with its length, and data (RFC 37, Commands).

use std::time::Duration;

use crate::error::{ConnectionError, ascii, shown};
use crate::frame::FrameHead;

pub(crate) const ERROR: &str = "ERROR";
/// What libzmq 4.3.5 as a server of PLAIN begins an ERROR with, for a slip in its source: the escape of length 5 has eaten the E.
const LIBZMQ_ERROR: &[u8] = b"^RROR";
pub(crate) const PING: &str = "PING";
pub(crate) const PONG: &str = "PONG";
pub(crate) const SUBSCRIBE: &str = "SUBSCRIBE";
pub(crate) const CANCEL: &str = "CANCEL";

/// Longest context of a PING.
pub const PING_CONTEXT_BYTES_MAX: usize = 16;
/// Longest reason of an ERROR.
const REASON_BYTES_MAX: usize = 255;
/// Longest time to live that a PING can tell, in tenths of a second.
const TTL_DECISECONDS_MAX: u128 = u16::MAX as u128;

/// A command behind the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command<'b> {
    /// Whoever sends it asks to be taken for dead after so long a silence; zero if it does not.
    Ping {
        ttl: Duration,
        context: &'b [u8],
    },
    Pong {
        context: &'b [u8],
    },
    Subscribe {
        prefix: &'b [u8],
    },
    Cancel {
        prefix: &'b [u8],
    },
    Error {
        reason: &'b [u8],
    },
    /// Of another name, which the standard wants ignored.
    Unknown,
}

impl<'b> Command<'b> {
    /// Reads a command's body.
    pub fn parse(body: &'b [u8]) -> Result<Self, ConnectionError> {
        let (name, data) = split(body)?;
        if name == PING.as_bytes() {
            let malformed = ConnectionError::Malformed { command: PING, expected: "2 octets of time and at most 16 of context" };
            let (deciseconds, context) = data.split_first_chunk().ok_or(malformed.clone())?;
            if context.len() > PING_CONTEXT_BYTES_MAX {
                return Err(malformed);
            }
            let ttl = Duration::from_millis(100 * u64::from(u16::from_be_bytes(*deciseconds)));
            return Ok(Self::Ping { ttl, context });
        }
        if name == PONG.as_bytes() {
            if data.len() > PING_CONTEXT_BYTES_MAX {
                return Err(ConnectionError::Malformed { command: PONG, expected: "at most 16 octets of context" });
            }
            return Ok(Self::Pong { context: data });
        }
        if name == SUBSCRIBE.as_bytes() {
            return Ok(Self::Subscribe { prefix: data });
        }
        if name == CANCEL.as_bytes() {
            return Ok(Self::Cancel { prefix: data });
        }
        if name == ERROR.as_bytes() {
            return Ok(Self::Error { reason: reason(data)? });
        }
        Ok(Self::Unknown)
    }
}

/// Tenths of a second, rounded up, so that nobody is taken for dead too early; the longest one for what is longer.
pub(crate) fn ttl_deciseconds(ttl: Duration) -> u16 {
    u16::try_from(ttl.as_millis().div_ceil(100).min(TTL_DECISECONDS_MAX)).expect("at most the longest one")
}

/// Name and data of a command's body.
pub(crate) fn split(body: &[u8]) -> Result<(&[u8], &[u8]), ConnectionError> {
    let split = body.split_first().and_then(|(&length, rest)| rest.split_at_checked(usize::from(length)));
    let named = split.filter(|(name, _)| !name.is_empty() && name.iter().all(u8::is_ascii_alphabetic));
    named.ok_or(ConnectionError::CommandName)
}

/// The data of the command of this name, to be changed where it stands. ERROR in its place is the end; so is any other command.
pub(crate) fn expect<'b>(name: &'static str, body: &'b mut [u8]) -> Result<&'b mut [u8], ConnectionError> {
    let (came, data) = match body.strip_prefix(LIBZMQ_ERROR) {
        Some(data) => (ERROR.as_bytes(), data),
        None => split(body)?,
    };
    if came == ERROR.as_bytes() {
        return Err(ConnectionError::Told { reason: ascii(reason(data)?) });
    }
    if came != name.as_bytes() {
        return Err(ConnectionError::Order { expected: name, came: shown(came) });
    }
    Ok(&mut body[1 + name.len()..])
}

/// The reason of an ERROR, from its data.
fn reason(data: &[u8]) -> Result<&[u8], ConnectionError> {
    let reason = data.split_first().filter(|(length, reason)| usize::from(**length) == reason.len()).map(|(_, reason)| reason);
    reason.ok_or(ConnectionError::Malformed { command: ERROR, expected: "a reason with its length" })
}

/// Our reason as an ERROR takes it: ASCII, at most 255 octets.
fn reason_octets(text: &str) -> Vec<u8> {
    let octets = text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c as u8 } else { b'?' });
    octets.take(REASON_BYTES_MAX).collect()
}

/// An ERROR's data: the reason with its length.
pub(crate) fn reason_data(text: &str) -> Vec<u8> {
    let reason = reason_octets(text);
    [&[u8::try_from(reason.len()).expect("at most 255 octets")], &reason[..]].concat()
}

/// Appends ERROR in clear.
pub(crate) fn push_error(text: &str, out: &mut Vec<u8>) {
    push(ERROR, &[&reason_data(text)], out);
}

/// Appends a command in clear.
pub(crate) fn push(name: &str, data: &[&[u8]], out: &mut Vec<u8>) {
    out.extend_from_slice(FrameHead::command(body_bytes(name, data)).as_bytes());
    push_body(name, data, out);
}

/// Length of a command's body.
pub(crate) fn body_bytes(name: &str, data: &[&[u8]]) -> usize {
    1 + name.len() + data.iter().map(|part| part.len()).sum::<usize>()
}

/// Appends a command's body.
pub(crate) fn push_body(name: &str, data: &[&[u8]], out: &mut Vec<u8>) {
    out.push(u8::try_from(name.len()).expect("names of commands are short"));
    out.extend_from_slice(name.as_bytes());
    data.iter().for_each(|part| out.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_as_its_command() {
        let ping = |deciseconds: u64, context| Command::Ping { ttl: Duration::from_millis(100 * deciseconds), context };
        let rows: &[(&[u8], Command<'_>)] = &[
            (b"\x04PING\x00\x32", ping(50, b"")),
            (b"\x04PING\xff\xffctx!", ping(65_535, b"ctx!")),
            (b"\x04PONG", Command::Pong { context: b"" }),
            (b"\x04PONG0123456789abcdef", Command::Pong { context: b"0123456789abcdef" }),
            (b"\x09SUBSCRIBEtemp", Command::Subscribe { prefix: b"temp" }),
            (b"\x06CANCEL", Command::Cancel { prefix: b"" }),
            (b"\x05ERROR\x03400", Command::Error { reason: b"400" }),
            (b"\x05ERROR\x00", Command::Error { reason: b"" }),
            (b"\x04JOINgroup", Command::Unknown),
            (b"\x04ping", Command::Unknown),
        ];
        for (body, command) in rows {
            assert_eq!(Command::parse(body).as_ref(), Ok(command), "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn a_body_without_its_form_is_refused() {
        let refused: &[&[u8]] = &[
            b"",
            b"\0",
            b"\x04PIN",
            b"\x04PI-G\0\0",
            b"\x04PING",
            b"\x04PING\0",
            b"\x04PING\0\x000123456789abcdef0",
            b"\x04PONG0123456789abcdef0",
            b"\x05ERROR",
            b"\x05ERROR\x02a",
            b"\x05ERROR\x01ab",
        ];
        for body in refused {
            assert!(Command::parse(body).is_err(), "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn a_time_to_live_is_told_in_tenths_and_never_as_less() {
        for (milliseconds, deciseconds) in [(0, 0), (1, 1), (100, 1), (101, 2), (6_553_500, 65_535), (u64::MAX, 65_535)] {
            assert_eq!(ttl_deciseconds(Duration::from_millis(milliseconds)), deciseconds, "{milliseconds} ms");
        }
    }

    #[test]
    fn a_reason_is_text_in_ascii_of_bounded_length() {
        assert_eq!(reason_octets("größer\n"), b"gr??er?");
        assert_eq!(reason_octets(&"x".repeat(300)).len(), 255);
    }
}
