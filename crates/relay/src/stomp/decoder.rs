//! Bytes of a connection become frames. Every length is asked of before anything is kept for it.

use super::{
    error::StompError,
    escape::unescape,
    frame::{CONTENT_LENGTH, Command, Frame},
};

/// Bytes of a peer's line that an error repeats.
const QUOTED_BYTES_MAX: usize = 80;

/// What a frame may have at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of command and headers, with their line ends.
    pub head_bytes_max: usize,
    /// Headers.
    pub headers_max: usize,
    /// Bytes of the body.
    pub body_bytes_max: usize,
}

impl Default for Limits {
    /// Of messages between clouds: a sealed HTTP request of 1 MiB has 2.4 times as many bytes.
    fn default() -> Self {
        Self { head_bytes_max: 16 * 1024, headers_max: 64, body_bytes_max: 4 * 1024 * 1024 }
    }
}

/// Where in a frame the stream is.
#[derive(Debug)]
enum State {
    /// In front of a command; line ends here are heart-beats.
    Between,
    /// In a line of the head.
    Head,
    /// In a body of so many bytes.
    Counted(usize),
    /// In a body that ends with a zero byte.
    Open,
}

/// Reads one direction of a connection. [`Self::receive`] takes what has come until it gives no frame.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    state: State,
    /// The line that has not ended.
    line: Vec<u8>,
    head_bytes: usize,
    headers: usize,
    /// What the first header of this name said.
    content_length: Option<String>,
    /// The frame that has not ended; `None` in front of its command.
    frame: Option<Frame>,
    fault: Option<StompError>,
}

impl Decoder {
    /// At the begin of a connection.
    pub fn new(limits: Limits) -> Self {
        Self { limits, state: State::Between, line: Vec::new(), head_bytes: 0, headers: 0, content_length: None, frame: None, fault: None }
    }

    /// Takes bytes off the front of `bytes` up to the end of a frame. `None`: all are taken, and no frame has ended.
    ///
    /// Behind a fault nothing more is taken: the connection is to be closed.
    pub fn receive(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame>, StompError> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let received = self.advance(bytes);
        self.fault = received.as_ref().err().cloned();
        received
    }

    fn advance(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame>, StompError> {
        while !bytes.is_empty() {
            let has_ended = match self.state {
                State::Between => {
                    self.pass_over_heart_beats(bytes)?;
                    false
                }
                State::Head => {
                    self.take_line(bytes)?;
                    false
                }
                State::Counted(length) => self.take_counted(bytes, length)?,
                State::Open => self.take_open(bytes)?,
            };
            if has_ended {
                self.state = State::Between;
                return self.finished().map(Some);
            }
        }
        Ok(None)
    }

    fn pass_over_heart_beats(&mut self, bytes: &mut &[u8]) -> Result<(), StompError> {
        // A carriage return is kept until what follows it is there: it may only end a line.
        let Some((&byte, rest)) = bytes.split_first() else { return Ok(()) };
        match byte {
            b'\n' => {
                self.line.clear();
                *bytes = rest;
            }
            b'\r' if self.line.is_empty() => {
                self.line.push(byte);
                *bytes = rest;
            }
            _ => {
                (self.state, self.head_bytes, self.headers) = (State::Head, self.line.len(), 0);
            }
        }
        Ok(())
    }

    fn take_line(&mut self, bytes: &mut &[u8]) -> Result<(), StompError> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(bytes.len(), |end| end + 1);
        let limit = self.limits.head_bytes_max;
        if taken > limit - self.head_bytes.min(limit) {
            return Err(StompError::HeadBytes { limit });
        }
        self.head_bytes += taken;
        let (line, rest) = bytes.split_at(taken);
        self.line.extend_from_slice(line);
        *bytes = rest;
        if end.is_none() {
            return Ok(());
        }
        let mut line = std::mem::take(&mut self.line);
        line.pop();
        line.pop_if(|byte| *byte == b'\r');
        self.end_line(&line)?;
        line.clear();
        self.line = line;
        Ok(())
    }

    fn end_line(&mut self, line: &[u8]) -> Result<(), StompError> {
        let Some(frame) = &mut self.frame else {
            let command = std::str::from_utf8(line).ok().and_then(Command::of_word);
            self.frame = Some(Frame::new(command.ok_or_else(|| StompError::Command(quoted(line)))?));
            return Ok(());
        };
        if line.is_empty() {
            return self.end_head();
        }
        self.headers += 1;
        if self.headers > self.limits.headers_max {
            return Err(StompError::Headers { limit: self.limits.headers_max });
        }
        let (name, value) = header(line, frame.command).ok_or_else(|| StompError::Header(quoted(line)))?;
        if name == CONTENT_LENGTH {
            self.content_length.get_or_insert(value);
        } else {
            frame.put(name, value);
        }
        Ok(())
    }

    /// Says how the body ends.
    fn end_head(&mut self) -> Result<(), StompError> {
        let Some(said) = self.content_length.take() else {
            self.state = State::Open;
            return Ok(());
        };
        if said.is_empty() || !said.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(StompError::ContentLength(quoted(said.as_bytes())));
        }
        // More digits than any length has are a number still, and too many bytes.
        let length = said.parse().unwrap_or(usize::MAX);
        if length > self.limits.body_bytes_max {
            return Err(StompError::BodyBytes { limit: self.limits.body_bytes_max });
        }
        self.state = State::Counted(length);
        Ok(())
    }

    fn body(&mut self) -> &mut Vec<u8> {
        &mut self.frame.as_mut().expect("a body is behind a head").body
    }

    fn take_counted(&mut self, bytes: &mut &[u8], length: usize) -> Result<bool, StompError> {
        let missing = length - self.body().len();
        let (part, rest) = bytes.split_at(missing.min(bytes.len()));
        self.body().extend_from_slice(part);
        *bytes = rest;
        match rest.split_first() {
            None => Ok(false),
            Some((0, rest)) => {
                *bytes = rest;
                Ok(true)
            }
            Some((found, _)) => Err(StompError::NoEnd { length, found: *found }),
        }
    }

    fn take_open(&mut self, bytes: &mut &[u8]) -> Result<bool, StompError> {
        let end = bytes.iter().position(|byte| *byte == 0);
        let taken = end.unwrap_or(bytes.len());
        let limit = self.limits.body_bytes_max;
        if taken > limit - self.body().len() {
            return Err(StompError::BodyBytes { limit });
        }
        self.body().extend_from_slice(&bytes[..taken]);
        *bytes = &bytes[taken + usize::from(end.is_some())..];
        Ok(end.is_some())
    }

    fn finished(&mut self) -> Result<Frame, StompError> {
        let frame = self.frame.take().expect("a frame has ended");
        if !frame.body.is_empty() && !frame.command.has_body() {
            return Err(StompError::Body(frame.command.word()));
        }
        Ok(frame)
    }
}

/// Name and value of a line; carriage returns and zero bytes are in none.
fn header(line: &[u8], command: Command) -> Option<(String, String)> {
    let line = std::str::from_utf8(line).ok().filter(|line| !line.contains(['\r', '\0']))?;
    let (name, value) = line.split_once(':').filter(|header| !header.0.is_empty())?;
    if !command.has_escapes() {
        return Some((name.to_owned(), value.to_owned()));
    }
    // A colon in a value has an escape; brokers that write it plain are understood all the same.
    Some((unescape(name)?, unescape(value)?))
}

fn quoted(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(QUOTED_BYTES_MAX)]).into_owned()
}

#[cfg(test)]
mod tests;
