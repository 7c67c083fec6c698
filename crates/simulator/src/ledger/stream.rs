//! The account of one stream: every message, and how far each subscriber is.

use std::{collections::VecDeque, ops::Range};

use super::{Calm, Suspended, Suspension, Tally};
use crate::{
    clock::Time,
    violation::{Broken, StreamName},
};

/// What is promised on a stream, and how its publisher keeps and sends events.
#[derive(Clone, Copy, Debug)]
pub struct StreamTerms {
    /// L; `None`: any number.
    pub tolerance: Option<u64>,
    /// D in nanoseconds, if there is one.
    pub deadline_ns: Option<u64>,
    /// N: the newest events that the publisher keeps, whatever is covered.
    pub retention: u64,
    /// The pause after which its token bucket is full, whatever the clocks showed before, in nanoseconds.
    pub refill_ns: u64,
}

/// Why a message may be missing although no crash took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// The broker shed or expired it: it counts against L as a crash's losses do (timing theory, section 8.4).
    ByBroker,
    /// A broker called it excess while a wrong clock excused that: nothing is promised of it.
    Excess,
    /// It was never covered by a promise, and its publisher knows: dropped by its full publisher, or not handed over when the publisher died.
    ByPublisher,
}

#[derive(Clone, Copy, Debug)]
struct Message {
    created: Time,
    given_up: Option<GivenUp>,
}

/// Messages that one who is owed nothing has missed and may still get: those of a resend or two.
const MISSED_MAX: usize = 256;

#[derive(Clone, Debug)]
struct Reader {
    subscriber: u16,
    /// It was promised everything that the topic promises.
    is_owed: bool,
    /// What it got last, or what was there when it came.
    last: u64,
    lost: u64,
    told: u64,
    /// What it has missed and may come late, once, newest last: to who is owed nothing, when a new Primary is sent again what the subscriber had
    /// come too late for at the old one; to all others, what the old one had dropped as late, which the new one does not know.
    missed: VecDeque<u64>,
}

impl Reader {
    /// Notes what it has missed and may come late.
    fn misses(&mut self, sequences: Range<u64>) {
        let newest = sequences.start.max(sequences.end.saturating_sub(MISSED_MAX as u64))..sequences.end;
        self.missed.extend(newest);
        self.missed.drain(..self.missed.len().saturating_sub(MISSED_MAX));
    }

