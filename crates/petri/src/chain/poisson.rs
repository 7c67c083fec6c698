//! Weights of a Poisson law, with a certified bound on what stands outside their window.
//!
//! Fox and Glynn (CACM 31, 1988) scale the weights and divide by their sum. Here the weight at the mode is known to full precision
//! (Loader's saddle point), so that the recurrence from there needs no scaling, and the tails are bounded by geometric series
//! whose ratio is that of the weights at the window's ends.

use crate::special::poisson_weight;

/// Consecutive weights of a Poisson law.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The number that the first weight belongs to.
    pub first: usize,
    /// Probabilities of `first` and the numbers behind it.
    pub weights: Vec<f64>,
    /// No less than the probability of all other numbers.
    pub outside: f64,
}

impl Window {
    /// The shortest window around the mode that leaves out at most about `error`, which is above 0; `mean` is 0 or more.
    pub fn new(mean: f64, error: f64) -> Self {
        if mean == 0.0 {
            return Self { first: 0, weights: vec![1.0], outside: 0.0 };
        }
        let mode = mean.floor();
        let peak = poisson_weight(mode, mean);
        let (below, outside_below) = below(mode, mean, peak, 0.5 * error);
        let (above, outside_above) = above(mode, mean, peak, 0.5 * error);
        let weights: Vec<f64> = below.iter().rev().copied().chain([peak]).chain(above).collect();
        Self { first: mode as usize - below.len(), weights, outside: outside_below + outside_above }
    }

    /// The weight of `number`; 0 outside the window.
    pub fn weight(&self, number: usize) -> f64 {
        number.checked_sub(self.first).and_then(|index| self.weights.get(index)).copied().unwrap_or(0.0)
    }

    /// The weights of `number` and all behind it in the window, added up.
    pub fn weight_from(&self, number: usize) -> f64 {
        self.weights.iter().skip(number.saturating_sub(self.first)).rev().sum()
    }

    /// The last number of the window.
    pub fn last(&self) -> usize {
        self.first + self.weights.len() - 1
    }
}

/// Weights downwards from below the mode, and a bound on those further down: each is smaller than the one above it by the ratio at
/// the window's end or more.
fn below(mode: f64, mean: f64, peak: f64, error: f64) -> (Vec<f64>, f64) {
    let (mut weights, mut number, mut weight) = (Vec::new(), mode, peak);
    while number > 0.0 {
        let ratio = number / mean;
        let rest = weight * ratio / (1.0 - ratio);
        if ratio < 1.0 && rest <= error {
            return (weights, rest);
        }
        weight *= ratio;
        number -= 1.0;
        weights.push(weight);
    }
    (weights, 0.0)
}

fn above(mode: f64, mean: f64, peak: f64, error: f64) -> (Vec<f64>, f64) {
    let (mut weights, mut number, mut weight) = (Vec::new(), mode, peak);
    loop {
        let ratio = mean / (number + 1.0);
        let rest = weight * ratio / (1.0 - ratio);
        if ratio < 1.0 && rest <= error {
            return (weights, rest);
        }
        weight *= ratio;
        number += 1.0;
        weights.push(weight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_and_its_bound_hold_all_probability() {
        for mean in [0.0, 1e-9, 0.3, 1.0, 7.5, 100.0, 12_345.6, 3e6] {
            for error in [1e-3, 1e-9, 1e-14] {
                let window = Window::new(mean, error);
                let sum: f64 = window.weights.iter().sum();
                assert!(window.outside <= error, "{mean} {error}: {}", window.outside);
                assert!((sum - 1.0).abs() <= window.outside + 4e-12, "{mean} {error}: {sum} and {}", window.outside);
            }
        }
    }

    #[test]
    fn the_weights_are_those_of_the_formula() {
        let window = Window::new(2.5, 1e-12);
        let mut weight = (-2.5_f64).exp();
        for number in 0..20 {
            assert!((window.weight(number) / weight - 1.0).abs() < 1e-14, "{number}");
            weight *= 2.5 / (number + 1) as f64;
        }
        assert_eq!(window.weight(1_000), 0.0);
        assert!((window.weight_from(0) - 1.0).abs() < 1e-11 && window.weight_from(1_000) == 0.0);
        let behind = window.weight_from(3) + window.weight(2);
        assert!((window.weight_from(2) - behind).abs() < 1e-15, "{behind}");
    }

    #[test]
    fn the_window_is_no_wider_than_it_needs() {
        let window = Window::new(10_000.0, 1e-10);
        assert!((1_000..1_500).contains(&window.weights.len()), "{}", window.weights.len());
    }
}
