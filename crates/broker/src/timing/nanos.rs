//! Lengths of time: whole nanoseconds, and the one that has no end.

use std::{
    fmt,
    ops::{Add, Sub},
};

/// A length of time in whole nanoseconds, negative where a bound is missed by so much. Sums and products end at
/// ±(2^63 - 1) ns, 292 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(i64);

impl Nanos {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// The longest.
    pub const MAX: Self = Self(i64::MAX);

    /// So many nanoseconds.
    pub const fn new(nanos: i64) -> Self {
        Self(nanos)
    }

    /// So many microseconds.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// So many milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// So many nanoseconds, or the nearest that there are.
    pub fn saturating(nanos: i128) -> Self {
        let end = i128::from(i64::MAX);
        Self(nanos.clamp(-end, end) as i64)
    }

    /// In nanoseconds.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// In whole microseconds, rounded down: a deadline is not told later than it is.
    pub const fn micros(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// In whole microseconds, rounded up: a need is not told smaller than it is.
    pub const fn micros_up(self) -> i64 {
        self.0.div_euclid(1_000) + (self.0.rem_euclid(1_000) != 0) as i64
    }

    /// So many times as long.
    pub fn times(self, factor: i64) -> Self {
        Self::saturating(i128::from(self.0) * i128::from(factor))
    }

    /// How many of `step` it takes to reach this length; 0 if it is not positive.
    ///
    /// # Panics
    /// If `step` is not positive.
    pub fn steps_of(self, step: Self) -> u64 {
        assert!(step.0 > 0, "a step of {step} leads nowhere");
        u64::try_from(self.0).unwrap_or(0).div_ceil(step.0.unsigned_abs())
    }
}

impl Add for Nanos {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Nanos {
    /// Exact, in the largest unit of which it is at least one: `49.95 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit_ns, unit) = match self.0.unsigned_abs() {
            0 => return f.pad("0"),
            1_000_000_000.. => (1_000_000_000, "s"),
            1_000_000.. => (1_000_000, "ms"),
            1_000.. => (1_000, "us"),
            _ => (1, "ns"),
        };
        f.pad(&format!("{} {unit}", self.in_unit(unit_ns)))
    }
}

impl Nanos {
    /// The exact decimal number of units of so many nanoseconds, a power of ten.
    pub fn in_unit(self, unit_ns: u64) -> String {
        let (whole, rest) = (self.0.unsigned_abs() / unit_ns, self.0.unsigned_abs() % unit_ns);
        let sign = if self.0 < 0 { "-" } else { "" };
        let digits = unit_ns.ilog10() as usize;
        match rest {
            0 => format!("{sign}{whole}"),
            _ => format!("{sign}{whole}.{}", format!("{rest:0digits$}").trim_end_matches('0')),
        }
    }
}

/// A length of time that may have no end: the deadline of a topic without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Span {
    /// It ends.
    Finite(Nanos),
    /// It does not.
    Infinite,
}

impl Span {
    /// The length, if there is one.
    pub fn finite(self) -> Option<Nanos> {
        match self {
            Self::Finite(nanos) => Some(nanos),
            Self::Infinite => None,
        }
    }

    /// Shorter by `nanos`; without an end it stays so.
    pub fn less(self, nanos: Nanos) -> Self {
        match self {
            Self::Finite(length) => Self::Finite(length - nanos),
            Self::Infinite => Self::Infinite,
        }
    }
}

impl From<Nanos> for Span {
    fn from(nanos: Nanos) -> Self {
        Self::Finite(nanos)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finite(nanos) => nanos.fmt(f),
            Self::Infinite => f.pad("inf"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_shown_exactly() {
        let shown = [0, 7, -50_000, 49_950_000, 1_000_000_000, 1_500_000_001, -1].map(|nanos| Nanos::new(nanos).to_string());
        assert_eq!(shown, ["0", "7 ns", "-50 us", "49.95 ms", "1 s", "1.500000001 s", "-1 ns"]);
    }

    #[test]
    fn sums_end_where_the_numbers_end() {
        assert_eq!(Nanos::MAX + Nanos::new(1), Nanos::MAX);
        assert_eq!(Nanos::from_millis(i64::MAX), Nanos::MAX);
        assert_eq!(Nanos::from_millis(1).times(i64::MIN), Nanos::ZERO - Nanos::MAX);
        assert_eq!(Span::Infinite.less(Nanos::MAX), Span::Infinite);
        assert!(Span::from(Nanos::MAX) < Span::Infinite);
    }

    #[test]
    fn microseconds_are_rounded_to_the_safe_side() {
        let rounded = [(-50_000, -50, -50), (-50_001, -51, -50), (999, 0, 1), (1_000, 1, 1), (1_001, 1, 2)];
        for (nanos, down, up) in rounded {
            assert_eq!((Nanos::new(nanos).micros(), Nanos::new(nanos).micros_up()), (down, up), "{nanos} ns");
        }
    }

    #[test]
    fn steps_reach_the_length() {
        let steps = [(-1, 0), (0, 0), (1, 1), (4, 1), (5, 2)].map(|(length, steps)| (Nanos::new(length).steps_of(Nanos::new(4)), steps));
        assert!(steps.iter().all(|(found, expected)| found == expected), "{steps:?}");
    }
}
