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
    /// By how much events of the last minute came later than the longest way from their publishers.
    pub publisher_excess: Duration,
    /// How long replicas of the last minute took to the Backup at the most.
    pub broker_backup: Duration,
    /// How long a way bounds on losses were admitted with; zero: nobody has stated it.
    pub broker_backup_stated: Duration,
}

impl Guaranteed {
    /// What a command tells, if it is about this.
    pub(super) fn of(command: &ClientFrame<'_>) -> Option<Self> {
        let ClientFrame::Guaranteed {
            epoch: _,
            deadlines,
            losses,
            worst_stall_ns,
            blocking_ns,
            clock_difference_ns,
            clock_error_ns,
            publisher_excess_ns,
            broker_backup_ns,
            broker_backup_stated_ns,
        } = *command
        else {
            return None;
        };
        Some(Self {
            deadlines,
            losses,
            worst_stall: Duration::from_nanos(worst_stall_ns),
            blocking: Duration::from_nanos(blocking_ns),
            clock_difference: Duration::from_nanos(clock_difference_ns),
            clock_error: Duration::from_nanos(clock_error_ns),
            publisher_excess: Duration::from_nanos(publisher_excess_ns),
            broker_backup: Duration::from_nanos(broker_backup_ns),
            broker_backup_stated: Duration::from_nanos(broker_backup_stated_ns),
        })
    }
}
