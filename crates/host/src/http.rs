//! The only place that reads HTTP/1.1 requests: used by the data plane's shard and by the control plane alike.
//!
//! Bytes go in at [`RequestReader::space`], whole requests come out of [`RequestReader::next`]. What could be understood
//! in two ways (two lengths, a length beside a transfer coding) is refused and the connection closed.

mod lengths;

use std::ops::Range;

use bodkin_arrowhead::trace::{Cause, METADATA_KEY as TRACE, STATE_KEY as TRACE_STATE, TraceContext, TraceState};
use httparse::{EMPTY_HEADER, Header, Status};

use self::lengths::Lengths;
use crate::quotas::{BufferQuota, QuotaExceeded};

/// Headers of one request at the most; more get 431.
pub const HEADERS_MAX: usize = 64;
/// Bytes of request line and headers at the most; more get 431.
pub const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Size of a reader's first buffer, in bytes. The limits of connections bound this memory; growth beyond it needs a [`BufferQuota`].
pub const FIRST_BUFFER_BYTES: usize = 4 * 1024;
/// Smallest free space offered to a read while the request's length is not known, in bytes.
const READ_SPACE_MIN: usize = 1024;
/// First bytes of a head that are parsed as they arrive, so that bytes of another protocol are refused at once.
const FIRST_BYTES_MAX: usize = 64;

/// A request that cannot be taken. It is answered with the status, and the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpError {
    /// Not HTTP/1.1, or ambiguous: 400.
    Malformed(&'static str),
    /// The body is longer than its limit: 413.
    BodyTooLong,
    /// Request line and headers are longer or more than their limit: 431.
    HeadTooLong,
    /// A transfer coding other than `chunked`: 501.
    UnknownCoding,
    /// Not HTTP/1.0 or 1.1: 505.
    UnknownVersion,
    /// The memory for incomplete requests is used up: 503.
    Quota(QuotaExceeded),
}

impl HttpError {
    /// Status and what to tell.
    pub fn told(self) -> (u16, String) {
        match self {
            Self::Malformed(why) => (400, why.to_owned()),
            Self::BodyTooLong => (413, "The body is longer than this operation takes.".to_owned()),
            Self::HeadTooLong => (431, format!("Request line and headers may have {HEAD_BYTES_MAX} bytes and {HEADERS_MAX} headers.")),
            Self::UnknownCoding => (501, "Only the transfer coding chunked is known.".to_owned()),
            Self::UnknownVersion => (505, "Only HTTP/1.1 and HTTP/1.0 are known.".to_owned()),
            Self::Quota(exceeded) => (503, format!("Rejected: {exceeded}. Retry later.")),
        }
    }
}

/// Persistence of a connection after an answer (RFC 9112, section 9.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persistence {
    /// It is closed.
    #[default]
    Close,
    /// It stays open, as HTTP/1.1 has it.
    Keep,
    /// It stays open because a client of HTTP/1.0 has requested that; the answer confirms it.
    KeepConfirmed,
}

impl Persistence {
    /// True if the connection stays open.
    pub fn keeps(self) -> bool {
        self != Self::Close
    }

    /// The same if the condition holds, else the connection is closed.
    pub fn only_if(self, condition: bool) -> Self {
        if condition { self } else { Self::Close }
    }
}

