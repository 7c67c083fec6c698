//! Ledger of a campaign: what was answered on each line, and what has arrived at the end of each path.
//!
//! Clients record into the [`Ledger`]. After each fault, [`Ledger::is_missing`] tells whether something has not arrived yet, and
//! [`Ledger::settle`] returns the breaches and closes the account: a breach is reported once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use crate::crash::fate::Fates;
use crate::crash::ledger::{Answer, Breach, named};

/// Refusals of one line that are kept, by their text.
const REFUSALS_MAX: usize = 32;

/// Promise to the end of a path about answered events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Each arrives once, in order.
    OnceInOrder,
    /// Each arrives.
    Arrives,
}

/// Numbered events of one publisher.
#[derive(Debug)]
struct Line {
    name: String,
    /// By sequence, from 1.
    answers: Vec<Answer>,
    accepted_at: Option<Instant>,
    refusals: BTreeMap<String, u64>,
}

/// What one subscriber receives of one line.
#[derive(Debug)]
struct Path {
    line: usize,
    subscriber: String,
    promise: Promise,
    fates: Fates,
    /// Sequences that have arrived again since the last account.
    again: Vec<u64>,
    /// Entries of the fates' disorder that were accounted.
    ordered: usize,
    /// Everything up to this sequence was accounted.
    settled: u64,
}

/// What a fault explains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excuse {
    /// Lines whose answered events may be lost with a report.
    pub may_lose: BTreeSet<usize>,
    /// Lines whose events may arrive again.
    pub may_repeat: BTreeSet<usize>,
}

/// The account after one fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Broken promises.
    pub breaches: Vec<Breach>,
    /// Missing events that the fault explains.
    pub excused_losses: u64,
    /// Repeated events that the fault explains.
    pub excused_repeats: u64,
    /// Loss reports that subscribers have received.
    pub loss_reports: u64,
}

/// All lines and paths.
#[derive(Debug, Default)]
pub struct Ledger {
    lines: Vec<Line>,
    paths: Vec<Path>,
    /// Loss reports since the last account, by subscriber.
    reports: BTreeMap<String, u64>,
}

impl Ledger {
    /// Adds a line; returns its index.
    pub fn add_line(&mut self, name: &str) -> usize {
        self.lines.push(Line { name: name.to_owned(), answers: vec![Answer::Open], accepted_at: None, refusals: BTreeMap::new() });
        self.lines.len() - 1
    }

    /// Adds a path of a line to a subscriber.
    pub fn add_path(&mut self, line: usize, subscriber: &str, promise: Promise) {
        let subscriber = subscriber.to_owned();
        self.paths.push(Path { line, subscriber, promise, fates: Fates::default(), again: Vec::new(), ordered: 0, settled: 0 });
    }

    /// Records that a publisher sends its next event; returns the event's sequence.
    pub fn publish(&mut self, line: usize) -> u64 {
        let answers = &mut self.lines[line].answers;
        answers.push(Answer::Open);
        answers.len() as u64 - 1
    }

    /// Records that an event was accepted.
    pub fn accept(&mut self, line: usize, sequence: u64, at: Instant) {
        let line = &mut self.lines[line];
        line.answers[sequence as usize] = Answer::Accepted;
        line.accepted_at = Some(at);
    }

    /// Records that nobody has an event that was accepted.
    pub fn withdraw(&mut self, line: usize, sequence: u64) {
        self.lines[line].answers[sequence as usize] = Answer::Open;
    }

    /// Returns the accepted events of a line through `published` that have not arrived everywhere.
    pub fn missing_of(&self, line: usize, published: u64) -> BTreeSet<u64> {
        self.paths.iter().filter(|path| path.line == line).flat_map(|path| self.missing(path, published)).collect()
    }

    /// Records a refusal, which leaves open whether the event arrives.
    pub fn refuse(&mut self, line: usize, reason: &str) {
        let refusals = &mut self.lines[line].refusals;
        if refusals.len() < REFUSALS_MAX || refusals.contains_key(reason) {
            *refusals.entry(reason.to_owned()).or_default() += 1;
        }
    }

