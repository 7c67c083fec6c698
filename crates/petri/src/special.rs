//! The special functions that distributions, fits and intervals are made of.
//!
//! Each function's documentation states its range and its error; `vectors/petri/special.csv` holds values of 40 digits (made with
//! mpmath) that the tests hold them to.

mod erf;
mod gamma;
mod incomplete_gamma;

pub use self::{
    erf::{erf, erfc, normal_cdf, normal_pdf, normal_quantile},
    gamma::{digamma, ln_gamma, trigamma},
    incomplete_gamma::{gamma_p, gamma_q, gamma_quantile, poisson_weight},
};

#[cfg(test)]
mod tests {
    use super::*;

    const VECTORS: &str = include_str!("../../../vectors/petri/special.csv");

    /// Largest relative error that each function is allowed; where a function has a zero, errors are against 1 there.
    fn allowed(function: &str) -> f64 {
        match function {
            "ln_gamma" => 1e-14,
            "digamma" | "trigamma" => 4e-15,
            "erf" | "normal_quantile" => 2e-14,
            "erfc" | "poisson_weight" => 5e-14,
            "gamma_p" | "gamma_q" => 2e-13,
            "gamma_quantile" => 1e-13,
            other => panic!("{other} has no bound"),
        }
    }

    #[test]
    fn every_function_is_as_exact_as_it_says() {
        let mut checked = 0;
        for line in VECTORS.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            let number = |index: usize| fields[index].parse::<f64>().expect("a number");
            let (a, b, expected) = (number(1), fields[2], number(3));
            let b = || b.parse::<f64>().expect("a number");
            let computed = match fields[0] {
                "ln_gamma" => ln_gamma(a),
                "digamma" => digamma(a),
                "trigamma" => trigamma(a),
                "erf" => erf(a),
                "erfc" => erfc(a),
                "normal_quantile" => normal_quantile(a),
                "poisson_weight" => poisson_weight(a, b()),
                "gamma_p" => gamma_p(a, b()),
                "gamma_q" => gamma_q(a, b()),
                "gamma_quantile" => gamma_quantile(a, b()),
                other => panic!("{other} is not tested"),
            };
            let has_zero = matches!(fields[0], "ln_gamma" | "digamma");
            let coarse = fields[0] == "gamma_q" && a <= 0.1;
            let scale = expected.abs().max(if has_zero || coarse { 1.0 } else { 0.0 });
            // An exponent of many digits leaves fewer to the value.
            let zeros = (-expected.abs().log10() / 40.0).max(1.0);
            let error = (computed - expected).abs() / scale;
            assert!(error <= allowed(fields[0]) * zeros, "{line}: {computed:e} is {error:e} off");
            checked += 1;
        }
        assert!(checked > 300, "only {checked} values were there");
    }
}
