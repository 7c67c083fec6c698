//! What the broker that leads guarantees.

use std::time::Duration;

use bodkin_broker::wire::{ClientFrame, Guarantee};

/// Whether what topics promise can be relied on at present, and the figures on which that rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guaranteed {
    /// That events are in time, as far as the broker's machine and the clocks go.
    pub deadlines: Guarantee,
    /// That a crash costs no more events in a row than topics tolerate: suspended while there is no Backup that may lead, unstated of a broker without a pair.
    pub losses: Guarantee,
    /// The longest stall of the last minute.
    pub worst_stall: Duration,
    /// How long a stall deadlines were admitted with; zero: nobody has stated it.
    pub blocking: Duration,
    /// By how much the farthest clock differs from the broker's for certain.
    pub clock_difference: Duration,
    /// How large a difference deadlines were admitted with; zero: nobody has stated it.
    pub clock_error: Duration,
}

impl Guaranteed {
    /// What a command tells, if it is about this.
    pub(super) fn of(command: &ClientFrame<'_>) -> Option<Self> {
        let ClientFrame::Guaranteed { deadlines, losses, worst_stall_ns, blocking_ns, clock_difference_ns, clock_error_ns, .. } = *command
        else {
            return None;
        };
        let [worst_stall, blocking, clock_difference, clock_error] =
            [worst_stall_ns, blocking_ns, clock_difference_ns, clock_error_ns].map(Duration::from_nanos);
        Some(Self { deadlines, losses, worst_stall, blocking, clock_difference, clock_error })
    }
}
