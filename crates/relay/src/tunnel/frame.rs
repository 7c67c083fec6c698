//! What two Bodkins' gateways say to each other in a tunnel. A frame has one form only; it is sealed and numbered before a relay has it.

use super::Connection;

/// Longest piece of a connection's bytes.
pub const PIECE_BYTES_MAX: usize = 64 * 1024;
/// Longest words of a reset or a close, in bytes.
pub const WORDS_BYTES_MAX: usize = 256;

const READY: u8 = 1;
const CONNECT: u8 = 2;
const BYTES: u8 = 3;
const CREDIT: u8 = 4;
const END: u8 = 5;
const RESET: u8 = 6;
const KEEP_ALIVE: u8 = 7;
const CLOSE: u8 = 8;

/// A message of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The provider's gateway has heard of the session, and wants to hear of the other one so often, in milliseconds, while there is a connection.
    Ready(u32),
    /// A consumer has connected.
    Connect(Connection),
    /// What it, or the provider, says: 1 to [`PIECE_BYTES_MAX`] bytes.
    Bytes(Connection, Vec<u8>),
    /// So many more bytes may be sent: at least one.
    Credit(Connection, u32),
    /// Nothing more comes in this direction.
    End(Connection),
    /// The connection broke, for this reason, and is given up.
    Reset(Connection, String),
    /// Whoever says this is there.
    KeepAlive,
    /// The session is over, for this reason.
    Close(String),
}

/// What is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// There is no such kind.
    #[error("a frame of kind {0} came: 1 to 8 are known")]
    Kind(u8),
    /// Its fields are cut, too long, or followed by something.
    #[error("a frame of kind {kind} with {bytes} bytes came, which it cannot have")]
    Length {
        /// Its kind.
        kind: u8,
        /// What is behind the kind.
        bytes: usize,
    },
    /// It has no kind.
    #[error("a frame without a kind came")]
    Empty,
    /// A field has a value that it cannot have.
    #[error("a frame of kind {0} came with connection 0, credit of nothing, or words that are no text")]
    Value(u8),
}

impl Frame {
    /// Its bytes, as [`Self::write_into`].
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes_max());
        self.write_into(&mut bytes);
        bytes
    }

    /// As many bytes as it has, or a few more.
    pub fn bytes_max(&self) -> usize {
        1 + 4
            + match self {
                Self::Bytes(_, piece) => piece.len(),
                Self::Reset(_, words) | Self::Close(words) => words.len().min(WORDS_BYTES_MAX),
                Self::Credit(..) => 4,
                Self::Ready(_) | Self::Connect(_) | Self::End(_) | Self::KeepAlive => 0,
            }
    }

    /// Appends its bytes. Words are cut to [`WORDS_BYTES_MAX`].
    ///
    /// # Panics
    /// If it has a piece of none or too many bytes, or credit of nothing: these are the writer's to ask.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        let mut of = |kind: u8, connection: Connection, rest: &[u8]| {
            assert_ne!(connection, 0, "connections are numbered from 1 on");
            out.push(kind);
            out.extend_from_slice(&connection.to_be_bytes());
            out.extend_from_slice(rest);
        };
        match self {
            Self::Ready(silent_ms) => {
                out.push(READY);
                out.extend_from_slice(&silent_ms.to_be_bytes());
            }
            Self::KeepAlive => out.push(KEEP_ALIVE),
            Self::Connect(connection) => of(CONNECT, *connection, &[]),
            Self::Bytes(connection, piece) => {
                assert!((1..=PIECE_BYTES_MAX).contains(&piece.len()), "a piece of {} bytes", piece.len());
                of(BYTES, *connection, piece);
            }
            Self::Credit(connection, bytes) => {
                assert_ne!(*bytes, 0, "credit of nothing");
                of(CREDIT, *connection, &bytes.to_be_bytes());
            }
            Self::End(connection) => of(END, *connection, &[]),
            Self::Reset(connection, words) => of(RESET, *connection, cut(words).as_bytes()),
            Self::Close(words) => {
                out.push(CLOSE);
                out.extend_from_slice(cut(words).as_bytes());
            }
        }
    }

    /// Reads one.
    pub fn read(bytes: &[u8]) -> Result<Self, FrameFault> {
        let (kind, rest) = bytes.split_first().ok_or(FrameFault::Empty)?;
        let kind = *kind;
        let length = || FrameFault::Length { kind, bytes: rest.len() };
        let text = |words: &[u8]| {
            if words.len() > WORDS_BYTES_MAX {
                return Err(length());
            }
            std::str::from_utf8(words).map(str::to_owned).map_err(|_| FrameFault::Value(kind))
        };
        let connection = || connection(kind, rest);
        let alone = |frame: Self, rest: &[u8]| if rest.is_empty() { Ok(frame) } else { Err(length()) };
        match kind {
            READY => Ok(Self::Ready(u32::from_be_bytes(rest.try_into().map_err(|_| length())?))),
            KEEP_ALIVE => alone(Self::KeepAlive, rest),
            CONNECT => connection().and_then(|(number, rest)| alone(Self::Connect(number), rest)),
            END => connection().and_then(|(number, rest)| alone(Self::End(number), rest)),
            BYTES => piece(rest).map(|(number, piece)| Self::Bytes(number, piece.to_vec())),
            CREDIT => {
                let (number, rest) = connection()?;
                let bytes = u32::from_be_bytes(rest.try_into().map_err(|_| length())?);
                if bytes == 0 { Err(FrameFault::Value(kind)) } else { Ok(Self::Credit(number, bytes)) }
            }
            RESET => connection().and_then(|(number, words)| Ok(Self::Reset(number, text(words)?))),
            CLOSE => text(rest).map(Self::Close),
            _ => Err(FrameFault::Kind(kind)),
        }
    }

    /// Reads the one that begins there in a message, to its end. A piece has the message's room: it is moved to its beginning, and not copied to another.
    pub fn read_from(mut message: Vec<u8>, at: usize) -> Result<Self, FrameFault> {
        let frame = message.get(at..).unwrap_or_default();
        let Some((&BYTES, rest)) = frame.split_first() else { return Self::read(frame) };
        let (number, piece) = piece(rest)?;
        message.drain(..message.len() - piece.len());
        Ok(Self::Bytes(number, message))
    }
}

