//! Whether a level keeps up with its suppliers, and how long its results take from their first operators on.
//!
//! A level that does not keep up loses events whatever is done; what it loses is to have cost nothing. An event that would come too late at the pace of late is shed in front of its first operator, and what was taken in is
//! finished, by less urgent levels too, before more is taken in.

/// So many events lost, none later than [`CALM_NS`] behind the one before, and a level does not keep up: a burst is no overload.
pub(super) const LOSSES_BEHIND: u32 = 8;
/// A level that has lost nothing for so long keeps up.
pub(super) const CALM_NS: u64 = 100_000_000;
/// By what part of itself the time grows when something was given up on the way, and by what part of the difference it follows a result that was quicker: of two dozen rounds one may be in vain.
const LONGER_BY: u64 = 8;
const SHORTER_BY: u64 = 64;

/// The pace of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    /// From the begin of the first operator to the result, of late: near the longest of them.
    lasts_ns: u64,
    losses: u32,
    lost_at_ns: u64,
}

impl Pace {
    /// Notes how long a result took from its first operator on.
    pub fn note(&mut self, lasted_ns: u64) {
        self.lasts_ns = self.lasts_ns.max(lasted_ns);
        self.lasts_ns -= (self.lasts_ns - lasted_ns) / SHORTER_BY;
    }

    /// Notes that something was given up so long behind its first operator: it would have taken longer.
    pub fn give_up(&mut self, lasted_ns: u64) {
        let lasts_ns = self.lasts_ns.max(lasted_ns);
        self.lasts_ns = lasts_ns.saturating_add(lasts_ns / LONGER_BY);
    }

    /// Notes that an event was replaced before it was taken, or was not valid for long enough when it was its turn.
    pub fn lose(&mut self, now_ns: u64) {
        if now_ns > self.lost_at_ns.saturating_add(CALM_NS) {
            self.losses = 0;
        }
        self.losses = self.losses.saturating_add(1);
        self.lost_at_ns = now_ns;
    }

    /// Whether the level does not keep up.
    pub fn is_behind(&self, now_ns: u64) -> bool {
        self.losses >= LOSSES_BEHIND && now_ns <= self.lost_at_ns.saturating_add(CALM_NS)
    }

    /// For how long an event has to be valid when its first operator begins; 0 where the level keeps up.
    pub fn needed_ns(&self, now_ns: u64) -> u64 {
        if self.is_behind(now_ns) { self.lasts_ns } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_keeps_up_needs_nothing_and_one_that_does_not_needs_what_results_took() {
        let mut pace = Pace::default();
        (0..64).for_each(|_| pace.note(1_000));
        (1..LOSSES_BEHIND.into()).for_each(|at| pace.lose(at * CALM_NS));
        assert_eq!(pace.needed_ns(u64::from(LOSSES_BEHIND) * CALM_NS), 0);
        let now_ns = u64::from(LOSSES_BEHIND) * CALM_NS;
        pace.lose(now_ns);
        assert_eq!(pace.needed_ns(now_ns + CALM_NS), 1_000);
        assert!(!pace.is_behind(now_ns + CALM_NS + 1), "it has lost nothing for a while");
    }

    #[test]
    fn losses_far_from_each_other_are_no_overload() {
        let mut pace = Pace::default();
        (1..100).for_each(|at| pace.lose(at * (CALM_NS + 1)));
        assert!(!pace.is_behind(99 * (CALM_NS + 1)), "{pace:?}");
    }

    #[test]
    fn what_is_given_up_makes_the_time_longer_and_quick_results_make_it_shorter_in_the_end() {
        let mut pace = Pace { lasts_ns: 1_000, losses: LOSSES_BEHIND, lost_at_ns: 1 };
        pace.give_up(500);
        assert_eq!(pace.needed_ns(1), 1_125);
        pace.give_up(2_000);
        assert_eq!(pace.needed_ns(1), 2_250);
        (0..20).for_each(|_| pace.note(1_000));
        assert!(pace.needed_ns(1) > 1_800, "{pace:?}");
        (0..400).for_each(|_| pace.note(1_000));
        assert!((1_000..1_100).contains(&pace.needed_ns(1)), "{pace:?}");
    }
}
