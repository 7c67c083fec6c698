//! Points read from events and written to results, and the newest of them.

use bodkin_broker::graph::{Element, Event};

/// Appends real numbers as `f64`.
pub fn write(out: &mut Vec<u8>, points: &[f64]) {
    points.iter().for_each(|point| out.extend_from_slice(&point.to_le_bytes()));
}

/// Reads the points of events into `points`, in place of what was there.
pub fn read(element: Element, events: &[Event<'_>], points: &mut Vec<f64>) {
    points.clear();
    events.iter().for_each(|event| element.read(event.payload, points));
}

/// The newest points, at most so many.
#[derive(Clone, Debug)]
pub struct Ring {
    points: Vec<f64>,
    /// Where the oldest is once all places are taken.
    oldest: usize,
    capacity: usize,
}

impl Ring {
    pub fn new(capacity: usize) -> Self {
        Self { points: Vec::with_capacity(capacity), oldest: 0, capacity }
    }

    /// Takes a point; gives the one that it replaces.
    pub fn push(&mut self, point: f64) -> Option<f64> {
        if self.points.len() < self.capacity {
            self.points.push(point);
            return None;
        }
        let replaced = std::mem::replace(&mut self.points[self.oldest], point);
        self.oldest = (self.oldest + 1) % self.capacity;
        Some(replaced)
    }

    /// Appends all points, the oldest first.
    pub fn save(&self, state: &mut Vec<u8>) {
        let (newer, older) = self.points.split_at(self.oldest);
        write(state, older);
        write(state, newer);
    }

    /// The points that were saved, the oldest first; none if there are more than have room, or a part of one.
    pub fn saved(capacity: usize, state: &[u8]) -> Option<impl Iterator<Item = f64>> {
        let (points, rest) = state.as_chunks();
        (rest.is_empty() && points.len() <= capacity).then(|| points.iter().map(|bytes| f64::from_le_bytes(*bytes)))
    }
}
