//! The event log's part of what a leader owes its Backup: events of durable types are on both disks before they are answered, or are given to it when it joins.

use std::collections::BTreeSet;

use bodkin_broker::{BackupStanding, Instant};
use bodkin_store::event_log::{self, NAMES_MAX, RecordName};

use super::{COPY_AHEAD_BYTES, Change, Lack, Piece, Primary, Session, TooFar};
use crate::pair::{
    link::{Fault, Link},
    links::{LOGGED_SINCE, RECORDS_SINCE},
};

/// Batches that the Backup may owe an acknowledgement for while it is given what it lacks: its disk is slower than the way there.
const BATCHES_AHEAD: usize = 32;

/// What is known of where the Backup's event log parts from this node's. A node that leads may have answered events before its last start that its Backup never had:
/// only the two logs can tell.
#[derive(Debug)]
pub(super) enum Parting {
    /// The Backup is about to name its newest records; so far it has named these.
    Named(BTreeSet<RecordName>),
    /// They are being looked for in the own log.
    Sought,
    /// What it lacks is noted. One that names no records is known to lack what this leader has answered without it.
    Known,
}

impl Parting {
    /// At the beginning of a connection.
    pub fn with(link: &Link) -> Self {
        if link.protocol >= LOGGED_SINCE { Self::Named(BTreeSet::new()) } else { Self::Known }
    }

    /// The Backup has named one of its newest records.
    pub fn name(&mut self, record: RecordName) -> Result<(), Fault> {
        match self {
            Self::Named(names) if names.len() < NAMES_MAX => {
                names.insert(record);
                Ok(())
            }
            Self::Named(_) => {
                Err(Fault::new("too many records are named", format_args!("more than {NAMES_MAX} records of its event log are named")))
            }
            Self::Sought | Self::Known => Err("records of its event log are named where none are asked for".into()),
        }
    }
}

impl Primary {
    /// The names of the newest records that the Backup has, of which connection, if they are to be looked for in the event log now: it has named all of them,
    /// and nothing is answered on its account any more.
    pub fn wants_search(&mut self) -> Option<(u64, BTreeSet<RecordName>)> {
        if !matches!(self.session, Session::Asked) || self.have.is_none() {
            return None;
        }
        let Parting::Named(names) = &mut self.parting else { return None };
        let names = std::mem::take(names);
        self.parting = Parting::Sought;
        // The logs know better. What is logged from now on is noted as ever.
        self.lack = Lack::default();
        self.records.clear();
        Some((self.serial, names))
    }

    /// The Backup of this connection lacks the event log's durable records from this one on, of those that there were at the search; `None`: it has them.
    pub fn searched(&mut self, serial: u64, first: Option<event_log::Position>) {
        if serial == self.serial && matches!(self.parting, Parting::Sought) {
            first.into_iter().for_each(|first| self.lack.note(first));
            self.parting = Parting::Known;
        }
    }

    /// Takes records of durable event types, as a batch that begins at this place of the event log, and queues it for the Backup. One that does not know batches
    /// gets none.
    pub fn logged(&mut self, batch: Vec<u8>, first: event_log::Position) -> Result<(), TooFar> {
        if self.link.as_ref().is_some_and(|link| link.protocol < RECORDS_SINCE) {
            self.lack.note(first);
            return Ok(());
        }
        if self.lack.holds() && matches!(self.session, Session::CatchingUp { .. } | Session::Joining) {
            return self.lack.hold((first, batch));
        }
        let change = self.record(first, batch);
        self.queue_changes([change])?;
        self.settle();
        Ok(())
    }

    /// Gives a batch its number.
    fn record(&mut self, first: event_log::Position, batch: Vec<u8>) -> Change {
        self.committed += 1;
        self.records.push_back((self.committed, first));
        Change { number: self.committed, operation: batch.into() }
    }

    /// Which part of the event log is to be read for the Backup now, of which connection: it has everything else, and the connection has room.
    pub fn wants_piece(&mut self) -> Option<(u64, event_log::Position, event_log::Position)> {
        let has_room = self.link.as_ref().is_some_and(|link| link.queued() < COPY_AHEAD_BYTES && link.protocol >= RECORDS_SINCE);
        let has_room = has_room && self.records.len() < BATCHES_AHEAD;
        if !(has_room && self.is_given && matches!(self.session, Session::Joining)) {
            return None;
        }
        self.lack.next().map(|(from, until)| (self.serial, from, until))
    }

    /// A piece was read for this connection: it is queued.
    pub fn read_piece(&mut self, serial: u64, piece: Piece, now: Instant) -> Result<(), TooFar> {
        if serial != self.serial || !matches!(self.session, Session::Joining) {
            return Ok(());
        }
        // The Backup could not acknowledge while the piece was read.
        self.owed_since.iter_mut().for_each(|since| *since = now);
        let Piece { batch, next } = piece;
        let mut changes: Vec<Change> = batch.into_iter().map(|(first, batch)| self.record(first, batch)).collect();
        let held = self.lack.given(next);
        let is_last = held.is_some();
        changes.extend(held.into_iter().flatten().map(|(first, batch)| self.record(first, batch)));
        self.queue_changes(changes)?;
        if is_last {
            self.lack.end(self.queue.last_queued());
        }
        Ok(())
    }

    /// Ends the session because the event log could not be read. A Backup that lacks answered events must not lead.
    pub fn log_unread(&mut self, serial: u64, why: &str) -> Option<BackupStanding> {
        if serial != self.serial || self.link.is_none() {
            return None;
        }
        if let Some(times) = self.seldom.due("the event log is not read") {
            tracing::error!(why, times, "the event log cannot be read, so the Backup does not get what it lacks and does not get in sync");
        }
        Some(self.lose_session("the event log cannot be read"))
    }

    /// Whether a Backup that has joined has been given, and has acknowledged, what it lacked of the event log; true once.
    pub fn has_given_lacking(&mut self) -> bool {
        // Who has what is kept has the copy in front of it.
        self.is_given && matches!(self.session, Session::Joining) && self.lack.is_over(self.replicated.max(self.given))
    }

    /// Everything in front of this place of the event log is on the Backup's disk too, or needs not to be. A node that does not lead answers nobody.
    pub fn logged_through(&self) -> event_log::Position {
        if self.is_fenced {
            return event_log::Position(0);
        }
        if self.is_alone() {
            return event_log::Position(u64::MAX);
        }
        self.records.front().map_or(event_log::Position(u64::MAX), |(_, first)| *first)
    }

    /// The Backup has everything that is kept. Whether it lacks nothing of the event log either, so that it [has caught up](Self::caught_up).
    pub fn is_complete(&mut self) -> bool {
        self.is_given = true;
        !self.lack.holds() || self.link.as_ref().is_none_or(|link| link.protocol < RECORDS_SINCE)
    }
}
