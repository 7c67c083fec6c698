//! From bytes to whole messages and commands, however the bytes are cut.
//!
//! A message that is whole in the input stays there: nothing is copied. What the input ends amid is kept until the rest is in.
//! What is kept grows as bytes arrive, never by what a size announces.
//!
//! libzmq sends PING between the frames of a message, so a command may come amid a message, and is told at once.

use std::ops::Range;

use crate::error::ConnectionError;
use crate::frame::Head;
use crate::limits::Limits;
use crate::protection::Protection;

/// What frames have to be at this time.
pub(crate) enum Rules<'c> {
    /// Commands in clear.
    Handshake,
    /// Messages and commands.
    Traffic(&'c mut Protection),
}

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Input(Range<usize>),
    Kept(Range<usize>),
}

impl Place {
    /// The last bytes of this place.
    pub fn tail(self, bytes: usize) -> Self {
        let last = |range: Range<usize>| range.end - bytes..range.end;
        match self {
            Self::Input(range) => Self::Input(last(range)),
            Self::Kept(range) => Self::Kept(last(range)),
        }
    }

    /// What stands there.
    pub fn bytes<'b>(&self, input: &'b [u8], kept: &'b [u8]) -> &'b [u8] {
        match self {
            Self::Input(range) => &input[range.clone()],
            Self::Kept(range) => &kept[range.clone()],
        }
    }

    /// What stands there, to be changed.
    pub fn bytes_mut<'b>(&self, input: &'b mut [u8], kept: &'b mut [u8]) -> &'b mut [u8] {
        match self {
            Self::Input(range) => &mut input[range.clone()],
            Self::Kept(range) => &mut kept[range.clone()],
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A command's body.
    Command(Place),
    /// All frames of a message, with their heads.
    Message { place: Place, frames: usize },
}

/// A frame that has been opened.
pub(crate) struct Opened {
    pub command: bool,
    pub more: bool,
    /// Bytes in front of the payload: the head, and what protects it.
    pub payload_at: usize,
}

/// What of [`Assembly::kept`] was given out and is over with the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spent {
    Nothing,
    /// A command, behind the frames of a message.
    Command,
    Message,
}

/// The beginning of what is not whole yet.
#[derive(Debug)]
pub(crate) struct Assembly {
    /// Whole frames of a message, then the beginning of a frame.
    kept: Vec<u8>,
    /// Bytes of `kept` that are whole frames.
    whole: usize,
    spent: Spent,
    /// Frames and bytes of payload of the message so far.
    frames: usize,
    payload_bytes: usize,
}

impl Assembly {
    pub fn new() -> Self {
        Self { kept: Vec::new(), whole: 0, spent: Spent::Nothing, frames: 0, payload_bytes: 0 }
    }

    /// What is kept of messages and commands that came in pieces.
    pub fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// The same, to be changed.
    pub fn kept_mut(&mut self) -> &mut [u8] {
        &mut self.kept
    }

    /// Returns the size of the memory for what is kept, in bytes.
    pub fn capacity(&self) -> usize {
        self.kept.capacity()
    }

    /// Gives back memory that is not used at present.
    pub fn shrink(&mut self) {
        self.forget_spent();
        self.kept.shrink_to_fit();
    }

    /// Takes bytes up to the end of the first command or message. Returns how many, which is all if nothing was found.
    pub fn next(&mut self, input: &mut [u8], limits: &Limits, rules: &mut Rules<'_>) -> Result<(usize, Option<Found>), ConnectionError> {
        self.forget_spent();
        let mut taken = 0;
        if self.kept.len() > self.whole {
            let (used, head) = self.complete(input, limits, rules)?;
            taken = used;
            let Some(head) = head else { return Ok((taken, None)) };
            let begin = self.whole;
            let opened = rules.open(head, &mut self.kept[begin..], limits)?;
            if opened.command {
                self.spent = Spent::Command;
                return Ok((taken, Some(Found::Command(Place::Kept(begin + opened.payload_at..self.kept.len())))));
            }
            self.whole = self.kept.len();
            self.count(self.whole - begin - opened.payload_at, limits)?;
            if !opened.more {
                return Ok((taken, Some(self.message(None))));
            }
        }
        self.scan(input, taken, limits, rules)
    }

