//! Writing: once a turn for each connection, in the order that matters to those who wait.

use std::sync::atomic::Ordering::Relaxed;

use bodkin_broker::{Input, SubscriptionKey};

use super::{Connection, Shard, connection::Phase, zmtp::Turn};
use crate::{
    answer::{self, Answer, Recipient},
    http::Persistence,
    problem,
    stage::Stage,
};

impl Shard {
    /// Puts an answer behind what a connection is to be sent.
    pub(super) fn write(&mut self, slot: usize, answer: &Answer, keep_alive: Persistence, is_head: bool) {
        let connection = &mut self.connections[slot];
        let problem = (connection.is_own && answer.status >= 400).then(|| problem::told(answer.clone()));
        let answer = problem.as_ref().unwrap_or(answer);
        let keep_alive = keep_alive.only_if(!answer.close && self.drain.is_none());
        let page = connection.page.take();
        let recipient = Recipient { keep_alive, is_head, reader: page.as_deref(), is_secure: connection.is_secure() };
        answer::push_answer(connection.out(), answer, self.clock.date(), recipient);
        if !keep_alive.keeps() {
            connection.phase = Phase::Closing;
        }
        self.dirty.push(slot);
    }

    /// Writes what the turn has produced: subscribers first, for their latency is what counts, then the event log, then the
    /// answers that say it is written.
    pub(super) fn flush(&mut self) {
        if self.is_written() {
            self.tell_deliveries();
            return self.write_log();
        }
        self.write_links(Turn::Subscribers);
        let mut dirty = std::mem::take(&mut self.dirty);
        for streams in [true, false] {
            for &slot in &dirty {
                let is_turn = |connection: &Connection| connection.goes_before_log() == streams;
                if self.connections.get(slot).is_some_and(is_turn) {
                    self.write_out(slot);
                }
            }
            if streams {
                // In front of the answers: who has one finds its request counted.
                self.record_laps();
                self.write_log();
                self.tell_covered();
            }
        }
        dirty.clear();
        // What was told to subscribers meanwhile goes out with the next turn's writable events or right here.
        dirty.append(&mut self.dirty);
        for slot in dirty.drain(..) {
            self.write_out(slot);
        }
        self.dirty = dirty;
        self.write_links(Turn::All);
        self.tell_deliveries();
        self.lap(Stage::Send);
    }

    /// Whether nothing is to be written, and nobody to be told anything.
    pub(super) fn is_written(&self) -> bool {
        self.dirty.is_empty() && self.endpoint.is_written()
    }

    pub(super) fn write_out(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        match connection.write_out(self.clock.now) {
            Err(_) => self.close(slot),
            Ok(released) => {
                let ended = connection.phase == Phase::Closing && connection.is_written();
                if let (Phase::Stream { subscription }, true) = (connection.phase, released > 0) {
                    self.sent(subscription, released);
                }
                if ended {
                    self.linger(slot);
                }
                self.resume(slot);
                self.ask_for_replay(slot);
            }
        }
    }

    /// Says that nothing more comes, and waits for the client to close: a reset would take the answer back.
    fn linger(&mut self, slot: usize) {
        let now = self.clock.now;
        let connection = &mut self.connections[slot];
        if !connection.shut_down(now) || connection.has_ended() {
            self.close(slot);
        }
    }

    pub(super) fn sent(&mut self, subscription: SubscriptionKey, bytes: u64) {
        self.broker.step(self.clock.broker(), Input::Sent { subscription, bytes }, &mut self.outputs);
        self.carry_out_now();
    }

    pub(super) fn close(&mut self, slot: usize) {
        let mut connection = self.connections.remove(slot);
        if let Phase::Stream { subscription } = connection.phase {
            self.broker.step(self.clock.broker(), Input::Unsubscribe { subscription }, &mut self.outputs);
            self.count_subscriptions();
        }
        if connection.replay.take().is_some() {
            self.replaying -= 1;
            self.count_subscriptions();
        }
        self.forget_asked(connection.asking.take());
        connection.end();
        // A socket that is gone already needs no deregistration.
        let _ = self.poll.registry().deregister(connection.socket());
        self.context.counts.connections.store(self.connections.len() as u64, Relaxed);
    }
}
