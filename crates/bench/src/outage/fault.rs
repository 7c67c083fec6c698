//! Faults of nodes, edges, and the servers between them.

use std::time::Duration;

use clap::ValueEnum;

/// A fault of one member, or of a server that all members use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Fault {
    /// A node is killed, and starts again.
    KillNode,
    /// An edge is killed, and starts again.
    KillEdge,
    /// A node is stopped by SIGSTOP, and continues.
    StopNode,
    /// An edge is stopped by SIGSTOP, and continues.
    StopEdge,
    /// A node ends by SIGTERM, and starts again.
    RestartNode,
    /// An edge ends by SIGTERM, and starts again.
    RestartEdge,
    /// The connections between a node and PostgreSQL are closed, and new ones refused.
    CutDatabase,
    /// The connections between a node and NATS are closed, and new ones refused.
    CutNode,
    /// The connections between an edge and NATS are closed, and new ones refused.
    CutEdge,
    /// Nothing passes between a node and PostgreSQL; connections stay open.
    StallDatabase,
    /// Nothing passes between a node and NATS; connections stay open.
    StallNode,
    /// Nothing passes between an edge and NATS; connections stay open.
    StallEdge,
    /// Every process of PostgreSQL is killed, and the server starts again.
    CrashDatabase,
    /// Every NATS server is killed, and starts again.
    CrashNats,
    /// A copy of a running node's directory starts: it has to be refused.
    CloneNode,
    /// A copy of a running edge's directory starts: the lane of one of the two has to stop.
    CloneEdge,
    /// An earlier copy of a node's directory replaces it while the node is stopped.
    RestoreNode,
    /// An earlier copy of an edge's directory replaces it while the edge is stopped; its stopped lane is adopted.
    RestoreEdge,
    /// A node's disk is full.
    FullNode,
}

/// Processes of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A node of the shared cloud.
    Node,
    /// An edge of the fleet.
    Edge,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 19] = [
        Self::KillNode,
        Self::KillEdge,
        Self::StopNode,
        Self::StopEdge,
        Self::RestartNode,
        Self::RestartEdge,
        Self::CutDatabase,
        Self::CutNode,
        Self::CutEdge,
        Self::StallDatabase,
        Self::StallNode,
        Self::StallEdge,
        Self::CrashDatabase,
        Self::CrashNats,
        Self::CloneNode,
        Self::CloneEdge,
        Self::RestoreNode,
        Self::RestoreEdge,
        Self::FullNode,
    ];

    /// Returns the kind of member that the fault strikes; `None` for a server.
    pub fn strikes(self) -> Option<Kind> {
        match self {
            Self::KillEdge | Self::StopEdge | Self::RestartEdge | Self::CutEdge | Self::StallEdge | Self::CloneEdge | Self::RestoreEdge => {
                Some(Kind::Edge)
            }
            Self::CrashDatabase | Self::CrashNats => None,
            _ => Some(Kind::Node),
        }
    }

    /// Returns the shortest and the longest time that the fault lasts.
    pub fn lasts(self) -> [Duration; 2] {
        let milliseconds = match self {
            Self::StopNode | Self::StopEdge => [100, 15_000],
            Self::CutDatabase | Self::CutNode | Self::CutEdge | Self::StallDatabase | Self::StallNode | Self::StallEdge => [100, 20_000],
            Self::FullNode => [2_000, 8_000],
            Self::CloneNode | Self::CloneEdge => [0, 0],
            _ => [100, 5_000],
        };
        milliseconds.map(Duration::from_millis)
    }

    /// Returns true if the fault never overlaps with another one: its check is of a system without other faults.
    pub fn is_single(self) -> bool {
        matches!(self, Self::CloneNode | Self::CloneEdge | Self::RestoreNode | Self::RestoreEdge | Self::FullNode)
    }

    /// Returns true if a node may not reach the database meanwhile, so that its start may be refused.
    pub fn hides_database(self) -> bool {
        matches!(self, Self::CutDatabase | Self::StallDatabase | Self::CrashDatabase)
    }

    /// Returns the fault's name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value().expect("no fault is hidden").get_name().to_owned()
    }
}
