//! What goes into the machine, and what comes out.

use super::{
    super::{
        operator::Emission,
        shape::Shape,
        spec::{OperatorId, SupplierId},
    },
    inputs::Invalid,
    store::{EventSlot, Record},
};
use crate::event::{EventId, Incarnation, PublisherId, Sequence, TopicId};

/// The event that a result is named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lead {
    /// Who published it.
    pub publisher: PublisherId,
    /// In which numbering.
    pub incarnation: Incarnation,
    /// Which one.
    pub sequence: Sequence,
    /// On which way it came, of those on which any event starts an operator: 0 where there is only one.
    pub branch: u8,
}

impl Lead {
    pub(super) const NONE: Self = Self { publisher: PublisherId(0), incarnation: Incarnation(0), sequence: Sequence(0), branch: 0 };

    /// The identity of the result in a topic.
    pub fn identity(self, topic: TopicId) -> EventId {
        EventId { publisher: self.sender(), incarnation: self.incarnation, topic, sequence: self.sequence }
    }

    /// The publisher that a result of this name has. The way it came on is the highest byte of the publisher, whose own number is below 2^56.
    pub fn sender(self) -> PublisherId {
        PublisherId(self.publisher.0 | u64::from(self.branch) << 56)
    }
}

/// An event of a supplier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Of which.
    pub supplier: SupplierId,
    /// Who published it, below 2^56.
    pub publisher: PublisherId,
    /// In which numbering.
    pub incarnation: Incarnation,
    /// Which one.
    pub sequence: Sequence,
    /// When it was made, in nanoseconds of UTC: not later than now, of which the caller takes care.
    pub created_ns: u64,
    /// Length of the payload.
    pub bytes: usize,
}

/// Why an event of a supplier is not taken. It is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not what the graph was promised.
    #[error("the event has {bytes} bytes, which is no {shape}")]
    Shape {
        /// What it has.
        bytes: usize,
        /// What it should be.
        shape: Shape,
    },
    /// It is no longer valid.
    #[error("the event is no longer valid")]
    Expired,
    /// The graph stands still.
    #[error("the graph is suspended")]
    Suspended,
}

/// A round that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// Of which operator.
    pub operator: OperatorId,
    /// Which of its rounds, from 1 on.
    pub round: u64,
}

/// What became of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The operator is done; a result of so many bytes is in the slot, if there is one.
    Done(Emission, usize),
    /// The operator refused the events, or its result was no event of its shape.
    Failed,
    /// Of a round that follows another one: the worker has not begun it, because it was [too late](super::Next::too_late_ns).
    TooLate,
}

/// What the host is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Let a worker of the operator's level run a round ([`Machine::job`](super::Machine::job)).
    Run(JobId),
    /// Publish a result. Its payload is in the slot until the next action is carried out.
    Deliver {
        /// Output of the graph, by its place.
        output: usize,
        /// Where the payload is.
        slot: EventSlot,
        /// What it is.
        record: Record,
        /// The result of the same stream that was delivered before; 0 for none.
        follows: Sequence,
        /// Results that this output has not had since, because something was shed on the way.
        shed: u32,
    },
    /// Tell that a result will not be there.
    Shed {
        /// Whose.
        operator: OperatorId,
        /// What it would have been named after.
        lead: Lead,
        /// Why.
        why: Invalid,
    },
}

/// How the machine goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Cores for the workers.
    pub cores: usize,
    /// Whether each level has as many workers as there are cores, of which the operating system stops the less urgent ones; otherwise there are as many in all, and none begins
    /// less urgent work while more urgent work waits.
    pub is_preemptive: bool,
    /// Whether a supplier's event replaces one that still waits to be taken.
    pub replaces_queued: bool,
}

/// What a worker needs to run a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job<'m> {
    /// The events, input by input.
    pub events: &'m [EventSlot],
    /// How many of each input.
    pub counts: &'m [u16],
    /// Where the result's payload goes.
    pub result: EventSlot,
}
