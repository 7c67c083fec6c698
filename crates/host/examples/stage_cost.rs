//! What the stage recorder costs: nanoseconds for one clock reading and one recording.
//!
//! `cargo run --release -p bodkin-host --example stage_cost`

use std::time::{Duration, Instant};

use bodkin_arrowhead::core_service::CoreSystem;
use bodkin_host::stage::{Stage, Stages};

const LAPS: u32 = 10_000_000;

fn main() {
    let stages = std::hint::black_box(Box::new(Stages::default()));
    let started = Instant::now();
    let mut lap = started;
    for _ in 0..LAPS {
        let now = Instant::now();
        stages.record(CoreSystem::EventHandler, Stage::Parse, now - lap);
        lap = now;
    }
    let both_ns = ns_each(started);
    let started = Instant::now();
    for n in 0..LAPS {
        stages.record(CoreSystem::EventHandler, Stage::Parse, Duration::from_nanos(n.into()));
    }
    println!("a lap (clock and recording): {both_ns:.1} ns; recording alone: {:.1} ns", ns_each(started));
}

fn ns_each(started: Instant) -> f64 {
    started.elapsed().as_nanos() as f64 / f64::from(LAPS)
}
