//! Earliest deadline first: the jobs of each level in order of their deadlines, and the instant at which a row of them has to begin.
//!
//! Each level is a treap, a search tree by deadline that is a heap by a scattered number and so balanced whatever comes in whatever
//! order. Every node knows two sums of its subtree, so that the latest start of the whole row, which FRAME's lazy replication asks for
//! with every message, is read at the root. A job is named by the caller's own number for it; nothing is allocated behind
//! [`Edf::reserve`]. Whose next job alone is asked for needs no sums ([`Queue`]). Jobs that will probably be taken out before their turn comes need no place in the order until then ([`newcomers`]).

mod newcomers;
mod queue;

use self::newcomers::Newcomers;
pub(crate) use self::queue::Queue;
use crate::{time::Instant, topic::Level};

/// Levels that are served strictly one after the other: those of the real-time topics, and behind them the [`BACKGROUND`].
pub(crate) const LEVELS: usize = Level::COUNT as usize + 1;

/// What nothing was promised for: excess, what returning subscribers have missed, what a new Backup has to be given.
pub(crate) const BACKGROUND: u8 = LEVELS as u8 - 1;

/// No job.
const NONE: u32 = u32::MAX;
/// The level of a job that is not queued.
const NOWHERE: u8 = u8::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Job {
    deadline: Instant,
    /// When it came, counted: of two with the same deadline the earlier one goes first.
    order: u64,
    cost_ns: u32,
    /// Costs of the subtree.
    total_ns: u64,
    /// Latest start of the subtree's jobs, one after the other in order of their deadlines.
    start_by: Instant,
    earlier: u32,
    later: u32,
    level: u8,
    /// It has no place in the order yet.
    is_new: bool,
}

impl Job {
    const ABSENT: Self = Self {
        deadline: Instant::NEVER,
        order: 0,
        cost_ns: 0,
        total_ns: 0,
        start_by: Instant::NEVER,
        earlier: NONE,
        later: NONE,
        level: NOWHERE,
        is_new: false,
    };

    fn key(&self) -> (Instant, u64) {
        (self.deadline, self.order)
    }

    /// Heap order: a multiplication by an odd number scatters the orders and never makes two of them equal.
    fn height(&self) -> u64 {
        self.order.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// Jobs in order of their deadlines, apart for each level.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Edf {
    /// By the caller's number.
    jobs: Vec<Job>,
    /// Jobs that there is room for.
    room: usize,
    roots: [u32; LEVELS],
    newcomers: [Newcomers; LEVELS],
    orders: u64,
}

impl Default for Edf {
    fn default() -> Self {
        Self { jobs: Vec::new(), room: 0, roots: [NONE; LEVELS], newcomers: Default::default(), orders: 0 }
    }
}

impl Edf {
    /// Makes room for jobs with numbers below `jobs`. Memory that was never needed is never touched.
    pub fn reserve(&mut self, jobs: usize) {
        self.room = self.room.max(jobs);
        self.jobs.reserve(self.room - self.jobs.len());
        self.newcomers.iter_mut().for_each(|newcomers| newcomers.reserve());
    }

    /// Queues a job, or moves it to this level and deadline. `cost_ns` is the time it takes once it has begun.
    pub fn insert(&mut self, level: u8, job: u32, deadline: Instant, cost_ns: u32) {
        self.replace(level, job, deadline, cost_ns);
        self.give_place(job);
    }

    /// Takes a job out; false if it was not queued.
    pub fn remove(&mut self, job: u32) -> bool {
        let Some((level, _)) = self.place(job) else { return false };
        if self.jobs[job as usize].is_new {
            self.newcomers[usize::from(level)].leave(self.jobs[job as usize].cost_ns);
        } else {
            self.roots[usize::from(level)] = self.remove_below(self.roots[usize::from(level)], job);
        }
        self.jobs[job as usize].level = NOWHERE;
        true
    }

    /// Makes a job what it is to be, without a place in the order.
    fn replace(&mut self, level: u8, job: u32, deadline: Instant, cost_ns: u32) {
        self.remove(job);
        if job as usize >= self.jobs.len() {
            assert!((job as usize) < self.room, "there is room for every job");
            self.jobs.resize(job as usize + 1, Job::ABSENT);
        }
        self.orders += 1;
        self.jobs[job as usize] = Job { deadline, order: self.orders, cost_ns, level, ..Job::ABSENT };
    }

    fn give_place(&mut self, job: u32) {
        let level = usize::from(self.jobs[job as usize].level);
        self.sum_up(job);
        self.roots[level] = self.insert_below(self.roots[level], job);
    }

