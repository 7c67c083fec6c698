//! Everything that was published, and what became of it: the checks that every step of a run has to pass.
//!
//! The ledger sees true time and all processes at once. It knows nothing of how the machines work; it is told what an application
//! could see, and who leads.

mod control;
mod leadership;
mod requests;
mod stream;
mod suspension;

use crate::{
    clock::Time,
    violation::{Broken, StreamName, Violation},
};

use self::{control::ControlAccount, leadership::Leadership, requests::RequestAccount, stream::StreamAccount, suspension::Suspension};
pub use self::{
    stream::{GivenUp, StreamTerms},
    suspension::Suspended,
};

/// Which stream, in the order of their opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamIndex(pub u32);

/// What was seen so far, for the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages that publishers took over.
    pub created: u64,
    /// Deliveries to applications.
    pub delivered: u64,
    /// Deliveries that missed their deadline near a fault.
    pub late_near_faults: u64,
    /// Losses, of all subscribers.
    pub lost: u64,
    /// Messages that brokers dropped as late; the new leader of a fail-over may have handed one over nevertheless.
    pub shed: u64,
    /// The longest run of losses.
    pub longest_run: u64,
    /// Control commits that were answered.
    pub control_answered: u64,
    /// Events of requesters that were answered.
    pub requests_answered: u64,
    /// Times that a node took a clone for another node, which had died.
    pub clones_taken: u64,
    /// Times that a node began to lead.
    pub leads: u64,
    /// From a Primary's death until another node led: the longest, in nanoseconds.
    pub longest_gap_ns: u64,
}

impl Tally {
    /// Adds what was seen elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.created += other.created;
        self.delivered += other.delivered;
        self.late_near_faults += other.late_near_faults;
        self.lost += other.lost;
        self.shed += other.shed;
        self.longest_run = self.longest_run.max(other.longest_run);
        self.control_answered += other.control_answered;
        self.requests_answered += other.requests_answered;
        self.clones_taken += other.clones_taken;
        self.leads += other.leads;
        self.longest_gap_ns = self.longest_gap_ns.max(other.longest_gap_ns);
    }
}

/// The account of a run.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    streams: Vec<StreamAccount>,
    leadership: Leadership,
    control: ControlAccount,
    requests: RequestAccount,
    /// A fault works, or its consequences do, since then.
    disturbed_since: Option<Time>,
    /// Before the present disturbance, or up to now, nothing was disturbed since then.
    quiet_since: Time,
    /// A clock is wrong: whose events may be called excess or come late.
    suspended: Option<Suspended>,
    /// Since when the one who leads does.
    led_since: Time,
    tally: Tally,
}

impl Ledger {
    /// Opens a stream's account.
    pub fn open(&mut self, name: StreamName, terms: StreamTerms) -> StreamIndex {
        let is_suspended = self.suspended.is_some_and(|suspended| suspended.includes(name));
        self.streams.push(StreamAccount::new(name, terms, Suspension::new(terms.refill_ns, is_suspended)));
        StreamIndex(self.streams.len() as u32 - 1)
    }

    /// A clock is set wrong: events of these streams may be called excess or come late, and nothing else of them is excused.
    pub fn suspends(&mut self, suspended: Suspended) {
        self.suspended = Some(suspended);
        self.streams.iter_mut().for_each(|stream| stream.suspend(suspended));
    }

    /// All clocks are right, and nothing that was stamped before is under way: each stream is policed as before when its bucket is full again.
    pub fn resumes(&mut self, at: Time) {
        self.suspended = None;
        self.streams.iter_mut().for_each(|stream| stream.resume(at));
    }

    /// A broker calls a message excess.
    pub fn excess(&mut self, at: Time, stream: StreamIndex, sequence: u64) -> Result<(), Violation> {
        self.stream(stream).excess(sequence).map_err(|broken| Violation { at, broken })
    }

    /// A subscriber is owed the stream from its next message on.
    pub fn subscribe(&mut self, stream: StreamIndex, subscriber: u16) {
        self.stream(stream).subscribe(subscriber, true);
    }

