//! Orchestrations: what was seen of them under load, and the laws of their steps. One that leads to another cloud passes the asking Orchestrator, a global service discovery (GSD) and
//! an inter-cloud negotiation (ICN), each with a call, a way there and back, and what the other cloud decides (Rocha 2019, Figure 5.5); one that the own cloud answers has the Orchestrator's stages alone.
//!
//! Everybody shares the processors. Of each step a part is work, which needs one; in the rest messages are on their way and threads are woken, and
//! nobody needs any. Beside its way an orchestration has work of which it does not wait for the end: queues are put away, answers are acknowledged, clouds look after their connections.

mod fitting;
mod laws;
mod own_cloud;
#[cfg(test)]
mod tests;

use self::fitting::{fit_anywhere, off, predicted};
pub use self::laws::{Beside, HeldUp, OrchestrationLaws, OrchestrationStep, Places, Whose};
use super::{
    by_load::{LeftOut, each_left_out},
    calibration::middle,
    durations::Durations,
    orchestration_path::OrchestrationDeployment,
    prediction::{Effort, Prediction, PredictionError, predict_orchestrations},
};
use crate::distribution::DistributionError;

/// One load of orchestrations, and what was seen of it.
#[derive(Clone, Debug, PartialEq)]
pub struct OrchestrationRun {
    /// Processors that the clouds and the consumers share.
    pub cores: u32,
    /// How many of them others kept busy in the mean; 0 where that is not known.
    pub others: f64,
    /// Consumers, each of which asks again when it has its answer.
    pub consumers: u32,
    /// Orchestrations while the steps were recorded.
    pub orchestrations: u64,
    /// From request to answer.
    pub latency: Durations,
    /// Name and times of the asking Orchestrator's stages in front of the first dialogue; all of them where there is none.
    pub before: Vec<(String, Durations)>,
    /// The dialogues with another cloud in their order; none: the own cloud answers.
    pub dialogues: Vec<Dialogue>,
    /// As `before`, behind the last dialogue.
    pub after: Vec<(String, Durations)>,
    /// Processor time of the clouds and of the consumers in us, where it is known.
    pub processor_us: Option<f64>,
    /// The same by side, where it is known.
    pub sides: Option<Sides>,
}

/// What either side had of the processors, and how long the run was; in us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sides {
    /// How long it was.
    pub elapsed_us: f64,
    /// Processor time of the consumers, all in one thread.
    pub consumers_us: f64,
    /// Processor time of the clouds.
    pub clouds_us: f64,
}

/// The parts of a dialogue between two clouds.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialogue {
    /// What it is about.
    pub name: String,
    /// From listening for the answer to the other cloud's acknowledgement of the call.
    pub call: Durations,
    /// From there to the answer.
    pub answer: Durations,
    /// Of that, what the other cloud took to decide.
    pub decide: Durations,
}

/// What runs of orchestrations were calibrated to.
#[derive(Clone, Debug, PartialEq)]
pub struct OrchestrationCalibration {
    /// The laws.
    pub laws: OrchestrationLaws,
    /// The loads, that with the fewest consumers first, each with what the net of these laws makes of it.
    pub loads: Vec<(OrchestrationRun, Prediction)>,
}

