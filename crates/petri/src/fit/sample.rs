//! Measured times.

/// Most values of a sample.
const VALUES_MAX: usize = 10_000_000;

/// Fewest values: below nothing can be said of a law.
const VALUES_MIN: usize = 3;

/// Tukey's far fences: this many times the distance of the quartiles beyond them.
const FENCE: f64 = 3.0;

/// Values that are no sample.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// Too few or too many.
    #[error("{0} values, not {VALUES_MIN} to {VALUES_MAX}")]
    Count(usize),
    /// No time.
    #[error("value {index} is {value}, not a finite number from 0")]
    Value {
        /// Its number, from 1.
        index: usize,
        /// What it is.
        value: f64,
    },
}

/// Measured times, from the smallest to the largest, with the sums that fits need.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    values: Vec<f64>,
    mean: f64,
    mean_log: f64,
    variance: f64,
    resolution: Option<f64>,
}

impl Sample {
    /// 3 to 10,000,000 finite values from 0, in any order.
    pub fn new(values: Vec<f64>) -> Result<Self, SampleError> {
        if !(VALUES_MIN..=VALUES_MAX).contains(&values.len()) {
            return Err(SampleError::Count(values.len()));
        }
        if let Some(index) = values.iter().position(|value| !value.is_finite() || *value < 0.0) {
            return Err(SampleError::Value { index: index + 1, value: values[index] });
        }
        let resolution = resolution(&values);
        Ok(Self::of_times(values, resolution))
    }

    /// Of times that are right, known to be measured in steps of `resolution`.
    pub(super) fn of_times(mut values: Vec<f64>, resolution: Option<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let mean_log = values.iter().map(|value| value.ln()).sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        Self { values, mean, mean_log, variance, resolution }
    }

    /// From the smallest to the largest.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Their mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The mean of their logarithms; minus infinity where one is 0.
    pub fn mean_log(&self) -> f64 {
        self.mean_log
    }

    /// The mean squared distance from the mean.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// The smallest and the largest.
    pub fn range(&self) -> (f64, f64) {
        (self.values[0], self.values[self.values.len() - 1])
    }

    /// The power of ten of which all values are multiples, where values repeat: they were rounded to it.
    pub fn resolution(&self) -> Option<f64> {
        self.resolution
    }

    /// The value at `share` of the way from the smallest to the largest, between its neighbours in proportion.
    pub fn quantile(&self, share: f64) -> f64 {
        let position = share * (self.values.len() - 1) as f64;
        let below = position.floor() as usize;
        let above = (below + 1).min(self.values.len() - 1);
        self.values[below] + (position - below as f64) * (self.values[above] - self.values[below])
    }

    /// Values beyond Tukey's far fences (Exploratory Data Analysis, 1977): three times the distance of the quartiles away from them.
    pub fn outliers(&self) -> Outliers {
        let (lower, upper) = (self.quantile(0.25), self.quantile(0.75));
        let (low, high) = (lower - FENCE * (upper - lower), upper + FENCE * (upper - lower));
        let values = self.values.iter().copied().filter(|value| *value < low || *value > high).collect();
        Outliers { low, high, values }
    }

    /// The sample without its outliers.
    pub fn without_outliers(&self) -> Result<Self, SampleError> {
        let Outliers { low, high, .. } = self.outliers();
        Self::new(self.values.iter().copied().filter(|value| (low..=high).contains(value)).collect())
    }
}

/// Values far outside of the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Outliers {
    /// Below this a value is one.
    pub low: f64,
    /// Above this a value is one.
    pub high: f64,
    /// They, from the smallest to the largest.
    pub values: Vec<f64>,
}

fn resolution(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    if sorted.windows(2).all(|pair| pair[0] < pair[1]) {
        return None;
    }
    let multiple = |step: f64| values.iter().all(|value| ((value / step).round() * step - value).abs() <= 1e-9 * value.max(step));
    // From coarse to fine; what is finer than a millionth of the mean changes nothing.
    let powers = (-9..=6).rev().map(|power| 10_f64.powi(power));
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    powers.take_while(|step| *step > 1e-6 * mean).find(|step| multiple(*step))
}
