//! The deadlines that follow from {T, D, L, N} and M: formulas (A) to (D) of `docs/design/timing.md`.

use super::{Nanos, Span};
use crate::topic::{LossTolerance, Period, Platform, TopicSpec};

/// Everything that a topic's specification implies. Relative to arrival means: to that of an event that took the longest time from its
/// publisher, so that no event has less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// (C) Latest end of the dispatch behind the creation, by the broker's clock: `D - BS_max - eps`.
    pub dispatch_from_creation: Span,
    /// (C) The same behind the arrival: `D - PB - BS_max - eps`.
    pub dispatch: Span,
    /// What a dispatch takes on an idle shard: `dispatch_cost + blocking`.
    pub dispatch_need: Nanos,
    /// (A) Latest instant, behind the creation and by the broker's clock, at which the last byte of a marked event's replica leaves:
    /// `(N + L + 1 - M) * T - J - x - BB - eps`. Infinite where any loss is tolerated.
    pub replicate_from_creation: Span,
    /// (B) The same behind the arrival: less `PB`.
    pub replicate: Span,
    /// What a replication takes on an idle shard: `batch_cost + replica_cost + blocking`.
    pub replicate_need: Nanos,
    /// Smallest N with which a replication that starts on an idle shard meets (B). `None`: none does, for M is more than L + 1.
    pub retention_min: Option<u32>,
    /// Largest M (at most L + 1) of which the same is true. `None`: not even 1, or nothing is marked because any loss is tolerated.
    pub mark_every_max: Option<u32>,
    /// (D) `(N + L + 1 - M) * T - D - x - J - eps`: what is left between the enforced arrival at the subscriber and the instant at which the
    /// event has to be covered. Negative: replication is not predicted to be cancelled. `None`: the deadline is infinite.
    pub cancel_slack: Option<Span>,
    /// What the paper's Proposition 1 says: replicate if `x + BB - BS_min > (N + L) * T - D`. It takes a send for safe; see `docs/design/timing.md`.
    pub paper_replicates: bool,
    /// Replicas of one stream that the Backup holds at the most. `None`: no bound, for the deadline is infinite.
    pub backup_entries: Option<u64>,
}

impl Deadlines {
    /// What `topic` implies on `platform`.
    pub fn of(topic: &TopicSpec, platform: &Platform) -> Self {
        let dispatch_from_creation = topic.deadline.less(topic.broker_subscriber_max + platform.clock_error);
        let covered_by = Bound::of(topic);
        // What lies between the instant at which the last byte leaves and the instant of (A).
        let transit = topic.jitter + platform.failover() + platform.broker_backup + platform.clock_error;
        let replicate_from_creation = covered_by.span().less(transit);
        let replicate_need = platform.batch_cost + topic.replica_cost + platform.blocking;
        Self {
            dispatch_from_creation,
            dispatch: dispatch_from_creation.less(topic.publisher_broker),
            dispatch_need: topic.dispatch_cost + platform.blocking,
            replicate_from_creation,
            replicate: replicate_from_creation.less(topic.publisher_broker),
            replicate_need,
            retention_min: covered_by.retention_min(transit + topic.publisher_broker + replicate_need),
            mark_every_max: covered_by.mark_every_max(transit + topic.publisher_broker + replicate_need),
            cancel_slack: cancel_slack(topic, platform, covered_by.span()),
            paper_replicates: paper_replicates(topic, platform),
            backup_entries: backup_entries(topic, platform),
        }
    }

    /// Whether a dispatch that starts on an idle shard meets (C).
    pub fn dispatch_feasible(&self) -> bool {
        self.dispatch >= Span::Finite(self.dispatch_need)
    }

    /// Whether M is at most L + 1, and a replication that starts on an idle shard meets (B).
    pub fn replicate_feasible(&self) -> bool {
        self.retention_min.is_some() && self.replicate >= Span::Finite(self.replicate_need)
    }

    /// Whether subscribers are expected to have every event before it would be replicated. A prediction for the planning of capacity only:
    /// replication is postponed and cancelled, never left out.
    pub fn replication_predicted_cancelled(&self) -> bool {
        self.cancel_slack.is_some_and(|slack| slack >= Span::Finite(Nanos::ZERO))
    }
}

