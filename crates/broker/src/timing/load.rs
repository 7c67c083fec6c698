//! The share of a core that jobs ask for.

use std::{fmt, iter::Sum, ops::Add};

use super::Nanos;

/// A share of one core, rounded up where it does not come out even. Sums saturate far above any number of cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Load(u128);

impl Load {
    /// Parts of a per cent in which it is counted: 1 % of any divisor of 100 comes out even, and 2^32 roundings make 1 %.
    const PARTS_OF_A_PERCENT: u128 = 1 << 32;
    /// Parts of a whole core.
    pub(super) const PARTS: i128 = 100 * Self::PARTS_OF_A_PERCENT as i128;

    /// No load.
    pub const NONE: Self = Self(0);

    /// So many per cent of a core.
    pub fn percent(percent: u32) -> Self {
        Self(u128::from(percent) * Self::PARTS_OF_A_PERCENT)
    }

    /// `count` jobs of `cost` in every `period`, which is positive.
    pub fn of(cost: Nanos, count: u64, period: Nanos) -> Self {
        let work = u128::from(cost.get().unsigned_abs()) * u128::from(count);
        Self(work.saturating_mul(Self::PARTS.unsigned_abs()).div_ceil(u128::from(period.get().unsigned_abs())))
    }

    /// Without `other`, which is part of it.
    pub fn without(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("a load is taken off that was put on"))
    }

    /// In millionths of a core, rounded up.
    pub fn ppm(self) -> u64 {
        u64::try_from(self.0.saturating_mul(1_000_000).div_ceil(Self::PARTS.unsigned_abs())).unwrap_or(u64::MAX)
    }

    /// In parts of a core. A single topic may ask for any number of cores, but the parts of many still have a sum.
    pub(super) fn height(self) -> i128 {
        self.0.min(1 << 80) as i128
    }

    /// In parts of a core, for a load of one core at the most.
    pub(super) fn parts(self) -> i128 {
        i128::try_from(self.0).expect("the load of one core is small")
    }
}

impl Add for Load {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Load {
    fn sum<I: Iterator<Item = Self>>(loads: I) -> Self {
        loads.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = self.ppm().div_ceil(100);
        f.pad(&format!("{}.{:02} %", hundredths / 100, hundredths % 100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_even_is_exact() {
        assert_eq!(Load::of(Nanos::new(5), 19, Nanos::new(100)), Load::percent(95));
        assert!((0..3).map(|_| Load::of(Nanos::new(1), 1, Nanos::new(3))).sum::<Load>() > Load::percent(100), "rounded up");
        assert_eq!((Load::percent(95).ppm(), Load::percent(95).to_string()), (950_000, "95.00 %".to_owned()));
        assert_eq!(Load::of(Nanos::MAX, u64::MAX, Nanos::new(1)).ppm(), u64::MAX);
    }
}
