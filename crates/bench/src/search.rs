//! The largest number that passes a test: by doubling, then by halving what is left between a pass and a failure.

/// The search ends when pass and failure are this close, as a part of what passed.
const PRECISION: f64 = 0.02;

/// Where a search ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The largest that passed; 0 when the first did not and nothing below it did.
    pub passed: u32,
    /// The smallest that failed; `None` when all up to the largest allowed passed.
    pub failed: Option<u32>,
}

/// Tries numbers from `first` to `up_to` and finds the largest that passes. That more is never easier is assumed: nothing
/// above a failure is tried.
///
/// # Errors
/// Those of `passes`.
pub fn largest<E>(first: u32, up_to: u32, mut passes: impl FnMut(u32) -> Result<bool, E>) -> Result<Limit, E> {
    let mut limit = Limit { passed: 0, failed: None };
    let mut next = first.min(up_to);
    while limit.failed.is_none() && limit.passed < up_to {
        if passes(next)? {
            limit.passed = next;
            next = next.saturating_mul(2).min(up_to);
        } else {
            limit.failed = Some(next);
        }
    }
    while let Some(failed) = limit.failed.filter(|failed| f64::from(failed - limit.passed) > step(limit.passed)) {
        let middle = limit.passed + (failed - limit.passed) / 2;
        if passes(middle)? {
            limit.passed = middle;
        } else {
            limit.failed = Some(middle);
        }
    }
    Ok(limit)
}

fn step(passed: u32) -> f64 {
    (f64::from(passed) * PRECISION).max(1.0)
}

/// The least probability of passing that so many passes without a failure show, with 95 % confidence.
pub fn least_probability(passes: u32) -> f64 {
    0.05f64.powf(1.0 / f64::from(passes.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    /// The limit found where all up to `truth` pass, and how many were tried.
    fn found(truth: u32, first: u32, up_to: u32) -> (Limit, u32) {
        let mut tried = 0;
        let limit = largest(first, up_to, |n| {
            tried += 1;
            Ok::<_, Infallible>(n <= truth)
        });
        (limit.unwrap(), tried)
    }

    #[test]
    fn the_ends_are_told_apart() {
        assert_eq!(found(0, 100, 1000).0, Limit { passed: 0, failed: Some(1) });
        assert_eq!(found(5000, 100, 1000).0, Limit { passed: 1000, failed: None });
        assert_eq!(found(37, 100, 1000).0, Limit { passed: 37, failed: Some(38) });
        assert_eq!(found(5, 100, 5).0, Limit { passed: 5, failed: None });
    }

    #[test]
    fn an_error_ends_the_search() {
        assert_eq!(largest(1, 8, |n| if n < 4 { Ok(true) } else { Err(n) }), Err(4));
    }

    #[test]
    fn more_passes_show_more() {
        assert!((least_probability(1) - 0.05).abs() < 1e-12);
        assert!((least_probability(5) - 0.549).abs() < 1e-3 && least_probability(20) > 0.86);
    }

    proptest! {
        #[test]
        fn the_limit_lies_at_the_truth_and_takes_few_tries(truth in 0u32..100_000, first in 1u32..1000) {
            let (limit, tried) = found(truth, first, 200_000);
            let failed = limit.failed.unwrap();
            prop_assert!(limit.passed <= truth && truth < failed);
            prop_assert!(f64::from(failed - limit.passed) <= step(limit.passed));
            prop_assert!(tried <= 40, "{tried}");
        }
    }
}
