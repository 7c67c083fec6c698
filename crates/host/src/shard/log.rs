//! The shard's side of the event log: what is accepted goes in, and durable answers wait until it is synced, of a pair on both disks.

use std::collections::VecDeque;

use bodkin_arrowhead::{error::ArrowheadError, publication::Publication};
use bodkin_broker::{EventId, Sequence, StreamIdentity, TopicId};
use bodkin_store::event_log::{Origin, Position, Record, RecordName, batch};

use super::{Shard, connection::Phase, from_fleet::FleetMessage, logged::Logged, zmtp::LinkKey};
use crate::{
    answer::{Answer, Refusal},
    http::Persistence,
    inbox::ConnectionKey,
    pair::{Ticket, primary::Primary},
    seldom::Seldom,
};

/// A batch of records for the Backup takes no further one from here on, so that it fits a frame.
pub(super) const BATCH_BYTES: usize = 256 * 1024;

/// Publishers and streams that may wait for a disk. Beyond, events of durable event types are refused; those that were accepted before still join.
pub(super) const UNSYNCED_MAX: usize = 1 << 20;

/// A publisher that is answered when its event is synced.
#[derive(Clone, Copy)]
pub(super) enum Waiting {
    /// A request's.
    Connection(ConnectionKey),
    /// A REQ's.
    Link(LinkKey),
    /// A DEALER, which is told only if this event cannot be synced.
    Event(StreamIdentity, Sequence),
    /// That of a stream, which is told that everything up to here is covered.
    Stream(StreamIdentity, Sequence),
    /// The fleet, which acknowledges a message of its stream.
    Fleet(FleetMessage),
}

impl Waiting {
    /// Whether the publisher keeps its events until they are covered.
    fn keeps_events(&self) -> bool {
        matches!(self, Self::Event(..) | Self::Stream(..))
    }
}

/// What waits for a disk.
#[derive(Default)]
pub(super) struct Unsynced {
    /// Publishers that are answered when everything up to the position is synced.
    pub(super) publishers: VecDeque<(Position, Waiting)>,
    /// How often it is logged that there are too many of them.
    refused: Seldom,
    /// Behind the last record that is synced here.
    end: Position,
    /// Records of durable event types for the Backup, and the place of each batch's first.
    batches: VecDeque<(Position, Vec<u8>)>,
    /// How far the log has each stream of a durable real-time topic.
    pub(super) logged: Logged,
    /// Of a node that follows: what the leader is told once everything in front of the position is synced.
    tickets: VecDeque<(Position, Ticket)>,
}

impl Unsynced {
    /// Notes a record that the Backup is to have on its disk.
    pub(super) fn copy(&mut self, record: &Record<'_>) {
        // A frame of the pair takes a batch with one event of the greatest length, and no more.
        if self.batches.back().is_none_or(|(_, bytes)| bytes.len() + record.event.len() >= BATCH_BYTES) {
            self.batches.push_back((record.position, Vec::new()));
        }
        batch::push(record, &mut self.batches.back_mut().expect("there is one").1);
    }

    /// Limits `safe` to the records that the Backup was sent: it does not have a batch that still waits here.
    fn sent_through(&self, safe: Position) -> Position {
        self.batches.front().map_or(safe, |(first, _)| safe.min(*first))
    }
}

impl Shard {
    /// Puts an accepted event into the log; the topic is the one that was just authorised.
    pub(super) fn append(&mut self, event: EventId, publication: &Publication<'_>) -> Option<Position> {
        let is_durable = self.is_durable();
        let log = self.log.as_mut()?;
        let json = std::str::from_utf8(self.frames.json(publication)).expect("JSON is UTF-8");
        let (time_ns, topic) = (self.clock.utc.unix_nanos(), &*self.scratch.event_type);
        let position = log.append(time_ns, event, topic, json, self.clock.now);
        if is_durable {
            log.is_shared(RecordName { time_ns, id: event });
        }
        if is_durable && self.primary.is_some() {
            self.unsynced.copy(&Record { position, time_ns, id: event, topic, event: json, origin: None });
        }
        Some(position)
    }

