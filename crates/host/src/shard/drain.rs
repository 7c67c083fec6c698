//! Stopping: what has come is read, served and answered, what is queued is written, and nothing comes behind it.

use std::time::{Duration, Instant};

use tokio::{sync::oneshot, task::JoinHandle};

use super::Shard;

/// How long a stopping shard goes on.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// Of a shard that stops.
pub(super) struct Drain {
    until: Instant,
    /// Who waits until everything is written, and for the push tasks.
    drained: Option<oneshot::Sender<Vec<JoinHandle<()>>>>,
}

impl Shard {
    /// Accepts who waits, and nobody more; reads all sockets once more, for the system may not have said yet that something has come.
    pub(super) fn stop(&mut self, drained: oneshot::Sender<Vec<JoinHandle<()>>>) {
        self.drain = Some(Drain { until: self.clock.now + DRAIN_MAX, drained: Some(drained) });
        self.unaccepted = true;
        let slots: Vec<usize> = self.connections.iter().map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.read_next_turn(slot));
        self.endpoint.stop_listening();
        self.endpoint.read_all_next_turn();
    }

    /// Tells who waits for it that everything is written, or that the time to do so is over.
    pub(super) fn tell_drained(&mut self) {
        let has_drained =
            self.drain.as_ref().is_some_and(|drain| drain.drained.is_some() && (Instant::now() >= drain.until || self.is_settled()));
        if has_drained && let Some(drained) = self.drain.as_mut().and_then(|drain| drain.drained.take()) {
            // Who does not wait needs them not.
            let _ = drained.send(self.end_pushed());
        }
    }

    fn is_settled(&self) -> bool {
        let all_read = self.listeners.is_empty() && self.unread.is_empty() && self.unserved.is_empty();
        let all_pushed = self.pushing_bytes == 0;
        all_read && all_pushed && self.connections.iter().all(|(_, connection)| connection.is_settled()) && self.endpoint.is_settled()
    }
}
