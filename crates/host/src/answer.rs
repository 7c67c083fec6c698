//! An answer as a value, and its bytes. Which status and body an error has is decided here and nowhere else.

use std::{
    fmt,
    io::{self, Write},
    time::{Duration, SystemTime},
};

use bodkin_arrowhead::{audit, error::ArrowheadError, utc::UtcTime};
use bodkin_store::StoreError;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    gate,
    http::{HttpError, Persistence},
    live::Parts,
    problem,
    quotas::QuotaExceeded,
};

/// `Content-Type` of what operations answer.
pub const JSON: &str = "application/json;charset=UTF-8";
/// `Content-Type` of plain words.
pub const TEXT: &str = "text/plain;charset=UTF-8";
/// `Content-Type` of streams of events.
pub const EVENT_STREAM: &str = "text/event-stream;charset=UTF-8";
/// `Content-Type` of errors.
const ERROR_JSON: &str = "application/json";
/// `Content-Type` of what the rules of access answer.
const DENIAL_JSON: &str = "application/json;charset=ISO-8859-1";

/// Bytes of a list that is not requested in pages.
pub const LIST_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Takes bytes up to [`LIST_BYTES_MAX`].
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LIST_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Header with the reason of an answer whose body is empty, as upstream's is.
const REASON: &str = "Bodkin-Reason";
/// Characters of that reason; the rest is cut.
const REASON_LENGTH_MAX: usize = 200;

/// Headers on every answer (reference 1.3).
const COMMON_HEADERS: &str = "X-Content-Type-Options: nosniff\r\nX-XSS-Protection: 1; mode=block\r\nX-Frame-Options: DENY\r\n";

/// On every one besides that has no entity tag.
const NOT_KEPT: &str = "Cache-Control: no-cache, no-store, max-age=0, must-revalidate\r\nPragma: no-cache\r\nExpires: 0\r\n";

/// Headers of event streams.
///
/// Without `X-Accel-Buffering`, nginx keeps a stream's bytes until its buffer is full. Without `no-transform`, a proxy may
/// compress the stream, and compressors buffer too.
const STREAMED: &str = "Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n";

/// Headers of pages and their files, which isolate them from other origins.
///
/// Links send no address. No other origin has a handle of the window, and none loads a file.
const ISOLATION: &str =
    "Referrer-Policy: no-referrer\r\nCross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\n";

/// In secure mode also this, for so many seconds: browsers then call by https only (RFC 6797).
const STRICT_TRANSPORT: &str = "Strict-Transport-Security: max-age=31536000\r\n";

/// What may be done that was asked for by `OPTIONS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permission {
    /// A page may send this method, as a preflight asked.
    Method(&'static str),
    /// CloudEvents may be posted (CloudEvents' Web Hooks).
    Post {
        /// By whom.
        origin: String,
    },
}

/// The value of `Set-Cookie`. In a box, it keeps answers small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetCookie(pub String);

/// One whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// `Content-Type`; `None` where there is no body.
    pub content_type: Option<&'static str>,
    /// A further header, such as `Allow`.
    pub header: Option<(&'static str, String)>,
    /// What was asked for by `OPTIONS`, and may be done.
    pub permission: Option<Box<Permission>>,
    /// A cookie that the browser is to keep (`Set-Cookie`).
    pub cookie: Option<Box<SetCookie>>,
    /// Of what may be kept, its entity tag with its quotes: it is asked for again each time, and not sent again while it is the same.
    pub entity_tag: Option<&'static String>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the connection is closed behind it.
    pub close: bool,
    /// What is told from here on without end, in the place of the body; only Bodkin's own port does that.
    pub live: Parts,
    /// What the audit log keeps of it beyond what the route tells; it is not sent.
    pub account: Option<Box<Map<String, Value>>>,
}

impl Answer {
    fn new(status: u16, content_type: &'static str, body: Vec<u8>) -> Self {
        Self {
            status,
            content_type: Some(content_type),
            header: None,
            permission: None,
            cookie: None,
            entity_tag: None,
            body,
            close: false,
            live: Parts::default(),
            account: None,
        }
    }

