//! Streams: what one run of one publisher sends on one topic, and the messages of it that are kept, in order.
//!
//! Primary and Backup keep them alike, so that a promotion takes them over as they are. All that is known about a row of messages are
//! watermarks: flags of single messages could be set in an order that leaves a replica behind for ever (Wang's Table 3.3).

use std::collections::BTreeMap;

use crate::{
    event::{EventId, Incarnation, PublisherId, Sequence, TopicId},
    slot::{Message, NONE, SlotId, Slots},
    subscription::SubscriptionKey,
    terms::Bucket,
};

/// Names a stream; a closed one's name is not valid for its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl StreamId {
    /// Small number of the stream, which the replica link declares and then calls it by.
    pub fn index(self) -> u32 {
        self.index
    }
}

/// What makes a stream itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamIdentity {
    /// On which topic.
    pub topic: TopicId,
    /// Whose.
    pub publisher: PublisherId,
    /// Which run of the publisher.
    pub incarnation: Incarnation,
}

/// How far one required subscription is with one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Reader {
    pub subscription: SubscriptionKey,
    /// Nothing up to here is for it: it was not required yet.
    pub since: Sequence,
    /// It has everything up to here.
    pub acked: Sequence,
    /// The last message that was handed to it.
    pub delivered: Sequence,
    /// Everything up to here was handed to it, or is not for it.
    pub passed: Sequence,
    /// It misses messages that others were handed already; they wait until it is there and has room.
    pub is_behind: bool,
}

impl Reader {
    /// Somebody who is to be handed everything behind `from`.
    pub fn new(subscription: SubscriptionKey, from: Sequence) -> Self {
        Self { subscription, since: from, acked: from, delivered: from, passed: from, is_behind: false }
    }

    /// The same one in a new session, which has everything up to `through` and is to be brought what is behind that.
    pub fn resumed(self, through: Sequence) -> Self {
        let acked = self.acked.max(through);
        Self { acked, delivered: acked, passed: acked, is_behind: true, ..self }
    }

    /// Notes that a message is not for this reader: who has all that was for it has this too.
    pub fn pass(&mut self, sequence: Sequence) {
        self.passed = self.passed.max(sequence);
        if self.acked >= self.delivered {
            self.acked = self.passed;
        }
    }

    /// Notes that a message was handed over.
    pub fn hand(&mut self, sequence: Sequence) {
        self.delivered = self.delivered.max(sequence);
        self.passed = self.passed.max(sequence);
    }

    /// Takes a cumulative acknowledgement, as far as there was something to acknowledge.
    pub fn acknowledge(&mut self, through: Sequence) {
        let reached = if through >= self.delivered { self.passed } else { through };
        self.acked = self.acked.max(reached);
    }

    /// Whether something was handed over that is not acknowledged.
    pub fn owes(&self) -> bool {
        self.acked < self.delivered
    }
}

/// What every required subscriber of a stream has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// The event in front of the first.
    pub since: Sequence,
    /// The last.
    pub through: Sequence,
}

/// What this session of the replica link knows of a stream. One of an earlier session counts for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Linked {
    pub session: u32,
    /// The stream's number on the link.
    pub number: u32,
    /// The last message whose replica was sent.
    pub sent: Sequence,
    /// The Backup has every mark up to here.
    pub replicated: Sequence,
    /// The Backup was told to discard up to here.
    pub discarded: Sequence,
    /// Acknowledgements of earlier positions say nothing: a message was filled in behind them.
    pub counts_from: u64,
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stream {
    pub generation: u32,
    pub identity: StreamIdentity,
    /// Most messages that are kept.
    pub capacity: u32,
    /// The kept messages, first to last, and how many.
    pub head: u32,
    pub tail: u32,
    pub length: u32,
    /// The first of them that is not dispatched.
    pub cursor: u32,
    /// How many of them are neither dispatched nor excess.
    pub rightful: u32,
    /// The last message that came.
    pub last: Sequence,
    /// The first message that was refused and may be sent again. 0: none was.
    pub refused: Sequence,
    /// Everything up to here is done with: received, or given up and told.
    pub released: Sequence,
    /// Without readers: dispatched long enough ago to have arrived.
    pub settled: Sequence,
    /// What will be settled next.
    pub settling: Sequence,
    /// The publisher was told that everything up to here is covered or needs no cover.
    pub covered: Sequence,
    /// Behind a promotion nothing from here on is dispatched: earlier messages may be on their way.
    pub held_from: Sequence,
    /// The publisher sends again what it has up to here.
    pub resent_to: Sequence,
    /// The publisher has said what it has; until then a promoted node cannot say what is covered.
    pub is_resumed: bool,
    pub bucket: Bucket,
    /// Messages since the last mark, with it; 0: the next one is a mark.
    pub since_mark: u32,
    /// Messages in a row that were dropped as late.
    pub shed_run: u32,
    pub linked: Linked,
    /// Of a stream that keeps something: where the list of such streams has it.
    place: u32,
    /// The required subscriptions of the topic.
    pub readers: Vec<Reader>,
    /// Something may have to be told at the end of the turn.
    pub is_touched: bool,
    /// The publisher is to be told again how far it is covered.
    pub is_asked: bool,
    /// Waits for its turn to be brought to readers that are behind.
    pub is_catching_up: bool,
    /// Ends when it is empty: its publisher has begun anew, or has gone.
    pub is_ending: bool,
}

