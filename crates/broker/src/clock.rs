//! How far another host's clock is from ours, by a question and its answer.
//!
//! Deadlines are counted from the time that the publisher's clock showed, so the bounds assume that two clocks differ by `clock_error` at the most. Whether they do
//! is measured all the time: the other host tells when the question came and when the answer left, and the ways there and back lie between. Whatever the ways were,
//! the difference of the clocks is within half of their sum around the middle. Source: RFC 5905 (NTP), section 8.

/// Answers that are remembered: the best of them counts, for a way that was short says most.
const REMEMBERED: usize = 8;

/// One question and its answer: four readings of UTC in nanoseconds since 1970, the outer two by our clock, the inner two by the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClockExchange {
    /// The question left.
    pub sent_utc_ns: u64,
    /// It came.
    pub received_utc_ns: u64,
    /// The answer left.
    pub replied_utc_ns: u64,
    /// It came.
    pub returned_utc_ns: u64,
}

/// The other clock is ahead of ours by `offset_ns`, give or take `error_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClockOffset {
    /// In nanoseconds; negative if it is behind.
    pub offset_ns: i64,
    /// In nanoseconds.
    pub error_ns: u64,
}

impl ClockExchange {
    /// What it says; nothing if a clock was set meanwhile, so that an answer left before its question came.
    pub fn offset(self) -> Option<ClockOffset> {
        let [sent, received, replied, returned] =
            [self.sent_utc_ns, self.received_utc_ns, self.replied_utc_ns, self.returned_utc_ns].map(i128::from);
        let ways = (returned - sent) - (replied - received);
        if replied < received || ways < 0 {
            return None;
        }
        // The difference lies between `replied - returned` and `received - sent`, which are `ways` apart.
        let middle = ((received - sent) + (replied - returned)).div_euclid(2);
        Some(ClockOffset { offset_ns: i64::try_from(middle).ok()?, error_ns: u64::try_from((ways + 1) / 2).ok()? })
    }
}

impl ClockOffset {
    /// How much the clocks may differ, in nanoseconds: the guarantee holds while this is at most `clock_error`.
    pub fn largest_ns(self) -> u64 {
        self.offset_ns.unsigned_abs().saturating_add(self.error_ns)
    }
}

/// The last answers of one other host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClockWatch {
    answers: [Option<ClockOffset>; REMEMBERED],
    next: usize,
}

impl ClockWatch {
    /// Takes an answer; one that says nothing counts as none.
    pub fn take(&mut self, exchange: ClockExchange) {
        self.answers[self.next] = exchange.offset();
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// What the last answers say; nothing if none of them does.
    pub fn offset(&self) -> Option<ClockOffset> {
        self.answers.iter().flatten().min_by_key(|answer| answer.error_ns).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exchange(sent: u64, received: u64, replied: u64, returned: u64) -> ClockExchange {
        ClockExchange { sent_utc_ns: sent, received_utc_ns: received, replied_utc_ns: replied, returned_utc_ns: returned }
    }

    #[test]
    fn an_exchange_says_how_far_the_clocks_are_apart() {
        let cases = [
            ((100, 160, 170, 130), Some((50, 10))),
            ((100, 60, 70, 130), Some((-50, 10))),
            ((100, 110, 110, 121), Some((-1, 11))),
            ((100, 100, 100, 100), Some((0, 0))),
            ((100, 170, 160, 130), None),
            ((130, 160, 170, 100), None),
            ((0, u64::MAX, u64::MAX, 0), None),
        ];
        for ((sent, received, replied, returned), expected) in cases {
            let found = exchange(sent, received, replied, returned).offset().map(|found| (found.offset_ns, found.error_ns));
            assert_eq!(found, expected, "{sent} {received} {replied} {returned}");
        }
        assert_eq!(ClockOffset { offset_ns: -50, error_ns: 10 }.largest_ns(), 60);
    }

    #[test]
    fn the_answer_that_came_the_shortest_way_counts_as_long_as_it_is_remembered() {
        let mut watch = ClockWatch::default();
        assert_eq!(watch.offset(), None);
        watch.take(exchange(100, 160, 160, 120));
        for _ in 0..REMEMBERED - 1 {
            watch.take(exchange(100, 180, 180, 160));
            assert_eq!(watch.offset().map(|best| best.error_ns), Some(10));
        }
        watch.take(exchange(100, 99, 98, 160));
        assert_eq!(watch.offset().map(|best| best.error_ns), Some(30));
    }

    proptest! {
        /// Whatever the two ways were, the true difference is within the error.
        #[test]
        fn the_true_difference_is_within_the_error(
            difference in -1_000_000i64..1_000_000, there in 0u64..10_000, held in 0u64..10_000, back in 0u64..10_000,
        ) {
            let other = |ours: u64| ours.saturating_add_signed(difference);
            let (sent, received) = (1 << 40, (1 << 40) + there);
            let (replied, returned) = (received + held, received + held + back);
            let found = exchange(sent, other(received), other(replied), returned).offset().expect("the clocks run evenly");
            prop_assert!((difference - found.offset_ns).unsigned_abs() <= found.error_ns);
            prop_assert!(found.error_ns <= (there + back).div_ceil(2));
        }
    }
}
