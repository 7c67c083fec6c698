//! Streams: what one run of one publisher sends on one topic, and the messages of it that are kept, in order.
//!
//! Primary and Backup keep them alike, so that a promotion takes them over as they are. All that is known about a row of messages are
//! watermarks: flags of single messages could be set in an order that leaves a replica behind for ever (Wang's Table 3.3).

use crate::{
    epoch::Epoch,
    event::{EventId, Incarnation, PublisherId, Sequence, TopicId},
    few::Few,
    slot::NONE,
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
    /// Small number of the stream on this node, from 0; that of a closed one goes to a successor.
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

impl StreamIdentity {
    /// Returns true if one stream continues the other: the incarnations of both are comparable.
    pub(crate) fn is_run_of_same(&self, other: &Self) -> bool {
        (self.topic, self.publisher, self.incarnation.numberer()) == (other.topic, other.publisher, other.incarnation.numberer())
    }
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
    /// Messages are kept for it, and its word alone covers none that others hear.
    pub only_keeps: bool,
}

impl Reader {
    /// Somebody who is to be handed everything behind `from`.
    pub fn new(subscription: SubscriptionKey, from: Sequence) -> Self {
        Self { subscription, since: from, acked: from, delivered: from, passed: from, is_behind: false, only_keeps: false }
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
    /// The epoch of the publisher when it sent that one. In a later one it sends in order what it still has to.
    pub refused_in: Epoch,
    /// Everything up to here is done with: received, or given up and told.
    pub released: Sequence,
    /// Without readers: dispatched long enough ago to have arrived.
    pub settled: Sequence,
    /// What will be settled next.
    pub settling: Sequence,
    /// Everything up to here has left the send queues to all subscribers.
    pub emptied: Sequence,
    /// The publisher was told that everything up to here is covered or needs no cover.
    pub covered: Sequence,
    /// Behind a promotion nothing from here on is dispatched: earlier messages may be on their way.
    pub held_from: Sequence,
    /// The publisher sends again what it has up to here.
    pub resent_to: Sequence,
    /// Behind a promotion an earlier run of the publisher is held, and goes first: so this one is held, too.
    pub is_behind: bool,
    /// The publisher has said what it has; until then a promoted node cannot say what is covered.
    pub is_resumed: bool,
    pub bucket: Bucket,
    /// Messages since the last mark, with it; 0: the next one is a mark.
    pub since_mark: u32,
    /// The last message that was dispatched in this epoch: what is missing behind it, dropped here or lost in a crash, is one row. `None`: none was, and another leader may
    /// have dropped all that the topic allows in front of the first one.
    pub shed_from: Option<Sequence>,
    /// The last message, if it was dropped in front of its dispatch: nothing shows subscribers that it is missing. 0: it was not.
    pub unseen: Sequence,
    pub linked: Linked,
    /// Of a stream that keeps something: where the list of such streams has it.
    pub place: u32,
    /// The required subscriptions of the topic.
    pub readers: Few<Reader>,
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
    pub fn new(identity: StreamIdentity, generation: u32, capacity: u32) -> Self {
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
            refused_in: Epoch::NONE,
            released: Sequence(0),
            settled: Sequence(0),
            settling: Sequence(0),
            emptied: Sequence(0),
            covered: Sequence(0),
            held_from: Sequence(u64::MAX),
            resent_to: Sequence(0),
            is_behind: false,
            is_resumed: true,
            bucket: Bucket::default(),
            since_mark: 0,
            shed_from: None,
            unseen: Sequence(0),
            linked: Linked::default(),
            place: 0,
            readers: Few::default(),
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
    /// was required of nobody who is still there. Of those for whom messages are only kept the word counts where nobody else hears the topic.
    pub fn received(&self, has_other_subscribers: bool) -> Option<Received> {
        let counts = |reader: &&Reader| !reader.only_keeps;
        let some_count = self.readers.iter().any(|reader| counts(&reader));
        if !some_count && has_other_subscribers {
            return None;
        }
        let readers = || self.readers.iter().filter(|reader| !some_count || counts(reader));
        let since = readers().map(|reader| reader.since).min()?;
        let through = readers().map(|reader| reader.acked).min()?;
        Some(Received { since, through: through.min(self.kept_behind()) })
    }

    /// Behind this one messages are kept for those whose word alone does not cover them.
    pub fn kept_behind(&self) -> Sequence {
        let kept = self.readers.iter().filter(|reader| reader.only_keeps);
        kept.map(|reader| reader.acked).min().unwrap_or(Sequence(u64::MAX))
    }

    /// What is safe because it has left the send queues: where somebody is required, only that one's word counts.
    pub fn emptied(&self) -> Sequence {
        if self.readers.iter().all(|reader| reader.only_keeps) { self.emptied.min(self.kept_behind()) } else { Sequence(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
