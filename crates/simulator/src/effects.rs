//! What processes want done, and what an observer sees of them.

use bodkin_broker::{
    BackupError, Epoch, Instant,
    wire::{Record, RefusalReason},
};

use crate::{network::ProcessId, packet::Packet, violation::StreamName};

/// Effects of one step of one process, in order. Buffers are kept.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// What it sends, and to whom.
    pub sends: Vec<(ProcessId, Packet)>,
    /// What the member wants on the disk.
    pub persist: Option<Record>,
    /// Control operations up to this position of the channel are to be on the disk.
    pub sync: Option<u64>,
    /// A node has begun to take over, which takes a while.
    pub takes_over: bool,
    /// Connections that it closes, because nothing has come for too long.
    pub resets: Vec<ProcessId>,
    /// Connections that it closes after what it has sent on them; it counts them as closed.
    pub closes: Vec<ProcessId>,
    /// What is seen of it.
    pub facts: Vec<Fact>,
}

/// What an observer who sees everything notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A publisher took a message over.
    Created {
        /// On which stream.
        stream: StreamName,
        /// Which one.
        sequence: u64,
    },
    /// A publisher was told that it need not keep its messages up to here.
    Covered {
        /// Of which stream.
        stream: StreamName,
        /// The last one.
        through: u64,
    },
    /// A broker calls a message excess, and promises nothing of it.
    Excess {
        /// Of which stream.
        stream: StreamName,
        /// Which one.
        sequence: u64,
    },
    /// A publisher was told that a message is refused for good.
    NotTaken {
        /// Of which stream.
        stream: StreamName,
        /// Which one.
        sequence: u64,
        /// Why.
        reason: RefusalReason,
    },
    /// A publisher that keeps its newest messages only has dropped one that was not covered.
    Dropped {
        /// Of which stream.
        stream: StreamName,
        /// Which one.
        sequence: u64,
    },
    /// A broker dropped a message in front of its dispatch.
    Shed {
        /// Of which stream.
        stream: StreamName,
        /// Which one.
        sequence: u64,
    },
    /// A requester was told that its event is safe.
    RequestAnswered {
        /// Which requester.
        requester: u16,
        /// Which of its events.
        request: u64,
    },
    /// A subscriber's application got an event of a requester.
    RequestDelivered {
        /// Which subscriber.
        subscriber: u16,
        /// On which topic.
        topic: u16,
        /// Whose.
        requester: u16,
        /// Which of its events.
        request: u64,
    },
    /// A subscriber's application got a message.
    Delivered {
        /// Which subscriber.
        subscriber: u16,
        /// Of which stream.
        stream: StreamName,
        /// Which one.
        sequence: u64,
        /// Whether its bytes are its own.
        is_whole: bool,
    },
    /// A subscriber's application was told of losses.
    Told {
        /// Which subscriber.
        subscriber: u16,
        /// Of which stream.
        stream: StreamName,
        /// The first one.
        from: u64,
        /// How many.
        losses: u64,
    },
    /// A node leads until its clock shows this.
    Leads {
        /// The node's process, or its clone.
        process: ProcessId,
        /// Its run.
        run: u32,
        /// Its epoch.
        epoch: Epoch,
        /// The end of its lease.
        until: Instant,
    },
    /// A node stops leading.
    Fenced {
        /// The node's process, or its clone.
        process: ProcessId,
    },
    /// A node takes a clone for another node.
    TookClone {
        /// The clone.
        process: ProcessId,
    },
    /// A node does what only a leader may do.
    Acts {
        /// The node's process, or its clone.
        process: ProcessId,
        /// What.
        action: &'static str,
    },
    /// A Backup has got on the replica channel what cannot be.
    ChannelBroken {
        /// The node's process, or its clone.
        process: ProcessId,
        /// What is wrong.
        error: BackupError,
    },
    /// A client has heard what cannot be.
    Contradiction {
        /// What.
        what: &'static str,
    },
    /// A control commit was answered.
    Answered {
        /// Its position.
        position: u64,
        /// Digest of everything through it.
        digest: u64,
    },
    /// A node begins to lead with the control state that it has.
    TookOver {
        /// The node's process, or its clone.
        process: ProcessId,
        /// Whether it has the messages of the leader before it.
        is_warm: bool,
    },
}
