//! Runs of orchestrations: in one cloud, and the way in which consumers ask.

use anyhow::{Context, ensure};

use super::OrchestrationRun;
use super::processors::{Counters, Processors};
use crate::baseline::Baseline;
use crate::endpoint::Endpoint;
use crate::expectation::{Expectation, Faults};
use crate::lanes::drive;
use crate::load;
use crate::operation::Operation;
use crate::options::RecordOptions;
use crate::scene::Scene;
use crate::stages::Stages;
use crate::state::State;
use crate::statistics::Latencies;

/// As many runs of each number of consumers as the options say, in turn, each behind a warm-up of its own; none where no orchestrations are asked for.
pub fn record(options: &RecordOptions, told: &mut dyn FnMut(String)) -> anyhow::Result<Vec<OrchestrationRun>> {
    if options.orchestrations == 0 {
        return Ok(Vec::new());
    }
    let target = options.target()?;
    let seed = if target.target.is_some() { State::fresh_seed() } else { State::SEED };
    let mut baseline = Baseline::prepare(&target, State { seed, services: options.services }, Operation::Orchestrate.needs())?;
    let mut runs = Vec::new();
    for repeat in 1..=options.repeat {
        for consumers in &options.orchestration_consumers {
            told(format!("orchestrations, {consumers} consumers, {repeat} of {}", options.repeat));
            let mut scene = baseline.restore()?;
            runs.push(one(&mut scene, *consumers, options)?);
            baseline.end(scene)?;
        }
    }
    Ok(runs)
}

fn one(scene: &mut Scene, consumers: u32, options: &RecordOptions) -> anyhow::Result<OrchestrationRun> {
    let monitor = scene.cloud.monitor.clone().context("no stage recorder: give --monitor http://HOST:PORT of a Bodkin")?;
    let mut batch = |count: u32| scene.requests(Operation::Orchestrate, count);
    let warm_up = batch(options.orchestrations.min(load::WARM_UP_REQUESTS))?;
    ask(&warm_up.endpoint, &warm_up.requests, consumers, warm_up.expectation)?;
    let batch = batch(options.orchestrations.saturating_add(consumers))?;
    let clouds = [&scene.cloud];
    let (before, counters) = (Stages::read(&monitor)?, Counters::begin(&clouds)?);
    let latencies = ask(&batch.endpoint, &batch.requests, consumers, batch.expectation)?;
    let (processors, after) = (counters.end()?, Stages::read(&monitor)?);
    Ok(OrchestrationRun {
        services: options.services,
        consumers,
        orchestrations: batch.requests.len() as u64,
        latency_ns: latencies.counts(),
        processor_ns: processors.as_ref().map(Processors::own_ns),
        processors,
        stages: after.since(&before),
    })
}

/// The times of all requests behind the first one of each consumer, which has the opening of its connection in it; each consumer asks again when it has its answer.
///
/// # Errors
/// A request failed.
pub fn ask(endpoint: &Endpoint, requests: &[Vec<u8>], consumers: u32, expectation: Expectation) -> anyhow::Result<Latencies> {
    let (mut latencies, mut faults) = (Latencies::default(), Faults::default());
    drive(endpoint, requests, None, consumers as usize, &mut |exchange| {
        let fault = match exchange.answer {
            Err(why) => Some(why),
            Ok(answer) => expectation.fault(answer.status(), answer.body()),
        };
        match fault {
            Some(fault) => faults.add(fault),
            // All lanes are opened with the first requests.
            None if exchange.index < consumers as usize => {}
            None => latencies.record(exchange.finished - exchange.sent),
        }
    })?;
    ensure!(faults.count == 0, "orchestrations failed: {}", faults.first.join("; "));
    Ok(latencies)
}