    /// Whether a message is one that was missed, which it is no more.
    fn takes_late(&mut self, sequence: u64) -> bool {
        let place = self.missed.iter().position(|missed| *missed == sequence);
        place.is_some_and(|place| self.missed.remove(place).is_some())
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct StreamAccount {
    name: StreamName,
    tolerance: Option<u64>,
    deadline_ns: Option<u64>,
    retention: u64,
    /// The publisher keeps no event before this one.
    kept_from: u64,
    /// From the first one that somebody still waits for.
    messages: VecDeque<Message>,
    /// Sequence in front of the first of `messages`.
    settled: u64,
    covered: u64,
    /// Losses up to here are nobody's fault.
    excused: u64,
    readers: Vec<Reader>,
    /// The newest message that a broker has dropped, and when.
    dropped: (u64, Time),
    /// The events that a wrong clock excuses.
    suspension: Suspension,
    /// Its publisher is dead: nobody says any more which message was the last.
    is_over: bool,
}

impl StreamAccount {
    pub(super) fn new(name: StreamName, terms: StreamTerms, suspension: Suspension) -> Self {
        let StreamTerms { tolerance, deadline_ns, retention, .. } = terms;
        Self {
            name,
            tolerance,
            deadline_ns,
            retention,
            kept_from: 1,
            messages: VecDeque::new(),
            settled: 0,
            covered: 0,
            excused: 0,
            readers: Vec::new(),
            dropped: (0, Time::default()),
            suspension,
            is_over: false,
        }
    }

    fn created_through(&self) -> u64 {
        self.settled + self.messages.len() as u64
    }

    pub(super) fn subscribe(&mut self, subscriber: u16, is_owed: bool) {
        let last = self.created_through();
        self.readers.push(Reader { subscriber, is_owed, last, lost: 0, told: 0, missed: VecDeque::new() });
    }

    pub(super) fn suspend(&mut self, suspended: Suspended) {
        if suspended.includes(self.name) {
            // A publisher sends what it keeps along with its first event to a new leader, which may be long after the takeover.
            let newest = self.created_through();
            self.suspension.begin(if suspended == Suspended::All { newest.min(self.kept_from) } else { newest });
        }
    }

    pub(super) fn resume(&mut self, at: Time) {
        self.suspension.clocks_are_right(at);
    }

    /// Another node leads: the publisher sends it what it keeps.
    pub(super) fn led_anew(&mut self) {
        self.suspension.resent(self.kept_from, self.created_through());
    }

    /// A broker calls a message excess, which only a wrong clock excuses.
    pub(super) fn excess(&mut self, sequence: u64) -> Result<(), Broken> {
        if !self.suspension.excuses(sequence) {
            return Err(Broken::Excess { stream: self.name, sequence });
        }
        self.give_up(sequence, GivenUp::Excess);
        Ok(())
    }

    pub(super) fn created(&mut self, at: Time) -> u64 {
        self.suspension.created(at, self.created_through() + 1);
        self.messages.push_back(Message { created: at, given_up: None });
        self.created_through()
    }

    pub(super) fn given_up(&mut self, at: Time, sequence: u64, by: GivenUp) {
        if by == GivenUp::ByBroker && sequence >= self.dropped.0 {
            self.dropped = (sequence, at);
        }
        self.give_up(sequence, by);
    }

    fn give_up(&mut self, sequence: u64, by: GivenUp) {
        if let Some(message) = self.message(sequence) {
            // What was never promised may be dropped by anybody.
            message.given_up = message.given_up.filter(|before| *before != GivenUp::ByBroker).or(Some(by));
        }
    }

    fn message(&mut self, sequence: u64) -> Option<&mut Message> {
        let index = usize::try_from(sequence.checked_sub(self.settled + 1)?).ok()?;
        self.messages.get_mut(index)
    }

    pub(super) fn covered(&mut self, at: Time, through: u64) {
        self.suspension.covered(at, through);
        self.covered = self.covered.max(through);
        // The publisher lets go of what is covered, except for its newest events.
        let guaranteed = self.created_through().saturating_sub(self.retention);
        self.kept_from = self.kept_from.max(self.covered.min(guaranteed) + 1);
    }

    pub(super) fn publisher_died(&mut self) {
        self.is_over = true;
        for sequence in self.covered + 1..=self.created_through() {
            self.give_up(sequence, GivenUp::ByPublisher);
        }
    }

    pub(super) fn excuse(&mut self) {
        self.excused = self.created_through();
    }

    pub(super) fn delivered(&mut self, at: Time, subscriber: u16, sequence: u64, calm: Calm, tally: &mut Tally) -> Result<(), Broken> {
        let stream = self.name;
        let index = self.readers.iter().position(|reader| reader.subscriber == subscriber);
        let Some(index) = index.filter(|_| sequence <= self.created_through()) else {
            return Err(Broken::Forged { stream, subscriber, sequence });
        };
        let last = self.readers[index].last;
        if self.readers[index].takes_late(sequence) {
            return Ok(());
        }
        if sequence <= last {
            return Err(Broken::Order { stream, subscriber, last, sequence });
        }
        self.gap(index, sequence, tally)?;
        let created = self.message(sequence).expect("what is above the last one is kept").created;
        self.readers[index].last = sequence;
        self.trim();
        self.punctual(at, subscriber, sequence, created, calm, tally)
    }

    /// Judges what is missing between a reader's last message and `next`.
    fn gap(&mut self, reader: usize, next: u64, tally: &mut Tally) -> Result<(), Broken> {
        let (subscriber, last) = (self.readers[reader].subscriber, self.readers[reader].last);
        if !self.readers[reader].is_owed {
            self.readers[reader].misses(last + 1..next);
            return Ok(());
        }
        let missing = next - last - 1;
        self.readers[reader].lost += missing;
        tally.lost += missing;
        let tolerance = self.tolerance.unwrap_or(u64::MAX);
        let mut run = 0;
        for sequence in last + 1..next {
            let by = self.message(sequence).expect("what is above the last one is kept").given_up;
            if matches!(by, Some(GivenUp::ByBroker | GivenUp::Excess)) {
                self.readers[reader].misses(sequence..sequence + 1);
            }
            if sequence <= self.excused || matches!(by, Some(GivenUp::ByPublisher | GivenUp::Excess)) {
                continue;
            }
            if tolerance == 0 && by.is_none() && sequence <= self.covered {
                return Err(Broken::CoveredLost { stream: self.name, subscriber, sequence });
            }
            run += 1;
        }
        tally.longest_run = tally.longest_run.max(run);
        if run > tolerance {
            return Err(Broken::LossRun { stream: self.name, subscriber, last, next, run, tolerance });
        }
        Ok(())
    }

    fn punctual(&self, at: Time, subscriber: u16, sequence: u64, created: Time, calm: Calm, tally: &mut Tally) -> Result<(), Broken> {
        let Some(deadline_ns) = self.deadline_ns else { return Ok(()) };
        let due = created.plus(deadline_ns);
        if at <= due {
            return Ok(());
        }
        if calm.holds(created, due) && !self.suspension.excuses(sequence) {
            return Err(Broken::Late { stream: self.name, subscriber, sequence, late_ns: at.since(due) });
        }
        tally.late_near_faults += 1;
        Ok(())
    }

    /// A subscriber is told of losses by the next message, which comes then, or by the number of the last one, which does not: either way it has passed them over.
    pub(super) fn told(&mut self, subscriber: u16, from: u64, losses: u64, tally: &mut Tally) -> Result<(), Broken> {
        let through = from + losses - 1;
        if through > self.created_through() {
            return Err(Broken::Forged { stream: self.name, subscriber, sequence: through });
        }
        let Some(index) = self.readers.iter().position(|reader| reader.subscriber == subscriber) else { return Ok(()) };
        self.readers[index].told += losses;
        if through > self.readers[index].last {
            self.gap(index, through + 1, tally)?;
            self.readers[index].last = through;
            self.trim();
        }
        Ok(())
    }

    /// What nobody waits for any more is forgotten.
    fn trim(&mut self) {
        let read = self.readers.iter().map(|reader| reader.last).min().unwrap_or(self.settled);
        while self.settled < read {
            self.messages.pop_front();
            self.settled += 1;
        }
    }

    pub(super) fn settle(&mut self, led_since: Time, tally: &mut Tally) -> Result<(), Broken> {
        let behind_all = self.created_through() + 1;
        // Who has dropped the last message says so, as long as it leads and its publisher is there.
        let (last_dropped, dropped_at) = self.dropped;
        let ends_unseen = self.is_over || (last_dropped == self.created_through() && dropped_at <= led_since);
        for index in 0..self.readers.len() {
            let lost_before = self.readers[index].lost;
            self.gap(index, behind_all, tally)?;
            if ends_unseen {
                self.readers[index].lost = lost_before;
            }
            let Reader { subscriber, is_owed, last, lost, told, .. } = self.readers[index];
            if is_owed && told != lost {
                let missing = behind_all - 1 - last;
                return Err(match missing {
                    0 => Broken::LossesToldWrong { stream: self.name, subscriber, told, lost },
                    _ => Broken::Unaccounted { stream: self.name, subscriber, first: last + 1, missing },
                });
            }
            self.readers[index].last = behind_all - 1;
        }
        self.trim();
        Ok(())
    }
}
