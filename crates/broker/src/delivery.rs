//! Delivery to one subscriber that answers: what an answer means for the event, for the subscriber, and for the next attempt.
//!
//! Whether an event is taken may be the event's fault or the subscriber's. A refused event is tried a few times and is dead
//! then; a subscriber that fails keeps its events and is asked less and less often. After some failures in a row the circuit
//! is open: one probe, the event at the head, for each backoff, and the next event where a probe dies. Who fails too long
//! loses its backlog to the dead letters.

use std::time::Duration;

use crate::time::Instant;

/// Longest wait that a subscriber may ask for (`Retry-After`).
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// How patient delivery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryPolicy {
    /// Refusals after which an event is dead; at least 1.
    pub attempts_max: u32,
    /// Failures in a row after which the circuit is open; at least 1.
    pub breaker_failures: u32,
    /// Longest wait behind the first failure of a row; it doubles with each further one.
    pub backoff_min: Duration,
    /// Longest wait behind any failure.
    pub backoff_max: Duration,
    /// Time of trying without a success after which the backlog is given up.
    pub give_up: Duration,
}

impl Default for DeliveryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 5,
            breaker_failures: 5,
            backoff_min: Duration::from_millis(200),
            backoff_max: Duration::from_secs(30),
            give_up: Duration::from_secs(24 * 3600),
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The subscriber has the event.
    Taken,
    /// The subscriber does not want this event.
    Refused,
    /// The subscriber could not take any event.
    Failed {
        /// How long it asks to be left alone.
        retry_after: Option<Duration>,
    },
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The event is done with; the next one follows at once.
    Next,
    /// The same event again, at this time.
    Retry {
        /// When.
        at: Instant,
    },
    /// The event is a dead letter; the next one follows at this time, which is now unless the circuit is open.
    Dead {
        /// When.
        at: Instant,
    },
    /// Everything that waits is a dead letter but the newest event, which is tried at this time.
    GiveUp {
        /// When.
        at: Instant,
    },
}

/// Whether attempts succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circuit {
    /// The last one did.
    Closed,
    /// The last ones did not, but they are few.
    Retrying,
    /// So many did not that only one event is tried now and then.
    Open,
}

/// The machine: the row of failures, and the attempts at the event at the head.
#[derive(Clone, Debug)]
pub struct Delivery {
    policy: DeliveryPolicy,
    failures: u32,
    failing_since: Option<Instant>,
    attempts: u32,
    refusals: u32,
}

impl Delivery {
    /// A delivery that has not failed yet.
    pub fn new(policy: DeliveryPolicy) -> Self {
        Self { policy, failures: 0, failing_since: None, attempts: 0, refusals: 0 }
    }

    /// Takes an attempt's outcome. `jitter` is any number, each as likely: waits of a thousand subscribers that failed
    /// together must not end together.
    pub fn step(&mut self, now: Instant, outcome: Outcome, jitter: u64) -> Verdict {
        self.attempts += 1;
        let retry_after = match outcome {
            Outcome::Taken => {
                (self.failures, self.failing_since) = (0, None);
                self.begin_event();
                return Verdict::Next;
            }
            Outcome::Refused => {
                self.refusals += 1;
                None
            }
            Outcome::Failed { retry_after } => retry_after,
        };
        self.failures = self.failures.saturating_add(1);
        let since = *self.failing_since.get_or_insert(now);
        let asked = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
        let at = now.plus(self.wait(jitter).max(asked));
        if now.since(since) >= self.policy.give_up {
            self.failing_since = Some(now);
            self.begin_event();
            return Verdict::GiveUp { at };
        }
        if self.refusals >= self.policy.attempts_max {
            self.begin_event();
            // That one event is refused is its own fault; that one after the other is, the subscriber's.
            let at = if self.circuit() == Circuit::Open { at } else { now };
            return Verdict::Dead { at };
        }
        Verdict::Retry { at }
    }