impl Stream {
    fn new(identity: StreamIdentity, generation: u32, capacity: u32) -> Self {
        Self {
            generation,
            identity,
            capacity,
            head: NONE,
            tail: NONE,
            length: 0,
            cursor: NONE,
            rightful: 0,
            last: Sequence(0),
            refused: Sequence(0),
            released: Sequence(0),
            settled: Sequence(0),
            settling: Sequence(0),
            covered: Sequence(0),
            held_from: Sequence(u64::MAX),
            resent_to: Sequence(0),
            is_resumed: true,
            bucket: Bucket::default(),
            since_mark: 0,
            shed_run: 0,
            linked: Linked::default(),
            place: 0,
            readers: Vec::new(),
            is_touched: false,
            is_asked: false,
            is_catching_up: false,
            is_ending: false,
        }
    }

    pub fn event(&self, sequence: Sequence) -> EventId {
        let StreamIdentity { topic, publisher, incarnation } = self.identity;
        EventId { publisher, incarnation, topic, sequence }
    }

    /// A message that was refused and has to come again before any behind it is taken, for it could not be delivered in order then. One that is covered
    /// or done with meanwhile will not come.
    pub fn awaited(&self) -> Option<Sequence> {
        (self.refused > self.covered.max(self.released)).then_some(self.refused)
    }

    /// The reader that a required subscription of the topic has in every stream of it.
    pub fn reader(&mut self, subscription: SubscriptionKey) -> &mut Reader {
        let mut readers = self.readers.iter_mut();
        readers.find(|reader| reader.subscription == subscription).expect("a required subscription reads every stream of its topic")
    }

    /// Every required subscriber has everything in this range, the first one excluded; `None` where none is required. What lies in front of it
    /// was required of nobody who is still there.
    pub fn received(&self) -> Option<Received> {
        let since = self.readers.iter().map(|reader| reader.since).min()?;
        let through = self.readers.iter().map(|reader| reader.acked).min()?;
        Some(Received { since, through })
    }
}

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
    by_identity: BTreeMap<StreamIdentity, u32>,
    free: Vec<u32>,
    /// Streams that keep something, in no order: what a promotion or a change of the pair has to look at.
    occupied: Vec<u32>,
    pub slots: Slots,
    /// Slots that closed streams have left.
    spare_slots: usize,
}

impl Streams {
    /// Opens a stream that may keep `capacity` messages; one that is open is kept as it is.
    pub fn open(&mut self, identity: StreamIdentity, capacity: u32) -> StreamId {
        if let Some(&index) = self.by_identity.get(&identity) {
            return self.id(index);
        }
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
        self.by_identity.insert(identity, index);
        self.occupied.reserve(self.streams.len() - self.occupied.len());
        self.id(index)
    }

    /// Forgets an empty stream.
    pub fn close(&mut self, index: u32) -> StreamId {
        let id = self.id(index);
        let stream = &mut self.streams[index as usize];
        assert_eq!(stream.length, 0, "a stream is closed when it keeps nothing");
        self.by_identity.remove(&stream.identity);
        stream.generation = stream.generation.wrapping_add(1);
        self.spare_slots += stream.capacity as usize;
        self.free.push(index);
        id
    }

    pub fn find(&self, identity: &StreamIdentity) -> Option<StreamId> {
        self.by_identity.get(identity).map(|&index| self.id(index))
    }

    /// Lets a stream keep more messages.
    pub fn grow(&mut self, index: u32, capacity: u32) {
        let stream = &mut self.streams[index as usize];
        let missing = capacity.saturating_sub(stream.capacity);
        stream.capacity += missing;
        self.slots.reserve(missing as usize);
    }

    pub fn is_open(&self, index: u32) -> bool {
        self.streams.get(index as usize).is_some_and(|stream| self.by_identity.get(&stream.identity) == Some(&index))
    }

    /// The index of a stream that is open.
    pub fn index(&self, id: StreamId) -> Option<u32> {
        (self.streams.get(id.index as usize)?.generation == id.generation).then_some(id.index)
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
    use crate::time::Instant;

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

    #[test]
    fn a_reader_that_has_all_that_was_for_it_has_what_was_not() {
        let mut reader = Reader::new(SubscriptionKey { index: 0, generation: 0 }, Sequence(0));
        reader.pass(Sequence(1));
        reader.hand(Sequence(2));
        reader.pass(Sequence(3));
        assert_eq!((reader.acked, reader.owes()), (Sequence(1), true));
        reader.acknowledge(Sequence(2));
        assert_eq!((reader.acked, reader.owes()), (Sequence(3), false));
        reader.acknowledge(Sequence(u64::MAX));
        assert_eq!(reader.acked, Sequence(3), "what was never sent cannot be acknowledged");
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
                prop_assert_eq!(streams.occupied(), &[index][..usize::from(!model.is_empty())]);
            }
        }
    }
}
