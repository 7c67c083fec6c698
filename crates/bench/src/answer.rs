//! Reads one HTTP/1.1 answer from whatever pieces the socket gives.
//!
//! [`Head`] says how the body is framed, [`Body`] finds the body's bytes in the stream without copying them, and
//! [`AnswerReader`] puts both together for answers that end. An event stream uses `Head` and `Body` by themselves.

use std::ops::Range;

/// Longest accepted head of an answer, in bytes.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Longest accepted body of an answer, in bytes; a query for everything may be long.
pub const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most header lines accepted in one head.
const HEADERS_MAX: usize = 64;

/// What is wrong with the bytes of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerError {
    /// The status line or a header line is malformed.
    Head(httparse::Error),
    /// The head is longer than [`HEAD_BYTES_MAX`].
    HeadTooLong,
    /// `Content-Length` is not a number.
    ContentLength,
    /// A chunk's size line or end is malformed.
    Chunk,
    /// The body is longer than [`BODY_BYTES_MAX`].
    BodyTooLong,
}

impl std::fmt::Display for AnswerError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Head(error) => write!(out, "malformed head of the answer: {error}"),
            Self::HeadTooLong => write!(out, "the answer's head is longer than {HEAD_BYTES_MAX} bytes"),
            Self::ContentLength => write!(out, "the answer's Content-Length is not a number"),
            Self::Chunk => write!(out, "malformed chunk in the answer"),
            Self::BodyTooLong => write!(out, "the answer's body is longer than {BODY_BYTES_MAX} bytes"),
        }
    }
}

impl std::error::Error for AnswerError {}

/// Status and framing of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// HTTP status code.
    pub status: u16,
    /// How the body is framed.
    pub framing: Framing,
    /// The peer will close the connection after this answer.
    pub closes: bool,
}

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// By its length in bytes.
    Length(usize),
    /// By an empty chunk.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

impl Head {
    /// Parses the head at the start of `bytes`; gives it and its length in bytes, or `None` when it is not all there.
    ///
    /// # Errors
    /// The head is malformed or too long.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, AnswerError> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        match response.parse(bytes).map_err(AnswerError::Head)? {
            httparse::Status::Partial if bytes.len() > HEAD_BYTES_MAX => Err(AnswerError::HeadTooLong),
            httparse::Status::Partial => Ok(None),
            httparse::Status::Complete(length) => {
                let status = response.code.unwrap_or(0);
                let old = response.version == Some(0);
                let mut head = Self { status, framing: Framing::UntilClose, closes: old };
                let mut chunked = false;
                for header in response.headers.iter() {
                    if header.name.eq_ignore_ascii_case("content-length") {
                        let text = std::str::from_utf8(header.value).map_err(|_| AnswerError::ContentLength)?;
                        head.framing = Framing::Length(text.trim().parse().map_err(|_| AnswerError::ContentLength)?);
                    } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                        chunked |= header.value.to_ascii_lowercase().ends_with(b"chunked");
                    } else if header.name.eq_ignore_ascii_case("connection") {
                        head.closes |= header.value.eq_ignore_ascii_case(b"close");
                    }
                }
                if chunked {
                    head.framing = Framing::Chunked;
                }
                if status < 200 || matches!(status, 204 | 304) {
                    head.framing = Framing::Length(0);
                }
                Ok(Some((head, length)))
            }
        }
    }
}

/// Finds the bytes of one body in the stream.
#[derive(Debug)]
pub struct Body {
    place: Place,
    taken_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Counted { left: usize },
    Open,
    ChunkSize { size: usize, digits: u8, extension: bool },
    ChunkData { left: usize },
    ChunkEnd,
    Trailer { line_bytes: usize },
    Done,
}

/// What [`Body::decode`] found at the start of its input.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// Where the next bytes of the body lie in the input; may be empty.
    pub data: Range<usize>,
    /// Bytes of the input that were used. Always more than 0 unless the body is done.
    pub used: usize,
}

impl Body {
    /// The body that follows a head with this framing.
    pub fn new(framing: Framing) -> Self {
        let place = match framing {
            Framing::Length(0) => Place::Done,
            Framing::Length(left) => Place::Counted { left },
            Framing::UntilClose => Place::Open,
            Framing::Chunked => Place::ChunkSize { size: 0, digits: 0, extension: false },
        };
        Self { place, taken_bytes: 0 }
    }

    /// Whether every byte of the body was found.
    pub fn is_done(&self) -> bool {
        self.place == Place::Done
    }

    /// The peer closed the connection; gives whether the body is whole.
    pub fn close(&mut self) -> bool {
        if self.place == Place::Open {
            self.place = Place::Done;
        }
        self.is_done()
    }

