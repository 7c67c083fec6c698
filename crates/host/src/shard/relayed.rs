//! Events of other clouds.

use bodkin_arrowhead::{error::ArrowheadError, publication};

use super::{Shard, publish::Numbering};
use crate::inbox::RelayedEvent;

impl Shard {
    /// Publishes an event that another cloud has shared: it is in the queues and in the event log when this returns, of a real-time topic kept until it is due.
    pub(super) fn take_relayed(&mut self, relayed: &RelayedEvent) -> Result<(), ArrowheadError> {
        let snapshot = self.context.store.snapshot();
        self.sync(&snapshot);
        let RelayedEvent { event, metadata, source, time } = relayed;
        let publication = publication::relayed(event, metadata, *source, *time, &mut self.scratch)?;
        self.take(&snapshot, &publication, Numbering::Ours(None)).map(drop).map_err(|refusal| refusal.error())
    }
}
