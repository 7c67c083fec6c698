//! Reads a subscriber's answers to pushed events. Whatever it sends, memory and interim answers are limited.

use std::{
    num::NonZeroU32,
    time::{Duration, SystemTime},
};

use httparse::{EMPTY_HEADER, Header, Status};

/// Bytes of status line and headers at the most.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Headers of an answer at the most.
const HEADERS_MAX: usize = 64;
/// Interim answers (1xx) in front of one answer at the most.
const INTERIM_MAX: u32 = 8;
/// Bytes of a body that are read and dropped; beyond them the connection is closed instead.
const BODY_BYTES_MAX: u64 = 64 * 1024;
/// Free space offered to a read.
const READ_SPACE: usize = 4 * 1024;

/// What is looked at of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status, 200 to 999.
    pub status: u16,
    /// Whether the connection can be used again.
    pub keeps_alive: bool,
    /// How long the subscriber asks to be left alone.
    pub retry_after: Option<Duration>,
    /// What it says of CloudEvents.
    pub permission: Permission,
}

/// What an answer says of the wish to post CloudEvents (CloudEvents' Web Hooks, section 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permission {
    /// Nothing.
    #[default]
    Silent,
    /// That others may.
    OfAnother,
    /// That this cloud may.
    Granted {
        /// Requests in a minute; `None`: as many as there are.
        per_minute: Option<NonZeroU32>,
    },
}

/// Bytes that are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// Not HTTP/1.
    #[error("expected an HTTP/1.1 answer, and got something else")]
    Malformed,
    /// More than anybody needs.
    #[error("its answer has more than {HEAD_BYTES_MAX} bytes or {HEADERS_MAX} headers")]
    HeadTooLong,
    /// Nothing but interim answers.
    #[error("it sent more than {INTERIM_MAX} interim answers")]
    Interim,
}

/// The answers of one connection, in their order.
#[derive(Debug, Default)]
pub struct ResponseReader {
    buffer: Vec<u8>,
    at: usize,
    interim: u32,
    /// Whom permissions have to be for.
    origin: Option<Box<str>>,
    /// The answer whose body is being dropped, and the body's bytes so far.
    body: Option<(Response, Framing, u64)>,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// After so many bytes.
    Length(u64),
    /// Bytes of the present chunk, its line end included, that are still to come.
    Chunks { left: u64, is_last: bool },
    /// With the connection.
    UntilClose,
}

impl ResponseReader {
    /// Reads answers to one who asks under this name whether CloudEvents are wanted.
    pub fn asking_as(origin: &str) -> Self {
        Self { origin: Some(origin.into()), ..Self::default() }
    }

    /// Room for the next read.
    pub fn space(&mut self) -> &mut Vec<u8> {
        self.buffer.drain(..self.at);
        self.at = 0;
        self.buffer.reserve(READ_SPACE);
        &mut self.buffer
    }

    /// Whether something came that belongs to no answer yet.
    pub fn is_empty(&self) -> bool {
        self.at == self.buffer.len() && self.body.is_none()
    }

    /// The next whole answer, if it is there.
    pub fn take(&mut self) -> Result<Option<Response>, ResponseError> {
        loop {
            if let Some((response, framing, bytes)) = self.body.take() {
                return self.drop_body(response, framing, bytes);
            }
            let Some((head_bytes, response, framing)) = parse_head(&self.buffer[self.at..], self.origin.as_deref())? else {
                return Ok(None);
            };
            self.at += head_bytes;
            if response.status >= 200 {
                self.interim = 0;
                self.body = Some((response, framing, 0));
                continue;
            }
            self.interim += 1;
            if self.interim > INTERIM_MAX || response.status == 101 {
                return Err(ResponseError::Interim);
            }
        }
    }

    fn drop_body(&mut self, response: Response, mut framing: Framing, bytes: u64) -> Result<Option<Response>, ResponseError> {
        let from = self.at;
        let is_whole = loop {
            match &mut framing {
                Framing::UntilClose => return Ok(Some(Response { keeps_alive: false, ..response })),
                Framing::Length(left) => {
                    *left -= self.skip(*left);
                    break *left == 0;
                }
                Framing::Chunks { left, is_last } => {
                    *left -= self.skip(*left);
                    if *left > 0 {
                        break false;
                    }
                    match self.chunk_line(*is_last)? {
                        None => break false,
                        Some(Framing::Length(_)) => break true,
                        Some(next) => framing = next,
                    }
                }
            }
        };
        let bytes = bytes + (self.at - from) as u64;
        if is_whole {
            return Ok(Some(response));
        }
        if bytes > BODY_BYTES_MAX {
            return Ok(Some(Response { keeps_alive: false, ..response }));
        }
        self.body = Some((response, framing, bytes));
        Ok(None)
    }

