//! Why an event was not taken, in the words of each transport.

use std::time::Duration;

use bodkin_arrowhead::error::{ArrowheadError, ExceptionType};
use bodkin_broker::{Refusal, ShardError, Terms, wire::RefusalReason};

/// Why an event was not taken.
#[derive(Debug)]
pub(super) enum NotTaken {
    /// The rules of publishing refuse it.
    Rules(ArrowheadError),
    /// It is longer than an event may be.
    TooLarge(ArrowheadError),
    /// Its header cannot be true.
    Header(ArrowheadError),
    /// Its event type is durable, and the event log takes nothing at present.
    LogSuspended(ArrowheadError),
    /// The topic's period lets its next event of the fleet come in so long.
    TooEarly(Duration),
    /// There are too many event types, or publishers of them.
    NoRoom(ArrowheadError),
    /// A later run of its publisher has published.
    LaterRun(ArrowheadError),
    /// The broker does not take it now: the publisher is to wait, or to go to another node.
    Broker(Refusal),
}

impl NotTaken {
    /// The topic has as many streams as it was declared for.
    pub fn too_many_publishers(terms: &Terms) -> Self {
        let told = format!(
            "The topic keeps {} streams of publishers, which is twice as many as it was declared for, and this is one more. \
            Declare it with more publishers.",
            terms.streams_max
        );
        Self::NoRoom(ArrowheadError::unavailable(told))
    }

    /// As HTTP has it.
    pub fn error(self) -> ArrowheadError {
        match self {
            Self::Broker(Refusal::Full { .. }) | Self::TooEarly(_) => ArrowheadError::too_fast(self.told()),
            Self::Broker(_) => ArrowheadError::unavailable(self.told()),
            Self::Rules(error)
            | Self::TooLarge(error)
            | Self::Header(error)
            | Self::LogSuspended(error)
            | Self::NoRoom(error)
            | Self::LaterRun(error) => error,
        }
    }

    /// The status that HTTP has for it.
    pub fn status(&self) -> u16 {
        match self {
            Self::Broker(Refusal::Full { .. }) | Self::TooEarly(_) => 429,
            Self::Broker(_) => 503,
            Self::Rules(error)
            | Self::TooLarge(error)
            | Self::Header(error)
            | Self::LogSuspended(error)
            | Self::NoRoom(error)
            | Self::LaterRun(error) => error.error_code,
        }
    }

    /// In words.
    pub fn told(&self) -> String {
        match self {
            Self::Rules(error)
            | Self::TooLarge(error)
            | Self::Header(error)
            | Self::LogSuspended(error)
            | Self::NoRoom(error)
            | Self::LaterRun(error) => error.error_message.clone(),
            Self::Broker(refusal) => format!("The event was not taken: {refusal}."),
            Self::TooEarly(wait) => format!("the period of its topic lets it come in {wait:?}"),
        }
    }

    /// As commands have it: the reason, and after how many nanoseconds the same may be taken.
    pub fn reason(&self) -> (RefusalReason, u64) {
        let reason = match self {
            Self::Rules(error) if error.exception_type == ExceptionType::BadPayload => RefusalReason::Malformed,
            Self::Rules(_) => RefusalReason::NotAuthorized,
            Self::TooLarge(_) => RefusalReason::TooLarge,
            Self::Header(_) | Self::Broker(Refusal::Sequence { .. } | Refusal::Stream) => RefusalReason::Header,
            Self::LogSuspended(_) => RefusalReason::NotKept,
            Self::NoRoom(_) => RefusalReason::Limit,
            Self::LaterRun(_) => RefusalReason::OldIncarnation,
            Self::Broker(Refusal::NotLeading) => RefusalReason::NotLeading,
            Self::Broker(Refusal::Epoch { .. }) => RefusalReason::Epoch,
            Self::Broker(Refusal::Full { retry_after_ns, .. }) => return (RefusalReason::Full, *retry_after_ns),
            Self::TooEarly(wait) => return (RefusalReason::Full, u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)),
        };
        (reason, 0)
    }
}

impl From<ShardError> for NotTaken {
    fn from(error: ShardError) -> Self {
        Self::NoRoom(ArrowheadError::unavailable(format!("The event was not taken: {error}.")))
    }
}
