//! Runs of orchestrations that another cloud answers: two own secure clouds, and the relay between them in the one that is asked.

use anyhow::ensure;

use super::InterCloudRun;
use crate::cloud::Cloud;
use crate::expectation::{BodyRule, Expectation, Faults};
use crate::intercloud::{IF_NOTHING_HERE, Neighbors};
use crate::lanes::drive;
use crate::options::{Case, RecordOptions};
use crate::processor_time;
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
    ask(neighbors, consumers, consumers.saturating_mul(WARM_UP_EACH))?;
    let clouds = [&neighbors.asking, &neighbors.asked];
    let stages = || clouds.map(|cloud| Stages::read(cloud.api()?)).into_iter().collect::<anyhow::Result<Vec<_>>>();
    let (before, processor_before) = (stages()?, processor_ns(clouds)?);
    let (orchestrations, latencies) = ask(neighbors, consumers, options.intercloud)?;
    let (processor_after, after) = (processor_ns(clouds)?, stages()?);
    Ok(InterCloudRun {
        consumers,
        services: options.services,
        orchestrations,
        latency_ns: latencies.counts(),
        processor_ns: processor_after.zip(processor_before).map(|(after, before)| after - before),
        stages: after[0].since(&before[0]),
        asking: after[0].dialogues_since(&before[0]),
        asked: after[1].dialogues_since(&before[1]),
    })
}

/// So many orchestrations behind the first one of each consumer, which has its handshake in it; gives how many there were in all, and the others' times.
fn ask(neighbors: &Neighbors, consumers: u32, count: u32) -> anyhow::Result<(u64, Latencies)> {
    let requests = neighbors.orchestrations(consumers.saturating_add(count), IF_NOTHING_HERE)?;
    let expectation = Expectation { status: 200, body: BodyRule::FilledList("response") };
    let (mut latencies, mut faults) = (Latencies::default(), Faults::default());
    drive(neighbors.asking.orchestrator()?, &requests, None, consumers as usize, &mut |exchange| {
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
    ensure!(faults.count == 0, "orchestrations in another cloud failed: {}", faults.first.join("; "));
    Ok((requests.len() as u64, latencies))
}

/// Of both clouds and of this process, in which the consumers are.
fn processor_ns(clouds: [&Cloud; 2]) -> anyhow::Result<Option<u64>> {
    let mut sum = processor_time::own();
    for cloud in clouds {
        let Some(used) = cloud.processor_time()? else { return Ok(None) };
        sum += used;
    }
    Ok(Some(u64::try_from(sum.as_nanos()).unwrap_or(u64::MAX)))
}
