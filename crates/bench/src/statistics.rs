//! Latencies kept whole, the figures taken from them, and what those figures are over repeats.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Longest latency that is told apart: one hour. Longer ones count as one hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

/// A whole distribution of latencies, to three significant digits.
#[derive(Debug, Clone)]
pub struct Latencies {
    histogram: Histogram<u64>,
}

/// A distribution as it travels between processes: pairs of a latency in ns and how often it was seen.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts(pub Vec<(u64, u64)>);

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, DIGITS).expect("the bounds are in order");
        Self { histogram }
    }
}

/// Unit in which a latency is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// 1,000 ns.
    Us,
    /// 1,000,000 ns.
    Ms,
}

impl Unit {
    /// Suffix of a figure's key.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Us => "us",
            Self::Ms => "ms",
        }
    }

    fn of_ns(self, ns: f64) -> f64 {
        match self {
            Self::Us => ns / 1e3,
            Self::Ms => ns / 1e6,
        }
    }
}

impl Latencies {
    /// Adds one latency.
    pub fn record(&mut self, latency: Duration) {
        self.record_ns(u64::try_from(latency.as_nanos()).unwrap_or(LATENCY_NS_MAX));
    }

    /// Adds one latency in ns. Allocates nothing.
    pub fn record_ns(&mut self, latency_ns: u64) {
        self.histogram.saturating_record(latency_ns.max(1));
    }

    /// Adds all latencies of another distribution.
    pub fn add(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("all have the same bounds");
    }

    /// How many latencies there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Arithmetic mean; 0 when empty.
    pub fn mean(&self, unit: Unit) -> f64 {
        unit.of_ns(self.histogram.mean())
    }

    /// The latency that `percent` of all are not above; 0 when empty.
    pub fn percentile(&self, percent: f64, unit: Unit) -> f64 {
        unit.of_ns(self.histogram.value_at_percentile(percent) as f64)
    }

    /// The longest; 0 when empty.
    pub fn max(&self, unit: Unit) -> f64 {
        unit.of_ns(self.histogram.max() as f64)
    }

    /// Pairs of a latency in ns and the share of all that are not above it, about `points` of them, denser towards the tail.
    pub fn shares(&self, points: usize) -> Vec<(f64, f64)> {
        // Even steps in the number of nines: each reaches as much further into the tail.
        const NINES: f64 = 5.0;
        let share = |step: usize| 1.0 - 10f64.powf(-NINES * step as f64 / points as f64);
        let mut shares: Vec<(f64, f64)> = Vec::with_capacity(points + 1);
        for share in (0..points).map(share) {
            let ns = self.histogram.value_at_quantile(share) as f64;
            shares.push((ns, share));
        }
        shares.push((self.histogram.max() as f64, 1.0));
        // One answer among n holds a share of 1/n: finer steps would draw it again.
        let least = 1.0 / self.count().max(1) as f64;
        shares.retain(|(_, share)| *share <= 1.0 - least || *share == 1.0);
        shares
    }

    /// The distribution as pairs of a latency and its count.
    pub fn counts(&self) -> Counts {
        Counts(self.histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value())).collect())
    }

    /// The distribution these pairs hold.
    pub fn from_counts(counts: &Counts) -> Self {
        let mut latencies = Self::default();
        for (latency_ns, count) in &counts.0 {
            latencies.histogram.saturating_record_n((*latency_ns).max(1), *count);
        }
        latencies
    }

    /// Mean, p50, p99 and max as figures whose keys start with `prefix`.
    pub fn figures(&self, prefix: &str, unit: Unit, percents: &[f64]) -> Vec<Figure> {
        let suffix = unit.suffix();
        let mut figures = vec![Figure::median(format!("{prefix}mean_{suffix}"), self.mean(unit))];
        for percent in percents {
            let name = percent.to_string().replace('.', "_");
            figures.push(Figure::median(format!("{prefix}p{name}_{suffix}"), self.percentile(*percent, unit)));
        }
        figures.push(Figure::median(format!("{prefix}max_{suffix}"), self.max(unit)));
        figures
    }
}

/// How a figure of several runs becomes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Across {
    /// By the median of the runs.
    Median,
    /// By their sum: counts of faults.
    Sum,
    /// By the greatest: peaks.
    Max,
}

/// One number a run ends with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name with the unit last, as in the report.
    pub key: String,
    /// The number; not a number is never given.
    pub value: f64,
    /// What it becomes over runs.
    pub across: Across,
}

impl Figure {
    /// A figure whose median counts.
    pub fn median(key: impl Into<String>, value: f64) -> Self {
        Self { key: key.into(), value, across: Across::Median }
    }

    /// A count of faults.
    pub fn sum(key: impl Into<String>, value: u64) -> Self {
        Self { key: key.into(), value: value as f64, across: Across::Sum }
    }

    /// A peak.
    pub fn max(key: impl Into<String>, value: f64) -> Self {
        Self { key: key.into(), value, across: Across::Max }
    }
}

/// One figure over all runs, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name with the unit last.
    pub key: String,
    /// What stands for all runs.
    pub summary: f64,
    /// Median of the runs.
    pub median: f64,
    /// Least of the runs.
    pub min: f64,
    /// Greatest of the runs.
    pub max: f64,
    values: Vec<f64>,
}

/// The figures of repeated runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    rows: Vec<(Row, Across)>,
}

