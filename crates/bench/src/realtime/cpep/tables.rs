//! What was measured, beside the paper's table or beside itself with something switched off.

use super::cases::Case;
use super::streams::LEVELS;
use crate::options::Processor;
use crate::published;
use crate::report::{ComparedRow, Comparison, Outcome};

/// The tables of the sets that were run.
pub fn beside(cases: &[Case], outcomes: &[Outcome]) -> Vec<Comparison> {
    let sets: Vec<u32> = (1..=6).filter(|set| cases.iter().any(|case| case.set == *set)).collect();
    let tables = sets.into_iter().map(|set| {
        let of_set: Vec<&Case> = cases.iter().filter(|case| case.set == set).collect();
        match set {
            1 => levels(&of_set, outcomes),
            _ => columns(set, &of_set, outcomes),
        }
    });
    tables.collect()
}

fn find<'o>(outcomes: &'o [Outcome], case: &Case) -> Option<&'o Outcome> {
    outcomes.iter().find(|outcome| outcome.label == case.label())
}

/// The sizes of a set's rows, and the names of what is different.
fn axes<'c>(cases: &[&'c Case]) -> (Vec<u32>, Vec<&'c str>) {
    let mut sizes: Vec<u32> = cases.iter().map(|case| case.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut names: Vec<&str> = Vec::new();
    for case in cases {
        if !names.contains(&case.name.as_str()) {
            names.push(&case.name);
        }
    }
    (sizes, names)
}

/// Table 2.1 with ours beside it.
fn levels(cases: &[&Case], outcomes: &[Outcome]) -> Comparison {
    let (sizes, _) = axes(cases);
    let row = |level: &str, size: u32| {
        let ours = [Processor::Flink, Processor::Bodkin].map(|processor| {
            let case = cases.iter().find(|case| case.processor == processor && case.size == size)?;
            find(outcomes, case)?.series.summary(&format!("{level}_p99_ms"))
        });
        let theirs = ["flink", "cpep"].map(|system| published::cpep_p99_ms(level, system, size));
        ComparedRow { what: format!("{level}, {size} middle streams"), figures: [theirs, ours].concat() }
    };
    Comparison {
        title: "Latency, p99 in ms, beside Wang 2019, Table 2.1".into(),
        columns: ["flink (paper)", "cpep (paper)", "flink", "bodkin"].map(String::from).into(),
        rows: LEVELS.iter().flat_map(|level| sizes.iter().map(|size| row(level, *size))).collect(),
    }
}

/// What a set is about, row by row.
fn columns(set: u32, cases: &[&Case], outcomes: &[Outcome]) -> Comparison {
    let (sizes, names) = axes(cases);
    let (title, keys): (&str, &[&str]) = match set {
        2 => ("Set 2: p99 in ms with and without priorities", &["high_p99_ms", "middle_p99_ms", "low_p99_ms", "service_cpu_percent"]),
        3 => {
            let keys = &["high_mean_ms", "middle_mean_ms", "low_mean_ms", "low_p99_ms", "service_cpu_percent", "machine_cpu_percent"];
            ("Set 3: operators in common or not", keys)
        }
        4 => {
            let keys = &[
                "high_timely_per_s",
                "middle_timely_per_s",
                "low_timely_per_s",
                "timely_per_s",
                "timely_mbit_per_s",
                "machine_cpu_percent",
            ];
            ("Set 4: results within 10 ms", keys)
        }
        5 => {
            let keys = &["high_timely_per_s", "middle_timely_per_s", "low_timely_per_s", "middle_marked_percent", "service_cpu_percent"];
            ("Set 5: results of events that were made within a time of each other", keys)
        }
        _ => ("Set 6: what priorities cost", &["switches_per_ms", "migrations_per_ms", "vm_size_mb", "rss_mb", "service_cpu_percent"]),
    };
    let value = |key: &str, size: u32, name: &str| {
        let case = cases.iter().find(|case| case.size == size && case.name == name)?;
        find(outcomes, case)?.series.summary(key)
    };
    let row = |key: &str, size: u32| ComparedRow {
        what: format!("{size}: {key}"),
        figures: names.iter().map(|name| value(key, size, name)).collect(),
    };
    Comparison {
        title: title.into(),
        columns: names.iter().map(|name| (*name).to_owned()).collect(),
        rows: keys.iter().flat_map(|key| sizes.iter().map(|size| row(key, *size))).collect(),
    }
}
