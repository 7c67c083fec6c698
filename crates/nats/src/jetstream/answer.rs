//! Answers of JetStream: JSON of one object, in which `error` is a refusal.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error},
};

use super::error::{ApiError, ErrorKind};
use crate::protocol::{Headers, decode_base64, words};

/// Why there is no answer in an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// JetStream refuses.
    #[error("JetStream refuses: {0}")]
    Refused(ApiError),
    /// It has another form.
    #[error("JetStream's answer is not understood: {0}")]
    Form(String),
}

/// A message is in a stream.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PublishAck {
    /// In which.
    pub stream: String,
    /// Where.
    #[serde(deserialize_with = "count")]
    pub seq: u64,
    /// One of the same name was there already; `seq` is where.
    #[serde(default)]
    pub duplicate: bool,
}

/// The last message of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Last {
    /// Its sequence.
    pub sequence: u64,
    /// Its headers; none of one that has none which are read.
    pub headers: Headers,
}

#[derive(Deserialize)]
struct Refusal {
    error: Option<ApiError>,
}

#[derive(Deserialize)]
struct LastMessage {
    message: Stored,
}

#[derive(Deserialize)]
struct Stored {
    #[serde(deserialize_with = "count")]
    seq: u64,
    #[serde(default)]
    hdrs: String,
}

/// Reads an acknowledgement.
///
/// # Errors
/// It is a refusal, or not understood.
pub fn publish_ack(payload: &[u8]) -> Result<PublishAck, AnswerError> {
    answer(payload)
}

/// Reads the answer to a question for the last message of a subject; `None`: there is none.
///
/// # Errors
/// It is another refusal, or not understood.
pub fn last_message(payload: &[u8]) -> Result<Option<Last>, AnswerError> {
    let stored = match answer::<LastMessage>(payload) {
        Ok(answer) => answer.message,
        Err(AnswerError::Refused(error)) if error.kind() == ErrorKind::NoMessage => return Ok(None),
        Err(error) => return Err(error),
    };
    let headers = decode_base64(&stored.hdrs).map_err(|error| AnswerError::Form(error.to_string()))?;
    Ok(Some(Last { sequence: stored.seq, headers: Headers::read(&headers).unwrap_or_default() }))
}

/// An answer that may be a refusal. A refused publication has both, so the refusal is looked for first.
pub(super) fn answer<A: DeserializeOwned>(payload: &[u8]) -> Result<A, AnswerError> {
    let form = |error: serde_json::Error| AnswerError::Form(words(&error.to_string()));
    if let Some(error) = serde_json::from_slice::<Refusal>(payload).map_err(form)?.error {
        return Err(AnswerError::Refused(error));
    }
    serde_json::from_slice(payload).map_err(form)
}

/// Sequences and counts up to here are read, which no server comes to: each has a next one, and two of them have a sum.
pub(super) const COUNT_MAX: u64 = i64::MAX as u64;

/// Reads a sequence or a count.
pub(super) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let count = u64::deserialize(from)?;
    if count <= COUNT_MAX { Ok(count) } else { Err(D::Error::custom(format_args!("{count} counts nothing"))) }
}
