//! How long a leader may believe its lease, and how long a voter keeps its promise: each by its own clock.
//!
//! A clock that counts pauses (CLOCK_BOOTTIME) may run fast or slow by `drift_ppm` millionths. A leader counts its lease from the
//! instant it asked, shortened by the drift: even by a slow clock it ends no later than `lease` behind that instant in true time. A voter counts
//! from the receipt, which is not earlier, lengthened by the drift: even by a fast clock it ends no earlier than `lease` behind
//! it. So a leader has always stopped when its voter becomes free. Source: Gray and Cheriton, Leases, SOSP 1989.

use std::time::Duration;

use crate::time::Instant;

const MILLION: u128 = 1_000_000;

/// When a leader that asked at `sent_at` and was granted has to stop.
pub fn held_until(sent_at: Instant, lease: Duration, drift_ppm: u32) -> Instant {
    let kept = MILLION.saturating_sub(u128::from(drift_ppm));
    sent_at.plus(nanos(lease.as_nanos().saturating_mul(kept) / MILLION))
}

/// Until when a voter that granted at `now` votes for nobody else.
pub fn promised_until(now: Instant, lease: Duration, drift_ppm: u32) -> Instant {
    now.plus(lengthened(lease, drift_ppm))
}

/// A lease by the slowest clock that is allowed, rounded up: `lease * (1 + rho)`.
pub fn lengthened(lease: Duration, drift_ppm: u32) -> Duration {
    nanos(lease.as_nanos().saturating_mul(MILLION + u128::from(drift_ppm)).div_ceil(MILLION))
}

fn nanos(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn drift_costs_the_leader_and_binds_the_voter() {
        let at = Instant::from_nanos;
        let lease = Duration::from_nanos(1_000_001);
        assert_eq!((held_until(at(5), lease, 200), promised_until(at(5), lease, 200)), (at(5 + 999_800), at(5 + 1_000_202)));
        assert_eq!((held_until(at(5), lease, 0), promised_until(at(5), lease, 0)), (at(1_000_006), at(1_000_006)));
        assert_eq!(promised_until(at(u64::MAX - 1), lease, 0), at(u64::MAX), "time ends, promises do not wrap");
    }

    proptest! {
        /// Clocks that are wrong by up to the drift, in true time: the leader's lease ends no later than the voter's promise.
        #[test]
        fn a_lease_ends_before_the_promise_does(
            lease_ns in 1u64..1 << 40, drift_ppm in 0u32..100_000, asked in 0u64..1 << 40, way in 0u64..1 << 30, slow: bool, fast: bool,
        ) {
            let lease = Duration::from_nanos(lease_ns);
            let leader_ns = u128::from(held_until(Instant::default(), lease, drift_ppm).since(Instant::default()).as_nanos() as u64);
            let voter_ns = promised_until(Instant::default(), lease, drift_ppm).since(Instant::default()).as_nanos();
            // True time that passes while a clock counts so many nanoseconds, in millionths.
            let rho = u128::from(drift_ppm);
            let leader_true = leader_ns * MILLION * MILLION / if slow { MILLION - rho } else { MILLION };
            let voter_true = voter_ns * MILLION * MILLION / if fast { MILLION + rho } else { MILLION };
            let (asked, received) = (u128::from(asked) * MILLION, u128::from(asked + way) * MILLION);
            prop_assert!(asked + leader_true <= received + voter_true);
        }
    }
}
