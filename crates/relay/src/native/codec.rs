//! How frames are written and read. A frame has one form only.

use super::{Channel, Frame, FrameError, Reason, Role};
use crate::{Destination, NAME_BYTES_MAX};

/// Bytes in front of every frame: the length of what follows them.
pub const HEAD_BYTES: usize = 4;
/// Longest message, in bytes: what STOMP takes by default, too.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest frame without its head, in bytes: a message with kind and channel. A longer one is refused before anything is kept for it.
pub const FRAME_BYTES_MAX: usize = 1 + 4 + MESSAGE_BYTES_MAX;
/// Longest words of a refusal, in bytes.
const WORDS_BYTES_MAX: usize = 1024;

const GREETING: u8 = 1;
const OPEN: u8 = 2;
const CLOSE: u8 = 3;
const MESSAGE: u8 = 4;
const CREDIT: u8 = 5;
const REMOVE: u8 = 6;
const REFUSED: u8 = 7;
const PING: u8 = 8;
const PONG: u8 = 9;

const ROLES: [(Role, u8); 2] = [(Role::Send, 1), (Role::Listen, 2)];
const TOPIC: u8 = 1;
const QUEUE: u8 = 2;
const REASONS: [(Reason, u8); 8] = [
    (Reason::Version, 1),
    (Reason::NotAllowed, 2),
    (Reason::Full, 3),
    (Reason::Channel, 4),
    (Reason::NoCredit, 5),
    (Reason::Removed, 6),
    (Reason::Silent, 7),
    (Reason::Stopping, 8),
];

/// Appends a frame.
///
/// # Panics
/// If it has a message, or words, that are too long, or credit of 0 bytes: these are the writer's to ask.
pub fn write(frame: &Frame<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    match frame {
        Frame::Greeting { newest, oldest } => {
            out.push(GREETING);
            out.extend_from_slice(&newest.to_be_bytes());
            out.extend_from_slice(&oldest.to_be_bytes());
        }
        Frame::Open { channel, role, destination } => {
            out.push(OPEN);
            write_channel(*channel, out);
            out.push(code(&ROLES, *role));
            write_destination(destination, out);
        }
        Frame::Close { channel } => {
            out.push(CLOSE);
            write_channel(*channel, out);
        }
        Frame::Message { channel, bytes } => {
            assert!(bytes.len() <= MESSAGE_BYTES_MAX, "a message of {} bytes", bytes.len());
            out.push(MESSAGE);
            write_channel(*channel, out);
            out.extend_from_slice(bytes);
        }
        Frame::Credit { channel, bytes } => {
            assert!(*bytes > 0, "credit of nothing");
            out.push(CREDIT);
            write_channel(*channel, out);
            out.extend_from_slice(&bytes.to_be_bytes());
        }
        Frame::Remove { destination } => {
            out.push(REMOVE);
            write_destination(destination, out);
        }
        Frame::Refused { channel, reason, words } => {
            assert!(words.len() <= WORDS_BYTES_MAX, "a refusal of {} bytes", words.len());
            out.push(REFUSED);
            out.extend_from_slice(&channel.0.to_be_bytes());
            out.push(code(&REASONS, *reason));
            out.extend_from_slice(words.as_bytes());
        }
        Frame::Ping { token } => {
            out.push(PING);
            out.extend_from_slice(&token.to_be_bytes());
        }
        Frame::Pong { token } => {
            out.push(PONG);
            out.extend_from_slice(&token.to_be_bytes());
        }
    }
    let length = u32::try_from(out.len() - start - HEAD_BYTES).expect("a frame has a few MiB at the most");
    out[start..start + HEAD_BYTES].copy_from_slice(&length.to_be_bytes());
}

fn write_channel(channel: Channel, out: &mut Vec<u8>) {
    assert_ne!(channel, Channel::CONNECTION, "the connection is no channel");
    out.extend_from_slice(&channel.0.to_be_bytes());
}

fn write_destination(destination: &Destination, out: &mut Vec<u8>) {
    out.push(match destination {
        Destination::Topic(_) => TOPIC,
        Destination::Queue(_) => QUEUE,
    });
    out.extend_from_slice(destination.name().as_bytes());
}