/// `(N + L + 1 - M) * T`: how long after its creation a marked event may be without cover, but for jitter and fail-over.
enum Bound {
    /// Any loss is tolerated, so nothing is ever due.
    None,
    /// So many periods of so long, for a topic with these L and M.
    Periods { retention: i64, loss_tolerance: i64, mark_every: i64, gap: Nanos },
}

impl Bound {
    fn of(topic: &TopicSpec) -> Self {
        match topic.crash_tolerance() {
            LossTolerance::Any => Self::None,
            LossTolerance::AtMost(losses) => Self::Periods {
                retention: topic.retention.into(),
                loss_tolerance: losses.into(),
                mark_every: topic.mark_every.get().into(),
                gap: topic.period.gap(),
            },
        }
    }

    fn span(&self) -> Span {
        match self {
            Self::None => Span::Infinite,
            Self::Periods { retention, loss_tolerance, mark_every, gap } => gap.times(retention + loss_tolerance + 1 - mark_every).into(),
        }
    }

    /// Smallest N with which the span is at least `needed`.
    fn retention_min(&self, needed: Nanos) -> Option<u32> {
        match *self {
            Self::None => Some(0),
            Self::Periods { loss_tolerance, mark_every, .. } if mark_every > loss_tolerance + 1 => None,
            Self::Periods { loss_tolerance, mark_every, gap, .. } => {
                let unmarked_for = u64::try_from(loss_tolerance + 1 - mark_every).expect("M is at most L + 1");
                u32::try_from(needed.steps_of(gap).saturating_sub(unmarked_for)).ok()
            }
        }
    }

    /// Largest M up to L + 1 with which the span is at least `needed`.
    fn mark_every_max(&self, needed: Nanos) -> Option<u32> {
        let Self::Periods { retention, loss_tolerance, gap, .. } = *self else { return None };
        let periods = i64::try_from(needed.steps_of(gap)).unwrap_or(i64::MAX);
        let largest = (retention + loss_tolerance + 1).saturating_sub(periods).min(loss_tolerance + 1);
        u32::try_from(largest).ok().filter(|largest| *largest > 0)
    }
}

/// (D). Jobs get deadlines by `BS_max`, so arrival is enforced at `D`.
fn cancel_slack(topic: &TopicSpec, platform: &Platform, covered_by: Span) -> Option<Span> {
    match (covered_by, topic.deadline) {
        (Span::Infinite, _) => Some(Span::Infinite),
        (Span::Finite(_), Span::Infinite) => None,
        (covered_by, Span::Finite(deadline)) => Some(covered_by.less(deadline + platform.failover() + topic.jitter + platform.clock_error)),
    }
}

/// Proposition 1 as it is printed, with the T that was declared: infinite for rare events.
fn paper_replicates(topic: &TopicSpec, platform: &Platform) -> bool {
    let kept = match (topic.loss_tolerance, topic.period) {
        (LossTolerance::Any, _) => Span::Infinite,
        (LossTolerance::AtMost(0), _) if topic.retention == 0 => Nanos::ZERO.into(),
        (LossTolerance::AtMost(_), Period::Rare { .. }) => Span::Infinite,
        (LossTolerance::AtMost(losses), Period::Every(gap)) => gap.times(i64::from(topic.retention) + i64::from(losses)).into(),
    };
    let lost_for = platform.failover() + platform.broker_backup - topic.broker_subscriber_min;
    match (kept, topic.deadline) {
        (Span::Infinite, _) => false,
        (Span::Finite(_), Span::Infinite) => true,
        (Span::Finite(kept), Span::Finite(deadline)) => lost_for > kept - deadline,
    }
}

/// Marked events that may be created between an event's creation and its discard: it has arrived after D, its acknowledgement after a further BS,
/// and the discard, which goes with the next batch, after `batch_window + BB`.
fn backup_entries(topic: &TopicSpec, platform: &Platform) -> Option<u64> {
    if topic.loss_tolerance == LossTolerance::Any {
        return Some(0);
    }
    let acknowledged = topic.deadline.finite()? + topic.broker_subscriber_max;
    let discarded = acknowledged + platform.batch_window + platform.broker_backup;
    Some((discarded + topic.jitter).steps_of(topic.period.gap().times(topic.mark_every.get().into())))
}

#[cfg(test)]
mod tests;
