//! Ledger of all events: what each publisher was answered, and what each subscriber has received.
//!
//! Clients record into the [`Ledger`]; after each fault, [`Ledger::breaches`] compares the answers with the
//! arrivals. It checks the promises of `docs/formats/acknowledgements.md` and no others; [`promise`] is the
//! table. Sequences count the events of one line from 1.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::fate::{Fates, Losses};
use super::plan::{Line, Transport};

/// Missing events that a breach names.
const NAMED_MAX: usize = 8;

/// Promise to a subscriber about answered events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// The event arrives exactly once.
    Once,
    /// The event arrives exactly once, and no answered event arrives after a later one.
    OnceInOrder,
    /// At most so many events in a row are missing; none arrives twice.
    Losses(u32),
    /// The event arrives.
    Arrives,
    /// The event arrives, or the subscriber receives a loss report.
    ArrivesOrReported,
    /// The event does not arrive twice.
    AtMostOnce,
    /// Nothing.
    Nothing,
}

/// Returns what a subscriber is promised of the answered events of a line. `has_failed_over`: another broker has led since
/// the events were answered.
pub fn promise(line: &Line, subscriber: Transport, has_failed_over: bool) -> Promise {
    let Line { transport, terms, .. } = line;
    match (subscriber, transport) {
        (Transport::Graph, _) => Promise::Once,
        (Transport::JetStream, Transport::Push | Transport::Pub) => Promise::AtMostOnce,
        (Transport::JetStream, Transport::Dealer) if terms.loss_tolerance != Some(0) => Promise::AtMostOnce,
        (Transport::JetStream, _) => Promise::Once,
        (Transport::Required, Transport::Push | Transport::Pub) => Promise::AtMostOnce,
        (_, Transport::Push | Transport::Pub) => Promise::Nothing,
        (Transport::Required, Transport::Dealer) => terms.loss_tolerance.map_or(Promise::AtMostOnce, Promise::Losses),
        (Transport::Required, _) if terms.loss_tolerance == Some(0) => Promise::OnceInOrder,
        (Transport::Required, _) => Promise::AtMostOnce,
        // *Covered* passes over events that the publisher itself has dropped.
        (Transport::Stream | Transport::Callback, Transport::Dealer) if terms.loss_tolerance != Some(0) => Promise::Nothing,
        // The event is in the event logs of both nodes.
        (Transport::Stream, _) if terms.is_durable => Promise::Arrives,
        (Transport::Stream, _) => Promise::ArrivesOrReported,
        // Only the former leader's event log has the other ones.
        (Transport::Callback, _) if terms.is_durable || !has_failed_over => Promise::Arrives,
        _ => Promise::Nothing,
    }
}

/// Answer to one published event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// None, or one that leaves open whether the event counts.
    #[default]
    Open,
    /// The event was accepted: 200, or covered.
    Accepted,
    /// The event was refused, and nothing was done with it.
    Refused,
    /// The event came too fast: it has no promise.
    Excess,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Breach {
    /// What was expected.
    pub expected: String,
    /// What came.
    pub came: String,
}

/// Events and arrivals of one line.
#[derive(Debug, Default)]
struct Account {
    /// By sequence, from 1.
    answers: Vec<Answer>,
    /// Sequence of the last covered event of a DEALER publisher.
    covered: u64,
    excess: BTreeSet<u64>,
    accepted_at: Vec<Instant>,
    /// Results of the graph that no events of this line have, if each was processed once and in order.
    wrong_results: u64,
    /// Refusals, by their text.
    refusals: BTreeMap<String, u64>,
    last_refusal: Option<String>,
    without_reason: u64,
    /// In the order of [`Transport::SUBSCRIBERS`].
    received: [Received; Transport::SUBSCRIBERS.len()],
}

#[derive(Debug, Default)]
struct Received {
    fates: Fates,
    at: Vec<Instant>,
    /// Loss reports.
    reported: u64,
}

/// The ledger of a round.
#[derive(Debug)]
pub struct Ledger {
    lines: Vec<Line>,
    accounts: Vec<Account>,
    /// Transports of subscribers that run.
    subscribers: Vec<Transport>,
    has_failed_over: bool,
}

fn index_of(subscriber: Transport) -> usize {
    Transport::SUBSCRIBERS.iter().position(|other| *other == subscriber).expect("a transport of subscribers")
}