impl Series {
    /// Adds the figures of one more run.
    pub fn push(&mut self, figures: Vec<Figure>) {
        for figure in figures {
            let at = self.rows.iter().position(|(row, _)| row.key == figure.key).unwrap_or_else(|| {
                let row = Row { key: figure.key.clone(), summary: 0.0, median: 0.0, min: 0.0, max: 0.0, values: Vec::new() };
                self.rows.push((row, figure.across));
                self.rows.len() - 1
            });
            let (row, across) = &mut self.rows[at];
            row.values.push(figure.value);
            row.summarise(*across);
        }
    }

    /// The rows, in the order in which their figures came first.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().map(|(row, _)| row)
    }

    /// The figures under this key.
    pub fn row(&self, key: &str) -> Option<&Row> {
        self.rows().find(|row| row.key == key)
    }

    /// What stands for all runs under this key.
    pub fn summary(&self, key: &str) -> Option<f64> {
        self.row(key).map(|row| row.summary)
    }

    /// Each key with its summary, and under `repeats` each key with all values, median, min and max.
    pub fn json(&self) -> Map<String, Value> {
        let mut object: Map<String, Value> = self.rows().map(|row| (row.key.clone(), number(row.summary))).collect();
        let repeats: Map<String, Value> = self.rows().map(|row| (row.key.clone(), row.json())).collect();
        object.insert("repeats".into(), Value::Object(repeats));
        object
    }
}

impl Row {
    /// That of the last run.
    pub fn latest(&self) -> f64 {
        *self.values.last().expect("a row is made with its first value")
    }

    fn summarise(&mut self, across: Across) {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        self.median = if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
        self.min = sorted[0];
        self.max = sorted[sorted.len() - 1];
        self.summary = match across {
            Across::Median => self.median,
            Across::Sum => self.values.iter().sum(),
            Across::Max => self.max,
        };
    }

    fn json(&self) -> Value {
        let values: Vec<Value> = self.values.iter().copied().map(number).collect();
        json!({ "values": values, "median": number(self.median), "min": number(self.min), "max": number(self.max) })
    }
}

/// To six decimals, more than any figure here is good for; what is whole, as counts are, without a fraction.
fn number(value: f64) -> Value {
    const WHOLE_MAX: f64 = 9e15;
    if value.fract() == 0.0 && value.abs() < WHOLE_MAX { json!(value as i64) } else { json!((value * 1e6).round() / 1e6) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_gives_its_figures_to_three_digits() {
        let mut latencies = Latencies::default();
        for us in 1..=1000 {
            latencies.record(Duration::from_micros(us));
        }
        let near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 2e-3;
        assert!(near(latencies.mean(Unit::Us), 500.5));
        assert!(near(latencies.percentile(50.0, Unit::Us), 500.0));
        assert!(near(latencies.percentile(99.9, Unit::Us), 999.0));
        assert!(near(latencies.max(Unit::Ms), 1.0));
        let keys: Vec<_> = latencies.figures("connect_", Unit::Ms, &[50.0, 99.9]).into_iter().map(|figure| figure.key).collect();
        assert_eq!(keys, ["connect_mean_ms", "connect_p50_ms", "connect_p99_9_ms", "connect_max_ms"]);
    }

    #[test]
    fn a_distribution_survives_the_way_between_processes() {
        let mut latencies = Latencies::default();
        for step in 0..5000u64 {
            latencies.record_ns(step * step * 31);
        }
        let text = serde_json::to_string(&latencies.counts()).unwrap();
        let back = Latencies::from_counts(&serde_json::from_str(&text).unwrap());
        assert_eq!(back.count(), 5000);
        assert_eq!(back.counts(), latencies.counts());
        let mut twice = back;
        twice.add(&latencies);
        assert_eq!(twice.count(), 10_000);
        assert_eq!(twice.max(Unit::Us), latencies.max(Unit::Us));
    }

    #[test]
    fn shares_rise_with_the_latency_to_all() {
        let mut latencies = Latencies::default();
        (1..=2000).for_each(|us| latencies.record(Duration::from_micros(us)));
        let shares = latencies.shares(100);
        assert!(shares.windows(2).all(|two| two[0].0 <= two[1].0 && two[0].1 < two[1].1));
        let (ns, share) = shares[20];
        assert!((share - 0.9).abs() < 1e-9 && (ns / 1.8e6 - 1.0).abs() < 2e-3, "{ns} {share}");
        assert_eq!(shares.last().unwrap().1, 1.0);
        assert!(shares.len() < 80, "nothing finer than one of 2000");
    }

    #[test]
    fn an_empty_distribution_has_figures() {
        let figures = Latencies::default().figures("", Unit::Us, &[50.0]);
        assert!(figures.iter().all(|figure| figure.value == 0.0));
    }

    #[test]
    fn repeats_become_median_sum_and_peak() {
        let mut series = Series::default();
        for (mean, errors, peak) in [(3.0, 1, 10.0), (1.0, 0, 30.0), (8.0, 2, 20.0), (5.0, 0, 5.0)] {
            series.push(vec![Figure::median("mean_ms", mean), Figure::sum("errors", errors), Figure::max("peak_rss_mb", peak)]);
        }
        assert_eq!(series.summary("mean_ms"), Some(4.0));
        assert_eq!(series.summary("errors"), Some(3.0));
        assert_eq!(series.summary("peak_rss_mb"), Some(30.0));
        assert_eq!(series.summary("p50_ms"), None);
        let json = series.json();
        assert_eq!(json["repeats"]["mean_ms"], json!({"values": [3, 1, 8, 5], "median": 4, "min": 1, "max": 8}));
        assert_eq!(json["mean_ms"], json!(4));
        assert_eq!((number(0.123_456_78), number(2.0)), (json!(0.123_457), json!(2)));
    }
}
