//! What a wrong clock excuses: some events may be called excess or come late.
//!
//! A broker polices a stream by the times that its publisher's clock has stamped, read by its own clock. A clock that is ahead fills the bucket too
//! far, so that events are called excess for a while after the clock is right. A publisher that still keeps such events sends them to the next leader,
//! whose bucket is then wrong for a while too. Nothing is promised
//! of an excess event, so it may be dropped. Nothing else is excused: no other loss, no order, no cover, no lease.

use crate::{clock::Time, violation::StreamName};

/// Whose events a wrong clock concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspended {
    /// Those of the publisher whose clock is wrong.
    Publisher(u16),
    /// Those of all publishers: the clock of a node that leads, or will lead, is wrong.
    All,
}

impl Suspended {
    /// Whether it concerns a stream.
    pub(super) fn includes(self, stream: StreamName) -> bool {
        match self {
            Self::Publisher(publisher) => stream.publisher == publisher,
            Self::All => true,
        }
    }
}

/// The events of a stream that a wrong clock excuses: the last row of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspension {
    /// The bucket is full after a pause of so long.
    refill_ns: u64,
    from: u64,
    /// `u64::MAX` until the bucket is full again.
    through: u64,
    /// When all clocks were right again, and nothing that was stamped before was under way.
    right_at: Time,
    /// The newest event when another node began to lead. What its publisher keeps goes there in front of the next one, at the latest.
    resent_before: Option<u64>,
    last_created: Time,
}

impl Suspension {
    pub(super) fn new(refill_ns: u64, is_suspended: bool) -> Self {
        let through = if is_suspended { u64::MAX } else { 0 };
        Self { refill_ns, from: 1, through, right_at: Time::NEVER, resent_before: None, last_created: Time::default() }
    }

    /// A clock is set wrong. Events from `under_way` on may be judged by it.
    pub(super) fn begin(&mut self, under_way: u64) {
        if !self.lasts() {
            self.from = under_way;
        }
        (self.through, self.right_at) = (u64::MAX, Time::NEVER);
    }

    /// Another node leads, and the publisher sends what it keeps, from `kept_from` to `newest`.
    pub(super) fn resent(&mut self, kept_from: u64, newest: u64) {
        if self.through >= kept_from {
            (self.from, self.through, self.right_at) = (self.from.min(kept_from), u64::MAX, Time::NEVER);
            self.resent_before = Some(newest);
        }
    }

    /// Everything up to here is covered.
    pub(super) fn covered(&mut self, at: Time, through: u64) {
        if self.resent_before.take_if(|newest| through > *newest).is_some() && self.right_at != Time::NEVER {
            self.right_at = at;
        }
    }

    pub(super) fn clocks_are_right(&mut self, at: Time) {
        self.right_at = self.right_at.min(at);
    }

    /// An event is created: the first one after a pause finds a full bucket.
    pub(super) fn created(&mut self, at: Time, sequence: u64) {
        let is_right = self.resent_before.is_none() && self.last_created >= self.right_at;
        if self.lasts() && is_right && at.since(self.last_created) >= self.refill_ns {
            self.through = sequence - 1;
        }
        self.last_created = at;
    }

    fn lasts(&self) -> bool {
        self.through == u64::MAX
    }

    /// Whether an event may be called excess or come late.
    pub(super) fn excuses(&self, sequence: u64) -> bool {
        (self.from..=self.through).contains(&sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspension_ends_with_first_pause_after_clocks_are_right() {
        let mut suspension = Suspension::new(5, false);
        suspension.created(Time(10), 1);
        suspension.created(Time(20), 2);
        assert!(!suspension.excuses(2), "no clock was wrong");
        suspension.begin(2);
        assert!(suspension.excuses(2) && !suspension.excuses(1), "the newest event is under way when the clock is set");
        suspension.created(Time(28), 3);
        suspension.clocks_are_right(Time(30));
        suspension.created(Time(38), 4);
        assert!(suspension.excuses(4), "the event before was stamped by the wrong clock");
        suspension.created(Time(42), 5);
        assert!(suspension.excuses(5), "the bucket is not full");
        suspension.created(Time(47), 6);
        assert!(!suspension.excuses(6) && suspension.excuses(5));
    }

    #[test]
    fn kept_events_suspend_the_stream_at_the_next_leader() {
        let mut suspension = Suspension::new(5, false);
        suspension.begin(2);
        suspension.clocks_are_right(Time(3));
        suspension.created(Time(4), 3);
        suspension.created(Time(9), 4);
        assert!(suspension.excuses(3) && !suspension.excuses(4));
        let mut forgotten = suspension;
        forgotten.resent(4, 4);
        assert!(!forgotten.excuses(4), "the publisher keeps no event that a wrong clock has stamped");
        suspension.resent(3, 4);
        assert!(suspension.excuses(4));
        suspension.clocks_are_right(Time(13));
        suspension.created(Time(14), 5);
        suspension.created(Time(19), 6);
        assert!(suspension.excuses(6), "the kept events may be under way");
        suspension.covered(Time(20), 5);
        suspension.created(Time(24), 7);
        assert!(suspension.excuses(7), "they had come when the fifth was covered");
        suspension.created(Time(29), 8);
        assert!(suspension.excuses(7) && !suspension.excuses(8));
    }

    #[test]
    fn stream_of_another_publisher_is_not_suspended() {
        let stream = |publisher| StreamName { publisher, incarnation: 1, topic: 0 };
        assert!(Suspended::Publisher(1).includes(stream(1)) && !Suspended::Publisher(1).includes(stream(0)));
        assert!(Suspended::All.includes(stream(0)));
    }
}
