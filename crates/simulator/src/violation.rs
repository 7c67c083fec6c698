//! What a run must never show.

use std::fmt;

use bodkin_broker::{BackupError, wire::RefusalReason};

use crate::clock::Time;

/// One publisher's messages on one topic, in one incarnation of the publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamName {
    /// Which publisher, from 0.
    pub publisher: u16,
    /// Which run of it, from 1.
    pub incarnation: u64,
    /// Which topic, from 0.
    pub topic: u16,
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "publisher {}.{} on topic {}", self.publisher, self.incarnation, self.topic)
    }
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// More consecutive losses than a subscriber tolerates.
    #[error("{stream}: subscriber {subscriber} got {next} after {last}: {run} lost in a row, tolerated are {tolerance}")]
    LossRun {
        /// Whose messages.
        stream: StreamName,
        /// Who missed them.
        subscriber: u16,
        /// The last message before the gap; 0 for none.
        last: u64,
        /// The first message behind it.
        next: u64,
        /// How many are lost, without those that were told to be given up.
        run: u64,
        /// L.
        tolerance: u64,
    },
    /// A message of a stream with L = 0 is lost although its publisher was told that it is covered.
    #[error("{stream}: {sequence} was told to be covered, and subscriber {subscriber} never got it")]
    CoveredLost {
        /// Whose message.
        stream: StreamName,
        /// Who missed it.
        subscriber: u16,
        /// Which one.
        sequence: u64,
    },
    /// A broker called a message excess, and promised nothing of it, although its publisher keeps T and J.
    #[error("{stream}: {sequence} was called excess, and its publisher keeps its period and jitter")]
    Excess {
        /// Whose message.
        stream: StreamName,
        /// Which one.
        sequence: u64,
    },
    /// A message was refused for good although it is one that its topic was admitted for.
    #[error("{stream}: {sequence} was refused for good ({reason:?}), and its publisher keeps to what was admitted")]
    NotTaken {
        /// Whose message.
        stream: StreamName,
        /// Which one.
        sequence: u64,
        /// What its publisher was told.
        reason: RefusalReason,
    },
    /// A subscriber's application got a message twice, or behind a later one.
    #[error("{stream}: subscriber {subscriber} got {sequence} behind {last}")]
    Order {
        /// Whose message.
        stream: StreamName,
        /// Who got it.
        subscriber: u16,
        /// The last message that it had got.
        last: u64,
        /// What it got then.
        sequence: u64,
    },
    /// A subscriber got what nobody published, or another message's bytes.
    #[error("{stream}: subscriber {subscriber} got {sequence} with bytes that are not its own")]
    Forged {
        /// Whose message it says to be.
        stream: StreamName,
        /// Who got it.
        subscriber: u16,
        /// Which one it says to be.
        sequence: u64,
    },
    /// A message of an admitted topic came too late though no fault was near.
    #[error("{stream}: {sequence} reached subscriber {subscriber} {late_ns} ns behind its deadline, without a fault")]
    Late {
        /// Whose message.
        stream: StreamName,
        /// Who got it.
        subscriber: u16,
        /// Which one.
        sequence: u64,
        /// By how much.
        late_ns: u64,
    },
    /// Two nodes held the right to lead at the same instant.
    #[error("node {node} leads with epoch {epoch} while node {other} still does, for {left_ns} ns more")]
    TwoPrimaries {
        /// Who begins.
        node: u16,
        /// With which epoch.
        epoch: u64,
        /// Who still leads.
        other: u16,
        /// How long its lease still lasts.
        left_ns: u64,
    },
    /// An epoch was used by two nodes, or by two runs of one.
    #[error("epoch {epoch} of node {other} is used again by node {node}")]
    EpochReused {
        /// Who uses it again.
        node: u16,
        /// Which one.
        epoch: u64,
        /// Who had it.
        other: u16,
    },
    /// A clone counts as its node although the node lives.
    #[error("process {clone}, a clone, counts as its node at another node, and all nodes live")]
    CloneTaken {
        /// The clone.
        clone: u16,
    },
    /// A node begins to lead although all that happened is that a clone of a node is there.
    #[error("node {node} begins to lead because of a clone of a node, and all nodes live")]
    Displaced {
        /// Who leads.
        node: u16,
    },
    /// A node accepted, dispatched or acknowledged without the right to lead.
    #[error("node {node} {action} without a lease")]
    NoLease {
        /// Who.
        node: u16,
        /// What it did.
        action: &'static str,
    },
    /// A node leads that lacks the messages, although there was one that had them.
    #[error("node {node} leads without the messages of the leader before it, although only one host had died")]
    Cold {
        /// Who leads.
        node: u16,
    },
    /// A control commit was answered, and the new Primary does not have it.
    #[error("the control commit at {position} was answered, and node {node} leads without it")]
    ControlLost {
        /// Who leads.
        node: u16,
        /// Which one.
        position: u64,
    },
    /// A subscriber's own account of its losses is not what it lost.
    #[error("{stream}: subscriber {subscriber} told {told} losses and has {lost}")]
    LossesToldWrong {
        /// Whose messages.
        stream: StreamName,
        /// Whose account.
        subscriber: u16,
        /// What it told.
        told: u64,
        /// What it lost.
        lost: u64,
    },
    /// At the end, with all faults over for long, a message is neither delivered nor given up.
    #[error("{stream}: {missing} messages from {first} on have not reached subscriber {subscriber}, and nobody says why")]
    Unaccounted {
        /// Whose messages.
        stream: StreamName,
        /// Who misses them.
        subscriber: u16,
        /// The first one.
        first: u64,
        /// How many.
        missing: u64,
    },
    /// An event whose requester was told that it is safe never reached a required subscriber.
    #[error("requester {requester}: event {request} was answered, and subscriber {subscriber} never received it")]
    AnsweredLost {
        /// Whose event.
        requester: u16,
        /// Who misses it.
        subscriber: u16,
        /// Which one.
        request: u64,
    },
    /// A subscriber received an event of a requester twice, or after a later one.
    #[error("requester {requester}: subscriber {subscriber} received event {request} after event {last}")]
    RequestOrder {
        /// Whose event.
        requester: u16,
        /// Who received it.
        subscriber: u16,
        /// Which one.
        request: u64,
        /// The last one before it.
        last: u64,
    },
    /// A Backup has got on the replica channel what cannot be.
    #[error("node {node} on the replica channel: {error}")]
    Channel {
        /// Who got it.
        node: u16,
        /// What is wrong.
        error: BackupError,
    },
    /// A client has heard what cannot be.
    #[error("{what}")]
    Contradiction {
        /// What.
        what: &'static str,
    },
    /// The cloud did not come back in its time.
    #[error("{what}, {within_ns} ns behind the end of its cause")]
    Stuck {
        /// What is missing, or did not happen.
        what: String,
        /// In which time.
        within_ns: u64,
    },
}

/// A broken promise and when it was seen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {} ns, {broken}", at.0)]
pub struct Violation {
    /// True time.
    pub at: Time,
    /// Which promise.
    pub broken: Broken,
}