impl Ledger {
    /// Returns an empty ledger.
    pub fn new(lines: &[Line], subscribers: &[Transport]) -> Self {
        let accounts = lines.iter().map(|_| Account { answers: vec![Answer::Open], ..Account::default() }).collect();
        Self { lines: lines.to_vec(), accounts, subscribers: subscribers.to_vec(), has_failed_over: false }
    }

    /// Records that another broker leads.
    pub fn fail_over(&mut self) {
        self.has_failed_over = true;
    }

    /// Records that a publisher sends its next event; returns the event's sequence.
    pub fn publish(&mut self, line: usize) -> u64 {
        let answers = &mut self.accounts[line].answers;
        answers.push(Answer::Open);
        answers.len() as u64 - 1
    }

    /// Records that an event was accepted.
    pub fn accept(&mut self, line: usize, sequence: u64, at: Instant) {
        self.accounts[line].answers[sequence as usize] = Answer::Accepted;
        self.accounts[line].accepted_at.push(at);
    }

    /// Records that every event of DEALER up to this sequence is covered.
    pub fn cover(&mut self, line: usize, through: u64, at: Instant) {
        let account = &mut self.accounts[line];
        let last = through.min(account.answers.len() as u64 - 1);
        for answer in account.answers.iter_mut().take(last as usize + 1).skip(account.covered as usize + 1) {
            if *answer == Answer::Open {
                *answer = Answer::Accepted;
            }
        }
        account.covered = account.covered.max(last);
        account.accepted_at.push(at);
    }

    /// Records a refusal. `is_undone` is true if the answer says that nothing was done with the event.
    pub fn refuse(&mut self, line: usize, sequence: u64, reason: &str, is_undone: bool) {
        let account = &mut self.accounts[line];
        if is_undone {
            account.answers[sequence as usize] = Answer::Refused;
        }
        if reason.trim().is_empty() {
            account.without_reason += 1;
        }
        *account.refusals.entry(reason.to_owned()).or_default() += 1;
        account.last_refusal = Some(reason.to_owned());
    }

    /// Records that an event came too fast.
    pub fn exceed(&mut self, line: usize, sequence: u64) {
        self.accounts[line].answers[sequence as usize] = Answer::Excess;
        self.accounts[line].excess.insert(sequence);
    }

    /// Records an arrival. Sequences that were not published are ignored: they are of another run.
    pub fn receive(&mut self, subscriber: Transport, line: usize, sequence: u64, is_late: bool, at: Instant) {
        let Some(account) = self.accounts.get_mut(line) else { return };
        if sequence == 0 || sequence >= account.answers.len() as u64 {
            return;
        }
        let received = &mut account.received[index_of(subscriber)];
        received.fates.take(sequence, is_late);
        received.at.push(at);
    }

    /// Records a result of the graph that follows from no events of the line.
    pub fn receive_wrong_result(&mut self, line: usize) {
        self.accounts[line].wrong_results += 1;
    }

    /// Records that a subscriber received a report of losses.
    pub fn report_loss(&mut self, subscriber: Transport, line: usize) {
        self.accounts[line].received[index_of(subscriber)].reported += 1;
    }

    /// Returns the number of published events of each line.
    pub fn published(&self) -> Vec<u64> {
        self.accounts.iter().map(|account| account.answers.len() as u64 - 1).collect()
    }

    /// Returns the refusals of all lines, by topic and text, with how often each came.
    pub fn refusals(&self) -> BTreeMap<String, u64> {
        let lines = self.lines.iter().zip(&self.accounts);
        lines.flat_map(|(line, account)| account.refusals.iter().map(|(text, count)| (format!("{}: {text}", line.topic), *count))).collect()
    }

    /// Returns true if an event of DEALER that may not be lost is not covered yet.
    pub fn owes_cover(&self) -> bool {
        let mut lines = self.lines.iter().zip(&self.accounts).filter(|(line, _)| is_strict(line));
        lines.any(|(_, account)| account.covered + 1 < account.answers.len() as u64)
    }

    /// Returns the lines of which a subscriber has not received any event, with the subscriber.
    pub fn silent(&self) -> Vec<(Transport, &Line)> {
        let pairs =
            self.subscribers.iter().flat_map(|subscriber| self.lines.iter().zip(&self.accounts).map(move |pair| (subscriber, pair)));
        let silent = pairs.filter(|(subscriber, (line, account))| {
            line.reaches(**subscriber) && !account.received[index_of(**subscriber)].fates.has_any()
        });
        silent.map(|(subscriber, (line, _))| (*subscriber, line)).collect()
    }

