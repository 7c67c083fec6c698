//! What is sent behind the handshake.

use std::time::Duration;

use crate::command::{self, CANCEL, ERROR, PING, PING_CONTEXT_BYTES_MAX, SUBSCRIBE};
use crate::frame::Head;
use crate::protection::Protection;

/// Writes to a peer that is ready for it. There is none before: a message that comes in front of the peer's READY makes libzmq drop the
/// connection.
#[derive(Debug)]
pub struct Sender<'c> {
    pub(crate) protection: &'c mut Protection,
    pub(crate) minor: u8,
}

impl Sender<'_> {
    /// Whether every byte has to be made for this connection, by [`message`](Self::message). If not, heads
    /// ([`FrameHead`](crate::FrameHead)) and payloads may be written as they stand, the same to all.
    pub fn is_sealed(&self) -> bool {
        matches!(self.protection, Protection::Curve(_))
    }

    /// Appends a message of these frames.
    ///
    /// # Panics
    /// There is no frame.
    pub fn message(&mut self, frames: &[&[u8]], out: &mut Vec<u8>) {
        let (last, others) = frames.split_last().expect("a message has at least one frame");
        for payload in others {
            self.protection.push_frame(payload, true, out);
        }
        self.protection.push_frame(last, false, out);
    }

    /// Appends messages that stand as they would for a peer without boxes, heads and payloads.
    ///
    /// # Panics
    /// A frame is not whole.
    pub fn relay(&mut self, mut frames: &[u8], out: &mut Vec<u8>) {
        while let Some(head) = Head::parse(frames).expect("own frames are right") {
            let (frame, rest) = frames.split_at(head.frame_bytes());
            self.protection.push_frame(&frame[head.head_bytes..], head.more, out);
            frames = rest;
        }
        assert!(frames.is_empty(), "a frame is whole");
    }

    /// Asks for messages whose first frame begins so; an empty prefix for all. Asking twice counts twice.
    pub fn subscribe(&mut self, prefix: &[u8], out: &mut Vec<u8>) {
        self.change_subscription(SUBSCRIBE, 1, prefix, out);
    }

    /// Takes one [`subscribe`](Self::subscribe) back.
    pub fn cancel(&mut self, prefix: &[u8], out: &mut Vec<u8>) {
        self.change_subscription(CANCEL, 0, prefix, out);
    }

    /// A command to a peer of ZMTP 3.1, a message to one of 3.0.
    fn change_subscription(&mut self, name: &str, mark: u8, prefix: &[u8], out: &mut Vec<u8>) {
        if self.minor >= 1 {
            self.protection.push_command(name, &[prefix], out);
        } else {
            self.protection.push_frame(&[&[mark], prefix].concat(), false, out);
        }
    }

    /// Asks for a sign of life. After a silence of `ttl` the peer may take us for dead (zero: it may not; 6,553.5 s at most).
    ///
    /// # Panics
    /// The context has more than 16 octets.
    pub fn ping(&mut self, ttl: Duration, context: &[u8], out: &mut Vec<u8>) {
        assert!(context.len() <= PING_CONTEXT_BYTES_MAX, "a context has at most {PING_CONTEXT_BYTES_MAX} octets");
        self.protection.push_command(PING, &[&command::ttl_deciseconds(ttl).to_be_bytes(), context], out);
    }

    pub(crate) fn pong(&mut self, context: &[u8], out: &mut Vec<u8>) {
        self.protection.push_command(command::PONG, &[context], out);
    }

    pub(crate) fn error(&mut self, reason: &str, out: &mut Vec<u8>) {
        self.protection.push_command(ERROR, &[&command::reason_data(reason)], out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relayed_messages_are_what_would_have_been_sent() {
        let mut protection = Protection::None;
        let mut sender = Sender { protection: &mut protection, minor: 1 };
        let (mut sent, mut relayed) = (Vec::new(), Vec::new());
        sender.message(&[b"hot", &[b'x'; 300]], &mut sent);
        sender.message(&[b"", b"cold"], &mut sent);
        sender.relay(&sent, &mut relayed);
        assert_eq!(relayed, sent);
        sender.relay(&[], &mut relayed);
        assert_eq!(relayed, sent);
    }

    #[test]
    #[should_panic(expected = "a frame is whole")]
    fn half_a_frame_is_not_relayed() {
        Sender { protection: &mut Protection::None, minor: 1 }.relay(&[0], &mut Vec::new());
    }
}
