//! The batches of an edge.

use super::EdgeTerms;
use crate::random::Random;

/// A batch, when it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    /// When its first event was made.
    pub first_ns: u64,
    /// When it is closed.
    pub closed_ns: u64,
    /// Its events.
    pub events: u32,
}

/// The events of an edge in the order of their times, put into batches.
#[derive(Clone, Debug)]
pub(super) struct Batches {
    /// When in the period each topic has its event, in ascending order.
    phases_ns: Vec<u64>,
    next: usize,
    /// When the period of `next` began.
    period_begin_ns: u64,
}

impl Batches {
    /// Those of an edge whose topics have the phases that are drawn.
    pub fn of(edge: &EdgeTerms, random: &mut Random) -> Self {
        let mut phases_ns: Vec<u64> = (0..edge.topics).map(|_| random.below(edge.period_ns)).collect();
        phases_ns.sort_unstable();
        Self { phases_ns, next: 0, period_begin_ns: 0 }
    }

    /// The next one.
    pub fn next(&mut self, edge: &EdgeTerms) -> Batch {
        let first_ns = self.peek();
        let end_ns = first_ns + edge.batch_delay_ns;
        let events_max = (edge.batch_bytes_max / edge.event_bytes).max(1);
        let mut events = 0;
        loop {
            let at_ns = self.peek();
            if at_ns > end_ns {
                return Batch { first_ns, closed_ns: end_ns, events };
            }
            self.advance(edge);
            events += 1;
            if events == events_max {
                return Batch { first_ns, closed_ns: at_ns, events };
            }
        }
    }

    fn peek(&self) -> u64 {
        self.period_begin_ns + self.phases_ns[self.next]
    }

    fn advance(&mut self, edge: &EdgeTerms) {
        self.next += 1;
        if self.next == self.phases_ns.len() {
            self.next = 0;
            self.period_begin_ns += edge.period_ns;
        }
    }
}
