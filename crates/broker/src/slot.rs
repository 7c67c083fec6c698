//! Slots: where kept messages are. Their bytes stay with the host, in a table that is indexed alike.

use crate::{event::Sequence, time::Instant};

/// No slot, no stream: the end of a list.
pub(crate) const NONE: u32 = u32::MAX;

/// Names a kept message; a freed one's name is not valid for its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl SlotId {
    /// Place in the host's table of bytes, from 0; below [`Shard::slots_max`](crate::Shard::slots_max) or the Backup's.
    pub fn index(self) -> usize {
        self.index as usize
    }
}

/// What the machine knows of a kept message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Message {
    /// Index of its stream.
    pub stream: u32,
    pub sequence: Sequence,
    /// By the own clock, within what the topic's latencies allow.
    pub created: Instant,
    /// Latest start of its dispatch; not later than that of any message behind it in the stream.
    pub dispatch_by: Instant,
    /// Neighbours in the stream.
    pub previous: u32,
    pub next: u32,
    /// Chosen for replication.
    pub is_mark: bool,
    /// Came faster than the topic's period: best effort.
    pub is_excess: bool,
    /// Handed to the subscribers that were there, or dropped.
    pub is_dispatched: bool,
    /// Dropped in front of its dispatch, and told so.
    pub is_shed: bool,
}

impl Message {
    /// A message that is neither marked nor dispatched, to be put into its stream.
    pub fn new(stream: u32, sequence: Sequence, created: Instant, dispatch_by: Instant) -> Self {
        let (is_mark, is_excess, is_dispatched, is_shed) = (false, false, false, false);
        Self { stream, sequence, created, dispatch_by, previous: NONE, next: NONE, is_mark, is_excess, is_dispatched, is_shed }
    }
}

/// All slots. Nothing is allocated behind [`Slots::reserve`], and memory that was never needed is never touched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Slots {
    slots: Vec<(u32, Option<Message>)>,
    free: Vec<u32>,
    count_max: usize,
}

impl Slots {
    /// Makes room for so many messages more.
    pub fn reserve(&mut self, messages: usize) {
        self.count_max += messages;
        assert!(self.count_max < NONE as usize, "{} slots are more than can be named", self.count_max);
        self.slots.reserve(self.count_max - self.slots.len());
        self.free.reserve(self.count_max - self.free.len());
    }

    /// Returns true if so many messages more can be named, and there is memory for them.
    pub fn can_reserve(&mut self, messages: usize) -> bool {
        let count_max = self.count_max.saturating_add(messages);
        count_max < NONE as usize
            && self.slots.try_reserve(count_max - self.slots.len()).is_ok()
            && self.free.try_reserve(count_max - self.free.len()).is_ok()
    }

    /// How many messages there is room for.
    pub fn count_max(&self) -> usize {
        self.count_max
    }

    /// Keeps a message. There is room: every stream's share was reserved when it was opened.
    pub fn insert(&mut self, message: Message) -> SlotId {
        let index = self.free.pop().unwrap_or_else(|| {
            assert!(self.slots.len() < self.count_max, "a stream keeps no more than was reserved for it");
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        let (generation, slot) = &mut self.slots[index as usize];
        *slot = Some(message);
        SlotId { index, generation: *generation }
    }

    pub fn remove(&mut self, index: u32) -> (SlotId, Message) {
        let (generation, slot) = &mut self.slots[index as usize];
        let id = SlotId { index, generation: *generation };
        *generation = generation.wrapping_add(1);
        self.free.push(index);
        (id, slot.take().expect("the slot holds a message"))
    }

    pub fn id(&self, index: u32) -> SlotId {
        SlotId { index, generation: self.slots[index as usize].0 }
    }

    pub fn at(&self, index: u32) -> &Message {
        self.slots[index as usize].1.as_ref().expect("the slot holds a message")
    }

    pub fn at_mut(&mut self, index: u32) -> &mut Message {
        self.slots[index as usize].1.as_mut().expect("the slot holds a message")
    }

    /// Messages that are kept.
    pub fn kept(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
