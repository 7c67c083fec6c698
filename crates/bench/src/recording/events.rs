//! Runs with events.

use anyhow::Context;

use super::EventRun;
use crate::cloud::Cloud;
use crate::event::{Afflictions, Rig, Run, WARM_UP_SECONDS};
use crate::options::{EventLoad, RecordOptions, Transport};
use crate::stages::Stages;

/// Every load as often as the options say, in turn.
pub fn record(options: &RecordOptions, told: &mut dyn FnMut(String)) -> anyhow::Result<Vec<EventRun>> {
    let target = options.target()?;
    let mut rigs = Vec::new();
    for load in &options.loads {
        let mut rig = Rig::new(Cloud::open(&target)?, load.shape(), &target.provider_address)?;
        rig.broker_run(Transport::Sse, Afflictions::NONE, WARM_UP_SECONDS)?;
        rigs.push((*load, rig));
    }
    let mut runs = Vec::new();
    for repeat in 1..=options.repeat {
        for (load, rig) in &mut rigs {
            told(format!("events {load}, {repeat} of {}", options.repeat));
            runs.push(one(*load, rig, options.seconds)?);
        }
    }
    rigs.into_iter().try_for_each(|(_, rig)| rig.cloud.close().map(drop))?;
    Ok(runs)
}

fn one(load: EventLoad, rig: &mut Rig, seconds: u32) -> anyhow::Result<EventRun> {
    let monitor = rig.cloud.monitor.clone().context("no stage recorder: give --monitor http://HOST:PORT of a Bodkin")?;
    let before = Stages::read(&monitor)?;
    let (server_before, queued_before) = (rig.cloud.processor_time()?, rig.cloud.queued_time());
    let Run { published, received, .. } = rig.broker_run(Transport::Sse, Afflictions::NONE, seconds)?;
    let server = rig.cloud.processor_time()?.zip(server_before).map(|(after, before)| (after - before).as_nanos() as u64);
    let queued = rig.cloud.queued_time().zip(queued_before).map(|(after, before)| after.saturating_sub(before).as_nanos() as u64);
    Ok(EventRun {
        publishers: load.publishers,
        subscribers: load.subscribers,
        rate_per_s: load.rate_per_s,
        events: published.sent.iter().sum(),
        seconds: published.last_ns.saturating_sub(published.first_ns) as f64 / 1e9,
        latency_ns: received.latency,
        answered_ns: published.acknowledged,
        publisher_processor_ns: published.processor_ns,
        publisher_sleeps: published.sleeps,
        publisher_queued_ns: published.queued_ns,
        subscriber_processor_ns: received.processor_ns,
        subscriber_sleeps: received.sleeps,
        subscriber_queued_ns: received.queued_ns,
        stream_reads: received.reads,
        server_processor_ns: server,
        server_queued_ns: queued,
        stages: Stages::read(&monitor)?.since(&before),
    })
}
