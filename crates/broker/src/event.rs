//! The identity of an event: publisher, incarnation, topic, sequence.

use std::{fmt, str::FromStr};

use crate::epoch::Epoch;

/// Who publishes: the system's id in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublisherId(pub u64);

/// Which run of the publisher's numbering: a restarted numbering is a new incarnation, so that its sequence 1 is not "old".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u64);

/// Who gives events their sequence numbers. Incarnations are ordered among those of one publisher and one numberer only: a system may publish by
/// HTTP, where the node numbers its events, and by its own client, which numbers them itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Numberer {
    /// The publisher's client.
    Publisher,
    /// The node that accepts the events.
    Node,
}

impl Incarnation {
    /// Set in every incarnation that a node gives. Clients give Unix nanoseconds, which stay below until 2262.
    const BY_NODE: u64 = 1 << 63;
    /// Set next to `BY_NODE` in the incarnations of leaders. Unix nanoseconds stay below until 2116.
    const BY_LEADER: u64 = 1 << 62;

    /// Returns the incarnation in which a node without a pair numbers events after a start at this time.
    pub fn of_start(unix_ns: u64) -> Self {
        Self(Self::BY_NODE | unix_ns.min(Self::BY_LEADER - 1))
    }

    /// Returns the incarnation in which the leader of an epoch numbers events. It is greater than that of every lower epoch, whichever node led and
    /// whenever that node started, and greater than that of every node without a pair.
    pub fn of_epoch(epoch: Epoch) -> Self {
        Self(Self::BY_NODE | Self::BY_LEADER | epoch.0.min(Self::BY_LEADER - 1))
    }

    /// Returns who numbers the events of this incarnation.
    pub fn numberer(self) -> Numberer {
        if self.0 & Self::BY_NODE == 0 { Numberer::Publisher } else { Numberer::Node }
    }
}

/// A topic of this shard, from 0 in the order of their making; it names the same topic for the whole incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicId(pub u64);

impl TopicId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Position in the stream of one publisher on one topic, from 1; 0 is in front of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// What makes an event itself. Written as `publisher-incarnation-topic-sequence`, hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// Who published.
    pub publisher: PublisherId,
    /// Which numbering.
    pub incarnation: Incarnation,
    /// Where.
    pub topic: TopicId,
    /// Which one.
    pub sequence: Sequence,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}-{:x}-{:x}", self.publisher.0, self.incarnation.0, self.topic.0, self.sequence.0)
    }
}

/// A text that is not the identity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event's id is four hexadecimal numbers with dashes between them, such as 1a-18aa3f-0-7")]
pub struct EventIdError;

impl FromStr for EventId {
    type Err = EventIdError;

    fn from_str(text: &str) -> Result<Self, EventIdError> {
        let mut parts = text.split('-').map(|part| match part.as_bytes().first() {
            Some(b'+') | None => Err(EventIdError),
            Some(_) => u64::from_str_radix(part, 16).map_err(|_| EventIdError),
        });
        let mut next = || parts.next().unwrap_or(Err(EventIdError));
        let id = Self {
            publisher: PublisherId(next()?),
            incarnation: Incarnation(next()?),
            topic: TopicId(next()?),
            sequence: Sequence(next()?),
        };
        if parts.next().is_some() { Err(EventIdError) } else { Ok(id) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_epoch_has_greater_incarnation() {
        let now = 1_800_000_000_000_000_000;
        let rising =
            [Incarnation::of_start(now), Incarnation::of_start(now + 1), Incarnation::of_epoch(Epoch(1)), Incarnation::of_epoch(Epoch(2))];
        assert!(rising.is_sorted_by(|earlier, later| earlier < later), "{rising:?}");
        assert!(rising.iter().all(|incarnation| incarnation.numberer() == Numberer::Node));
        assert_eq!(Incarnation(now).numberer(), Numberer::Publisher);
        assert!(Incarnation::of_start(u64::MAX) < Incarnation::of_epoch(Epoch(1)), "a clock of another century stays below every epoch");
    }

    #[test]
    fn an_identity_is_four_hexadecimal_numbers() {
        let id = EventId { publisher: PublisherId(26), incarnation: Incarnation(u64::MAX), topic: TopicId(0), sequence: Sequence(1) };
        assert_eq!(id.to_string(), "1a-ffffffffffffffff-0-1");
        assert_eq!("1A-ffffffffffffffff-0-1".parse(), Ok(id));
        for text in ["", "1a-2-3", "1a-2-3-4-5", "1a-2--4", "+1-2-3-4", "1a-2-3-10000000000000000", "x-2-3-4", " 1-2-3-4"] {
            assert_eq!(text.parse::<EventId>(), Err(EventIdError), "{text}");
        }
    }
}
