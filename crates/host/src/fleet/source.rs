//! Which record of the event log is the last one of a batch: in the batch's headers, so that the stream itself says what to go on with.

use std::{fmt, str::FromStr};

use bodkin_broker::{EventId, Incarnation, PublisherId, Sequence, TopicId};
use bodkin_store::event_log::{Position, RecordName};

/// A record of an event log, in any node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Where it is in the log that it was read from.
    pub position: Position,
    /// Which one it is.
    pub name: RecordName,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EventId { publisher, incarnation, topic, sequence } = self.name.id;
        write!(f, "{} {} {} {} {} {}", self.position.0, self.name.time_ns, publisher.0, incarnation.0, topic.0, sequence.0)
    }
}

/// Not the six numbers of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSource;

impl FromStr for Source {
    type Err = NoSource;

    fn from_str(text: &str) -> Result<Self, NoSource> {
        let mut numbers = text.split(' ').map(|digits| digits.parse::<u64>().map_err(|_| NoSource));
        let mut number = || numbers.next().unwrap_or(Err(NoSource));
        let (position, time_ns) = (Position(number()?), number()?);
        let id = EventId {
            publisher: PublisherId(number()?),
            incarnation: Incarnation(number()?),
            topic: TopicId(number()?),
            sequence: Sequence(number()?),
        };
        // A position has a next one.
        let is_whole = position.0 < u64::MAX && numbers.next().is_none();
        if is_whole { Ok(Self { position, name: RecordName { time_ns, id } }) } else { Err(NoSource) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_read_as_it_was_written_and_nothing_else() {
        let id = EventId { publisher: PublisherId(1), incarnation: Incarnation(u64::MAX), topic: TopicId(3), sequence: Sequence(4) };
        let source = Source { position: Position(9), name: RecordName { time_ns: 7, id } };
        assert_eq!(source.to_string().parse(), Ok(source));
        for text in ["", "1 2 3 4 5", "1 2 3 4 5 6 7", "1 2 3 4 5 x", "-1 2 3 4 5 6", "18446744073709551615 2 3 4 5 6", "1  2 3 4 5 6"] {
            assert_eq!(text.parse::<Source>(), Err(NoSource), "{text}");
        }
    }
}
