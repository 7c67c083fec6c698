//! Events of publishers that do not number their own, as by HTTP, REQ, or PUSH: this node numbers them, and answers the publisher once the event is safe.

use super::{Accepted, LeaderPermit, Publication, Refusal, Shard, ShardError};
use crate::{
    epoch::Epoch,
    event::{Numberer, PublisherId, Sequence, TopicId},
    slot::SlotId,
    stream::{StreamId, StreamIdentity},
    time::Instant,
};

/// Why an event that this node was to number was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NextRefusal {
    /// The publisher's stream was not opened.
    #[error(transparent)]
    Stream(#[from] ShardError),
    /// The event was refused, on this stream.
    #[error("{1}")]
    Event(StreamId, Refusal),
}

impl<R> Shard<R> {
    /// Accepts the next event of a publisher on a real-time topic, with the next number of this epoch. Returns also the event's stream.
    ///
    /// # Errors
    /// Returns the errors of [`Self::open_stream`] and [`Self::accept`].
    pub fn accept_next(
        &mut self,
        now: Instant,
        permit: LeaderPermit,
        (topic, publisher): (TopicId, PublisherId),
        created: Instant,
    ) -> Result<(StreamId, Accepted), NextRefusal> {
        let identity = StreamIdentity { topic, publisher, incarnation: self.incarnation };
        let stream = self.open_stream(&permit, identity)?;
        let last = self.last(stream).expect("the stream was just opened");
        let event = Publication { epoch: Epoch::NONE, sequence: Sequence(last.0 + 1), created, is_resent: false, has_wrong_clock: false };
        let accepted = self.accept(now, permit, stream, event).map_err(|refusal| NextRefusal::Event(stream, refusal))?;
        Ok((stream, accepted))
    }

    /// Returns the open streams that nodes number, in no order. Nothing reports when the publisher of such a stream has gone.
    pub fn unnumbered_streams(&self) -> impl Iterator<Item = StreamId> {
        let is_by_node = |index: &u32| self.streams.at(*index).identity.incarnation.numberer() == Numberer::Node;
        self.streams.open_streams().filter(is_by_node).map(|index| self.streams.id(index))
    }

    /// Returns true if the publisher of an event that has gone out may be told that it is safe. Otherwise only this node has an event that must not be
    /// lost, and the publisher waits for [`Output::Covered`](super::Output::Covered).
    pub fn is_answerable(&self, slot: SlotId, stream: StreamId, sequence: Sequence) -> bool {
        !self.needs_cover(slot) || self.covered_through(stream).is_none_or(|covered| sequence <= covered)
    }
}