    /// Frames that begin in the input, from `begin` on.
    fn scan(
        &mut self,
        input: &mut [u8],
        begin: usize,
        limits: &Limits,
        rules: &mut Rules<'_>,
    ) -> Result<(usize, Option<Found>), ConnectionError> {
        let mut at = begin;
        loop {
            let head = Head::parse(&input[at..])?;
            if let Some(head) = head {
                self.check(head, limits, rules)?;
            }
            let Some(head) = head.filter(|head| head.frame_bytes() <= input.len() - at) else {
                self.keep(&input[begin..], at - begin);
                return Ok((input.len(), None));
            };
            let end = at + head.frame_bytes();
            let opened = rules.open(head, &mut input[at..end], limits)?;
            if opened.command {
                self.keep(&input[begin..at], at - begin);
                return Ok((end, Some(Found::Command(Place::Input(at + opened.payload_at..end)))));
            }
            self.count(end - at - opened.payload_at, limits)?;
            at = end;
            if !opened.more && self.kept.is_empty() {
                return Ok((at, Some(self.message(Some(begin..at)))));
            }
            if !opened.more {
                self.keep(&input[begin..at], at - begin);
                return Ok((at, Some(self.message(None))));
            }
        }
    }

    /// Brings the frame that has begun to its end, or as far as the input goes.
    fn complete(&mut self, input: &[u8], limits: &Limits, rules: &Rules<'_>) -> Result<(usize, Option<Head>), ConnectionError> {
        let mut at = 0;
        loop {
            let begun = &self.kept[self.whole..];
            let head = Head::parse(begun)?;
            if let Some(head) = head {
                self.check(head, limits, rules)?;
            }
            let wanted = head.map_or_else(|| Head::head_bytes(begun[0]), |head| head.frame_bytes());
            let missing = wanted - begun.len();
            if missing == 0 {
                return Ok((at, head));
            }
            let here = missing.min(input.len() - at);
            if here == 0 {
                return Ok((at, None));
            }
            self.kept.extend_from_slice(&input[at..at + here]);
            at += here;
        }
    }

    /// Whether the frame of this head may come.
    fn check(&self, head: Head, limits: &Limits, rules: &Rules<'_>) -> Result<(), ConnectionError> {
        rules.check(head, limits)?;
        if matches!(rules, Rules::Traffic(Protection::None)) && !head.command {
            self.check_message(head.body_bytes, limits)?;
        }
        Ok(())
    }

    /// Whether the message may have one more frame, of this payload.
    fn check_message(&self, payload_bytes: u64, limits: &Limits) -> Result<(), ConnectionError> {
        let bytes = self.payload_bytes as u64 + payload_bytes;
        let too_much = |what, came, max| Err(ConnectionError::TooMuch { what, came, max });
        if payload_bytes > limits.frame_bytes_max as u64 {
            return too_much("bytes of a frame", payload_bytes, limits.frame_bytes_max);
        }
        if bytes > limits.message_bytes_max as u64 {
            return too_much("bytes of a message", bytes, limits.message_bytes_max);
        }
        if self.frames >= limits.frames_max {
            return too_much("frames of a message", self.frames as u64 + 1, limits.frames_max);
        }
        Ok(())
    }

    fn count(&mut self, payload_bytes: usize, limits: &Limits) -> Result<(), ConnectionError> {
        self.check_message(payload_bytes as u64, limits)?;
        self.frames += 1;
        self.payload_bytes += payload_bytes;
        Ok(())
    }

    /// Keeps the end of the input; the first `whole` bytes of it are whole frames.
    fn keep(&mut self, input: &[u8], whole: usize) {
        self.kept.extend_from_slice(input);
        self.whole += whole;
    }

    /// The message whose last frame was found: in this part of the input, or in what is kept.
    fn message(&mut self, input: Option<Range<usize>>) -> Found {
        let frames = std::mem::take(&mut self.frames);
        self.payload_bytes = 0;
        let place = input.map(Place::Input).unwrap_or_else(|| {
            self.spent = Spent::Message;
            Place::Kept(0..self.whole)
        });
        Found::Message { place, frames }
    }