    /// Exponential backoff with full jitter: anything from nothing to the limit that doubles with each failure.
    fn wait(&self, jitter: u64) -> Duration {
        let doublings = self.failures.saturating_sub(1).min(31);
        let limit = self.policy.backoff_min.saturating_mul(1 << doublings).min(self.policy.backoff_max);
        let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(((u128::from(nanos) * u128::from(jitter)) >> 64) as u64)
    }

    /// Another event is at the head.
    pub fn begin_event(&mut self) {
        (self.attempts, self.refusals) = (0, 0);
    }

    /// Nothing is tried at present: there is no event, or the operator holds them back. That time is no failing; the circuit stays.
    pub fn rest(&mut self) {
        self.failing_since = None;
    }

    /// Attempts at the event at the head so far.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Failures since the last success.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether attempts succeed.
    pub fn circuit(&self) -> Circuit {
        match self.failures {
            0 => Circuit::Closed,
            failures if failures >= self.policy.breaker_failures => Circuit::Open,
            _ => Circuit::Retrying,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POLICY: DeliveryPolicy = DeliveryPolicy {
        attempts_max: 3,
        breaker_failures: 4,
        backoff_min: Duration::from_nanos(8),
        backoff_max: Duration::from_nanos(20),
        give_up: Duration::from_nanos(100),
    };
    const FAILED: Outcome = Outcome::Failed { retry_after: None };

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn retry(nanos: u64) -> Verdict {
        Verdict::Retry { at: at(nanos) }
    }

    fn dead(nanos: u64) -> Verdict {
        Verdict::Dead { at: at(nanos) }
    }

    /// Steps at the given times with a jitter of one half; each row is (time, outcome, verdict, circuit behind it).
    fn check(claim: &str, rows: &[(u64, Outcome, Verdict, Circuit)]) {
        let mut delivery = Delivery::new(POLICY);
        for (row, &(time, outcome, verdict, circuit)) in rows.iter().enumerate() {
            let found = (delivery.step(at(time), outcome, 1 << 63), delivery.circuit());
            assert_eq!(found, (verdict, circuit), "{claim}, row {row}");
        }
    }

    #[test]
    fn an_outcome_has_its_verdict() {
        use Circuit::*;
        use Outcome::*;
        check("taken", &[(1, Taken, Verdict::Next, Closed), (2, Taken, Verdict::Next, Closed)]);
        let waits = [(1, 5), (5, 13), (13, 23), (23, 33), (33, 43)];
        let circuits = [Retrying, Retrying, Retrying, Open, Open];
        let failing: Vec<_> = waits.iter().zip(circuits).map(|(&(time, next), circuit)| (time, FAILED, retry(next), circuit)).collect();
        check("the wait doubles to its limit", &failing);
        check(
            "a success closes the circuit and begins anew",
            &[&failing[..], &[(50, Taken, Verdict::Next, Closed), (60, FAILED, retry(64), Retrying)]].concat(),
        );
        let refused = |time, next| (time, Refused, retry(next), Retrying);
        check(
            "a refused event dies and the next one has its own attempts",
            &[refused(1, 5), refused(5, 13), (13, Refused, dead(13), Retrying), (13, Refused, retry(23), Open)],
        );
        check(
            "failures are not the event's",
            &[refused(1, 5), (5, FAILED, retry(13), Retrying), refused(13, 23), (23, Refused, dead(33), Open)],
        );
        check(
            "who refuses everything is asked as rarely as who is away",
            &[
                refused(1, 5),
                refused(5, 13),
                (13, Refused, dead(13), Retrying),
                (13, Refused, retry(23), Open),
                (23, Refused, retry(33), Open),
                (33, Refused, dead(43), Open),
                (43, Taken, Verdict::Next, Closed),
            ],
        );
        check(
            "and is given up as who is away",
            &[(1, FAILED, retry(5), Retrying), refused(50, 58), refused(58, 68), (101, Refused, Verdict::GiveUp { at: at(111) }, Open)],
        );
        let asks = |nanos| Failed { retry_after: Some(Duration::from_nanos(nanos)) };
        check("a subscriber's wish counts", &[(1, asks(1000), retry(1001), Retrying)]);
        check("a short wish does not", &[(1, asks(2), retry(5), Retrying)]);
        let greedy = Failed { retry_after: Some(Duration::from_secs(1_000_000)) };
        check("nor an endless one", &[(1, greedy, retry(300_000_000_001), Retrying)]);
        check(
            "who fails too long is given up, and again later",
            &[
                (1, FAILED, retry(5), Retrying),
                (100, FAILED, retry(108), Retrying),
                (101, FAILED, Verdict::GiveUp { at: at(111) }, Retrying),
                (200, FAILED, retry(210), Open),
                (201, FAILED, Verdict::GiveUp { at: at(211) }, Open),
                (202, Taken, Verdict::Next, Closed),
                (400, FAILED, retry(404), Retrying),
            ],
        );
    }

    #[test]
    fn a_time_in_which_nothing_is_tried_is_no_failing() {
        let mut delivery = Delivery::new(POLICY);
        let mut step = |time, rests: bool| {
            if rests {
                delivery.rest();
            }
            let verdict = delivery.step(at(time), FAILED, 0);
            (matches!(verdict, Verdict::GiveUp { .. }), delivery.circuit())
        };
        assert_eq!(step(1, false), (false, Circuit::Retrying));
        assert_eq!(step(1000, true), (false, Circuit::Retrying));
        assert_eq!(step(1099, false), (false, Circuit::Retrying));
        assert_eq!(step(1100, false), (true, Circuit::Open));
        assert_eq!(step(5000, true), (false, Circuit::Open));
    }

    proptest! {
        /// Whatever happens: no wait is longer than the limits, and an event is tried, refused or given up as often as allowed.
        #[test]
        fn waits_and_attempts_are_bounded(script in prop::collection::vec((0u8..4, any::<u64>(), 0u64..30), 1..200)) {
            let mut delivery = Delivery::new(POLICY);
            let (mut now, mut refusals, mut in_a_row, mut last_success) = (0, 0, 0, 0);
            for (kind, jitter, pause) in script {
                now += pause;
                let outcome = match kind {
                    0 => Outcome::Taken,
                    1 => Outcome::Refused,
                    2 => FAILED,
                    _ => Outcome::Failed { retry_after: Some(Duration::from_nanos(50)) },
                };
                refusals += u32::from(outcome == Outcome::Refused);
                match delivery.step(at(now), outcome, jitter) {
                    Verdict::Next => {
                        prop_assert_eq!(outcome, Outcome::Taken);
                        (refusals, in_a_row, last_success) = (0, 0, now);
                        prop_assert_eq!(delivery.circuit(), Circuit::Closed);
                        continue;
                    }
                    Verdict::Dead { at: next } => {
                        prop_assert_eq!(refusals, POLICY.attempts_max);
                        let longest = if delivery.circuit() == Circuit::Open { 20 } else { 0 };
                        prop_assert!(next >= at(now) && next <= at(now + longest));
                        refusals = 0;
                    }
                    Verdict::Retry { at: next } => {
                        prop_assert!(refusals < POLICY.attempts_max);
                        let longest = if kind == 3 { 50 } else { 20 };
                        prop_assert!(next >= at(now) && next <= at(now + longest));
                    }
                    Verdict::GiveUp { .. } => {
                        prop_assert!(now - last_success >= 100);
                        (refusals, last_success) = (0, now);
                    }
                }
                in_a_row += 1;
                prop_assert_eq!(delivery.failures(), in_a_row);
                prop_assert_eq!(delivery.circuit() == Circuit::Open, in_a_row >= POLICY.breaker_failures);
            }
        }
    }
}
