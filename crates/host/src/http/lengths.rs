//! The length of a request's body.

use super::{BodyLength, HttpError};

/// Headers with the length of the body. A length that two readers could read differently is refused (RFC 9112, section 6.3).
#[derive(Default)]
pub(super) struct Lengths {
    content_length: Option<usize>,
    chunked: bool,
}

impl Lengths {
    pub fn content_length(&mut self, value: &[u8]) -> Result<(), HttpError> {
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let length = digits.then(|| std::str::from_utf8(value).ok()).flatten().and_then(|text| text.parse().ok());
        match (length, self.content_length) {
            (None, _) => Err(HttpError::Malformed("Content-Length is not a length.")),
            (Some(_), Some(_)) => Err(HttpError::Malformed("Content-Length was given twice.")),
            (length, None) => {
                self.content_length = length;
                Ok(())
            }
        }
    }

    pub fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), HttpError> {
        if self.chunked {
            return Err(HttpError::Malformed("Transfer-Encoding was given twice."));
        }
        self.chunked = value.eq_ignore_ascii_case(b"chunked");
        if self.chunked { Ok(()) } else { Err(HttpError::UnknownCoding) }
    }

    pub fn body(self, version: u8) -> Result<(BodyLength, bool), HttpError> {
        match (self.chunked, self.content_length) {
            (true, Some(_)) => Err(HttpError::Malformed("Both Content-Length and Transfer-Encoding were given.")),
            (true, None) if version == 0 => Err(HttpError::Malformed("HTTP/1.0 knows no Transfer-Encoding.")),
            (true, None) => Ok((BodyLength::Chunked, false)),
            (false, length) => Ok((BodyLength::Bytes(length.unwrap_or(0)), length == Some(0))),
        }
    }
}
