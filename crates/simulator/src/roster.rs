//! Which process is which.

use bodkin_broker::Node;

use crate::{
    network::ProcessId,
    workload::{PUBLISHERS, REQUESTERS, SUBSCRIBERS},
};

const NODES: u16 = 3;
/// The process that commits control operations.
pub const OPERATOR: ProcessId = ProcessId(NODES + PUBLISHERS + SUBSCRIBERS);
/// How many processes there are.
pub const PROCESSES: usize = OPERATOR.0 as usize + 1 + REQUESTERS as usize;

/// Who a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// Of the reliable pair, or its witness.
    Node(Node),
    /// From 0.
    Publisher(u16),
    /// From 0.
    Subscriber(u16),
    /// Commits control operations.
    Operator,
    /// Publishes events that nodes number, from 0.
    Requester(u16),
}

impl Process {
    /// Who has this number.
    pub fn of(id: ProcessId) -> Self {
        match id.0 {
            node if node < NODES => Self::Node(Node::ALL[id.index()]),
            publisher if publisher < NODES + PUBLISHERS => Self::Publisher(publisher - NODES),
            subscriber if subscriber < OPERATOR.0 => Self::Subscriber(subscriber - NODES - PUBLISHERS),
            operator if operator == OPERATOR.0 => Self::Operator,
            requester => Self::Requester(requester - OPERATOR.0 - 1),
        }
    }

    /// Its number.
    pub fn id(self) -> ProcessId {
        match self {
            Self::Node(node) => ProcessId(node as u16),
            Self::Publisher(publisher) => ProcessId(NODES + publisher),
            Self::Subscriber(subscriber) => ProcessId(NODES + PUBLISHERS + subscriber),
            Self::Operator => OPERATOR,
            Self::Requester(requester) => ProcessId(OPERATOR.0 + 1 + requester),
        }
    }

    /// The node whose name the process has; `None` for a client.
    pub fn node(self) -> Option<Node> {
        match self {
            Self::Node(node) => Some(node),
            Self::Publisher(_) | Self::Subscriber(_) | Self::Operator | Self::Requester(_) => None,
        }
    }

    /// Whom it connects to of its own accord.
    pub fn calls(self, other: Self) -> bool {
        match (self, other) {
            (Self::Node(one), Self::Node(other)) => (one as u16) < (other as u16),
            (Self::Node(_), _) => false,
            (_, Self::Node(node)) => node != Node::Witness,
            _ => false,
        }
    }
}

/// Every process.
pub fn all() -> impl DoubleEndedIterator<Item = ProcessId> {
    (0..PROCESSES as u16).map(ProcessId)
}

/// The process of a node.
pub fn node(node: Node) -> ProcessId {
    Process::Node(node).id()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_processes_are_the_same_thing() {
        for id in all() {
            assert_eq!(Process::of(id).id(), id);
        }
        let calls = |one, other| Process::of(ProcessId(one)).calls(Process::of(ProcessId(other)));
        assert!(calls(0, 1) && !calls(1, 0), "of two nodes the first one calls");
        assert!(calls(4, 0) && !calls(0, 4) && !calls(4, 2), "clients call the pair");
    }
}
