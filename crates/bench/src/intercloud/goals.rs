//! What is to be reached between two clouds, both and the relay on one machine of two cores, beside what was measured.

use crate::report::{ComparedRow, Comparison, Outcome};

/// Of the sequential median, on kept connections, without and with gateways.
const SEQUENTIAL_MS: [f64; 2] = [15.0, 25.0];
/// How many at the same time, and their mean.
const SIMULTANEOUS: (&str, f64) = ("1000 simultaneous", 2_000.0);
/// What the relay adds to a message in each direction.
const HOP_US: f64 = 300.0;
/// Of what plain TLS carries through as many hops.
const THROUGHPUT_RATIO: f64 = 0.6;
/// Of a thousand sessions, at both gateways together.
const SESSIONS_MB: f64 = 100.0;

/// The table; rows for what was measured only.
pub fn table(outcomes: &[Outcome], is_by_gateway: bool, ratios: &[(String, f64)]) -> Comparison {
    let mut rows = Vec::new();
    let mut row = |what: String, goal: f64, measured: Option<f64>| {
        rows.extend(measured.map(|measured| ComparedRow { what, figures: vec![Some(goal), Some(measured)] }));
    };
    for outcome in outcomes {
        let summary = |key: &str| outcome.series.summary(key);
        let label = &outcome.label;
        if label.ends_with("sequential") {
            row(format!("{label}, p50 ms, below"), SEQUENTIAL_MS[usize::from(is_by_gateway)], summary("p50_ms"));
        }
        if label.ends_with(SIMULTANEOUS.0) {
            row(format!("{label}, mean ms, below"), SIMULTANEOUS.1, summary("mean_ms"));
            row(format!("{label}, errors"), 0.0, summary("errors"));
        }
        row(format!("{label}, added by each hop, us, below"), HOP_US, summary("hop_p50_us"));
        if label.starts_with("1000 sessions") {
            row(format!("{label}, MB above idle, both clouds, below"), SESSIONS_MB, summary("held_rss_mb"));
            row(format!("{label}, errors"), 0.0, summary("errors"));
        }
    }
    for (what, ratio) in ratios {
        row(format!("{what}, at least"), THROUGHPUT_RATIO, Some(*ratio));
    }
    Comparison { title: "What is to be reached on a machine of two cores".into(), columns: vec!["goal".into(), "measured".into()], rows }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Measured;
    use crate::statistics::Figure;

    fn outcome(label: &str, figures: &[(&str, f64)]) -> Outcome {
        let mut outcome = Outcome::new(label.into());
        outcome.push(figures.iter().map(|(key, value)| Figure::median(*key, *value)).collect(), Measured::default());
        outcome
    }

    #[test]
    fn each_goal_stands_beside_what_was_measured_of_it_and_no_other() {
        let outcomes = [
            outcome("case 2, 200 sequential", &[("p50_ms", 12.0)]),
            outcome("case 2, 40 simultaneous", &[("mean_ms", 50.0)]),
            outcome("case 2, 1000 simultaneous", &[("mean_ms", 900.0), ("errors", 1.0)]),
            outcome("relay, 100 bytes", &[("hop_p50_us", 40.0)]),
            outcome("1000 sessions", &[("held_rss_mb", 80.0), ("errors", 0.0)]),
        ];
        let figures = |is_by_gateway| {
            let table = table(&outcomes, is_by_gateway, &[("to the provider".into(), 0.7)]);
            table.rows.into_iter().map(|row| (row.figures[0].unwrap(), row.figures[1].unwrap())).collect::<Vec<_>>()
        };
        let rest = [(2_000.0, 900.0), (0.0, 1.0), (300.0, 40.0), (100.0, 80.0), (0.0, 0.0), (0.6, 0.7)];
        assert_eq!(figures(false), [&[(15.0, 12.0)][..], &rest].concat());
        assert_eq!(figures(true), [&[(25.0, 12.0)][..], &rest].concat());
    }
}
