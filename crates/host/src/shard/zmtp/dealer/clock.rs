//! Asking the hosts of DEALERs what their clocks show: deadlines count from the time that a publisher stamps, and were admitted with a largest difference. Where nobody
//! has stated one, nobody is asked.

use std::time::{Duration, Instant};

use bodkin_broker::{ClockExchange, ClockWatch, wire::ClientFrame};

use super::super::{super::Shard, link::Role};
use crate::control;

/// Between two questions to the same client, and in front of the first one.
const ASK_PERIOD: Duration = Duration::from_secs(5);

/// What is known of a client's clock.
pub struct PeerClock {
    watch: ClockWatch,
    /// The last question, and when it was asked.
    asked_utc_ns: Option<u64>,
    asked: Instant,
}

impl PeerClock {
    /// Of a client that has just come.
    pub fn new(now: Instant) -> Self {
        Self { watch: ClockWatch::default(), asked_utc_ns: None, asked: now }
    }

    /// Whether it is time for a question. One that is not answered is not repeated: its answer is on the way.
    fn is_due(&self, now: Instant) -> bool {
        self.asked_utc_ns.is_none() && now.saturating_duration_since(self.asked) >= ASK_PERIOD
    }

    /// Takes an answer; one that was not asked for says nothing.
    fn told(&mut self, exchange: ClockExchange) {
        if self.asked_utc_ns.take_if(|asked| *asked == exchange.sent_utc_ns).is_some() {
            self.watch.take(exchange);
        }
    }

    /// By how much the clocks differ at the least, whatever the ways of question and answer were, in nanoseconds.
    fn difference_ns(&self) -> Option<u64> {
        self.watch.offset().map(|offset| offset.offset_ns.unsigned_abs().saturating_sub(offset.error_ns))
    }
}

impl Shard {
    /// Asks those whose turn it is, and tells the watch what is known; once a second.
    pub(in crate::shard) fn ask_clocks(&mut self) {
        if !self.context.stalls.asks_for_clocks() {
            return;
        }
        let (now, epoch) = (self.clock.now, self.epoch());
        let (mut due, mut known, mut difference_ns) = (Vec::new(), 0, 0);
        for (slot, link) in &self.endpoint.links {
            let Role::Dealer(dealer) = &link.role else { continue };
            if dealer.hello.is_some() && dealer.clock.is_due(now) {
                due.push(slot);
            }
            if let Some(this_ns) = dealer.clock.difference_ns() {
                known += 1;
                difference_ns = difference_ns.max(this_ns);
            }
        }
        self.context.stalls.clocks_differ(known, difference_ns);
        for slot in due {
            let sent_utc_ns = control::now().unix_nanos();
            let clock = &mut self.endpoint.dealer(slot).clock;
            (clock.asked_utc_ns, clock.asked) = (Some(sent_utc_ns), now);
            self.endpoint.tell(slot, &ClientFrame::ClockRequest { epoch, sent_utc_ns });
        }
    }

    /// A client has told what its clock shows.
    pub(super) fn clock_told(&mut self, slot: usize, sent_utc_ns: u64, received_utc_ns: u64, replied_utc_ns: u64) {
        let returned_utc_ns = control::now().unix_nanos();
        self.endpoint.dealer(slot).clock.told(ClockExchange { sent_utc_ns, received_utc_ns, replied_utc_ns, returned_utc_ns });
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
        assert_eq!(clock.difference_ns(), None, "nobody has asked");
        (clock.asked_utc_ns, clock.asked) = (Some(1_000), start);
        assert!(!clock.is_due(start + ASK_PERIOD), "it is not answered");
        clock.told(exchange(999, 500, 100));
        assert_eq!(clock.difference_ns(), None, "another question's answer");
        clock.told(exchange(1_000, 500, 100));
        assert_eq!((clock.difference_ns(), clock.is_due(start + ASK_PERIOD)), (Some(400), true));
        clock.asked_utc_ns = Some(2_000);
        clock.told(exchange(2_000, 10, 30));
        assert_eq!(clock.difference_ns(), Some(0), "it may be the way");
    }
}
