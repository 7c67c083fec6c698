//! Headers of a message, and the status line that a server's own answers have.

/// Bytes of a message's headers that are read.
pub const HEADER_BYTES_MAX: usize = 64 * 1024;
/// Headers that a message may have.
pub const HEADERS_MAX: usize = 64;
/// The first line.
const VERSION: &str = "NATS/1.0";

/// A server's answer without a message: 503 is that nobody listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Three digits, as in HTTP.
    pub code: u16,
    /// What it says about it.
    pub description: String,
}

/// Names and values, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Of answers of the server's own.
    pub status: Option<Status>,
    fields: Vec<(String, String)>,
}

/// What are no headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadersError {
    /// More than is read.
    #[error("a message has {HEADER_BYTES_MAX} bytes of headers at the most")]
    Bytes,
    /// More than are read.
    #[error("a message has {HEADERS_MAX} headers at the most")]
    Count,
    /// The first line is another one.
    #[error("headers begin with {VERSION}")]
    Version,
    /// Behind the version is no status.
    #[error("a status has three digits")]
    Status,
    /// A line is none.
    #[error("a header is a name, a colon and a value in UTF-8")]
    Field,
    /// They do not end with an empty line.
    #[error("headers end with an empty line")]
    End,
}

impl Headers {
    /// The same with one more, at the end.
    ///
    /// # Panics
    /// A name or a value would not be read again as the same: names are our own, values numbers and tokens.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        let value = value.to_string();
        assert!(is_name(name) && is_value(&value), "{name}: {value} is no header");
        self.fields.push((name.to_owned(), value));
        self
    }

    /// The first value of a name; names differ by case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|field| field.0 == name).map(|field| field.1.as_str())
    }

    /// Names and values.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Reads a block with its empty line, and nothing behind it.
    ///
    /// # Errors
    /// It is none.
    pub fn read(block: &[u8]) -> Result<Self, HeadersError> {
        if block.len() > HEADER_BYTES_MAX {
            return Err(HeadersError::Bytes);
        }
        let block = std::str::from_utf8(block).map_err(|_| HeadersError::Field)?;
        let lines = block.strip_suffix("\r\n\r\n").ok_or(HeadersError::End)?;
        let mut lines = lines.split("\r\n");
        let first = lines.next().and_then(|line| line.strip_prefix(VERSION)).ok_or(HeadersError::Version)?;
        let mut headers = Self { status: status(first)?, fields: Vec::new() };
        for line in lines {
            if headers.fields.len() == HEADERS_MAX {
                return Err(HeadersError::Count);
            }
            let (name, value) = line.split_once(':').ok_or(HeadersError::Field)?;
            let value = value.trim_matches([' ', '\t']);
            if !is_name(name) || !is_value(value) {
                return Err(HeadersError::Field);
            }
            headers.fields.push((name.to_owned(), value.to_owned()));
        }
        Ok(headers)
    }

    /// Writes a block with its empty line.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(VERSION.as_bytes());
        if let Some(status) = &self.status {
            out.extend_from_slice(format!(" {:03}", status.code).as_bytes());
            if !status.description.is_empty() {
                out.push(b' ');
                out.extend_from_slice(status.description.as_bytes());
            }
        }
        out.extend_from_slice(b"\r\n");
        for (name, value) in &self.fields {
            for part in [name, ": ", value, "\r\n"] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// What is behind the version.
fn status(text: &str) -> Result<Option<Status>, HeadersError> {
    let text = text.trim_matches(' ');
    if text.is_empty() {
        return Ok(None);
    }
    let (code, description) = text.split_once(' ').unwrap_or((text, ""));
    if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_digit()) || !is_value(description) {
        return Err(HeadersError::Status);
    }
    let code = code.parse().map_err(|_| HeadersError::Status)?;
    Ok(Some(Status { code, description: description.trim_matches(' ').to_owned() }))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
}

fn is_value(value: &str) -> bool {
    !value.contains(['\r', '\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_as_the_same() {
        let headers = Headers::default().with("Nats-Msg-Id", "edge-7/0/1-4").with("Empty", "").with("Nats-Msg-Id", "second");
        let mut block = Vec::new();
        headers.write(&mut block);
        assert_eq!(block, b"NATS/1.0\r\nNats-Msg-Id: edge-7/0/1-4\r\nEmpty: \r\nNats-Msg-Id: second\r\n\r\n");
        assert_eq!(Headers::read(&block), Ok(headers.clone()));
        assert_eq!(headers.get("Nats-Msg-Id"), Some("edge-7/0/1-4"));
        assert_eq!(headers.get("nats-msg-id"), None);
    }

    #[test]
    fn a_status_is_read_with_and_without_words() {
        for (block, code, description) in [
            (&b"NATS/1.0 503\r\n\r\n"[..], 503, ""),
            (b"NATS/1.0 408 Request Timeout\r\n\r\n", 408, "Request Timeout"),
            (b"NATS/1.0 503\r\nNats-Subject: x\r\n\r\n", 503, ""),
        ] {
            let status = Headers::read(block).expect("a block").status;
            assert_eq!(status, Some(Status { code, description: description.to_owned() }));
        }
    }

    #[test]
    fn what_is_no_block_is_told_by_its_fault() {
        let many = format!("NATS/1.0\r\n{}\r\n", "a:b\r\n".repeat(HEADERS_MAX + 1));
        let long = format!("NATS/1.0\r\na: {}\r\n\r\n", "b".repeat(HEADER_BYTES_MAX));
        for (block, fault) in [
            (&b""[..], HeadersError::End),
            (b"NATS/1.0\r\n", HeadersError::End),
            (b"NATS/2.0\r\n\r\n", HeadersError::Version),
            (b"NATS/1.0 20\r\n\r\n", HeadersError::Status),
            (b"NATS/1.0 +50\r\n\r\n", HeadersError::Status),
            (b"NATS/1.0\r\nno colon\r\n\r\n", HeadersError::Field),
            (b"NATS/1.0\r\n: no name\r\n\r\n", HeadersError::Field),
            (b"NATS/1.0\r\na b: c\r\n\r\n", HeadersError::Field),
            (b"NATS/1.0\r\na: b\nc\r\n\r\n", HeadersError::Field),
            (b"NATS/1.0\r\na: \xff\r\n\r\n", HeadersError::Field),
            (many.as_bytes(), HeadersError::Count),
            (long.as_bytes(), HeadersError::Bytes),
        ] {
            assert_eq!(Headers::read(block), Err(fault), "{}", String::from_utf8_lossy(&block[..block.len().min(40)]));
        }
    }
}
