//! Bytes of a server become operations. Every length is asked of before anything is kept for it.

use super::{
    headers::{Headers, HeadersError},
    info::{Info, InfoError},
    words::words,
};

/// Bytes of a line that is no INFO, with its end: the protocol's own bound.
pub const CONTROL_LINE_BYTES_MAX: usize = 4096;
/// Bytes of an INFO: a large cluster's has every address.
pub const INFO_BYTES_MAX: usize = 64 * 1024;
/// Bytes of headers and payload that a server can be set up for at the most.
pub const PAYLOAD_BYTES_CAP: usize = 64 * 1024 * 1024;
/// Bytes of a server's line that an error repeats.
const QUOTED_BYTES_MAX: usize = 80;

/// What a connection takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a message, headers included.
    pub message_bytes_max: usize,
}

impl Default for Limits {
    /// Of a server as it comes, whose messages have 1 MiB: JSON that has one in base64, and what is beside it.
    fn default() -> Self {
        Self { message_bytes_max: 2 * 1024 * 1024 }
    }
}

/// A message for one of our subscriptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it was published to.
    pub subject: String,
    /// The number of the subscription.
    pub subscription: u64,
    /// Where an answer is to go.
    pub reply: Option<String>,
    /// Of one whose headers are none the fault: whoever has published it has made it, the connection goes on.
    pub headers: Result<Headers, HeadersError>,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// What a server sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Of itself: first, and when it changes.
    Info(Info),
    /// A message.
    Message(Message),
    /// Are you there?
    Ping,
    /// We are here.
    Pong,
    /// Well; of verbose connections.
    Ok,
    /// No, in words.
    Refused(String),
}

/// What no server sends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A line does not end.
    #[error("a line has {limit} bytes at the most")]
    LineBytes {
        /// The limit.
        limit: usize,
    },
    /// A message is longer than ours may be.
    #[error("a message has {limit} bytes at the most, and {length} were announced")]
    MessageBytes {
        /// The limit.
        limit: usize,
        /// What was announced.
        length: usize,
    },
    /// A line is none of the protocol's.
    #[error("this is no operation: {0:?}")]
    Operation(String),
    /// Behind a message is not its end.
    #[error("a message does not end where its length says")]
    End,
    /// Its INFO is none.
    #[error(transparent)]
    Info(#[from] InfoError),
}

/// A message whose line was read.
#[derive(Debug)]
struct Announced {
    subject: String,
    subscription: u64,
    reply: Option<String>,
    header_bytes: usize,
    bytes: usize,
}

/// Reads what a server sends. [`Self::receive`] takes what has come until it gives no operation.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    /// The line that has not ended.
    line: Vec<u8>,
    /// The message that has not ended, and what there is of it, its line end included.
    message: Option<(Announced, Vec<u8>)>,
    fault: Option<ProtocolError>,
}

