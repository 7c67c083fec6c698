//! How far each stream of events has come.

use std::num::NonZeroU32;

use super::Lead;
use crate::event::{Incarnation, PublisherId, Sequence};

/// Streams that an operator or an output keeps apart at the most. Behind that the one that was silent for longest is forgotten.
pub const STREAMS_MAX: usize = 256;

/// A stream of events at an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream {
    /// The input, 0 of an output.
    pub input: u8,
    /// Who publishes.
    pub publisher: PublisherId,
    /// In which numbering.
    pub incarnation: Incarnation,
    /// On which way.
    pub branch: u8,
}

impl Stream {
    fn of(input: usize, lead: Lead) -> Self {
        Self { input: input as u8, publisher: lead.publisher, incarnation: lead.incarnation, branch: lead.branch }
    }
}

/// The newest event of each stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// The stream that moved last is the last one.
    streams: Vec<(Stream, Sequence)>,
    /// Every how many rounds the state is saved; never of an operator that has none, or can begin anew.
    every: Option<NonZeroU32>,
    since: u32,
}

impl Progress {
    pub fn replicate(&mut self, every: NonZeroU32) {
        self.every = Some(every);
    }

    pub fn is_kept(&self) -> bool {
        self.every.is_some()
    }

    /// One round more; whether its state is saved.
    pub fn count(&mut self) -> bool {
        let Some(every) = self.every else { return false };
        self.since += 1;
        let saves = self.since >= every.get();
        self.since = if saves { 0 } else { self.since };
        saves
    }

    /// Whether an event was had already.
    pub fn has(&self, input: usize, lead: Lead) -> bool {
        let stream = Stream::of(input, lead);
        self.streams.iter().any(|(other, newest)| *other == stream && lead.sequence <= *newest)
    }

    /// Goes on to an event; gives the one before it, 0 if there was none. An older one changes nothing.
    pub fn advance(&mut self, input: usize, lead: Lead) -> Sequence {
        let stream = Stream::of(input, lead);
        match self.streams.iter().rposition(|(other, _)| *other == stream) {
            Some(at) => {
                let before = self.streams[at].1;
                self.streams[at].1 = before.max(lead.sequence);
                self.streams[at..].rotate_left(1);
                before
            }
            None => {
                if self.streams.len() == STREAMS_MAX {
                    self.streams.remove(0);
                }
                self.streams.push((stream, lead.sequence));
                Sequence(0)
            }
        }
    }

    pub fn streams(&self) -> &[(Stream, Sequence)] {
        &self.streams
    }

    pub fn restore(&mut self, streams: &[(Stream, Sequence)]) {
        self.streams.clear();
        self.streams.extend_from_slice(&streams[streams.len().saturating_sub(STREAMS_MAX)..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(publisher: u64, sequence: u64) -> Lead {
        Lead { publisher: PublisherId(publisher), incarnation: Incarnation(1), sequence: Sequence(sequence), branch: 0 }
    }

    #[test]
    fn each_stream_has_its_own_newest_event() {
        let mut progress = Progress::default();
        let steps = [(1, 5, 0), (2, 3, 0), (1, 7, 5), (1, 6, 7), (2, 4, 3)];
        for (publisher, sequence, before) in steps {
            assert_eq!(progress.advance(0, lead(publisher, sequence)), Sequence(before));
        }
        assert!(
            progress.has(0, lead(1, 7)) && !progress.has(0, lead(1, 8)) && !progress.has(1, lead(1, 7)) && !progress.has(0, lead(3, 1))
        );
    }

    #[test]
    fn the_stream_that_was_silent_for_longest_is_forgotten() {
        let mut progress = Progress::default();
        for publisher in 0..STREAMS_MAX as u64 {
            progress.advance(0, lead(publisher, 1));
        }
        progress.advance(0, lead(0, 2));
        progress.advance(0, lead(9_999, 1));
        assert!(progress.has(0, lead(0, 2)) && !progress.has(0, lead(1, 1)) && progress.has(0, lead(2, 1)));
        assert_eq!(progress.streams().len(), STREAMS_MAX);
    }

    #[test]
    fn every_so_many_rounds_are_saved() {
        let mut progress = Progress::default();
        assert!(!progress.count());
        progress.replicate(NonZeroU32::new(3).expect("it is not 0"));
        assert_eq!([0; 7].map(|_| progress.count()), [false, false, true, false, false, true, false]);
    }
}