    /// Finds the next piece of the body. Call again with the rest of the input until all of it is used or the body is done.
    ///
    /// # Errors
    /// A chunk is malformed.
    pub fn decode(&mut self, input: &[u8]) -> Result<Found, AnswerError> {
        let mut used = 0;
        while used < input.len() {
            match self.place {
                Place::Done => break,
                Place::Open => return Ok(self.found(used..input.len())),
                Place::Counted { left } => {
                    let length = left.min(input.len() - used);
                    self.place = if length == left { Place::Done } else { Place::Counted { left: left - length } };
                    return Ok(self.found(used..used + length));
                }
                Place::ChunkData { left } => {
                    let length = left.min(input.len() - used);
                    self.place = if length == left { Place::ChunkEnd } else { Place::ChunkData { left: left - length } };
                    return Ok(self.found(used..used + length));
                }
                Place::ChunkSize { .. } | Place::ChunkEnd | Place::Trailer { .. } => {
                    self.place = self.framing_byte(input[used])?;
                    used += 1;
                }
            }
        }
        Ok(Found { data: used..used, used })
    }

    /// Bytes of the body found so far.
    pub fn taken_bytes(&self) -> usize {
        self.taken_bytes
    }

    fn found(&mut self, data: Range<usize>) -> Found {
        self.taken_bytes += data.len();
        Found { used: data.end, data }
    }

    fn framing_byte(&self, byte: u8) -> Result<Place, AnswerError> {
        Ok(match (self.place, byte) {
            (Place::ChunkSize { digits: 0, .. }, b'\r' | b'\n' | b';') => return Err(AnswerError::Chunk),
            (place @ Place::ChunkSize { .. }, b'\r') => place,
            (Place::ChunkSize { size: 0, .. }, b'\n') => Place::Trailer { line_bytes: 0 },
            (Place::ChunkSize { size, .. }, b'\n') => Place::ChunkData { left: size },
            (Place::ChunkSize { size, digits, extension: true }, _) => Place::ChunkSize { size, digits, extension: true },
            (Place::ChunkSize { size, digits, .. }, b';' | b' ' | b'\t') => Place::ChunkSize { size, digits, extension: true },
            (Place::ChunkSize { size, digits, .. }, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(AnswerError::Chunk)?;
                if digits == 8 {
                    return Err(AnswerError::Chunk);
                }
                Place::ChunkSize { size: size * 16 + digit as usize, digits: digits + 1, extension: false }
            }
            (Place::ChunkEnd, b'\r') => Place::ChunkEnd,
            (Place::ChunkEnd, b'\n') => Place::ChunkSize { size: 0, digits: 0, extension: false },
            (Place::ChunkEnd, _) => return Err(AnswerError::Chunk),
            (place @ Place::Trailer { .. }, b'\r') => place,
            (Place::Trailer { line_bytes: 0 }, b'\n') => Place::Done,
            (Place::Trailer { .. }, b'\n') => Place::Trailer { line_bytes: 0 },
            (Place::Trailer { line_bytes }, _) if line_bytes < HEAD_BYTES_MAX => Place::Trailer { line_bytes: line_bytes + 1 },
            (Place::Trailer { .. }, _) => return Err(AnswerError::Chunk),
            (Place::Counted { .. } | Place::Open | Place::ChunkData { .. } | Place::Done, _) => unreachable!("these hold no framing bytes"),
        })
    }
}

/// Puts one whole answer together, and the next after [`AnswerReader::reset`], in buffers that are kept.
#[derive(Debug, Default)]
pub struct AnswerReader {
    head_bytes: Vec<u8>,
    head: Option<Head>,
    framing: Option<Body>,
    body: Vec<u8>,
}

impl AnswerReader {
    /// Takes bytes from the stream; gives how many were used. All are, unless the answer ends before them.
    ///
    /// # Errors
    /// The bytes are not an answer of HTTP/1.1, or it is too long.
    pub fn take(&mut self, input: &[u8]) -> Result<usize, AnswerError> {
        let mut used = 0;
        while used < input.len() && !self.is_complete() {
            used += match &mut self.framing {
                None => self.take_head(&input[used..])?,
                Some(framing) => {
                    let rest = &input[used..];
                    let found = framing.decode(rest)?;
                    if framing.taken_bytes() > BODY_BYTES_MAX {
                        return Err(AnswerError::BodyTooLong);
                    }
                    self.body.extend_from_slice(&rest[found.data]);
                    found.used
                }
            };
        }
        Ok(used)
    }

