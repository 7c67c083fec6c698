//! Where ticks are, and what stands at them.

/// About as many ticks as an axis has.
const TICKS: f64 = 6.0;

/// A range of numbers on a length of paper.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    /// Where `low` is, and where `high` is.
    paper: (f64, f64),
}

impl Axis {
    /// Over all `values`; an axis of one value only is widened to both sides.
    pub fn over(values: impl Iterator<Item = f64>, paper: (f64, f64)) -> Self {
        let finite = values.filter(|value| value.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        match low < high {
            true => Self { low, high, paper },
            false if low.is_finite() => Self { low: low - 0.5, high: low + 0.5, paper },
            false => Self { low: 0.0, high: 1.0, paper },
        }
    }

    /// Where a value is.
    pub fn place(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        self.paper.0 + share.clamp(0.0, 1.0) * (self.paper.1 - self.paper.0)
    }

    /// Round numbers in the range, 1, 2 or 5 times a power of ten apart, and their texts.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let rough = (self.high - self.low) / TICKS;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
        let digits = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let from = (self.low / step).ceil() as i64;
        let to = (self.high / step + 1e-9).floor() as i64;
        let is_long = self.high.abs().max(self.low.abs()) >= 1e6 || step < 1e-5;
        let text = |value: f64| if is_long { format!("{value:.1e}") } else { format!("{value:.digits$}") };
        (from..=to).map(|index| index as f64 * step).map(|value| (value, text(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_inside() {
        let texts =
            |low, high| Axis::over([low, high].into_iter(), (0.0, 1.0)).ticks().into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(3.0, 47.0), ["10", "20", "30", "40"]);
        assert_eq!(texts(0.0, 0.000_012), ["0.0e0", "2.0e-6", "4.0e-6", "6.0e-6", "8.0e-6", "1.0e-5", "1.2e-5"]);
        assert_eq!(texts(7.0, 7.0).len(), 5, "a single value");
    }
}