/// One whole request, borrowed from the reader's buffer.
#[derive(Debug, Default)]
pub struct RawRequest<'b> {
    /// The request line's method.
    pub method: &'b str,
    /// The request line's target, reduced to path and query.
    pub target: &'b str,
    /// `Host`, empty if absent.
    pub host: &'b str,
    /// `Content-Type`, empty if absent.
    pub content_type: &'b str,
    /// The header `eventtype` of the improved Event Handler's subscribers.
    pub event_type: Option<&'b str>,
    /// The header `Last-Event-ID` of a listener that comes back.
    pub last_event_id: Option<&'b str>,
    /// `Origin`: the page that sends the request.
    pub origin: Option<&'b str>,
    /// `Access-Control-Request-Method`: what a preflight asks for.
    pub asked_method: Option<&'b str>,
    /// `Authorization`: a credential beside the certificate.
    pub authorization: Option<&'b str>,
    /// `If-None-Match`: entity tags of what the client still has.
    pub if_none_match: Option<&'b str>,
    /// `Accept`: media types that the client reads.
    pub accept: Option<&'b str>,
    /// `Cookie`: what this server has set in a browser. Browsers send one such header (RFC 6265, section 5.4); a further one is ignored.
    pub cookie: Option<&'b str>,
    /// Values of `Forwarded`, in the order they came.
    pub forwarded: Vec<&'b str>,
    /// Values of `X-Forwarded-For`.
    pub forwarded_for: Vec<&'b str>,
    /// `traceparent` and `tracestate`: what has caused the request; `None` too where it says none that can be.
    pub trace: Option<Cause>,
    /// Headers that begin with `ce-`, without that: attributes of a CloudEvent.
    pub cloud_event: Vec<(&'b str, &'b str)>,
    /// `WebHook-Request-Origin`: who asks whether it may post CloudEvents.
    pub webhook_origin: Option<&'b str>,
    /// `Content-Encoding`, if it names a coding other than `identity`.
    pub content_coding: Option<&'b str>,
    /// Whether `Content-Length: 0` was said.
    pub says_empty: bool,
    /// Persistence of the connection after the answer.
    pub keep_alive: Persistence,
    /// The body, without its transfer coding.
    pub body: &'b [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyLength {
    Bytes(usize),
    Chunked,
}

impl Default for BodyLength {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

/// What the head says, as places in the buffer, so that it is parsed once however the body arrives.
#[derive(Clone, Debug, Default)]
struct Head {
    length: usize,
    method: (usize, usize),
    target: (usize, usize),
    host: Option<(usize, usize)>,
    content_type: (usize, usize),
    event_type: Option<(usize, usize)>,
    last_event_id: Option<(usize, usize)>,
    origin: Option<(usize, usize)>,
    asked_method: Option<(usize, usize)>,
    authorization: Option<(usize, usize)>,
    if_none_match: Option<(usize, usize)>,
    accept: Option<(usize, usize)>,
    cookie: Option<(usize, usize)>,
    forwarded: Vec<(usize, usize)>,
    forwarded_for: Vec<(usize, usize)>,
    /// Once it was given; of two that it was given neither counts.
    trace: Option<Option<TraceContext>>,
    /// What is said of the trace, in as many headers as there are.
    trace_state: Vec<(usize, usize)>,
    cloud_event: Vec<[(usize, usize); 2]>,
    webhook_origin: Option<(usize, usize)>,
    content_coding: Option<(usize, usize)>,
    body: BodyLength,
    says_empty: bool,
    keep_alive: Persistence,
    expects_continue: bool,
}

/// Reads requests from one connection.
#[derive(Debug)]
pub struct RequestReader {
    buffer: Vec<u8>,
    /// Bytes in front that belong to requests already taken.
    taken: usize,
    /// Bytes that are filled.
    filled: usize,
    /// Bytes of the current request's head that were searched for the end of a line.
    searched: usize,
    #[cfg(test)]
    heads_parsed: usize,
    head: Option<Head>,
    /// Bytes of a chunked body decoded so far; they stand behind the head, and the next chunk behind them.
    decoded: usize,
    body_bytes_max: usize,
    /// Memory beyond the first buffer; `None`: the body's limit alone bounds it.
    quota: Option<BufferQuota>,
    /// The quota that the buffer's growth has exceeded.
    exceeded: Option<QuotaExceeded>,
}

impl RequestReader {
    /// A reader whose requests have bodies of at most `body_bytes_max` bytes. Nothing is allocated before the first byte.
    pub fn new(body_bytes_max: usize) -> Self {
        Self {
            buffer: Vec::new(),
            taken: 0,
            filled: 0,
            searched: 0,
            #[cfg(test)]
            heads_parsed: 0,
            head: None,
            decoded: 0,
            body_bytes_max,
            quota: None,
            exceeded: None,
        }
    }

    /// Limits the reader's memory by a quota.
    pub fn within(self, quota: BufferQuota) -> Self {
        Self { quota: Some(quota), ..self }
    }

