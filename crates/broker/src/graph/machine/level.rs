//! The queues of a level.

use std::collections::VecDeque;

use super::{super::spec::OperatorId, pace::Pace, store::EventSlot};

/// An event on its way to an operator of a less urgent level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub reader: OperatorId,
    pub input: usize,
    pub slot: EventSlot,
}

/// What waits at a level, each queue first in first out.
#[derive(Clone, Debug)]
pub(super) struct LevelQueues {
    /// Operators that have what a round needs, each once.
    pub ready: VecDeque<OperatorId>,
    /// Suppliers' events.
    arrivals: VecDeque<EventSlot>,
    /// What is to be shared with levels below.
    shares: VecDeque<Move>,
    /// Rounds of the level that run.
    pub running: usize,
    /// Whether it keeps up.
    pub pace: Pace,
}

impl LevelQueues {
    /// With room for so many operators and slots.
    pub fn new(operators: usize, slots: usize) -> Self {
        let (ready, arrivals, shares) =
            (VecDeque::with_capacity(operators), VecDeque::with_capacity(slots), VecDeque::with_capacity(slots));
        Self { ready, arrivals, shares, running: 0, pace: Pace::default() }
    }

    /// Whether operators or suppliers' events wait.
    pub fn has_work(&self) -> bool {
        !self.ready.is_empty() || !self.arrivals.is_empty()
    }

    /// Whether suppliers' events wait to be taken in.
    pub fn has_arrivals(&self) -> bool {
        !self.arrivals.is_empty()
    }

    /// Whether rounds run or are to begin.
    pub fn is_at_work(&self) -> bool {
        self.running > 0 || !self.ready.is_empty()
    }

    /// Whether anything waits.
    pub fn waits(&self) -> bool {
        self.has_work() || !self.shares.is_empty()
    }

    /// Puts a supplier's event to the end; where `most` of the same supplier wait, it moves into their places, and the oldest of them is given back.
    pub fn arrive(&mut self, slot: EventSlot, most: usize, is_same: impl Fn(EventSlot) -> bool) -> Option<EventSlot> {
        push(&mut self.arrivals, slot, most, |slot| is_same(*slot))
    }

    /// Suppliers' events, in their order.
    pub fn arrivals(&self) -> impl ExactSizeIterator<Item = EventSlot> {
        self.arrivals.iter().copied()
    }

    /// What is to be shared, in its order.
    pub fn shares(&self) -> impl ExactSizeIterator<Item = Move> {
        self.shares.iter().copied()
    }

    pub fn take_arrival(&mut self) -> Option<EventSlot> {
        self.arrivals.pop_front()
    }

    /// Puts an event to the end of what is shared; where `most` wait for the same input, it moves into their places, and the oldest of them is given back.
    pub fn share(&mut self, share: Move, most: usize) -> Option<EventSlot> {
        push(&mut self.shares, share, most, |other| (other.reader, other.input) == (share.reader, share.input)).map(|share| share.slot)
    }

    pub fn take_share(&mut self) -> Option<Move> {
        self.shares.pop_front()
    }
}

/// Puts an item to the end of a queue in which at most `most` of its kind wait. If they do, each takes the place in front of it, and the first one is given back: none of the kind loses
/// its turn.
fn push<T: Copy>(queue: &mut VecDeque<T>, item: T, most: usize, is_same: impl Fn(&T) -> bool) -> Option<T> {
    if queue.iter().filter(|other| is_same(other)).count() < most {
        queue.push_back(item);
        return None;
    }
    let moved = queue.iter_mut().rev().filter(|other| is_same(other));
    Some(moved.fold(item, |item, place| std::mem::replace(place, item)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_replaces_keeps_the_turn() {
        let mut queue: VecDeque<(char, u8)> = VecDeque::new();
        let mut put = |item: (char, u8), most| push(&mut queue, item, most, |other| other.0 == item.0);
        assert_eq!([put(('a', 1), 2), put(('b', 1), 1), put(('a', 2), 2)], [None; 3]);
        assert_eq!((put(('a', 3), 2), put(('b', 2), 1)), (Some(('a', 1)), Some(('b', 1))));
        assert_eq!(queue, [('a', 2), ('b', 2), ('a', 3)]);
    }
}