    fn take_head(&mut self, input: &[u8]) -> Result<usize, AnswerError> {
        // A whole head in one piece is the usual case and is not copied.
        let before = self.head_bytes.len();
        let parsed = if before == 0 {
            Head::parse(input)?
        } else {
            self.head_bytes.extend_from_slice(input);
            Head::parse(&self.head_bytes)?
        };
        let Some((head, length)) = parsed else {
            if before == 0 {
                self.head_bytes.extend_from_slice(input);
            }
            return Ok(input.len());
        };
        self.head_bytes.clear();
        if head.status >= 200 {
            self.head = Some(head);
            self.framing = Some(Body::new(head.framing));
        }
        Ok(length - before)
    }

    /// Whether the whole answer is there.
    pub fn is_complete(&self) -> bool {
        self.framing.as_ref().is_some_and(Body::is_done)
    }

    /// The peer closed the connection; gives whether that completed the answer.
    pub fn close(&mut self) -> bool {
        self.framing.as_mut().is_some_and(Body::close)
    }

    /// Status of the answer, 0 before its head is there.
    pub fn status(&self) -> u16 {
        self.head.map_or(0, |head| head.status)
    }

    /// Whether the peer closes the connection after this answer.
    pub fn closes(&self) -> bool {
        self.head.is_some_and(|head| head.closes || head.framing == Framing::UntilClose)
    }

    /// The body's bytes so far.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Makes ready for the next answer on the connection.
    pub fn reset(&mut self) {
        self.head_bytes.clear();
        self.body.clear();
        self.head = None;
        self.framing = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COUNTED: &[u8] = b"HTTP/1.1 201 Created\r\ncontent-LENGTH: 11\r\nX: y\r\n\r\nhello world";
    const CHUNKED: &[u8] = b"HTTP/1.1 201 \r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n06;a=b\r\n world\r\n0\r\nTrailer: x\r\n\r\n";
    const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 11\r\n\r\nhello world";
    const OPEN: &[u8] = b"HTTP/1.1 201 Created\r\nConnection: close\r\n\r\nhello world";

    fn read(reader: &mut AnswerReader, pieces: &[&[u8]]) -> Result<(), AnswerError> {
        for piece in pieces {
            let used = reader.take(piece)?;
            assert_eq!(used, piece.len());
        }
        Ok(())
    }

    #[test]
    fn every_cut_gives_the_same_answer() {
        let mut reader = AnswerReader::default();
        for whole in [COUNTED, CHUNKED, INTERIM] {
            for cut in 0..=whole.len() {
                for second in cut..=whole.len() {
                    read(&mut reader, &[&whole[..cut], &whole[cut..second], &whole[second..]]).unwrap();
                    assert!(reader.is_complete(), "{cut} {second}");
                    assert_eq!((reader.status(), reader.body()), (201, b"hello world".as_slice()));
                    reader.reset();
                }
            }
        }
    }

    #[test]
    fn an_answer_without_a_length_ends_with_the_connection() {
        let mut reader = AnswerReader::default();
        read(&mut reader, &[OPEN]).unwrap();
        assert!(!reader.is_complete());
        assert!(reader.close());
        assert_eq!(reader.body(), b"hello world");
        assert!(reader.closes());
    }

    #[test]
    fn a_cut_off_answer_is_not_complete() {
        let mut reader = AnswerReader::default();
        read(&mut reader, &[&COUNTED[..COUNTED.len() - 1]]).unwrap();
        assert!(!reader.is_complete());
        assert!(!reader.close());
    }

    #[test]
    fn bytes_after_the_answer_are_left() {
        let mut two = COUNTED.to_vec();
        two.extend_from_slice(CHUNKED);
        let mut reader = AnswerReader::default();
        assert_eq!(reader.take(&two).unwrap(), COUNTED.len());
        assert!(reader.is_complete());
        assert_eq!(reader.take(&two[COUNTED.len()..]).unwrap(), 0, "nothing is taken before the reset");
    }

    #[test]
    fn an_empty_answer_needs_no_body() {
        let mut reader = AnswerReader::default();
        read(&mut reader, &[b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]).unwrap();
        assert!(reader.is_complete() && reader.body().is_empty() && !reader.closes());
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let long = [b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &[b'x'; HEAD_BYTES_MAX]].concat();
        for (bytes, error) in [
            (b"SSH-2.0-x\r\n".as_slice(), AnswerError::Head(httparse::Error::Version)),
            (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", AnswerError::ContentLength),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", AnswerError::Chunk),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", AnswerError::Chunk),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n123456789\r\n", AnswerError::Chunk),
            (long.as_slice(), AnswerError::HeadTooLong),
        ] {
            assert_eq!(AnswerReader::default().take(bytes), Err(error));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), head in 0..3usize) {
            let heads: [&[u8]; 3] = [b"", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"HTTP/1.1 200 OK\r\n"];
            let mut reader = AnswerReader::default();
            let whole = [heads[head], &bytes].concat();
            let _ = reader.take(&whole);
        }
    }
}
