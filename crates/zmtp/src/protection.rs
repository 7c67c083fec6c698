//! How frames travel behind the handshake: as they are, or each in a box of CURVE.

use crate::assembly::Opened;
use crate::command;
use crate::curve::Channel;
use crate::error::ConnectionError;
use crate::frame::{FrameHead, Head};

/// The mechanism's part in what follows the handshake.
#[derive(Debug)]
pub(crate) enum Protection {
    /// NULL and PLAIN.
    None,
    Curve(Box<Channel>),
}

impl Protection {
    /// Bytes of a frame's body that CURVE adds to its payload.
    pub const CURVE_BYTES: usize = Channel::OVERHEAD_BYTES;

    /// Bytes between a frame's head and its payload.
    pub fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Curve(_) => Self::CURVE_BYTES,
        }
    }

    /// Opens a whole frame, where it stands.
    pub fn open(&mut self, head: Head, frame: &mut [u8]) -> Result<Opened, ConnectionError> {
        let payload_at = head.head_bytes + self.bytes();
        match self {
            Self::None => Ok(Opened { command: head.command, more: head.more, payload_at }),
            Self::Curve(channel) => {
                // libzmq sends them as messages, RFC 26 calls them commands: both are taken. What a frame is stands inside the box.
                if head.more {
                    return Err(ConnectionError::Flags { came: frame[0] });
                }
                let (command, more) = channel.open(&mut frame[head.head_bytes..])?;
                Ok(Opened { command, more, payload_at })
            }
        }
    }

    /// Appends a frame of a message.
    pub fn push_frame(&mut self, payload: &[u8], more: bool, out: &mut Vec<u8>) {
        match self {
            Self::None => {
                out.extend_from_slice(FrameHead::message(payload.len(), more).as_bytes());
                out.extend_from_slice(payload);
            }
            Self::Curve(channel) => channel.seal_frame(payload, more, out),
        }
    }

    /// Appends a command.
    pub fn push_command(&mut self, name: &str, data: &[&[u8]], out: &mut Vec<u8>) {
        match self {
            Self::None => command::push(name, data, out),
            Self::Curve(channel) => channel.seal_command(name, data, out),
        }
    }
}