    /// The job of a level whose deadline is the earliest, of those that have a place in the order.
    pub fn first(&self, level: u8) -> Option<(Instant, u32)> {
        let mut job = self.roots[usize::from(level)];
        loop {
            let earlier = self.jobs.get(job as usize)?.earlier;
            if earlier == NONE {
                return Some((self.jobs[job as usize].deadline, job));
            }
            job = earlier;
        }
    }

    /// Level and deadline of a job that is queued.
    pub fn place(&self, job: u32) -> Option<(u8, Instant)> {
        self.jobs.get(job as usize).filter(|job| job.level != NOWHERE).map(|job| (job.level, job.deadline))
    }

    /// What a job costs.
    pub fn cost_ns(&self, job: u32) -> u64 {
        self.jobs[job as usize].cost_ns.into()
    }

    /// The latest instant at which a level's jobs, done one after the other in order of their deadlines, are all done in time:
    /// the least of `deadline - costs up to and with the job` (Wang ch. 4, corrected for more than one item). Of jobs without a place in the order a bound
    /// is known, which is no later: as if every one of them went behind all others, and had the earliest deadline.
    pub fn start_by(&self, level: u8) -> Option<Instant> {
        let root = self.jobs.get(self.roots[usize::from(level)] as usize);
        let Some((earliest, costs_ns)) = self.newcomers[usize::from(level)].bound() else { return root.map(|root| root.start_by) };
        let ahead_ns = root.map_or(0, |root| root.total_ns);
        let ordered = root.map_or(Instant::NEVER, |root| root.start_by);
        Some(ordered.minus_nanos(costs_ns).min(earliest.minus_nanos(ahead_ns.saturating_add(costs_ns))))
    }

    /// Whether no level has a job.
    pub fn is_empty(&self) -> bool {
        self.roots == [NONE; LEVELS] && self.newcomers.iter().all(|newcomers| newcomers.bound().is_none())
    }

    fn insert_below(&mut self, root: u32, job: u32) -> u32 {
        let Some(&at) = self.jobs.get(root as usize) else { return job };
        let new = self.jobs[job as usize];
        if new.height() > at.height() {
            let (earlier, later) = self.split(root, new.key());
            (self.jobs[job as usize].earlier, self.jobs[job as usize].later) = (earlier, later);
            self.sum_up(job);
            return job;
        }
        if new.key() < at.key() {
            self.jobs[root as usize].earlier = self.insert_below(at.earlier, job);
        } else {
            self.jobs[root as usize].later = self.insert_below(at.later, job);
        }
        self.sum_up(root);
        root
    }

    fn remove_below(&mut self, root: u32, job: u32) -> u32 {
        let at = self.jobs[root as usize];
        if root == job {
            return self.join(at.earlier, at.later);
        }
        if self.jobs[job as usize].key() < at.key() {
            self.jobs[root as usize].earlier = self.remove_below(at.earlier, job);
        } else {
            self.jobs[root as usize].later = self.remove_below(at.later, job);
        }
        self.sum_up(root);
        root
    }

    /// Parts a tree into what comes before `key` and what comes behind it.
    fn split(&mut self, root: u32, key: (Instant, u64)) -> (u32, u32) {
        let Some(&at) = self.jobs.get(root as usize) else { return (NONE, NONE) };
        let parts = if at.key() < key {
            let (before, behind) = self.split(at.later, key);
            self.jobs[root as usize].later = before;
            (root, behind)
        } else {
            let (before, behind) = self.split(at.earlier, key);
            self.jobs[root as usize].earlier = behind;
            (before, root)
        };
        self.sum_up(root);
        parts
    }

    /// Joins two trees, all of the first in front of all of the second.
    fn join(&mut self, first: u32, second: u32) -> u32 {
        let (Some(&front), Some(&back)) = (self.jobs.get(first as usize), self.jobs.get(second as usize)) else {
            return if first == NONE { second } else { first };
        };
        let root = if front.height() > back.height() {
            self.jobs[first as usize].later = self.join(front.later, second);
            first
        } else {
            self.jobs[second as usize].earlier = self.join(first, back.earlier);
            second
        };
        self.sum_up(root);
        root
    }

