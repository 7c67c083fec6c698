//! A message as it came, where it stands.

use crate::frame::Head;

/// A whole message: one frame or more, borrowed from where they were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'b> {
    frames: Frames<'b>,
    count: usize,
}

impl<'b> Message<'b> {
    /// The message of these frames, heads included; in each, so many bytes stand between head and payload.
    pub(crate) fn new(bytes: &'b [u8], count: usize, protection_bytes: usize) -> Self {
        Self { frames: Frames { bytes, protection_bytes }, count }
    }

    /// The payloads of its frames, in order.
    pub fn frames(&self) -> Frames<'b> {
        self.frames
    }

    /// How many frames it has; at least 1.
    pub fn frame_count(&self) -> usize {
        self.count
    }

    /// Its frames, if there are exactly `N`.
    pub fn split<const N: usize>(&self) -> Option<[&'b [u8]; N]> {
        let mut frames = self.frames;
        (self.count == N).then(|| std::array::from_fn(|_| frames.next().expect("as many frames as were counted")))
    }

    /// What routers put in front of a request: the frames in front of the first empty one, and the frames behind it. A reply goes
    /// back with the former, an empty frame, and its own (RFC 28, The REP Socket Type). Nothing if no frame is empty or none follows it.
    pub fn envelope(&self) -> Option<Envelope<'b>> {
        let (mut rest, mut hops) = (self.frames, 0);
        while !rest.next()?.is_empty() {
            hops += 1;
        }
        let count = self.count - hops - 1;
        (count > 0).then_some(Envelope { frames: self.frames, hops, body: Message { frames: rest, count } })
    }
}

/// A request's way back, and the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'b> {
    frames: Frames<'b>,
    hops: usize,
    /// What is asked.
    pub body: Message<'b>,
}

impl<'b> Envelope<'b> {
    /// The frames that a reply begins with, without the empty one behind them.
    pub fn hops(&self) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        self.frames.take(self.hops)
    }
}

/// The payloads of a message's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames<'b> {
    bytes: &'b [u8],
    protection_bytes: usize,
}

impl<'b> Iterator for Frames<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let head = Head::parse(self.bytes).expect("heads were read once")?;
        let (frame, rest) = self.bytes.split_at(head.frame_bytes());
        self.bytes = rest;
        Some(&frame[head.head_bytes + self.protection_bytes..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: &[u8], count: usize) -> Message<'_> {
        let message = Message::new(bytes, count, 0);
        assert_eq!(message.frames().count(), message.frame_count());
        message
    }

    #[test]
    fn frames_are_where_they_stand() {
        let two = message(b"\x01\x01a\0\x02bc", 2);
        assert_eq!(two.split(), Some([&b"a"[..], b"bc"]));
        assert_eq!((two.split::<1>(), two.split::<3>()), (None, None));
        let protected = Message::new(b"\x01\x04...a\0\x03...", 2, 3);
        assert_eq!(protected.split(), Some([&b"a"[..], b""]));
    }

    #[test]
    fn an_envelope_ends_at_the_first_empty_frame() {
        let envelope = message(b"\x01\x01a\x01\x01b\x01\0\x01\x01c\0\0", 5).envelope().expect("an envelope");
        assert_eq!(envelope.hops().collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(envelope.body.split(), Some([&b"c"[..], b""]));
        let bare = message(b"\x01\0\0\x04ping", 2).envelope().expect("an envelope without hops");
        assert_eq!((bare.hops().count(), bare.body.split()), (0, Some([&b"ping"[..]])));
        for (bytes, count) in [(&b"\0\x01a"[..], 1), (b"\0\0", 1), (b"\x01\x01a\0\0", 2)] {
            assert_eq!(message(bytes, count).envelope(), None, "{bytes:?}");
        }
    }
}
