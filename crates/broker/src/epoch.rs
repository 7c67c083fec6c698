//! Epochs, and the nodes of a pair, each of which owns its own.

use std::fmt;

/// A member of the reliable pair. Which of the two candidates leads changes; these names do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// The candidate that leads when the pair is new: the configured Primary.
    First,
    /// The other candidate: the configured Backup.
    Second,
    /// Votes and never leads.
    Witness,
}

impl Node {
    /// Every node.
    pub const ALL: [Self; 3] = [Self::First, Self::Second, Self::Witness];

    /// The other candidate; of the witness there is none.
    pub fn partner(self) -> Option<Self> {
        match self {
            Self::First => Some(Self::Second),
            Self::Second => Some(Self::First),
            Self::Witness => None,
        }
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// The name of a pair, drawn at random when its first leader is elected. A node that has met one pair refuses the nodes of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PairId(pub u64);

impl fmt::Display for PairId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// One right to lead. Epochs only grow, and no two leaders ever share one: the odd ones are the first candidate's, the even ones the
/// second's, and a node persists that it may use one before it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Before anybody has led; on frames: the sender knows of none.
    pub const NONE: Self = Self(0);
    /// How far ahead of what a node knows another node's epoch may be. A fail-over takes one or two, so a peer that is further ahead is
    /// broken, and is refused: it could use the numbers up.
    pub const AHEAD_MAX: u64 = 1 << 32;
    /// The highest epoch that is believed of another node, so that epochs follow whatever a node sends.
    pub const MAX: Self = Self(1 << 63);

    /// Who alone may lead in it.
    pub fn owner(self) -> Option<Node> {
        match self.0 {
            0 => None,
            odd if odd % 2 == 1 => Some(Node::First),
            _ => Some(Node::Second),
        }
    }

    /// The first epoch behind this one that a candidate owns.
    ///
    /// # Panics
    /// If asked for the witness, which owns none, or when all 2^64 are used up.
    pub fn next_of(self, candidate: Node) -> Self {
        assert!(self.0 < u64::MAX - 2, "no epoch follows {self}");
        let next = [Self(self.0 + 1), Self(self.0 + 2)].into_iter().find(|epoch| epoch.owner() == Some(candidate));
        next.expect("only a candidate owns epochs")
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_belongs_to_one_candidate() {
        assert_eq!(Epoch::NONE.owner(), None);
        let cases = [(0, Node::First, 1), (0, Node::Second, 2), (1, Node::First, 3), (1, Node::Second, 2), (2, Node::Second, 4)];
        for (known, candidate, next) in cases {
            assert_eq!(Epoch(known).next_of(candidate), Epoch(next), "behind {known} of {candidate:?}");
            assert_eq!(Epoch(next).owner(), Some(candidate));
        }
    }
}