    /// Whether a browser shows it or makes a page of it: a page, or a file that is kept for one.
    fn is_shown_by_browsers(&self) -> bool {
        let has_policy = matches!(self.header, Some(("Content-Security-Policy", _)));
        has_policy || self.entity_tag.is_some() || self.content_type.is_some_and(|content_type| content_type.starts_with("text/html"))
    }

    /// A status without a body.
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            content_type: None,
            header: None,
            permission: None,
            cookie: None,
            entity_tag: None,
            body: Vec::new(),
            close: false,
            live: Parts::default(),
            account: None,
        }
    }

    /// A status without a body, and the reason in a header.
    fn empty_because(status: u16, reason: &str) -> Self {
        let visible = |letter: char| if matches!(letter, ' '..='~') { letter } else { '?' };
        let reason = reason.chars().take(REASON_LENGTH_MAX).map(visible).collect();
        Self { header: Some((REASON, reason)), ..Self::empty(status) }
    }

    /// The reason of an answer that gives it in a header only.
    pub fn reason(&self) -> Option<&str> {
        self.header.as_ref().filter(|(name, _)| *name == REASON).map(|(_, reason)| reason.as_str())
    }

    /// A JSON body.
    pub fn json(status: u16, body: &impl Serialize) -> Self {
        Self::new(status, JSON, serde_json::to_vec(body).expect("answers have text keys and finite numbers"))
    }

    /// 400 of a request whose client has ended the connection before the request was whole.
    pub fn incomplete() -> Self {
        Self::text(400, "The connection ended before the request was whole.")
    }

    /// 503 of a quota that is used up. Nothing was done, so the client can retry.
    pub fn quota(exceeded: QuotaExceeded) -> Self {
        Self::of_http_error(HttpError::Quota(exceeded))
    }

    /// The answer to a request that could not be read.
    pub fn of_http_error(error: HttpError) -> Self {
        let (status, told) = error.told();
        let header = matches!(error, HttpError::Quota(_)).then(|| ("Retry-After", "1".to_owned()));
        Self { header, ..Self::text(status, told) }
    }

    /// A list of rows in JSON; 400 if it is longer than [`LIST_BYTES_MAX`].
    pub fn list(body: &impl Serialize) -> Self {
        let mut bytes = Bounded(Vec::new());
        match serde_json::to_writer(&mut bytes, body) {
            Ok(()) => Self::new(200, JSON, bytes.0),
            // Rows have text keys and finite numbers, so only the limit is an error.
            Err(_) => {
                let text = format!("The list is longer than {} MiB. Request pages, by page and item_per_page.", LIST_BYTES_MAX >> 20);
                Refusal::from(ArrowheadError::bad_payload(text, "")).into()
            }
        }
    }

    /// A text body.
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self::new(status, TEXT, body.into().into_bytes())
    }

    /// An error of Bodkin's own interface (RFC 9457): what is wrong, and what to do. Its type is `about:blank`, which is no more than its status, and so the title is the status' phrase.
    pub fn problem(status: u16, detail: &str) -> Self {
        Self::problem_with(status, detail, Map::new())
    }

    /// The same with members of its own, for programs.
    pub fn problem_with(status: u16, detail: &str, members: Map<String, Value>) -> Self {
        let phrase = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Refused");
        let mut body = json!({"type": "about:blank", "title": phrase, "status": status, "detail": detail});
        body.as_object_mut().expect("it is an object").extend(members);
        Self::new(status, problem::MEDIA_TYPE, body.to_string().into_bytes())
    }

    /// With the reason for a denial, which the audit log is told.
    pub fn because(self, why: &str) -> Self {
        let account = Map::from_iter([("why".to_owned(), audit::cut(why).into())]);
        Self { account: Some(Box::new(account)), ..self }
    }

    /// Closes the connection behind the answer.
    pub fn and_close(self) -> Self {
        Self { close: true, ..self }
    }

    /// The framework's answer to a path that nothing is at (reference 1.2).
    pub fn not_found(path: &str, now: UtcTime) -> Self {
        let timestamp = framework_timestamp(now);
        let body = json!({"timestamp": timestamp, "status": 404, "error": "Not Found", "message": "No message available", "path": path});
        Self::new(404, ERROR_JSON, body.to_string().into_bytes())
    }
}

