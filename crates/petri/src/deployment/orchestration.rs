//! Orchestrations: what was seen of them under load, and the laws of their steps. One that leads to another cloud passes the asking Orchestrator, a global service discovery (GSD) and
//! an inter-cloud negotiation (ICN), each with a call, a way there and back, and what the other cloud decides (Rocha 2019, Figure 5.5); one that the own cloud answers has the Orchestrator's stages alone.
//!
//! Everybody shares the processors. Of each step a part is work, which needs one; in the rest messages are on their way and threads are woken, and
//! nobody needs any. Beside its way an orchestration has work of which it does not wait for the end: queues are put away, answers are acknowledged, clouds look after their connections.

use serde::{Deserialize, Serialize};

use super::{
    by_load::{LeftOut, each_left_out},
    calibration::middle,
    durations::{Durations, likeliest},
    orchestration_path::OrchestrationDeployment,
    prediction::{Effort, Prediction, PredictionError, predict_orchestrations},
};
use crate::distribution::{Distribution, DistributionError, Form};

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

/// What runs of orchestrations were calibrated to.
#[derive(Clone, Debug, PartialEq)]
pub struct OrchestrationCalibration {
    /// The laws.
    pub laws: OrchestrationLaws,
    /// The loads, that with the fewest consumers first, each with what the net of these laws makes of it.
    pub loads: Vec<(OrchestrationRun, Prediction)>,
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
    pub(super) const SQUARED_VARIATION: f64 = 0.5;
    /// An answer that took more than so many medians was held up.
    const LATE: f64 = 4.0;
    /// Most of the work that is: with more nothing would go on.
    const PROBABILITY_MAX: f64 = 0.5;

