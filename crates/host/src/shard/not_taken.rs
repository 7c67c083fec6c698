//! Why an event was not taken, in the words of each transport.

use std::time::Duration;

use bodkin_arrowhead::error::{ArrowheadError, ExceptionType};
use bodkin_broker::{NextRefusal, Refusal, ShardError, wire::RefusalReason};

/// Time after which a publisher tries again whose earlier runs' events are not delivered yet.
const EARLIER_RUNS_RETRY_NS: u64 = 200_000_000;

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
    /// Events of too many earlier runs of its publisher are not delivered yet.
    EarlierRuns(ArrowheadError),
    /// It was refused before, and comes again behind events that were taken: its publisher may not have received that refusal.
    Before(RefusalReason),
    /// The broker does not take it now: the publisher is to wait, or to go to another node.
    Broker(Refusal),
}

impl NotTaken {
    /// Returns true if the same event may be accepted later, here or at the node that leads.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Broker(_) | Self::TooEarly(_) | Self::EarlierRuns(_))
    }

    /// As HTTP has it.
    pub fn error(self) -> ArrowheadError {
        match self {
            Self::Broker(Refusal::Full { .. }) | Self::TooEarly(_) => ArrowheadError::too_fast(self.told()),
            Self::Broker(_) => ArrowheadError::unavailable(self.told()),
            Self::Before(_) => ArrowheadError::invalid_parameter(self.told()),
            Self::Rules(error)
            | Self::TooLarge(error)
            | Self::Header(error)
            | Self::LogSuspended(error)
            | Self::NoRoom(error)
            | Self::EarlierRuns(error)
            | Self::LaterRun(error) => error,
        }
    }

    /// The status that HTTP has for it.
    pub fn status(&self) -> u16 {
        match self {
            Self::Broker(Refusal::Full { .. }) | Self::TooEarly(_) => 429,
            Self::Broker(_) => 503,
            Self::Before(_) => 400,
            Self::Rules(error)
            | Self::TooLarge(error)
            | Self::Header(error)
            | Self::LogSuspended(error)
            | Self::NoRoom(error)
            | Self::EarlierRuns(error)
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
            | Self::EarlierRuns(error)
            | Self::LaterRun(error) => error.error_message.clone(),
            Self::Broker(refusal) => format!("The event was not taken: {refusal}."),
            Self::Before(_) => {
                "The event was refused before, and cannot be taken behind later ones. It may have been delivered.".to_owned()
            }
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
            Self::Before(reason) => *reason,
            Self::Broker(Refusal::NotLeading) => RefusalReason::NotLeading,
            Self::Broker(Refusal::Epoch { .. }) => RefusalReason::Epoch,
            Self::Broker(Refusal::Full { retry_after_ns, .. }) => return (RefusalReason::Full, *retry_after_ns),
            Self::EarlierRuns(_) => return (RefusalReason::Full, EARLIER_RUNS_RETRY_NS),
            Self::TooEarly(wait) => return (RefusalReason::Full, u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)),
        };
        (reason, 0)
    }
}

impl From<NextRefusal> for NotTaken {
    fn from(refusal: NextRefusal) -> Self {
        match refusal {
            NextRefusal::Stream(error) => error.into(),
            NextRefusal::Event(_, refusal) => Self::Broker(refusal),
        }
    }
}

impl From<ShardError> for NotTaken {
    fn from(error: ShardError) -> Self {
        let text = ArrowheadError::unavailable(format!("The event was not accepted: {error}."));
        match error {
            ShardError::NotLeading => Self::Broker(Refusal::NotLeading),
            ShardError::Runs(_) => Self::EarlierRuns(text),
            ShardError::Subscriptions(_) | ShardError::Topics(_) | ShardError::Streams(_) | ShardError::Publishers(_) => Self::NoRoom(text),
        }
    }
}