    /// A subscriber hears the stream as well as it can, and is owed nothing but the order.
    pub fn listen(&mut self, stream: StreamIndex, subscriber: u16) {
        self.stream(stream).subscribe(subscriber, false);
    }

    /// A publisher took a message over; gives its sequence as the account counts.
    pub fn created(&mut self, stream: StreamIndex, at: Time) -> u64 {
        self.tally.created += 1;
        self.stream(stream).created(at)
    }

    /// A message will not be delivered, and its publisher is told.
    pub fn given_up(&mut self, at: Time, stream: StreamIndex, sequence: u64, by: GivenUp) {
        self.tally.shed += u64::from(by == GivenUp::ByBroker);
        self.stream(stream).given_up(at, sequence, by);
    }

    /// The publisher was told that everything through `sequence` is covered.
    pub fn covered(&mut self, at: Time, stream: StreamIndex, through: u64) {
        self.stream(stream).covered(at, through);
    }

    /// The publisher died: what it had not handed over dies with it.
    pub fn publisher_died(&mut self, stream: StreamIndex) {
        self.stream(stream).publisher_died();
    }

    /// A subscriber's application got a message.
    pub fn delivered(&mut self, at: Time, stream: StreamIndex, subscriber: u16, sequence: u64) -> Result<(), Violation> {
        let calm = Calm { disturbed_since: self.disturbed_since, quiet_since: self.quiet_since };
        let account = &mut self.streams[stream.0 as usize];
        self.tally.delivered += 1;
        account.delivered(at, subscriber, sequence, calm, &mut self.tally).map_err(|broken| Violation { at, broken })
    }

    /// A subscriber's machine told its application that so many messages of a stream from `from` on are lost.
    pub fn told(&mut self, at: Time, stream: StreamIndex, subscriber: u16, from: u64, losses: u64) -> Result<(), Violation> {
        let account = &mut self.streams[stream.0 as usize];
        account.told(subscriber, from, losses, &mut self.tally).map_err(|broken| Violation { at, broken })
    }

    /// A node begins to lead, or goes on, until a true time.
    pub fn leads(&mut self, at: Time, node: u16, run: u32, epoch: u64, until: Time) -> Result<(), Violation> {
        let begins = self.leadership.leads(at, node, run, epoch, until).map_err(|broken| Violation { at, broken })?;
        self.tally.leads += u64::from(begins);
        if begins {
            self.led_since = at;
            self.streams.iter_mut().for_each(StreamAccount::led_anew);
        }
        Ok(())
    }

    /// A node gives the right to lead up, or is dead.
    pub fn ends(&mut self, at: Time, node: u16) {
        self.leadership.ends(at, node);
    }

    /// A node does what only who leads may do.
    pub fn acts(&mut self, at: Time, node: u16, action: &'static str) -> Result<(), Violation> {
        self.leadership.acts(at, node, action).map_err(|broken| Violation { at, broken })
    }

    /// A node takes a clone for another node.
    pub fn took_clone(&mut self) {
        self.tally.clones_taken += 1;
    }

    /// A control commit was answered; `digest` stands for everything through `position`.
    pub fn control_answered(&mut self, position: u64, digest: u64) {
        self.tally.control_answered += 1;
        self.control.answered(position, digest);
    }

    /// A requester's event was answered. `is_owed`: its topic tolerates no loss.
    pub fn request_answered(&mut self, requester: u16, request: u64, is_owed: bool) {
        self.tally.requests_answered += 1;
        self.requests.answered(requester, request, is_owed);
    }

    /// A subscriber received a requester's event.
    pub fn request_delivered(&mut self, at: Time, requester: u16, subscriber: u16, request: u64) -> Result<(), Violation> {
        self.requests.delivered(requester, subscriber, request).map_err(|broken| Violation { at, broken })
    }

    /// All faults are over for long: required subscribers, by requester, must have every answered event.
    pub fn settle_requests(&self, at: Time, required: impl Fn(u16) -> Vec<u16>) -> Result<(), Violation> {
        self.requests.settle(required).map_err(|broken| Violation { at, broken })
    }