    /// Free space to read into; tell [`Self::fill`] how much of it was used.
    ///
    /// # Errors
    /// Returns `Quota` if the buffer has to grow and its quota is used up; [`Self::next`] then returns the same error.
    pub fn space(&mut self) -> Result<&mut [u8], HttpError> {
        if self.taken > 0 {
            self.buffer.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
        }
        let bytes = self.next_buffer_bytes();
        if bytes > self.buffer.len() {
            if let Some(quota) = self.quota.as_mut().filter(|_| bytes > FIRST_BUFFER_BYTES)
                && let Err(exceeded) = quota.resize(bytes)
            {
                self.exceeded = Some(exceeded);
                return Err(HttpError::Quota(exceeded));
            }
            // `resize` alone may allocate twice as much.
            self.buffer.reserve_exact(bytes - self.buffer.len());
            self.buffer.resize(bytes, 0);
        }
        Ok(&mut self.buffer[self.filled..])
    }

    /// Returns the size of the buffer for the next read. It doubles as bytes arrive, up to the end of the request where that is known;
    /// what a client announces and does not send uses no memory.
    fn next_buffer_bytes(&self) -> usize {
        let free = self.buffer.len() - self.filled;
        let doubled = (2 * self.buffer.len()).max(FIRST_BUFFER_BYTES);
        match self.head.as_ref().map(|head| (head.length, head.body)) {
            // `next` rejects the request before its buffer grows beyond the limit of bodies.
            Some((head, BodyLength::Bytes(body))) if free == 0 => doubled.min((head + body).max(self.filled + READ_SPACE_MIN)),
            Some((_, BodyLength::Bytes(_))) => self.buffer.len(),
            _ if free < READ_SPACE_MIN => doubled,
            _ => self.buffer.len(),
        }
    }

    /// Notes that the first `bytes` of the space were filled.
    pub fn fill(&mut self, bytes: usize) {
        self.filled += bytes;
        assert!(self.filled <= self.buffer.len(), "more was filled than there was space");
    }

    /// Whether a request has begun to arrive and is not whole.
    pub fn is_amid_request(&self) -> bool {
        self.filled > self.taken
    }

    /// Whether the head is whole and the body is not.
    pub fn is_amid_body(&self) -> bool {
        self.head.is_some()
    }

    /// Lets the request whose head was read have a longer body. Returns false if its length is not known, or is longer.
    pub fn raise_body_limit(&mut self, body_bytes_max: usize) -> bool {
        let is_enough = matches!(self.head, Some(Head { body: BodyLength::Bytes(bytes), .. }) if bytes <= body_bytes_max);
        if is_enough {
            self.body_bytes_max = self.body_bytes_max.max(body_bytes_max);
        }
        is_enough
    }

    /// Gives memory beyond `kept_bytes` back while nothing is under way.
    pub fn shrink(&mut self, kept_bytes: usize) {
        if !self.is_amid_request() && self.buffer.len() > kept_bytes {
            (self.buffer, self.taken, self.filled, self.searched) = (Vec::new(), 0, 0, 0);
            if let Some(quota) = &mut self.quota {
                quota.release();
            }
        }
    }

    /// Whether the client waits for `100 Continue` before it sends the body. True once for a request.
    pub fn take_expects_continue(&mut self) -> bool {
        self.head.as_mut().is_some_and(|head| std::mem::take(&mut head.expects_continue))
    }

    /// `Origin` and `Host` of a request whose head is whole, although the rest of it was refused or is awaited.
    pub fn page(&self) -> Option<(&str, &str)> {
        let head = self.head.as_ref()?;
        let text = |place: (usize, usize)| std::str::from_utf8(&self.buffer[self.taken + place.0..self.taken + place.1]).ok();
        Some((text(head.origin?)?, text(head.host?)?))
    }

    /// The target of a request whose head is whole, although the rest of it was refused or is awaited.
    pub fn target(&self) -> Option<&str> {
        let (from, to) = self.head.as_ref()?.target;
        std::str::from_utf8(&self.buffer[self.taken + from..self.taken + to]).ok()
    }

