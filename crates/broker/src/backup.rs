//! The Backup: what the Primary replicates, kept until it is told that nobody needs it, and made into a Primary when it has to lead.
//!
//! Everything comes on one ordered channel. A stream's replicas are pruned by a watermark that cannot overtake them, and a promotion takes over
//! the streams as they are. Topics and subscriptions are in the shard that is to lead before.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use crate::{
    event::{Incarnation, PublisherId, Sequence, TopicId},
    replication::IN_FLIGHT_MAX,
    shard::{Authority, Output, Shard, ShardError},
    slot::{Message, SlotId},
    stream::StreamIdentity,
    streams::{NotTaken, Streams},
    terms::Terms,
    time::Instant,
    topics::Topics,
    wire::{Position, StreamNumber},
};

/// What the Primary has sent that cannot be. The link is closed; a new one begins with everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackupError {
    /// A frame is missing or comes twice.
    #[error("position {expected} of the replica channel expected, {found} found: join anew")]
    Position {
        /// What follows the last one.
        expected: u64,
        /// What came.
        found: u64,
    },
    /// A stream that was not opened on this connection.
    #[error("stream number {0} was not opened: join anew")]
    Number(u32),
    /// A number that is in use.
    #[error("stream number {0} is in use: join anew")]
    NumberInUse(u32),
    /// A stream that has a number already.
    #[error("stream number {0} is for a stream that has another number: join anew")]
    SecondNumber(u32),
    /// More than there is memory for.
    #[error("there is no memory for another stream of {0} replicas: join anew")]
    Memory(u32),
    /// A topic that the control operations have not made, or made without a specification.
    #[error("the replicated stream's topic has no specification here: join anew")]
    Topic,
    /// More replicas than the stream's admission allows.
    #[error("the stream keeps {0} replicas, which is its limit: prune before you replicate")]
    Full(u32),
    /// More control operations than may wait for the disk.
    #[error("{IN_FLIGHT_MAX} control operations wait for the disk, which is the limit")]
    Control,
}

/// A node that leads from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// The right to.
    pub authority: Authority,
    /// How long publishers may take until they send again what they keep: streams with replicas are held so long, unless they come.
    pub redirect: Duration,
}

/// The names and terms of a Backup that leads. To let go of those of thousands of topics takes milliseconds.
#[derive(Debug)]
pub struct Outlived {
    _topics: Topics,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Backup {
    topics: Topics,
    streams: Streams,
    /// Streams of this connection.
    by_number: BTreeMap<u32, u32>,
    /// The last position that came, and the last one that was acknowledged.
    received: u64,
    acknowledged: u64,
    /// Positions of control operations that are not on the disk, first to last.
    unsaved: VecDeque<u64>,
    is_in_sync: bool,
}

impl Backup {
    /// A Backup that has nothing and is not in sync.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a topic its terms, as the control operations say. `topics_max` is the Primary's.
    pub fn admit(&mut self, topic: &str, terms: Terms, topics_max: usize) -> Result<TopicId, ShardError> {
        let id = self.topics.find_or_make(topic, topics_max).ok_or(ShardError::Topics(topics_max))?;
        self.topics.admit(id, terms, &mut self.streams);
        Ok(id)
    }

    /// Begins a session of the link behind this position: what was kept is replaced by what comes.
    pub fn begin_snapshot(&mut self, position: Position, outputs: &mut Vec<Output>) {
        self.is_in_sync = false;
        for index in 0..self.streams.count() as u32 {
            if self.streams.is_open(index) {
                self.prune(index, Sequence(u64::MAX), outputs);
                self.streams.close(index);
            }
        }
        self.by_number.clear();
        self.unsaved.clear();
        self.unsaved.reserve(IN_FLIGHT_MAX);
        (self.received, self.acknowledged) = (position.0, position.0);
    }

    /// The Primary has given everything. Once this is acknowledged, the Backup may be counted on.
    pub fn end_snapshot(&mut self, position: Position) -> Result<(), BackupError> {
        self.receive(position)?;
        self.is_in_sync = true;
        Ok(())
    }

    /// Whether it has everything that the Primary counts on it for, or had it when the link broke.
    pub fn is_in_sync(&self) -> bool {
        self.is_in_sync
    }

    /// Gives a stream its number on this connection.
    pub fn open_stream(
        &mut self,
        number: StreamNumber,
        topic: &str,
        publisher: PublisherId,
        incarnation: Incarnation,
    ) -> Result<(), BackupError> {
        if self.by_number.contains_key(&number.0) {
            return Err(BackupError::NumberInUse(number.0));
        }
        let topic_id = self.topics.find(topic).ok_or(BackupError::Topic)?;
        let topic = self.topics.at(topic_id);
        let capacity = topic.terms.as_ref().ok_or(BackupError::Topic)?.backlog_max.get();
        let identity = StreamIdentity { topic: topic_id, publisher, incarnation };
        // Every open stream has been opened on this connection.
        if self.streams.find(&identity).is_some() {
            return Err(BackupError::SecondNumber(number.0));
        }
        if !self.streams.can_open(capacity) {
            return Err(BackupError::Memory(capacity));
        }
        let index = self.streams.open(identity, capacity).index;
        self.by_number.insert(number.0, index);
        Ok(())
    }

