//! MESSAGE: what follows the handshake, a box for each frame.
//!
//! ```text
//! head | 07 "MESSAGE" | number 8, big endian | tag 16 | flags 1 | payload
//!                                              `------- box ------------'
//! ```

use super::boxes::{self, BoxKey, TAG_BYTES};
use crate::command;
use crate::error::ConnectionError;
use crate::frame::FrameHead;

const MESSAGE: &str = "MESSAGE";
const NAME: &[u8; 8] = b"\x07MESSAGE";
const FROM_CLIENT: &[u8; 16] = b"CurveZMQMESSAGEC";
const FROM_SERVER: &[u8; 16] = b"CurveZMQMESSAGES";
const MORE: u8 = 1;
const COMMAND: u8 = 1 << 1;

const BOX_AT: usize = 16;

/// Which end of a connection we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Client,
    Server,
}

/// Boxes in both directions, with the numbers that make each nonce good once.
pub(crate) struct Channel {
    key: BoxKey,
    end: End,
    /// Number of the last command that we sent, and that the peer sent.
    sent: u64,
    heard: u64,
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Channel {{ end: {:?}, sent: {}, heard: {}, .. }}", self.end, self.sent, self.heard)
    }
}

impl Channel {
    /// Bytes of a frame's body in front of the payload.
    pub const OVERHEAD_BYTES: usize = BOX_AT + TAG_BYTES + 1;

    pub fn new(key: BoxKey, end: End, sent: u64, heard: u64) -> Self {
        Self { key, end, sent, heard }
    }

    /// The key of both directions.
    pub fn key(&self) -> &BoxKey {
        &self.key
    }

    /// Opens a MESSAGE's body, where it stands; the payload is its end then. Returns whether it is a command, and whether more frames follow.
    pub fn open(&mut self, body: &mut [u8]) -> Result<(bool, bool), ConnectionError> {
        let named = body.split_first_chunk_mut().filter(|(name, _)| *name == NAME);
        let (_, rest) = named.ok_or_else(|| ConnectionError::Order { expected: MESSAGE, came: "another command".into() })?;
        let malformed = ConnectionError::Malformed { command: MESSAGE, expected: "a number, and a box with flags in it" };
        let (number, sealed) = rest.split_first_chunk_mut().filter(|(_, sealed)| sealed.len() > TAG_BYTES).ok_or(malformed)?;
        let number = u64::from_be_bytes(*number);
        // Whatever came before, again or later than it should, has a number that was used.
        if number <= self.heard {
            return Err(ConnectionError::Nonce { last: self.heard, came: number });
        }
        let prefix = if self.end == End::Server { FROM_CLIENT } else { FROM_SERVER };
        let text = boxes::open(&self.key, &boxes::counted(prefix, number), sealed).ok_or(ConnectionError::Forged { command: MESSAGE })?;
        self.heard = number;
        let flags = text[0];
        let (command, more) = (flags & COMMAND != 0, flags & MORE != 0);
        if flags & !(COMMAND | MORE) != 0 || (command && more) {
            return Err(ConnectionError::Flags { came: flags });
        }
        Ok((command, more))
    }

    /// Appends a frame of a message.
    pub fn seal_frame(&mut self, payload: &[u8], more: bool, out: &mut Vec<u8>) {
        self.seal(if more { MORE } else { 0 }, payload.len(), out, |out| out.extend_from_slice(payload));
    }

    /// Appends a command.
    pub fn seal_command(&mut self, name: &str, data: &[&[u8]], out: &mut Vec<u8>) {
        self.seal(COMMAND, command::body_bytes(name, data), out, |out| command::push_body(name, data, out));
    }

    fn seal(&mut self, flags: u8, payload_bytes: usize, out: &mut Vec<u8>, push_payload: impl FnOnce(&mut Vec<u8>)) {
        self.sent = self.sent.checked_add(1).expect("nobody sends 2^64 frames");
        // Not flagged as a command, although RFC 26 calls it one: libzmq's way.
        let body_bytes = Self::OVERHEAD_BYTES + payload_bytes;
        out.extend_from_slice(FrameHead::message(body_bytes, false).as_bytes());
        out.extend_from_slice(NAME);
        out.extend_from_slice(&self.sent.to_be_bytes());
        let begin = out.len();
        out.extend_from_slice(&[0; TAG_BYTES]);
        out.push(flags);
        push_payload(out);
        let prefix = if self.end == End::Client { FROM_CLIENT } else { FROM_SERVER };
        boxes::seal(&self.key, &boxes::counted(prefix, self.sent), &mut out[begin..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::keys::{PublicKey, SecretKey};

    fn ends() -> (Channel, Channel) {
        let secret = |octet| SecretKey::from_bytes(&mut [octet; 32]);
        let channel = |public: &PublicKey, secret: &SecretKey, end| Channel::new(boxes::shared(public, secret), end, 1, 1);
        let (client, server) = (secret(1), secret(2));
        (channel(&server.public_key(), &client, End::Client), channel(&client.public_key(), &server, End::Server))
    }

    /// The body of what the client seals with these flags.
    fn body(client: &mut Channel, flags: u8) -> Vec<u8> {
        let mut out = Vec::new();
        client.seal(flags, 2, &mut out, |out| out.extend_from_slice(b"hi"));
        out.split_off(2)
    }

    #[test]
    fn flags_are_inside_the_box() {
        let (mut client, mut server) = ends();
        for (flags, expected) in [(0, (false, false)), (MORE, (false, true)), (COMMAND, (true, false))] {
            let mut body = body(&mut client, flags);
            assert_eq!(server.open(&mut body), Ok(expected));
            assert_eq!(body[Channel::OVERHEAD_BYTES..], *b"hi");
        }
        for flags in [4, 0x80, MORE | COMMAND] {
            assert_eq!(server.open(&mut body(&mut client, flags)), Err(ConnectionError::Flags { came: flags }));
        }
    }

    #[test]
    fn numbers_may_be_left_out_and_never_come_again() {
        let (mut client, mut server) = ends();
        let bodies: Vec<Vec<u8>> = (0..3).map(|_| body(&mut client, 0)).collect();
        assert_eq!(server.open(&mut bodies[1].clone()), Ok((false, false)));
        for (came, body) in (2..).zip(&bodies[..2]) {
            assert_eq!(server.open(&mut body.clone()), Err(ConnectionError::Nonce { last: 3, came }));
        }
        assert_eq!(server.open(&mut bodies[2].clone()), Ok((false, false)));
    }

    #[test]
    fn a_forged_number_does_not_count() {
        let (mut client, mut server) = ends();
        let mut forged = body(&mut client, 0);
        forged[8..16].copy_from_slice(&u64::MAX.to_be_bytes());
        assert_eq!(server.open(&mut forged), Err(ConnectionError::Forged { command: MESSAGE }));
        assert_eq!(server.open(&mut body(&mut client, 0)), Ok((false, false)));
    }

    #[test]
    fn a_short_box_is_refused() {
        let (mut client, mut server) = ends();
        let body = body(&mut client, 0);
        for length in 0..33 {
            assert!(server.open(&mut body[..length].to_vec()).is_err(), "{length}");
        }
        let empty = [&NAME[..], &[0; 8], &[0; 16]].concat();
        assert!(matches!(server.open(&mut empty.clone()), Err(ConnectionError::Malformed { .. })));
    }
}
