//! The records of a lane that are at hand, in the form that they have in a batch.

use std::collections::VecDeque;

use bodkin_nats::lane::Record;

use crate::fleet::source::Source;

/// A record that has a position in the lane.
#[derive(Debug)]
pub(super) struct Kept {
    /// Its bytes in the window.
    length: usize,
    /// Its record in the log; of a loss that of the event in front of it.
    pub source: Option<Source>,
}

/// Records one behind the other, in the form that they have in a batch.
#[derive(Debug, Default)]
pub(super) struct Window {
    records: VecDeque<Kept>,
    bytes: Vec<u8>,
    /// Where in `bytes` the first of them begins.
    begin: usize,
}

impl Window {
    /// Records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// The first one.
    pub fn first(&self) -> Option<&Kept> {
        self.records.front()
    }

    /// The one behind so many.
    pub fn get(&self, skipped: u64) -> Option<&Kept> {
        self.records.get(usize::try_from(skipped).ok()?)
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.bytes.len() - self.begin
    }

    /// Puts one behind the others.
    pub fn push(&mut self, record: Record<'_>, source: Option<Source>) {
        let before = self.bytes.len();
        record.write(&mut self.bytes);
        self.records.push_back(Kept { length: self.bytes.len() - before, source });
    }

    /// Takes the first one away.
    pub fn pop(&mut self) -> Option<Kept> {
        let kept = self.records.pop_front()?;
        self.begin += kept.length;
        // Each byte is moved once at the most, on average.
        if self.begin > self.bytes.len() / 2 {
            self.bytes.drain(..self.begin);
            self.begin = 0;
        }
        Some(kept)
    }

    /// Records behind so many, with their bytes.
    pub fn behind(&self, skipped: usize) -> impl Iterator<Item = (&Kept, &[u8])> {
        let mut end = self.begin + self.records.iter().take(skipped).map(|kept| kept.length).sum::<usize>();
        self.records.iter().skip(skipped).map(move |kept| {
            let begin = end;
            end += kept.length;
            (kept, &self.bytes[begin..end])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_out_as_they_went_in_while_the_first_ones_are_taken_away() {
        let mut window = Window::default();
        let name = |number: u64| format!("topic-{number}").repeat(number as usize % 7 + 1);
        let bytes = |number: u64| {
            let mut bytes = Vec::new();
            Record::Lost { topic: &name(number), count: number + 1 }.write(&mut bytes);
            bytes
        };
        let (mut first, mut next) = (0, 0);
        for _ in 0..200 {
            for _ in 0..5 {
                window.push(Record::Lost { topic: &name(next), count: next + 1 }, None);
                next += 1;
            }
            for _ in 0..4 {
                window.pop().expect("there are some");
                first += 1;
            }
            let there: Vec<u8> = window.behind(0).flat_map(|(_, bytes)| bytes.to_vec()).collect();
            assert_eq!(there, (first..next).flat_map(bytes).collect::<Vec<_>>());
            assert_eq!((window.len() as u64, window.bytes()), (next - first, there.len()));
            assert!(window.bytes.len() <= 2 * there.len(), "what is gone takes no room");
        }
        assert_eq!(window.behind(3).next().map(|(_, bytes)| bytes.to_vec()), Some(bytes(first + 3)));
        while window.pop().is_some() {}
        assert_eq!((window.len(), window.bytes(), window.bytes.len()), (0, 0, 0));
    }
}
