//! What a topic promises and needs: the paper's {T, D, L, N} and the bounds that go with them.

use std::{fmt, num::NonZeroU32};

use super::Platform;
use crate::timing::{Nanos, Span};

/// Longest time that a topic or platform may state: a year of 366 days.
pub const TIME_MAX: Nanos = Nanos::from_millis(366 * 24 * 3_600 * 1_000);

/// Longest time for which a topic may have its publishers wait for a required subscriber: a day.
pub const REQUIRED_FOR_MAX: Nanos = Nanos::from_millis(24 * 3_600 * 1_000);

/// Least time between two creations of one stream (one publisher on one topic), T.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Events come this often at the most. Positive.
    Every(Nanos),
    /// Events are rare (T is infinite), and policed to come this often at the most: what is policed is what the bounds may count on.
    Rare {
        /// Positive.
        gap_min: Nanos,
    },
}

impl Period {
    /// The shortest gap that is not refused: the T of every bound.
    pub fn gap(self) -> Nanos {
        match self {
            Self::Every(gap) | Self::Rare { gap_min: gap } => gap,
        }
    }
}

/// Losses in a row that a subscriber tolerates, L.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossTolerance {
    /// So many; 0 is none.
    AtMost(u32),
    /// Any number: best effort.
    Any,
}

impl fmt::Display for LossTolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(losses) => losses.fmt(f),
            Self::Any => f.pad("inf"),
        }
    }
}

/// What is served first: everything of level 0 before anything of level 1, and so on; inside a level the earliest deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(u8);

impl Level {
    /// How many levels there are.
    pub const COUNT: u8 = 8;

    /// Level 0 (first) to 7 (last).
    pub const fn new(level: u8) -> Option<Self> {
        if level < Self::COUNT { Some(Self(level)) } else { None }
    }

    /// Its number.
    pub fn get(self) -> u8 {
        self.0
    }
}

/// What makes an event safe from the loss of the Primary's host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coverage {
    /// Every required subscriber, or the Backup, has acknowledged it.
    #[default]
    Acknowledged,
    /// The Backup has acknowledged it, or it has left the kernel's send queues to all subscribers, none of which is required: weaker, for it may be lost with a subscriber's host.
    Host,
}

/// A topic as it was declared. Times are not negative and at most [`TIME_MAX`]; [`Self::fault`] says what does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicSpec {
    /// T: least time between two creations of one stream.
    pub period: Period,
    /// D: from creation to arrival at the subscriber.
    pub deadline: Span,
    /// L: losses in a row that a subscriber tolerates.
    pub loss_tolerance: LossTolerance,
    /// L_shed: events in a row that may be dropped because they would be late; a part of L, which a crash may not use as well. 0: what is late is delivered.
    pub shed_max: u32,
    /// N: newest events that the publisher keeps and sends again at a fail-over.
    pub retention: u32,
    /// M: one event of so many is marked for replication; 1 marks all.
    pub mark_every: NonZeroU32,
    /// J: `n` gaps last at least `n * T - J`. Declared by the publisher and policed.
    pub jitter: Nanos,
    /// What is served first.
    pub level: Level,
    /// PB: longest time from publisher to broker.
    pub publisher_broker: Nanos,
    /// BS: shortest time from broker to subscriber. Only the paper's Proposition 1 asks for it.
    pub broker_subscriber_min: Nanos,
    /// BS: longest time from broker to subscriber.
    pub broker_subscriber_max: Nanos,
    /// Processor time to build and send one replica, without [`batch_cost`](super::Platform::batch_cost).
    pub replica_cost: Nanos,
    /// Processor time to dispatch one event to all of its subscribers.
    pub dispatch_cost: Nanos,
    /// What makes an event safe.
    pub coverage: Coverage,
    /// Whether the publisher is answered when the event is on the disk of both nodes.
    pub durable: bool,
    /// Whether its events go on to the fleet's stream.
    pub fleet: bool,
    /// Publishers that the topic may have at the same time: L, N and T are each one's own.
    pub publishers: NonZeroU32,
    /// Longest time for which a required subscriber of it may be waited for, at most [`REQUIRED_FOR_MAX`].
    pub required_for_max: Nanos,
}

