//! When a node of the pair says on its connections that it lives.

use std::time::Duration;

use bodkin_broker::Instant;

/// The heartbeat of all connections. It goes with the ballots of a turn where any go out, so that the other nodes are woken once for both, and waits for them a little
/// longer than its period. So those who answer a leader's requests fall into step with it.
#[derive(Debug)]
pub struct Beat {
    period: Duration,
    last: Instant,
    has_ballot: bool,
}

impl Beat {
    /// One that is due.
    pub fn new(period: Duration) -> Self {
        Self { period, last: Instant::default(), has_ballot: false }
    }

    /// A ballot goes out in this turn.
    pub fn with_ballot(&mut self) {
        self.has_ballot = true;
    }

    /// Ends a turn: whether the heartbeat goes out in it.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let with_ballot = std::mem::take(&mut self.has_ballot) && now >= self.last.plus(self.period / 2);
        let is_due = with_ballot || now >= self.alone_at();
        if is_due {
            self.last = now;
        }
        is_due
    }

    /// When it goes out if no ballot does before.
    pub fn alone_at(&self) -> Instant {
        self.last.plus(self.period * 5 / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: u64 = 8_000;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// When the heartbeats of a node go out whose ballots go out at these times, and in how many turns that were made for nothing else.
    fn beats(ballots: &[u64], until: u64) -> (Vec<u64>, usize) {
        let mut beat = Beat { last: at(0), ..Beat::new(Duration::from_nanos(PERIOD_NS)) };
        let (mut ballots, mut beats, mut alone) = (ballots.iter().copied().peekable(), Vec::new(), 0);
        loop {
            let timer = beat.alone_at().nanos();
            let now = ballots.next_if(|ballot| *ballot <= timer).inspect(|_| beat.with_ballot()).unwrap_or(timer);
            if now > until {
                return (beats, alone);
            }
            if beat.is_due(at(now)) {
                beats.push(now);
                alone += usize::from(now == timer);
            }
        }
    }

    #[test]
    fn a_heartbeat_is_in_step_with_ballots_after_two_periods_at_the_most() {
        for behind_ns in (0..PERIOD_NS).step_by(100) {
            let ballots: Vec<u64> = (0..20).map(|n| behind_ns + n * PERIOD_NS).filter(|at| *at > 0).collect();
            let (beats, alone) = beats(&ballots, 16 * PERIOD_NS);
            assert!(alone <= 2, "{behind_ns}: {alone} turns for a heartbeat alone");
            assert!((14..=17).contains(&beats.len()), "{behind_ns}: {beats:?}");
            assert!(beats.iter().rev().take(12).all(|beat| ballots.contains(beat)), "{behind_ns}: {beats:?}");
        }
    }

    #[test]
    fn a_node_without_ballots_beats_by_itself_and_many_ballots_make_few_heartbeats() {
        assert_eq!(beats(&[], 30_000), (vec![10_000, 20_000, 30_000], 3));
        let often: Vec<u64> = (1..40).map(|n| n * 1_000).collect();
        assert_eq!(beats(&often, 13_000), (vec![4_000, 8_000, 12_000], 0));
    }
}