/// `2026-11-20T23:41:37.832+0000`.
fn framework_timestamp(now: UtcTime) -> String {
    let text = now.to_string();
    let (seconds, fraction) = text.trim_end_matches('Z').split_once('.').map_or((text.trim_end_matches('Z'), "000"), |(s, f)| (s, &f[..3]));
    format!("{seconds}.{fraction}+0000")
}

/// Why an operation gives no result.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// Not JSON, a wrong type, a missing parameter: 400 without a body, as upstream's framework answers. The reason is in a header.
    Malformed(String),
    /// A body with this content type, which is not JSON's: 415 without a body, and the reason in a header.
    NotJson(String),
    /// A core system's own error.
    Arrowhead(ArrowheadError),
    /// The caller may not do this; upstream's answer to it.
    Denied {
        /// What is answered.
        error: ArrowheadError,
        /// Which rule refuses, for the audit log only.
        why: String,
    },
}

impl Refusal {
    /// Refuses a request as malformed.
    pub fn malformed(reason: impl fmt::Display) -> Self {
        Self::Malformed(reason.to_string())
    }
}

impl From<ArrowheadError> for Refusal {
    fn from(error: ArrowheadError) -> Self {
        Self::Arrowhead(error)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(error) => error.into(),
            StoreError::Unavailable(message) => ArrowheadError::unavailable(message).into(),
        }
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Malformed(reason) => Self::empty_because(400, &reason),
            Refusal::NotJson(content_type) => {
                Self::empty_because(415, &format!("Content-Type is '{content_type}'; application/json is expected"))
            }
            Refusal::Arrowhead(error) => Self::new(error.error_code, ERROR_JSON, serde_json::to_vec(&error).expect("an error is JSON")),
            Refusal::Denied { error, why } => {
                let text = serde_json::to_string(&error).expect("an error is JSON");
                Self::new(error.error_code, DENIAL_JSON, to_ascii(&text).into_bytes()).because(&why)
            }
        }
    }
}

/// A JSON text that reads the same in every character set: what is not ASCII is escaped.
fn to_ascii(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            ascii.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            fmt::Write::write_fmt(&mut ascii, format_args!("\\u{unit:04x}")).expect("a string takes everything");
        }
    }
    ascii
}

/// The `Date` header's text, made anew once a second.
#[derive(Debug, Default)]
pub struct DateText {
    second: u64,
    text: String,
}

impl DateText {
    /// The text at this moment.
    pub fn at(&mut self, now: SystemTime) -> &str {
        let second = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if self.text.is_empty() || second != self.second {
            self.second = second;
            self.text.clear();
            let date = httpdate::HttpDate::from(SystemTime::UNIX_EPOCH + Duration::from_secs(second));
            fmt::Write::write_fmt(&mut self.text, format_args!("{date}")).expect("a string takes everything");
        }
        &self.text
    }
}

/// How an answer goes to the one who asked.
#[derive(Clone, Copy, Debug)]
pub struct Recipient<'r> {
    /// Persistence of the connection after the answer.
    pub keep_alive: Persistence,
    /// Whether the request was `HEAD`, which gets the headers only.
    pub is_head: bool,
    /// The origin whose pages may read the answer.
    pub reader: Option<&'r str>,
    /// Whether it goes over TLS.
    pub is_secure: bool,
}

impl Recipient<'_> {
    /// Whoever is told why the connection is closed.
    pub const CLOSED: Self = Self { keep_alive: Persistence::Close, is_head: false, reader: None, is_secure: false };
}

