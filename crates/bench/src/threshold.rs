//! What a report has to meet: `p99<10ms`, `errors<1`, `events_per_s>30000`.

use std::str::FromStr;

use serde::Serialize;

use crate::options::value::duration;
use crate::report::Outcome;
use crate::statistics::Unit;

/// A bound on one figure of every outcome that has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    text: String,
    figure: String,
    wants: Wants,
    bound: Bound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wants {
    Less,
    More,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    /// In ns.
    Time(f64),
    /// In the figure's own unit.
    Number(f64),
}

/// Whether one outcome met a threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The threshold as it was given.
    pub threshold: String,
    /// Label of the outcome, or why there is none.
    pub outcome: String,
    /// The figure in the unit of the bound, ms for a time.
    pub value: Option<f64>,
    /// Whether it was met.
    pub met: bool,
}

impl Threshold {
    /// A verdict for each outcome that has the figure; one that nothing has is missed, since nothing shows that it is met.
    pub fn judge(&self, outcomes: &[Outcome]) -> Vec<Verdict> {
        let verdict = |outcome: String, value: Option<f64>| {
            let met = value.is_some_and(|value| match (self.wants, self.bound) {
                (Wants::Less, Bound::Time(ns)) => value < ns / 1e6,
                (Wants::More, Bound::Time(ns)) => value > ns / 1e6,
                (Wants::Less, Bound::Number(bound)) => value < bound,
                (Wants::More, Bound::Number(bound)) => value > bound,
            });
            Verdict { threshold: self.text.clone(), outcome, value, met }
        };
        let found = outcomes.iter().filter_map(|outcome| Some(verdict(outcome.label.clone(), Some(self.value(outcome)?))));
        let found: Vec<_> = found.collect();
        if found.is_empty() { vec![verdict(format!("no outcome has the figure `{}`", self.figure), None)] } else { found }
    }

    fn value(&self, outcome: &Outcome) -> Option<f64> {
        let Bound::Time(_) = self.bound else { return outcome.series.summary(&self.figure) };
        if outcome.latencies().count() > 0 {
            let latencies = outcome.latencies();
            match self.figure.as_str() {
                "mean" => return Some(latencies.mean(Unit::Ms)),
                "max" => return Some(latencies.max(Unit::Ms)),
                figure => {
                    let percent = figure.strip_prefix('p').and_then(|digits| digits.parse().ok());
                    if let Some(percent) = percent.filter(|percent| (0.0..=100.0).contains(percent)) {
                        return Some(latencies.percentile(percent, Unit::Ms));
                    }
                }
            }
        }
        let in_ms = |suffix: &str, ms: f64| Some(outcome.series.summary(&format!("{}{suffix}", self.figure))? * ms);
        in_ms("_us", 1e-3).or_else(|| in_ms("_ms", 1.0)).or_else(|| in_ms("_s", 1e3))
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no threshold, as p99<10ms, errors<1 or events_per_s>30000");
        let at = text.find(['<', '>']).filter(|at| *at > 0).ok_or_else(wrong)?;
        let wants = if text[at..].starts_with('<') { Wants::Less } else { Wants::More };
        let value = text[at + 1..].trim();
        let number = value.parse::<f64>().ok().filter(|number| number.is_finite()).map(Bound::Number);
        let time = || duration(value).ok().map(|time| Bound::Time(time.as_secs_f64() * 1e9));
        let bound = number.or_else(time).ok_or_else(wrong)?;
        Ok(Self { text: text.to_string(), figure: text[..at].trim().to_string(), wants, bound })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Measured;
    use crate::statistics::Figure;
    use std::time::Duration;

    fn outcome() -> Outcome {
        let mut measured = Measured::default();
        for ms in 1..=100 {
            measured.latencies.record(Duration::from_millis(ms));
        }
        let mut outcome = Outcome::new("all".into());
        let figures = vec![Figure::sum("errors", 2), Figure::median("events_per_s", 500.0), Figure::median("ready_ms", 7.0)];
        outcome.push(figures, measured);
        outcome
    }

    fn met(threshold: &str) -> bool {
        let verdicts = threshold.parse::<Threshold>().unwrap().judge(&[outcome()]);
        verdicts.iter().all(|verdict| verdict.met)
    }

    #[test]
    fn a_threshold_is_held_against_its_figure() {
        for kept in ["p50<51ms", "p99<0.1s", "p99.9>99ms", "mean<51000us", "max<101ms", "errors<3", "events_per_s>499", "ready<8ms"] {
            assert!(met(kept), "{kept}");
        }
        for missed in ["p50<50ms", "p99<10ms", "errors<2", "events_per_s>500", "ready<7ms"] {
            assert!(!met(missed), "{missed}");
        }
    }

    #[test]
    fn a_figure_that_nothing_has_is_missed() {
        let verdicts = "loss<1".parse::<Threshold>().unwrap().judge(&[outcome()]);
        assert!(!verdicts[0].met && verdicts[0].outcome.contains("no outcome has the figure `loss`"));
        assert!(!met("p99<10"), "a percentile without a unit has no meaning");
    }

    #[test]
    fn what_is_no_threshold_is_refused() {
        for text in ["", "p99", "<1", "p99<", "p99<x", "p99<10h", "p99<nan"] {
            assert!(text.parse::<Threshold>().is_err(), "{text}");
        }
    }
}
