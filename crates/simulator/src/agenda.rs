//! What happens next: events in the order of their times, and of their making where the times are equal.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::clock::Time;

/// Events that are still to come. The heap sorts small keys; the events stay where they are.
#[derive(Debug)]
pub struct Agenda<E> {
    order: u64,
    heap: BinaryHeap<Reverse<(Time, u64, u32)>>,
    events: Vec<Option<E>>,
    free: Vec<u32>,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self { order: 0, heap: BinaryHeap::new(), events: Vec::new(), free: Vec::new() }
    }
}

impl<E> Agenda<E> {
    /// Enters an event.
    pub fn push(&mut self, at: Time, event: E) {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.events.push(None);
                u32::try_from(self.events.len() - 1).expect("fewer than 2^32 events are under way")
            }
        };
        self.events[index as usize] = Some(event);
        self.heap.push(Reverse((at, self.order, index)));
        self.order += 1;
    }

    /// Takes the next event and its time.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let Reverse((at, _, index)) = self.heap.pop()?;
        self.free.push(index);
        let event = self.events[index as usize].take().expect("the heap's events are there");
        Some((at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_by_their_making() {
        let mut agenda = Agenda::default();
        for (at, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (4, 'd')] {
            agenda.push(Time(at), event);
        }
        assert_eq!(agenda.pop(), Some((Time(3), 'b')));
        agenda.push(Time(4), 'e');
        let rest: String = std::iter::from_fn(|| agenda.pop().map(|(_, event)| event)).collect();
        assert_eq!(rest, "deac");
    }
}
