//! Do the jobs of one core fit, whenever they come? The demand test for non-preemptive EDF, sporadic tasks and levels.
//!
//! For every `t > 0`, what may be due within `t` behind any instant, the longest job that may have been begun before it, and the longest stall
//! take `t` at the most. What a sporadic task may ask is a staircase under a line; where the lines of all leave room there is nothing to look
//! at, and in the few places where they do not the staircases are walked step by step. The lines rise more slowly than the time, so each walk
//! ends, and the last one where everything has caught up.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{Load, Nanos, Span};
use crate::topic::Level;

/// Which work on an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Job {
    /// To the subscribers.
    Dispatch,
    /// To the Backup.
    Replicate,
}

/// The jobs of one stream: at least `period` apart, but for `jitter`. In the order in which the test takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Task {
    /// Shortest time from arrival to deadline.
    pub deadline: Span,
    /// What is served first.
    pub level: Level,
    /// Which work.
    pub job: Job,
    /// Least time between two jobs. Positive.
    pub period: Nanos,
    /// `n` periods last at least `n * period - jitter`.
    pub jitter: Nanos,
    /// By how much the time from creation to arrival varies: it lets jobs arrive, though not be due, closer together.
    pub transit_spread: Nanos,
    /// Processor time of a job, which nothing of the shard's preempts.
    pub cost: Nanos,
}

/// So many tasks alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Each one.
    pub task: Task,
    /// How many.
    pub count: u64,
}

impl Class {
    /// What they ask of a core.
    pub fn load(&self) -> Load {
        Load::of(self.task.cost, self.count, self.task.period)
    }

    fn work(&self) -> i128 {
        i128::from(self.task.cost.get()) * i128::from(self.count)
    }

    fn period(&self) -> i128 {
        self.task.period.get().into()
    }

    /// By how much jobs may arrive closer together than their period.
    fn arrival_jitter(&self) -> i128 {
        (self.task.jitter + self.task.transit_spread).get().into()
    }
}

/// The first instant behind a worst arrival at which more is due than can have been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun {
    /// Whose deadlines are missed.
    pub level: Level,
    /// t: time behind the arrival, and what a core can do in it.
    pub at: Nanos,
    /// What may have to be done in it: jobs that are due, the longest one that may be in front of them, the longest stall.
    pub demand: Nanos,
    /// False: the walk was ended at [`STEPS_MAX`], and the demand is that of the lines, which is at least what may come.
    pub is_exact: bool,
}

/// Steps of staircases that are walked for one level at the most; what is not decided by then counts as an overrun.
pub const STEPS_MAX: u32 = 10_000_000;

/// The first overrun of a core with these tasks, whose load is below that of a whole core, and stalls of up to `blocking`.
///
/// A level is tested with everything more urgent served first whatever its deadline, and anything less urgent once in its way.
pub fn first_overrun(classes: &[Class], blocking: Nanos) -> Option<Overrun> {
    let mut levels: Vec<Level> = classes.iter().map(|class| class.task.level).collect();
    levels.sort_unstable();
    levels.dedup();
    levels.into_iter().find_map(|level| {
        let lesser = classes.iter().filter(|class| class.task.level > level).map(|class| class.task.cost).max();
        let urgent = classes.iter().filter(|class| class.task.level < level).copied().collect();
        let mut own: Vec<Class> = classes.iter().filter(|class| class.task.level == level).copied().collect();
        own.sort_by_key(|class| class.task.deadline);
        let found = Walk::behind(urgent, STEPS_MAX).first_overrun(&own, lesser.unwrap_or_default(), blocking);
        found.map(|(at, demand, is_exact)| Overrun { level, at, demand, is_exact })
    })
}

/// The demand of one level's tasks so far, by their lines and by their staircases.
struct Walk {
    /// Tasks that are served first.
    urgent: Vec<Class>,
    /// Where each staircase rises next, its period, and by how much, in the order of time. Steps behind the present have not been counted yet.
    steps: BinaryHeap<Reverse<(i128, i128, i128)>>,
    steps_left: u32,
    /// Sum of the staircases, but for the steps that have not been counted yet.
    demand: i128,
    /// Sum of the lines `cost + load * (t - deadline + jitter)`, urgent tasks included: their height at 0 and their slope, in parts
    /// ([`Load::PARTS`]).
    height: i128,
    slope: i128,
}

