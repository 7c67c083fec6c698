//! A subscription's queue account: how much is under way, and what was lost.

use std::{num::NonZeroU64, time::Duration};

use crate::{
    event::{EventId, TopicId},
    slot::SlotId,
    time::Instant,
};

/// Names a subscription of a shard; a removed one's key is not valid for its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionKey {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl SubscriptionKey {
    /// Small number of the subscription in its shard, from 0; that of a removed one goes to a successor.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// What a full queue costs a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// Events, until it has read half of the queue; it is told how many.
    Loses,
    /// The present: it falls behind, is offered nothing, and reads the event log until it has caught up.
    FallsBehind,
}

/// An event that a receiver is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedEvent {
    /// Which one.
    pub id: EventId,
    /// Where the host keeps its bytes. `None`: it is the best-effort event that is being published.
    pub slot: Option<SlotId>,
}

/// What a receiver says to an event that it is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The event is not for it.
    No,
    /// It takes the event, which takes so many bytes of the subscription's queue.
    Bytes(u64),
    /// The event is for it, and what it shares with other subscriptions (a connection) has no room. When there is some again, the host says so by
    /// [`Input::Sent`](crate::Input::Sent), of no bytes if none of this subscription's were under way.
    Full,
}

/// Asks a receiver what it says to an event.
pub type Offer<'o, R> = dyn FnMut(&R, OfferedEvent) -> Wanted + 'o;

/// What became of an offered event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offered {
    Queued,
    Lost,
    /// The queue is full: neither this event nor a later one is queued until the subscription has caught up.
    FellBehind,
    /// It is not for this receiver, or it is not asked at present.
    NotForIt,
}

/// A subscription that messages wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Required {
    /// How long.
    pub wait_ns: u64,
    /// When it last came, or said that it has something.
    pub heard_at: Instant,
    /// Whether it has a session.
    pub is_there: bool,
    /// Its queue was full: it is offered nothing until half of it is read, and then what has been kept for it.
    pub is_full: bool,
    /// Events are kept for it, and its word alone covers none that others hear.
    pub only_keeps: bool,
}

/// A subscriber that overflows and has no log to read loses events until it has read half of its queue, and is told how many then: so the
/// loss has one place in the order, behind what was queued before it and in front of what comes after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subscription<R> {
    pub topic: TopicId,
    /// Where the topic's list has it.
    pub place: u32,
    pub receiver: R,
    /// What waits for it, of a real-time topic only.
    pub required: Option<Required>,
    overflow: Overflow,
    capacity_bytes: u64,
    queued_bytes: u64,
    loss: Option<Loss>,
    is_behind: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Loss {
    events: NonZeroU64,
    since: Instant,
}

