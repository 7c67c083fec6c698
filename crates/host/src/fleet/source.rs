//! Which record of the event log is the last one of a batch: in the batch's headers, so that the stream itself says what to go on with.

use std::{fmt, str::FromStr};

use bodkin_broker::{EventId, Incarnation, PublisherId, Sequence, TopicId};
use bodkin_store::event_log::{Position, RecordName};

use super::writer::Writer;

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

/// Who published a batch, and which record is its last one: `WRITER`, or `WRITER SOURCE`; of earlier releases `SOURCE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The process.
    pub writer: Option<Writer>,
    /// The record; a batch that ends with a loss at the begin of a log has none.
    pub source: Option<Source>,
}

impl Stamp {
    /// Reads what a batch's header says; what cannot be read says nothing.
    pub fn read(text: Option<&str>) -> Self {
        let Some(text) = text else { return Self::default() };
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        match first.parse() {
            Ok(writer) => Self { writer: Some(writer), source: rest.parse().ok() },
            Err(_) => Self { writer: None, source: text.parse().ok() },
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(writer) = self.writer {
            write!(to, "{writer}")?;
        }
        match self.source {
            Some(source) if self.writer.is_some() => write!(to, " {source}"),
            Some(source) => write!(to, "{source}"),
            None => Ok(()),
        }
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

    #[test]
    fn stamp_is_read_as_written_and_of_earlier_releases() {
        let writer = Some(Writer { database: 3, incarnation: 4 });
        let source = "9 7 1 2 3 4".parse().ok();
        for stamp in [Stamp { writer, source }, Stamp { writer, source: None }, Stamp { writer: None, source }] {
            assert_eq!(Stamp::read(Some(&stamp.to_string())), stamp);
        }
        assert_eq!([Stamp::read(None), Stamp::read(Some("x"))], [Stamp::default(); 2]);
    }
}
