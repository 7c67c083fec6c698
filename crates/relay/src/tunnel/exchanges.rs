//! Requests and answers of a connection to a provider in a session without frames: whether everything that was asked is answered, so that the connection may end.

use std::collections::VecDeque;

use super::whole_requests::{names, whole_request};

/// Whole requests that one connection to a provider is given in a session without frames: servers end one that has served so many, and upstream's gateways begin another
/// behind as many (`provider_side_max_request_per_socket`).
pub const PLAIN_REQUESTS_MAX: u32 = 50;
/// Longest head of an answer, or line between its chunks, that is read; behind a longer one nothing is known any more.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEAD_END: &[u8] = b"\r\n\r\n";

/// What one connection was asked, and how far it has answered.
#[derive(Clone, Debug)]
pub(super) struct Exchanges {
    given: u32,
    /// Of each request that is not answered wholly: whether its answer has a body.
    waiting: VecDeque<bool>,
    place: Place,
    /// The provider has said that it ends the connection.
    is_last: bool,
}

/// Where in its answers the provider is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// In a head, of which this has come.
    Head(Vec<u8>),
    /// So many bytes in front of the answer's end.
    Body(u64),
    /// In the line in front of a chunk.
    ChunkLine(Vec<u8>),
    /// So many bytes in front of the next such line.
    Chunk(u64),
    /// In a line behind the last chunk.
    Trailer(Vec<u8>),
    /// In what only the connection's end ends, or in what is not understood.
    Unknown,
}

/// What a head says of what is behind it.
struct Head {
    /// Nothing is answered yet.
    is_interim: bool,
    body: Place,
    is_last: bool,
}

impl Exchanges {
    /// A connection that nobody was asked by.
    pub(super) fn new() -> Self {
        Self { given: 0, waiting: VecDeque::new(), place: Place::Head(Vec::new()), is_last: false }
    }

    /// The connection is given a message.
    pub(super) fn ask(&mut self, message: &[u8]) {
        self.given += 1;
        match whole_request(message) {
            // Whoever says that it is the last one waits for the connection's end, too.
            Some(request) if !request.is_last && request.method != "CONNECT" => self.waiting.push_back(request.method != "HEAD"),
            _ => self.place = Place::Unknown,
        }
    }

    /// It has had as many as it is given.
    pub(super) fn is_full(&self) -> bool {
        self.given >= PLAIN_REQUESTS_MAX
    }

    /// Everything is answered, wholly.
    pub(super) fn is_settled(&self) -> bool {
        self.waiting.is_empty() && matches!(&self.place, Place::Head(begun) if begun.is_empty())
    }

    /// Everything is answered, and the provider has said that nothing more will be.
    pub(super) fn is_last(&self) -> bool {
        self.is_last && self.is_settled()
    }

    /// The provider has said this.
    pub(super) fn answer(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.place != Place::Unknown {
            bytes = self.read(bytes);
        }
    }

    /// Reads on in one place; gives what is behind it.
    fn read<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (next, rest) = match &mut self.place {
            Place::Head(begun) => match gather(begun, bytes, HEAD_END) {
                (true, rest) => (self.head(), rest),
                (false, rest) => (too_long(begun), rest),
            },
            Place::Body(left) => match pass(left, bytes) {
                (true, rest) => (Some(self.answered()), rest),
                (false, rest) => (None, rest),
            },
            Place::ChunkLine(begun) => match gather(begun, bytes, b"\n") {
                (true, rest) => (Some(chunk(begun)), rest),
                (false, rest) => (too_long(begun), rest),
            },
            Place::Chunk(left) => match pass(left, bytes) {
                (true, rest) => (Some(Place::ChunkLine(Vec::new())), rest),
                (false, rest) => (None, rest),
            },
            Place::Trailer(begun) => match gather(begun, bytes, b"\n") {
                (true, rest) if begun.trim_ascii().is_empty() => (Some(self.answered()), rest),
                (true, rest) => (Some(Place::Trailer(Vec::new())), rest),
                (false, rest) => (too_long(begun), rest),
            },
            Place::Unknown => (None, &[][..]),
        };
        if let Some(next) = next {
            self.place = next;
        }
        rest
    }

    /// A head has come.
    fn head(&mut self) -> Option<Place> {
        let Place::Head(head) = &self.place else { return None };
        let head = self.waiting.front().and_then(|has_body| read_head(head, *has_body));
        // An answer that nobody has asked for is none.
        let Some(head) = head else { return Some(Place::Unknown) };
        self.is_last |= head.is_last;
        Some(match head.body {
            _ if head.is_interim => Place::Head(Vec::new()),
            Place::Body(0) => self.answered(),
            body => body,
        })
    }

    /// The first request that waits is answered wholly.
    fn answered(&mut self) -> Place {
        self.waiting.pop_front();
        Place::Head(Vec::new())
    }
}