impl TopicSpec {
    /// A topic that promises nothing and costs nothing: what a declaration begins with.
    pub fn best_effort(period: Period) -> Self {
        Self {
            period,
            deadline: Span::Infinite,
            loss_tolerance: LossTolerance::Any,
            shed_max: 0,
            retention: 0,
            mark_every: NonZeroU32::MIN,
            jitter: Nanos::ZERO,
            level: Level::default(),
            publisher_broker: Nanos::ZERO,
            broker_subscriber_min: Nanos::ZERO,
            broker_subscriber_max: Nanos::ZERO,
            replica_cost: Nanos::ZERO,
            dispatch_cost: Nanos::ZERO,
            coverage: Coverage::default(),
            durable: false,
            fleet: false,
            publishers: NonZeroU32::MIN,
            required_for_max: REQUIRED_FOR_MAX,
        }
    }

    /// The first member that does not fit, if there is one.
    pub fn fault(&self) -> Option<SpecFault> {
        let gap = match self.period {
            Period::Every(gap) => ("period", gap),
            Period::Rare { gap_min } => ("gap_min", gap_min),
        };
        if gap.1 <= Nanos::ZERO {
            return Some(SpecFault { key: gap.0, problem: Problem::NotPositive });
        }
        if let Some(fault) = self.deadline.finite().and_then(deadline_fault) {
            return Some(fault);
        }
        let times = [
            gap,
            ("jitter", self.jitter),
            ("publisher_broker", self.publisher_broker),
            ("broker_subscriber_min", self.broker_subscriber_min),
            ("broker_subscriber_max", self.broker_subscriber_max),
            ("replica_cost", self.replica_cost),
            ("dispatch_cost", self.dispatch_cost),
            ("required_for_max", self.required_for_max),
        ];
        if let Some(fault) = out_of_range(&times).or_else(|| required_for_fault(self.required_for_max)) {
            return Some(fault);
        }
        if let LossTolerance::AtMost(losses) = self.loss_tolerance
            && self.shed_max > losses
        {
            return Some(SpecFault { key: "shed_max", problem: Problem::Outside { from: 0, to: losses } });
        }
        let wrong_way = self.broker_subscriber_max < self.broker_subscriber_min;
        let below = Problem::Below { key: "broker_subscriber_min", at_least: self.broker_subscriber_min };
        wrong_way.then_some(SpecFault { key: "broker_subscriber_max", problem: below })
    }

    /// L_crash: losses in a row that are left for a crash, of those that a subscriber tolerates.
    pub fn crash_tolerance(&self) -> LossTolerance {
        match self.loss_tolerance {
            LossTolerance::Any => LossTolerance::Any,
            LossTolerance::AtMost(losses) => LossTolerance::AtMost(losses.saturating_sub(self.shed_max)),
        }
    }

    /// The first member that does not fit, by itself or to the platform, if there is one.
    pub fn fault_on(&self, platform: &Platform) -> Option<SpecFault> {
        let (transit, transit_min) = (self.publisher_broker, platform.publisher_broker_min);
        let below = Problem::Below { key: "publisher_broker_min", at_least: transit_min };
        self.fault().or_else(|| (transit < transit_min).then_some(SpecFault { key: "publisher_broker", problem: below }))
    }
}

/// What is wrong with a deadline that is stated: nothing arrives at the instant at which it is created.
pub(super) fn deadline_fault(deadline: Nanos) -> Option<SpecFault> {
    if deadline <= Nanos::ZERO {
        return Some(SpecFault { key: "deadline", problem: Problem::NoTime });
    }
    out_of_range(&[("deadline", deadline)])
}

