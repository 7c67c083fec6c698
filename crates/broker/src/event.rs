//! The identity of an event: publisher, incarnation, topic, sequence.

use std::fmt;

/// Who publishes: the system's id in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublisherId(pub u64);

/// Which run of the publisher's numbering: a restarted numbering is a new incarnation, so that its sequence 1 is not "old".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Incarnation(pub u64);

/// A topic of this shard. Never used again within an incarnation once the topic is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicId(pub u64);

/// Position in the stream of one publisher on one topic, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sequence(pub u64);

/// What makes an event itself. Written as `publisher-incarnation-topic-sequence`, hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_four_hexadecimal_numbers() {
        let id = EventId { publisher: PublisherId(26), incarnation: Incarnation(u64::MAX), topic: TopicId(0), sequence: Sequence(1) };
        assert_eq!(id.to_string(), "1a-ffffffffffffffff-0-1");
    }
}
