//! A FIFO queue that holds each item at most once.

use std::collections::{BTreeSet, VecDeque};

/// Holds items in the order in which they were first pushed; pushing an item that is queued changes nothing.
#[derive(Debug)]
pub(super) struct UniqueQueue<T> {
    order: VecDeque<T>,
    queued: BTreeSet<T>,
}

impl<T> Default for UniqueQueue<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), queued: BTreeSet::new() }
    }
}

impl<T: Copy + Ord> UniqueQueue<T> {
    pub(super) fn push(&mut self, item: T) {
        if self.queued.insert(item) {
            self.order.push_back(item);
        }
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let item = self.order.pop_front()?;
        self.queued.remove(&item);
        Some(item)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queued_item_pushed_again_keeps_its_position() {
        let mut queue = UniqueQueue::default();
        [3, 1, 3, 2].into_iter().for_each(|item| queue.push(item));
        assert_eq!([queue.pop(), queue.pop()], [Some(3), Some(1)]);
        queue.push(3);
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(2), Some(3), None]);
        assert!(queue.is_empty());
    }
}