/// Gathers up to and with the end; gives whether it has come, and what is behind it.
fn gather<'a>(begun: &mut Vec<u8>, bytes: &'a [u8], end: &[u8]) -> (bool, &'a [u8]) {
    // The end may have begun in what had come before.
    let from = begun.len().saturating_sub(end.len() - 1);
    let before = begun.len();
    begun.extend_from_slice(&bytes[..bytes.len().min(HEAD_BYTES_MAX)]);
    match begun[from..].windows(end.len()).position(|window| window == end) {
        Some(place) => {
            let length = from + place + end.len();
            begun.truncate(length);
            (true, &bytes[length - before..])
        }
        None => (false, &bytes[begun.len() - before..]),
    }
}

fn too_long(begun: &[u8]) -> Option<Place> {
    (begun.len() > HEAD_BYTES_MAX).then_some(Place::Unknown)
}

/// Passes over what is left; gives whether that was all, and what is behind it.
fn pass<'a>(left: &mut u64, bytes: &'a [u8]) -> (bool, &'a [u8]) {
    let passed = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
    *left -= passed as u64;
    (*left == 0, &bytes[passed..])
}

/// What is behind the line in front of a chunk.
fn chunk(line: &[u8]) -> Place {
    let text = std::str::from_utf8(line).unwrap_or_default();
    let length = text.split([';', '\r', '\n']).next().unwrap_or_default().trim();
    // `from_str_radix` takes a sign.
    let is_hex = length.bytes().all(|byte| byte.is_ascii_hexdigit());
    match u64::from_str_radix(length, 16) {
        Ok(0) if is_hex => Place::Trailer(Vec::new()),
        // Its line's end belongs to it.
        Ok(length) if is_hex => length.checked_add(2).map_or(Place::Unknown, Place::Chunk),
        _ => Place::Unknown,
    }
}