    /// A node leads with this control state: the digest of each position.
    pub fn control_state(&mut self, at: Time, node: u16, digests: &[u64]) -> Result<(), Violation> {
        self.control.check(node, digests).map_err(|broken| Violation { at, broken })
    }

    /// A fault begins: lateness is nobody's fault until [`Ledger::calms`].
    pub fn disturbs(&mut self, at: Time) {
        self.disturbed_since.get_or_insert(at);
    }

    /// The faults and what they brought are over; messages created from now on are owed in time.
    pub fn calms(&mut self, at: Time) {
        if self.disturbed_since.take().is_some() {
            self.quiet_since = at;
        }
    }

    /// What happened is beyond what is promised (two hosts of the pair at once): messages created until now may be lost.
    pub fn excuse(&mut self) {
        self.requests.excuse();
        self.streams.iter_mut().for_each(StreamAccount::excuse);
    }

    /// All faults are over for long and nothing is published any more: everything has to be accounted for.
    pub fn settle(&mut self, at: Time) -> Result<(), Violation> {
        for account in &mut self.streams {
            account.settle(self.led_since, &mut self.tally).map_err(|broken| Violation { at, broken })?;
        }
        Ok(())
    }

    /// What was seen so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// A node leads in place of a Primary that died so long ago, for which there is a limit.
    pub fn took_over(&mut self, at: Time, gap_ns: u64, gap_max_ns: u64) -> Result<(), Violation> {
        self.tally.longest_gap_ns = self.tally.longest_gap_ns.max(gap_ns);
        if gap_ns <= gap_max_ns {
            return Ok(());
        }
        let what = "nobody has led in place of the Primary that died".to_owned();
        Err(Violation { at, broken: Broken::Stuck { what, within_ns: gap_max_ns } })
    }

    fn stream(&mut self, stream: StreamIndex) -> &mut StreamAccount {
        &mut self.streams[stream.0 as usize]
    }
}

/// Since when nothing disturbs, for judging lateness.
#[derive(Clone, Copy, Debug)]
struct Calm {
    disturbed_since: Option<Time>,
    quiet_since: Time,
}

