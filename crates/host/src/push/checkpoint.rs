//! Writes down once a second where deliveries are, so that the next start goes on there.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bodkin_arrowhead::record::SubscriptionId;
use bodkin_store::{
    Store, StoreError,
    event_log::{EventLogReader, Position},
};

use super::delivery::{Deliveries, Delivery};
use crate::pair::Leadership;

/// How often: what was delivered since the last time is delivered once more after a kill.
const PERIOD: Duration = Duration::from_secs(1);

/// What the database knows.
pub struct Checkpoint {
    store: Store,
    log: EventLogReader,
    deliveries: Arc<Deliveries>,
    present: Option<Position>,
    /// Those that are elsewhere than the present. A delivery that began anew has a row to write, wherever the former one was.
    away: BTreeMap<SubscriptionId, (Position, Arc<Delivery>)>,
    /// Whether this node of a pair leads; none without a pair.
    leadership: Option<Arc<Leadership>>,
}

impl Checkpoint {
    /// Knows nothing yet, and so writes everything at first; `cursors` are the rows that are there.
    pub fn new(store: Store, log: EventLogReader, deliveries: Arc<Deliveries>, cursors: BTreeMap<SubscriptionId, Position>) -> Self {
        let all = deliveries.all();
        let away = cursors.into_iter().filter_map(|(id, cursor)| Some((id, (cursor, all.get(&id)?.clone())))).collect();
        Self { store, log, deliveries, present: None, away, leadership: None }
    }

    /// Expects refused writes after this node of a pair has ceased to lead.
    pub fn led_by(self, leadership: Option<Arc<Leadership>>) -> Self {
        Self { leadership, ..self }
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
                // The new leader has its own checkpoint: a failover is no error.
                Err(error) if self.leadership.as_ref().is_some_and(|leadership| !leadership.leads()) => {
                    tracing::debug!(%error, "delivery checkpoint not written: this node no longer leads");
                }
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
        let mut away = BTreeMap::new();
        for (id, delivery) in self.deliveries.all().iter() {
            if let Some(cursor) = delivery.cursor().filter(|_| !delivery.is_at_present()) {
                away.insert(*id, (cursor, delivery.clone()));
            }
        }
        let is_known = |id: &SubscriptionId, cursor: Position, of: &Arc<Delivery>| {
            self.away.get(id).is_some_and(|(known, former)| *known == cursor && Arc::ptr_eq(former, of))
        };
        let back = self.away.keys().filter(|id| !away.contains_key(id)).map(|id| (*id, None));
        let moved = away.iter().filter(|(id, (cursor, of))| !is_known(id, *cursor, of)).map(|(id, (cursor, _))| (*id, Some(*cursor)));
        let places: Vec<_> = back.chain(moved).collect();
        if places.is_empty() && self.present == Some(present) {
            return Ok(());
        }
        self.store.write(move |draft| draft.note_deliveries(present, &places), |_, ()| ()).await?;
        (self.present, self.away) = (Some(present), away);
        Ok(())
    }
}
