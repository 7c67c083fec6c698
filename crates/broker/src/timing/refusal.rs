//! Why a topic is not admitted, and the smallest changes with which it would be.

use std::fmt;

use super::{
    Change, Deadlines, Load, Nanos, Overrun, Rejection, Span,
    cores::Workload,
    demand::{Job, Task},
    way::{Trial, ways},
};
use crate::topic::{LossTolerance, Platform, TopicSpec};

/// Topics alike that ask to be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Each one.
    pub spec: TopicSpec,
    /// How many.
    pub topics: u32,
    /// What they count on.
    pub platform: Platform,
}

/// A promise that cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Between two marks more events may be lost than are tolerated.
    MarkEvery {
        /// M.
        mark_every: u32,
        /// L.
        loss_tolerance: u32,
    },
    /// On an idle shard a dispatch would be late.
    Dispatch {
        /// (C) behind the arrival.
        deadline: Nanos,
        /// What it takes.
        need: Nanos,
    },
    /// On an idle shard a replica would be late.
    Replicate {
        /// (B) behind the arrival.
        deadline: Nanos,
        /// What it takes.
        need: Nanos,
    },
    /// A core would be asked for more than may be.
    Load {
        /// Which core.
        core: usize,
        /// What would be asked.
        load: Load,
        /// What may be.
        load_max: Load,
    },
    /// The jobs of a core would not fit.
    Demand {
        /// Which core.
        core: usize,
        /// Where first.
        overrun: Overrun,
    },
}

impl From<Rejection> for Reason {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Load { core, load, load_max } => Self::Load { core, load, load_max },
            Rejection::Overrun { core, overrun } => Self::Demand { core, overrun },
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MarkEvery { mark_every, loss_tolerance } => {
                let between = mark_every - 1;
                write!(f, "between two replicated events {between} in a row may be lost (mark_every = {mark_every}), and ")?;
                write!(f, "loss_tolerance is {loss_tolerance}")
            }
            Self::Dispatch { deadline, need } => write!(f, "a dispatch has {deadline} from the arrival on, and takes {need}"),
            Self::Replicate { deadline, need } => write!(f, "a replica has {deadline} from the arrival on, and takes {need}"),
            Self::Load { core, load, load_max } => {
                write!(f, "core {core} would be asked for {load} of its time, and may be for {load_max}")
            }
            Self::Demand { core, overrun: Overrun { at, demand, is_exact, level } } => {
                let what = if *is_exact { "may have to be done" } else { "cannot be ruled out" };
                write!(f, "core {core} cannot meet all deadlines of level {}: within {at}, {demand} of work {what}", level.get())
            }
        }
    }
}

/// What a topic is refused with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Everything that is wrong with the topic by itself; or, if nothing is, why there is no room for it.
    pub reasons: Vec<Reason>,
    /// Ways to be admitted, each of which would do, with all changes of it: values with one unit (a nanosecond, one) less change are refused.
    pub ways: Vec<Vec<Change>>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons: Vec<String> = self.reasons.iter().map(Reason::to_string).collect();
        f.write_str(&reasons.join("; "))
    }
}

/// Everything that is wrong with the topic by itself.
pub(super) fn reasons(candidate: &Candidate) -> Vec<Reason> {
    let Candidate { spec, platform, .. } = candidate;
    let deadlines = Deadlines::of(spec, platform);
    let mut reasons = Vec::new();
    match spec.crash_tolerance() {
        LossTolerance::AtMost(loss_tolerance) if spec.mark_every.get() - 1 > loss_tolerance => {
            reasons.push(Reason::MarkEvery { mark_every: spec.mark_every.get(), loss_tolerance });
        }
        _ => {
            let deadline = deadlines.replicate.finite().filter(|_| !deadlines.replicate_feasible());
            reasons.extend(deadline.map(|deadline| Reason::Replicate { deadline, need: deadlines.replicate_need }));
        }
    }
    let deadline = deadlines.dispatch.finite().filter(|_| !deadlines.dispatch_feasible());
    reasons.extend(deadline.map(|deadline| Reason::Dispatch { deadline, need: deadlines.dispatch_need }));
    reasons
}

impl Candidate {
    /// Whether the topic is right by itself and there is room for it: otherwise the refusal.
    pub(super) fn refusal(&self, trial: Trial<'_>) -> Option<Refusal> {
        let mut reasons = reasons(self);
        if reasons.is_empty() {
            reasons.extend(trial(self).err().map(|(rejection, _)| Reason::from(rejection)));
        }
        (!reasons.is_empty()).then(|| Refusal { reasons, ways: ways(self, trial) })
    }

    /// Its deadlines.
    pub fn deadlines(&self) -> Deadlines {
        Deadlines::of(&self.spec, &self.platform)
    }
}

impl From<&Candidate> for Workload {
    fn from(candidate: &Candidate) -> Self {
        let Candidate { spec, topics, platform } = candidate;
        let deadlines = candidate.deadlines();
        let dispatch = Task {
            deadline: deadlines.dispatch,
            level: spec.level,
            job: Job::Dispatch,
            period: spec.period.gap(),
            jitter: spec.jitter,
            transit_spread: spec.publisher_broker - platform.publisher_broker_min,
            cost: spec.dispatch_cost,
        };
        let replicate = Task {
            deadline: deadlines.replicate,
            job: Job::Replicate,
            period: spec.period.gap().times(spec.mark_every.get().into()),
            cost: platform.batch_cost + spec.replica_cost,
            ..dispatch
        };
        let has_bound = deadlines.replicate != Span::Infinite;
        Self { tasks: [Some(dispatch), has_bound.then_some(replicate)], publishers: spec.publishers.get(), topics: *topics }
    }
}