    /// Puts a resume token behind the id of the next event, where nodes send each other events.
    pub(super) fn set_token(&mut self, origin: Option<(Origin, u64)>) {
        if let (Some(token), Some(log)) = (&mut self.nodes.token, &self.log) {
            token.append(log.next_position(), self.clock.utc.unix_nanos(), origin);
            self.frames.set_token(token);
        }
    }

    /// Sends the Backup what it is to have on its disk too.
    pub(super) fn copy_records(&mut self) {
        while let Some((first, batch)) = self.unsynced.batches.pop_front() {
            let Some(primary) = &mut self.primary else { unreachable!("a cloud by itself copies nothing") };
            let queued = primary.logged(batch, first);
            self.send_queued(queued);
        }
    }

    /// Takes records that the leader has accepted into the log of this node, which follows. A log that is switched off or suspended takes none.
    pub(super) fn take_records(&mut self, batch: &[u8], ticket: Ticket) {
        let taken = match (&mut self.log, batch::records(batch)) {
            (_, Err(damaged)) => Err(damaged.to_string()),
            (None, _) => Err("the event log is switched off here, and not at the leader".to_owned()),
            (Some(log), _) if log.is_suspended() => Err("the event log is suspended".to_owned()),
            (Some(log), Ok(records)) => {
                for record in records {
                    log.append_copy(&record, self.clock.now);
                    if let Some(topic) = self.broker.topic_id(record.topic) {
                        let EventId { publisher, incarnation, sequence, .. } = record.id;
                        self.unsynced.logged.note(StreamIdentity { topic, publisher, incarnation }, sequence);
                    }
                }
                self.unsynced.tickets.push_back((log.next_position(), ticket));
                Ok(())
            }
        };
        if taken.is_err() {
            self.confirm(ticket, taken);
        }
    }

    fn confirm(&self, ticket: Ticket, result: Result<(), String>) {
        self.primary.as_ref().expect("only a leader of a pair sends records").pair().recorded(ticket, result);
    }

    /// Whether the event type that was just authorised is a durable one.
    pub(super) fn is_durable(&self) -> bool {
        self.is_durable_on(self.broker.topic_id(&self.scratch.event_type))
    }

    fn is_durable_on(&self, topic: Option<TopicId>) -> bool {
        self.context.durable.contains(self.scratch.event_type.as_str()) || topic.is_some_and(|topic| self.is_durable_topic(topic))
    }

    /// A durable event that cannot be kept is not taken at all: then its publisher knows, and may try again. `topic`: that of its event type, if it is a real-time one.
    pub(super) fn check_durable(&self, topic: Option<TopicId>) -> Result<(), ArrowheadError> {
        let is_full = self.unsynced.publishers.len() >= UNSYNCED_MAX;
        if self.log.as_ref().is_some_and(|log| !log.is_suspended() && !is_full) || !self.is_durable_on(topic) {
            return Ok(());
        }
        if is_full && let Some(times) = self.unsynced.refused.due() {
            tracing::warn!(times, UNSYNCED_MAX, "an event of a durable event type was refused: too many wait for a disk");
        }
        let (event_type, state) = (&self.scratch.event_type, if is_full { "too far behind" } else { "suspended" });
        Err(ArrowheadError::unavailable(format!("Event type {event_type} is durable, but the event log is {state}. Try again later.")))
    }

    /// Answers a publisher when everything up to its event is on the disk.
    pub(super) fn answer_when_synced(&mut self, slot: usize, keep_alive: Persistence, position: Position) {
        let connection = &mut self.connections[slot];
        connection.phase = Phase::Waiting { keep_alive, is_head: false };
        self.unsynced.publishers.push_back((position, Waiting::Connection(ConnectionKey { slot, serial: connection.serial })));
    }

    /// Writes what the turn has accepted, in front of the answers that say so.
    pub(super) fn write_log(&mut self) {
        let Some(log) = &mut self.log else { return };
        log.write(self.clock.now);
        // What a log that was suspended meanwhile has skipped, it counts.
        self.nodes.unwritten.drain(..).for_each(|done| drop(done.send(Ok(()))));
        if std::mem::take(&mut self.nodes.is_to_cross)
            && let Some(crossing) = &self.context.crossing
        {
            crossing.written();
        }
        if self.unsynced.publishers.is_empty() && self.unsynced.tickets.is_empty() {
            return;
        }
        if log.is_suspended() {
            let end = log.next_position();
            return self.synced(end, Err("the disk takes nothing".into()));
        }
        log.sync();
    }

