//! How a Backup joins: it is sent the changes that it lacks, or a copy of the database and what is committed meanwhile.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use bodkin_broker::{
    BackupStanding, IN_FLIGHT_MAX, Instant,
    wire::{LinkFrame, Position, Replication},
};
use bodkin_store::event_log;

use super::{COPY_AHEAD_BYTES, COPY_FILE, ChangeQueue, Parting, Primary, Session, TAIL_SINCE, TooFar};

/// Bytes of a piece of the copy, of which a turn sends one.
const PART_BYTES: usize = 64 * 1024;
/// Most changes without an acknowledgement while a Backup catches up. It leaves room in the channel for the events that follow them.
const CHANGES_AHEAD: u64 = IN_FLIGHT_MAX as u64 / 8;

impl Primary {
    /// Where the database is to be copied to, if a copy has to be made now.
    pub fn wants_copy(&mut self, now: Instant) -> Option<PathBuf> {
        if !matches!(self.session, Session::Asked) || self.owed_since.is_some() || self.awaits_word() {
            return None;
        }
        self.copies += 1;
        self.owed_since = Some(now);
        Some(self.data.join(format!("{COPY_FILE}{}", self.copies)))
    }

    /// Whether the Backup has still to say what it has, or that has still to be looked for.
    fn awaits_word(&self) -> bool {
        let awaits_number = self.have.is_none() && self.link.as_ref().is_some_and(|link| link.protocol >= TAIL_SINCE);
        awaits_number || !matches!(self.parting, Parting::Known)
    }

    /// Queues what the Backup lacks, if it has all but the last changes. `position` is the last one of the channel, `log_end` behind the last record of the event
    /// log.
    pub fn resume(&mut self, position: Position, log_end: event_log::Position, now: Instant) -> Option<BackupStanding> {
        if !matches!(self.session, Session::Asked) || self.owed_since.is_some() || self.awaits_word() {
            return None;
        }
        let number = self.have??;
        let changes = self.tail.behind(number, self.committed)?;
        tracing::info!(changes = changes.len(), "the Backup is sent the changes that it lacks, and no copy");
        self.catch_up(None, number, log_end, now);
        self.queue_changes(changes).expect("the tail is shorter than the queue may be");
        self.send(Replication::Tail { epoch: self.epoch, position });
        Some(BackupStanding::CatchingUp)
    }

    /// Tells the Backup that the next operation is the one behind this one, unless it does not ask for numbers.
    pub(super) fn tell_number(&mut self, number: u64) {
        if self.link.as_ref().is_some_and(|link| link.protocol >= TAIL_SINCE) {
            self.send(Replication::Numbered { epoch: self.epoch, number });
            self.next_number = Some(number + 1);
        }
    }

    /// A session begins with this copy, or with what the Backup has, in which everything up to operation `given` is.
    fn catch_up(&mut self, copy: Option<File>, given: u64, log_end: event_log::Position, now: Instant) {
        (self.session, self.queue) = (Session::CatchingUp { copy }, ChangeQueue::behind(given));
        (self.given, self.owed_since) = (given, Some(now));
        self.lack.begin_session(log_end);
        self.tell_number(given);
    }

    /// The copy is made: everything that was committed until now is in it. `position` is the last one of the channel, `log_end` behind the last record of the event
    /// log.
    pub fn copied(
        &mut self,
        path: &Path,
        position: Position,
        log_end: event_log::Position,
        now: Instant,
    ) -> Result<Option<BackupStanding>, TooFar> {
        let opened = File::open(path);
        // Open or useless.
        let _ = fs::remove_file(path);
        if !matches!(self.session, Session::Asked) {
            return Ok(None);
        }
        let file = opened.map_err(|_| TooFar("the copy of the database cannot be read"))?;
        self.catch_up(Some(file), self.committed, log_end, now);
        self.send(Replication::SnapshotBegin { epoch: self.epoch, position });
        Ok(Some(BackupStanding::CatchingUp))
    }

    /// Sends the next piece of the copy, if there is one.
    pub fn pump(&mut self, now: Instant) -> Result<(), TooFar> {
        let (Session::CatchingUp { copy }, Some(link)) = (&mut self.session, &mut self.link) else { return Ok(()) };
        let Some(file) = copy.as_mut().filter(|_| link.queued() < COPY_AHEAD_BYTES) else { return Ok(()) };
        self.owed_since = Some(now);
        let mut part = vec![0; PART_BYTES];
        let bytes = file.read(&mut part).map_err(|_| TooFar("the copy of the database cannot be read"))?;
        if bytes > 0 {
            link.push(LinkFrame::Replication(Replication::SnapshotPart { epoch: self.epoch, part: &part[..bytes] }));
            self.is_awaited = true;
        } else {
            *copy = None;
        }
        Ok(())
    }

    /// Whether changes may go out now. While the Backup catches up, they wait for the end of its copy, for the socket, and for acknowledgements; until it is in
    /// sync, for the socket.
    pub(super) fn takes_changes(&self) -> bool {
        match &self.session {
            Session::CatchingUp { copy } => {
                let owed = self.queue.last_sent().saturating_sub(self.replicated.max(self.given));
                copy.is_none() && self.has_room() && owed < CHANGES_AHEAD
            }
            Session::Joining | Session::Settling => self.has_room(),
            _ => true,
        }
    }

    /// Whether replicas wait for the socket of a Backup that is not in sync, or for changes: those may declare topics of the replicas.
    pub fn holds_replicas(&self) -> bool {
        matches!(self.session, Session::Joining | Session::Settling) && !(self.has_room() && self.queue.is_empty())
    }

    /// Whether the connection takes more than it has. A Backup that joins is not in a hurry, and may be slow.
    fn has_room(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.queued() < COPY_AHEAD_BYTES)
    }

    /// Whether all that the Backup lacks of the database is sent, so that it is given what the shard keeps; true once.
    pub fn has_sent_changes(&mut self) -> bool {
        let is_sent = matches!(self.session, Session::CatchingUp { copy: None }) && self.queue.is_empty();
        if is_sent {
            (self.session, self.joining_since) = (Session::Joining, None);
        }
        is_sent
    }

    /// Whether the next piece of a copy, or changes behind it, can be sent at once.
    pub fn is_pumping(&self) -> bool {
        match (&self.session, &self.link) {
            (Session::CatchingUp { copy: Some(_) }, Some(link)) => link.queued() < COPY_AHEAD_BYTES,
            (Session::CatchingUp { copy: None }, _) => self.takes_changes(),
            _ => self.waits_for_socket && self.takes_changes(),
        }
    }
}
