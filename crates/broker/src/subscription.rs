//! A subscription's queue account: how much is under way, and what was lost.

use std::time::Duration;

use crate::{event::TopicId, time::Instant};

/// Names a subscription of a shard; a removed one's key is not valid for its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionKey {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// A subscriber that overflows loses events until it has read half of its queue, and is told how many then: so the
/// loss has one place in the order, behind what was queued before it and in front of what comes after it.
#[derive(Debug)]
pub(crate) struct Subscription<R> {
    pub topic: TopicId,
    /// Where the topic's list has it.
    pub place: usize,
    pub receiver: R,
    capacity_bytes: u64,
    queued_bytes: u64,
    loss: Option<Loss>,
}

#[derive(Debug)]
struct Loss {
    events: u64,
    since: Instant,
}

impl<R> Subscription<R> {
    pub fn new(topic: TopicId, place: usize, receiver: R, capacity_bytes: u64) -> Self {
        Self { topic, place, receiver, capacity_bytes, queued_bytes: 0, loss: None }
    }

    /// Takes an event of this size into the queue, or counts it as lost.
    pub fn offer(&mut self, now: Instant, bytes: u64) -> bool {
        if let Some(loss) = &mut self.loss {
            loss.events += 1;
            return false;
        }
        // An empty queue takes any event, so that one larger than the queue is not lost for ever.
        if self.queued_bytes > 0 && self.queued_bytes + bytes > self.capacity_bytes {
            self.loss = Some(Loss { events: 1, since: now });
            return false;
        }
        self.queued_bytes += bytes;
        true
    }

    /// Notes that bytes have left the queue; gives the loss that is to be told now.
    pub fn sent(&mut self, now: Instant, bytes: u64) -> Option<(u64, Duration)> {
        assert!(bytes <= self.queued_bytes, "{bytes} bytes were sent of {} queued ones", self.queued_bytes);
        self.queued_bytes -= bytes;
        if self.queued_bytes > self.capacity_bytes / 2 {
            return None;
        }
        self.loss.take().map(|loss| (loss.events, now.since(loss.since)))
    }
}
