//! The net of orchestrations beside a recording of a quiet machine: from one and four consumers two and eight.

use bodkin_petri::deployment::{Durations, Effort, OrchestrationRun, Sides, fit_orchestrations, predict_orchestrations};
use serde_json::Value;

/// Pairs of a duration in ns and how often it was seen.
fn pairs(of: &Value) -> Vec<(u64, u64)> {
    let number = |value: &Value| value.as_u64().expect("a number");
    of.as_array().expect("pairs").iter().map(|pair| (number(&pair[0]), number(&pair[1]))).collect()
}

fn run(of: &Value) -> OrchestrationRun {
    let stage = |name: &str| {
        let times = &of["stages"]["orchestrator"][name];
        (name.to_owned(), Durations::of_buckets_ns(&pairs(&times["buckets"]), times["sum_ns"].as_u64().expect("a sum")))
    };
    let side = |name: &str| of["processors"][name].as_f64().expect("a time") / 1e3;
    OrchestrationRun {
        cores: 2,
        others: 0.0,
        consumers: of["consumers"].as_u64().expect("consumers") as u32,
        orchestrations: of["orchestrations"].as_u64().expect("orchestrations"),
        latency: Durations::of_counts_ns(&pairs(&of["latency_ns"])),
        before: ["receive", "parse", "execute", "authorise", "send"].map(stage).into(),
        dialogues: Vec::new(),
        after: Vec::new(),
        processor_us: of["processor_ns"].as_f64().map(|ns| ns / 1e3),
        sides: Some(Sides { elapsed_us: side("elapsed_ns"), consumers_us: side("consumers_ns"), clouds_us: side("clouds_ns") }),
    }
}

#[test]
fn two_consumers_and_eight_are_within_the_promise() {
    let recording: Value = serde_json::from_str(include_str!("../../../vectors/petri/orchestrations_recording.json")).expect("JSON");
    let runs: Vec<OrchestrationRun> = recording["orchestrations"].as_array().expect("orchestrations").iter().map(run).collect();
    let of = |consumers: u32| runs.iter().find(|run| run.consumers == consumers).expect("it was recorded");
    let effort = Effort { events: 20_000, seed: 1, threads: 2 };
    let laws = fit_orchestrations(&[of(1).clone(), of(4).clone()], &effort).expect("laws").laws;
    assert!(laws.mean_off_percent < 10.0, "{}", laws.mean_off_percent);
    for (consumers, mean_percent, p99_percent) in [(2, 10.0, 25.0), (8, 10.0, 25.0)] {
        let measured = of(consumers);
        let predicted = predict_orchestrations(&laws, &measured.deployment(), &effort).expect("it can be predicted");
        let off = |predicted: f64, measured: f64| 100.0 * (predicted / measured - 1.0);
        let mean = off(predicted.mean_us.value, measured.latency.mean_us());
        let p99 = off(predicted.quantile_us(0.99), measured.latency.quantile_us(0.99));
        assert!(mean.abs() < mean_percent && p99.abs() < p99_percent, "{consumers} consumers: mean {mean:+.1} %, p99 {p99:+.1} %");
    }
}
