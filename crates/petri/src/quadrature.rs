//! Integrals of smooth functions over an interval.

/// Positive nodes of the Gauss-Legendre rule of 16 points on [-1, 1], with their weights.
const GAUSS: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_6),
    (0.458_016_777_657_227_4, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_7, 0.149_595_988_816_576_73),
    (0.755_404_408_355_003, 0.124_628_971_255_533_87),
    (0.865_631_202_387_831_7, 0.095_158_511_682_492_78),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_89),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_095),
];

/// The integral of `f` over `from..to` by 16 Gauss-Legendre points: exact for polynomials of degree 31.
pub(crate) fn gauss(from: f64, to: f64, f: impl Fn(f64) -> f64) -> f64 {
    gauss_points(from, to).map(|(point, weight)| weight * f(point)).sum()
}

/// The points of that rule and their weights.
pub(crate) fn gauss_points(from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> {
    let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
    GAUSS.into_iter().flat_map(move |(node, weight)| [(middle - half * node, half * weight), (middle + half * node, half * weight)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_up_to_degree_31_are_exact() {
        for degree in 0..32 {
            let exact = (2.0_f64.powi(degree + 1) - 1.0) / f64::from(degree + 1);
            let found = gauss(1.0, 2.0, |x| x.powi(degree));
            assert!((found / exact - 1.0).abs() < 1e-14, "{degree}");
        }
    }

    #[test]
    fn an_exponential_is_exact_to_rounding() {
        assert!((gauss(0.0, 3.0, |x| (-x).exp()) - (1.0 - (-3.0_f64).exp())).abs() < 1e-15);
    }
}
