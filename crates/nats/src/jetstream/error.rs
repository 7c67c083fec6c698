//! What JetStream refuses, by its number: the words beside it differ between versions.

use std::fmt;

use serde::Deserialize;

use crate::protocol::read_words;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ApiError {
    /// As in HTTP.
    #[serde(default)]
    pub code: u16,
    /// Its number; 0 of servers that have none.
    #[serde(default)]
    pub err_code: u32,
    /// In words.
    #[serde(default, deserialize_with = "read_words")]
    pub description: String,
}

/// What a refusal means for who is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The subject's last message is another one than was expected.
    WrongLastSequence,
    /// The stream, its account or its disk is full.
    Full,
    /// There is no such stream.
    NoStream,
    /// There is no such message.
    NoMessage,
    /// There is no such consumer.
    NoConsumer,
    /// The cluster has no leader or is busy, or the same message is on its way: later it may be taken.
    Unavailable,
    /// This account has no JetStream.
    NotEnabled,
    /// A stream of this name has another configuration, or its subjects are another stream's.
    OtherStream,
    /// Anything else.
    Other,
}

impl ApiError {
    /// What it means.
    pub fn kind(&self) -> ErrorKind {
        match self.err_code {
            10_071 | 10_164 => ErrorKind::WrongLastSequence,
            // Storing failed (the stream's own limit is reached), storage and memory of the account, resources of the server.
            10_077 | 10_047 | 10_028 | 10_023 | 10_122 => ErrorKind::Full,
            10_059 => ErrorKind::NoStream,
            10_037 => ErrorKind::NoMessage,
            10_014 => ErrorKind::NoConsumer,
            10_008 | 10_009 | 10_158 => ErrorKind::Unavailable,
            10_039 | 10_076 => ErrorKind::NotEnabled,
            10_058 | 10_060 | 10_065 => ErrorKind::OtherStream,
            _ => ErrorKind::Other,
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} ({})", self.description, self.err_code)
    }
}
