//! The table of streams, with the messages that each keeps, in order.

use crate::{
    event::{Sequence, TopicId},
    few::Few,
    slot::{Message, NONE, SlotId, Slots},
    stream::{Stream, StreamId, StreamIdentity},
};

/// A message that a stream does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// It is there, or is done with.
    Known,
    /// The stream keeps as many as it may.
    Full,
}

/// All streams of a shard or Backup, with their kept messages. Nothing is allocated but by [`Streams::open`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Streams {
    streams: Vec<Stream>,
    /// Those that are open, by topic, then in order of their publishers and runs: a topic has few.
    by_topic: Vec<Few<u32>>,
    free: Vec<u32>,
    /// Streams that keep something, in no order: what a promotion or a change of the pair has to look at.
    occupied: Vec<u32>,
    /// Messages that are neither dispatched nor dropped.
    waiting: u64,
    pub slots: Slots,
    /// Slots that closed streams have left.
    spare_slots: usize,
}

impl Streams {
    /// Returns true if there is room for a stream that may keep `capacity` messages.
    pub fn can_open(&mut self, capacity: u32) -> bool {
        self.slots.can_reserve((capacity as usize).saturating_sub(self.spare_slots))
    }

    /// Opens a stream that may keep `capacity` messages; one that is open is kept as it is.
    pub fn open(&mut self, identity: StreamIdentity, capacity: u32) -> StreamId {
        let topic = identity.topic.index();
        if topic >= self.by_topic.len() {
            self.by_topic.resize(topic + 1, Few::default());
        }
        let at = match self.place(&identity) {
            Ok(at) => return self.id(self.by_topic[topic][at]),
            Err(at) => at,
        };
        let wanted = capacity as usize;
        let missing = wanted.saturating_sub(self.spare_slots);
        self.spare_slots = self.spare_slots + missing - wanted;
        self.slots.reserve(missing);
        let index = match self.free.pop() {
            Some(index) => {
                let generation = self.streams[index as usize].generation.wrapping_add(1);
                self.streams[index as usize] = Stream::new(identity, generation, capacity);
                index
            }
            None => {
                let index = u32::try_from(self.streams.len()).expect("there are fewer streams than 2^32");
                self.streams.push(Stream::new(identity, 0, capacity));
                index
            }
        };
        self.by_topic[topic].insert(at, index);
        self.occupied.reserve(self.streams.len() - self.occupied.len());
        self.id(index)
    }

    /// Forgets an empty stream.
    pub fn close(&mut self, index: u32) -> StreamId {
        let id = self.id(index);
        let identity = self.streams[index as usize].identity;
        let at = self.place(&identity).expect("an open stream is in its topic's list");
        self.by_topic[identity.topic.index()].remove(at);
        let stream = &mut self.streams[index as usize];
        assert_eq!(stream.length, 0, "a stream is closed when it keeps nothing");
        stream.generation = stream.generation.wrapping_add(1);
        self.spare_slots += stream.capacity as usize;
        self.free.push(index);
        id
    }

    pub fn find(&self, identity: &StreamIdentity) -> Option<StreamId> {
        let at = self.place(identity).ok()?;
        Some(self.id(self.by_topic[identity.topic.index()][at]))
    }

    /// The open streams of a topic.
    pub fn of(&self, topic: TopicId) -> &[u32] {
        self.by_topic.get(topic.index()).map_or(&[], |streams| &**streams)
    }

    /// Returns the open streams of the same publisher's runs on the same topic: the earlier ones and the later ones, each in the order of their
    /// incarnations.
    pub fn other_runs(&self, index: u32) -> (&[u32], &[u32]) {
        let identity = self.at(index).identity;
        let at = self.place(&identity).expect("an open stream is in its topic's list");
        let is_other = |index: &u32| !self.at(*index).identity.is_run_of_same(&identity);
        let streams = self.of(identity.topic);
        let first = streams[..at].iter().rposition(is_other).map_or(0, |other| other + 1);
        let end = streams[at..].iter().position(is_other).map_or(streams.len(), |other| at + other);
        (&streams[first..at], &streams[at + 1..end])
    }

    /// Where the list of its topic has a stream, or would have it.
    fn place(&self, identity: &StreamIdentity) -> Result<usize, usize> {
        self.of(identity.topic).binary_search_by_key(identity, |index| self.streams[*index as usize].identity)
    }

    /// Lets a stream keep more messages.
    pub fn grow(&mut self, index: u32, capacity: u32) {
        let stream = &mut self.streams[index as usize];
        let missing = capacity.saturating_sub(stream.capacity);
        stream.capacity += missing;
        self.slots.reserve(missing as usize);
    }

