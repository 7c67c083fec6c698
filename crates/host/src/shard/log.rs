//! The shard's side of the event log: what is accepted goes in, and durable answers wait until it is synced.

use bodkin_arrowhead::{error::ArrowheadError, publication::Publication};
use bodkin_broker::{EventId, Sequence, StreamIdentity};
use bodkin_store::event_log::Position;

use super::{ConnectionKey, Phase, Shard, zmtp::LinkKey};
use crate::answer::{Answer, Refusal};

/// A publisher that is answered when its event is synced.
#[derive(Clone, Copy)]
pub(super) enum Waiting {
    /// A request's.
    Connection(ConnectionKey),
    /// A REQ's.
    Link(LinkKey),
    /// That of a stream, which is told that everything up to here is covered.
    Stream(StreamIdentity, Sequence),
}

impl Shard {
    /// Puts an accepted event into the log; the topic is the one that was just authorised.
    pub(super) fn append(&mut self, event: EventId, publication: &Publication<'_>) -> Option<Position> {
        let log = self.log.as_mut()?;
        let json = std::str::from_utf8(self.frames.json(publication)).expect("JSON is UTF-8");
        Some(log.append(self.clock.utc.unix_nanos(), event, &self.scratch.event_type, json, self.clock.now))
    }

    /// Whether the event type that was just authorised is a durable one.
    pub(super) fn is_durable(&self) -> bool {
        let event_type = self.scratch.event_type.as_str();
        self.context.durable.contains(event_type) || self.real_time_topic(event_type).is_some_and(|topic| topic.is_durable)
    }

    /// A durable event that cannot be kept is not taken at all: then its publisher knows, and may try again.
    pub(super) fn check_durable(&self) -> Result<(), ArrowheadError> {
        if !self.is_durable() || self.log.as_ref().is_some_and(|log| !log.is_suspended()) {
            return Ok(());
        }
        let event_type = &self.scratch.event_type;
        Err(ArrowheadError::unavailable(format!("Event type {event_type} is durable, but the event log is suspended. Try again later.")))
    }

    /// Answers a publisher when everything up to its event is on the disk.
    pub(super) fn answer_when_synced(&mut self, slot: usize, keep_alive: bool, position: Position) {
        let connection = &mut self.connections[slot];
        connection.phase = Phase::Waiting { keep_alive, is_head: false };
        self.unsynced.push_back((position, Waiting::Connection(ConnectionKey { slot, serial: connection.serial })));
    }

    /// Writes what the turn has accepted, in front of the answers that say so.
    pub(super) fn write_log(&mut self) {
        let Some(log) = &mut self.log else { return };
        log.write(self.clock.now);
        if self.unsynced.is_empty() {
            return;
        }
        if log.is_suspended() {
            let end = log.next_position();
            return self.synced(end, Err("the disk takes nothing".into()));
        }
        log.sync();
    }

    /// Answers the durable publishers of events in front of `end`: they are on the disk, or cannot be brought there.
    pub(super) fn synced(&mut self, end: Position, result: Result<(), String>) {
        let result = result.map_err(|error| {
            ArrowheadError::unavailable(format!(
                "The event was delivered, but is not on the disk: {error}. If it is published again, it is delivered again."
            ))
        });
        while let Some((_, waiting)) = self.unsynced.pop_front_if(|(position, _)| *position < end) {
            match (waiting, &result) {
                (Waiting::Connection(key), Ok(())) => self.answered(key, &Answer::empty(200)),
                (Waiting::Connection(key), Err(error)) => self.answered(key, &Refusal::from(error.clone()).into()),
                (Waiting::Link(key), result) => self.answer_link(key, result.as_ref().copied()),
                (Waiting::Stream(stream, through), Ok(())) => self.endpoint.runs.cover(stream, through),
                (Waiting::Stream(stream, through), Err(error)) => self.tell_not_kept(stream, through, error),
            }
        }
    }
}
