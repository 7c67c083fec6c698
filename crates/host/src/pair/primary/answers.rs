//! Commits that wait for their answers: each is answered when the Backup has it on its disk, or when it is recorded that it does without.

use bodkin_broker::{member::Protection, wire::LINK_FRAME_BYTES_MAX};
use bodkin_store::replication::Group;

use super::{Change, Primary, Session, TooFar};
use crate::pair::boot_time;

/// Largest operation that fits a frame beside its fields.
pub(super) const OPERATION_BYTES_MAX: usize = LINK_FRAME_BYTES_MAX - 64;

/// A commit that is not answered.
pub(super) struct Commit {
    /// The last operation of it, or in front of it.
    pub number: u64,
    pub group: Group,
}

impl Primary {
    /// Takes a commit into the row of those that wait for their answers, and queues its changes for the Backup.
    pub fn committed(&mut self, mut group: Group) -> Result<(), TooFar> {
        let operations = std::mem::take(&mut group.operations);
        let first = self.committed + 1;
        self.committed += operations.len() as u64;
        self.commits.push_back(Commit { number: self.committed, group });
        let change = |(number, operation): (u64, Vec<u8>)| Change { number, operation: operation.into() };
        let changes: Vec<Change> = (first..).zip(operations).map(change).collect();
        changes.iter().for_each(|change| self.tail.push(change));
        let queued = self.queue_changes(changes);
        if self.is_fenced {
            self.fenced();
        }
        self.settle();
        queued
    }

    /// Queues changes for the Backup, unless there is no session: then nobody needs them.
    pub(super) fn queue_changes(&mut self, changes: impl IntoIterator<Item = Change>) -> Result<(), TooFar> {
        match self.session {
            Session::None | Session::Wanted | Session::Asked => Ok(()),
            _ => changes.into_iter().try_for_each(|change| self.queue.push(change)),
        }
    }

    /// The Backup has the operation of this number on its disk.
    pub fn replicated(&mut self, number: u64) {
        self.replicated = self.replicated.max(number);
        self.settle();
        self.tell_in_sync();
    }

    /// Whether a change waits to be answered.
    pub fn owes_answers(&self) -> bool {
        !self.commits.is_empty()
    }

    /// Whether answers wait for no Backup.
    pub(super) fn is_alone(&self) -> bool {
        self.protection == Protection::Alone && !matches!(self.session, Session::Settling | Session::InSync)
    }

    /// Answers the commits that are safe.
    pub(super) fn settle(&mut self) {
        let is_alone = self.is_alone();
        let replicated = if matches!(self.session, Session::InSync) { self.replicated } else { 0 };
        if !self.leads(boot_time()) {
            return;
        }
        while let Some(commit) = self.commits.pop_front_if(|commit| is_alone || commit.number <= replicated) {
            commit.group.release();
        }
        let acknowledged = self.replicated;
        while self.records.pop_front_if(|(number, _)| *number <= acknowledged).is_some() {}
        // What nobody has been sent is answered all the same.
        if is_alone
            && matches!(self.session, Session::None | Session::Wanted | Session::Asked)
            && let Some((_, first)) = self.records.front()
        {
            self.lack.note(*first);
            self.records.clear();
        }
    }
}