    pub fn is_open(&self, index: u32) -> bool {
        self.streams.get(index as usize).is_some_and(|stream| self.find(&stream.identity).is_some_and(|found| found.index == index))
    }

    /// The index of a stream that is open.
    pub fn index(&self, id: StreamId) -> Option<u32> {
        (self.streams.get(id.index as usize)?.generation == id.generation).then_some(id.index)
    }

    /// Gives topics the numbers that another table has for them.
    pub fn renumber_topics(&mut self, mut number: impl FnMut(TopicId) -> TopicId) {
        let by_topic = std::mem::take(&mut self.by_topic);
        for (topic, streams) in (0..).map(TopicId).zip(by_topic).filter(|(_, streams)| !streams.is_empty()) {
            let topic = number(topic);
            streams.iter().for_each(|index| self.streams[*index as usize].identity.topic = topic);
            if topic.index() >= self.by_topic.len() {
                self.by_topic.resize(topic.index() + 1, Few::default());
            }
            self.by_topic[topic.index()] = streams;
        }
    }

    /// Every open stream, by topic.
    pub fn open_streams(&self) -> impl Iterator<Item = u32> {
        self.by_topic.iter().flat_map(|streams| streams.iter()).copied()
    }

    pub fn id(&self, index: u32) -> StreamId {
        StreamId { index, generation: self.streams[index as usize].generation }
    }

    /// One more than the highest index.
    pub fn count(&self) -> usize {
        self.streams.len()
    }

    pub fn at(&self, index: u32) -> &Stream {
        &self.streams[index as usize]
    }

    pub fn at_mut(&mut self, index: u32) -> &mut Stream {
        &mut self.streams[index as usize]
    }

    /// Returns the sequence up to which every event of the stream that is kept has been dispatched.
    pub fn dispatched(&self, index: u32) -> Sequence {
        let stream = self.at(index);
        if stream.cursor == NONE { stream.last } else { Sequence(self.slots.at(stream.cursor).sequence.0 - 1) }
    }

    /// Returns true if an event behind this one has been dispatched or dropped, and is kept.
    pub fn is_passed(&self, index: u32, sequence: Sequence) -> bool {
        let mut slot = self.at(index).tail;
        while slot != NONE {
            let message = self.slots.at(slot);
            if message.sequence <= sequence {
                return false;
            }
            if message.is_dispatched {
                return true;
            }
            slot = message.previous;
        }
        false
    }

    /// Keeps a message at its place in the stream.
    pub fn insert(&mut self, index: u32, mut message: Message) -> Result<SlotId, NotTaken> {
        let stream = &mut self.streams[index as usize];
        if message.sequence <= stream.released {
            return Err(NotTaken::Known);
        }
        let (mut previous, mut next) = (stream.tail, NONE);
        while previous != NONE {
            let neighbour = self.slots.at(previous);
            if neighbour.sequence < message.sequence {
                break;
            }
            if neighbour.sequence == message.sequence {
                return Err(NotTaken::Known);
            }
            (previous, next) = (neighbour.previous, previous);
        }
        if stream.length >= stream.capacity {
            return Err(NotTaken::Full);
        }
        if stream.length == 0 {
            stream.place = self.occupied.len() as u32;
            self.occupied.push(index);
        }
        stream.length += 1;
        self.waiting += 1;
        stream.last = stream.last.max(message.sequence);
        (message.previous, message.next) = (previous, next);
        let sequence = message.sequence;
        let slot = self.slots.insert(message);
        match previous {
            NONE => stream.head = slot.index,
            previous => self.slots.at_mut(previous).next = slot.index,
        }
        match next {
            NONE => stream.tail = slot.index,
            next => self.slots.at_mut(next).previous = slot.index,
        }
        if stream.cursor == NONE || sequence < self.slots.at(stream.cursor).sequence {
            stream.cursor = slot.index;
        }
        Ok(slot)
    }

    /// Notes that the message at the cursor is dispatched or dropped, and goes on to the next one that is not.
    pub fn advance_cursor(&mut self, index: u32) {
        let stream = &mut self.streams[index as usize];
        let message = self.slots.at_mut(stream.cursor);
        message.is_dispatched = true;
        self.waiting -= 1;
        stream.cursor = message.next;
        while stream.cursor != NONE && self.slots.at(stream.cursor).is_dispatched {
            stream.cursor = self.slots.at(stream.cursor).next;
        }
    }

