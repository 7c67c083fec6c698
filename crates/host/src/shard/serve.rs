//! Serving: what is due first goes first, and the whole requests of a connection in their order.

use std::time::Instant;

use super::{
    Shard,
    connection::Phase,
    real_time::{BEST_EFFORT_SLICE, TURN_WORK_MAX},
};
use crate::{
    answer::Answer,
    http::{HttpError, Persistence, RequestReader},
    problem,
    stage::Stage,
};

impl Shard {
    /// Serves what was read: first those who publish real-time events, whose work is done in the order of its deadlines, then the others.
    pub(super) fn serve_all(&mut self) {
        if !self.unserved.is_empty() {
            self.lap(Stage::Receive);
        }
        let mut budget = TURN_WORK_MAX;
        while budget > 0 {
            self.serve_urgent();
            let done = self.work(budget);
            budget -= done;
            // Who is answered by the work may have sent the next event behind it.
            if done == 0 || self.unserved.is_empty() {
                break;
            }
        }
        if self.unserved.is_empty() {
            return;
        }
        let until = (!self.real_time.is_empty()).then(|| Instant::now() + BEST_EFFORT_SLICE);
        for _ in 0..self.unserved.len() {
            let Some(slot) = self.unserved.pop_front() else { break };
            self.serve(slot);
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
        }
        // Some of the others may have published their first one.
        self.work(TURN_WORK_MAX);
    }

    /// Serves those who have published real-time events before, and leaves the others in their order.
    fn serve_urgent(&mut self) {
        if self.real_time.is_empty() {
            return;
        }
        for _ in 0..self.unserved.len() {
            let Some(slot) = self.unserved.pop_front() else { break };
            if self.connections.get(slot).is_some_and(|connection| connection.is_urgent) {
                self.serve(slot);
            } else {
                self.unserved.push_back(slot);
            }
        }
    }

    /// Lets a connection go whose client has said everything: at once, or when its answers are written.
    pub(super) fn finish_ended(&mut self, slot: usize) {
        let Some(connection) = self.connections.get(slot).filter(|connection| connection.has_ended()) else { return };
        if connection.phase == Phase::Requests && connection.reader.is_amid_request() {
            self.write(slot, &Answer::incomplete(), Persistence::Close, false);
        }
        let Some(connection) = self.connections.get_mut(slot) else { return };
        match connection.phase {
            Phase::Requests | Phase::Closing if !connection.is_written() => connection.phase = Phase::Closing,
            Phase::Requests | Phase::Replay | Phase::Stream { .. } | Phase::Closing => self.close(slot),
            Phase::Waiting { .. } => {}
        }
    }

    /// Serves the whole requests a connection has read, until one has to wait.
    pub(super) fn serve(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if connection.phase == Phase::Requests {
            let mut reader = std::mem::replace(&mut connection.reader, RequestReader::new(0));
            let served = self.serve_from(slot, &mut reader);
            let now = self.clock.now;
            if let Some(connection) = self.connections.get_mut(slot) {
                if reader.take_expects_continue() {
                    connection.out().extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                    self.dirty.push(slot);
                }
                connection.put_back(reader, served, now);
            }
        }
        self.finish_ended(slot);
    }

    /// Gives whether at least one request was served.
    fn serve_from(&mut self, slot: usize, reader: &mut RequestReader) -> bool {
        let mut served = false;
        while let Some(connection) = self.connections.get_mut(slot) {
            connection.holds_unserved = connection.phase == Phase::Requests && connection.postpones();
            if connection.holds_unserved || connection.phase != Phase::Requests {
                break;
            }
            match reader.next() {
                Ok(Some(raw)) => self.request(slot, &raw),
                Ok(None) => {
                    self.refuse_by_head(slot, reader);
                    break;
                }
                Err(error) => self.refuse(slot, reader, error),
            }
            served = true;
        }
        served
    }

    fn refuse(&mut self, slot: usize, reader: &RequestReader, error: HttpError) {
        // A client that may not make the request is not told how long its body could be.
        if error == HttpError::BodyTooLong && self.refuse_by_head(slot, reader) {
            return;
        }
        self.connections[slot].page = self.context.gate.reader_of(reader);
        self.connections[slot].is_own = reader.target().is_some_and(problem::is_told_at);
        self.write(slot, &Answer::of_http_error(error), Persistence::Close, false);
    }
}