    /// The next whole request, or `None` if more bytes are needed. After an error the connection is of no more use.
    #[allow(clippy::should_implement_trait)] // What it gives borrows from the reader, which an iterator's items cannot.
    pub fn next(&mut self) -> Result<Option<RawRequest<'_>>, HttpError> {
        if let Some(exceeded) = self.exceeded {
            return Err(HttpError::Quota(exceeded));
        }
        let start = self.taken;
        let Some(head) = self.parsed_head()? else { return Ok(None) };
        let (body_start, body_length, end) = match head.body {
            BodyLength::Bytes(length) if length > self.body_bytes_max => {
                // It gets an answer instead.
                self.take_expects_continue();
                return Err(HttpError::BodyTooLong);
            }
            BodyLength::Bytes(length) if self.filled - start < head.length + length => return Ok(None),
            BodyLength::Bytes(length) => (start + head.length, length, start + head.length + length),
            BodyLength::Chunked => match self.decode_chunks(start, head.length)? {
                Some((length, end)) => (start + head.length, length, end),
                None => return Ok(None),
            },
        };
        self.taken = end;
        self.searched = 0;
        self.head = None;
        self.decoded = 0;
        Ok(Some(self.raw(start, &head, body_start..body_start + body_length)?))
    }

    /// The head of a request whose body is not whole yet, as a request without a body.
    ///
    /// # Errors
    /// Returns the error that [`Self::next`] would return.
    pub fn head(&self) -> Result<Option<RawRequest<'_>>, HttpError> {
        self.head.as_ref().map(|head| self.raw(self.taken, head, 0..0)).transpose()
    }

    /// The request whose head is at `start` of the buffer.
    fn raw(&self, start: usize, head: &Head, body: Range<usize>) -> Result<RawRequest<'_>, HttpError> {
        let text = |place: (usize, usize)| std::str::from_utf8(&self.buffer[start + place.0..start + place.1]);
        let texts = |places: &[(usize, usize)]| places.iter().copied().map(text).collect::<Result<_, _>>();
        let pairs = |places: &[[(usize, usize); 2]]| -> Result<Vec<_>, std::str::Utf8Error> {
            places.iter().copied().map(|[name, value]| Ok((text(name)?, text(value)?))).collect()
        };
        let malformed = |_| HttpError::Malformed("A header that matters is not UTF-8.");
        let trace = head.trace.flatten().map(|context| {
            let fields = head.trace_state.iter().map(|place| &self.buffer[start + place.0..start + place.1]);
            Cause { context, state: TraceState::parse(fields) }
        });
        Ok(RawRequest {
            method: text(head.method).map_err(malformed)?,
            target: text(head.target).map_err(malformed)?,
            host: head.host.map_or(Ok(""), text).map_err(malformed)?,
            content_type: text(head.content_type).map_err(malformed)?,
            event_type: head.event_type.map(text).transpose().map_err(malformed)?,
            last_event_id: head.last_event_id.map(text).transpose().map_err(malformed)?,
            origin: head.origin.map(text).transpose().map_err(malformed)?,
            asked_method: head.asked_method.map(text).transpose().map_err(malformed)?,
            authorization: head.authorization.map(text).transpose().map_err(malformed)?,
            if_none_match: head.if_none_match.map(text).transpose().map_err(malformed)?,
            // These two matter to browsers only: other octets in them are no reason to reject a request.
            accept: head.accept.and_then(|place| text(place).ok()),
            cookie: head.cookie.and_then(|place| text(place).ok()),
            forwarded: texts(&head.forwarded).map_err(malformed)?,
            forwarded_for: texts(&head.forwarded_for).map_err(malformed)?,
            trace,
            cloud_event: pairs(&head.cloud_event).map_err(malformed)?,
            webhook_origin: head.webhook_origin.map(text).transpose().map_err(malformed)?,
            content_coding: head.content_coding.map(text).transpose().map_err(malformed)?,
            says_empty: head.says_empty,
            keep_alive: head.keep_alive,
            body: &self.buffer[body],
        })
    }

    /// The head at the front of the buffer, once it is whole.
    fn parsed_head(&mut self) -> Result<Option<Head>, HttpError> {
        if self.head.is_none() {
            let bytes = &self.buffer[self.taken..self.filled];
            // A parse per line, not per read: a client that sends single bytes would make each of them cost a parse of all.
            let line_end = bytes[self.searched..].iter().rposition(|byte| *byte == b'\n').map_or(0, |place| self.searched + place + 1);
            let whole_lines = line_end.max(bytes.len().min(FIRST_BYTES_MAX));
            if whole_lines > self.searched {
                #[cfg(test)]
                {
                    self.heads_parsed += 1;
                }
                self.head = parse_head(&bytes[..whole_lines])?;
            }
            self.searched = bytes.len();
            if self.head.is_none() && bytes.len() >= HEAD_BYTES_MAX {
                return Err(HttpError::HeadTooLong);
            }
        }
        Ok(self.head.clone())
    }

    /// Moves chunks together behind the head; gives the body's length and where the request ends once it is whole.
    fn decode_chunks(&mut self, start: usize, head_length: usize) -> Result<Option<(usize, usize)>, HttpError> {
        let malformed = HttpError::Malformed("A chunk of the body is malformed.");
        let body = start + head_length;
        let mut decoded = self.decoded;
        let mut next = decoded;
        loop {
            let rest = &self.buffer[body + next..self.filled];
            let Status::Complete((line, size)) = httparse::parse_chunk_size(rest).map_err(|_| malformed)? else {
                if rest.len() > HEAD_BYTES_MAX {
                    return Err(malformed);
                }
                break;
            };
            if has_bare_line_feed(&rest[..line]) {
                return Err(malformed);
            }
            if size == 0 {
                let trailer = &rest[line..];
                let mut headers = [EMPTY_HEADER; HEADERS_MAX];
                match httparse::parse_headers(trailer, &mut headers).map_err(|_| malformed)? {
                    Status::Complete((length, _)) if has_bare_line_feed(&trailer[..length]) => return Err(malformed),
                    Status::Complete((length, _)) => return Ok(Some((decoded, body + next + line + length))),
                    Status::Partial if trailer.len() > HEAD_BYTES_MAX => return Err(HttpError::HeadTooLong),
                    Status::Partial => break,
                }
            }
            let size = usize::try_from(size).ok().filter(|size| *size <= self.body_bytes_max - decoded).ok_or(HttpError::BodyTooLong)?;
            let Some(tail) = rest.get(line + size..line + size + 2) else { break };
            if tail != b"\r\n" {
                return Err(malformed);
            }
            let chunk = body + next + line;
            self.buffer.copy_within(chunk..chunk + size, body + decoded);
            decoded += size;
            next += line + size + 2;
        }
        // Without the chunk lines in between, the buffer holds no more than the body's limit and what is being read.
        self.buffer.copy_within(body + next..self.filled, body + decoded);
        self.filled -= next - decoded;
        self.decoded = decoded;
        Ok(None)
    }
}

