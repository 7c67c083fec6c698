//! The frames that decide who leads: they go to [`Member`](crate::member::Member) and come from it.

use super::codec::{Field, Reader, VERSION, WireError, codes, frames};
use crate::{
    epoch::{Epoch, Node, PairId},
    event::Incarnation,
};

/// Which candidate may not lead because it lacks something that was answered, and which of two such statements is the newer one: they are
/// ordered by epoch, then number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Standing {
    /// The leader's epoch that made the statement.
    pub epoch: Epoch,
    /// Counts that leader's statements, from 0.
    pub number: u64,
    /// Who is out of sync; nobody, if there is none.
    pub out: Option<Node>,
}

impl Field<'_> for Standing {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.epoch.write(bytes);
        self.number.write(bytes);
        self.out.write(bytes);
    }

    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, WireError> {
        let standing = Self { epoch: Field::read(reader, field)?, number: Field::read(reader, field)?, out: Field::read(reader, field)? };
        if standing.out == Some(Node::Witness) {
            return Err(WireError::Value { field, expected: "a candidate", found: 3 });
        }
        Ok(standing)
    }

    #[cfg(test)]
    fn json(&self) -> serde_json::Value {
        serde_json::json!({"epoch": self.epoch.json(), "number": self.number, "out": self.out.json()})
    }
}

/// Why a node does not grant or vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BallotRefusal {
    /// It knows a higher epoch.
    Stale,
    /// It has promised another leader not to vote, or leads itself.
    Granted,
    /// The candidate lacks something that was answered.
    OutOfSync,
    /// The candidate has restarted and lacks the messages; there may be one that has them.
    Cold,
    /// The voter has restarted, and waits for promises to run out that it may have made before.
    Restarted,
    /// The voter is a candidate itself, for a higher epoch.
    Campaigning,
    /// The lease is longer than the voter's configuration allows.
    LeaseTooLong,
    /// There is no witness, so nobody votes: the configured winner leads.
    NoVotes,
    /// The voter does not know yet whether the other voter takes the same process for the node.
    Unconfirmed,
}

/// How firmly a node takes a process for the third node. Of two different processes the one with the stronger claim counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Claim {
    /// The process was the node, and is not heard any more.
    Remembered,
    /// The process is heard; the other node has not agreed yet.
    Heard,
    /// The process is heard, and the other node has agreed.
    Agreed,
    /// A promise to the process, or one of the process's, has not expired.
    Promised,
}

codes!(Claim: "a claim from 1 to 4", 1 => Remembered, 2 => Heard, 3 => Agreed, 4 => Promised);
codes!(BallotRefusal: "a reason from 1 to 9",
    1 => Stale, 2 => Granted, 3 => OutOfSync, 4 => Cold, 5 => Restarted, 6 => Campaigning, 7 => LeaseTooLong, 8 => NoVotes,
    9 => Unconfirmed);

frames! {
    /// Renewals and votes.
    pub enum Ballot: "renewals and votes (1 to 6)" {
        /// A leader asks that its lease goes on.
        1 => RenewRequest {
            /// The leader's clock when it asked: the lease counts from here.
            sent_at_ns: u64,
            /// How long the lease is, before either side's allowance for drift.
            lease_ns: u64,
            /// Who is in sync.
            standing: Standing,
        }
        /// The voter votes for nobody else for a lease from now on.
        2 => Grant {
            /// From the request.
            sent_at_ns: u64,
            /// The newest standing that the voter has on its disk.
            standing: Standing,
        }
        /// A candidate asks for a vote; its epoch is the one it wants to lead.
        3 => VoteRequest {
            /// The candidate's clock when it asked: its first lease counts from here.
            sent_at_ns: u64,
            /// As in a renewal.
            lease_ns: u64,
            /// Who is in sync, as far as the candidate knows.
            standing: Standing,
            /// Whether it has the messages: it has not restarted since it led, or since it was brought in sync.
            warm: bool,
            /// An operator wants it to lead although it may be out of sync or cold.
            forced: bool,
        }
        /// The vote, which is also the first grant.
        4 => Vote {
            /// From the request.
            sent_at_ns: u64,
        }
        /// No grant, or no vote. Its epoch is the highest that the voter knows.
        5 => Refused {
            /// The request's epoch.
            asked: Epoch,
            /// Why.
            reason: BallotRefusal,
            /// When it is worth asking again; 0 if time alone will not help.
            retry_after_ns: u64,
        }
        /// The process that the sender takes for the third node. Protocol 4.
        6 => Sighting {
            /// The pair that the sender has met.
            pair: Option<PairId>,
            /// The node that neither the sender nor the receiver is.
            node: Node,
            /// The process; absent if the sender has met none.
            incarnation: Option<Incarnation>,
            /// What the sender knows of the process.
            claim: Claim,
            /// Counts the sender's claims: it grows with each process, and whenever the sender has to ask again.
            number: u64,
            /// The number of the receiver's last claim that the sender has taken; 0 before the first.
            answers: u64,
        }
    }
}

impl Ballot {
    /// The statement of who is in sync, where the frame has one.
    pub fn standing(&self) -> Option<Standing> {
        match self {
            Self::RenewRequest { standing, .. } | Self::Grant { standing, .. } | Self::VoteRequest { standing, .. } => Some(*standing),
            Self::Vote { .. } | Self::Refused { .. } | Self::Sighting { .. } => None,
        }
    }
}
