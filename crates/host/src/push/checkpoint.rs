//! Writes down once a second where deliveries are, so that the next start goes on there.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bodkin_arrowhead::record::SubscriptionId;
use bodkin_store::{
    Store, StoreError,
    event_log::{EventLogReader, Position},
};

use super::delivery::Deliveries;

/// How often: what was delivered since the last time is delivered once more after a kill.
const PERIOD: Duration = Duration::from_secs(1);

/// What the database knows.
pub struct Checkpoint {
    store: Store,
    log: EventLogReader,
    deliveries: Arc<Deliveries>,
    present: Option<Position>,
    cursors: BTreeMap<SubscriptionId, Position>,
}

impl Checkpoint {
    /// Knows nothing yet, and so writes everything at first; `cursors` are the rows that are there.
    pub fn new(store: Store, log: EventLogReader, deliveries: Arc<Deliveries>, cursors: BTreeMap<SubscriptionId, Position>) -> Self {
        Self { store, log, deliveries, present: None, cursors }
    }

    /// Runs until it is told to end; then writes a last time.
    pub async fn run(mut self, mut ending: tokio::sync::oneshot::Receiver<()>) {
        let mut is_told = false;
        loop {
            let is_ending = tokio::select! {
                () = tokio::time::sleep(PERIOD) => false,
                _ = &mut ending => true,
            };
            match self.write().await {
                Ok(()) => is_told = false,
                Err(error) if !std::mem::replace(&mut is_told, true) => {
                    tracing::error!(%error, "where deliveries are could not be written: after a stop more is delivered again");
                }
                Err(_) => {}
            }
            if is_ending {
                return;
            }
        }
    }

    /// Writes what has changed: the present, and those that are elsewhere.
    async fn write(&mut self) -> Result<(), StoreError> {
        // Read first: what was accepted in front of it has been handed over, and shows in the deliveries.
        let present = self.log.end();
        let mut cursors = BTreeMap::new();
        for (id, delivery) in self.deliveries.all().iter() {
            if let Some(cursor) = delivery.cursor().filter(|_| !delivery.is_at_present()) {
                cursors.insert(*id, cursor);
            }
        }
        let back = self.cursors.keys().filter(|id| !cursors.contains_key(id)).map(|id| (*id, None));
        let away = cursors.iter().filter(|(id, cursor)| self.cursors.get(id) != Some(*cursor)).map(|(id, cursor)| (*id, Some(*cursor)));
        let places: Vec<_> = back.chain(away).collect();
        if places.is_empty() && self.present == Some(present) {
            return Ok(());
        }
        self.store.write(move |draft| draft.note_deliveries(present, &places), |_, ()| ()).await?;
        (self.present, self.cursors) = (Some(present), cursors);
        Ok(())
    }
}
