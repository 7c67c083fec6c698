//! What goes into a shard and what comes out of it.

use std::time::Duration;

use crate::{
    epoch::Epoch,
    event::{EventId, Sequence},
    replication::BackupStanding,
    slot::SlotId,
    stream::StreamId,
    subscription::SubscriptionKey,
    time::Instant,
    wire::{Position, StreamNumber},
};

/// What can happen to a subscription, or to the right to lead. That an event is published is a call of its own ([`Shard::publish`](super::Shard::publish),
/// [`Shard::accept`](super::Shard::accept)), for it can be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Bytes of a subscription's queue were handed over for good.
    Sent {
        /// Whose queue.
        subscription: SubscriptionKey,
        /// How many, in the sizes [`Offer`](super::Offer) gave.
        bytes: u64,
    },
    /// A subscription reads the event log from now on.
    FallBehind {
        /// Which one; one that is behind already, or gone, is no error.
        subscription: SubscriptionKey,
    },
    /// A subscription that was behind is back in the present.
    CatchUp {
        /// Which one; one that is gone is no error.
        subscription: SubscriptionKey,
        /// What the host has put into its queue meanwhile.
        bytes: u64,
    },
    /// A subscription has ended, a required one too.
    Unsubscribe {
        /// Which one; one that is gone already is no error.
        subscription: SubscriptionKey,
    },
    /// A required subscription has lost its session, and is waited for.
    Detached {
        /// Which one; one that is gone is no error.
        subscription: SubscriptionKey,
    },
    /// A required subscription has everything of a stream up to here.
    Delivered {
        /// Which one; one that is gone, or no longer required, is no error.
        subscription: SubscriptionKey,
        /// Of which stream; one that is closed is no error.
        stream: StreamId,
        /// The last event.
        through: Sequence,
    },
    /// Everything of a stream up to here has left the kernel's send queues to all subscribers of its topic. Only topics whose terms say so
    /// ([`Terms::emptied_covers`](crate::Terms::emptied_covers)) count that, and only what was dispatched.
    Emptied {
        /// Of which stream; one that is closed is no error.
        stream: StreamId,
        /// The last event.
        through: Sequence,
    },
    /// A publisher sends again what it keeps, in order, and then what is new.
    Resumed {
        /// Its stream; one that is closed is no error.
        stream: StreamId,
        /// The oldest that it keeps.
        from: Sequence,
        /// The newest that it has published; in front of `from` if it keeps nothing.
        to: Sequence,
    },
    /// A publisher will not resend a refused event: later events of the stream do not wait for it.
    GivenUp {
        /// Its stream; one that is closed is no error.
        stream: StreamId,
        /// Which event; one that nothing waits for is no error.
        sequence: Sequence,
    },
    /// The member has said until when this node leads; a time that has passed fences it. In another epoch than before required subscriptions that have a
    /// session are brought again what they have not acknowledged: clients are told of the epoch behind this, and in front of the next [work](super::Shard::next).
    Authority(Authority),
    /// The Backup stands differently. [`BackupStanding::CatchingUp`] begins a session of the replica link, and [`BackupStanding::Joining`] does where none
    /// has begun.
    Backup(BackupStanding),
}

/// The right to lead: publications are accepted, dispatched and covered until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    /// In which epoch.
    pub epoch: Epoch,
    /// Until when, by the clock that `now` is read from.
    pub until: Instant,
}

impl Authority {
    /// That of a node without a pair.
    pub const ALONE: Self = Self { epoch: Epoch::NONE, until: Instant::NEVER };
}

/// An event of a real-time stream, as its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The highest epoch that the publisher knows; [`Epoch::NONE`] from one that takes no part in them.
    pub epoch: Epoch,
    /// Its place in the stream.
    pub sequence: Sequence,
    /// When it was created, by this node's clock: the header's UTC less the host's `utc_minus_local`.
    pub created: Instant,
    /// The publisher sends it again.
    pub is_resent: bool,
    /// The publisher's clock is known to differ by more than deadlines were admitted with: they are counted from the arrival, and the longest way
    /// before it, and not from `created`.
    pub has_wrong_clock: bool,
}

/// What became of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is kept: the host stores its bytes under this slot until [`Output::Freed`].
    Kept {
        /// Where.
        slot: SlotId,
        /// It came faster than its topic may: best effort, and never covered. The publisher is to be told.
        is_excess: bool,
    },
    /// It is there or done with. The publisher is told again how far it is covered.
    Known,
}

