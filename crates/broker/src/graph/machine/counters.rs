//! What became of an operator's rounds.

use super::Invalid;

/// Counts since the machine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorCounters {
    /// Rounds that began.
    pub rounds: u64,
    /// Results.
    pub emitted: u64,
    /// Of them those of events that were not valid.
    pub marked: u64,
    /// Rounds without a result, as the operator wanted.
    pub held_back: u64,
    /// Rounds in which the operator refused its events, or its result was not what it had promised.
    pub failed: u64,
    /// Events that were replaced by newer ones before they were used.
    pub replaced: u64,
    /// Rounds that did not begin, by the reason.
    pub shed_expired: u64,
    /// Of these, because no output could have had a result in time.
    pub shed_too_late: u64,
    /// Of these, because events were made too long before others.
    pub shed_apart: u64,
    /// Results that were no longer valid in front of the outputs.
    pub shed_at_output: u64,
}

impl OperatorCounters {
    pub(super) fn shed(&mut self, why: Invalid) {
        *match why {
            Invalid::Expired => &mut self.shed_expired,
            Invalid::TooLate => &mut self.shed_too_late,
            Invalid::Apart => &mut self.shed_apart,
        } += 1;
    }
}