    /// Lets the first kept message go; everything up to it is done with.
    pub fn release_head(&mut self, index: u32) -> SlotId {
        if self.streams[index as usize].cursor == self.streams[index as usize].head {
            self.advance_cursor(index);
        }
        let stream = &mut self.streams[index as usize];
        let (slot, message) = self.slots.remove(stream.head);
        stream.head = message.next;
        stream.length -= 1;
        stream.released = message.sequence;
        match message.next {
            NONE => stream.tail = NONE,
            next => self.slots.at_mut(next).previous = NONE,
        }
        if stream.length == 0 {
            let place = stream.place;
            self.occupied.swap_remove(place as usize);
            if let Some(&moved) = self.occupied.get(place as usize) {
                self.streams[moved as usize].place = place;
            }
        }
        slot
    }

    /// Messages that are neither dispatched nor dropped.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// The streams that keep something. Whoever goes through them from the last on may release what they keep meanwhile.
    pub fn occupied(&self) -> &[u32] {
        &self.occupied
    }

    /// The first kept message.
    pub fn head(&self, index: u32) -> Option<&Message> {
        let head = self.streams[index as usize].head;
        (head != NONE).then(|| self.slots.at(head))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        event::{Incarnation, PublisherId},
        time::Instant,
    };

    fn identity(publisher: u64) -> StreamIdentity {
        StreamIdentity { topic: TopicId(0), publisher: PublisherId(publisher), incarnation: Incarnation(1) }
    }

    fn message(stream: u32, sequence: u64) -> Message {
        Message::new(stream, Sequence(sequence), Instant::NEVER, Instant::NEVER)
    }

    fn kept(streams: &Streams, index: u32) -> Vec<u64> {
        let mut kept = Vec::new();
        let mut slot = streams.at(index).head;
        while slot != NONE {
            kept.push(streams.slots.at(slot).sequence.0);
            slot = streams.slots.at(slot).next;
        }
        kept
    }

    #[test]
    fn a_closed_streams_name_and_slots_are_its_successors() {
        let mut streams = Streams::default();
        let first = streams.open(identity(1), 3);
        assert_eq!(streams.open(identity(1), 3), first);
        streams.close(first.index);
        let second = streams.open(identity(2), 2);
        assert_eq!((streams.index(first), streams.index(second), second.index), (None, Some(0), 0));
        assert_eq!((streams.slots.count_max(), streams.is_open(0)), (3, true));
        streams.open(identity(3), 2);
        assert_eq!(streams.slots.count_max(), 4);
    }

    proptest! {
        /// Messages in any order: the list is sorted, holds each once and no more than it may, and the cursor is the first that is not dispatched.
        #[test]
        fn a_stream_is_a_sorted_list(script in prop::collection::vec((0u8..5, 1u64..40), 1..200)) {
            let mut streams = Streams::default();
            let index = streams.open(identity(1), 6).index;
            let (mut model, mut released): (Vec<(u64, bool)>, u64) = (Vec::new(), 0);
            for (action, sequence) in script {
                match action {
                    0..=2 => {
                        let expect = match () {
                            () if sequence <= released || model.iter().any(|kept| kept.0 == sequence) => Some(NotTaken::Known),
                            () if model.len() == 6 => Some(NotTaken::Full),
                            () => {
                                model.push((sequence, false));
                                model.sort_unstable();
                                None
                            }
                        };
                        prop_assert_eq!(streams.insert(index, message(index, sequence)).err(), expect);
                    }
                    3 => {
                        if let Some(next) = model.iter_mut().find(|kept| !kept.1) {
                            next.1 = true;
                            streams.advance_cursor(index);
                        }
                    }
                    _ => {
                        if let Some(&(first, _)) = model.first() {
                            model.remove(0);
                            released = first;
                            streams.release_head(index);
                        }
                    }
                }
                prop_assert_eq!(kept(&streams, index), model.iter().map(|kept| kept.0).collect::<Vec<_>>());
                let cursor = streams.at(index).cursor;
                let next = model.iter().find(|kept| !kept.1).map(|kept| kept.0);
                prop_assert_eq!((cursor != NONE).then(|| streams.slots.at(cursor).sequence.0), next);
                prop_assert_eq!(streams.slots.kept(), model.len());
                prop_assert_eq!(streams.waiting(), model.iter().filter(|kept| !kept.1).count() as u64);
                prop_assert_eq!(streams.occupied(), &[index][..usize::from(!model.is_empty())]);
            }
        }
    }
}
