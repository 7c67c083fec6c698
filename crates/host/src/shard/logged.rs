//! How far the event log has each stream of a durable real-time topic: what a publisher sends again after a failover is there already.

use std::collections::HashMap;

use bodkin_broker::{Sequence, StreamIdentity};

/// Streams that are remembered. Beyond them all are forgotten, and an event that is sent again is in the log twice.
const STREAMS_MAX: usize = 65_536;

/// The newest event of each stream that is in the log, by this process's writing: a leader logs the events of a stream in their order, and the
/// node that follows copies them in that order.
#[derive(Debug, Default)]
pub(super) struct Logged {
    through: HashMap<StreamIdentity, Sequence>,
}

impl Logged {
    /// Returns true if the event is in the log.
    pub fn has(&self, stream: &StreamIdentity, sequence: Sequence) -> bool {
        self.through.get(stream).is_some_and(|through| sequence <= *through)
    }

    /// Notes that the event is in the log.
    pub fn note(&mut self, stream: StreamIdentity, sequence: Sequence) {
        if self.through.len() >= STREAMS_MAX && !self.through.contains_key(&stream) {
            self.through.clear();
        }
        let through = self.through.entry(stream).or_default();
        *through = sequence.max(*through);
    }
}

#[cfg(test)]
mod tests {
    use bodkin_broker::{Incarnation, PublisherId, TopicId};

    use super::*;

    fn stream(publisher: u64) -> StreamIdentity {
        StreamIdentity { topic: TopicId(1), publisher: PublisherId(publisher), incarnation: Incarnation(1) }
    }

    #[test]
    fn events_through_the_newest_are_known() {
        let mut logged = Logged::default();
        [3, 5, 4].map(Sequence).into_iter().for_each(|sequence| logged.note(stream(1), sequence));
        assert!(logged.has(&stream(1), Sequence(5)) && !logged.has(&stream(1), Sequence(6)));
        assert!(!logged.has(&stream(2), Sequence(1)));
    }

    #[test]
    fn streams_beyond_the_limit_forget_the_others() {
        let mut logged = Logged::default();
        (0..=STREAMS_MAX as u64).for_each(|publisher| logged.note(stream(publisher), Sequence(1)));
        assert!(!logged.has(&stream(0), Sequence(1)) && logged.has(&stream(STREAMS_MAX as u64), Sequence(1)));
    }
}
