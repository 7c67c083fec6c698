//! Who had the processors during a run of orchestrations, and who stood in front of them.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::cloud::Cloud;
use crate::processor_time::{self, Used};

/// Processor time of a run by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processors {
    /// How long the run was, on the clock.
    pub elapsed_ns: u64,
    /// Processor time of the process of all consumers.
    pub consumers_ns: u64,
    /// How long its threads were ready while others had the processors, where the kernel counts it.
    pub consumers_queued_ns: Option<u64>,
    /// Processor time of the clouds, in the kernel's ticks of 10 ms.
    pub clouds_ns: u64,
    /// How long their threads were ready while others had the processors, where the kernel counts it.
    pub clouds_queued_ns: Option<u64>,
    /// What everybody else had of all processors of the machine, with what the host of a virtual machine kept for itself, where the kernel tells it.
    pub others_ns: Option<u64>,
}

impl Processors {
    /// Of consumers and clouds together.
    pub fn own_ns(&self) -> u64 {
        self.consumers_ns + self.clouds_ns
    }

    /// How many processors everybody else kept busy in the mean; 0 where the kernel does not tell.
    pub fn others(&self) -> f64 {
        self.others_ns.map_or(0.0, |others| others as f64 / self.elapsed_ns.max(1) as f64)
    }
}

/// The counters at the begin of a run.
pub struct Counters<'a> {
    clouds: &'a [&'a Cloud],
    begun: Instant,
    own: Used,
    of_clouds: Option<Duration>,
    queued: Option<Duration>,
    of_machine: Option<Duration>,
}

impl<'a> Counters<'a> {
    /// Of these clouds and of this process, in which the consumers are.
    ///
    /// # Errors
    /// A cloud is gone.
    pub fn begin(clouds: &'a [&'a Cloud]) -> anyhow::Result<Self> {
        Ok(Self {
            clouds,
            of_machine: processor_time::of_machine(),
            of_clouds: of_clouds(clouds)?,
            queued: queued(clouds),
            own: Used::now(),
            begun: Instant::now(),
        })
    }

    /// What was used since then; none where the process of a cloud is not known.
    ///
    /// # Errors
    /// A cloud is gone.
    pub fn end(self) -> anyhow::Result<Option<Processors>> {
        let Self { clouds, begun, own, of_clouds: clouds_before, queued: queued_before, of_machine } = self;
        let (elapsed, own) = (begun.elapsed(), own.since());
        let queued = queued(clouds).zip(queued_before).map(since);
        let Some(clouds) = of_clouds(clouds)?.zip(clouds_before).map(since) else { return Ok(None) };
        let machine = processor_time::of_machine().zip(of_machine).map(since);
        Ok(Some(Processors {
            elapsed_ns: ns(elapsed),
            consumers_ns: own.processor_ns,
            consumers_queued_ns: own.queued_ns,
            clouds_ns: ns(clouds),
            clouds_queued_ns: queued.map(ns),
            others_ns: machine.map(|all| ns(all).saturating_sub(own.processor_ns + ns(clouds))),
        }))
    }
}

fn since((now, before): (Duration, Duration)) -> Duration {
    now.saturating_sub(before)
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn of_clouds(clouds: &[&Cloud]) -> anyhow::Result<Option<Duration>> {
    clouds.iter().map(|cloud| cloud.processor_time()).sum()
}

fn queued(clouds: &[&Cloud]) -> Option<Duration> {
    clouds.iter().map(|cloud| cloud.queued_time()).sum()
}
