//! What a core system answers when it does not do what was asked.

use serde::{Deserialize, Serialize};

/// Arrowhead's kinds of failure; the names on the wire are the upper-case ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ExceptionType {
    /// The server failed; 500.
    Arrowhead,
    /// The caller may not do this; 401.
    Auth,
    /// The shape of the request is wrong; 400.
    BadPayload,
    /// A value refers to nothing, or breaks a constraint; 400.
    InvalidParameter,
    /// The server cannot take the request now; 503.
    Unavailable,
    /// Something is not there; another cloud's word, 404.
    DataNotFound,
    /// Nobody has answered in time; 504.
    Timeout,
    /// Whatever else another cloud says.
    #[serde(other)]
    Generic,
}

/// The error JSON of every core system: `errorMessage`, `errorCode`, `exceptionType`, `origin` (left out when unknown).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{error_message}")]
pub struct ArrowheadError {
    /// What was expected, what came.
    pub error_message: String,
    /// The HTTP status, repeated in the body as Arrowhead does.
    pub error_code: u16,
    /// The kind.
    pub exception_type: ExceptionType,
    /// Path template of the operation that refused; only checks of the request's shape name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

impl ArrowheadError {
    fn new(exception_type: ExceptionType, code: u16, message: String, origin: Option<&str>) -> Self {
        Self { error_message: message, error_code: code, exception_type, origin: origin.map(str::to_owned) }
    }

    /// The request's shape is wrong (400, with the operation's path as `origin`).
    pub fn bad_payload(message: impl Into<String>, origin: &str) -> Self {
        Self::new(ExceptionType::BadPayload, 400, message.into(), Some(origin))
    }

    /// A value refers to nothing or breaks a constraint (400, without `origin`).
    pub fn invalid_parameter(message: impl Into<String>) -> Self {
        Self::new(ExceptionType::InvalidParameter, 400, message.into(), None)
    }

    /// What upstream's database layer refuses: texts longer than a column, null values in maps (500).
    pub fn database() -> Self {
        Self::new(ExceptionType::Arrowhead, 500, "Database operation exception".into(), None)
    }

    /// The caller may not do this (401).
    pub fn auth(message: impl Into<String>) -> Self {
        Self::new(ExceptionType::Auth, 401, message.into(), None)
    }

    /// The server failed or lacks what it needs (500).
    pub fn arrowhead(message: impl Into<String>) -> Self {
        Self::new(ExceptionType::Arrowhead, 500, message.into(), None)
    }

    /// The server cannot take the request now; the message says why and what to do (503).
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ExceptionType::Unavailable, 503, message.into(), None)
    }

    /// Nobody has answered in time; the message says who and how long (504).
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(ExceptionType::Timeout, 504, message.into(), None)
    }

    /// The sender is too fast; the message says what to do (429).
    pub fn too_fast(message: impl Into<String>) -> Self {
        Self::new(ExceptionType::Unavailable, 429, message.into(), None)
    }

    /// The same refusal by another operation, which makes the same checks.
    pub fn at(self, origin: &str) -> Self {
        Self { origin: self.origin.map(|_| origin.to_owned()), ..self }
    }
}