impl<R> Subscription<R> {
    pub fn new(topic: TopicId, place: usize, receiver: R, overflow: Overflow, capacity_bytes: u64) -> Self {
        let place = u32::try_from(place).expect("a topic has fewer subscriptions than 2^32");
        Self { topic, place, receiver, required: None, overflow, capacity_bytes, queued_bytes: 0, loss: None, is_behind: false }
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

    /// Offers an event of which this receiver may lose some.
    pub fn offer(&mut self, now: Instant, event: OfferedEvent, offer: &mut Offer<'_, R>) -> Offered {
        if self.is_behind {
            return Offered::NotForIt;
        }
        let wanted = offer(&self.receiver, event);
        if let Some(loss) = self.loss.as_mut().filter(|_| wanted != Wanted::No) {
            loss.events = loss.events.saturating_add(1);
            return Offered::Lost;
        }
        match wanted {
            Wanted::No => return Offered::NotForIt,
            Wanted::Bytes(bytes) if self.queue(bytes) => return Offered::Queued,
            Wanted::Bytes(_) | Wanted::Full => {}
        }
        match self.overflow {
            Overflow::Loses => {
                self.loss = Some(Loss { events: NonZeroU64::MIN, since: now });
                Offered::Lost
            }
            Overflow::FallsBehind => {
                self.is_behind = true;
                Offered::FellBehind
            }
        }
    }

    /// Offers an event that is kept until this receiver has it.
    pub fn offer_kept(&mut self, event: OfferedEvent, offer: &mut Offer<'_, R>) -> Offered {
        match offer(&self.receiver, event) {
            Wanted::No => Offered::NotForIt,
            Wanted::Bytes(bytes) if self.queue(bytes) => Offered::Queued,
            Wanted::Bytes(_) | Wanted::Full => Offered::FellBehind,
        }
    }

    /// Takes an event of this size into the queue; false if it is too full. An empty one takes any event, so that one larger than the queue
    /// is not lost for ever.
    fn queue(&mut self, bytes: u64) -> bool {
        let has_room = self.queued_bytes == 0 || self.queued_bytes + bytes <= self.capacity_bytes;
        if has_room {
            self.queued_bytes += bytes;
        }
        has_room
    }

    /// Notes that bytes have left the queue; gives the loss that is to be told now.
    pub fn sent(&mut self, now: Instant, bytes: u64) -> Option<(u64, Duration)> {
        assert!(bytes <= self.queued_bytes, "{bytes} bytes were sent of {} queued ones", self.queued_bytes);
        self.queued_bytes -= bytes;
        if !self.is_half_read() {
            return None;
        }
        self.loss.take().map(|loss| (loss.events.get(), now.since(loss.since)))
    }

    /// Events that its full queue has cost it and that it was not told yet.
    pub fn untold_loss(&self) -> u64 {
        self.loss.as_ref().map_or(0, |loss| loss.events.get())
    }

    /// Whether the queue has room for more than a trickle.
    pub fn is_half_read(&self) -> bool {
        self.queued_bytes <= self.capacity_bytes / 2
    }

    /// What was under way has gone with its session.
    pub fn forget_queue(&mut self) {
        (self.queued_bytes, self.loss) = (0, None);
    }
}

/// A shard's subscriptions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subscriptions<R> {
    slots: Vec<(u32, Option<Subscription<R>>)>,
    free: Vec<u32>,
}

impl<R> Default for Subscriptions<R> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<R> Subscriptions<R> {
    pub fn insert(&mut self, subscription: Subscription<R>) -> SubscriptionKey {
        if let Some(index) = self.free.pop() {
            let (generation, slot) = &mut self.slots[index as usize];
            *slot = Some(subscription);
            return SubscriptionKey { index, generation: *generation };
        }
        let index = u32::try_from(self.slots.len()).expect("there are fewer subscriptions than 2^32");
        self.slots.push((0, Some(subscription)));
        SubscriptionKey { index, generation: 0 }
    }

    pub fn remove(&mut self, key: SubscriptionKey) -> Option<Subscription<R>> {
        self.get(key)?;
        let (generation, slot) = &mut self.slots[key.index as usize];
        *generation = generation.wrapping_add(1);
        self.free.push(key.index);
        slot.take()
    }

    pub fn get(&self, key: SubscriptionKey) -> Option<&Subscription<R>> {
        let (generation, slot) = self.slots.get(key.index as usize)?;
        slot.as_ref().filter(|_| *generation == key.generation)
    }

    pub fn get_mut(&mut self, key: SubscriptionKey) -> Option<&mut Subscription<R>> {
        let (generation, slot) = self.slots.get_mut(key.index as usize)?;
        slot.as_mut().filter(|_| *generation == key.generation)
    }

    /// The subscription of a topic's list.
    pub fn heard(&mut self, key: SubscriptionKey) -> &mut Subscription<R> {
        self.get_mut(key).expect("a topic's subscriptions are there")
    }

    /// The key of the subscription that is there at an index.
    pub fn key(&self, index: u32) -> SubscriptionKey {
        SubscriptionKey { index, generation: self.slots[index as usize].0 }
    }

    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// One more than the highest index.
    pub fn indexes(&self) -> usize {
        self.slots.len()
    }
}
