//! One cloud after the other, each with a seed of its own, until somebody has seen enough.

use std::ops::ControlFlow;

use crate::{cloud::Cloud, fault::FAULT_KINDS, ledger::Tally, violation::Violation};

/// Faults that a cloud goes through.
const FAULTS_PER_CLOUD: u32 = 50;

/// What was simulated so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Clouds, each with its own workload, clocks and faults.
    pub clouds: u64,
    /// True time of all of them, in nanoseconds.
    pub simulated_ns: u64,
    /// Times that a node died.
    pub crashes: u64,
    /// Times that its host died with it.
    pub host_crashes: u64,
    /// How often each of [`FAULT_KINDS`] came.
    pub faults: [u64; FAULT_KINDS.len()],
    /// What was counted in all of them.
    pub tally: Tally,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed of the cloud that broke it: a campaign that begins with it breaks it at once.
    pub seed: u64,
    /// Which promise, and when.
    pub violation: Violation,
    /// What was seen before, a line each.
    pub trace: Vec<String>,
}

/// Clouds with the seeds `seed`, `seed + 1` and so on.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    next_seed: u64,
    report: Report,
}

impl Campaign {
    /// Begins with a seed.
    pub fn new(seed: u64) -> Self {
        Self { next_seed: seed, report: Report::default() }
    }

    /// Simulates the next cloud.
    pub fn simulate(&mut self) -> ControlFlow<Box<Failure>> {
        let seed = self.next_seed;
        self.next_seed = seed.wrapping_add(1);
        let mut cloud = Cloud::new(seed, FAULTS_PER_CLOUD);
        let outcome = cloud.run();
        self.report.clouds += 1;
        self.report.simulated_ns += cloud.now().0;
        let (crashes, host_crashes) = cloud.scenario().crashes();
        self.report.crashes += crashes;
        self.report.host_crashes += host_crashes;
        self.report.faults.iter_mut().zip(cloud.scenario().counts()).for_each(|(total, count)| *total += count);
        self.report.tally.add(&cloud.ledger().tally());
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(violation) => ControlFlow::Break(Box::new(Failure { seed, violation, trace: cloud.trace().lines() })),
        }
    }

    /// What was simulated so far.
    pub fn report(&self) -> &Report {
        &self.report
    }
}
