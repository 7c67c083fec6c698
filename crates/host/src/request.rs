//! A request as a value, whichever thread and transport it came by.

use std::{borrow::Cow, net::IpAddr};

use bodkin_arrowhead::{access::Denial, caller::Caller, service_registry::Sender, trace::Cause};

use crate::{answer::Refusal, http::RawRequest};

/// Methods that any operation uses; any other is answered with 405.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Read.
    Get,
    /// As read, without a body in the answer.
    Head,
    /// Make or ask.
    Post,
    /// Replace.
    Put,
    /// Change.
    Patch,
    /// Remove.
    Delete,
    /// Which methods are there?
    Options,
    /// Anything else.
    Other,
}

impl Method {
    /// Takes the request line's word.
    pub fn parse(word: &str) -> Self {
        match word {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "PATCH" => Self::Patch,
            "DELETE" => Self::Delete,
            "OPTIONS" => Self::Options,
            _ => Self::Other,
        }
    }

    /// The request line's word; of one that no operation uses there is none.
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Other => "",
        }
    }

    /// Whether a request of this method carries a body.
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// One whole request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who asks.
    pub caller: Caller,
    /// Where it came from; `None` where the data plane serves it itself, or the connection is gone.
    pub sender: Option<Sender>,
    /// What is to be done with it.
    pub method: Method,
    /// Path, decoded but for slashes, without the query and a trailing slash.
    pub path: String,
    /// Query parameters, decoded, in the order they came.
    pub query: Vec<(String, String)>,
    /// The URL as the client sees it, for errors that name it.
    pub url: String,
    /// `Content-Type`, empty if absent.
    pub content_type: String,
    /// The token of `Authorization: Bearer` (RFC 6750).
    pub bearer: Option<String>,
    /// `If-None-Match`: what the client still has of the answer (RFC 9110, section 13.1.2).
    pub if_none_match: Option<String>,
    /// True if the client is a browser that wants to show a page: `Accept` names HTML.
    pub accepts_html: bool,
    /// True if the request has the cookie of the operator's session, and another page than the dashboard may have sent it.
    pub is_forged: bool,
    /// What has caused it, if it is of a trace.
    pub trace: Option<Cause>,
    /// Whether `Content-Length: 0` was said.
    pub says_empty: bool,
    /// The body, decoded of its transfer coding.
    pub body: Vec<u8>,
}

impl Request {
    /// Takes a request out of the buffer it was read into.
    pub fn from_raw(raw: &RawRequest<'_>, caller: Caller) -> Self {
        let scheme = if caller == Caller::Anonymous { "http" } else { "https" };
        let (path, query) = split_target(raw.target);
        Self {
            caller,
            sender: None,
            method: Method::parse(raw.method),
            path: path.into_owned(),
            query,
            url: format!("{scheme}://{}{}", raw.host, raw.target),
            content_type: raw.content_type.to_owned(),
            bearer: raw.authorization.and_then(bearer).map(str::to_owned),
            if_none_match: raw.if_none_match.map(str::to_owned),
            accepts_html: raw.accept.is_some_and(names_html),
            is_forged: false,
            trace: raw.trace.clone(),
            says_empty: raw.says_empty,
            body: raw.body.to_owned(),
        }
    }

    /// With the ends of the connection it came by, and what its headers say of those in front of it.
    pub fn over(self, raw: &RawRequest<'_>, peer: IpAddr, local: IpAddr) -> Self {
        let owned = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        let sender = Sender { peer, local, forwarded: owned(&raw.forwarded), forwarded_for: owned(&raw.forwarded_for) };
        Self { sender: Some(sender), ..self }
    }

    /// The answer to a request that its sender may not make.
    pub fn denied(&self, denial: &Denial) -> Refusal {
        tracing::debug!(caller = %denial.caller.common_name, url = self.url, why = %denial.why, "denied");
        Refusal::Denied { error: denial.error(&self.url), why: denial.why.to_string() }
    }

    /// The first query parameter of this name.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Returns true if a list of media ranges names HTML. `*/*`, which programs send, does not.
fn names_html(accept: &str) -> bool {
    accept.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_html = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("text/html"));
        let is_refused = |part: &str| part.strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
        is_html && !parts.any(is_refused)
    })
}

/// The token of a bearer; `None` of another scheme.
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
}

/// Splits a request target into its path, decoded and without trailing slash, and decoded query parameters.
pub fn split_target(target: &str) -> (Cow<'_, str>, Vec<(String, String)>) {
    let target = target.split('#').next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.strip_suffix('/').filter(|shorter| !shorter.is_empty()).unwrap_or(path);
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(key, value)| (decode(key), decode(value)));
    (decode_path(path), pairs.collect())
}

/// Resolves `%XX` once. An encoded slash stays encoded, for it is a byte of its segment; so does a path that would not be
/// text, and nothing is found at either.
fn decode_path(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return path.into();
    }
    let bytes = path.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = escaped_byte(path, at).filter(|byte| *byte != b'/');
        decoded.push(escaped.unwrap_or(bytes[at]));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).map_or(path.into(), Cow::from)
}

/// The byte that a `%XX` at this place stands for.
fn escaped_byte(text: &str, at: usize) -> Option<u8> {
    let digits = text.get(at..at + 3)?.strip_prefix('%')?;
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// Resolves `%XX` and `+`; bytes that are no UTF-8 become U+FFFD.
fn decode(text: &str) -> String {
    if !text.contains(['%', '+']) {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match escaped_byte(text, at) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(if bytes[at] == b'+' { b' ' } else { bytes[at] });
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(target: &str, path: &str, query: &[(&str, &str)]) {
        let (found, pairs) = split_target(target);
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!((&*found, pairs.as_slice()), (path, query), "{target}");
    }

    #[test]
    fn targets_are_split_and_queries_decoded() {
        check("/a/b/", "/a/b", &[]);
        check("/", "/", &[]);
        check("/a?x=1&y=&z&&x=2", "/a", &[("x", "1"), ("y", ""), ("z", ""), ("x", "2")]);
        check("/a/?uri=%2Fsensor%2f1&n=a+b%20c#f", "/a", &[("uri", "/sensor/1"), ("n", "a b c")]);
        check("/a?bad=%zz%&lone=%ff", "/a", &[("bad", "%zz%"), ("lone", "\u{fffd}")]);
        check("/a?é=%", "/a", &[("é", "%")]);
    }

    #[test]
    fn a_bearer_shows_a_token() {
        for (header, token) in
            [("Bearer x", Some("x")), ("bearer  x-y ", Some("x-y")), ("Basic eDp5", None), ("Bearer", None), ("Bearerx", None), ("", None)]
        {
            assert_eq!(bearer(header), token, "{header}");
        }
    }

    #[test]
    fn paths_are_decoded_once_and_keep_their_segments() {
        check("/serviceregistry/%65cho", "/serviceregistry/echo", &[]);
        check("/a/v%C3%A4rme/%e6%b8%a9", "/a/värme/温", &[]);
        check("/a%2Fb%2f", "/a%2Fb%2f", &[]);
        check("/a/%2565cho", "/a/%65cho", &[]);
        check("/a/%", "/a/%", &[]);
        check("/a/%6", "/a/%6", &[]);
        check("/a/%+1/%zz", "/a/%+1/%zz", &[]);
        check("/a/%ff%65", "/a/%ff%65", &[]);
        check("/a+b/%3F%23", "/a+b/?#", &[]);
    }
}
