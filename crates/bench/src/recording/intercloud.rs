//! Runs of orchestrations that another cloud answers: two own secure clouds, and the relay between them in the one that is asked.

use anyhow::Context;

use super::{
    InterCloudRun,
    orchestrations::ask,
    processors::{Counters, Processors},
};
use crate::expectation::{BodyRule, Expectation};
use crate::intercloud::{IF_NOTHING_HERE, Neighbors};
use crate::options::{Case, RecordOptions};
use crate::stages::Stages;
use crate::statistics::Latencies;

/// Orchestrations of each consumer before a run.
const WARM_UP_EACH: u32 = 10;

/// Every load as often as the options say, in turn; none where no such orchestrations are asked for.
pub fn record(options: &RecordOptions, told: &mut dyn FnMut(String)) -> anyhow::Result<Vec<InterCloudRun>> {
    if options.intercloud == 0 {
        return Ok(Vec::new());
    }
    let neighbors = Neighbors::start(Case::ToNeighbor, &options.neighbors())?;
    let mut runs = Vec::new();
    for repeat in 1..=options.repeat {
        for consumers in &options.consumers {
            told(format!("orchestrations in another cloud, {consumers} consumers, {repeat} of {}", options.repeat));
            runs.push(one(&neighbors, *consumers, options)?);
        }
    }
    neighbors.close()?;
    Ok(runs)
}

fn one(neighbors: &Neighbors, consumers: u32, options: &RecordOptions) -> anyhow::Result<InterCloudRun> {
    let asked = |count: u32| -> anyhow::Result<(u64, Latencies)> {
        // The first one of each consumer has its handshake in it.
        let requests = neighbors.orchestrations(consumers.saturating_add(count), IF_NOTHING_HERE)?;
        let expectation = Expectation { status: 200, body: BodyRule::FilledList("response") };
        let latencies = ask(neighbors.asking.orchestrator()?, &requests, consumers, expectation).context("of another cloud")?;
        Ok((requests.len() as u64, latencies))
    };
    asked(consumers.saturating_mul(WARM_UP_EACH))?;
    let clouds = [&neighbors.asking, &neighbors.asked];
    let stages = || clouds.map(|cloud| Stages::read(cloud.api()?)).into_iter().collect::<anyhow::Result<Vec<_>>>();
    let (before, counters) = (stages()?, Counters::begin(&clouds)?);
    let (orchestrations, latencies) = asked(options.intercloud)?;
    let (processors, after) = (counters.end()?, stages()?);
    Ok(InterCloudRun {
        consumers,
        services: options.services,
        orchestrations,
        latency_ns: latencies.counts(),
        processor_ns: processors.as_ref().map(Processors::own_ns),
        processors,
        stages: after[0].since(&before[0]),
        asking: after[0].dialogues_since(&before[0]),
        asked: after[1].dialogues_since(&before[1]),
    })
}