    /// Everything in front of `end` is on the disk, or cannot be brought there: publishers and the leader are told.
    pub(super) fn synced(&mut self, end: Position, result: Result<(), String>) {
        while let Some((_, ticket)) = self.unsynced.tickets.pop_front_if(|(behind, _)| *behind <= end) {
            self.confirm(ticket, result.clone());
        }
        let Err(error) = result else {
            self.unsynced.end = self.unsynced.end.max(end);
            return self.answer_durable();
        };
        // The log may lack what it was noted to have: twice is better than never.
        self.unsynced.logged = Logged::default();
        let error = ArrowheadError::unavailable(format!(
            "The event was delivered, but is not on the disk: {error}. If it is published again, it is delivered again."
        ));
        while let Some((_, waiting)) = self.unsynced.publishers.pop_front_if(|(position, _)| *position < end) {
            match waiting {
                Waiting::Connection(key) => self.answered(key, &Refusal::from(error.clone()).into()),
                Waiting::Link(key) => self.answer_link(key, Err(&error)),
                Waiting::Event(stream, sequence) => self.tell_not_kept(stream, sequence, &error),
                // Each event up to there is on the disk, or was just refused.
                Waiting::Stream(stream, through) => self.endpoint.runs.cover(stream, through),
                Waiting::Fleet(message) => self.answer_fleet(message, Err(&error)),
            }
        }
    }

    /// Answers the durable publishers of events that are on the disk, of a pair on the Backup's too or while it is recorded out.
    pub(super) fn answer_durable(&mut self) {
        let there = self.primary.as_ref().map_or(Position(u64::MAX), Primary::logged_through);
        let end = self.unsynced.sent_through(self.unsynced.end.min(there));
        if let Some(log) = &self.log {
            log.confirm(end);
        }
        while let Some((_, waiting)) = self.unsynced.publishers.pop_front_if(|(position, _)| *position < end) {
            match waiting {
                Waiting::Connection(key) => self.answered(key, &Answer::empty(200)),
                Waiting::Link(key) => self.answer_link(key, Ok(())),
                Waiting::Event(..) => {}
                Waiting::Stream(stream, through) => self.endpoint.runs.cover(stream, through),
                Waiting::Fleet(message) => self.answer_fleet(message, Ok(())),
            }
        }
    }

    /// Whether a request waits for a disk; publishers that keep their events do not count.
    pub(super) fn has_durable_requests(&self) -> bool {
        self.unsynced.publishers.iter().any(|(_, waiting)| !waiting.keeps_events())
    }

    /// Gives the publishers up that wait for a disk: this node does not lead any more. Those who keep their events need no word.
    pub(super) fn take_durable_publishers(&mut self) -> Vec<Waiting> {
        let waiting = self.unsynced.publishers.drain(..).map(|(_, waiting)| waiting);
        waiting.filter(|waiting| !waiting.keeps_events()).collect()
    }
}

#[cfg(test)]
mod tests {
    use bodkin_broker::{Incarnation, PublisherId};

    use super::*;

    /// A turn syncs what it accepts behind what it has sent to the Backup.
    #[test]
    fn durable_event_is_not_answered_before_the_backup_is_sent_it() {
        let mut unsynced = Unsynced::default();
        assert_eq!(unsynced.sent_through(Position(9)), Position(9));
        let id = EventId { publisher: PublisherId(1), incarnation: Incarnation(1), topic: TopicId(0), sequence: Sequence(1) };
        unsynced.copy(&Record { position: Position(7), time_ns: 1, id, topic: "kept", event: "{}", origin: None });
        assert_eq!(unsynced.sent_through(Position(9)), Position(7));
        assert_eq!(unsynced.sent_through(Position(5)), Position(5));
        unsynced.batches.clear();
        assert_eq!(unsynced.sent_through(Position(9)), Position(9));
    }
}