/// A longer wait for required subscribers than there may be.
pub(super) fn required_for_fault(required_for_max: Nanos) -> Option<SpecFault> {
    let above = Problem::Above { at_most: REQUIRED_FOR_MAX };
    (required_for_max > REQUIRED_FOR_MAX).then_some(SpecFault { key: "required_for_max", problem: above })
}

/// The first of these times that is negative or too long.
pub(super) fn out_of_range(times: &[(&'static str, Nanos)]) -> Option<SpecFault> {
    times.iter().find_map(|(key, time)| {
        let problem = match time {
            _ if *time < Nanos::ZERO => Problem::Negative,
            _ if *time > TIME_MAX => Problem::TooLong,
            _ => return None,
        };
        Some(SpecFault { key, problem })
    })
}

/// A member that does not fit the others or its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} {problem}")]
pub struct SpecFault {
    /// The member, without a unit.
    pub key: &'static str,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Zero or less.
    #[error("must be greater than 0")]
    NotPositive,
    /// A deadline that nothing meets.
    #[error("must be greater than 0; leave it out where there is none")]
    NoTime,
    /// Less than zero.
    #[error("must not be negative")]
    Negative,
    /// Longer than [`TIME_MAX`].
    #[error("must be at most 366 days")]
    TooLong,
    /// Less than a member that it bounds.
    #[error("must be at least {key}, which is {at_least}")]
    Below {
        /// The other member.
        key: &'static str,
        /// Its value.
        at_least: Nanos,
    },
    /// More than there may be.
    #[error("must be at most {at_most}")]
    Above {
        /// The greatest.
        at_most: Nanos,
    },
    /// Outside these numbers.
    #[error("must be {from} to {to}")]
    Outside {
        /// The least.
        from: u32,
        /// The greatest.
        to: u32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_that_cannot_be_meant_is_told_by_its_key() {
        let ms = Nanos::from_millis;
        let good = TopicSpec::best_effort(Period::Every(ms(1)));
        let cases = [
            (good, None),
            (TopicSpec { period: Period::Every(ms(0)), ..good }, Some("period must be greater than 0")),
            (TopicSpec { period: Period::Rare { gap_min: ms(-1) }, ..good }, Some("gap_min must be greater than 0")),
            (TopicSpec { period: Period::Every(TIME_MAX + Nanos::new(1)), ..good }, Some("period must be at most 366 days")),
            (TopicSpec { deadline: ms(-1).into(), ..good }, Some("deadline must be greater than 0; leave it out where there is none")),
            (TopicSpec { deadline: ms(0).into(), ..good }, Some("deadline must be greater than 0; leave it out where there is none")),
            (TopicSpec { deadline: Nanos::new(1).into(), ..good }, None),
            (TopicSpec { deadline: TIME_MAX.into(), ..good }, None),
            (TopicSpec { deadline: (TIME_MAX + Nanos::new(1)).into(), ..good }, Some("deadline must be at most 366 days")),
            (TopicSpec { shed_max: 9, ..good }, None),
            (TopicSpec { shed_max: 3, loss_tolerance: LossTolerance::AtMost(3), ..good }, None),
            (TopicSpec { shed_max: 4, loss_tolerance: LossTolerance::AtMost(3), ..good }, Some("shed_max must be 0 to 3")),
            (TopicSpec { required_for_max: ms(86_400_001), ..good }, Some("required_for_max must be at most 86400 s")),
            (
                TopicSpec { broker_subscriber_min: ms(2), broker_subscriber_max: ms(1), ..good },
                Some("broker_subscriber_max must be at least broker_subscriber_min, which is 2 ms"),
            ),
        ];
        for (spec, fault) in cases {
            assert_eq!(spec.fault().map(|fault| fault.to_string()).as_deref(), fault, "{spec:?}");
        }
    }
}