/// Runs that no laws can be made from.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OrchestrationError {
    /// Something is missing.
    #[error("of orchestrations no {0} were recorded")]
    Missing(String),
    /// The steps of those who asked one after the other took longer than they waited.
    #[error(
        "the steps of an orchestration took {steps_us:.0} us and its answer came behind {latency_us:.0} us: they belong to different runs"
    )]
    Longer {
        /// All steps.
        steps_us: f64,
        /// Request to answer.
        latency_us: f64,
    },
    /// A law that is none.
    #[error(transparent)]
    Law(#[from] DistributionError),
    /// The net cannot be simulated.
    #[error(transparent)]
    Prediction(#[from] PredictionError),
}

/// Name of the step that has what no other one has: the way between consumer and cloud, and what is done between dialogues.
const TRANSIT: &str = "transit";
/// Least part of its mean time that a single pass of a step waits.
const WAIT_PART_MIN: f64 = 0.05;

impl OrchestrationRun {
    /// Whether it is another run of the same load.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.cores, self.consumers) == (other.cores, other.consumers)
    }

    fn add(&mut self, other: &Self) {
        let each = |ours: &mut [(String, Durations)], theirs: &[(String, Durations)]| {
            for (name, durations) in ours {
                theirs.iter().filter(|(other, _)| other == name).for_each(|(_, other)| durations.add(other));
            }
        };
        let part = other.orchestrations as f64 / (self.orchestrations + other.orchestrations).max(1) as f64;
        self.others += (other.others - self.others) * part;
        self.orchestrations += other.orchestrations;
        self.latency.add(&other.latency);
        each(&mut self.before, &other.before);
        each(&mut self.after, &other.after);
        for (ours, theirs) in self.dialogues.iter_mut().zip(&other.dialogues) {
            ours.call.add(&theirs.call);
            ours.answer.add(&theirs.answer);
            ours.decide.add(&theirs.decide);
        }
        self.processor_us = self.processor_us.zip(other.processor_us).map(|(ours, theirs)| ours + theirs);
        self.sides = self.sides.zip(other.sides).map(|(ours, theirs)| Sides {
            elapsed_us: ours.elapsed_us + theirs.elapsed_us,
            consumers_us: ours.consumers_us + theirs.consumers_us,
            clouds_us: ours.clouds_us + theirs.clouds_us,
        });
    }

    /// What was there for them.
    pub fn deployment(&self) -> OrchestrationDeployment {
        // The kernel counts in ticks: in a short run others may seem to have had more than there is.
        OrchestrationDeployment { cores: self.cores, others: self.others.clamp(0.0, f64::from(self.cores)), consumers: self.consumers }
    }

    /// The middle half of the runs with this many consumers, by mean latency, as one: one in which the machine was taken away for a while would outweigh all others.
    fn typical(runs: &[Self], consumers: u32) -> Self {
        let (first, others) = middle(runs.iter().filter(|run| run.consumers == consumers).collect(), |run| run.latency.mean_us());
        let mut whole = first.clone();
        others.iter().for_each(|run| whole.add(run));
        whole
    }

    /// The steps in their order, behind what no step has of the response time: the consumer's way, and whatever holds up an orchestration as a whole. Of one that leads to another cloud that is no
    /// work, of another one much of it is the consumer's.
    fn passed(&self) -> Result<Vec<Passed>, OrchestrationError> {
        let of_answer = |durations: &Durations| durations.sum_us / self.orchestrations as f64;
        let step = |name: String, mean_us: f64, values: Vec<f64>| Passed { name, mean_us, values, is_work: true };
        let stage = |(name, durations): &(String, Durations)| step(name.clone(), of_answer(durations), durations.spread(|value| value));
        let passed = |stages: &[(String, Durations)]| -> Vec<_> {
            stages.iter().filter(|(_, durations)| durations.count() > 0).map(stage).collect()
        };
        let mut steps = passed(&self.before);
        for Dialogue { name, call, answer, decide } in &self.dialogues {
            for (part, durations) in [("calls", call), ("answers", answer), ("decisions", decide)] {
                if durations.count() == 0 {
                    return Err(OrchestrationError::Missing(format!("{part} of {name}")));
                }
            }
            let decided_us = of_answer(decide);
            let carried_us = of_answer(answer) - decided_us;
            let carried = answer.spread(|value| (value - decided_us).max(WAIT_PART_MIN * carried_us));
            steps.push(step(format!("{name} call"), of_answer(call), call.spread(|value| value)));
            steps.push(step(format!("{name} there and back"), carried_us, carried));
            steps.push(step(format!("{name} decides"), decided_us, decide.spread(|value| value)));
        }
        steps.extend(passed(&self.after));
        if steps.is_empty() {
            return Err(OrchestrationError::Missing("stages".to_owned()));
        }
        let (steps_us, latency_us) = (steps.iter().map(|step| step.mean_us).sum::<f64>(), self.latency.mean_us());
        if steps_us >= latency_us {
            return Err(OrchestrationError::Longer { steps_us, latency_us });
        }
        let transit_us = latency_us - steps_us;
        let values = self.latency.spread(|value| (value - steps_us).max(WAIT_PART_MIN * transit_us));
        steps.insert(0, Passed { name: TRANSIT.to_owned(), mean_us: transit_us, values, is_work: self.dialogues.is_empty() });
        Ok(steps)
    }
}

/// A step as it was seen.
struct Passed {
    name: String,
    /// Mean in an orchestration.
    mean_us: f64,
    /// Values that stand for its times.
    values: Vec<f64>,
    /// Whether a part of it is work.
    is_work: bool,
}

/// Fits the steps. How long they take is told by the load with the fewest consumers; how much is worked, on the way and beside it, by the processor time of each load. How
/// much of that is on the way is what brings the means of all loads nearest to the measured ones.
///
/// # Errors
/// Something was not recorded, or the steps took longer than the orchestrations.
pub fn fit_orchestrations(runs: &[OrchestrationRun], effort: &Effort) -> Result<OrchestrationCalibration, OrchestrationError> {
    let loads = merged(runs)?;
    let alone = &loads[0];
    let laws = match loads.iter().map(|load| load.sides).collect::<Option<Vec<Sides>>>() {
        Some(sides) if alone.dialogues.is_empty() => own_cloud::fit(&loads, &sides, effort)?,
        _ => fit_anywhere(&loads, effort)?,
    };
    let loads = predicted(&laws, &loads, effort)?;
    let mean_off_percent = loads.iter().map(|seen| 100.0 * (off(seen) - 1.0).abs()).fold(0.0, f64::max);
    Ok(OrchestrationCalibration { laws: OrchestrationLaws { mean_off_percent, ..laws }, loads })
}

/// Each load as a net predicts it that was made from the others alone. It takes as long as so many calibrations.
///
/// # Errors
/// Something was not recorded.
pub fn leave_out_of_orchestrations(
    runs: &[OrchestrationRun],
    effort: &Effort,
) -> Result<Vec<LeftOut<OrchestrationRun, Prediction>>, OrchestrationError> {
    let by_others = |others: &[OrchestrationRun], load: &OrchestrationRun| {
        let laws = fit_orchestrations(others, effort)?.laws;
        Ok::<_, OrchestrationError>(predict_orchestrations(&laws, &load.deployment(), effort)?)
    };
    Ok(each_left_out(&merged(runs)?, by_others))
}

/// Runs by load, that with the fewest consumers first; there is one at least.
fn merged(runs: &[OrchestrationRun]) -> Result<Vec<OrchestrationRun>, OrchestrationError> {
    let mut consumers: Vec<u32> = runs.iter().map(|run| run.consumers).collect();
    consumers.sort_unstable();
    consumers.dedup();
    let loads: Vec<OrchestrationRun> = consumers.iter().map(|number| OrchestrationRun::typical(runs, *number)).collect();
    if loads.is_empty() {
        return Err(OrchestrationError::Missing("runs".to_owned()));
    }
    if loads.iter().any(|load| load.latency.count() == 0 || load.orchestrations == 0) {
        return Err(OrchestrationError::Missing("answers".to_owned()));
    }
    Ok(loads)
}
