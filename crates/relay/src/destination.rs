//! Where a message goes at a relay: a topic or a queue.

use std::fmt;

/// Longest name of a destination, in bytes. Those of dialogues and tunnels have 210 at the most.
pub const NAME_BYTES_MAX: usize = 255;

/// A name that no destination can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a destination's name has 1 to {NAME_BYTES_MAX} letters, digits, dots, dashes and underscores: {0:?} has not")]
pub struct DestinationError(String);

/// A topic, whose messages reach everybody who listens, or a queue, whose messages reach one and wait until somebody listens.
///
/// Names have letters, digits, dots, dashes and underscores only: to the brokers of Java clouds others mean patterns, options or several
/// destinations at once, and a neighbour's name must not choose such.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// Reaches everybody who listens.
    Topic(Name),
    /// Reaches one, and waits for it.
    Queue(Name),
}

/// A checked name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Box<str>);

impl Destination {
    /// The topic of this name.
    pub fn topic(name: &str) -> Result<Self, DestinationError> {
        Name::parse(name).map(Self::Topic)
    }

    /// The queue of this name.
    pub fn queue(name: &str) -> Result<Self, DestinationError> {
        Name::parse(name).map(Self::Queue)
    }

    /// Its name, without its kind.
    pub fn name(&self) -> &str {
        let (Self::Topic(name) | Self::Queue(name)) = self;
        &name.0
    }
}

impl Name {
    fn parse(text: &str) -> Result<Self, DestinationError> {
        let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_good) {
            return Ok(Self(text.into()));
        }
        // What a peer has sent is quoted, but not at any length.
        Err(DestinationError(text.chars().take(NAME_BYTES_MAX).collect()))
    }
}

/// As STOMP and JMS write it: `/topic/NAME` or `/queue/NAME`.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Topic(name) => write!(f, "/topic/{}", name.0),
            Self::Queue(name) => write!(f, "/queue/{}", name.0),
        }
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_chooses_one_destination_and_nothing_else() {
        for name in ["General-M5QTZXM9G9AnpPHWT6WennWu", "REQ-gatekeeper.c_1.o.arrowhead.eu-abc-CONTROL", "a", &"a".repeat(NAME_BYTES_MAX)]
        {
            assert_eq!(Destination::queue(name).unwrap().name(), name);
        }
        for name in
            ["", "a b", "a,b", "a*", "a.>", "a?consumer.exclusive=true", "a/b", "a:b", "a\n", "ä", "\0", &"a".repeat(NAME_BYTES_MAX + 1)]
        {
            assert!(Destination::topic(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_destination_is_written_with_its_kind() {
        assert_eq!(Destination::topic("a.b").unwrap().to_string(), "/topic/a.b");
        assert_eq!(Destination::queue("a.b").unwrap().to_string(), "/queue/a.b");
    }
}
