//! Fitting the laws of orchestrations: what is on their way, what they wait for, and how often they are held up.

use super::{
    Beside, HeldUp, OrchestrationError, OrchestrationLaws, OrchestrationRun, OrchestrationStep, Passed, WAIT_PART_MIN, Whose, laws::waking,
};
use crate::{
    deployment::{
        durations::likeliest,
        prediction::{Effort, Prediction, PredictionError, predict_orchestrations},
    },
    distribution::{Distribution, DistributionError, Form},
};

/// Most of a step that is work: where all of it would be, threads are woken all the same.
pub(super) const WORK_PART_MAX: f64 = 0.95;
/// Shares of the work that may be on the way of an orchestration which are tried, the others being beside it.
const ON_THE_WAY: [f64; 7] = [1.0, 0.85, 0.7, 0.55, 0.4, 0.25, 0.1];
/// Part of the orchestrations with which these are tried, and the fewest.
const FEW_PART: f64 = 0.25;
const FEW_MIN: u64 = 1_000;
/// How often what an orchestration waits for its own work is reckoned anew: the less a step waits, the sooner it is in the way of what the last one has left.
const REFININGS: u32 = 3;
/// By how much what a simulation has not seen is made likelier.
const UNSEEN_TIMES: f64 = 10.0;

/// The laws where work goes to any processor: between clouds, or where it is not known who worked how much.
pub(super) fn fit_anywhere(loads: &[OrchestrationRun], effort: &Effort) -> Result<OrchestrationLaws, OrchestrationError> {
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
pub(super) fn few(effort: &Effort) -> Effort {
    Effort { events: ((FEW_PART * effort.events as f64) as u64).max(FEW_MIN).min(effort.events), ..*effort }
}

/// The sum of the squares of the logarithms of how many times too high the means of loads are.
pub(super) fn squares(laws: &OrchestrationLaws, loads: &[OrchestrationRun], effort: &Effort) -> Result<f64, PredictionError> {
    Ok(predicted(laws, loads, effort)?.iter().map(|seen| off(seen).ln().powi(2)).sum())
}

/// A load, and what the net makes of it.
pub(super) type Seen = (OrchestrationRun, Prediction);

pub(super) fn predicted(laws: &OrchestrationLaws, loads: &[OrchestrationRun], effort: &Effort) -> Result<Vec<Seen>, PredictionError> {
    loads.iter().map(|load| Ok((load.clone(), predict_orchestrations(laws, &load.deployment(), effort)?))).collect()
}

/// Predicted over measured mean.
pub(super) fn off((load, predicted): &Seen) -> f64 {
    predicted.mean_us.value / load.latency.mean_us()
}

/// The laws under which those who ask one after the other wait as long as was measured: their steps wait for processors, too, where these are at what the steps before have left, and the measured times of
/// steps have that in them. `laws` takes how long that is, in us.
pub(super) fn with_what_is_held(
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
pub(super) fn with_who_is_held_up(
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
pub(super) fn fitted(
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