/// Reads the frame that `bytes` begin with, and says how many bytes it has with its head. `None`: it has not come whole; whoever keeps bytes until then
/// keeps at most [`HEAD_BYTES`] and [`FRAME_BYTES_MAX`] together, since a longer one is refused by its head.
pub fn read(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
    let length = u32::from_be_bytes(*head) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(FrameError::Long { limit: FRAME_BYTES_MAX, found: length });
    }
    // A frame of a few bytes that says to be a long one is found out before it has come.
    if length > 0
        && let Some(&kind) = rest.first()
        && length > longest(kind)?
    {
        return Err(FrameError::Long { limit: longest(kind)?, found: length });
    }
    let Some(frame) = rest.get(..length) else { return Ok(None) };
    let mut fields = Fields(frame);
    let frame = fields.frame()?;
    if fields.0.is_empty() { Ok(Some((frame, HEAD_BYTES + length))) } else { Err(FrameError::Trailing(fields.0.len())) }
}

/// Most bytes that a frame of a kind has, without its head.
fn longest(kind: u8) -> Result<usize, FrameError> {
    Ok(1 + match kind {
        GREETING | CLOSE => 4,
        OPEN => 4 + 1 + 1 + NAME_BYTES_MAX,
        MESSAGE => 4 + MESSAGE_BYTES_MAX,
        CREDIT | PING | PONG => 8,
        REMOVE => 1 + NAME_BYTES_MAX,
        REFUSED => 4 + 1 + WORDS_BYTES_MAX,
        other => return Err(FrameError::Kind(other)),
    })
}

/// What is left of a frame.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn frame(&mut self) -> Result<Frame<'a>, FrameError> {
        Ok(match self.byte("kind")? {
            GREETING => Frame::Greeting { newest: self.u16("newest version")?, oldest: self.u16("oldest version")? },
            OPEN => {
                Frame::Open { channel: self.channel()?, role: self.one_of(&ROLES, "role", "1 or 2")?, destination: self.destination()? }
            }
            CLOSE => Frame::Close { channel: self.channel()? },
            MESSAGE => Frame::Message { channel: self.channel()?, bytes: self.rest() },
            CREDIT => Frame::Credit { channel: self.channel()?, bytes: self.credit()? },
            REMOVE => Frame::Remove { destination: self.destination()? },
            REFUSED => Frame::Refused {
                channel: Channel(self.u32("channel")?),
                reason: self.one_of(&REASONS, "reason", "1 to 8")?,
                words: std::str::from_utf8(self.rest()).map_err(|_| FrameError::Text("words"))?,
            },
            PING => Frame::Ping { token: self.u64("token")? },
            PONG => Frame::Pong { token: self.u64("token")? },
            other => return Err(FrameError::Kind(other)),
        })
    }

    fn take<const LENGTH: usize>(&mut self, field: &'static str) -> Result<[u8; LENGTH], FrameError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(FrameError::Short(field))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    fn byte(&mut self, field: &'static str) -> Result<u8, FrameError> {
        self.take(field).map(|[byte]| byte)
    }

    fn u16(&mut self, field: &'static str) -> Result<u16, FrameError> {
        self.take(field).map(u16::from_be_bytes)
    }

    fn u32(&mut self, field: &'static str) -> Result<u32, FrameError> {
        self.take(field).map(u32::from_be_bytes)
    }

    fn u64(&mut self, field: &'static str) -> Result<u64, FrameError> {
        self.take(field).map(u64::from_be_bytes)
    }

    fn channel(&mut self) -> Result<Channel, FrameError> {
        match Channel(self.u32("channel")?) {
            Channel::CONNECTION => Err(FrameError::Value { field: "channel", expected: "a number above 0", found: 0 }),
            channel => Ok(channel),
        }
    }

    fn credit(&mut self) -> Result<u32, FrameError> {
        match self.u32("credit")? {
            0 => Err(FrameError::Value { field: "credit", expected: "a number above 0", found: 0 }),
            bytes => Ok(bytes),
        }
    }

    fn destination(&mut self) -> Result<Destination, FrameError> {
        let kind = self.byte("destination")?;
        let name = std::str::from_utf8(self.rest()).map_err(|_| FrameError::Text("destination"))?;
        match kind {
            TOPIC => Ok(Destination::topic(name)?),
            QUEUE => Ok(Destination::queue(name)?),
            other => Err(FrameError::Value { field: "destination", expected: "1 or 2", found: other.into() }),
        }
    }

    fn one_of<T: Copy>(&mut self, codes: &[(T, u8)], field: &'static str, expected: &'static str) -> Result<T, FrameError> {
        let found = self.byte(field)?;
        let value = codes.iter().find(|(_, code)| *code == found).map(|(value, _)| *value);
        value.ok_or(FrameError::Value { field, expected, found: found.into() })
    }
}

fn code<T: Copy + PartialEq>(codes: &[(T, u8)], value: T) -> u8 {
    codes.iter().find(|(known, _)| *known == value).expect("every value has a code").1
}

#[cfg(test)]
mod tests;
