//! The laws of an orchestration: its steps, and what is worked beside them.

use serde::{Deserialize, Serialize};

use crate::{deployment::durations::Durations, distribution::Form};

/// The fitted laws of an orchestration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrchestrationLaws {
    /// Numbers of consumers of the loads from which they were made.
    pub consumers: Vec<u32>,
    /// The steps in their order.
    pub steps: Vec<OrchestrationStep>,
    /// Processor time of what is done beside the way of an orchestration, in us: where nobody else asks, and where very many do.
    pub beside_us: Beside,
    /// How often work that finds all processors at steps of others is held up, and for how long.
    #[serde(default)]
    pub held_up: HeldUp,
    /// Which processors work goes to, where that is known.
    #[serde(default)]
    pub places: Option<Places>,
    /// How far the net's mean is off, at most, for the loads from which they were made.
    pub mean_off_percent: f64,
}

/// Where work goes: consumers are one thread, which keeps its processor, and the cloud's threads mostly keep away from it (decision 145).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Places {
    /// How likely the cloud's work goes to the consumers' processor, beside 1 for each other one; 0 to 1.
    pub shared: f64,
    /// What the consumers work between an answer and their next request, for each, in us.
    pub between_us: f64,
    /// Variance over squared mean of what the cloud works for an orchestration.
    pub squared_variation: f64,
}

/// Being held up by a thread that keeps its processor for a time slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldUp {
    /// How likely it is for work that comes while every processor is at a step of somebody else, 0 to below 1.
    pub probability: f64,
    /// For how long, in the mean, in us.
    pub mean_us: f64,
}

impl HeldUp {
    /// A time slice is neither fixed nor without memory.
    pub(in crate::deployment) const SQUARED_VARIATION: f64 = 0.5;
    /// An answer that took more than so many medians was held up.
    pub(super) const LATE: f64 = 4.0;
    /// Most of the work that is: with more nothing would go on.
    pub(super) const PROBABILITY_MAX: f64 = 0.5;

    /// The part of some answers that was held up, and for how long in the mean.
    pub(super) fn seen(answers: &Durations) -> (f64, f64) {
        let median_us = answers.quantile_us(0.5);
        let late = || answers.counts.iter().filter(|(us, _)| *us > Self::LATE * median_us);
        let count: f64 = late().map(|(_, count)| *count as f64).sum();
        let sum_us: f64 = late().map(|(us, count)| (us - median_us) * *count as f64).sum();
        (count / answers.count() as f64, if count > 0.0 { sum_us / count } else { 0.0 })
    }
}

/// A processor time that is shared by those who ask at the same time: threads that are awake anyway are not woken, and what waits is done in one go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// For one consumer.
    pub alone: f64,
    /// For each of very many.
    pub many: f64,
}

impl Beside {
    /// How much of what is saved by asking together is not yet saved with so many consumers.
    pub(super) fn unshared(consumers: u32) -> f64 {
        f64::from(consumers).sqrt().recip()
    }

    /// For each of so many: what is saved goes with the square root of their number, which is what was measured of one to eight (decision 102).
    pub(in crate::deployment) fn of(self, consumers: u32) -> f64 {
        (self.many + (self.alone - self.many) * Self::unshared(consumers)).max(0.0)
    }

    /// The time that comes nearest to those of so many consumers each, by least squares, where `share` of what is saved is not yet saved with so many; what is known of one number only is so for all.
    pub(super) fn nearest(seen: &[(u32, f64)], share: fn(u32) -> f64) -> Self {
        let count = seen.len() as f64;
        let (x, y) = (seen.iter().map(|(n, _)| share(*n)).sum::<f64>() / count, seen.iter().map(|(_, us)| us).sum::<f64>() / count);
        let square: f64 = seen.iter().map(|(n, _)| (share(*n) - x).powi(2)).sum();
        let slope = if square > 0.0 { seen.iter().map(|(n, us)| (share(*n) - x) * (us - y)).sum::<f64>() / square } else { 0.0 };
        let many = (y - slope * x).max(0.0);
        Self { alone: (y + slope * (1.0 - x)).max(0.0), many }
    }
}

/// A step of such an orchestration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrchestrationStep {
    /// Its name.
    pub name: String,
    /// Processor time in us where very many ask.
    pub work_us: f64,
    /// Processor time in us that it takes more where nobody else asks: who is alone lets threads sleep between its steps, and each has to be woken. Of so many consumers it is this over their square (decision 130).
    #[serde(default)]
    pub alone_us: f64,
    /// The law of the time in which it needs no processor, in us.
    pub waits: Form,
    /// Whose work it is.
    #[serde(default)]
    pub whose: Whose,
}

/// Whose work a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// The cloud's, or anybody's.
    #[default]
    Cloud,
    /// The consumers'.
    Consumers,
}

impl OrchestrationStep {
    /// Processor time in us where so many ask.
    pub(in crate::deployment) fn work_of_us(&self, consumers: u32) -> f64 {
        self.work_us + self.alone_us * waking(consumers)
    }
}

/// How much of what is worked more where nobody else asks is worked with so many consumers: two threads sleep on the way of an orchestration, the consumer's and the cloud's, and either is awake while it has another one's.
pub(super) fn waking(consumers: u32) -> f64 {
    f64::from(consumers).powi(-2)
}
