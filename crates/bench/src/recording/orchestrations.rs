//! Runs of orchestrations.

use anyhow::{Context, ensure};

use super::OrchestrationRun;
use crate::baseline::Baseline;
use crate::load;
use crate::operation::Operation;
use crate::options::RecordOptions;
use crate::stages::Stages;
use crate::state::State;

/// As many runs as the options say, each behind a warm-up of its own; none where no orchestrations are asked for.
pub fn record(options: &RecordOptions, told: &mut dyn FnMut(String)) -> anyhow::Result<Vec<OrchestrationRun>> {
    if options.orchestrations == 0 {
        return Ok(Vec::new());
    }
    let target = options.target()?;
    let seed = if target.target.is_some() { State::fresh_seed() } else { State::SEED };
    let mut baseline = Baseline::prepare(&target, State { seed, services: options.services }, Operation::Orchestrate.needs())?;
    let mut runs = Vec::new();
    for repeat in 1..=options.repeat {
        told(format!("orchestrations, {repeat} of {}", options.repeat));
        let mut scene = baseline.restore()?;
        let monitor = scene.cloud.monitor.clone().context("no stage recorder: give --monitor http://HOST:PORT of a Bodkin")?;
        load::sequential(&scene.requests(Operation::Orchestrate, options.orchestrations.min(load::WARM_UP_REQUESTS))?)?;
        let batch = scene.requests(Operation::Orchestrate, options.orchestrations)?;
        let before = Stages::read(&monitor)?;
        let (_, measured) = load::sequential(&batch)?;
        ensure!(measured.faults.count == 0, "orchestrations failed: {}", measured.faults.first.join("; "));
        let stages = Stages::read(&monitor)?.since(&before);
        runs.push(OrchestrationRun { services: options.services, latency_ns: measured.latencies.counts(), stages });
        baseline.end(scene)?;
    }
    Ok(runs)
}