/// Appends an answer's bytes.
pub fn push_answer(out: &mut Vec<u8>, answer: &Answer, date: &str, recipient: Recipient<'_>) {
    let reason = http::StatusCode::from_u16(answer.status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Unknown");
    let mut write = |part: fmt::Arguments<'_>| out.write_fmt(part).expect("a vector takes everything");
    write(format_args!("HTTP/1.1 {} {reason}\r\n{COMMON_HEADERS}Date: {date}\r\n", answer.status));
    match answer.entity_tag {
        Some(tag) => write(format_args!("Cache-Control: no-cache\r\nETag: {tag}\r\n")),
        None => write(format_args!("{NOT_KEPT}")),
    }
    // One that says "as before" has the length of what was before (RFC 9110, section 8.6).
    if answer.status != 304 {
        write(format_args!("Content-Length: {}\r\n", answer.body.len()));
    }
    if recipient.is_secure {
        write(format_args!("{STRICT_TRANSPORT}"));
    }
    if answer.is_shown_by_browsers() {
        write(format_args!("{ISOLATION}"));
    }
    if let Some(content_type) = answer.content_type {
        write(format_args!("Content-Type: {content_type}\r\n"));
    }
    if let Some((name, value)) = &answer.header {
        write(format_args!("{name}: {value}\r\n"));
    }
    if let Some(SetCookie(cookie)) = answer.cookie.as_deref() {
        write(format_args!("Set-Cookie: {cookie}\r\n"));
    }
    if let Some(Permission::Post { origin }) = answer.permission.as_deref() {
        write(format_args!("WebHook-Allowed-Origin: {origin}\r\nWebHook-Allowed-Rate: *\r\n"));
    }
    if let Some(reader) = recipient.reader {
        let method = match answer.permission.as_deref() {
            Some(Permission::Method(method)) => Some(*method),
            _ => None,
        };
        gate::push_reader(out, reader, method);
    }
    out.extend_from_slice(match (recipient.keep_alive, answer.status) {
        (Persistence::Keep, _) => b"\r\n",
        (Persistence::KeepConfirmed, _) => b"Connection: keep-alive\r\n\r\n",
        // Which protocol is spoken here is said to the next hop only (RFC 9110, section 7.8).
        (Persistence::Close, 426) => b"Connection: close, upgrade\r\n\r\n",
        (Persistence::Close, _) => b"Connection: close\r\n\r\n",
    });
    if !recipient.is_head {
        out.extend_from_slice(&answer.body);
    }
}

/// Milliseconds after which a client of a stream that has ended should come back.
const RETRY_MS: u32 = 1000;

/// Appends the head of an endless event stream.
pub fn push_stream_head(out: &mut Vec<u8>, date: &str, recipient: Recipient<'_>) {
    let head = format_args!("HTTP/1.1 200 OK\r\n{COMMON_HEADERS}{STREAMED}Date: {date}\r\nContent-Type: {EVENT_STREAM}\r\n");
    out.write_fmt(head).expect("a vector takes everything");
    if recipient.is_secure {
        out.extend_from_slice(STRICT_TRANSPORT.as_bytes());
    }
    if let Some(reader) = recipient.reader {
        gate::push_reader(out, reader, None);
    }
    write!(out, "Connection: close\r\n\r\nretry: {RETRY_MS}\n: subscribed\n\n").expect("a vector takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_beyond_its_limit_is_refused() {
        let list = |bytes: usize| Answer::list(&"x".repeat(bytes));
        assert_eq!((list(LIST_BYTES_MAX - 2).status, list(LIST_BYTES_MAX - 2).body.len()), (200, LIST_BYTES_MAX));
        let refused = list(LIST_BYTES_MAX - 1);
        assert!(refused.status == 400 && String::from_utf8_lossy(&refused.body).contains("item_per_page"), "{refused:?}");
    }

    #[test]
    fn an_answer_is_written_with_its_length_and_the_common_headers() {
        let mut out = Vec::new();
        let recipient = Recipient { keep_alive: Persistence::Keep, ..Recipient::CLOSED };
        push_answer(&mut out, &Answer::text(200, "Got it!"), "D", recipient);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\nX-Content-Type-Options: nosniff\r\n"), "{text}");
        assert!(text.contains("Content-Length: 7\r\n") && text.ends_with("\r\n\r\nGot it!") && !text.contains("Connection"), "{text}");
    }

    #[test]
    fn pages_and_files_are_isolated_from_other_origins() {
        static TAG: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "\"1\"".to_owned());
        let isolation = |answer: &Answer| {
            let mut out = Vec::new();
            push_answer(&mut out, answer, "D", Recipient::CLOSED);
            let text = String::from_utf8(out).unwrap();
            ["Referrer-Policy: no-referrer", "Cross-Origin-Opener-Policy: same-origin", "Cross-Origin-Resource-Policy: same-origin"]
                .map(|header| text.contains(&format!("\r\n{header}\r\n")))
        };
        let page = Answer { content_type: Some("text/html;charset=UTF-8"), ..Answer::text(503, "page") };
        let file = Answer { entity_tag: Some(&TAG), ..Answer::empty(304) };
        let drawing = Answer { header: Some(("Content-Security-Policy", "sandbox".to_owned())), ..Answer::empty(200) };
        assert_eq!([page, file, drawing].map(|answer| isolation(&answer)), [[true; 3]; 3]);
        assert_eq!(isolation(&Answer::json(200, &json!({}))), [false; 3]);
    }

    #[test]
    fn a_denial_reads_the_same_in_every_character_set() {
        let denied = Answer::from(Refusal::Denied { error: ArrowheadError::auth("p\u{e5} \u{1f600} is unauthorized"), why: String::new() });
        assert_eq!((denied.status, denied.content_type), (401, Some("application/json;charset=ISO-8859-1")));
        assert!(denied.body.is_ascii(), "{:?}", denied.body);
        let body: Value = serde_json::from_slice(&denied.body).unwrap();
        assert_eq!(body, json!({"errorMessage": "p\u{e5} \u{1f600} is unauthorized", "errorCode": 401, "exceptionType": "AUTH"}));
    }

    #[test]
    fn over_tls_browsers_are_told_to_stay_there() {
        let (mut answer, mut stream) = (Vec::new(), Vec::new());
        let recipient = Recipient { is_secure: true, ..Recipient::CLOSED };
        push_answer(&mut answer, &Answer::empty(401), "D", recipient);
        push_stream_head(&mut stream, "D", recipient);
        for out in [answer, stream] {
            assert!(String::from_utf8(out).unwrap().contains("\r\nStrict-Transport-Security: max-age="));
        }
    }

    #[test]
    fn reason_of_a_malformed_request_is_a_header_line() {
        let mut out = Vec::new();
        let refusal = Refusal::malformed(format!("in\r\nvalid \u{e9} {}", "x".repeat(300)));
        push_answer(&mut out, &Answer::from(refusal), "D", Recipient::CLOSED);
        let text = String::from_utf8(out).unwrap();
        let line = text.lines().find(|line| line.starts_with("Bodkin-Reason: ")).expect("a reason");
        assert!(line.starts_with("Bodkin-Reason: in??valid ? xxx"), "{line}");
        assert_eq!(line.len(), "Bodkin-Reason: ".len() + REASON_LENGTH_MAX);
        assert!(text.contains("Content-Length: 0\r\n") && text.ends_with("\r\n\r\n"), "{text}");
    }

    #[test]
    fn stream_head_forbids_buffering_and_transformation() {
        let mut out = Vec::new();
        push_stream_head(&mut out, "D", Recipient::CLOSED);
        let text = String::from_utf8(out).unwrap();
        let values = |name: &str| {
            text.lines().filter_map(|line| Some(line.split_once(": ")?.1).filter(|_| line.starts_with(name))).collect::<Vec<_>>()
        };
        assert_eq!(values("Cache-Control:"), ["no-cache, no-transform"], "{text}");
        assert_eq!(values("X-Accel-Buffering:"), ["no"], "{text}");
    }

    #[test]
    fn the_framework_error_has_the_framework_time_form() {
        let at = |text: &str| framework_timestamp(UtcTime::parse(text).unwrap());
        assert_eq!(at("2026-11-20T23:41:37.832999Z"), "2026-11-20T23:41:37.832+0000");
        assert_eq!(at("2026-11-20T23:41:37Z"), "2026-11-20T23:41:37.000+0000");
    }
}
