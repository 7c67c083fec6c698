//! Which process is which.

use bodkin_broker::Node;

use crate::{
    network::ProcessId,
    workload::{PUBLISHERS, REQUESTERS, SUBSCRIBERS},
};

const NODES: u16 = 3;
/// How many node processes there can be: the configured nodes, and a clone of each.
pub const NODE_PROCESSES: usize = 2 * NODES as usize;
/// The process that commits control operations.
pub const OPERATOR: ProcessId = ProcessId(NODES + PUBLISHERS + SUBSCRIBERS);
/// How many processes a cloud is configured with.
pub const PROCESSES: usize = OPERATOR.0 as usize + 1 + REQUESTERS as usize;
/// How many hosts there are: one for each configured process, and one for the clone of each node.
pub const HOSTS: usize = PROCESSES + NODES as usize;

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
    /// A second process that has a node's name.
    Clone(Node),
}

impl Process {
    /// Who has this number.
    pub fn of(id: ProcessId) -> Self {
        match id.0 {
            node if node < NODES => Self::Node(Node::ALL[id.index()]),
            publisher if publisher < NODES + PUBLISHERS => Self::Publisher(publisher - NODES),
            subscriber if subscriber < OPERATOR.0 => Self::Subscriber(subscriber - NODES - PUBLISHERS),
            operator if operator == OPERATOR.0 => Self::Operator,
            requester if id.index() < PROCESSES => Self::Requester(requester - OPERATOR.0 - 1),
            _ => Self::Clone(Node::ALL[id.index() - PROCESSES]),
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
            Self::Clone(node) => ProcessId(PROCESSES as u16 + node as u16),
        }
    }

    /// The node whose name the process has; `None` for a client.
    pub fn node(self) -> Option<Node> {
        match self {
            Self::Node(node) | Self::Clone(node) => Some(node),
            Self::Publisher(_) | Self::Subscriber(_) | Self::Operator | Self::Requester(_) => None,
        }
    }

    /// Whom it connects to of its own accord.
    pub fn calls(self, other: Self) -> bool {
        match (self.node(), other) {
            (Some(_), Self::Clone(_)) if matches!(self, Self::Clone(_)) => false,
            (Some(one), other) => other.node().is_some_and(|other| (one as u16) < (other as u16)),
            // Clients have the addresses of the configured nodes.
            (None, Self::Node(node)) => node != Node::Witness,
            (None, _) => false,
        }
    }
}

/// The place of a node's process, or of its clone, among [`NODE_PROCESSES`].
pub fn node_index(process: ProcessId) -> Option<usize> {
    match Process::of(process) {
        Process::Node(node) => Some(node as usize),
        Process::Clone(node) => Some(usize::from(NODES) + node as usize),
        Process::Publisher(_) | Process::Subscriber(_) | Process::Operator | Process::Requester(_) => None,
    }
}

/// The clones of all nodes.
pub fn clones() -> impl Iterator<Item = ProcessId> {
    Node::ALL.into_iter().map(|node| Process::Clone(node).id())
}

/// Every configured process.
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
        for id in (0..HOSTS as u16).map(ProcessId) {
            assert_eq!(Process::of(id).id(), id);
        }
        let calls = |one, other| Process::of(ProcessId(one)).calls(Process::of(ProcessId(other)));
        assert!(calls(0, 1) && !calls(1, 0), "of two nodes the first one calls");
        assert!(calls(4, 0) && !calls(0, 4) && !calls(4, 2), "clients call the pair");
        let [first, second, witness] = Node::ALL.map(|node| Process::Clone(node).id().0);
        assert!(calls(first, 1) && calls(first, 2) && !calls(first, 0) && !calls(0, first), "a clone calls whom its node calls");
        assert!(calls(0, second) && calls(1, witness) && !calls(first, second) && !calls(4, first));
        assert_eq!(clones().filter_map(node_index).collect::<Vec<_>>(), [3, 4, 5]);
    }
}
