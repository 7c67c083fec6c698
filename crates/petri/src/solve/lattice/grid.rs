//! Which lengths the ticks have, and where the asked times are among them.

use crate::{
    distribution::Distribution,
    explore::Stages,
    net::{Delay, Net, Transition},
    solve::SolveError,
};

/// Ticks in the standard deviation of the shortest general delay, at first.
const TICKS_PER_DEVIATION: f64 = 0.5;

/// Times that are no whole number of ticks are interpolated between this many that are.
pub const NEIGHBOURS: usize = 8;

/// The law of a transition's delay, if it is not made of exponential stages.
pub fn general_law(transition: &Transition) -> Option<&Distribution> {
    match transition.timed().map(|timed| &timed.delay) {
        Some(Delay::Distribution(law)) if Stages::of(law).is_none() => Some(law),
        _ => None,
    }
}

/// Ticks around a time, with the weights of Lagrange's interpolation.
pub fn neighbours(position: f64, count: usize) -> Vec<(usize, f64)> {
    if is_multiple(position, 1.0) || count < NEIGHBOURS {
        return vec![(position.round() as usize, 1.0)];
    }
    let first = (position.floor() as usize).saturating_sub(NEIGHBOURS / 2 - 1).min(count + 1 - NEIGHBOURS);
    let nodes = first..first + NEIGHBOURS;
    let weight = |node: usize| {
        let others = nodes.clone().filter(|other| *other != node);
        others.map(|other| (position - other as f64) / (node as f64 - other as f64)).product()
    };
    nodes.clone().map(|node| (node, weight(node))).collect()
}

pub fn is_multiple(time: f64, tick: f64) -> bool {
    let position = time / tick;
    (position - position.round()).abs() <= 1e-9 * position.max(1.0)
}

/// A length that all corners of the general delays are multiples of, and the times too where that is not much finer, and that resolves
/// the shortest delay.
pub fn first_tick(net: &Net, times: &[f64]) -> Result<f64, SolveError> {
    let (mut corners, mut shortest) = (Vec::new(), f64::INFINITY);
    for law in net.transitions().iter().filter_map(general_law) {
        let (low, high) = law.support();
        corners.extend([low, high].into_iter().filter(|corner| *corner > 0.0 && corner.is_finite()));
        if let Distribution::Empirical(law) = law {
            corners.extend(law.values().iter().filter(|value| **value > 0.0));
        }
        let deviation = law.variance().sqrt();
        shortest = shortest.min(if deviation > 0.0 { deviation / TICKS_PER_DEVIATION } else { law.mean() });
    }
    if !(shortest > 0.0 && shortest.is_finite()) {
        return Err(SolveError::Question("no delay of the net is general: method markov is made for it".to_owned()));
    }
    let floor = shortest / 64.0;
    let step = corners.iter().copied().fold(0.0, |step, corner| common_divisor(step, corner, floor));
    let with_times = times.iter().copied().fold(step, |step, time| common_divisor(step, time, floor));
    let step = if with_times >= 0.5 * shortest.min(if step > 0.0 { step } else { f64::INFINITY }) { with_times } else { step };
    if step <= floor {
        // Corners have nothing in common: the estimate of the error says what that costs.
        return Ok(shortest);
    }
    Ok(step / (step / shortest).ceil())
}

/// Euclid's algorithm on lengths; below `floor` it gives up with 0.
fn common_divisor(a: f64, b: f64, floor: f64) -> f64 {
    let (mut a, mut b) = (a.max(b), a.min(b));
    while b > 1e-9 * a {
        if b < floor {
            return 0.0;
        }
        (a, b) = (b, a - b * (a / b).floor());
        // What is left may be just short of the divisor, by rounding.
        if a - b < 1e-9 * a {
            b = 0.0;
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_a_common_divisor_in_spite_of_rounding() {
        for (a, b, expected) in [(1.0, 0.3, 0.1), (0.0, 0.7, 0.7), (0.3, 0.1 + 0.2, 0.3), (2.5, 1.0, 0.5), (1.0, 1.0 / 3.0, 1.0 / 3.0)] {
            assert!((common_divisor(a, b, 0.01) - expected).abs() < 1e-7, "{a} {b}: {}", common_divisor(a, b, 0.01));
        }
        assert_eq!(common_divisor(1.0, std::f64::consts::FRAC_1_SQRT_2, 0.01), 0.0);
    }

    #[test]
    fn interpolation_is_exact_for_polynomials() {
        let cubic = |x: f64| 1.0 + x - 0.5 * x * x + 0.1 * x * x * x;
        for position in [0.3, 5.5, 19.9] {
            let value: f64 = neighbours(position, 20).iter().map(|(node, weight)| weight * cubic(*node as f64)).sum();
            assert!((value - cubic(position)).abs() < 1e-9, "{position}");
        }
        assert_eq!(neighbours(4.0, 20), [(4, 1.0)]);
    }
}
