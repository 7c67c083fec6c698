//! Events that are published here while a graph is held up: another version of it is to take its place, or its part of an operator is on its way. They are taken in their order behind that, by it or by
//! the version behind it.

use std::collections::VecDeque;

use bodkin_arrowhead::trace::Cause;
use bodkin_broker::{EventId, TopicId};

/// Events that are held at the most; those that come then are not taken, and told.
const EVENTS_MAX: usize = 4_096;
/// Bytes of their payloads.
const BYTES_MAX: usize = 16 << 20;

/// An event of a topic that a graph takes.
#[derive(Clone, Debug)]
pub struct HeldEvent {
    /// Its name; its topic says which supplier it is of.
    pub event: EventId,
    /// When it was made, in nanoseconds of UTC.
    pub created_ns: u64,
    /// What was published.
    pub payload: String,
    /// What it is caused by.
    pub cause: Option<Cause>,
    /// Whether it is acknowledged when it is safe.
    pub is_kept: bool,
}

/// Those of one graph, the oldest first.
#[derive(Default)]
pub(super) struct Held {
    events: VecDeque<HeldEvent>,
    bytes: usize,
}

impl Held {
    /// Holds an event; false if there are as many as may be.
    pub fn push(&mut self, event: HeldEvent) -> bool {
        if self.events.len() >= EVENTS_MAX || self.bytes + event.payload.len() > BYTES_MAX {
            return false;
        }
        self.bytes += event.payload.len();
        self.events.push_back(event);
        true
    }

    /// The oldest one, if it may go on.
    pub fn pop(&mut self, may: impl FnOnce(TopicId) -> bool) -> Option<HeldEvent> {
        let event = self.events.pop_front_if(|event| may(event.event.topic))?;
        self.bytes -= event.payload.len();
        Some(event)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use bodkin_broker::{Incarnation, PublisherId, Sequence};

    use super::*;

    fn event(sequence: u64, bytes: usize) -> HeldEvent {
        let event = EventId { publisher: PublisherId(1), incarnation: Incarnation(1), topic: TopicId(0), sequence: Sequence(sequence) };
        HeldEvent { event, created_ns: 1, payload: "7".repeat(bytes), cause: None, is_kept: false }
    }

    #[test]
    fn events_go_on_in_their_order_when_they_may() {
        let mut held = Held::default();
        assert!((1..=2).all(|sequence| held.push(event(sequence, 1))));
        assert!(held.pop(|_| false).is_none());
        let order = [held.pop(|_| true), held.pop(|_| true), held.pop(|_| true)].map(|event| event.map(|event| event.event.sequence.0));
        assert_eq!((order, held.is_empty(), held.bytes), ([Some(1), Some(2), None], true, 0));
    }

    #[test]
    fn what_is_more_than_may_be_is_not_held() {
        let mut held = Held::default();
        assert!(held.push(event(1, BYTES_MAX - 1)) && !held.push(event(2, 2)) && held.push(event(3, 1)));
        let mut held = Held::default();
        assert!((1..=EVENTS_MAX as u64).all(|sequence| held.push(event(sequence, 0))) && !held.push(event(9_999, 0)));
    }
}
