//! The real-time broker as a pure machine: what is published, who hears it, and what a slow subscriber loses.
//!
//! [`Shard::publish`] and [`Shard::step`] take everything that can happen and write everything they want done into a buffer of
//! the caller's.
//! There is no socket, clock or thread here; the host owns those and the bytes.

mod clock;
mod delivery;
mod epoch;
mod event;
mod lease;
pub mod member;
pub mod publisher;
mod session;
mod shard;
pub mod subscriber;
mod subscription;
mod time;
pub mod timing;
pub mod topic;
pub mod wire;

pub use crate::{
    clock::{ClockExchange, ClockOffset, ClockWatch},
    delivery::{Circuit, Delivery, DeliveryPolicy, Outcome, RETRY_AFTER_MAX, Verdict},
    epoch::{Epoch, Node},
    event::{EventId, EventIdError, Incarnation, PublisherId, Sequence, TopicId},
    shard::{Input, Offer, Output, Shard, ShardError, ShardLimits, TopicView},
    subscription::{Overflow, SubscriptionKey},
    time::Instant,
};