/// Reads an answer's head (RFC 9112, section 6.3); `None`: it is none.
fn read_head(head: &[u8], has_body: bool) -> Option<Head> {
    let mut lines = std::str::from_utf8(head).ok()?.split("\r\n");
    let mut first = lines.next()?.splitn(3, ' ');
    let version = first.next().filter(|version| version.starts_with("HTTP/1."))?;
    let status = first.next().filter(|status| status.len() == 3)?.parse::<u16>().ok()?;
    let (mut length, mut is_chunked, mut is_coded) = (None, false, false);
    let (mut closes, mut stays) = (false, false);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            let told = value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse::<u64>().ok()).flatten()?;
            if length.replace(told).is_some_and(|before| before != told) {
                return None;
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            is_coded = true;
            is_chunked = value.rsplit(',').next().is_some_and(|last| last.trim().eq_ignore_ascii_case("chunked"));
        } else if name.eq_ignore_ascii_case("connection") {
            closes |= names(value, "close");
            stays |= names(value, "keep-alive");
        }
    }
    let is_interim = (100..200).contains(&status) && status != 101;
    let body = match (status, length) {
        (101, _) => Place::Unknown,
        (204 | 304, _) => Place::Body(0),
        _ if !has_body => Place::Body(0),
        _ if is_chunked => Place::ChunkLine(Vec::new()),
        // Only the connection's end says where it ends.
        _ if is_coded => Place::Unknown,
        (_, Some(length)) => Place::Body(length),
        (_, None) => Place::Unknown,
    };
    Some(Head { is_interim, body, is_last: closes || (version == "HTTP/1.0" && !stays) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GET: &[u8] = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    const HEAD: &[u8] = b"HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n";
    const LENGTH: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345";
    const CHUNKS: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;a=b\r\n\r\n\r\n\r\nA\r\n0123456789\r\n0\r\nT: t\r\n\r\n";
    const EMPTY: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

    /// Whether everything is settled behind each byte, but not behind one before.
    fn is_whole_at_its_end(asked: &[u8], answer: &[u8]) -> bool {
        let mut exchanges = Exchanges::new();
        exchanges.ask(asked);
        let before = answer[..answer.len() - 1].iter().any(|byte| {
            exchanges.answer(&[*byte]);
            exchanges.is_settled()
        });
        exchanges.answer(&answer[answer.len() - 1..]);
        !before && exchanges.is_settled()
    }

    #[test]
    fn an_answer_is_whole_at_its_end() {
        let get: [&[u8]; 7] = [
            LENGTH,
            CHUNKS,
            EMPTY,
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 900\r\n\r\n",
            b"HTTP/1.1 404 \r\ncontent-length:0\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        ];
        for answer in get {
            assert!(is_whole_at_its_end(GET, answer), "{}", String::from_utf8_lossy(answer));
        }
        assert!(is_whole_at_its_end(HEAD, b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"));
    }

    #[test]
    fn what_only_the_connections_end_ends_or_nobody_understands_is_never_settled() {
        let get: [&[u8]; 10] = [
            b"HTTP/1.1 200 OK\r\n\r\nuntil its end",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 101 Switching Protocols\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: +0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
            b"HTTP/2 200\r\nContent-Length: 0\r\n\r\n",
            b"SSH-2.0-OpenSSH\r\n\r\n",
            b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
        ];
        for answer in get {
            let mut exchanges = Exchanges::new();
            exchanges.ask(GET);
            exchanges.answer(answer);
            exchanges.answer(LENGTH);
            assert!(!exchanges.is_settled(), "{}", String::from_utf8_lossy(answer));
        }
        for asked in [
            &b"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n"[..],
            b"GET /a HTTP/1.1\r\nConnection: TE, close\r\n\r\n",
            &[GET, GET].concat(),
            b"POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\n123",
        ] {
            let mut exchanges = Exchanges::new();
            exchanges.ask(asked);
            exchanges.answer(&[LENGTH, LENGTH].concat());
            assert!(!exchanges.is_settled(), "{}", String::from_utf8_lossy(asked));
        }
        let mut unasked = Exchanges::new();
        unasked.answer(LENGTH);
        assert!(!unasked.is_settled());
        let mut endless = Exchanges::new();
        endless.ask(GET);
        endless.answer(&vec![b'a'; HEAD_BYTES_MAX]);
        assert_ne!(endless.place, Place::Unknown);
        endless.answer(&vec![b'a'; 2 * HEAD_BYTES_MAX]);
        assert_eq!(endless.place, Place::Unknown);
    }

    #[test]
    fn a_provider_that_ends_the_connection_says_so_in_an_answer_or_by_its_version() {
        for (answer, is_last) in [
            (LENGTH, false),
            (b"HTTP/1.1 200 OK\r\nConnection: TE, Close\r\nContent-Length: 0\r\n\r\n", true),
            (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", true),
            (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", false),
        ] {
            let mut exchanges = Exchanges::new();
            exchanges.ask(GET);
            exchanges.answer(&answer[..answer.len() - 1]);
            assert!(!exchanges.is_last(), "the answer is not whole");
            exchanges.answer(&answer[answer.len() - 1..]);
            assert_eq!(exchanges.is_last(), is_last, "{}", String::from_utf8_lossy(answer));
        }
    }

    proptest! {
        #[test]
        fn however_answers_are_cut_they_are_settled_one_after_the_other(which in proptest::collection::vec(0..4_usize, 1..8), cut in 1..60_usize) {
            let mut exchanges = Exchanges::new();
            let mut said = Vec::new();
            for which in &which {
                exchanges.ask(if *which == 3 { HEAD } else { GET });
                said.extend_from_slice([LENGTH, CHUNKS, EMPTY, &LENGTH[..LENGTH.len() - 5]][*which]);
            }
            let mut come = 0;
            for piece in said.chunks(cut) {
                prop_assert!(!exchanges.is_settled(), "behind {} of {} bytes", come, said.len());
                exchanges.answer(piece);
                come += piece.len();
            }
            prop_assert!(exchanges.is_settled());
        }

        #[test]
        fn whatever_comes_is_read_to_its_end(bytes in proptest::collection::vec(any::<u8>(), 0..300), text in "(HTTP/1.[01] [0-9]{3} [a-z]{0,3}\r\n(Content-Length|Transfer-Encoding|Connection): [0-9a-z,]{0,8}\r\n\r\n[0-9a-f]{0,4}\r\n){0,4}") {
            let mut exchanges = Exchanges::new();
            for _ in 0..4 {
                exchanges.ask(GET);
            }
            exchanges.answer(text.as_bytes());
            exchanges.answer(&bytes);
        }
    }
}
