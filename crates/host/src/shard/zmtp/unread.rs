//! Links that have more to be read than a turn takes: in turn the most urgent one, and the one that waits for longest.
//!
//! Behind a fail-over everybody sends at once what it keeps. Whoever publishes to topics with short deadlines does not wait until all others are read; and whoever sends without
//! end, however urgent that is, leaves every second read to the others.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

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

/// What a link waits with: later ones are greater.
type Ticket = u64;

/// A link that does not wait.
const NO_TICKET: Ticket = 0;

/// The links that wait, by their slots.
#[derive(Debug, Default)]
pub struct Unread {
    by_urgency: BinaryHeap<Reverse<(Urgency, Ticket, usize)>>,
    by_age: VecDeque<(Ticket, usize)>,
    /// Of each slot. A link that was taken out of one row is left in the other one, where its ticket counts no more.
    tickets: Vec<Ticket>,
    last_ticket: Ticket,
    waiting: usize,
    /// Whether the one that waits for longest is the next one.
    is_turn_of_age: bool,
}

impl Unread {
    /// Has room for the link in a slot: nothing is allocated while events are served.
    pub fn reserve(&mut self, slot: usize) {
        self.tickets.resize(self.tickets.len().max(slot + 1), NO_TICKET);
        self.by_urgency.reserve(self.room() - self.by_urgency.len());
        self.by_age.reserve(self.room() - self.by_age.len());
    }

    /// Places in each row: for every link, and for as many that were taken out of the other one.
    fn room(&self) -> usize {
        2 * self.tickets.len()
    }

    /// Has a link wait that does not. The one that had its slot before may have left while it waited.
    pub fn push(&mut self, urgency: Urgency, slot: usize) {
        if self.by_urgency.len().max(self.by_age.len()) == self.room() {
            let tickets = &self.tickets;
            self.by_urgency.retain(|Reverse((_, ticket, slot))| tickets[*slot] == *ticket);
            self.by_age.retain(|(ticket, slot)| tickets[*slot] == *ticket);
        }
        self.last_ticket += 1;
        let former = std::mem::replace(&mut self.tickets[slot], self.last_ticket);
        self.by_urgency.push(Reverse((urgency, self.last_ticket, slot)));
        self.by_age.push_back((self.last_ticket, slot));
        self.waiting += usize::from(former == NO_TICKET);
    }

    /// The next one.
    pub fn pop(&mut self) -> Option<usize> {
        let slot = loop {
            let (ticket, slot) = match self.is_turn_of_age {
                true => self.by_age.pop_front()?,
                false => self.by_urgency.pop().map(|Reverse((_, ticket, slot))| (ticket, slot))?,
            };
            if self.tickets[slot] == ticket {
                break slot;
            }
        };
        self.tickets[slot] = NO_TICKET;
        self.waiting -= 1;
        self.is_turn_of_age = !self.is_turn_of_age;
        Some(slot)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread(links: usize) -> Unread {
        let mut unread = Unread::default();
        (0..links).for_each(|slot| unread.reserve(slot));
        unread
    }

    fn ms(millis: u64) -> Urgency {
        Urgency::within(Some(millis * 1_000_000))
    }

    #[test]
    fn the_most_urgent_and_the_oldest_are_read_in_turn() {
        let mut unread = unread(8);
        let rows = [
            (Urgency::within(None), 1),
            (Urgency::UNKNOWN, 2),
            (ms(50), 3),
            (Urgency::UNKNOWN, 4),
            (Urgency::SUBSCRIBER, 5),
            (ms(50), 6),
            (ms(1_000), 7),
        ];
        rows.iter().for_each(|(urgency, slot)| unread.push(*urgency, *slot));
        assert_eq!(unread.len(), rows.len());
        assert_eq!(std::iter::from_fn(|| unread.pop()).collect::<Vec<_>>(), [5, 1, 3, 2, 6, 4, 7]);
        assert!(unread.is_empty());
    }

    #[test]
    fn who_sends_without_end_leaves_every_second_read_to_the_others() {
        let mut unread = unread(100);
        (0..100).for_each(|slot| unread.push(if slot == 0 { ms(1) } else { ms(1_000) }, slot));
        let mut read = Vec::new();
        for _ in 0..400 {
            let slot = unread.pop().expect("all wait all the time");
            read.push(slot);
            unread.push(if slot == 0 { ms(1) } else { ms(1_000) }, slot);
        }
        for slot in 1..100 {
            let times = read.iter().filter(|other| **other == slot).count();
            assert!((1..=3).contains(&times), "link {slot} was read {times} times");
        }
        assert_eq!(unread.len(), 100);
        assert!(unread.by_urgency.len() <= unread.room() && unread.by_age.len() <= unread.room());
    }

    #[test]
    fn a_link_that_has_left_leaves_its_place_to_the_next_one_in_its_slot() {
        let mut unread = unread(2);
        unread.push(ms(1), 0);
        unread.push(ms(9), 0);
        unread.push(ms(5), 1);
        assert_eq!(unread.len(), 2);
        assert_eq!([unread.pop(), unread.pop(), unread.pop()], [Some(1), Some(0), None]);
    }

    #[test]
    fn nothing_is_allocated_behind_the_reservation() {
        let mut unread = unread(10);
        let before = (unread.by_urgency.capacity(), unread.by_age.capacity());
        (0..10).for_each(|slot| unread.push(ms(slot as u64), slot));
        for round in 0..1_000 {
            let slot = unread.pop().expect("they wait");
            unread.push(ms(round % 7), slot);
        }
        assert_eq!((unread.by_urgency.capacity(), unread.by_age.capacity()), before);
    }
}
