//! The real-time broker as a pure machine: what is published, who hears it, and what a slow subscriber loses.
//!
//! [`Shard::publish`] and [`Shard::step`] take everything that can happen and write everything they want done into a buffer of
//! the caller's.
//! There is no socket, clock or thread here; the host owns those and the bytes.

mod backup;
mod clock;
mod delivery;
mod edf;
mod epoch;
mod event;
mod few;
pub mod graph;
mod lease;
pub mod member;
mod names;
pub mod publisher;
mod replication;
mod session;
mod shard;
mod slot;
mod stream;
mod streams;
pub mod subscriber;
mod subscription;
mod terms;
mod time;
pub mod timing;
pub mod topic;
mod topics;
pub mod wire;

pub use crate::{
    backup::{Backup, BackupError, Outlived, Promotion},
    clock::{ClockExchange, ClockOffset, ClockWatch},
    delivery::{Circuit, Delivery, DeliveryPolicy, Outcome, RETRY_AFTER_MAX, Verdict},
    epoch::{Epoch, Node, PairId},
    event::{EventId, EventIdError, Incarnation, Numberer, PublisherId, Sequence, TopicId},
    few::Few,
    replication::{AckAhead, BackupStanding, IN_FLIGHT_MAX, ReplicationPace, ReplicationPolicy},
    shard::{
        Accepted, Attachment, Authority, Counters, Input, LAST_AFTER_MAX, LAST_AFTER_MIN, LeaderPermit, NextRefusal, Offer, OfferedEvent,
        Output, Publication, Refusal, SEQUENCE_GAP_MAX, Shard, ShardError, ShardLimits, ShedReason, TopicView, Work,
    },
    slot::SlotId,
    stream::{StreamId, StreamIdentity},
    subscription::{Overflow, SubscriptionKey, Wanted},
    terms::Terms,
    time::Instant,
};
