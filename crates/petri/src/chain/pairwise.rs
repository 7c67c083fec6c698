//! Sums of many terms, in pairs: rounding grows with the logarithm of their number, and not with the number itself.

use std::ops::Range;

use super::ROUNDOFF;

/// So many terms are added one behind the other.
pub(crate) const RUN: usize = 128;

/// The sum of `term` over `which`.
pub(crate) fn sum(which: Range<usize>, term: &impl Fn(usize) -> f64) -> f64 {
    if which.len() <= RUN {
        return which.map(term).sum();
    }
    let middle = which.start + which.len() / 2;
    sum(which.start..middle, term) + sum(middle..which.end, term)
}

/// How far rounding takes a sum of so many products from the true one at most, as a part of the sum of their magnitudes; of a sum of sums, too, as long
/// as the outer one has no more terms than the inner ones have together.
pub(crate) fn rounding(terms: usize) -> f64 {
    let halvings = terms.div_ceil(RUN).next_power_of_two().trailing_zeros();
    (2 * (RUN + halvings as usize) + 4) as f64 * ROUNDOFF
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tenths are no doubles: added one behind the other, a million of them are off by far more than the bound.
    #[test]
    fn a_long_sum_is_as_good_as_its_bound() {
        for terms in [0, 1, 127, 128, 129, 1_000, 1_000_000] {
            // An integer, and what a tenth is above it is known: 0.1 = (1 + 2^-54 ...) / 10.
            let exact = terms as f64 / 10.0;
            let of_tenth = f64::EPSILON / 4.0;
            let found = sum(0..terms, &|_| 0.1);
            assert!((found - exact).abs() <= (rounding(terms) + of_tenth) * exact, "{terms}: {found}");
        }
        let singly: f64 = (0..1_000_000).map(|_| 0.1).sum();
        assert!((singly - 1e5).abs() > rounding(1_000_000) * 1e5, "{singly}");
        assert!(rounding(4_000_000) < 4e-14);
    }
}
