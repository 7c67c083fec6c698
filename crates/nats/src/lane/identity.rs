//! Which part of which lane a message is: in its headers, so that the stream's last message tells what to go on with.

use crate::protocol::Headers;

/// The version of the batch's form.
const FORMAT_HEADER: &str = "Bodkin-Batch";
const EPOCH_HEADER: &str = "Bodkin-Epoch";
const FIRST_HEADER: &str = "Bodkin-First";
const LAST_HEADER: &str = "Bodkin-Last";
/// Where the edge has its last record from: for the edge alone.
pub(super) const SOURCE_HEADER: &str = "Bodkin-Source";
/// Bytes of what the edge notes there.
pub const SOURCE_BYTES_MAX: usize = 256;

/// What a batch has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// In which count of positions; the edge begins a higher one when it has lost its own.
    pub epoch: u64,
    /// The position of its first record.
    pub first: u64,
    /// That of its last one.
    pub last: u64,
}

/// What is no batch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// A header is missing or no number.
    #[error("a batch has the header {0}, a number")]
    Missing(&'static str),
    /// Its form is of another version.
    #[error("batches have the form 1, and this one has {0}")]
    Format(u64),
    /// It begins with nothing, or behind its end.
    #[error("a batch has positions from 1 on, and ends behind its begin")]
    Range,
}

impl Identity {
    /// The headers that say so.
    pub fn headers(&self) -> Headers {
        Headers::default()
            .with(FORMAT_HEADER, super::FORMAT)
            .with(EPOCH_HEADER, self.epoch)
            .with(FIRST_HEADER, self.first)
            .with(LAST_HEADER, self.last)
    }

    /// What headers say.
    ///
    /// # Errors
    /// They are of no batch, or of one of another version.
    pub fn read(headers: &Headers) -> Result<Self, IdentityError> {
        let number = |name| headers.get(name).and_then(number).ok_or(IdentityError::Missing(name));
        let format = number(FORMAT_HEADER)?;
        if format != u64::from(super::FORMAT) {
            return Err(IdentityError::Format(format));
        }
        let identity = Self { epoch: number(EPOCH_HEADER)?, first: number(FIRST_HEADER)?, last: number(LAST_HEADER)? };
        // No position is the highest number, so that each has a next one.
        let is_range = 1 <= identity.first && identity.first <= identity.last && identity.last < u64::MAX;
        if is_range { Ok(identity) } else { Err(IdentityError::Range) }
    }
}

fn number(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_headers_say_is_read_again_and_nothing_else() {
        let identity = Identity { epoch: 3, first: 7, last: 9 };
        assert_eq!(Identity::read(&identity.headers()), Ok(identity));
        let headers = |format: u64, epoch: &str, first: u64, last: u64| {
            Headers::default().with(FORMAT_HEADER, format).with(EPOCH_HEADER, epoch).with(FIRST_HEADER, first).with(LAST_HEADER, last)
        };
        assert_eq!(Identity::read(&Headers::default()), Err(IdentityError::Missing(FORMAT_HEADER)));
        assert_eq!(Identity::read(&headers(2, "1", 1, 1)), Err(IdentityError::Format(2)));
        for epoch in ["", "-1", "+1", "x", "18446744073709551616"] {
            assert_eq!(Identity::read(&headers(1, epoch, 1, 1)), Err(IdentityError::Missing(EPOCH_HEADER)));
        }
        for (first, last) in [(0, 1), (2, 1), (1, u64::MAX)] {
            assert_eq!(Identity::read(&headers(1, "1", first, last)), Err(IdentityError::Range));
        }
    }
}
