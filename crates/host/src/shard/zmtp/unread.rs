//! Links that have more to be read than a turn takes: the most urgent first, those alike in the order in which they wait.
//!
//! Behind a fail-over everybody sends at once what it keeps. Whoever publishes to topics with short deadlines does not wait until all others are read.

use std::{cmp::Reverse, collections::BinaryHeap};

/// How urgent a link is: the shortest time within which anything that is published on it is dispatched, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency(u64);

impl Urgency {
    /// A subscriber's: what it acknowledges is not replicated.
    pub const SUBSCRIBER: Self = Self(0);
    /// Of a link on which nothing was published yet: behind those that are known to be urgent.
    pub const UNKNOWN: Self = Self(100_000_000);
    /// Nothing that is published on it has a deadline.
    const NONE: Self = Self(u64::MAX);

    /// Of a topic whose events are dispatched within this time of their creation, if they have a deadline.
    pub fn within(nanos: Option<u64>) -> Self {
        nanos.map_or(Self::NONE, Self)
    }
}

/// The links that wait, by their slots.
#[derive(Debug, Default)]
pub struct Unread {
    slots: BinaryHeap<Reverse<(Urgency, u64, usize)>>,
    /// Counts those that came.
    order: u64,
}

impl Unread {
    /// Has room for so many links, each of which waits once: nothing is allocated while events are served.
    pub fn reserve(&mut self, links: usize) {
        self.slots.reserve(links.saturating_sub(self.slots.len()));
    }

    /// Has a link wait behind those that are as urgent.
    pub fn push(&mut self, urgency: Urgency, slot: usize) {
        self.order += 1;
        self.slots.push(Reverse((urgency, self.order, slot)));
    }

    /// The next one.
    pub fn pop(&mut self) -> Option<usize> {
        self.slots.pop().map(|Reverse((.., slot))| slot)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_urgent_is_read_first_and_of_those_alike_who_came_first() {
        let mut unread = Unread::default();
        let rows = [
            (Urgency::within(None), 1),
            (Urgency::UNKNOWN, 2),
            (Urgency::within(Some(50_000_000)), 3),
            (Urgency::UNKNOWN, 4),
            (Urgency::SUBSCRIBER, 5),
            (Urgency::within(Some(50_000_000)), 6),
            (Urgency::within(Some(1_000_000_000)), 7),
        ];
        rows.iter().for_each(|(urgency, slot)| unread.push(*urgency, *slot));
        assert_eq!(unread.len(), rows.len());
        assert_eq!(std::iter::from_fn(|| unread.pop()).collect::<Vec<_>>(), [5, 3, 6, 2, 4, 7, 1]);
        assert!(unread.is_empty());
    }
}
