//! Writes down once a second where deliveries are, so that the next start goes on there.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bodkin_arrowhead::record::SubscriptionId;
use bodkin_store::{
    Store, StoreError,
    delivery::{Place, Present},
    event_log::{EventLogReader, LogId, Position, RecordName},
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
    /// Newest record that both nodes of a pair have, and a position after it.
    after: (Position, RecordName),
    /// Those that are elsewhere than the present. A delivery that began anew has a row to write, wherever the former one was.
    away: BTreeMap<SubscriptionId, Away>,
    /// Whether this node of a pair leads; none without a pair.
    leadership: Option<Arc<Leadership>>,
    /// As [`super::PushContext::log_of_pair`].
    log_of_pair: Option<LogId>,
}

/// A delivery that is elsewhere than the present.
struct Away {
    place: Place,
    /// A position after the record that `place` names.
    after_at: Position,
    delivery: Arc<Delivery>,
}

impl Checkpoint {
    /// Knows nothing yet, and so writes everything at first; `places` are the rows that are there, `after` is what the present is after.
    pub fn new(
        store: Store,
        log: EventLogReader,
        deliveries: Arc<Deliveries>,
        after: RecordName,
        places: BTreeMap<SubscriptionId, Place>,
    ) -> Self {
        let all = deliveries.all();
        let away = |(id, place): (SubscriptionId, Place)| {
            let delivery = all.get(&id)?.clone();
            Some((id, Away { place, after_at: Position(0), delivery }))
        };
        let away = places.into_iter().filter_map(away).collect();
        Self { store, log, deliveries, present: None, after: (Position(0), after), away, leadership: None, log_of_pair: None }
    }

    /// Expects refused writes after this node of a pair has ceased to lead.
    pub fn led_by(self, leadership: Option<Arc<Leadership>>) -> Self {
        let log_of_pair = leadership.is_some().then(|| self.log.identity());
        Self { leadership, log_of_pair, ..self }
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
        let (present, shared) = self.log.end_and_shared();
        let after = shared.map_or(self.after, |name| (present, name));
        let mut away = BTreeMap::new();
        for (id, delivery) in self.deliveries.all().iter() {
            if let Some(cursor) = delivery.cursor().filter(|_| !delivery.is_at_present()) {
                let (after_at, after) = self.after_of(id, delivery);
                away.insert(*id, Away { place: Place { cursor, after }, after_at, delivery: delivery.clone() });
            }
        }
        let is_known = |id: &SubscriptionId, now: &Away| {
            self.away.get(id).is_some_and(|known| known.place == now.place && Arc::ptr_eq(&known.delivery, &now.delivery))
        };
        let back = self.away.keys().filter(|id| !away.contains_key(id)).map(|id| (*id, None));
        let moved = away.iter().filter(|(id, now)| !is_known(id, now)).map(|(id, now)| (*id, Some(now.place)));
        let places: Vec<_> = back.chain(moved).collect();
        if places.is_empty() && self.present == Some(present) {
            return Ok(());
        }
        let noted = Present { log: self.log_of_pair, position: present, after: after.1 };
        self.store.write(move |draft| draft.note_deliveries(noted, &places), |_, ()| ()).await?;
        (self.present, self.after, self.away) = (Some(present), after, away);
        Ok(())
    }

    /// Returns the newest record up to which a delivery is finished: its last event, or the record of the checkpoint before.
    fn after_of(&self, id: &SubscriptionId, delivery: &Arc<Delivery>) -> (Position, RecordName) {
        let known = self.away.get(id).filter(|known| Arc::ptr_eq(&known.delivery, delivery));
        let known = known.map_or(self.after, |known| (known.after_at, known.place.after));
        delivery.finished().filter(|(position, _)| *position >= known.0).unwrap_or(known)
    }
}