    /// Returns a breach for each line that acknowledges and has no accepted event later than `since`.
    pub fn without_answer(&self, since: Instant) -> Vec<Breach> {
        let lines = self.lines.iter().zip(&self.accounts).filter(|(line, _)| line.transport.acknowledges());
        let silent = lines.filter(|(_, account)| account.accepted_at.last().is_none_or(|at| *at <= since));
        let breach = |(line, account): (&Line, &Account)| Breach {
            expected: format!("the {} publisher of {} is answered again when the pair is whole", line.transport.name(), line.topic),
            came: format!("no accepted event; last refusal: {}", account.last_refusal.as_deref().unwrap_or("none")),
        };
        silent.map(breach).collect()
    }

    /// Returns what is broken of the promises about the events up to `published`, by line.
    pub fn breaches(&self, published: &[u64]) -> Vec<Breach> {
        let mut breaches = Vec::new();
        for ((line, account), published) in self.lines.iter().zip(&self.accounts).zip(published) {
            for subscriber in self.subscribers.iter().filter(|subscriber| line.reaches(**subscriber)) {
                let received = &account.received[index_of(*subscriber)];
                breaches.extend(account.breach(line, *subscriber, promise(line, *subscriber, self.has_failed_over), *published));
                breaches.extend(account.refused_and_received(line, *subscriber, received));
            }
            if account.wrong_results > 0 {
                breaches.push(Breach {
                    expected: format!("each result of the graph is of two events of {} that follow each other", line.topic),
                    came: format!("{} other results", account.wrong_results),
                });
            }
            if account.without_reason > 0 {
                breaches.push(Breach {
                    expected: format!("each refusal of {} has a reason", line.topic),
                    came: format!("{} refusals without a reason", account.without_reason),
                });
            }
        }
        breaches
    }

    /// Returns the losses of a DEALER line at the required subscriber.
    pub fn losses(&self, line: usize) -> Losses {
        let account = &self.accounts[line];
        let published = account.answers.len() as u64 - 1;
        account.received[index_of(Transport::Required)].fates.losses(published, account.covered, &account.excess)
    }

    /// Returns the number of excess events of a line.
    pub fn excess(&self, line: usize) -> u64 {
        self.accounts[line].excess.len() as u64
    }

    /// Returns duplicates, arrivals out of order and late ones of a line at the required subscriber.
    pub fn disorder(&self, line: usize) -> [u64; 3] {
        let fates = &self.accounts[line].received[index_of(Transport::Required)].fates;
        [fates.duplicates, fates.out_of_order.len() as u64, fates.late.len() as u64]
    }

    /// Returns accepted events, and arrivals and loss reports at a subscriber, of all lines of a transport.
    pub fn counts(&self, publisher: Transport, subscriber: Transport) -> [u64; 3] {
        let of_transport = self.lines.iter().zip(&self.accounts).filter(|(line, _)| line.transport == publisher);
        of_transport.fold([0; 3], |[accepted, arrived, reported], (_, account)| {
            let received = &account.received[index_of(subscriber)];
            let count = account.answers.iter().filter(|answer| **answer == Answer::Accepted).count() as u64;
            [accepted + count, arrived + received.at.len() as u64, reported + received.reported]
        })
    }

    /// Returns the longest time without an answer, or without an arrival, of each client of a transport.
    ///
    /// The answers of PUSH and PUB are the arrivals at the required subscriber.
    pub fn silences(&self, transport: Transport, from: Instant, until: Instant) -> Vec<Duration> {
        let is_publisher = Transport::PUBLISHERS.contains(&transport);
        let pairs = self.lines.iter().zip(&self.accounts);
        let clients = pairs.filter(|(line, _)| match is_publisher {
            true => line.transport == transport,
            false => line.transport.acknowledges() && line.reaches(transport),
        });
        let instants = clients.map(|(_, account)| match transport {
            Transport::Push | Transport::Pub => &account.received[index_of(Transport::Required)].at,
            _ if is_publisher => &account.accepted_at,
            _ => &account.received[index_of(transport)].at,
        });
        instants.map(|instants| longest_silence(instants, from, until)).collect()
    }

    /// Returns when events of DEALER that may not be lost were covered, in order.
    pub fn covers(&self) -> Vec<Instant> {
        let lines = self.lines.iter().zip(&self.accounts).filter(|(line, _)| is_strict(line));
        let mut covers: Vec<Instant> = lines.flat_map(|(_, account)| account.accepted_at.iter().copied()).collect();
        covers.sort_unstable();
        covers
    }
}