impl Decoder {
    /// At the begin of a connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits, line: Vec::new(), message: None, fault: None }
    }

    /// From the next message on.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Takes bytes off the front of `bytes` up to the end of an operation. `None`: all are taken, and none has ended.
    ///
    /// # Errors
    /// They are not the protocol's. Behind a fault nothing more is taken: the connection is to be closed.
    pub fn receive(&mut self, bytes: &mut &[u8]) -> Result<Option<Operation>, ProtocolError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let received = self.advance(bytes);
        self.fault = received.as_ref().err().cloned();
        received
    }

    fn advance(&mut self, bytes: &mut &[u8]) -> Result<Option<Operation>, ProtocolError> {
        while !bytes.is_empty() {
            let operation = if self.message.is_some() { self.take_message(bytes)? } else { self.take_line(bytes)? };
            if operation.is_some() {
                return Ok(operation);
            }
        }
        Ok(None)
    }

    fn take_line(&mut self, bytes: &mut &[u8]) -> Result<Option<Operation>, ProtocolError> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(bytes.len(), |end| end + 1);
        // What the line begins with decides its limit, so that no other line is kept that long.
        let is_info = starts_with_info(&self.line, &bytes[..taken]);
        let limit = if is_info { INFO_BYTES_MAX } else { CONTROL_LINE_BYTES_MAX };
        if self.line.len() + taken > limit {
            return Err(ProtocolError::LineBytes { limit });
        }
        let (part, rest) = bytes.split_at(taken);
        *bytes = rest;
        self.line.extend_from_slice(part);
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.line);
        line.pop();
        line.pop_if(|byte| *byte == b'\r');
        let operation = self.end_line(&line);
        line.clear();
        self.line = line;
        operation
    }

    fn end_line(&mut self, line: &[u8]) -> Result<Option<Operation>, ProtocolError> {
        let unknown = || ProtocolError::Operation(quoted(line));
        let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
        let (word, rest) = line.split_at(end);
        let rest = rest.trim_ascii();
        Ok(Some(match word.to_ascii_uppercase().as_slice() {
            b"MSG" | b"HMSG" => {
                let announced = announced(rest, word.len() == 4).ok_or_else(unknown)?;
                let (limit, length) = (self.limits.message_bytes_max.min(PAYLOAD_BYTES_CAP), announced.bytes);
                if length > limit {
                    return Err(ProtocolError::MessageBytes { limit, length });
                }
                self.message = Some((announced, Vec::new()));
                return Ok(None);
            }
            b"INFO" => Operation::Info(Info::read(rest)?),
            b"PING" if rest.is_empty() => Operation::Ping,
            b"PONG" if rest.is_empty() => Operation::Pong,
            b"+OK" if rest.is_empty() => Operation::Ok,
            b"-ERR" => Operation::Refused(words(String::from_utf8_lossy(rest).trim_matches('\''))),
            _ => return Err(unknown()),
        }))
    }

    fn take_message(&mut self, bytes: &mut &[u8]) -> Result<Option<Operation>, ProtocolError> {
        let Some((announced, body)) = &mut self.message else { return Ok(None) };
        let missing = announced.bytes + 2 - body.len();
        let (part, rest) = bytes.split_at(missing.min(bytes.len()));
        body.extend_from_slice(part);
        *bytes = rest;
        // The end is asked of as soon as it is there, so that the fault does not depend on how the bytes were cut.
        let end = body.get(announced.bytes..).unwrap_or_default();
        if !b"\r\n".starts_with(end) {
            return Err(ProtocolError::End);
        }
        if end.len() < 2 {
            return Ok(None);
        }
        let (announced, mut body) = self.message.take().expect("a message has ended");
        body.truncate(announced.bytes);
        let headers = match announced.header_bytes {
            0 => Ok(Headers::default()),
            length => Headers::read(&body[..length]),
        };
        body.drain(..announced.header_bytes);
        let Announced { subject, subscription, reply, .. } = announced;
        Ok(Some(Operation::Message(Message { subject, subscription, reply, headers, payload: body })))
    }
}

fn starts_with_info(line: &[u8], more: &[u8]) -> bool {
    let begin = line.iter().chain(more).take(4);
    begin.map(u8::to_ascii_uppercase).eq(*b"INFO")
}

/// Fields of a message's line: subject, number, perhaps a reply, perhaps bytes of headers, bytes of all.
fn announced(fields: &[u8], has_headers: bool) -> Option<Announced> {
    let fields = std::str::from_utf8(fields).ok()?;
    let mut fields = fields.split([' ', '\t']).filter(|field| !field.is_empty());
    let subject = fields.next()?.to_owned();
    let subscription = number(fields.next()?)?;
    let mut rest: Vec<&str> = fields.take(4).collect();
    let bytes = length(rest.pop()?)?;
    let header_bytes = if has_headers { length(rest.pop()?)? } else { 0 };
    let reply = rest.pop().map(str::to_owned);
    (rest.is_empty() && header_bytes <= bytes).then_some(Announced { subject, subscription, reply, header_bytes, bytes })
}

fn number(digits: &str) -> Option<u64> {
    // A sign is no digit.
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// More digits than any length has are a number still, and too many bytes.
fn length(digits: &str) -> Option<usize> {
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().unwrap_or(usize::MAX))
}

fn quoted(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(QUOTED_BYTES_MAX)]).into_owned()
}

#[cfg(test)]
mod tests;
