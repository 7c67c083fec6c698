//! Looking connections over once a second.

use bodkin_arrowhead::{record::SystemId, snapshot::Snapshot};
use bodkin_broker::SubscriptionKey;

use super::{Receiver, Shard, connection::Phase};
use crate::answer::Answer;

impl Shard {
    /// Ends what is past its deadline, and streams whose listening system is not registered any more. Silent streams get a
    /// heartbeat.
    pub(super) fn sweep(&mut self, snapshot: &Snapshot) {
        let (now, limits) = (self.clock.now, self.context.limits);
        let mut ending: Vec<(usize, bool)> = Vec::new();
        for (slot, connection) in &mut self.connections {
            if connection.wants_heartbeat(now, limits.heartbeat) {
                connection.out().extend_from_slice(b": heartbeat\n\n");
                self.dirty.push(slot);
            }
        }
        for (slot, connection) in &self.connections {
            let is_orphan = || match (connection.phase, &connection.replay) {
                (Phase::Stream { subscription }, _) => self.is_orphan(subscription, snapshot),
                (Phase::Replay, Some(replay)) => is_gone(replay.listening.consumer, snapshot),
                _ => false,
            };
            ending.extend(connection.overdue(now, &limits).or_else(|| is_orphan().then_some(false)).map(|told| (slot, told)));
        }
        for (slot, told) in ending {
            if told {
                let connection = &mut self.connections[slot];
                connection.page = self.context.gate.reader_of(&connection.reader);
                self.write(slot, &Answer::text(408, "The request did not arrive in time."), false, false);
            } else {
                self.close(slot);
            }
        }
    }

    fn is_orphan(&self, subscription: SubscriptionKey, snapshot: &Snapshot) -> bool {
        match self.broker.receiver(subscription) {
            Some(Receiver::Stream { listening, .. }) => is_gone(listening.consumer, snapshot),
            _ => false,
        }
    }
}

fn is_gone(consumer: Option<SystemId>, snapshot: &Snapshot) -> bool {
    consumer.is_some_and(|consumer| snapshot.system(consumer).is_none())
}