    /// Drops at most so many bytes of what has come; gives how many.
    fn skip(&mut self, bytes: u64) -> u64 {
        let skipped = bytes.min((self.buffer.len() - self.at) as u64);
        self.at += skipped as usize;
        skipped
    }

    /// Takes a chunk's size line, or behind the last chunk a trailer line; gives what follows, a length at the body's end.
    fn chunk_line(&mut self, is_last: bool) -> Result<Option<Framing>, ResponseError> {
        let rest = &self.buffer[self.at..];
        let too_long = |rest: &[u8]| if rest.len() > HEAD_BYTES_MAX { Err(ResponseError::HeadTooLong) } else { Ok(None) };
        if is_last {
            let Some(line) = rest.windows(2).position(|pair| pair == b"\r\n") else { return too_long(rest) };
            self.at += line + 2;
            return Ok(Some(if line == 0 { Framing::Length(0) } else { Framing::Chunks { left: 0, is_last: true } }));
        }
        match httparse::parse_chunk_size(rest).map_err(|_| ResponseError::Malformed)? {
            Status::Partial => too_long(rest),
            Status::Complete((line, size)) => {
                self.at += line;
                let left = if size == 0 { 0 } else { size.saturating_add(2) };
                Ok(Some(Framing::Chunks { left, is_last: size == 0 }))
            }
        }
    }
}

fn parse_head(bytes: &[u8], origin: Option<&str>) -> Result<Option<(usize, Response, Framing)>, ResponseError> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    let head_bytes = match parsed.parse(bytes) {
        Ok(Status::Complete(head_bytes)) if head_bytes <= HEAD_BYTES_MAX => head_bytes,
        Ok(Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(ResponseError::HeadTooLong),
        Err(_) => return Err(ResponseError::Malformed),
    };
    let status = parsed.code.unwrap_or_default();
    let mut response = Response { status, keeps_alive: parsed.version == Some(1), retry_after: None, permission: Permission::Silent };
    let mut framing = if matches!(status, 100..200 | 204 | 304) { Framing::Length(0) } else { Framing::UntilClose };
    for header in parsed.headers.iter() {
        take_header(header, &mut response, &mut framing)?;
    }
    if let Some(origin) = origin {
        response.permission = permission(parsed.headers, origin);
    }
    Ok(Some((head_bytes, response, framing)))
}

fn take_header(header: &Header<'_>, response: &mut Response, framing: &mut Framing) -> Result<(), ResponseError> {
    let text = std::str::from_utf8(header.value).unwrap_or_default().trim();
    let has_body = *framing != Framing::Length(0) || !matches!(response.status, 100..200 | 204 | 304);
    if header.name.eq_ignore_ascii_case("connection") {
        response.keeps_alive &= !text.to_ascii_lowercase().contains("close");
    } else if header.name.eq_ignore_ascii_case("retry-after") {
        response.retry_after = retry_after(text);
    } else if header.name.eq_ignore_ascii_case("transfer-encoding") && has_body {
        *framing = Framing::Chunks { left: 0, is_last: false };
    } else if header.name.eq_ignore_ascii_case("content-length") && has_body && !matches!(framing, Framing::Chunks { .. }) {
        *framing = Framing::Length(text.parse().map_err(|_| ResponseError::Malformed)?);
    }
    Ok(())
}