    /// Records an arrival; returns false if the event has arrived before.
    pub fn receive(&mut self, subscriber: &str, line: usize, sequence: u64) -> bool {
        let published = self.lines.get(line).map_or(0, |line| line.answers.len() as u64 - 1);
        let path = self.paths.iter_mut().find(|path| path.line == line && path.subscriber == subscriber);
        let Some(path) = path.filter(|_| (1..=published).contains(&sequence)) else { return true };
        if path.fates.has(sequence) {
            path.again.push(sequence);
            return false;
        }
        path.fates.take(sequence, false);
        true
    }

    /// Records that a subscriber has received a loss report.
    pub fn report_loss(&mut self, subscriber: &str) {
        *self.reports.entry(subscriber.to_owned()).or_default() += 1;
    }

    /// Returns the number of published events of each line.
    pub fn published(&self) -> Vec<u64> {
        self.lines.iter().map(|line| line.answers.len() as u64 - 1).collect()
    }

    /// Returns the accepted events, and the arrivals at all subscribers.
    pub fn counts(&self) -> [u64; 2] {
        let accepted = |line: &Line| line.answers.iter().filter(|answer| **answer == Answer::Accepted).count() as u64;
        let arrived = |path: &Path| (1..self.lines[path.line].answers.len() as u64).filter(|one| path.fates.has(*one)).count() as u64;
        [self.lines.iter().map(accepted).sum(), self.paths.iter().map(arrived).sum()]
    }

    /// Returns the refusals of all lines, by line and text.
    pub fn refusals(&self) -> Vec<(String, u64)> {
        let lines = self.lines.iter();
        lines.flat_map(|line| line.refusals.iter().map(|(text, count)| (format!("{}: {text}", line.name), *count))).collect()
    }

    /// Returns a breach for each line without an accepted event since `since`.
    pub fn silent(&self, since: Instant) -> Vec<Breach> {
        let silent = self.lines.iter().filter(|line| line.accepted_at.is_none_or(|at| at <= since));
        let breach = |line: &Line| Breach {
            expected: format!("{} are answered after the fault", line.name),
            came: format!("no answer; refusals: {:?}", line.refusals),
        };
        silent.map(breach).collect()
    }

    /// Returns true if answered events through `published` have not arrived. `are_excused`: those that the fault may have lost do not count.
    pub fn is_missing(&self, published: &[u64], are_excused: bool, excuse: &Excuse) -> bool {
        let counts = |path: &&Path| !(are_excused && excuse.may_lose.contains(&path.line));
        self.paths.iter().filter(counts).any(|path| !self.missing(path, published[path.line]).is_empty())
    }

    /// Closes the account of all events through `published`.
    pub fn settle(&mut self, published: &[u64], excuse: &Excuse) -> Account {
        let mut account = Account::default();
        let reports = std::mem::take(&mut self.reports);
        account.loss_reports = reports.values().sum();
        let mut closed = Vec::new();
        for path in &self.paths {
            let missing = self.missing(path, published[path.line]);
            let may_lose = excuse.may_lose.contains(&path.line);
            if may_lose {
                account.excused_losses += missing.len() as u64;
            } else if !missing.is_empty() {
                account.breaches.push(self.breach(path, format!("{} missing{}", missing.len(), named(&missing))));
            }
            if path.promise == Promise::OnceInOrder && !path.again.is_empty() {
                if excuse.may_repeat.contains(&path.line) {
                    account.excused_repeats += path.again.len() as u64;
                } else {
                    account.breaches.push(self.breach(path, format!("{} arrived again{}", path.again.len(), named(&path.again))));
                }
            }
            let is_accepted = |sequence: &u64| self.lines[path.line].answers[*sequence as usize] == Answer::Accepted;
            let late: Vec<u64> = path.fates.out_of_order[path.ordered..].iter().copied().filter(is_accepted).collect();
            let may_disorder = may_lose || excuse.may_repeat.contains(&path.line);
            if path.promise == Promise::OnceInOrder && !late.is_empty() && !may_disorder {
                account.breaches.push(self.breach(path, format!("{} behind a later one{}", late.len(), named(&late))));
            }
            closed.push(path.fates.out_of_order.len());
        }
        for (path, ordered) in self.paths.iter_mut().zip(closed) {
            path.again.clear();
            path.ordered = ordered;
            path.settled = published[path.line];
        }
        if excuse.may_lose.is_empty() {
            account.breaches.extend(reports.iter().map(|(subscriber, count)| Breach {
                expected: format!("{subscriber} receives no loss report, for nothing can be lost"),
                came: format!("{count} loss reports"),
            }));
        }
        account
    }