fn parse_head(bytes: &[u8]) -> Result<Option<Head>, HttpError> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) if length > HEAD_BYTES_MAX => return Err(HttpError::HeadTooLong),
        Ok(Status::Complete(length)) if has_bare_line_feed(&bytes[..length]) => {
            return Err(HttpError::Malformed("A line of the head ends without a carriage return."));
        }
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(HttpError::HeadTooLong),
        Err(httparse::Error::Version) => return Err(HttpError::UnknownVersion),
        Err(_) => return Err(HttpError::Malformed("This is not an HTTP/1.1 request.")),
    };
    let place = |part: &[u8]| {
        let from = part.as_ptr() as usize - bytes.as_ptr() as usize;
        assert!(from + part.len() <= bytes.len(), "a part of the head lies in the buffer");
        (from, from + part.len())
    };
    let version = request.version.expect("a whole head has a version");
    let (authority, target) = split_authority(request.path.expect("a whole head has a target"))?;
    let mut head = Head {
        length,
        method: place(request.method.expect("a whole head has a method").as_bytes()),
        target: place(target.as_bytes()),
        keep_alive: if version == 1 { Persistence::Keep } else { Persistence::Close },
        ..Head::default()
    };
    let mut lengths = Lengths::default();
    for header in request.headers.iter() {
        read_header(&mut head, &mut lengths, header, version, &place)?;
    }
    (head.body, head.says_empty) = lengths.body(version)?;
    if version == 1 && head.host.is_none() {
        return Err(HttpError::Malformed("Host is missing."));
    }
    // The target's host counts, and not the header's (RFC 9112, section 3.2.2).
    head.host = authority.map(|authority| place(authority.as_bytes())).or(head.host);
    Ok(Some(head))
}

