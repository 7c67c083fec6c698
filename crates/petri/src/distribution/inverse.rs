//! Quantiles of laws that have no formula for them.

use super::Law;

/// Steps of the search: each halves the bracket at least every second time, and a bracket has at most 2,100 halvings.
const STEPS_MAX: u32 = 5_000;

/// Smallest `x` where the distribution function is at least `p`, by Newton's method inside a bracket that halves when Newton leaves
/// it or is slow.
pub(super) fn quantile<L: Law + ?Sized>(law: &L, p: f64) -> f64 {
    let (from, to) = law.support();
    if p <= 0.0 || p >= 1.0 {
        return if p <= 0.0 { from } else { to };
    }
    let (mut low, mut high) = (from, upper_end(law, p, from, to));
    // Below 0 where x is too small. Of both tails the smaller one has the digits.
    let excess = |x: f64| if p <= 0.5 { law.cdf(x) - p } else { (1.0 - p) - law.survival(x) };
    let mut x = law.mean().clamp(low, high);
    for _ in 0..STEPS_MAX {
        let missing = excess(x);
        if missing < 0.0 {
            low = x;
        } else {
            high = x;
        }
        if high - low <= 2.0 * f64::EPSILON * high {
            break;
        }
        let newton = law.pdf(x).map_or(f64::NAN, |density| x - missing / density);
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        if (next - x).abs() <= f64::EPSILON * x {
            return next;
        }
        x = next;
    }
    high
}

/// An `x` in the support where the distribution function is at least `p`.
fn upper_end<L: Law + ?Sized>(law: &L, p: f64, from: f64, to: f64) -> f64 {
    if to.is_finite() {
        return to;
    }
    let mut end = from.max(law.mean());
    while law.cdf(end) < p && law.survival(end) > 1.0 - p {
        end *= 2.0;
    }
    end
}
