//! A subscription's queue account: how much is under way, and what was lost.

use std::time::Duration;

use crate::{event::TopicId, time::Instant};

/// Names a subscription of a shard; a removed one's key is not valid for its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionKey {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// What a full queue costs a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Events, until it has read half of the queue; it is told how many.
    Loses,
    /// The present: it falls behind, is offered nothing, and reads the event log until it has caught up.
    FallsBehind,
}

/// What became of an offered event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    Queued,
    Lost,
    /// The queue is full: neither this event nor a later one is queued until the subscription has caught up.
    FellBehind,
}

/// A subscriber that overflows and has no log to read loses events until it has read half of its queue, and is told how many then: so the
/// loss has one place in the order, behind what was queued before it and in front of what comes after it.
#[derive(Debug)]
pub(crate) struct Subscription<R> {
    pub topic: TopicId,
    /// Where the topic's list has it.
    pub place: usize,
    pub receiver: R,
    overflow: Overflow,
    capacity_bytes: u64,
    queued_bytes: u64,
    loss: Option<Loss>,
    is_behind: bool,
}

#[derive(Debug)]
struct Loss {
    events: u64,
    since: Instant,
}

impl<R> Subscription<R> {
    pub fn new(topic: TopicId, place: usize, receiver: R, overflow: Overflow, capacity_bytes: u64) -> Self {
        Self { topic, place, receiver, overflow, capacity_bytes, queued_bytes: 0, loss: None, is_behind: false }
    }

    /// Whether it reads the event log and is offered nothing.
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Leaves the present; false if it had left it already.
    pub fn fall_behind(&mut self) -> bool {
        !std::mem::replace(&mut self.is_behind, true)
    }

    /// Is back in the present, with so many bytes queued that lie between the log and the next event.
    pub fn catch_up(&mut self, bytes: u64) {
        self.is_behind = false;
        self.queued_bytes += bytes;
    }

    /// Takes an event of this size into the queue, or counts it as lost, or leaves it to the event log.
    pub fn offer(&mut self, now: Instant, bytes: u64) -> Offered {
        if let Some(loss) = &mut self.loss {
            loss.events += 1;
            return Offered::Lost;
        }
        // An empty queue takes any event, so that one larger than the queue is not lost for ever.
        if self.queued_bytes == 0 || self.queued_bytes + bytes <= self.capacity_bytes {
            self.queued_bytes += bytes;
            return Offered::Queued;
        }
        match self.overflow {
            Overflow::Loses => {
                self.loss = Some(Loss { events: 1, since: now });
                Offered::Lost
            }
            Overflow::FallsBehind => {
                self.is_behind = true;
                Offered::FellBehind
            }
        }
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