/// Whether a line ends by a line feed alone. The parser takes it for an end of line, but a proxy in front may not: what it forwards as
/// one header or chunk extension would be two here (RFC 9112, section 11.2).
fn has_bare_line_feed(lines: &[u8]) -> bool {
    let line_feeds = lines.iter().filter(|byte| **byte == b'\n').count();
    let line_ends = lines.windows(2).filter(|pair| *pair == b"\r\n").count();
    line_feeds != line_ends
}

/// Splits a target into the authority of its absolute form, which clients send to proxies, and its path and query.
fn split_authority(target: &str) -> Result<(Option<&str>, &str), HttpError> {
    let Some((_, rest)) = target.split_once("://").filter(|(scheme, _)| !scheme.contains('/')) else { return Ok((None, target)) };
    let path = rest.find(['/', '?']).filter(|at| rest[*at..].starts_with('/'));
    let (authority, path) = rest.split_at(path.ok_or(HttpError::Malformed("The request's target has no path."))?);
    if authority.is_empty() || authority.contains('@') {
        return Err(HttpError::Malformed("The request's target has no host, or names a user before its host."));
    }
    Ok((Some(authority), path))
}

fn read_header(
    head: &mut Head,
    lengths: &mut Lengths,
    header: &Header<'_>,
    version: u8,
    place: &impl Fn(&[u8]) -> (usize, usize),
) -> Result<(), HttpError> {
    let is = |name: &str| header.name.eq_ignore_ascii_case(name);
    let value = header.value.trim_ascii();
    match header.name.len() {
        4 if is("Host") && head.host.is_some() => return Err(HttpError::Malformed("Host was given twice.")),
        4 if is("Host") => head.host = Some(place(value)),
        9 if is("Forwarded") => head.forwarded.push(place(value)),
        15 if is("X-Forwarded-For") => head.forwarded_for.push(place(value)),
        9 if is("eventtype") => head.event_type = Some(place(value)),
        6 if is("Origin") => head.origin = Some(place(value)),
        6 if is("Accept") => head.accept = Some(place(value)),
        6 if is("Cookie") && head.cookie.is_none() => head.cookie = Some(place(value)),
        6 if is("Expect") => head.expects_continue = value.eq_ignore_ascii_case(b"100-continue") && version == 1,
        10 if is("Connection") => {
            let words = || value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            if words().any(|word| word.eq_ignore_ascii_case(b"close")) {
                head.keep_alive = Persistence::Close;
            } else if words().any(|word| word.eq_ignore_ascii_case(b"keep-alive")) {
                head.keep_alive = if version == 1 { Persistence::Keep } else { Persistence::KeepConfirmed };
            }
        }
        12 if is("Content-Type") => head.content_type = place(value),
        13 if is("Last-Event-ID") => head.last_event_id = Some(place(value)),
        13 if is("Authorization") && head.authorization.is_some() => return Err(HttpError::Malformed("Authorization was given twice.")),
        13 if is("Authorization") => head.authorization = Some(place(value)),
        11 if is(TRACE) => head.trace = Some(TraceContext::parse(value).filter(|_| head.trace.is_none())),
        10 if is(TRACE_STATE) => head.trace_state.push(place(value)),
        13 if is("If-None-Match") => head.if_none_match = Some(place(value)),
        14 if is("Content-Length") => lengths.content_length(value)?,
        29 if is("Access-Control-Request-Method") => head.asked_method = Some(place(value)),
        22 if is("WebHook-Request-Origin") => head.webhook_origin = Some(place(value)),
        16 if is("Content-Encoding") && is_coded(value) => head.content_coding = Some(place(value)),
        17 if is("Transfer-Encoding") => lengths.transfer_encoding(value)?,
        4.. if header.name.as_bytes()[..3].eq_ignore_ascii_case(b"ce-") => {
            head.cloud_event.push([place(&header.name.as_bytes()[3..]), place(value)]);
        }
        _ => {}
    }
    Ok(())
}

/// Returns true if a `Content-Encoding` names a coding other than `identity`.
fn is_coded(value: &[u8]) -> bool {
    let mut codings = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    codings.any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
}

#[cfg(test)]
mod tests;
