//! Sums of doubles without rounding, and their means.
//!
//! [`ExactSum`] is a fixed-point number that holds every finite double exactly (Kulisch, *Computer Arithmetic and
//! Validity*, 2008). A point that is subtracted therefore leaves no error, however large it was. The moving average and
//! the kurtosis use it.

/// Bits of a double's fraction.
const FRACTION_BITS: u32 = 52;
/// Bits of a limb. A limb is stored in an `i64`, so the upper half holds the carries of many additions.
const LIMB_BITS: u32 = 32;
/// Limbs for every finite double: the lowest bit is 2^-1074, the highest one of a double is 2^1023.
const LIMBS: usize = 66;
/// Exponent of the lowest bit.
const LOWEST: i32 = -1074;
/// Points that a sum holds at most, so that no limb overflows: each adds less than 2^32 to a limb.
const POINTS_MAX: usize = 1 << 28;

/// A sum of at most 2^28 finite doubles, exact.
#[derive(Clone, Debug)]
pub struct ExactSum {
    /// The lowest bits first, without carries: a limb is the sum of the points' parts.
    limbs: [i64; LIMBS],
    /// Limbs that were used: all others are 0.
    used: (usize, usize),
    points: usize,
}

impl ExactSum {
    /// Returns the sum of no points.
    pub fn new() -> Self {
        Self { limbs: [0; LIMBS], used: (LIMBS, 0), points: 0 }
    }

    /// Adds a finite point.
    pub fn add(&mut self, point: f64) {
        self.points += 1;
        assert!(self.points <= POINTS_MAX, "a sum holds {POINTS_MAX} points");
        self.accumulate(point, point.is_sign_negative());
    }

    /// Subtracts a point that was added before.
    pub fn subtract(&mut self, point: f64) {
        self.points -= 1;
        self.accumulate(point, !point.is_sign_negative());
    }

    fn accumulate(&mut self, point: f64, is_negative: bool) {
        debug_assert!(point.is_finite(), "{point} has no exact sum");
        let bits = point.to_bits();
        let (exponent, fraction) = ((bits >> FRACTION_BITS) as u32 & 0x7FF, bits & ((1 << FRACTION_BITS) - 1));
        // The place of the lowest bit of the significand; a subnormal double has the place of the smallest normal one and no leading 1.
        let (place, significand) = if exponent == 0 { (0, fraction) } else { (exponent - 1, fraction | 1 << FRACTION_BITS) };
        let (first, shift) = ((place / LIMB_BITS) as usize, place % LIMB_BITS);
        let shifted = u128::from(significand) << shift;
        self.used = (self.used.0.min(first), self.used.1.max(first + 3));
        for (at, limb) in self.limbs[first..first + 3].iter_mut().enumerate() {
            let part = i64::from((shifted >> (at as u32 * LIMB_BITS)) as u32);
            *limb += if is_negative { -part } else { part };
        }
    }

    /// Returns the sum, rounded once, divided by the number of points; NaN without points.
    pub fn mean(&self) -> f64 {
        if self.points == 0 {
            return f64::NAN;
        }
        let (first, end) = self.used;
        let Some(first) = (first..end).find(|at| self.limbs[*at] != 0) else { return 0.0 };
        let end = (first..end).rev().find(|at| self.limbs[*at] != 0).map_or(end, |last| last + 1);
        // Signals whose points differ by less than 2^40 end here.
        let (sum, lowest) = if end - first <= 3 {
            let sum = self.limbs[first..end].iter().rev().fold(0i128, |sum, limb| (sum << LIMB_BITS) + i128::from(*limb));
            (sum as f64, first)
        } else {
            self.highest_limbs(first, end)
        };
        scaled(sum / self.points as f64, LOWEST + LIMB_BITS as i32 * lowest as i32)
    }