    fn forget_spent(&mut self) {
        match self.spent {
            Spent::Nothing => {}
            Spent::Command => self.kept.truncate(self.whole),
            Spent::Message => {
                self.kept.clear();
                self.whole = 0;
            }
        }
        self.spent = Spent::Nothing;
    }
}

impl Rules<'_> {
    /// Whether a frame of this head may come, before its body is in.
    fn check(&self, head: Head, limits: &Limits) -> Result<(), ConnectionError> {
        let (what, max) = match self {
            Self::Handshake if !head.command => return Err(ConnectionError::Early),
            Self::Handshake => ("bytes of a command of the handshake", limits.handshake_bytes_max()),
            Self::Traffic(Protection::None) if head.command => ("bytes of a command", limits.command_bytes_max),
            Self::Traffic(Protection::None) => ("bytes of a frame", limits.frame_bytes_max),
            Self::Traffic(Protection::Curve(_)) => {
                let inner_bytes_max = limits.frame_bytes_max.max(limits.command_bytes_max);
                ("bytes of a CURVE frame", inner_bytes_max.saturating_add(Protection::CURVE_BYTES))
            }
        };
        if head.body_bytes > max as u64 {
            return Err(ConnectionError::TooMuch { what, came: head.body_bytes, max });
        }
        Ok(())
    }

    /// Opens a whole frame, where it stands.
    fn open(&mut self, head: Head, frame: &mut [u8], limits: &Limits) -> Result<Opened, ConnectionError> {
        let opened = match self {
            Self::Handshake => return Ok(Opened { command: true, more: false, payload_at: head.head_bytes }),
            Self::Traffic(protection) => protection.open(head, frame)?,
        };
        let payload_bytes = frame.len() - opened.payload_at;
        if opened.command && payload_bytes > limits.command_bytes_max {
            let came = payload_bytes as u64;
            return Err(ConnectionError::TooMuch { what: "bytes of a command", came, max: limits.command_bytes_max });
        }
        Ok(opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_follows_what_came_and_not_what_was_announced() {
        let (mut assembly, mut protection) = (Assembly::new(), Protection::None);
        let limits = Limits { frame_bytes_max: 1 << 40, message_bytes_max: 1 << 40, ..Limits::default() };
        let mut head = [2, 0, 0, 0, 0xff, 0, 0, 0, 0];
        let next = assembly.next(&mut head, &limits, &mut Rules::Traffic(&mut protection));
        assert_eq!(next, Ok((9, None)));
        for _ in 0..100 {
            assert_eq!(assembly.next(&mut [1; 10], &limits, &mut Rules::Traffic(&mut protection)), Ok((10, None)));
        }
        assert!(assembly.kept.capacity() <= 2 * (9 + 1000), "{}", assembly.kept.capacity());
    }

    #[test]
    fn what_is_whole_in_the_input_stays_there() {
        let (mut assembly, mut protection) = (Assembly::new(), Protection::None);
        let mut input = *b"\x01\x01a\0\x01b\0\x01c";
        let limits = Limits::default();
        let found = |range, frames| Some(Found::Message { place: Place::Input(range), frames });
        let rules = &mut Rules::Traffic(&mut protection);
        assert_eq!(assembly.next(&mut input, &limits, rules), Ok((6, found(0..6, 2))));
        assert_eq!(assembly.next(&mut input[6..], &limits, rules), Ok((3, found(0..3, 1))));
        assert_eq!(assembly.kept.capacity(), 0);
    }

    #[test]
    fn memory_that_is_not_needed_is_given_back() {
        let (mut assembly, mut protection) = (Assembly::new(), Protection::None);
        let limits = Limits::default();
        let rules = &mut Rules::Traffic(&mut protection);
        let mut message = [&b"\x02\0\0\0\0\0\0\xff\xff"[..], &[0; 0xffff]].concat();
        assert_eq!(assembly.next(&mut message[..60_000], &limits, rules), Ok((60_000, None)));
        let found = assembly.next(&mut message[60_000..], &limits, rules);
        assert_eq!(found, Ok((5544, Some(Found::Message { place: Place::Kept(0..65_544), frames: 1 }))));
        assembly.shrink();
        assert_eq!(assembly.kept.capacity(), 0);
    }
}
