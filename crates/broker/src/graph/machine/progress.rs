//! How far each stream of events has come.

use super::Lead;
use crate::event::{Incarnation, PublisherId, Sequence};

/// Streams that an output keeps apart at the most. Behind that the one that was silent for longest is forgotten.
pub(super) const STREAMS_MAX: usize = 256;

/// A stream of results: who publishes, in which numbering, on which way.
type Stream = (PublisherId, Incarnation, u8);

/// The newest event of each stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// The stream that moved last is the last one.
    streams: Vec<(Stream, Sequence)>,
}

impl Progress {
    /// Goes on to an event; gives the one before it, 0 if there was none. An older one changes nothing.
    pub fn advance(&mut self, lead: Lead) -> Sequence {
        let stream = (lead.publisher, lead.incarnation, lead.branch);
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

    /// The newest events, that of the stream that moved last as the last one.
    pub fn newest(&self) -> impl ExactSizeIterator<Item = Lead> {
        let lead = |((publisher, incarnation, branch), sequence)| Lead { publisher, incarnation, sequence, branch };
        self.streams.iter().copied().map(lead)
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
            assert_eq!(progress.advance(lead(publisher, sequence)), Sequence(before));
        }
    }

    #[test]
    fn the_stream_that_was_silent_for_longest_is_forgotten() {
        let mut progress = Progress::default();
        for publisher in 0..STREAMS_MAX as u64 {
            progress.advance(lead(publisher, 1));
        }
        progress.advance(lead(0, 2));
        progress.advance(lead(9_999, 1));
        assert_eq!(progress.newest().len(), STREAMS_MAX);
        assert_eq!([0, 2, 1].map(|publisher| progress.advance(lead(publisher, 3))), [Sequence(2), Sequence(1), Sequence(0)]);
    }
}
