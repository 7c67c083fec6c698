//! Functions of one variable as Chebyshev polynomials, piece by piece.
//!
//! Pieces are halved until the last coefficients of each are below a tolerance; what is left out is about as large as they are.

/// Coefficients of a piece.
const TERMS: usize = 18;

/// Of these the last ones have to be small.
const LAST: usize = 3;

/// A piece is not halved further below this share of the whole.
const SHARE_MIN: f64 = 1e-13;

/// A function on an interval; constant outside.
#[derive(Clone, Debug)]
pub(crate) struct Piecewise {
    /// Ends of the pieces, rising; one more than pieces.
    ends: Vec<f64>,
    coefficients: Vec<[f64; TERMS]>,
    /// What was left out of any piece, at most, by its last coefficients.
    pub error: f64,
}

impl Piecewise {
    /// Approximates `f` on the interval from the first of `ends` to the last to `tolerance`, absolute; `ends` rise, and are where `f`
    /// may have corners. None where it takes more than `pieces_max` pieces.
    pub fn of(ends: &[f64], tolerance: f64, pieces_max: usize, f: &mut dyn FnMut(f64) -> f64) -> Option<Self> {
        let narrowest = SHARE_MIN * (ends[ends.len() - 1] - ends[0]);
        let mut open: Vec<(f64, f64)> = ends.windows(2).rev().map(|pair| (pair[0], pair[1])).filter(|(from, to)| from < to).collect();
        let mut found = Self { ends: vec![ends[0]], coefficients: Vec::new(), error: 0.0 };
        while let Some((from, to)) = open.pop() {
            let coefficients = interpolate(from, to, f);
            let rest: f64 = coefficients[TERMS - LAST..].iter().map(|coefficient| coefficient.abs()).sum();
            if rest <= tolerance || to - from <= narrowest {
                found.ends.push(to);
                found.coefficients.push(coefficients);
                found.error = found.error.max(rest);
                if found.coefficients.len() > pieces_max {
                    return None;
                }
            } else {
                let middle = 0.5 * (from + to);
                open.push((middle, to));
                open.push((from, middle));
            }
        }
        Some(found)
    }

    /// Where the pieces end.
    pub fn ends(&self) -> &[f64] {
        &self.ends
    }

    /// The value at `x`, by Clenshaw's recurrence.
    pub fn value(&self, x: f64) -> f64 {
        let x = x.clamp(self.ends[0], self.ends[self.ends.len() - 1]);
        // At a jump the value behind it counts, as in a distribution function.
        let piece = self.ends[1..self.ends.len() - 1].partition_point(|end| *end <= x);
        let (from, to) = (self.ends[piece], self.ends[piece + 1]);
        let y = 2.0 * ((x - from) - (to - x)) / (to - from);
        let coefficients = &self.coefficients[piece];
        let (mut ahead, mut behind) = (0.0, 0.0);
        for coefficient in coefficients[1..].iter().rev() {
            (ahead, behind) = (y * ahead - behind + coefficient, ahead);
        }
        0.5 * y * ahead - behind + coefficients[0]
    }
}

/// Coefficients of the polynomial through the Chebyshev points of the first kind.
fn interpolate(from: f64, to: f64, f: &mut dyn FnMut(f64) -> f64) -> [f64; TERMS] {
    let angle = |index: usize| std::f64::consts::PI * (index as f64 + 0.5) / TERMS as f64;
    let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
    let values: [f64; TERMS] = std::array::from_fn(|index| f(middle + half * angle(index).cos()));
    std::array::from_fn(|term| {
        let sum: f64 = values.iter().enumerate().map(|(index, value)| value * (term as f64 * angle(index)).cos()).sum();
        sum * if term == 0 { 1.0 } else { 2.0 } / TERMS as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ends: &[f64], f: impl Fn(f64) -> f64, error: f64) {
        let found = Piecewise::of(ends, 1e-13, 1_000, &mut |x| f(x)).expect("it has few pieces");
        let (first, last) = (ends[0], ends[ends.len() - 1]);
        for index in 0..=1_000 {
            let x = first + (last - first) * f64::from(index) / 1_000.0;
            assert!((found.value(x) - f(x)).abs() <= error, "at {x}: {} and {}", found.value(x), f(x));
        }
    }

    #[test]
    fn smooth_functions_are_approximated_to_the_tolerance() {
        check(&[0.0, 10.0], |x| (-x).exp(), 1e-12);
        check(&[0.0, 10.0], |x| (3.0 * x).sin(), 1e-12);
        check(&[-1.0, 1.0], |x| 1.0 / (1.0 + 25.0 * x * x), 1e-12);
    }

    #[test]
    fn corners_that_are_known_cost_nothing_and_others_pieces() {
        check(&[0.0, 1.0, 3.0], |x| (x - 1.0).abs(), 1e-12);
        check(&[0.0, 3.0], |x| (x - 1.1).abs(), 1e-11);
    }

    #[test]
    fn at_a_jump_that_is_known_the_value_behind_it_counts() {
        let step = |x: f64| f64::from(u8::from(x >= 1.0));
        let found = Piecewise::of(&[0.0, 1.0, 2.0], 1e-13, 10, &mut |x| step(x)).expect("it has two pieces");
        assert_eq!([0.5, 0.999, 1.0, 2.0].map(|x| found.value(x).round()), [0.0, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn too_many_pieces_are_refused() {
        assert!(Piecewise::of(&[0.0, 1.0], 1e-15, 10, &mut |x| (300.0 * x).sin()).is_none());
    }
}