    fn sum_up(&mut self, job: u32) {
        let Job { deadline, cost_ns, earlier, later, .. } = self.jobs[job as usize];
        let sums = |child: u32| self.jobs.get(child as usize).map_or((0, Instant::NEVER), |child| (child.total_ns, child.start_by));
        let ((before_ns, before), (behind_ns, behind)) = (sums(earlier), sums(later));
        let until_done_ns = before_ns.saturating_add(u64::from(cost_ns));
        let start_by = before.min(deadline.minus_nanos(until_done_ns)).min(behind.minus_nanos(until_done_ns));
        let job = &mut self.jobs[job as usize];
        (job.total_ns, job.start_by) = (until_done_ns.saturating_add(behind_ns), start_by);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// Queued jobs as a sorted list: (level, deadline, order, job, cost).
    #[derive(Default)]
    struct Oracle(Vec<(u8, u64, u64, u32, u32)>);

    impl Oracle {
        fn row(&self, level: u8) -> impl Iterator<Item = &(u8, u64, u64, u32, u32)> {
            self.0.iter().filter(move |job| job.0 == level)
        }

        fn start_by(&self, level: u8) -> Option<u64> {
            let mut costs = 0;
            let starts = self.row(level).map(|job| {
                costs += u64::from(job.4);
                job.1.saturating_sub(costs)
            });
            starts.min()
        }
    }

    #[test]
    fn a_row_of_replicas_begins_where_the_theory_says() {
        let mut edf = Edf::default();
        edf.reserve(5);
        // Deadlines 10.0, 10.1, 10.2, 10.25 and 30 ms, 0.1 ms each: the fourth one decides, not the first.
        for (job, deadline) in [10_000, 10_100, 10_200, 10_250, 30_000].into_iter().enumerate() {
            edf.insert(0, job as u32, at(deadline), 100);
        }
        assert_eq!(edf.start_by(0), Some(at(9_850)));
        edf.remove(3);
        assert_eq!(edf.start_by(0), Some(at(9_900)));
        assert_eq!(edf.start_by(1), None);
    }

    #[test]
    fn of_equal_deadlines_the_earlier_job_goes_first() {
        let mut edf = Edf::default();
        edf.reserve(100);
        (0..100).for_each(|job| edf.insert(3, job, Instant::NEVER, 1));
        let row: Vec<_> = std::iter::from_fn(|| edf.first(3).map(|(_, job)| (edf.remove(job), job).1)).collect();
        assert_eq!(row, (0..100).collect::<Vec<_>>());
        assert!(edf.is_empty());
    }

    proptest! {
        /// Whatever is queued, moved and taken out: the first job and the latest start are those of a sorted list.
        #[test]
        fn it_is_a_sorted_list(script in prop::collection::vec((0u32..40, 0u8..4, 0u64..60, 0u32..9, 0u8..4), 1..300)) {
            let mut edf = Edf::default();
            edf.reserve(40);
            let mut oracle = Oracle::default();
            for (order, (job, level, deadline, cost, how)) in (0u64..).zip(script) {
                let before = oracle.0.len();
                oracle.0.retain(|queued| queued.3 != job);
                if level < 3 {
                    match how {
                        0 => edf.insert(level, job, at(deadline), cost),
                        _ => edf.enter(level, job, at(deadline), cost),
                    }
                    oracle.0.push((level, deadline, order, job, cost));
                    oracle.0.sort_unstable();
                    prop_assert_eq!(edf.place(job), Some((level, at(deadline))));
                } else {
                    prop_assert_eq!(edf.remove(job), oracle.0.len() < before);
                    prop_assert_eq!(edf.place(job), None);
                }
                for level in 0..3 {
                    let bound = edf.start_by(level);
                    prop_assert_eq!(bound.is_some(), oracle.start_by(level).is_some());
                    prop_assert!(bound <= oracle.start_by(level).map(at));
                    if how == 1 {
                        continue;
                    }
                    edf.put_in_order(level);
                    prop_assert_eq!(edf.first(level), oracle.row(level).next().map(|job| (at(job.1), job.3)));
                    prop_assert_eq!(edf.start_by(level), oracle.start_by(level).map(at));
                }
                prop_assert_eq!(edf.is_empty(), oracle.0.is_empty());
            }
        }

        /// Jobs that come in order, the worst case of a plain tree, do not make a deep one.
        #[test]
        fn it_stays_flat(ascending: bool) {
            let mut edf = Edf::default();
            edf.reserve(4096);
            for job in 0..4096u32 {
                edf.insert(0, job, at(u64::from(if ascending { job } else { 4096 - job })), 1);
            }
            let mut deepest = 0;
            let mut open = vec![(edf.roots[0], 1)];
            while let Some((job, depth)) = open.pop() {
                let Some(job) = edf.jobs.get(job as usize) else { continue };
                deepest = deepest.max(depth);
                open.extend([(job.earlier, depth + 1), (job.later, depth + 1)]);
            }
            prop_assert!(deepest <= 48, "{deepest}");
        }
    }
}