impl Calm {
    /// Whether a message that was due between `created` and `due` was in nobody's way.
    fn holds(self, created: Time, due: Time) -> bool {
        created >= self.quiet_since && self.disturbed_since.is_none_or(|since| due < since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: StreamName = StreamName { publisher: 0, incarnation: 1, topic: 0 };
    const TERMS: StreamTerms = StreamTerms { tolerance: None, deadline_ns: None, retention: 1, refill_ns: 2 };

    /// A stream of ten messages, one a nanosecond, with one reader.
    fn ten(tolerance: u64) -> (Ledger, StreamIndex) {
        let mut ledger = Ledger::default();
        let stream = ledger.open(NAME, StreamTerms { tolerance: Some(tolerance), deadline_ns: Some(5), ..TERMS });
        ledger.subscribe(stream, 0);
        for at in 1..=10 {
            assert_eq!(ledger.created(stream, Time(at)), at);
        }
        (ledger, stream)
    }

    fn deliver(ledger: &mut Ledger, stream: StreamIndex, sequences: &[u64]) -> Result<(), Broken> {
        sequences.iter().try_for_each(|&sequence| ledger.delivered(Time(sequence + 1), stream, 0, sequence).map_err(|v| v.broken))
    }

    #[test]
    fn a_run_of_losses_up_to_the_tolerance_is_no_violation() {
        let (mut ledger, stream) = ten(2);
        assert_eq!(deliver(&mut ledger, stream, &[1, 4, 5]), Ok(()));
        let broken = Broken::LossRun { stream: NAME, subscriber: 0, last: 5, next: 9, run: 3, tolerance: 2 };
        assert_eq!(deliver(&mut ledger, stream, &[9]), Err(broken));
    }

    #[test]
    fn what_was_covered_may_not_be_lost_where_nothing_may() {
        let (mut ledger, stream) = ten(0);
        ledger.covered(Time(3), stream, 3);
        assert_eq!(deliver(&mut ledger, stream, &[1, 2, 4]), Err(Broken::CoveredLost { stream: NAME, subscriber: 0, sequence: 3 }));
        let (mut ledger, stream) = ten(0);
        ledger.covered(Time(3), stream, 3);
        ledger.excuse();
        assert_eq!(deliver(&mut ledger, stream, &[1, 2, 4]), Ok(()), "two hosts at once are beyond the promise");
    }

    #[test]
    fn what_is_given_up_by_the_broker_counts_and_by_the_publisher_does_not() {
        for (by, tolerated) in [(GivenUp::ByBroker, false), (GivenUp::ByPublisher, true)] {
            let (mut ledger, stream) = ten(0);
            ledger.given_up(Time(9), stream, 2, by);
            assert_eq!(deliver(&mut ledger, stream, &[1, 3]).is_ok(), tolerated, "{by:?}");
        }
    }

    #[test]
    fn order_and_identity_are_checked() {
        let (mut ledger, stream) = ten(9);
        assert_eq!(deliver(&mut ledger, stream, &[2, 2]), Err(Broken::Order { stream: NAME, subscriber: 0, last: 2, sequence: 2 }));
        assert_eq!(deliver(&mut ledger, stream, &[1]), Err(Broken::Order { stream: NAME, subscriber: 0, last: 2, sequence: 1 }));
        assert_eq!(deliver(&mut ledger, stream, &[11]), Err(Broken::Forged { stream: NAME, subscriber: 0, sequence: 11 }));
    }

    #[test]
    fn who_is_owed_nothing_may_get_late_what_it_missed_but_once() {
        let mut ledger = Ledger::default();
        let stream = ledger.open(NAME, TERMS);
        ledger.listen(stream, 0);
        (1..=10).for_each(|at| assert_eq!(ledger.created(stream, Time(at)), at));
        assert_eq!(deliver(&mut ledger, stream, &[1, 4, 3]), Ok(()));
        assert_eq!(deliver(&mut ledger, stream, &[3]), Err(Broken::Order { stream: NAME, subscriber: 0, last: 4, sequence: 3 }));
        assert_eq!(deliver(&mut ledger, stream, &[1]), Err(Broken::Order { stream: NAME, subscriber: 0, last: 4, sequence: 1 }));
        assert_eq!(deliver(&mut ledger, stream, &[5]), Ok(()));
    }

    #[test]
    fn what_a_broker_has_dropped_as_late_may_come_behind_a_later_one_but_once_and_nothing_else_may() {
        let (mut ledger, stream) = ten(2);
        ledger.given_up(Time(9), stream, 2, GivenUp::ByBroker);
        assert_eq!(deliver(&mut ledger, stream, &[1, 4, 2]), Ok(()));
        for sequence in [2, 3] {
            let broken = Broken::Order { stream: NAME, subscriber: 0, last: 4, sequence };
            assert_eq!(deliver(&mut ledger.clone(), stream, &[sequence]), Err(broken));
        }
        assert_eq!((ledger.tally().shed, ledger.tally().lost), (1, 2));
    }

    #[test]
    fn lateness_is_a_violation_only_far_from_faults() {
        let late = |disturb: Option<u64>, calm: Option<u64>| {
            let (mut ledger, stream) = ten(0);
            disturb.into_iter().for_each(|at| ledger.disturbs(Time(at)));
            calm.into_iter().for_each(|at| ledger.calms(Time(at)));
            ledger.delivered(Time(7), stream, 0, 1).is_err()
        };
        assert!(late(None, None), "1 was due at 6");
        assert!(!late(Some(6), None));
        assert!(late(Some(7), None), "the fault came behind the deadline");
        assert!(!late(Some(0), Some(2)), "it was created in the disturbance");
        assert!(late(Some(0), Some(1)));
    }

    #[test]
    fn at_the_end_everything_is_delivered_or_told() {
        let (mut ledger, stream) = ten(3);
        deliver(&mut ledger, stream, &[1, 2, 3, 5, 6, 7, 8]).unwrap();
        let missing = Broken::Unaccounted { stream: NAME, subscriber: 0, first: 9, missing: 2 };
        assert_eq!(ledger.clone().settle(Time(99)).map_err(|v| v.broken), Err(missing));
        ledger.told(Time(98), stream, 0, 4, 1).unwrap();
        ledger.told(Time(98), stream, 0, 9, 2).unwrap();
        assert_eq!(ledger.settle(Time(99)), Ok(()));
        assert_eq!((ledger.tally().lost, ledger.tally().longest_run), (3, 2));
    }

    #[test]
    fn what_a_broker_has_dropped_at_the_end_of_a_stream_counts_and_is_told_unless_another_leads_since() {
        let ends = |tolerance| {
            let (mut ledger, stream) = ten(tolerance);
            deliver(&mut ledger, stream, &[1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
            ledger.given_up(Time(50), stream, 10, GivenUp::ByBroker);
            (ledger, stream)
        };
        let (mut ledger, stream) = ends(1);
        let missing = Broken::Unaccounted { stream: NAME, subscriber: 0, first: 10, missing: 1 };
        assert_eq!(ledger.clone().settle(Time(99)).map_err(|v| v.broken), Err(missing));
        let mut led_since = ledger.clone();
        led_since.leads(Time(60), 1, 1, 2, Time(99)).unwrap();
        assert_eq!(led_since.settle(Time(99)), Ok(()), "who leads now does not know of it");
        ledger.told(Time(55), stream, 0, 10, 1).unwrap();
        assert_eq!(ledger.clone().settle(Time(99)), Ok(()));
        assert_eq!(deliver(&mut ledger, stream, &[10]), Ok(()), "another leader may have had it all the same");
        let (mut strict, stream) = ends(0);
        let broken = Broken::LossRun { stream: NAME, subscriber: 0, last: 9, next: 11, run: 1, tolerance: 0 };
        assert_eq!(strict.clone().settle(Time(99)).map_err(|v| v.broken), Err(broken.clone()));
        assert_eq!(strict.told(Time(55), stream, 0, 10, 1).map_err(|v| v.broken), Err(broken));
        let forged = Broken::Forged { stream: NAME, subscriber: 0, sequence: 11 };
        assert_eq!(strict.told(Time(55), stream, 0, 11, 1).map_err(|v| v.broken), Err(forged), "nobody has published it");
    }

    #[test]
    fn losses_that_nobody_had_are_not_told() {
        let (mut ledger, stream) = ten(3);
        deliver(&mut ledger, stream, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).unwrap();
        ledger.told(Time(98), stream, 0, 3, 1).unwrap();
        let wrong = Broken::LossesToldWrong { stream: NAME, subscriber: 0, told: 1, lost: 0 };
        assert_eq!(ledger.settle(Time(99)).map_err(|v| v.broken), Err(wrong));
    }

    #[test]
    fn two_never_lead_at_once_and_no_epoch_comes_twice() {
        let mut ledger = Ledger::default();
        ledger.leads(Time(0), 0, 1, 1, Time(10)).unwrap();
        ledger.leads(Time(5), 0, 1, 1, Time(15)).unwrap();
        let two = Broken::TwoPrimaries { node: 1, epoch: 2, other: 0, left_ns: 1 };
        assert_eq!(ledger.clone().leads(Time(14), 1, 1, 2, Time(20)).map_err(|v| v.broken), Err(two));
        assert!(ledger.acts(Time(14), 0, "accepts").is_ok());
        assert!(ledger.acts(Time(15), 0, "accepts").is_err(), "its lease is over");
        ledger.leads(Time(15), 1, 1, 2, Time(20)).unwrap();
        ledger.ends(Time(16), 1);
        let again = Broken::EpochReused { node: 0, epoch: 2, other: 1 };
        assert_eq!(ledger.leads(Time(16), 0, 2, 2, Time(20)).map_err(|v| v.broken), Err(again));
        assert_eq!(ledger.tally().leads, 2);
    }

    #[test]
    fn who_leads_has_every_answered_commit() {
        let mut ledger = Ledger::default();
        ledger.control_answered(2, 22);
        assert!(ledger.control_state(Time(1), 1, &[11, 22, 33]).is_ok());
        assert!(ledger.control_state(Time(1), 1, &[11]).is_err());
        assert!(ledger.control_state(Time(1), 1, &[11, 23]).is_err());
    }
}
