//! What another host's clock shows, by questions and their answers.

use std::time::{Duration, Instant};

use bodkin_broker::{ClockExchange, ClockWatch};

use crate::control;

/// Between two questions to the same host, and in front of the first one.
const ASK_PERIOD: Duration = Duration::from_secs(5);

/// What is known of the clock of another host.
pub struct PeerClock {
    watch: ClockWatch,
    /// The last question, and when it was asked.
    asked_utc_ns: Option<u64>,
    asked: Instant,
}

impl PeerClock {
    /// Of a connection that has just begun.
    pub fn new(now: Instant) -> Self {
        Self { watch: ClockWatch::default(), asked_utc_ns: None, asked: now }
    }

    /// Whether it is time for a question. One that is not answered is not repeated: its answer is on the way.
    pub fn is_due(&self, now: Instant) -> bool {
        self.asked_utc_ns.is_none() && now.saturating_duration_since(self.asked) >= ASK_PERIOD
    }

    /// Notes a question that leaves now; gives what our clock shows.
    pub fn ask(&mut self, now: Instant) -> u64 {
        let sent_utc_ns = control::now().unix_nanos();
        (self.asked_utc_ns, self.asked) = (Some(sent_utc_ns), now);
        sent_utc_ns
    }

    /// Takes an answer that has come now; one that was not asked for says nothing.
    pub fn answered(&mut self, sent_utc_ns: u64, received_utc_ns: u64, replied_utc_ns: u64) {
        let returned_utc_ns = control::now().unix_nanos();
        self.told(ClockExchange { sent_utc_ns, received_utc_ns, replied_utc_ns, returned_utc_ns });
    }

    fn told(&mut self, exchange: ClockExchange) {
        if self.asked_utc_ns.take_if(|asked| *asked == exchange.sent_utc_ns).is_some() {
            self.watch.take(exchange);
        }
    }

    /// By how much the clocks differ at the least, whatever the ways of question and answer were, in nanoseconds.
    pub fn difference_ns(&self) -> Option<u64> {
        self.watch.offset().map(|offset| offset.offset_ns.unsigned_abs().saturating_sub(offset.error_ns))
    }

    /// Whether the clocks differ by more than this for certain, in nanoseconds.
    pub fn differs_by_more_than(&self, most_ns: u64) -> bool {
        self.difference_ns().is_some_and(|difference_ns| difference_ns > most_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_counts_as_far_as_it_is_certain_and_only_if_it_was_asked_for() {
        let start = Instant::now();
        let mut clock = PeerClock::new(start);
        assert_eq!((clock.is_due(start), clock.is_due(start + ASK_PERIOD)), (false, true));
        let exchange = |sent_utc_ns, ahead_ns, way_ns| {
            let there = sent_utc_ns + way_ns + ahead_ns;
            ClockExchange { sent_utc_ns, received_utc_ns: there, replied_utc_ns: there, returned_utc_ns: sent_utc_ns + 2 * way_ns }
        };
        clock.told(exchange(1_000, 500, 100));
        assert_eq!((clock.difference_ns(), clock.differs_by_more_than(0)), (None, false), "nobody has asked");
        (clock.asked_utc_ns, clock.asked) = (Some(1_000), start);
        assert!(!clock.is_due(start + ASK_PERIOD), "it is not answered");
        clock.told(exchange(999, 500, 100));
        assert_eq!(clock.difference_ns(), None, "another question's answer");
        clock.told(exchange(1_000, 500, 100));
        assert_eq!((clock.difference_ns(), clock.is_due(start + ASK_PERIOD)), (Some(400), true));
        assert_eq!([399, 400].map(|most_ns| clock.differs_by_more_than(most_ns)), [true, false]);
        clock.asked_utc_ns = Some(2_000);
        clock.told(exchange(2_000, 10, 30));
        assert_eq!(clock.difference_ns(), Some(0), "it may be the way");
    }
}
