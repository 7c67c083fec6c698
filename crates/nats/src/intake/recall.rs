//! What a taker remembers over a restart: a note of how far it had come, and behind that its own log, which has every message that it has taken.

use std::collections::BTreeSet;

use super::Memory;

/// How far a taker had come in a stream, as it notes it beside its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Which stream: when it was made, in nanoseconds since 1970.
    pub stream: u64,
    /// Everything up to this sequence is done with.
    pub floor: u64,
    /// What was taken behind that is in the log from this place on, and nothing of it in front.
    pub from: u64,
    /// Messages that the stream had let go of before they came, at the most.
    pub lost: u64,
    /// Up to where that was looked at.
    pub seen: u64,
}

/// What is known of former runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recall {
    noted: Option<Noted>,
    /// The stream that was asked for last.
    stream: Option<u64>,
    /// Another one had its name before.
    is_another: bool,
}

impl Recall {
    /// Of a taker that has noted this; `None`: nothing, it is new.
    pub fn new(noted: Option<Noted>) -> Self {
        Self { noted, stream: None, is_another: false }
    }

    /// The stream that was asked for last; `None`: none was.
    pub fn stream(&self) -> Option<u64> {
        self.stream
    }

    /// A stream is taken from. Gives where its log is to be read from for what was taken of it: without a note, all of it.
    pub fn begin(&mut self, stream: u64) -> u64 {
        let before = self.stream.replace(stream);
        let of_this = self.noted.filter(|noted| noted.stream == stream);
        self.is_another = of_this.is_none() && (self.noted.is_some() || before.is_some_and(|before| before != stream));
        of_this.map_or(0, |noted| noted.from)
    }

    /// What is remembered of the stream that was begun: `taken` is what the log has of it from there on.
    pub fn memory(&self, taken: BTreeSet<u64>) -> Memory {
        let of_this = self.noted.filter(|noted| Some(noted.stream) == self.stream);
        let floor = match of_this {
            Some(noted) => Some(noted.floor),
            // Another stream than was known has taken its name since: all of it is new.
            None if self.is_another => Some(0),
            // What is in front of the oldest one that is known has been taken, or was not for this taker.
            None => taken.first().map(|first| first.saturating_sub(1)),
        };
        Memory::new(floor, taken)
    }

    /// Messages of the stream that was begun that are noted as lost, and up to where that was looked at.
    pub fn lost(&self) -> (u64, u64) {
        self.noted.filter(|noted| Some(noted.stream) == self.stream).map_or((0, 0), |noted| (noted.lost, noted.seen))
    }

    /// What is to be noted of a taker that remembers this and has lost so many up to where it has looked; `None`: nothing new. Of what was told to be taken and is not done, the log has nothing in front of `oldest`; `None`: nothing is under way. `end` is where the log ends.
    pub fn next(&self, memory: &Memory, (lost, seen): (u64, u64), oldest: Option<u64>, end: u64) -> Option<Noted> {
        let (stream, floor) = (self.stream?, memory.floor()?);
        let before = self.noted.filter(|noted| noted.stream == stream);
        let end = oldest.map_or(end, |oldest| oldest.min(end));
        // Of what was done with behind the floor only the log knows: it is read again from where it was read before.
        let from = if memory.is_whole() { end } else { end.min(before.map_or(0, |noted| noted.from)) };
        Some(Noted { stream, floor, from, lost, seen }).filter(|noted| self.noted.as_ref() != Some(noted))
    }

    /// This is on the disk.
    pub fn is_noted(&mut self, noted: Noted) {
        self.noted = Some(noted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(recall: &mut Recall, stream: u64, taken: &[u64]) -> Memory {
        recall.begin(stream);
        recall.memory(taken.iter().copied().collect())
    }

    #[test]
    fn who_is_new_remembers_what_the_log_has_and_nothing_in_front_of_it() {
        let mut recall = Recall::new(None);
        assert_eq!(memory(&mut recall, 5, &[]), Memory::new(None, []));
        assert_eq!(memory(&mut recall, 5, &[7, 9]), Memory::new(Some(6), [7, 9]));
        assert_eq!(memory(&mut recall, 6, &[]), Memory::new(Some(0), []), "all of a stream that was made anew is new");
    }

    #[test]
    fn a_stream_that_was_made_anew_while_nobody_was_there_is_new_as_a_whole() {
        let mut recall = Recall::new(Some(Noted { stream: 5, floor: 40, from: 3, lost: 2, seen: 50 }));
        assert_eq!((recall.begin(5), recall.lost()), (3, (2, 50)));
        assert_eq!((recall.begin(6), recall.lost()), (0, (0, 0)));
        assert_eq!(recall.memory(BTreeSet::new()), Memory::new(Some(0), []));
    }

    #[test]
    fn the_log_is_read_again_for_what_is_under_way_and_for_what_it_alone_knows() {
        let mut recall = Recall::new(Some(Noted { stream: 5, floor: 8, from: 3, lost: 0, seen: 0 }));
        assert_eq!(recall.next(&Memory::new(Some(8), []), (0, 0), None, 9), None, "no stream was begun");
        recall.begin(5);
        assert_eq!(
            recall.next(&Memory::new(Some(8), []), (1, 20), None, 9),
            Some(Noted { stream: 5, floor: 8, from: 9, lost: 1, seen: 20 })
        );
        assert_eq!(
            recall.next(&Memory::new(Some(8), []), (0, 0), Some(7), 9),
            Some(Noted { stream: 5, floor: 8, from: 7, lost: 0, seen: 0 })
        );
        assert_eq!(recall.next(&Memory::new(Some(8), [12]), (0, 0), None, 9), None, "12 is known by the log alone, from 3 on");
        assert_eq!(
            recall.next(&Memory::new(Some(10), [12]), (0, 0), Some(7), 9),
            Some(Noted { stream: 5, floor: 10, from: 3, lost: 0, seen: 0 })
        );
        recall.begin(6);
        assert_eq!(
            recall.next(&Memory::new(Some(0), [2]), (0, 0), None, 9),
            Some(Noted { stream: 6, floor: 0, from: 0, lost: 0, seen: 0 }),
            "another stream"
        );
    }
}
