//! The figures of one run.

use super::cpu::ByThread;
use super::run::Sides;
use crate::statistics::{Figure, Latencies, Unit};

/// Share in percent; of nothing all.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 100.0 } else { part as f64 / whole as f64 * 100.0 }
}

/// All latencies of a run.
pub fn latencies(sides: &Sides) -> Latencies {
    let mut all = Latencies::default();
    sides.heard.groups.iter().for_each(|group| all.add(&Latencies::from_counts(&group.latency)));
    all
}

/// What every run tells, whatever was run: latencies from publisher to subscriber in us, rates, faults.
pub fn of_sides(sides: &Sides, seconds: f64) -> Vec<Figure> {
    let Sides { published, heard } = sides;
    let sum = |of: fn(&super::tally::GroupReport) -> u64| heard.groups.iter().map(of).sum::<u64>();
    let mut figures = latencies(sides).figures("", Unit::Us, &[50.0, 90.0, 99.0, 99.9]);
    figures.push(Figure::median("events_per_s", published.sent as f64 / seconds));
    figures.push(Figure::median("deliveries_per_s", sum(|group| group.received) as f64 / seconds));
    figures.push(Figure::sum("lost", sum(|group| group.expected - group.received)));
    figures.push(Figure::sum("duplicates", sum(|group| group.duplicates)));
    figures.push(Figure::sum("not_sent", published.not_sent));
    figures.push(Figure::sum("refused", published.refused));
    figures.push(Figure::sum("sessions_ended", published.sessions_ended));
    let lateness = Latencies::from_counts(&published.lateness);
    figures.push(Figure::median("send_late_p50_us", lateness.percentile(50.0, Unit::Us)));
    figures.push(Figure::median("send_late_p99_us", lateness.percentile(99.0, Unit::Us)));
    figures.push(Figure::median("publishers_cpu_percent", published.cpu_s / seconds * 100.0));
    figures.push(Figure::median("subscribers_cpu_percent", heard.cpu_s / seconds * 100.0));
    figures
}

/// From an event's stamp to the word that it is safe.
pub fn covered(sides: &Sides) -> Vec<Figure> {
    let covered = Latencies::from_counts(&sides.published.covered);
    if covered.count() == 0 { Vec::new() } else { covered.figures("covered_", Unit::Us, &[50.0, 99.0]) }
}

/// Ratios of p50, mean and p99.
pub fn ratios(ours: &Latencies, floor: &Latencies) -> Vec<Figure> {
    let of = |key: &str, of: &dyn Fn(&Latencies) -> f64| {
        let floor = of(floor);
        Figure::median(key, if floor > 0.0 { of(ours) / floor } else { 0.0 })
    };
    let percentile = |percent| move |latencies: &Latencies| latencies.percentile(percent, Unit::Us);
    vec![of("p50_ratio", &percentile(50.0)), of("mean_ratio", &|latencies| latencies.mean(Unit::Us)), of("p99_ratio", &percentile(99.0))]
}

/// Processor time of a process by its threads, in percent of one core; threads below a tenth of one percent together as `others`.
pub fn of_process(name: &str, percent: &ByThread) -> Vec<Figure> {
    const LEAST: f64 = 0.1;
    let mut figures = vec![Figure::median(format!("{name}_cpu_percent"), percent.values().sum())];
    for (thread, percent) in percent.iter().filter(|(_, percent)| **percent >= LEAST) {
        figures.push(Figure::median(format!("{name}_{}_cpu_percent", thread.replace([' ', '-'], "_")), *percent));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::realtime::tally::GroupReport;

    #[test]
    fn figures_are_of_all_groups_together() {
        let group = |expected, received| GroupReport { expected, received, ..GroupReport::default() };
        let mut sides = Sides::default();
        sides.heard.groups = vec![group(10, 8), group(5, 5)];
        sides.published.sent = 15;
        let figures = of_sides(&sides, 2.0);
        let of = |key: &str| figures.iter().find(|figure| figure.key == key).unwrap().value;
        assert_eq!((of("lost"), of("deliveries_per_s"), of("events_per_s")), (2.0, 6.5, 7.5));
        assert_eq!((percent(1, 4), percent(0, 0)), (25.0, 100.0));
        assert!(covered(&sides).is_empty(), "nobody acknowledged");
        let threads = ByThread::from([("shard-0".to_string(), 20.0), ("idle".to_string(), 0.05)]);
        let keys: Vec<String> = of_process("primary", &threads).into_iter().map(|figure| figure.key).collect();
        assert_eq!(keys, ["primary_cpu_percent", "primary_shard_0_cpu_percent"]);
    }
}
