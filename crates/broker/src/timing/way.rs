//! The search for the smallest changes with which a refused topic would be admitted.
//!
//! What is wrong with the topic by itself is mended in closed form; where there is no room for it, by trying, for whatever lies behind a change
//! that helps helps as well.

use super::{Candidate, Change, Key, Nanos, Reason, Rejection, refusal::reasons};
use crate::topic::{LossTolerance, Period, TIME_MAX, TopicSpec};

/// Whether there is room; if not, why, and for how many of the topics there is.
pub(super) type Trial<'t> = &'t mut dyn FnMut(&Candidate) -> Result<(), (Rejection, u32)>;

/// Changes that one way has at the most. Marks, replication, dispatch, room: each is mended once.
const CHANGES_MAX: usize = 4;

/// All ways to have `candidate` admitted that begin with mending its first reason, and are no longer than [`CHANGES_MAX`].
pub(super) fn ways(candidate: &Candidate, trial: Trial<'_>) -> Vec<Vec<Change>> {
    let starts = mends(candidate, trial);
    let found = starts.into_iter().filter_map(|change| way_behind(change, candidate, CHANGES_MAX, trial)).collect::<Vec<_>>();
    let mut ways: Vec<Vec<Change>> = Vec::new();
    for way in found {
        let way = if way.len() > 1 { shortened(way, candidate, trial) } else { way };
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways.sort_by_key(Vec::len);
    ways
}

/// `change` and what it takes behind it; the first way that leads there.
fn way_behind(change: Change, candidate: &Candidate, changes_max: usize, trial: Trial<'_>) -> Option<Vec<Change>> {
    let mended = change.applied_to(*candidate);
    if is_admitted(&mended, trial) {
        return Some(vec![change]);
    }
    if changes_max == 1 {
        return None;
    }
    let rest = mends(&mended, trial).into_iter().find_map(|next| way_behind(next, &mended, changes_max - 1, trial))?;
    let is_kept = rest.iter().all(|later| later.key != change.key);
    Some(is_kept.then_some(change).into_iter().chain(rest).collect())
}

/// A later change may have made part of an earlier one needless: each is cut back to what it takes beside the others.
fn shortened(mut way: Vec<Change>, candidate: &Candidate, trial: Trial<'_>) -> Vec<Change> {
    let mut index = 0;
    while index < way.len() {
        let change = way.remove(index);
        let others = way.iter().fold(*candidate, |candidate, other| other.applied_to(candidate));
        if is_admitted(&others, trial) {
            continue;
        }
        let from = change.key.of(candidate).expect("what is changed had a value");
        let fits = |value| is_admitted(&Change { value, ..change }.applied_to(others), trial);
        let value = nearest(from, change.value, fits).expect("the whole change fits");
        way.insert(index, Change { value, ..change });
        index += 1;
    }
    way
}

fn is_admitted(candidate: &Candidate, trial: Trial<'_>) -> bool {
    reasons(candidate).is_empty() && trial(candidate).is_ok()
}

/// The smallest changes that mend the candidate's first reason, one key each.
fn mends(candidate: &Candidate, trial: Trial<'_>) -> Vec<Change> {
    match reasons(candidate).first() {
        Some(Reason::MarkEvery { mark_every, loss_tolerance }) => vec![
            Change { key: Key::MarkEvery, value: i64::from(*loss_tolerance) + 1 },
            Change { key: Key::LossTolerance, value: i64::from(*mark_every) - 1 + i64::from(candidate.spec.shed_max) },
        ],
        Some(Reason::Replicate { deadline, need }) => mends_of_replication(candidate, *need - *deadline),
        Some(Reason::Dispatch { deadline, need }) => {
            let short = *need - *deadline;
            let longer = candidate.spec.deadline.finite().map(|deadline| deadline + short);
            let cheaper = Some(candidate.spec.dispatch_cost - short);
            let mends = [time(Key::Deadline, longer), time(Key::DispatchCost, cheaper)];
            mends.into_iter().flatten().collect()
        }
        Some(Reason::Load { .. } | Reason::Demand { .. }) | None => mends_of_room(candidate, trial),
    }
}

/// A time that may be declared.
fn time(key: Key, time: Option<Nanos>) -> Option<Change> {
    time.filter(|time| (Nanos::ZERO..=TIME_MAX).contains(time)).map(|time| Change { key, value: time.get() })
}

/// T under the key that the topic has it.
fn gap_key(spec: &TopicSpec) -> Key {
    match spec.period {
        Period::Every(_) => Key::Period,
        Period::Rare { .. } => Key::GapMin,
    }
}

fn mends_of_replication(candidate: &Candidate, short: Nanos) -> Vec<Change> {
    let Candidate { spec, platform, .. } = candidate;
    let LossTolerance::AtMost(losses) = spec.crash_tolerance() else { return Vec::new() };
    let deadlines = candidate.deadlines();
    let number = |key, value: Option<u32>| value.map(|value| Change { key, value: value.into() });
    let more = deadlines.retention_min.map(|retention_min| retention_min - spec.retention);
    let periods = i64::from(spec.retention) + i64::from(losses) + 1 - i64::from(spec.mark_every.get());
    let longer = (periods > 0).then(|| short.steps_of(Nanos::new(periods)));
    let longer = longer.map(|more| spec.period.gap() + Nanos::new(i64::try_from(more).unwrap_or(i64::MAX)));
    let sooner = Some(platform.failover() - short).filter(|failover| *failover >= platform.lease.failover());
    let mends = [
        number(Key::Retention, deadlines.retention_min),
        number(Key::LossTolerance, more.and_then(|more| losses.checked_add(more)?.checked_add(spec.shed_max))),
        number(Key::MarkEvery, deadlines.mark_every_max),
        time(gap_key(spec), longer),
        time(Key::Failover, sooner),
        time(Key::ReplicaCost, Some(spec.replica_cost - short)),
    ];
    mends.into_iter().flatten().collect()
}

/// Where the topic is right by itself and there is no room for it: found by trying.
fn mends_of_room(candidate: &Candidate, trial: Trial<'_>) -> Vec<Change> {
    let fitting = trial(candidate).err().map(|(_, fitting)| fitting).filter(|fitting| (1..candidate.topics).contains(fitting));
    let fewer = fitting.map(|fitting| Change { key: Key::Count, value: fitting.into() });
    let ends = [
        (gap_key(&candidate.spec), TIME_MAX),
        (Key::Deadline, TIME_MAX),
        (Key::DispatchCost, Nanos::ZERO),
        (Key::ReplicaCost, Nanos::ZERO),
    ];
    let searched = ends.into_iter().filter_map(|(key, end)| {
        let from = key.of(candidate)?;
        let fits = |value| is_admitted(&Change { key, value }.applied_to(*candidate), trial);
        nearest(from, end.get(), fits).map(|value| Change { key, value })
    });
    fewer.into_iter().chain(searched).collect()
}

/// The value nearest to `from`, on the way to `to`, that fits, if `to` does; whatever lies behind a value that fits does so too.
fn nearest(mut from: i64, mut to: i64, mut fits: impl FnMut(i64) -> bool) -> Option<i64> {
    if from == to || !fits(to) {
        return None;
    }
    while from.abs_diff(to) > 1 {
        let between = from + (to - from) / 2;
        match fits(between) {
            true => to = between,
            false => from = between,
        }
    }
    Some(to)
}