/// The connection that a frame of a kind is of, and what is behind its number.
fn connection(kind: u8, rest: &[u8]) -> Result<(Connection, &[u8]), FrameFault> {
    let (number, behind) = rest.split_first_chunk().ok_or(FrameFault::Length { kind, bytes: rest.len() })?;
    let number = Connection::from_be_bytes(*number);
    if number == 0 { Err(FrameFault::Value(kind)) } else { Ok((number, behind)) }
}

/// What is behind the kind of a frame of bytes.
fn piece(rest: &[u8]) -> Result<(Connection, &[u8]), FrameFault> {
    let (number, piece) = connection(BYTES, rest)?;
    let is_one = (1..=PIECE_BYTES_MAX).contains(&piece.len());
    if is_one { Ok((number, piece)) } else { Err(FrameFault::Length { kind: BYTES, bytes: rest.len() }) }
}

/// As much of a text as a frame has room for.
fn cut(words: &str) -> &str {
    &words[..words.floor_char_boundary(WORDS_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> Vec<Frame> {
        vec![
            Frame::Ready(30_000),
            Frame::Connect(1),
            Frame::Bytes(u32::MAX, vec![0, 1, 2]),
            Frame::Bytes(2, vec![7; PIECE_BYTES_MAX]),
            Frame::Credit(3, 65_536),
            Frame::End(4),
            Frame::Reset(5, "the provider is gone".into()),
            Frame::Reset(5, String::new()),
            Frame::KeepAlive,
            Frame::Close("ü".repeat(WORDS_BYTES_MAX / 2)),
        ]
    }

    #[test]
    fn a_frame_is_read_as_it_was_written_and_in_no_other_form() {
        for frame in frames() {
            let bytes = frame.write();
            assert!((bytes.len()..bytes.len() + 5).contains(&frame.bytes_max()), "{frame:?}");
            let mut behind = vec![9];
            frame.write_into(&mut behind);
            assert_eq!(behind, [&[9], bytes.as_slice()].concat());
            assert_eq!(Frame::read(&bytes).as_ref(), Ok(&frame));
            let mut longer = bytes.clone();
            longer.push(0);
            assert_ne!(Frame::read(&longer), Ok(frame.clone()), "{frame:?} with a byte behind it");
            assert_ne!(Frame::read(&bytes[..bytes.len() - 1]), Ok(frame.clone()), "{frame:?} without its last byte");
        }
        let long = Frame::Close("ä".repeat(WORDS_BYTES_MAX)).write();
        assert_eq!(long.len(), 1 + WORDS_BYTES_MAX);
    }

    #[test]
    fn golden_frames_are_read_and_written_and_others_refused() {
        let vectors: serde_json::Value =
            serde_json::from_str(include_str!("../../../../vectors/relay/tunnel.json")).expect("the vectors are JSON");
        let cases = |list: &str, told: &str| -> Vec<(String, Vec<u8>)> {
            let case = |case: &serde_json::Value| {
                let digits: Vec<u32> = case["frame"].as_str().unwrap().chars().map(|digit| digit.to_digit(16).unwrap()).collect();
                let bytes = digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect();
                (case[told].as_str().unwrap().to_owned(), bytes)
            };
            vectors[list].as_array().unwrap().iter().map(case).collect()
        };
        for (means, bytes) in cases("messages", "means") {
            let frame = Frame::read(&bytes).unwrap();
            assert_eq!((format!("{frame:?}"), frame.write()), (means, bytes));
        }
        for (error, bytes) in cases("refused", "error") {
            assert_eq!(Frame::read(&bytes).unwrap_err().to_string(), error, "{bytes:x?}");
        }
    }

    #[test]
    fn what_is_no_frame_is_told() {
        for (bytes, fault) in [
            (&[][..], FrameFault::Empty),
            (&[0], FrameFault::Kind(0)),
            (&[9, 1], FrameFault::Kind(9)),
            (&[2, 0, 0, 0], FrameFault::Length { kind: 2, bytes: 3 }),
            (&[2, 0, 0, 0, 0], FrameFault::Value(2)),
            (&[3, 0, 0, 0, 1], FrameFault::Length { kind: 3, bytes: 4 }),
            (&[4, 0, 0, 0, 1, 0, 0, 0, 0], FrameFault::Value(4)),
            (&[8, 0xff], FrameFault::Value(8)),
            (&[7, 7], FrameFault::Length { kind: 7, bytes: 1 }),
        ] {
            assert_eq!(Frame::read(bytes), Err(fault), "{bytes:?}");
        }
        let mut long = vec![BYTES, 0, 0, 0, 1];
        long.extend([0; PIECE_BYTES_MAX + 1]);
        assert!(matches!(Frame::read(&long), Err(FrameFault::Length { .. })));
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_written_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..40), kind in 0..10_u8) {
            let bytes: Vec<u8> = std::iter::once(kind).chain(bytes).collect();
            let read = Frame::read(&bytes);
            for in_front in [0, 9] {
                let message = [&[kind; 9][..in_front], &bytes].concat();
                prop_assert_eq!(&Frame::read_from(message, in_front), &read);
            }
            if let Ok(frame) = read {
                prop_assert_eq!(frame.write(), bytes);
            }
        }
    }
}
