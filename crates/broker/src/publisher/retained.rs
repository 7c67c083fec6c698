//! The events that a publisher keeps of one topic: a ring from the oldest kept to the newest published.

use std::num::NonZeroU32;

use super::{Full, Published, Send, TopicKey};
use crate::{event::Sequence, time::Instant};

/// What to do with a new event when everything that is kept is uncovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// It is not taken until something is covered.
    Block,
    /// The oldest one is lost, and told.
    DropOldest,
}

/// How much of a topic is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Retention {
    newest: u32,
    capacity: NonZeroU32,
    when_full: WhenFull,
}

impl Retention {
    /// N newest events in any case, and uncovered ones up to `capacity` in all; a capacity below N, or of 0, is made large enough.
    pub fn new(newest: u32, capacity: u32, when_full: WhenFull) -> Self {
        Self { newest, capacity: NonZeroU32::new(capacity.max(newest)).unwrap_or(NonZeroU32::MIN), when_full }
    }

    /// How many events the caller has to have room for.
    pub fn capacity(self) -> u32 {
        self.capacity.get()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Retained {
    retention: Retention,
    /// Kept are `oldest..=newest`.
    pub oldest: u64,
    pub newest: u64,
    covered: u64,
    /// The next one to send on this session.
    next: u64,
    /// What is sent up to here may have been sent before.
    resent_through: u64,
    is_resuming: bool,
    pub paused_until: Option<Instant>,
    pub is_ready: bool,
    pub is_watched: bool,
    pub sent_at: Instant,
    /// When each event was created, by its place; nothing, if it was given up.
    created_utc_ns: Box<[Option<u64>]>,
}

impl Retained {
    pub fn new(retention: Retention) -> Self {
        Self {
            retention,
            oldest: 1,
            newest: 0,
            covered: 0,
            next: 1,
            resent_through: 0,
            is_resuming: false,
            paused_until: None,
            is_ready: false,
            is_watched: false,
            sent_at: Instant::default(),
            created_utc_ns: vec![None; retention.capacity() as usize].into(),
        }
    }

    fn place(&self, sequence: u64) -> usize {
        (sequence % u64::from(self.retention.capacity())) as usize
    }

    pub fn publish(&mut self, created_utc_ns: u64) -> Result<Published, Full> {
        let kept = self.newest + 1 - self.oldest;
        let mut dropped = None;
        if kept == u64::from(self.retention.capacity()) {
            let is_uncovered = self.oldest > self.covered && self.created_utc_ns[self.place(self.oldest)].is_some();
            if is_uncovered && self.retention.when_full == WhenFull::Block {
                return Err(Full { kept: kept as u32, oldest: self.oldest });
            }
            dropped = is_uncovered.then_some(Sequence(self.oldest));
            // A broker that has refused it takes nothing behind it until it is told that it will not come.
            self.is_resuming |= self.next == self.oldest;
            self.oldest += 1;
            self.next = self.next.max(self.oldest);
        }
        self.newest += 1;
        let place = self.place(self.newest);
        self.created_utc_ns[place] = Some(created_utc_ns);
        Ok(Published { sequence: Sequence(self.newest), place: place as u32, dropped })
    }

    /// Everything up to here is covered; false if that is not new. The newest N are kept all the same.
    pub fn cover(&mut self, through: Sequence) -> bool {
        if through.0 <= self.covered {
            return false;
        }
        self.covered = through.0;
        self.next = self.next.max(through.0 + 1);
        let guaranteed = (self.newest + 1).saturating_sub(u64::from(self.retention.newest));
        self.oldest = self.oldest.max((through.0 + 1).min(guaranteed));
        true
    }

    /// Everything that is kept is to be sent again, and in front of it what that is, if any of it was sent before. Where all of it is covered that goes in front of
    /// the next event.
    pub fn resume(&mut self) {
        self.is_resuming |= self.next > self.oldest || self.resent_through >= self.oldest;
        self.paused_until = None;
        (self.next, self.resent_through) = (self.oldest, self.newest);
    }

    /// Was refused, with whatever followed it: it is sent again, and then that. Of one that was dropped meanwhile the broker is told first that it will not come: it would
    /// wait for it, and take nothing behind it.
    pub fn rewind(&mut self, sequence: Sequence) {
        self.is_resuming |= self.was_dropped(sequence);
        self.resent_through = self.resent_through.max(self.next - 1);
        self.next = self.next.min(sequence.0.max(self.oldest).max(self.covered + 1));
    }

    /// Will not be taken: it is not sent again.
    pub fn give_up(&mut self, sequence: Sequence) {
        let place = self.place(sequence.0);
        self.created_utc_ns[place] = None;
    }

    pub fn was_sent(&self, sequence: Sequence) -> bool {
        (self.oldest..self.next).contains(&sequence.0)
    }

    /// Whether this event had to make room before it was covered.
    pub fn was_dropped(&self, sequence: Sequence) -> bool {
        (self.covered + 1..self.oldest).contains(&sequence.0)
    }

    pub fn last_sent(&self) -> Sequence {
        Sequence(self.next - 1)
    }

    /// Of what was sent and is neither covered nor given up, the oldest one.
    pub fn oldest_waiting(&self) -> Option<Sequence> {
        self.waiting_before(self.next).next()
    }

    /// Nothing up to here will be covered any more; gives what was waiting for that.
    pub fn give_up_through(&mut self, last: Sequence) -> Vec<Sequence> {
        let waiting: Vec<Sequence> = self.waiting_before(self.next.min(last.0 + 1)).collect();
        waiting.iter().for_each(|sequence| self.give_up(*sequence));
        waiting
    }

    fn waiting_before(&self, end: u64) -> impl Iterator<Item = Sequence> + use<'_> {
        let kept = self.oldest.max(self.covered + 1)..end;
        kept.filter(|sequence| self.created_utc_ns[self.place(*sequence)].is_some()).map(Sequence)
    }

    pub fn has_more(&self) -> bool {
        self.paused_until.is_none() && self.next <= self.newest && self.newest > self.covered
    }

    pub fn next_send(&mut self, topic: TopicKey) -> Option<Send> {
        if !self.has_more() {
            return None;
        }
        if std::mem::take(&mut self.is_resuming) {
            if self.resent_through >= self.oldest {
                // What has come since waits behind what was sent before, and is as old as its wait.
                self.resent_through = self.newest;
            }
            // Nobody is to wait for what was given up.
            let is_kept = |sequence: &u64| self.created_utc_ns[self.place(*sequence)].is_some();
            let to = (self.oldest..=self.newest).rev().find(is_kept).unwrap_or(self.oldest - 1);
            return Some(Send::Resume { topic, from: Sequence(self.oldest), to: Sequence(to) });
        }
        while self.next <= self.newest {
            let sequence = self.next;
            self.next += 1;
            let place = self.place(sequence);
            if let Some(created_utc_ns) = self.created_utc_ns[place] {
                let is_resent = sequence <= self.resent_through;
                return Some(Send::Event { topic, sequence: Sequence(sequence), place: place as u32, created_utc_ns, is_resent });
            }
        }
        None
    }
}
