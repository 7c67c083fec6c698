//! HTTP connection of a client with short timeouts.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustls::pki_types::ServerName;

use crate::wire::{Caller, Wire};

/// Name by which the nodes of a pair are called, as their answers to requests depend on it.
pub const HOST: &str = "pair.bodkin.test";

/// Longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_millis(200);
/// Longest answer that is accepted.
const ANSWER_BYTES_MAX: usize = 1 << 22;
const PIECE_BYTES: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Status code.
    pub status: u16,
    /// True if the answer has the header `Retry-After`.
    pub has_retry_after: bool,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the status and the body's error text: a member of JSON, or plain text. The result is empty if the body has no reason.
    pub fn reason(&self) -> String {
        let text = match serde_json::from_slice::<serde_json::Value>(&self.body) {
            Ok(body) => ["errorMessage", "detail", "title"].iter().find_map(|member| body[*member].as_str()).unwrap_or_default().to_owned(),
            Err(_) => self.text(),
        };
        if text.trim().is_empty() { String::new() } else { format!("{} {}", self.status, text.trim()) }
    }
}

/// The head of an answer, and where the body begins.
struct Head {
    status: u16,
    has_retry_after: bool,
    length: Option<usize>,
    head_bytes: usize,
}

/// A connection that blocks.
pub struct Http {
    wire: Wire<TcpStream>,
    host: String,
    kept: Vec<u8>,
}

impl Http {
    /// Connects; reads and writes wait for at most `answer_max`.
    ///
    /// # Errors
    /// Returns the system's error if the node does not accept within [`CONNECT_MAX`].
    pub fn connect(address: SocketAddr, caller: &Caller, answer_max: Duration) -> io::Result<Self> {
        let name = ServerName::try_from(HOST).expect("a host name");
        let wire = Wire::named(socket(address, answer_max)?, caller, name);
        Ok(Self { wire, host: HOST.to_owned(), kept: Vec::new() })
    }

    /// Connects without TLS, and names the address as the host.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub fn plain(address: SocketAddr, answer_max: Duration) -> io::Result<Self> {
        let wire = Wire::new(socket(address, answer_max)?, &Caller::Nobody, address.ip());
        Ok(Self { wire, host: address.to_string(), kept: Vec::new() })
    }

    /// Sends a request and waits for the whole answer.
    ///
    /// # Errors
    /// Returns an error if the connection breaks, no answer comes in time, or the answer is not HTTP.
    pub fn exchange(&mut self, method: &str, target: &str, headers: &str, body: &str) -> io::Result<Answer> {
        self.send(method, target, headers, body)?;
        let head = self.head()?;
        self.answer(head)
    }

    /// Sends a request whose answer is a stream if its status is 200: [`Self::read`] returns the stream. Returns the status.
    ///
    /// With another status the whole answer has been read, and the connection can be used again.
    ///
    /// # Errors
    /// As [`Self::exchange`].
    pub fn open_stream(&mut self, target: &str, headers: &str) -> io::Result<u16> {
        self.send("GET", target, headers, "")?;
        let head = self.head()?;
        if head.status == 200 {
            self.kept.drain(..head.head_bytes);
            return Ok(200);
        }
        self.answer(head).map(|answer| answer.status)
    }

    /// Reads the rest of an answer.
    fn answer(&mut self, head: Head) -> io::Result<Answer> {
        let Head { status, has_retry_after, length, head_bytes } = head;
        self.kept.drain(..head_bytes);
        loop {
            match length {
                Some(length) if self.kept.len() >= length => {
                    let body = self.kept.drain(..length).collect();
                    return Ok(Answer { status, has_retry_after, body });
                }
                _ if self.kept.len() > ANSWER_BYTES_MAX => return Err(io::Error::other("the answer is too long")),
                _ => {}
            }
            if self.fill()? == 0 {
                return match length {
                    None => Ok(Answer { status, has_retry_after, body: std::mem::take(&mut self.kept) }),
                    Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }

    /// Sets the longest wait of a read.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn set_wait(&self, wait_max: Duration) -> io::Result<()> {
        self.wire.socket().set_read_timeout(Some(wait_max))
    }

    /// Returns the bytes that have come, after at most the read timeout. Zero bytes are the end.
    ///
    /// # Errors
    /// Returns an error if the connection breaks, or if no byte comes in time.
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        if self.kept.is_empty() {
            self.fill()?;
        }
        Ok(std::mem::take(&mut self.kept))
    }

    fn send(&mut self, method: &str, target: &str, headers: &str, body: &str) -> io::Result<()> {
        let (length, host) = (body.len(), &self.host);
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        );
        self.wire.write_all(request.as_bytes())?;
        self.wire.flush()
    }

    fn head(&mut self) -> io::Result<Head> {
        loop {
            if let Some(head) = parse(&self.kept)? {
                return Ok(head);
            }
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut piece = [0; PIECE_BYTES];
        let length = self.wire.read(&mut piece)?;
        self.kept.extend_from_slice(&piece[..length]);
        Ok(length)
    }
}

fn socket(address: SocketAddr, answer_max: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, CONNECT_MAX)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(answer_max))?;
    stream.set_write_timeout(Some(answer_max))?;
    Ok(stream)
}

fn parse(bytes: &[u8]) -> io::Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head_bytes) = response.parse(bytes).map_err(io::Error::other)? else { return Ok(None) };
    let value = |name: &str| response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value);
    let length = value("content-length").and_then(|value| std::str::from_utf8(value).ok()?.trim().parse().ok());
    Ok(Some(Head { status: response.code.unwrap_or_default(), has_retry_after: value("retry-after").is_some(), length, head_bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_names_retry_after_and_length() {
        let text = b"HTTP/1.1 503 x\r\nretry-after: 1\r\nContent-Length: 2\r\n\r\n{}";
        let head = parse(text).unwrap().unwrap();
        assert_eq!((head.status, head.has_retry_after, head.length, head.head_bytes), (503, true, Some(2), text.len() - 2));
        assert!(parse(&text[..20]).unwrap().is_none());
    }

    #[test]
    fn answer_without_text_has_no_reason() {
        let reason = |body: &str| Answer { status: 503, body: body.into(), ..Answer::default() }.reason();
        assert_eq!(reason(r#"{"errorMessage":"another node leads"}"#), "503 another node leads");
        assert_eq!(reason(r#"{"detail":"full"}"#), "503 full");
        assert_eq!(reason("Another node leads.\n"), "503 Another node leads.");
        assert_eq!([reason(""), reason(r#"{"errorMessage":" "}"#), reason("{}")], ["", "", ""]);
    }
}