    /// Takes a stream's number back: it is over.
    pub fn close_stream(&mut self, number: StreamNumber, outputs: &mut Vec<Output>) -> Result<(), BackupError> {
        let index = self.by_number.remove(&number.0).ok_or(BackupError::Number(number.0))?;
        self.prune(index, Sequence(u64::MAX), outputs);
        self.streams.close(index);
        Ok(())
    }

    /// Keeps a replica, whose bytes the host stores under the slot; `None`: it is there already. `created` is by this node's clock.
    pub fn keep(
        &mut self,
        position: Position,
        number: StreamNumber,
        sequence: Sequence,
        created: Instant,
    ) -> Result<Option<SlotId>, BackupError> {
        let &index = self.by_number.get(&number.0).ok_or(BackupError::Number(number.0))?;
        self.receive(position)?;
        let terms = self.topics.at(self.streams.at(index).identity.topic).terms();
        let message = Message { is_mark: true, ..Message::new(index, sequence, created, terms.dispatch_by(created)) };
        match self.streams.insert(index, message) {
            Ok(slot) => Ok(Some(slot)),
            Err(NotTaken::Known) => Ok(None),
            Err(NotTaken::Full) => Err(BackupError::Full(self.streams.at(index).length)),
        }
    }

    /// Lets a stream's replicas up to `through` go.
    pub fn discard(&mut self, number: StreamNumber, through: Sequence, outputs: &mut Vec<Output>) -> Result<(), BackupError> {
        let &index = self.by_number.get(&number.0).ok_or(BackupError::Number(number.0))?;
        self.prune(index, through, outputs);
        let stream = self.streams.at_mut(index);
        stream.released = stream.released.max(through);
        stream.last = stream.last.max(through);
        Ok(())
    }

    /// Takes a control operation's place in the order. It is acknowledged, with all behind it, when it is [saved](Self::saved).
    pub fn control(&mut self, position: Position) -> Result<(), BackupError> {
        if self.unsaved.len() >= IN_FLIGHT_MAX {
            return Err(BackupError::Control);
        }
        self.receive(position)?;
        self.unsaved.push_back(position.0);
        Ok(())
    }

    /// Takes a checkpoint's place in the order; the host keeps it in place of the graph's last one.
    pub fn checkpoint(&mut self, position: Position) -> Result<(), BackupError> {
        self.receive(position)
    }

    /// All control operations up to this position are on the disk.
    pub fn saved(&mut self, through: Position) {
        while self.unsaved.front().is_some_and(|position| *position <= through.0) {
            self.unsaved.pop_front();
        }
    }

    /// What is to be acknowledged at the end of the turn, if that is more than before.
    pub fn acknowledgement(&mut self) -> Option<Position> {
        let through = self.unsaved.front().map_or(self.received, |unsaved| unsaved - 1);
        let is_more = through > self.acknowledged;
        self.acknowledged = self.acknowledged.max(through);
        is_more.then_some(Position(through))
    }

    /// Replicas that are kept.
    pub fn kept(&self) -> usize {
        self.streams.slots.kept()
    }

    /// Slots that all open streams may use: the size of the host's table of bytes.
    pub fn slots_max(&self) -> usize {
        self.streams.slots.count_max()
    }

    /// Has a shard lead that was made ready while this node followed: it has the topics, and whoever is required, with a session here or not
    /// ([`Attachment`](crate::Attachment)), and has taken no event. It goes on with what is kept. Slots stay what they are; the Primary's Backup is
    /// [`BackupStanding::Lost`](crate::BackupStanding) until the member says how it stands. What is still to be done is a pass over the streams that are known here: no
    /// table is built, and no name is compared if the topics were [prepared](Shard::prepare). Gives what is of no use any more, for the caller to let go when there is time.
    pub fn promote<R>(self, now: Instant, promotion: Promotion, shard: &mut Shard<R>) -> Outlived {
        shard.take_over(now, promotion, &self.topics, self.streams);
        Outlived { _topics: self.topics }
    }

    fn receive(&mut self, position: Position) -> Result<(), BackupError> {
        let refused = BackupError::Position { expected: self.received.saturating_add(1), found: position.0 };
        // No position follows the last one that there is.
        self.received = self.received.checked_add(1).filter(|next| *next == position.0).ok_or(refused)?;
        Ok(())
    }

    fn prune(&mut self, index: u32, through: Sequence, outputs: &mut Vec<Output>) {
        while self.streams.head(index).is_some_and(|message| message.sequence <= through) {
            outputs.push(Output::Freed { slot: self.streams.release_head(index) });
        }
    }
}