    fn breach(&self, path: &Path, came: String) -> Breach {
        let promise = match path.promise {
            Promise::OnceInOrder => "each answered event once and in order",
            Promise::Arrives => "each answered event",
        };
        Breach { expected: format!("{} receives of {}: {promise}", path.subscriber, self.lines[path.line].name), came }
    }

    /// Returns the accepted events after the last account that have not arrived.
    fn missing(&self, path: &Path, published: u64) -> Vec<u64> {
        let answers = &self.lines[path.line].answers;
        let of_account = path.settled + 1..=published;
        of_account.filter(|sequence| answers[*sequence as usize] == Answer::Accepted && !path.fates.has(*sequence)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A ledger of one line whose first five events are accepted, with one path.
    fn ledger(arrivals: &[u64]) -> (Ledger, Instant) {
        let mut ledger = Ledger::default();
        let (line, at) = (ledger.add_line("node-1"), Instant::now());
        ledger.add_path(line, "listener", Promise::OnceInOrder);
        for _ in 0..5 {
            let sequence = ledger.publish(line);
            ledger.accept(line, sequence, at);
        }
        for sequence in arrivals {
            ledger.receive("listener", line, *sequence);
        }
        (ledger, at)
    }

    #[test]
    fn missing_event_is_breach_once() {
        let (mut ledger, _) = ledger(&[1, 2, 4, 5]);
        assert!(ledger.is_missing(&[5], true, &Excuse::default()) && !ledger.is_missing(&[2], true, &Excuse::default()));
        let account = ledger.settle(&[5], &Excuse::default());
        assert!(account.breaches[0].came.contains("1 missing (numbers 3)"), "{account:?}");
        assert_eq!(ledger.settle(&[5], &Excuse::default()), Account::default());
    }

    #[test]
    fn withdrawn_event_is_not_missing() {
        let (mut ledger, _) = ledger(&[1, 2, 4, 5]);
        assert_eq!(ledger.missing_of(0, 5), [3].into());
        ledger.withdraw(0, 3);
        assert!(ledger.missing_of(0, 5).is_empty() && ledger.settle(&[5], &Excuse::default()).breaches.is_empty());
    }

    #[test]
    fn repeated_and_late_events_are_breaches() {
        let (mut ledger, _) = ledger(&[1, 3, 2, 4, 4, 5]);
        let came: Vec<String> = ledger.settle(&[5], &Excuse::default()).breaches.into_iter().map(|breach| breach.came).collect();
        assert_eq!(came, ["1 arrived again (numbers 4)", "1 behind a later one (numbers 2)"]);
    }

    #[test]
    fn excused_events_are_counted_and_no_breach() {
        let (mut ledger, _) = ledger(&[1, 2, 4, 4]);
        ledger.report_loss("listener");
        let excuse = Excuse { may_lose: [0].into(), may_repeat: [0].into() };
        assert!(ledger.is_missing(&[5], false, &excuse) && !ledger.is_missing(&[5], true, &excuse));
        let expected = Account { excused_losses: 2, excused_repeats: 1, loss_reports: 1, ..Account::default() };
        assert_eq!(ledger.settle(&[5], &excuse), expected);
    }

    #[test]
    fn loss_report_without_reason_is_breach() {
        let (mut ledger, _) = ledger(&[1, 2, 3, 4, 5]);
        ledger.report_loss("listener");
        let account = ledger.settle(&[5], &Excuse::default());
        assert!(account.breaches[0].expected.contains("no loss report"), "{account:?}");
    }

    #[test]
    fn line_without_answer_is_silent() {
        let (ledger, at) = ledger(&[1, 2, 3, 4, 5]);
        assert_eq!([ledger.silent(at).len(), ledger.silent(at - Duration::from_secs(1)).len()], [1, 0]);
    }
}
