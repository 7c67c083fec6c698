//! What could be declared otherwise, one key with its value.

use std::fmt;

use super::{Candidate, Nanos};
use crate::topic::{LossTolerance, Period};

/// A key whose value could be another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// N; more helps.
    Retention,
    /// L; more helps.
    LossTolerance,
    /// M; less helps.
    MarkEvery,
    /// D; more helps.
    Deadline,
    /// T; more helps.
    Period,
    /// The gap that is policed of rare events; more helps.
    GapMin,
    /// x of the platform; less helps.
    Failover,
    /// Processor time of a dispatch; less helps.
    DispatchCost,
    /// Processor time of a replica; less helps.
    ReplicaCost,
    /// How many topics there are alike; less helps.
    Count,
}

impl Key {
    /// Its name in a declaration, without a unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retention => "retention",
            Self::LossTolerance => "loss_tolerance",
            Self::MarkEvery => "mark_every",
            Self::Deadline => "deadline",
            Self::Period => "period",
            Self::GapMin => "gap_min",
            Self::Failover => "failover",
            Self::DispatchCost => "dispatch_cost",
            Self::ReplicaCost => "replica_cost",
            Self::Count => "count",
        }
    }

    /// Whether it is a time, which is counted in nanoseconds.
    pub fn is_time(self) -> bool {
        !matches!(self, Self::Retention | Self::LossTolerance | Self::MarkEvery | Self::Count)
    }

    /// Its value, if it has a finite one.
    pub(super) fn of(self, candidate: &Candidate) -> Option<i64> {
        let Candidate { spec, topics, platform } = candidate;
        let time = match self {
            Self::Retention => return Some(spec.retention.into()),
            Self::LossTolerance => match spec.loss_tolerance {
                LossTolerance::AtMost(losses) => return Some(losses.into()),
                LossTolerance::Any => return None,
            },
            Self::MarkEvery => return Some(spec.mark_every.get().into()),
            Self::Count => return Some((*topics).into()),
            Self::Deadline => spec.deadline.finite()?,
            Self::Period | Self::GapMin => spec.period.gap(),
            Self::Failover => platform.failover(),
            Self::DispatchCost => spec.dispatch_cost,
            Self::ReplicaCost => spec.replica_cost,
        };
        Some(time.get())
    }
}

/// One key with the value that it would have to have: a number, or nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which key.
    pub key: Key,
    /// Its value.
    pub value: i64,
}

impl Change {
    /// The candidate with this value.
    pub fn applied_to(self, mut candidate: Candidate) -> Candidate {
        let (spec, time) = (&mut candidate.spec, Nanos::new(self.value));
        let number = || u32::try_from(self.value).expect("what is counted is no time");
        match self.key {
            Key::Retention => spec.retention = number(),
            Key::LossTolerance => spec.loss_tolerance = LossTolerance::AtMost(number()),
            Key::MarkEvery => spec.mark_every = number().try_into().expect("one event of none is never marked"),
            Key::Count => candidate.topics = number(),
            Key::Deadline => spec.deadline = time.into(),
            Key::Period => spec.period = Period::Every(time),
            Key::GapMin => spec.period = Period::Rare { gap_min: time },
            Key::Failover => candidate.platform.failover = Some(time),
            Key::DispatchCost => spec.dispatch_cost = time,
            Key::ReplicaCost => spec.replica_cost = time,
        }
        candidate
    }
}

impl fmt::Display for Change {
    /// As it would be declared: `retention = 2`, `deadline_ms = 51.05`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.key.name(), self.value.unsigned_abs()) {
            (name, _) if !self.key.is_time() => write!(f, "{name} = {}", self.value),
            (name, 0..1_000_000) => write!(f, "{name}_us = {}", Nanos::new(self.value).in_unit(1_000)),
            (name, _) => write!(f, "{name}_ms = {}", Nanos::new(self.value).in_unit(1_000_000)),
        }
    }
}
