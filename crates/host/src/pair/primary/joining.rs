//! How a Backup joins: it is sent the changes that it lacks, or a copy of the database and what is committed meanwhile.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use bodkin_broker::{
    Instant,
    wire::{LinkFrame, Position, Replication},
};
use bodkin_store::event_log;

use super::{COPY_AHEAD_BYTES, COPY_FILE, Change, Parting, Primary, Session, TAIL_SINCE, TooFar};

/// Bytes of a piece of the copy, of which a turn sends one.
const PART_BYTES: usize = 64 * 1024;

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

    /// What the Backup lacks, if it has all but the last changes: they go out at once, and it stands as [`BackupStanding::Joining`](bodkin_broker::BackupStanding::Joining). `position` is the last one of
    /// the channel, `log_end` behind the last record of the event log.
    pub fn resume(&mut self, position: Position, log_end: event_log::Position, now: Instant) -> Option<Vec<Change>> {
        if !matches!(self.session, Session::Asked) || self.owed_since.is_some() || self.awaits_word() {
            return None;
        }
        let number = self.have??;
        let changes = self.tail.behind(number, self.committed)?;
        tracing::info!(changes = changes.len(), "the Backup is sent the changes that it lacks, and no copy");
        (self.session, self.given, self.owed_since) = (Session::Joining, number, Some(now));
        self.lack.begin_session(log_end);
        self.tell_number(number);
        self.send(Replication::Tail { epoch: self.epoch, position });
        Some(changes)
    }

    /// Tells the Backup that the next operation is the one behind this one, unless it does not ask for numbers.
    pub(super) fn tell_number(&mut self, number: u64) {
        if self.link.as_ref().is_some_and(|link| link.protocol >= TAIL_SINCE) {
            self.send(Replication::Numbered { epoch: self.epoch, number });
            self.next_number = Some(number + 1);
        }
    }

    /// The copy is made: everything that was committed until now is in it. `position` is the last one of the channel, `log_end` behind the last record of the event
    /// log.
    pub fn copied(&mut self, path: &Path, position: Position, log_end: event_log::Position, now: Instant) -> Result<(), TooFar> {
        let opened = File::open(path);
        // Open or useless.
        let _ = fs::remove_file(path);
        if !matches!(self.session, Session::Asked) {
            return Ok(());
        }
        let file = opened.map_err(|_| TooFar("the copy of the database cannot be read"))?;
        self.given = self.committed;
        self.lack.begin_session(log_end);
        self.session = Session::Copying { file, tail: Vec::new(), tail_bytes: 0 };
        self.owed_since = Some(now);
        self.tell_number(self.given);
        self.send(Replication::SnapshotBegin { epoch: self.epoch, position });
        Ok(())
    }

    /// Sends the next piece of the copy. When all of it is sent: what has been committed meanwhile, which goes out behind it, when the Backup
    /// stands as [`BackupStanding::Joining`](bodkin_broker::BackupStanding::Joining).
    pub fn pump(&mut self, now: Instant) -> Result<Option<Vec<Change>>, TooFar> {
        let (Session::Copying { file, tail, .. }, Some(link)) = (&mut self.session, &mut self.link) else { return Ok(None) };
        if link.queued() >= COPY_AHEAD_BYTES {
            return Ok(None);
        }
        self.owed_since = Some(now);
        let mut part = vec![0; PART_BYTES];
        let bytes = file.read(&mut part).map_err(|_| TooFar("the copy of the database cannot be read"))?;
        if bytes > 0 {
            link.push(LinkFrame::Replication(Replication::SnapshotPart { epoch: self.epoch, part: &part[..bytes] }));
            self.is_awaited = true;
            return Ok(None);
        }
        let tail = std::mem::take(tail);
        self.session = Session::Joining;
        Ok(Some(tail))
    }

    /// Whether the next piece of a copy can be sent at once.
    pub fn is_pumping(&self) -> bool {
        matches!((&self.session, &self.link), (Session::Copying { .. }, Some(link)) if link.queued() < COPY_AHEAD_BYTES)
    }
}
