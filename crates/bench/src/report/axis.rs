//! Where a value lies along one side of a chart, and which values are marked there.

/// How values are spread.
#[derive(Debug, Clone, Copy)]
pub enum Axis {
    /// Evenly from 0 to `max`.
    Linear {
        /// Value at the end.
        max: f64,
        /// Text of a value.
        text: fn(f64) -> String,
    },
    /// Times in ns by their order of magnitude.
    Time {
        /// Least and greatest, in ns.
        min_ns: f64,
        /// Greatest, in ns.
        max_ns: f64,
    },
    /// Shares of all by the number of nines: the tail has as much room as the middle.
    Nines,
}

/// The greatest number of nines: beyond 99.999 % everything lies at the end.
const NINES_MAX: f64 = 5.0;
/// Marks wanted on an even axis.
const MARKS: f64 = 5.0;

impl Axis {
    /// An even axis that holds `max`.
    pub fn linear(max: f64, text: fn(f64) -> String) -> Self {
        let step = round_step(max.max(f64::MIN_POSITIVE) / MARKS);
        Self::Linear { max: (max / step).ceil().max(1.0) * step, text }
    }

    /// A time axis from the power of ten below `min_ns` to the one above `max_ns`.
    pub fn time(min_ns: f64, max_ns: f64) -> Self {
        let min_ns = 10f64.powf(min_ns.max(1.0).log10().floor());
        Self::Time { min_ns, max_ns: 10f64.powf(max_ns.max(1.0).log10().ceil()).max(min_ns * 10.0) }
    }

    /// Place of a value, 0 to 1.
    pub fn place(self, value: f64) -> f64 {
        let place = match self {
            Self::Linear { max, .. } => value / max,
            Self::Time { min_ns, max_ns } => (value.max(min_ns) / min_ns).log10() / (max_ns / min_ns).log10(),
            Self::Nines => -(1.0 - value).max(10f64.powf(-NINES_MAX)).log10() / NINES_MAX,
        };
        place.clamp(0.0, 1.0)
    }

    /// Marked values with their texts.
    pub fn marks(self) -> Vec<(f64, String)> {
        match self {
            Self::Linear { max, text } => {
                let step = round_step(max / MARKS);
                (0..=(max / step).round() as u32).map(|n| (f64::from(n) * step, text(f64::from(n) * step))).collect()
            }
            Self::Time { min_ns, max_ns } => {
                let (first, last) = (min_ns.log10().round() as i32, max_ns.log10().round() as i32);
                (first..=last).map(|power| (10f64.powi(power), time(10f64.powi(power)))).collect()
            }
            Self::Nines => {
                let shares: [f64; 6] = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999];
                shares.iter().map(|share| (*share, format!("{} %", (share * 1e6).round() / 1e4))).collect()
            }
        }
    }
}

/// 1, 2 or 5 times a power of ten, no less than `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let parts = step / power;
    let factor = if parts <= 1.0 + 1e-9 {
        1.0
    } else if parts <= 2.0 + 1e-9 {
        2.0
    } else if parts <= 5.0 + 1e-9 {
        5.0
    } else {
        10.0
    };
    factor * power
}

/// A time in ns with the unit that fits, to three digits.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        0.0 => return "0".to_string(),
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "µs"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = if value >= 99.95 || value.fract() < 1e-9 { 0 } else { 1 + usize::from(value < 9.995) };
    format!("{value:.digits$} {unit}")
}

/// A count with its thousands apart, small ones with their fraction.
pub fn count(value: f64) -> String {
    if value != 0.0 && value.abs() < 10.0 && value.fract().abs() > 1e-9 {
        return format!("{:.2}", value);
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_axis_ends_at_a_round_number() {
        let axis = Axis::linear(873.0, count);
        assert_eq!(axis.marks().into_iter().map(|(_, text)| text).collect::<Vec<_>>(), ["0", "200", "400", "600", "800", "1\u{202f}000"]);
        assert_eq!((axis.place(0.0), axis.place(500.0), axis.place(2000.0)), (0.0, 0.5, 1.0));
        assert!(Axis::linear(0.0, count).place(0.0) == 0.0);
    }

    #[test]
    fn a_time_axis_goes_by_powers_of_ten() {
        let axis = Axis::time(30_000.0, 7_000_000.0);
        assert_eq!(axis.marks().into_iter().map(|(_, text)| text).collect::<Vec<_>>(), ["10 µs", "100 µs", "1 ms", "10 ms"]);
        assert!((axis.place(100_000.0) - 1.0 / 3.0).abs() < 1e-9 && axis.place(0.0) == 0.0);
    }

    #[test]
    fn every_nine_has_the_same_room() {
        let places: Vec<f64> = [0.0, 0.9, 0.99, 0.999].iter().map(|share| Axis::Nines.place(*share)).collect();
        assert!(places.windows(2).all(|two| (two[1] - two[0] - 0.2).abs() < 1e-9), "{places:?}");
        assert_eq!(Axis::Nines.place(1.0), 1.0);
    }

    #[test]
    fn times_and_counts_are_short() {
        for (ns, text) in [(0.0, "0"), (7.0, "7 ns"), (1234.0, "1.23 µs"), (45_600_000.0, "45.6 ms"), (2e9, "2 s"), (123_456.0, "123 µs")]
        {
            assert_eq!(time(ns), text);
        }
        for (value, text) in [(0.0, "0"), (0.25, "0.25"), (1_234_567.0, "1\u{202f}234\u{202f}567"), (999.0, "999")] {
            assert_eq!(count(value), text);
        }
    }
}