    /// Returns the sum of many limbs, rounded to 53 bits, in units of the limb that is returned too.
    fn highest_limbs(&self, first: usize, end: usize) -> (f64, usize) {
        let mut limbs = [0u32; LIMBS + 1];
        let mut carry = 0;
        for (low, limb) in limbs[first..end].iter_mut().zip(&self.limbs[first..end]) {
            let limb = limb + carry;
            (*low, carry) = (limb as u32, limb >> LIMB_BITS);
        }
        // Two's complement: the last carry is the sign.
        limbs[end] = carry as u32;
        if carry < 0 {
            let mut is_carried = true;
            for limb in &mut limbs[first..=end] {
                (*limb, is_carried) = (!*limb).overflowing_add(u32::from(is_carried));
            }
        }
        let top = (first..=end).rev().find(|at| limbs[*at] != 0).unwrap_or(first);
        let lowest = top.saturating_sub(2);
        let upper = limbs[lowest..=top].iter().rev().fold(0u128, |upper, limb| upper << LIMB_BITS | u128::from(*limb));
        // What is cut off decides no more than a tie.
        let is_cut = limbs[..lowest].iter().any(|limb| *limb != 0);
        let sum = (upper | u128::from(is_cut)) as f64;
        (if carry < 0 { -sum } else { sum }, lowest)
    }
}

/// Returns a number below 2^128 times a power of two from 2^-1074 to 2^1038.
fn scaled(number: f64, exponent: i32) -> f64 {
    let power = |exponent: i32| f64::from_bits(u64::from((exponent + 1023).unsigned_abs()) << FRACTION_BITS);
    // Both factors are normal, so the first product is exact.
    let first = exponent / 2;
    number * power(first) * power(exponent - first)
}

#[cfg(test)]
pub mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the sum, rounded once (Shewchuk 1997), as Python's `math.fsum` does.
    pub fn reference_sum(points: &[f64]) -> f64 {
        let mut parts: Vec<f64> = Vec::new();
        for point in points {
            let (mut carried, mut kept) = (*point, Vec::new());
            for part in parts {
                let (large, small) = if f64::abs(carried) < f64::abs(part) { (part, carried) } else { (carried, part) };
                carried = large + small;
                kept.push(small - (carried - large));
            }
            kept.retain(|part| *part != 0.0);
            kept.push(carried);
            parts = kept;
        }
        parts.iter().sum()
    }

    /// Points of every magnitude from 1e-300 to 1e300.
    pub fn any_magnitude() -> impl Strategy<Value = f64> {
        prop_oneof![
            4 => (-1.0..1.0f64, -300i32..=299).prop_map(|(digits, power)| digits * 10f64.powi(power)),
            4 => (-50i32..50).prop_map(f64::from),
            1 => Just(0.0),
            1 => prop_oneof![Just(1e300), Just(-1e300), Just(1e-300), Just(-1e-300)],
        ]
    }

    /// Whether two numbers differ by at most so many units in the last place of the larger.
    pub fn is_near(found: f64, expected: f64, units: f64) -> bool {
        found == expected || (found - expected).abs() <= units * f64::EPSILON * found.abs().max(expected.abs())
    }

    fn mean_of(points: &[f64]) -> f64 {
        let mut sum = ExactSum::new();
        points.iter().for_each(|point| sum.add(*point));
        sum.mean()
    }

    proptest! {
        #[test]
        fn mean_is_exact_sum_by_count(points in prop::collection::vec(any_magnitude(), 1..40)) {
            let expected = reference_sum(&points) / points.len() as f64;
            prop_assert!(is_near(mean_of(&points), expected, 2.0), "{} {expected}", mean_of(&points));
        }

        #[test]
        fn subtracted_points_leave_nothing(kept in prop::collection::vec(any_magnitude(), 1..20), gone in prop::collection::vec(any_magnitude(), 0..20)) {
            let mut sum = ExactSum::new();
            kept.iter().chain(&gone).for_each(|point| sum.add(*point));
            gone.iter().for_each(|point| sum.subtract(*point));
            prop_assert_eq!(sum.mean().to_bits(), mean_of(&kept).to_bits());
        }
    }

    #[test]
    fn limits_of_doubles_have_means() {
        let (max, least) = (f64::MAX, f64::from_bits(1));
        assert_eq!(mean_of(&[max; 1000]), max, "the sum is larger than any double");
        assert_eq!(mean_of(&[-max, -max, max]), -max / 3.0);
        assert_eq!((mean_of(&[least]), mean_of(&[least; 7]), mean_of(&[-least, 0.0])), (least, least, 0.0));
        assert_eq!(mean_of(&[f64::MIN_POSITIVE, -least]), (f64::MIN_POSITIVE - least) / 2.0);
        assert_eq!(mean_of(&[max, least, -max, 3.0 * least]), least);
        assert_eq!((mean_of(&[1.0, -1.0]), mean_of(&[1e300, 20.0, -1e300])), (0.0, 20.0 / 3.0));
        assert!(mean_of(&[]).is_nan());
    }
}