/// Everything a shard wants done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Append the event of this step to the subscription's queue.
    Deliver {
        /// Whose queue.
        subscription: SubscriptionKey,
        /// Which event.
        event: EventId,
    },
    /// Tell the subscriber, behind what is queued, that it has to read the event log, from the event of this step on if that
    /// has filled its queue, else from the next one.
    FellBehind {
        /// Who.
        subscription: SubscriptionKey,
    },
    /// Tell the subscriber, behind what is queued, that events were lost because its queue was full.
    TellLoss {
        /// Who lost.
        subscription: SubscriptionKey,
        /// How many events in a row.
        events: u64,
        /// From the first lost event until now.
        during: Duration,
    },
    /// Tell the subscriber, behind what is queued, that this is the last event of its stream so far: it was dropped in front of its dispatch, and no later event has shown
    /// that for a while. Who has been told so before may be told again.
    TellLast {
        /// Whom.
        subscription: SubscriptionKey,
        /// Which event.
        event: EventId,
    },
    /// The subscription is not required any more: it was away or silent for longer than it is waited for. Tell it and the operator.
    NotRequired {
        /// Which one; without a session it is gone.
        subscription: SubscriptionKey,
        /// Events that were kept for it, and that it has not acknowledged.
        owed: u64,
    },
    /// An event is dropped in front of its dispatch: count it, and tell its publisher.
    Shed {
        /// Of which stream.
        stream: StreamId,
        /// Which one.
        sequence: Sequence,
        /// Where its bytes are kept, until they are freed.
        slot: SlotId,
        /// Why.
        reason: ShedReason,
    },
    /// Tell the publisher that every event up to here is covered or needs no cover.
    Covered {
        /// Of which stream.
        stream: StreamId,
        /// The last one.
        through: Sequence,
    },
    /// The bytes of this slot are needed no more.
    Freed {
        /// Which one.
        slot: SlotId,
    },
    /// The stream is over, with everything of it told.
    Closed {
        /// Which one.
        stream: StreamId,
        /// The number that it had on the replica link.
        number: Option<StreamNumber>,
    },
    /// On the replica channel: from now on the stream has this number.
    Declare {
        /// Which stream.
        stream: StreamId,
        /// Its number.
        number: StreamNumber,
    },
    /// On the replica channel: what the Backup has of this stream up to here is not needed.
    Discard {
        /// The stream.
        number: StreamNumber,
        /// The last one.
        through: Sequence,
    },
    /// The Backup has acknowledged a control operation: its commit may be answered.
    Replicated {
        /// The caller's number of it.
        operation: u64,
    },
    /// The Backup has a checkpoint of a graph.
    Arrived {
        /// The caller's number of it.
        checkpoint: u64,
    },
    /// The joining Backup has everything: it is [`BackupStanding::Settling`], and once the witness knows, [`BackupStanding::InSync`].
    CaughtUp,
}

/// Why an event is not dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShedReason {
    /// Its deadline had passed, and its topic drops what is late.
    Late,
    /// It came faster than its topic may, and the next one that did not had to go first.
    Excess,
}

/// A piece of work, to be carried out before the next one is asked for: its slot is not freed before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Hand an event to the subscribers that the outputs name.
    Dispatch {
        /// Its bytes.
        slot: SlotId,
        /// Its stream.
        stream: StreamId,
        /// Which event.
        event: EventId,
        /// When it was created, by this node's clock.
        created: Instant,
        /// It was due before now.
        is_late: bool,
    },
    /// Send a replica on the channel, behind what the outputs say.
    Replicate {
        /// Its bytes.
        slot: SlotId,
        /// Its place in the channel.
        position: Position,
        /// Its stream's number there.
        number: StreamNumber,
        /// Which event.
        event: EventId,
        /// When it was created, by this node's clock.
        created: Instant,
    },
    /// Send the end of what a joining Backup was to be given.
    EndSnapshot {
        /// Its place in the channel.
        position: Position,
    },
}

/// Why a subscription or topic was not made, or an event not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// [`ShardLimits::subscriptions_max`](super::ShardLimits::subscriptions_max) are there.
    #[error("there are {0} subscriptions, which is the limit")]
    Subscriptions(usize),
    /// [`ShardLimits::topics_max`](super::ShardLimits::topics_max) are there.
    #[error("there are {0} event types, which is the limit")]
    Topics(usize),
    /// So many pairs of publisher and topic are there.
    #[error("there are {0} pairs of publisher and event type, which is the limit")]
    Streams(usize),
    /// So many publishers have streams on the topic, former ones included whose events are not received yet.
    #[error(
        "the topic keeps streams of {0} publishers, former ones included until their events are received: declare it with more publishers"
    )]
    Publishers(usize),
    /// Events of so many earlier runs of the publisher are not delivered yet.
    #[error("events of {0} earlier runs of this publisher are not delivered yet, which is the limit: publish again later")]
    Runs(usize),
    /// This node does not lead, or not any more.
    #[error("this node does not lead: publish to the one that does")]
    NotLeading,
}

/// Why an event of a real-time stream was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// This node does not lead, or not any more.
    #[error("this node does not lead: publish to the one that does")]
    NotLeading,
    /// The publisher knows another epoch.
    #[error("the publisher knows epoch {found}, this node leads in {epoch}: publish to the node that leads in the higher one")]
    Epoch {
        /// The publisher's.
        found: Epoch,
        /// Ours.
        epoch: Epoch,
    },
    /// The stream is closed.
    #[error("the stream is closed: open it again")]
    Stream,
    /// Sequences begin with 1 and go up by less than [`SEQUENCE_GAP_MAX`](super::SEQUENCE_GAP_MAX).
    #[error("sequence {found} behind {last}: sequences begin with 1 and go up")]
    Sequence {
        /// The event's.
        found: u64,
        /// The last one of the stream.
        last: u64,
    },
    /// The stream keeps as many events as it may, none of which its required subscribers or the Backup have let go; or an earlier event of it was refused
    /// for that, or because this node did not lead, and has to come first. A publisher that has given it up says so ([`Input::Resumed`]).
    #[error("the stream keeps {kept} events and has refused some: send again from sequence {} on in {retry_after_ns} ns", from.0)]
    Full {
        /// How many.
        kept: u32,
        /// The first event that was refused.
        from: Sequence,
        /// When to send it again.
        retry_after_ns: u64,
    },
}