impl Walk {
    fn behind(urgent: Vec<Class>, steps_max: u32) -> Self {
        let mut walk = Self { urgent: Vec::new(), steps: BinaryHeap::new(), steps_left: steps_max, demand: 0, height: 0, slope: 0 };
        urgent.iter().for_each(|class| walk.add_line(class, 0, class.arrival_jitter()));
        Self { urgent, ..walk }
    }

    /// Takes the classes of the level in the order of their deadlines. Gives t, the demand, and whether it is exact.
    fn first_overrun(&mut self, own: &[Class], longest_lesser: Nanos, blocking: Nanos) -> Option<(Nanos, Nanos, bool)> {
        let longest_from = longest_from(own);
        let mut next = 0;
        while let Some(due) = own.get(next).and_then(|class| class.task.deadline.finite()) {
            while own.get(next).is_some_and(|class| class.task.deadline == due.into()) {
                self.add(&own[next], due);
                next += 1;
            }
            let until = own.get(next).and_then(|class| class.task.deadline.finite()).unwrap_or(Nanos::MAX);
            let in_front = blocking + longest_from[next].max(longest_lesser);
            let overrun = self.between(due.get().into(), until.get().into(), in_front.get().into());
            if let Some((at, demand, is_exact)) = overrun {
                return Some((Nanos::saturating(at), Nanos::saturating(demand), is_exact));
            }
        }
        None
    }

    fn add(&mut self, class: &Class, due: Nanos) {
        let (due, jitter, period) = (i128::from(due.get()), i128::from(class.task.jitter.get()), class.period());
        self.add_line(class, due, jitter);
        if class.work() > 0 {
            let at_once = jitter / period + 1;
            self.demand += at_once * class.work();
            self.steps.push(Reverse((due + at_once * period - jitter, period, class.work())));
        }
    }

    fn add_line(&mut self, class: &Class, due: i128, jitter: i128) {
        let load = class.load().parts();
        self.slope += load;
        self.height += class.work() * Load::PARTS + load * (jitter - due);
    }

    /// The first overrun from `at` on and before `until`, between which no deadline of a further task lies.
    fn between(&mut self, mut at: i128, until: i128, in_front: i128) -> Option<(i128, i128, bool)> {
        loop {
            let line = (self.height + self.slope * at).div_euclid(Load::PARTS) + 1;
            if line + in_front <= at {
                return None;
            }
            self.count_until(at);
            let demand = self.with_urgent(self.demand + in_front, at);
            if demand > at {
                return Some((at, demand, true));
            }
            if self.steps_left == 0 {
                return Some((at, line + in_front, false));
            }
            let Reverse((next, ..)) = *self.steps.peek()?;
            if next >= until {
                return None;
            }
            at = next;
        }
    }

    fn count_until(&mut self, at: i128) {
        while let Some(mut step) = self.steps.peek_mut().filter(|step| step.0.0 <= at) {
            let Reverse((next, period, work)) = *step;
            let passed = (at - next) / period + 1;
            self.demand += passed * work;
            *step = Reverse((next + passed * period, period, work));
            self.steps_left = self.steps_left.saturating_sub(1);
        }
    }

    /// When `work` is done with all urgent jobs that arrive before: by `at`, or more than that where it is not.
    fn with_urgent(&mut self, work: i128, at: i128) -> i128 {
        let mut done = work;
        while done <= at && !self.urgent.is_empty() && self.steps_left > 0 {
            let arrived = |class: &Class| (done.max(1) + class.arrival_jitter() - 1) / class.period() + 1;
            let next = work + self.urgent.iter().map(|class| arrived(class) * class.work()).sum::<i128>();
            self.steps_left -= 1;
            if next == done {
                break;
            }
            done = next;
        }
        done
    }
}

/// The longest job of each class and those behind it; behind the last there is none.
fn longest_from(classes: &[Class]) -> Vec<Nanos> {
    let mut longest = vec![Nanos::ZERO; classes.len() + 1];
    for (index, class) in classes.iter().enumerate().rev() {
        longest[index] = longest[index + 1].max(class.task.cost);
    }
    longest
}

#[cfg(test)]
mod tests;
