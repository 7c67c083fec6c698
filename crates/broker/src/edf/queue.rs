//! Jobs of which only the next one is ever asked for: those of the highest level first, of a level in order of their deadlines.
//!
//! Replicas need to know when the row of all of them has to begin, which a tree with sums says ([`super::Edf`]). Whoever is dispatched or waited for does not: a heap is enough,
//! and a job that is not queued takes four bytes. There may be a hundred thousand of them, of which few are queued.

use crate::time::Instant;

/// Entries below an entry. They lie side by side in memory, and the heap is half as high as one with two.
const CHILDREN: usize = 4;

/// The place of a job that is not queued.
const NOWHERE: u32 = u32::MAX;

/// In the order in which they are taken: of two with the same deadline the one that came earlier goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Entry {
    level: u8,
    deadline: Instant,
    /// When it came, counted.
    order: u64,
    job: u32,
}

/// Jobs, each with the caller's own number. Nothing is allocated behind [`Queue::reserve`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Queue {
    /// No entry is in front of the one that it is below.
    heap: Vec<Entry>,
    /// Where the heap has each job.
    places: Vec<u32>,
    /// Jobs that there is room for.
    room: usize,
    orders: u64,
}

impl Queue {
    /// Makes room for jobs with numbers below `jobs`. Memory that was never needed is never touched.
    pub fn reserve(&mut self, jobs: usize) {
        self.room = self.room.max(jobs);
        self.heap.reserve(self.room - self.heap.len());
        self.places.reserve(self.room - self.places.len());
    }

    /// Queues a job, or moves it to this level and deadline, behind all that came before with the same ones.
    pub fn insert(&mut self, level: u8, job: u32, deadline: Instant) {
        if job as usize >= self.places.len() {
            assert!((job as usize) < self.room, "there is room for every job");
            self.places.resize(job as usize + 1, NOWHERE);
        }
        self.orders += 1;
        let entry = Entry { level, deadline, order: self.orders, job };
        let at = match self.places[job as usize] {
            NOWHERE => {
                self.heap.push(entry);
                self.heap.len() - 1
            }
            at => {
                self.heap[at as usize] = entry;
                at as usize
            }
        };
        self.put_right(at);
    }

    /// Takes a job out; false if it was not queued.
    pub fn remove(&mut self, job: u32) -> bool {
        let Some(at) = self.at(job) else { return false };
        self.places[job as usize] = NOWHERE;
        let last = self.heap.pop().expect("the job is there");
        if at < self.heap.len() {
            self.heap[at] = last;
            self.put_right(at);
        }
        true
    }

    /// The next job, with its level and deadline.
    pub fn first(&self) -> Option<(u8, Instant, u32)> {
        self.heap.first().map(|first| (first.level, first.deadline, first.job))
    }

    /// Level and deadline of a job that is queued.
    pub fn place(&self, job: u32) -> Option<(u8, Instant)> {
        self.at(job).map(|at| (self.heap[at].level, self.heap[at].deadline))
    }

    /// Whether there is no job.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn at(&self, job: u32) -> Option<usize> {
        self.places.get(job as usize).filter(|at| **at != NOWHERE).map(|at| *at as usize)
    }

    /// Moves an entry that may be too early or too late to where it belongs.
    fn put_right(&mut self, at: usize) {
        let at = self.rise(at);
        self.sink(at);
    }

    fn rise(&mut self, mut at: usize) -> usize {
        let entry = self.heap[at];
        while at > 0 {
            let above = (at - 1) / CHILDREN;
            if self.heap[above] < entry {
                break;
            }
            self.put(at, self.heap[above]);
            at = above;
        }
        self.put(at, entry);
        at
    }

    fn sink(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let below = at * CHILDREN + 1..self.heap.len().min((at + 1) * CHILDREN + 1);
            let Some(child) = below.min_by_key(|child| self.heap[*child]) else { break };
            if entry < self.heap[child] {
                break;
            }
            self.put(at, self.heap[child]);
            at = child;
        }
        self.put(at, entry);
    }

    fn put(&mut self, at: usize, entry: Entry) {
        self.heap[at] = entry;
        self.places[entry.job as usize] = at as u32;
    }
}

/// Each armed timer of a hundred thousand required subscriptions is one.
const _: () = assert!(size_of::<Entry>() <= 24);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn of_equal_deadlines_the_earlier_job_goes_first() {
        let mut queue = Queue::default();
        queue.reserve(100);
        (0..100).for_each(|job| queue.insert(3, job, Instant::NEVER));
        queue.insert(3, 7, Instant::NEVER);
        let row: Vec<_> = std::iter::from_fn(|| queue.first().map(|(_, _, job)| (queue.remove(job), job).1)).collect();
        assert!(row.iter().copied().eq((0..100).filter(|job| *job != 7).chain([7])));
        assert!(queue.is_empty());
    }

    proptest! {
        /// Whatever is queued, moved and taken out: it is a sorted list.
        #[test]
        fn it_is_a_sorted_list(script in prop::collection::vec((0u32..40, 0u8..4, 0u64..60), 1..300)) {
            let mut queue = Queue::default();
            queue.reserve(40);
            let mut list: Vec<(u8, u64, u64, u32)> = Vec::new();
            for (order, (job, level, deadline)) in (0u64..).zip(script) {
                let before = list.len();
                list.retain(|queued| queued.3 != job);
                if level < 3 {
                    queue.insert(level, job, at(deadline));
                    list.push((level, deadline, order, job));
                    list.sort_unstable();
                    prop_assert_eq!(queue.place(job), Some((level, at(deadline))));
                } else {
                    prop_assert_eq!(queue.remove(job), list.len() < before);
                    prop_assert_eq!(queue.place(job), None);
                }
                prop_assert_eq!(queue.first(), list.first().map(|first| (first.0, at(first.1), first.3)));
                prop_assert_eq!(queue.is_empty(), list.is_empty());
            }
            let row = std::iter::from_fn(|| queue.first().map(|(_, _, job)| (queue.remove(job), job).1));
            prop_assert!(row.eq(list.iter().map(|queued| queued.3)));
        }
    }
}