    /// The part of some answers that was held up, and for how long in the mean.
    fn seen(answers: &Durations) -> (f64, f64) {
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
    fn unshared(consumers: u32) -> f64 {
        f64::from(consumers).sqrt().recip()
    }

    /// For each of so many: what is saved goes with the square root of their number, which is what was measured of one to eight (decision 102).
    pub(super) fn of(self, consumers: u32) -> f64 {
        (self.many + (self.alone - self.many) * Self::unshared(consumers)).max(0.0)
    }

    /// The time that comes nearest to those of so many consumers each, by least squares, where `share` of what is saved is not yet saved with so many; what is known of one number only is so for all.
    fn nearest(seen: &[(u32, f64)], share: fn(u32) -> f64) -> Self {
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
/// Most of a step that is work: where all of it would be, threads are woken all the same.
const WORK_PART_MAX: f64 = 0.95;
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

impl OrchestrationStep {
    /// Processor time in us where so many ask.
    pub(super) fn work_of_us(&self, consumers: u32) -> f64 {
        self.work_us + self.alone_us * waking(consumers)
    }
}

/// How much of what is worked more where nobody else asks is worked with so many consumers: two threads sleep on the way of an orchestration, the consumer's and the cloud's, and either is awake while it has another one's.
fn waking(consumers: u32) -> f64 {
    f64::from(consumers).powi(-2)
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

/// Shares of the work that may be on the way of an orchestration which are tried, the others being beside it.
const ON_THE_WAY: [f64; 7] = [1.0, 0.85, 0.7, 0.55, 0.4, 0.25, 0.1];
/// Part of the orchestrations with which these are tried, and the fewest.
const FEW_PART: f64 = 0.25;
const FEW_MIN: u64 = 1_000;
/// How often what an orchestration waits for its own work is reckoned anew: the less a step waits, the sooner it is in the way of what the last one has left.
const REFININGS: u32 = 3;
/// By how much what a simulation has not seen is made likelier.
const UNSEEN_TIMES: f64 = 10.0;

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

/// The laws where work goes to any processor: between clouds, or where it is not known who worked how much.
fn fit_anywhere(loads: &[OrchestrationRun], effort: &Effort) -> Result<OrchestrationLaws, OrchestrationError> {
    let alone = &loads[0];
    let steps = alone.passed()?;
    let working_us: f64 = steps.iter().filter(|step| step.is_work).map(|step| step.mean_us).sum();
    // Of the steps' times; what is worked takes longer where others have processors.
    let (_, slowness) = alone.deployment().left();
    let worked: Vec<(u32, f64)> =
        loads.iter().filter_map(|load| Some((load.consumers, load.processor_us? / load.orchestrations as f64))).collect();
    let is_known = !worked.is_empty();
    let is_elsewhere = !alone.dialogues.is_empty();
    let worked = if is_known {
        Beside::nearest(&worked, if is_elsewhere { Beside::unshared } else { waking })
    } else {
        Beside { alone: working_us / slowness, many: working_us / slowness }
    };
    let room_us = WORK_PART_MAX * working_us / slowness;
    let most_us = room_us.min(worked.many);
    // What is worked more where nobody else asks is on the way in the own cloud: it wakes the threads that the orchestration waits for. Between clouds it is what is tidied up.
    let lonely_us = if is_elsewhere { 0.0 } else { (worked.alone - worked.many).max(0.0) };
    let parts = if loads.len() == 1 { &ON_THE_WAY[..1] } else { &ON_THE_WAY[..] };
    let few = few(effort);
    let consumers: Vec<u32> = loads.iter().map(|load| load.consumers).collect();
    let mut best: Option<(f64, OrchestrationLaws)> = None;
    for part in parts {
        let way_us = part * most_us;
        let least = alone.consumers;
        let way = Beside { alone: way_us + lonely_us.min((room_us - way_us) / waking(least)), many: way_us };
        let beside_us = if !is_known {
            Beside { alone: 0.0, many: 0.0 }
        } else if is_elsewhere {
            Beside { alone: (worked.alone - way_us).max(0.0), many: worked.many - way_us }
        } else {
            Beside { alone: worked.many - way_us, many: worked.many - way_us }
        };
        let laws = |held_us: f64| -> Result<OrchestrationLaws, DistributionError> {
            let way_of_least_us = way.many + (way.alone - way.many) * waking(least);
            let steps = fitted(&steps, working_us, way, way_of_least_us, (slowness - 1.0) * way_of_least_us + held_us)?;
            Ok(OrchestrationLaws {
                consumers: consumers.clone(),
                steps,
                beside_us,
                held_up: HeldUp::default(),
                places: None,
                mean_off_percent: 0.0,
            })
        };
        let laws = with_what_is_held(alone, &few, laws)?;
        let laws = if is_elsewhere { laws } else { with_who_is_held_up(loads.last().expect("there is one"), &few, laws)? };
        let squares = squares(&laws, loads, &few)?;
        if best.as_ref().is_none_or(|(least, _)| squares < *least) {
            best = Some((squares, laws));
        }
    }
    let (_, laws) = best.expect("some share was tried");
    Ok(laws)
}

/// With what a search goes.
fn few(effort: &Effort) -> Effort {
    Effort { events: ((FEW_PART * effort.events as f64) as u64).max(FEW_MIN).min(effort.events), ..*effort }
}

/// The sum of the squares of the logarithms of how many times too high the means of loads are.
fn squares(laws: &OrchestrationLaws, loads: &[OrchestrationRun], effort: &Effort) -> Result<f64, PredictionError> {
    Ok(predicted(laws, loads, effort)?.iter().map(|seen| off(seen).ln().powi(2)).sum())
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

/// A load, and what the net makes of it.
type Seen = (OrchestrationRun, Prediction);

fn predicted(laws: &OrchestrationLaws, loads: &[OrchestrationRun], effort: &Effort) -> Result<Vec<Seen>, PredictionError> {
    loads.iter().map(|load| Ok((load.clone(), predict_orchestrations(laws, &load.deployment(), effort)?))).collect()
}

/// Predicted over measured mean.
fn off((load, predicted): &Seen) -> f64 {
    predicted.mean_us.value / load.latency.mean_us()
}

/// The laws under which those who ask one after the other wait as long as was measured: their steps wait for processors, too, where these are at what the steps before have left, and the measured times of
/// steps have that in them. `laws` takes how long that is, in us.
fn with_what_is_held(
    alone: &OrchestrationRun,
    effort: &Effort,
    laws: impl Fn(f64) -> Result<OrchestrationLaws, DistributionError>,
) -> Result<OrchestrationLaws, OrchestrationError> {
    let mut held_us = 0.0;
    let mut found = laws(held_us)?;
    for _ in 0..REFININGS {
        let predicted = predict_orchestrations(&found, &alone.deployment(), effort)?;
        held_us = (held_us + predicted.mean_us.value - alone.latency.mean_us()).max(0.0);
        found = laws(held_us)?;
    }
    Ok(found)
}

/// The laws under which as many of the answers to the heaviest load are held up as were.
fn with_who_is_held_up(
    heaviest: &OrchestrationRun,
    effort: &Effort,
    mut laws: OrchestrationLaws,
) -> Result<OrchestrationLaws, OrchestrationError> {
    let (part, mean_us) = HeldUp::seen(&heaviest.latency);
    if part == 0.0 {
        return Ok(laws);
    }
    let late_us = HeldUp::LATE * heaviest.latency.quantile_us(0.5);
    laws.held_up = HeldUp { probability: part / laws.steps.len() as f64, mean_us };
    for _ in 0..REFININGS {
        let predicted = predict_orchestrations(&laws, &heaviest.deployment(), effort)?.above(late_us);
        // None in a short simulation: it is too seldom by much.
        let times = if predicted > 0.0 { part / predicted } else { UNSEEN_TIMES };
        laws.held_up.probability = (laws.held_up.probability * times).min(HeldUp::PROBABILITY_MAX);
    }
    Ok(laws)
}

/// The steps, of which those that work have `way` of it in the proportion of their times, of together `working_us`; where these were measured they worked `worked_us` of them, and waited for a processor for `held_us`.
fn fitted(
    steps: &[Passed],
    working_us: f64,
    way: Beside,
    worked_us: f64,
    held_us: f64,
) -> Result<Vec<OrchestrationStep>, DistributionError> {
    let worked_part = worked_us / working_us;
    let taken_part = (worked_part + held_us / working_us).min(WORK_PART_MAX.max(worked_part));
    let step = |Passed { name, mean_us, values, is_work }: &Passed| {
        let part = if *is_work { mean_us / working_us } else { 0.0 };
        let taken_us = if *is_work { taken_part * mean_us } else { 0.0 };
        let waits = Form::from(&waits(values.clone(), *mean_us, taken_us)?);
        Ok(OrchestrationStep {
            name: name.clone(),
            work_us: part * way.many,
            alone_us: part * (way.alone - way.many),
            waits,
            whose: Whose::Cloud,
        })
    };
    steps.iter().map(step).collect()
}

/// The law of what is left of such times, whose mean is `mean_us`, without `taken_us` of each.
fn waits(mut values: Vec<f64>, mean_us: f64, taken_us: f64) -> Result<Distribution, DistributionError> {
    let mean_of = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let left_us = mean_us - taken_us;
    let scale = mean_us / mean_of(&values);
    values.iter_mut().for_each(|value| *value = (*value * scale - taken_us).max(WAIT_PART_MIN * left_us));
    let scale = left_us / mean_of(&values);
    values.iter_mut().for_each(|value| *value *= scale);
    likeliest(values, left_us)
}

mod own_cloud;
#[cfg(test)]
mod tests;