/// Consent is `*` or the origin itself; a rate that is no number above nothing is no limit that could be kept.
fn permission(headers: &[Header<'_>], origin: &str) -> Permission {
    let value = |name: &str| {
        let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(std::str::from_utf8(header.value).unwrap_or_default().trim())
    };
    match value("webhook-allowed-origin") {
        None => Permission::Silent,
        Some(allowed) if allowed == "*" || allowed.eq_ignore_ascii_case(origin) => {
            Permission::Granted { per_minute: value("webhook-allowed-rate").and_then(|rate| rate.parse().ok()) }
        }
        Some(_) => Permission::OfAnother,
    }
}

/// Seconds, or a date.
fn retry_after(text: &str) -> Option<Duration> {
    let seconds = text.parse().ok().map(Duration::from_secs);
    seconds.or_else(|| httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds bytes in pieces of every size; each time the same answers come.
    fn check(claim: &str, bytes: &[u8], expected: &[(u16, bool)], end: Result<(), ResponseError>) {
        for size in 1..=bytes.len() {
            let (mut reader, mut found, mut ended) = (ResponseReader::default(), Vec::new(), Ok(()));
            'pieces: for piece in bytes.chunks(size) {
                reader.space().extend_from_slice(piece);
                loop {
                    match reader.take() {
                        Ok(Some(response)) => found.push((response.status, response.keeps_alive)),
                        Ok(None) => break,
                        Err(error) => {
                            ended = Err(error);
                            break 'pieces;
                        }
                    }
                    if found.last().is_some_and(|(_, keeps_alive)| !keeps_alive) {
                        break 'pieces;
                    }
                }
            }
            assert_eq!((found.as_slice(), ended), (expected, end), "{claim}, in pieces of {size}");
        }
    }

    #[test]
    fn answers_are_told_apart_however_they_come() {
        let ok = (200, true);
        check(
            "two with lengths",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n",
            &[ok, (404, true)],
            Ok(()),
        );
        check("no body", b"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", &[(204, true), ok], Ok(()));
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nA: b\r\n\r\n";
        check("chunks", chunked, &[ok], Ok(()));
        check("two in chunks", &[&chunked[..], chunked].concat(), &[ok, ok], Ok(()));
        check("until the end", b"HTTP/1.1 200 OK\r\n\r\nwhatever", &[(200, false)], Ok(()));
        check("old", b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", &[(200, false)], Ok(()));
        check("closing", b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n", &[(200, false)], Ok(()));
        check("interim", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", &[ok], Ok(()));
        check("interim for ever", &b"HTTP/1.1 102 Wait\r\n\r\n".repeat(9), &[], Err(ResponseError::Interim));
        check("another protocol", b"HTTP/1.1 101 Switch\r\n\r\n", &[], Err(ResponseError::Interim));
        check("no HTTP", b"SSH-2.0-x\r\n", &[], Err(ResponseError::Malformed));
        check("no length", b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", &[], Err(ResponseError::Malformed));
        check("no chunk", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", &[], Err(ResponseError::Malformed));
        check("a part", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", &[], Ok(()));
    }

    #[test]
    fn what_has_no_end_is_cut_off() {
        let feed = |head: &[u8], piece: &[u8]| {
            let mut reader = ResponseReader::default();
            reader.space().extend_from_slice(head);
            for read in 0..100_000 {
                match reader.take() {
                    Ok(None) => reader.space().extend_from_slice(piece),
                    ended => return (ended, read * piece.len() < 200_000 && reader.buffer.len() < 40_000),
                }
            }
            panic!("it went on for ever");
        };
        let closed = Ok(Some(Response { status: 200, keeps_alive: false, retry_after: None, permission: Permission::Silent }));
        let endless = [b'x'; 1000];
        assert_eq!(feed(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", &endless), (closed, true));
        let chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(feed(chunks, b"5\r\nhello\r\n"), (closed, true));
        assert_eq!(feed(b"HTTP/1.1 200 OK\r\nA: ", &endless), (Err(ResponseError::HeadTooLong), true));
        assert_eq!(feed(b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"), (Err(ResponseError::HeadTooLong), true));
        let trailers = [&chunks[..], b"0\r\n"].concat();
        assert_eq!(feed(&trailers, b"A: b\r\n"), (closed, true));
    }

    #[test]
    fn consent_is_what_headers_say_to_who_asks() {
        let said = |headers: &str| {
            let mut reader = ResponseReader::asking_as("works.acme");
            reader.space().extend_from_slice(format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: 0\r\n\r\n").as_bytes());
            reader.take().unwrap().unwrap().permission
        };
        let granted = |rate| Permission::Granted { per_minute: NonZeroU32::new(rate) };
        assert_eq!(said(""), Permission::Silent);
        assert_eq!(said("WebHook-Allowed-Origin: other.acme\r\n"), Permission::OfAnother);
        assert_eq!(said("WebHook-Allowed-Origin: Works.acme\r\n"), granted(0));
        assert_eq!(said("webhook-allowed-rate: 120\r\nwebhook-allowed-origin: *\r\n"), granted(120));
        for unlimited in ["*", "0", "-1", "many", "99999999999"] {
            assert_eq!(said(&format!("WebHook-Allowed-Origin: *\r\nWebHook-Allowed-Rate: {unlimited}\r\n")), granted(0), "{unlimited}");
        }
        let mut reader = ResponseReader::default();
        reader.space().extend_from_slice(b"HTTP/1.1 200 OK\r\nWebHook-Allowed-Origin: *\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(reader.take().unwrap().unwrap().permission, Permission::Silent, "who does not ask is told nothing");
    }

    #[test]
    fn a_subscriber_says_when_it_is_back_in_seconds_or_as_a_date() {
        assert_eq!(retry_after("7"), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("soon"), None);
        let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        assert!(retry_after(&date).is_some_and(|wait| wait <= Duration::from_secs(100) && wait > Duration::from_secs(90)));
        assert_eq!(retry_after("Thu, 01 Jan 1970 00:00:00 GMT"), None);
    }
}
