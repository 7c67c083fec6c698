//! The incomplete gamma functions: distribution functions of the gamma and the Poisson distribution.

use super::gamma::{HALF_LN_TWO_PI, stirling_error};
use super::normal_quantile;

/// Terms of a series or a fraction; both need about `6 sqrt(a)` of them, and `a` is at most [`SHAPE_MAX`].
const TERMS_MAX: u32 = 2_000_000;

/// Largest first argument of the incomplete gamma functions.
pub(crate) const SHAPE_MAX: f64 = 1e9;

/// `x^a e^-x / Gamma(a + 1)`: for a whole `a` the probability that a Poisson variable of mean `x` is `a`. `a` and `x` are at least 0.
///
/// Relative error: 5e-14 where the value is above 1e-40, and that times the number of its zeros over 40 below. Loader's form ("Fast and accurate computation of binomial probabilities",
/// 2000), which subtracts no large logarithms.
pub fn poisson_weight(a: f64, x: f64) -> f64 {
    assert!(a >= 0.0 && x >= 0.0, "poisson_weight is for numbers from 0, not {a} and {x}");
    if x == 0.0 {
        return if a == 0.0 { 1.0 } else { 0.0 };
    }
    if a == 0.0 {
        return (-x).exp();
    }
    if a < 1e-3 {
        // Stirling's formula is of no use below: the power itself is near 1.
        return (a * x.ln() - x - super::ln_gamma(a + 1.0)).exp();
    }
    (-stirling_error(a) - deviance(a, x) - HALF_LN_TWO_PI).exp() / a.sqrt()
}

/// `a ln(a / x) + x - a`, without cancellation where `a` and `x` are close.
fn deviance(a: f64, x: f64) -> f64 {
    let difference = a - x;
    let ratio = difference / (a + x);
    if ratio.abs() >= 0.1 {
        return a * (a / x).ln() - difference;
    }
    // ln(a / x) = 2 artanh(ratio); its first term and the difference make `difference * ratio`.
    let square = ratio * ratio;
    let mut power = 2.0 * a * ratio;
    let mut sum = difference * ratio;
    for odd in (3..).step_by(2) {
        power *= square;
        let next = sum + power / f64::from(odd);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// Regularized lower incomplete gamma function `P(a, x)`: the distribution function of a gamma distribution of shape `a` and rate 1.
///
/// `a` from above 0 to 1e9, `x` at least 0. Relative error: 2e-13 where the value is above 1e-40, and that times the number of its
/// zeros over 40 below.
pub fn gamma_p(a: f64, x: f64) -> f64 {
    if x <= a + 1.0 { lower_series(a, x) } else { 1.0 - upper_fraction(a, x) }
}

/// `1 - P(a, x)`, exact where it is small. Range and error are those of [`gamma_p`]; for shapes up to 0.1 the error is 2e-13 of 1.
pub fn gamma_q(a: f64, x: f64) -> f64 {
    // Under a small shape little is left above 1 already, and a difference would lose it.
    let small = if a < 1.0 { 0.7 } else { a + 1.0 };
    if x <= small { 1.0 - lower_series(a, x) } else { upper_fraction(a, x) }
}

/// `P(a, x) = w (1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ...)` with `w` the Poisson weight (DLMF 8.7.1).
fn lower_series(a: f64, x: f64) -> f64 {
    assert!(a > 0.0 && a <= SHAPE_MAX, "the shape of an incomplete gamma function is above 0 and at most {SHAPE_MAX}, not {a}");
    let mut term = 1.0;
    let mut sum = 1.0;
    for index in 1..TERMS_MAX {
        term *= x / (a + f64::from(index));
        sum += term;
        if term < sum * (f64::EPSILON / 16.0) {
            break;
        }
    }
    poisson_weight(a, x) * sum
}

/// `Q(a, x) = w a / (x - a + 1 + 1 (a - 1) / (x - a + 3 + 2 (a - 2) / ...))` (DLMF 8.9.2), by Lentz's method.
fn upper_fraction(a: f64, x: f64) -> f64 {
    assert!(a > 0.0 && a <= SHAPE_MAX, "the shape of an incomplete gamma function is above 0 and at most {SHAPE_MAX}, not {a}");
    if x.is_infinite() {
        return 0.0;
    }
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut below = x - a + 1.0;
    let mut ahead = 1.0 / TINY;
    let mut behind = 1.0 / away_from_zero(below);
    let mut fraction = behind;
    for index in 1..TERMS_MAX {
        let index = f64::from(index);
        let above = index * (a - index);
        below += 2.0;
        behind = 1.0 / away_from_zero(above * behind + below);
        ahead = away_from_zero(below + above / ahead);
        let factor = ahead * behind;
        fraction *= factor;
        if (factor - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    poisson_weight(a, x) * a * fraction
}

/// The `x` where `P(a, x) = p`, for `p` from 0 to 1 (there it is infinite). Relative error: 1e-13 of `x`, or what the spacing of
/// `p` allows.
pub fn gamma_quantile(a: f64, p: f64) -> f64 {
    assert!((0.0..=1.0).contains(&p), "a quantile is asked for a probability, not {p}");
    if p == 0.0 || p == 1.0 {
        return if p == 0.0 { 0.0 } else { f64::INFINITY };
    }
    let mut x = first_guess(a, p);
    for _ in 0..64 {
        // Newton's method on the logarithm of the smaller tail, which is nearly straight; Halley's term for the rest.
        let density = poisson_weight(a, x) * a / x;
        let excess = if p <= 0.5 { gamma_p(a, x) - p } else { (1.0 - p) - gamma_q(a, x) };
        let step = excess / density;
        let curvature = (a - 1.0) / x - 1.0;
        let damped = step / (1.0 - (0.5 * step * curvature).clamp(-1.0, 0.5));
        let next = if damped < x { x - damped } else { x / 2.0 };
        if !next.is_finite() {
            break;
        }
        let settled = (next - x).abs() <= 4.0 * f64::EPSILON * x;
        x = next;
        if settled {
            break;
        }
    }
    x
}

/// Wilson and Hilferty's cube of a normal quantile; far down the lower tail the first term of the series.
fn first_guess(a: f64, p: f64) -> f64 {
    let ninth = 1.0 / (9.0 * a);
    let root = 1.0 - ninth + normal_quantile(p) * ninth.sqrt();
    let cubed = a * root * root * root;
    let lower = ((p.ln() + super::ln_gamma(a + 1.0)) / a).exp();
    if root <= 0.0 || lower < 0.2 * (a + 1.0) { lower.max(f64::MIN_POSITIVE) } else { cubed }
}
