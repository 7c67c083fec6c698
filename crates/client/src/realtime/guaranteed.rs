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

/// What is not as deadlines were admitted with, so that they are not guaranteed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspendedBy {
    /// A client's clock differs from the broker's by more than [`Guaranteed::clock_error`].
    Clock,
    /// Events come later from their publishers than their topics state: [`Guaranteed::publisher_excess`].
    Publishers,
    /// The broker's machine stalls for longer than [`Guaranteed::blocking`].
    Stall,
}

impl SuspendedBy {
    /// The word that event streams and the monitor's port have for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Publishers => "publishers",
            Self::Stall => "stall",
        }
    }
}

impl Guaranteed {
    /// Why deadlines are suspended, the one to look at first in front; none where they are not.
    pub fn causes(&self) -> impl Iterator<Item = SuspendedBy> {
        let exceeds = |measured: Duration, stated: Duration| !stated.is_zero() && measured > stated;
        let holds = [
            (SuspendedBy::Clock, exceeds(self.clock_difference, self.clock_error)),
            (SuspendedBy::Publishers, !self.publisher_excess.is_zero()),
            (SuspendedBy::Stall, exceeds(self.worst_stall, self.blocking)),
        ];
        holds.into_iter().filter(|(_, holds)| *holds).map(|(cause, _)| cause)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_suspends_deadlines_is_what_exceeds_what_was_stated() {
        let ms = Duration::from_millis;
        let held = Guaranteed {
            deadlines: Guarantee::Held,
            losses: Guarantee::Unstated,
            worst_stall: ms(6),
            blocking: ms(6),
            clock_difference: ms(9),
            clock_error: Duration::ZERO,
            publisher_excess: Duration::ZERO,
            broker_backup: Duration::ZERO,
            broker_backup_stated: Duration::ZERO,
        };
        let words = |guaranteed: Guaranteed| guaranteed.causes().map(SuspendedBy::as_str).collect::<Vec<_>>();
        assert!(words(held).is_empty(), "as long as is stated, and a clock of which nothing is stated");
        assert_eq!(words(Guaranteed { worst_stall: ms(6) + Duration::from_nanos(1), ..held }), ["stall"]);
        assert_eq!(
            words(Guaranteed { worst_stall: ms(9), clock_error: ms(8), publisher_excess: ms(1), ..held }),
            ["clock", "publishers", "stall"]
        );
    }
}
