//! The logarithm of the gamma function and its first two derivatives, by Stirling's series (NIST DLMF 5.11).

/// From here on eight terms of Stirling's series are exact to the last bit.
const ASYMPTOTIC_FROM: f64 = 16.0;

/// `ln(2 pi) / 2`.
pub(super) const HALF_LN_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// Logarithm of the gamma function at `x > 0`.
///
/// Error: 1e-14 of the larger of the value and 1 (the value is zero at 1 and 2).
pub fn ln_gamma(x: f64) -> f64 {
    assert!(x > 0.0, "ln_gamma is for numbers above 0, not {x}");
    if x >= ASYMPTOTIC_FROM {
        return (x - 0.5) * x.ln() - x + HALF_LN_TWO_PI + stirling_series(x);
    }
    let (shifted, product) = raised(x);
    ln_gamma(shifted) - product.ln()
}

/// `ln Gamma(x + 1) - ((x + 1/2) ln x - x + ln(2 pi) / 2)`: what Stirling's formula leaves out at `x > 0`, to 1e-15 where `x` is at
/// least 16 and to 1e-14 below.
pub(super) fn stirling_error(x: f64) -> f64 {
    if x >= ASYMPTOTIC_FROM { stirling_series(x) } else { ln_gamma(x + 1.0) - ((x + 0.5) * x.ln() - x + HALF_LN_TWO_PI) }
}

/// First derivative of [`ln_gamma`]. Error: 4e-15 of the larger of the value and 1.
pub fn digamma(x: f64) -> f64 {
    assert!(x > 0.0, "digamma is for numbers above 0, not {x}");
    let mut shifted = x;
    let mut sum = 0.0;
    while shifted < ASYMPTOTIC_FROM {
        sum -= 1.0 / shifted;
        shifted += 1.0;
    }
    const TERMS: [f64; 7] = [-1.0 / 12.0, 1.0 / 120.0, -1.0 / 252.0, 1.0 / 240.0, -1.0 / 132.0, 691.0 / 32_760.0, -1.0 / 12.0];
    let square = 1.0 / (shifted * shifted);
    sum + shifted.ln() - 0.5 / shifted + square * polynomial(&TERMS, square)
}

/// Second derivative of [`ln_gamma`]. Relative error: 4e-15.
pub fn trigamma(x: f64) -> f64 {
    assert!(x > 0.0, "trigamma is for numbers above 0, not {x}");
    let mut shifted = x;
    let mut sum = 0.0;
    while shifted < ASYMPTOTIC_FROM {
        sum += 1.0 / (shifted * shifted);
        shifted += 1.0;
    }
    const TERMS: [f64; 7] = [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2_730.0, 7.0 / 6.0];
    let square = 1.0 / (shifted * shifted);
    sum + 1.0 / shifted + 0.5 * square + square / shifted * polynomial(&TERMS, square)
}

/// `x + n`, at least [`ASYMPTOTIC_FROM`], and `x (x + 1) ... (x + n - 1)`.
fn raised(x: f64) -> (f64, f64) {
    let mut shifted = x;
    let mut product = 1.0;
    while shifted < ASYMPTOTIC_FROM {
        product *= shifted;
        shifted += 1.0;
    }
    (shifted, product)
}

/// `1/(12 x) - 1/(360 x^3) + ...`.
fn stirling_series(x: f64) -> f64 {
    const TERMS: [f64; 7] = [1.0 / 12.0, -1.0 / 360.0, 1.0 / 1_260.0, -1.0 / 1_680.0, 1.0 / 1_188.0, -691.0 / 360_360.0, 1.0 / 156.0];
    polynomial(&TERMS, 1.0 / (x * x)) / x
}

/// `coefficients[0] + coefficients[1] x + ...`, by Horner.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}
