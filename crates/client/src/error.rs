//! Why a call did not give what was asked for.

use std::{fmt, time::Duration};

use http::StatusCode;
use serde::{Deserialize, Serialize};

/// Longest part of an unexpected body that an error's text shows, in characters.
const SHOWN_BODY_LENGTH_MAX: usize = 300;

/// A call that failed. The text says what happened and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Nobody answered, or the connection broke.
    #[error("{address} cannot be reached: {why}. Check that the core system runs there (bodkin up) and that the address is right.")]
    Unreachable {
        /// Host and port that were called.
        address: String,
        /// What the network said.
        why: String,
    },
    /// The connection ended after the request was sent: it may have been carried out or not.
    #[error("{address} closed the connection before it answered {request}. Whether that was done is not known: look before repeating it.")]
    Interrupted {
        /// Host and port that were called.
        address: String,
        /// Method and path of the request.
        request: String,
    },
    /// No whole answer within the limit: the request may have been carried out or not.
    #[error("{address} did not answer within {} ms. It may be overloaded; whether the request was done is not known.", limit.as_millis())]
    TooSlow {
        /// Host and port that were called.
        address: String,
        /// The limit that was reached.
        limit: Duration,
    },
    /// Server and client do not agree on TLS: whether it is spoken, or who is believed. Nothing was done.
    #[error("{address} cannot be called: {why}.")]
    Tls {
        /// Host and port that were called.
        address: String,
        /// What is wrong, and what to do.
        why: String,
    },
    /// The core system answered with an Arrowhead error.
    #[error("{0}")]
    Refused(Refusal),
    /// Bodkin's own interface answered with an error.
    #[error("{0}")]
    Problem(Problem),
    /// The answer is not what Arrowhead 4.x answers.
    #[error("{address} answered {status} with {}. Check that an Arrowhead 4.x core system listens at this address.", shown(body))]
    Unexpected {
        /// Host and port that were called.
        address: String,
        /// The answer's HTTP status.
        status: StatusCode,
        /// The answer's body, or what is wrong with it.
        body: String,
    },
    /// A node of a reliable pair that does not lead at present. Nothing was done.
    #[error("{address} does not lead its pair at present; nothing was done. Ask the other node, or again in a moment.")]
    DoesNotLead {
        /// Host and port that were called.
        address: String,
    },
    /// A standby of a reliable pair, which was the only address given. Nothing was done.
    #[error("{address} is a standby and takes no requests; nothing was done. {said}")]
    Standby {
        /// Host and port that were called.
        address: String,
        /// The standby's answer, which names the leader's address where it is known.
        said: String,
    },
    /// No node of a reliable pair was found to lead. Nothing was done.
    #[error("no node of the pair at {addresses} was found to lead within {} ms; nothing was done. At last: {why}", limit.as_millis())]
    NobodyLeads {
        /// Where the nodes were looked for.
        addresses: String,
        /// For how long.
        limit: Duration,
        /// How the last attempt failed.
        why: String,
    },
    /// The Service Registry knows no provider of a core system's service.
    #[error(
        "the Service Registry at {registry} knows no provider of {definition}, so the {system} cannot be called. Start it, or name another registry."
    )]
    NotOffered {
        /// Host and port of the Service Registry.
        registry: String,
        /// The core system.
        system: &'static str,
        /// The service definition it was looked up by.
        definition: &'static str,
    },
    /// The Event Handler has ended an event stream.
    #[error(
        "the Event Handler at {address} has ended the event stream: it is stopping, or this listener took nothing for too long. Open it again."
    )]
    StreamEnded {
        /// Host and port of the Event Handler.
        address: String,
    },
    /// An event stream was ended by its limit.
    #[error("an event from {address} is longer than {limit_bytes} bytes. Raise Limits::event_bytes_max, or publish less at once.")]
    EventTooLong {
        /// Host and port of the Event Handler.
        address: String,
        /// The limit that was reached.
        limit_bytes: usize,
    },
}

impl CallError {
    /// Whether the caller lacks the right to do this.
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.exception_type == "AUTH",
            Self::Problem(problem) => matches!(problem.status, 401 | 403),
            _ => false,
        }
    }
}

/// The error JSON of a core system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// What was expected, what came.
    pub error_message: String,
    /// The HTTP status.
    pub error_code: u16,
    /// `BAD_PAYLOAD`, `INVALID_PARAMETER`, `AUTH`, ...
    pub exception_type: String,
    /// Path template of the operation that refused, where it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused ({}", self.exception_type)?;
        if let Some(origin) = &self.origin {
            write!(f, ", {origin}")?;
        }
        write!(f, "): {}", self.error_message)
    }
}

/// The error JSON of Bodkin's own interface (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What kind of error it is.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What was expected, what came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// `HOST:PORT` of Bodkin's own port at the last known leader. Only a standby of a pair gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused ({}): {}", self.status, self.detail.as_ref().unwrap_or(&self.title))
    }
}

fn shown(body: &str) -> String {
    if body.trim().is_empty() {
        return "an empty body".to_owned();
    }
    match body.char_indices().nth(SHOWN_BODY_LENGTH_MAX) {
        Some((end, _)) => format!("{:?}...", &body[..end]),
        None => format!("{body:?}"),
    }
}
