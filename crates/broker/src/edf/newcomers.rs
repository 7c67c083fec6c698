//! Jobs without a place in the order of deadlines.
//!
//! A replica may wait for the better part of a period, and is not needed any more when its message is covered a millisecond later. To put it in order and to take it
//! out again would be most of what it costs. Until somebody has to know which job is the first, the earliest deadline and the sum of the costs say enough.

use super::{Edf, Job};
use crate::time::Instant;

/// Jobs that a level notes without an order, those with them that were taken out since they were last looked over.
const NOTED_MAX: usize = 1024;

/// Of one level.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Newcomers {
    /// Each with what it was counted as when it came: who is taken out stays here, and may have come again.
    noted: Vec<(u32, u64)>,
    /// Those that are there, and what they cost together.
    count: usize,
    costs_ns: u64,
    /// None of them has an earlier deadline.
    earliest: Instant,
}

impl Default for Newcomers {
    fn default() -> Self {
        Self { noted: Vec::new(), count: 0, costs_ns: 0, earliest: Instant::NEVER }
    }
}

impl Newcomers {
    /// Makes room for as many as are ever noted.
    pub fn reserve(&mut self) {
        self.noted.reserve_exact(NOTED_MAX - self.noted.len());
    }

    /// A deadline that none of them is in front of, and what they cost together; nothing where there is none.
    pub fn bound(&self) -> Option<(Instant, u64)> {
        (self.count > 0).then_some((self.earliest, self.costs_ns))
    }

    /// One of them is taken out.
    pub fn leave(&mut self, cost_ns: u32) {
        self.count -= 1;
        self.costs_ns -= u64::from(cost_ns);
        if self.count == 0 {
            self.noted.clear();
            self.earliest = Instant::NEVER;
        }
    }

    fn enter(&mut self, number: u32, job: &Job) {
        self.noted.push((number, job.order));
        self.count += 1;
        self.costs_ns += u64::from(job.cost_ns);
        self.earliest = self.earliest.min(job.deadline);
    }

    /// Forgets those that were taken out.
    fn look_over(&mut self, jobs: &[Job]) {
        self.noted.retain(|&(job, order)| jobs[job as usize].is_noted(order));
        self.earliest = self.noted.iter().map(|&(job, _)| jobs[job as usize].deadline).min().unwrap_or(Instant::NEVER);
    }
}

impl Job {
    /// Whether it is the one that was noted when so many had come, and still has no place.
    fn is_noted(&self, order: u64) -> bool {
        self.is_new && self.order == order && self.level != super::NOWHERE
    }
}

impl Edf {
    /// Queues a job, or moves it to this level and deadline, without a place in the order: [`Self::first`] knows it behind [`Self::put_in_order`].
    pub fn enter(&mut self, level: u8, job: u32, deadline: Instant, cost_ns: u32) {
        self.replace(level, job, deadline, cost_ns);
        self.jobs[job as usize].is_new = true;
        let newcomers = &mut self.newcomers[usize::from(level)];
        newcomers.enter(job, &self.jobs[job as usize]);
        if newcomers.noted.len() == NOTED_MAX {
            newcomers.look_over(&self.jobs);
            if newcomers.count > NOTED_MAX / 2 {
                self.put_in_order(level);
            }
        }
    }

    /// Gives all jobs of a level their places.
    pub fn put_in_order(&mut self, level: u8) {
        let mut noted = std::mem::take(&mut self.newcomers[usize::from(level)].noted);
        for (job, order) in noted.drain(..) {
            if self.jobs[job as usize].is_noted(order) {
                self.jobs[job as usize].is_new = false;
                self.give_place(job);
            }
        }
        self.newcomers[usize::from(level)] = Newcomers { noted, ..Newcomers::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn those_that_come_and_go_are_looked_over_and_leave_no_bound_behind() {
        let mut edf = Edf::default();
        edf.reserve(NOTED_MAX);
        edf.enter(0, 0, at(50_000), 7);
        for round in 0..5_000 {
            edf.enter(0, 1, at(round), 3);
            assert!(edf.remove(1));
        }
        assert!(edf.newcomers[0].noted.len() < NOTED_MAX);
        edf.enter(0, 2, at(90_000), 0);
        edf.remove(0);
        edf.remove(2);
        assert_eq!((edf.start_by(0), edf.is_empty(), edf.newcomers[0].noted.len()), (None, true, 0));
        edf.enter(0, 3, at(70_000), 100);
        assert_eq!((edf.start_by(0), edf.is_empty()), (Some(at(69_900)), false));
    }

    #[test]
    fn more_than_are_noted_get_their_places() {
        let mut edf = Edf::default();
        edf.reserve(2 * NOTED_MAX);
        let jobs = 2 * NOTED_MAX as u32;
        (0..jobs).for_each(|job| edf.enter(1, job, at(u64::from(jobs - job) * 10), 1));
        edf.put_in_order(1);
        let row = std::iter::from_fn(|| edf.first(1).map(|(_, job)| (edf.remove(job), job).1));
        assert!(row.eq((0..jobs).rev()));
        assert!(edf.is_empty());
    }
}
