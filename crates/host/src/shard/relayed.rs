//! Events of other clouds, and how long events may be that no client has sent here.

use bodkin_arrowhead::{
    error::ArrowheadError,
    publication::{self, Publication},
};
use bodkin_broker::wire::LINK_FRAME_BYTES_MAX;

use super::{Shard, not_taken::NotTaken, publish::Numbering};
use crate::{inbox::RelayedEvent, pair::EVENT_BYTES_MAX};

/// Bytes of an event's metadata, type, and time stamp.
const TEXTS_BYTES_MAX: usize = 64 * 1024;

// A replica has them, the longest payload of a pair, each byte of which may be an escape of six, and the names and numbers around.
const _: () = assert!(TEXTS_BYTES_MAX + 6 * EVENT_BYTES_MAX + 1024 <= LINK_FRAME_BYTES_MAX);

impl Shard {
    /// Publishes an event that another cloud has shared: it is in the queues and in the event log when this returns, of a real-time topic kept until it is due.
    pub(super) fn take_relayed(&mut self, relayed: &RelayedEvent) -> Result<(), ArrowheadError> {
        let snapshot = self.context.store.snapshot();
        self.sync(&snapshot);
        let RelayedEvent { event, metadata, source, time } = relayed;
        let publication = publication::relayed(event, metadata, *source, *time, &mut self.scratch)?;
        let taken = self.check_length(&publication).and_then(|()| self.take(&snapshot, &publication, Numbering::Ours(None)));
        taken.map(drop).map_err(|refusal| refusal.error())
    }

    /// Checks how long an event is that comes from another cloud or the fleet, which may take longer ones than this node.
    ///
    /// # Errors
    /// Returns [`NotTaken::TooLarge`] for a payload beyond `event_bytes_max`, and for other texts beyond [`TEXTS_BYTES_MAX`].
    pub(super) fn check_length(&self, publication: &Publication<'_>) -> Result<(), NotTaken> {
        let payload = ("payload has", publication.payload().text().len(), self.context.limits.event_bytes_max);
        let texts = ("texts beside the payload have", publication.bytes_beside_payload(), TEXTS_BYTES_MAX);
        match [payload, texts].into_iter().find(|(_, bytes, bytes_max)| bytes > bytes_max) {
            None => Ok(()),
            Some((what, bytes, bytes_max)) => {
                let told = format!("The {what} {bytes} bytes, at most {bytes_max} are taken here.");
                Err(NotTaken::TooLarge(ArrowheadError::invalid_parameter(told)))
            }
        }
    }
}
