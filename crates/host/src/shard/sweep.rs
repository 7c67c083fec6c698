//! Looking connections over once a second.

use std::sync::Arc;

use bodkin_arrowhead::{record::SystemId, snapshot::Snapshot};

use super::{
    Receiver, Shard,
    connection::{Connection, Phase},
};
use crate::{answer::Answer, http::Persistence, problem, security};

impl Shard {
    /// Ends what is past its deadline, streams whose listening system is not registered any more, and what may not go on in secure
    /// mode. Silent streams get a heartbeat.
    pub(super) fn sweep(&mut self, snapshot: &Snapshot) {
        self.forget_inherited();
        self.close_disbelieved();
        self.close_unpermitted(snapshot);
        self.end_silent_streams();
        if !self.leads() {
            self.close_event_streams();
        }
        self.look_after_waits();
        self.look_over_graphs();
        self.count_work();
        let (now, limits) = (self.clock.now, self.context.limits);
        for (slot, connection) in &mut self.connections {
            if connection.wants_heartbeat(now, limits.heartbeat) {
                connection.out().extend_from_slice(b": heartbeat\n\n");
                self.dirty.push(slot);
            }
        }
        let mut ending: Vec<(usize, bool)> = Vec::new();
        for (slot, connection) in &self.connections {
            let is_orphan = || self.listening_system(connection).is_some_and(|consumer| snapshot.system(consumer).is_none());
            ending.extend(connection.overdue(now, &limits).or_else(|| is_orphan().then_some(false)).map(|told| (slot, told)));
        }
        for (slot, told) in ending {
            if told {
                let connection = &mut self.connections[slot];
                connection.page = self.context.gate.reader_of(&connection.reader);
                connection.is_own = connection.reader.target().is_some_and(problem::is_told_at);
                self.write(slot, &Answer::text(408, "The request did not arrive in time."), Persistence::Close, false);
            } else {
                self.close(slot);
            }
        }
    }

    /// Closes connections whose certificates do not count any more: their time is over, or they were revoked.
    fn close_disbelieved(&mut self) {
        let Some(security) = self.context.security.clone() else { return };
        let trust = security.trust();
        let is_changed = !self.trust.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &trust));
        self.trust = Some(trust);
        let utc = self.clock.utc;
        let doubtful = self.connections.iter().filter(|(_, connection)| is_changed || connection.client.peer.is_over(utc));
        let refused = doubtful.filter_map(|(slot, connection)| Some((slot, security.check(&connection.client.peer).err()?)));
        for (slot, error) in refused.collect::<Vec<_>>() {
            security::tell_refused(&self.connections[slot].client.peer, &error);
            self.close(slot);
        }
    }

    /// Closes the event streams of a node whose lease is over: it has no events for them, and their listeners look for the next leader.
    fn close_event_streams(&mut self) {
        let streams: Vec<usize> = self.connections.iter().filter(|(_, stream)| stream.is_event_stream()).map(|(slot, _)| slot).collect();
        if !streams.is_empty() {
            tracing::warn!(streams = streams.len(), "event streams are closed: this node of the pair leads no more");
        }
        streams.into_iter().for_each(|slot| self.close(slot));
    }

    /// Closes, in secure mode, streams whose consumer was permitted to hear somebody and is not any more: its rules were removed.
    fn close_unpermitted(&mut self, snapshot: &Snapshot) {
        if self.context.security.is_none() {
            return;
        }
        let streams = self.connections.iter().filter_map(|(slot, connection)| Some((slot, self.listening_system(connection)?)));
        for (slot, consumer) in streams.collect::<Vec<_>>() {
            let (connection, is_permitted) = (&mut self.connections[slot], snapshot.may_hear_anybody(consumer));
            if std::mem::replace(&mut connection.is_permitted, is_permitted) && !is_permitted {
                tracing::info!(certificate = connection.client.peer.name(), "an event stream was closed: its listener's rules are gone");
                self.close(slot);
            }
        }
    }

    /// The system for which a connection listens.
    fn listening_system(&self, connection: &Connection) -> Option<SystemId> {
        match (connection.phase, &connection.replay) {
            (Phase::Stream { subscription }, _) => match self.broker.receiver(subscription) {
                Some(Receiver::Stream { listening, .. }) => listening.consumer,
                _ => None,
            },
            (Phase::Replay, Some(replay)) => replay.listening.consumer,
            _ => None,
        }
    }
}