impl Account {
    fn breach(&self, line: &Line, subscriber: Transport, promise: Promise, published: u64) -> Option<Breach> {
        let Received { fates, reported, .. } = &self.received[index_of(subscriber)];
        let missing = self.missing(fates, published);
        let is_missed = !missing.is_empty();
        let losses = fates.losses(published, self.covered, &self.excess);
        let out_of_order = match promise {
            // An event that was not answered may arrive at any time.
            Promise::OnceInOrder => {
                let behind = fates.out_of_order.iter().chain(&fates.late).copied();
                behind.filter(|sequence| self.is_accepted(*sequence)).collect()
            }
            _ => fates.out_of_order.clone(),
        };
        let is_broken = match promise {
            Promise::Once => is_missed || fates.duplicates > 0,
            Promise::OnceInOrder => is_missed || fates.duplicates > 0 || !out_of_order.is_empty(),
            Promise::Losses(tolerated) => losses.longest_run > u64::from(tolerated) || fates.duplicates > 0 || !out_of_order.is_empty(),
            Promise::AtMostOnce => fates.duplicates > 0,
            Promise::Arrives => is_missed,
            Promise::ArrivesOrReported => is_missed && *reported == 0,
            Promise::Nothing => false,
        };
        let expected = || match promise {
            Promise::Once => "each answered event exactly once".to_owned(),
            Promise::OnceInOrder => "each answered event exactly once, in order".to_owned(),
            Promise::Losses(tolerated) => format!("at most {tolerated} events in a row missing, none twice, each in order"),
            Promise::AtMostOnce => "no event twice".to_owned(),
            Promise::Arrives => "each answered event".to_owned(),
            Promise::ArrivesOrReported => "each answered event, or a report of the loss".to_owned(),
            Promise::Nothing => String::new(),
        };
        is_broken.then(|| Breach {
            expected: format!("{} of {}, published by {}: {}", subscriber.name(), line.topic, line.transport.name(), expected()),
            came: format!(
                "{} answered events missing{}; {} in a row at most, {} twice, {} out of order{}, {reported} losses reported",
                missing.len(),
                named(&missing),
                losses.longest_run,
                fates.duplicates,
                out_of_order.len(),
                named(&out_of_order)
            ),
        })
    }

    /// Returns the accepted events from the first arrival through `published` that have not arrived.
    fn missing(&self, fates: &Fates, published: u64) -> Vec<u64> {
        let Some(first) = fates.first() else { return Vec::new() };
        (first..=published).filter(|sequence| self.is_accepted(*sequence) && !fates.has(*sequence)).collect()
    }

    fn is_accepted(&self, sequence: u64) -> bool {
        self.answers[sequence as usize] == Answer::Accepted
    }

    /// A publisher may send again to the other node what was refused with nothing done, so such an event never arrives.
    fn refused_and_received(&self, line: &Line, subscriber: Transport, received: &Received) -> Option<Breach> {
        let refused = self.answers.iter().enumerate().filter(|(_, answer)| **answer == Answer::Refused);
        let arrived: Vec<u64> = refused.map(|(sequence, _)| sequence as u64).filter(|sequence| received.fates.has(*sequence)).collect();
        (!arrived.is_empty()).then(|| Breach {
            expected: format!("events of {} that were refused with nothing done do not arrive ({})", line.topic, subscriber.name()),
            came: format!("{} arrived{}", arrived.len(), named(&arrived)),
        })
    }
}

/// Returns true for DEALER lines that may lose nothing.
fn is_strict(line: &Line) -> bool {
    line.transport == Transport::Dealer && line.terms.loss_tolerance == Some(0)
}

/// Returns the first sequences as text, in parentheses; empty if there are none.
pub fn named(sequences: &[u64]) -> String {
    if sequences.is_empty() {
        return String::new();
    }
    let first: Vec<String> = sequences.iter().take(NAMED_MAX).map(u64::to_string).collect();
    format!(" (numbers {}{})", first.join(", "), if sequences.len() > NAMED_MAX { ", ..." } else { "" })
}

/// Returns the longest time between two of the instants, as far as it is later than `from` and begins before `until`.
pub fn longest_silence(instants: &[Instant], from: Instant, until: Instant) -> Duration {
    let before = instants.partition_point(|at| *at < from).saturating_sub(1);
    let behind = (instants.partition_point(|at| *at < until) + 1).min(instants.len());
    let gaps = instants[before..behind].windows(2).map(|pair| pair[1].saturating_duration_since(pair[0].max(from)));
    gaps.max().unwrap_or_else(|| until - from)
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
