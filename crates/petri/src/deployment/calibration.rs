//! Costs from runs: what the stages and the processor time say of each step, and wake-ups from the latencies.

use super::{
    by_load::{EventCosts, LeftOut, LoadCosts, each_left_out, nearest},
    costs::{Costs, EventRun, Wake, Work},
    durations::Durations,
    event_path::Deployment,
    least_squares::{least_squares, regression},
    prediction::{Effort, Prediction, PredictionError, predict_answers, predict_events},
};
use crate::distribution::DistributionError;

/// Stages are held to be as variable as those that this share of all are not above: what is beyond is the scheduler's, and in the latencies.
pub(super) const USUAL: f64 = 0.99;
/// Probabilities of being held up that the search begins with, and the most that it comes to.
const HELD_UP_OFTEN: f64 = 0.01;
const HELD_UP_SELDOM: f64 = 0.001;
const HELD_UP_MAX: f64 = 0.5;
/// Part of a run of a simulation that a wake-up takes at most: one that is longer than the run is not seen, for what is late by it never comes.
const HELD_UP_PART: f64 = 0.1;
/// Most steps of a search from each point.
const STEPS_MAX: u32 = 8;
/// Part of the events, and the fewest of them, with which a search goes whose simulations take long; part of the sum of squares that a step of it takes off at least, or is the last one; and most steps with all
/// events behind it, from the better one of the points.
const FEW_EVENTS_PART: f64 = 0.1;
const FEW_EVENTS_MIN: u64 = 1_000;
const FEW_EVENTS_GAIN_MIN: f64 = 0.01;
const REFINING_STEPS_MAX: u32 = 2;
/// Parts of a publisher's work that its write is at least and at most.
const PUBLISH_PART: (f64, f64) = (0.3, 0.8);

/// What runs were calibrated to.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The costs, by load.
    pub costs: EventCosts,
    /// The loads, each with what the calibrated net makes of it.
    pub loads: Vec<(EventRun, Prediction)>,
}

/// Runs that nothing can be calibrated from.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CalibrationError {
    /// No runs.
    #[error("there is no run with events in the recording")]
    Empty,
    /// Only runs at a rate.
    #[error(
        "every run has a rate: how long a wake-up takes is seen where the next event goes when the last is answered, as with --load 1x2"
    )]
    Paced,
    /// A run in which nothing happened, or of which something is missing.
    #[error("run {publishers}x{subscribers}: no {what} were recorded")]
    Missing {
        /// Its publishers.
        publishers: u32,
        /// Its subscribers.
        subscribers: u32,
        /// What is missing.
        what: &'static str,
    },
    /// A cost that is none.
    #[error(transparent)]
    Law(#[from] DistributionError),
    /// The calibrated net cannot be simulated.
    #[error(transparent)]
    Prediction(#[from] PredictionError),
}

/// Estimates the costs of the event path: what is worked by all loads together, wake-ups of each load by itself ([`EventCosts`]). Of the runs of one load those in the
/// middle, by their mean latency, are taken together: one in which the machine was taken away for a while would outweigh all others.
///
/// # Errors
/// Runs without stages or latencies.
pub fn calibrate(runs: &[EventRun], effort: &Effort) -> Result<Calibration, CalibrationError> {
    let loads = merged(runs)?;
    let costs_of = |load: &EventRun| Ok(LoadCosts { load: deployment(load), costs: costs_under(load, &loads, effort)? });
    let costs = EventCosts::new(loads.iter().map(costs_of).collect::<Result<_, CalibrationError>>()?);
    let predicted = |load: &EventRun| -> Result<_, PredictionError> {
        let asked = deployment(load);
        Ok((load.clone(), predict_events(&costs.nearest(&asked).costs, &asked, effort)?))
    };
    let loads = loads.iter().map(predicted).collect::<Result<_, _>>()?;
    Ok(Calibration { costs, loads })
}

/// Each load as a net predicts it that was calibrated from the others alone: how far a calibration is off for what it has not seen. It takes about as long as the calibration.
///
/// # Errors
/// Runs without stages or latencies.
pub fn leave_out(runs: &[EventRun], effort: &Effort) -> Result<Vec<LeftOut<EventRun, Prediction>>, CalibrationError> {
    let by_others = |others: &[EventRun], load: &EventRun| {
        let asked = deployment(load);
        let nearest = nearest(others, &asked, deployment).expect("there are others");
        Ok::<_, CalibrationError>(predict_events(&costs_under(nearest, others, effort)?, &asked, effort)?)
    };
    Ok(each_left_out(&merged(runs)?, by_others))
}

/// The costs under one of some loads: work from all of them, its own wake-ups.
fn costs_under(load: &EventRun, loads: &[EventRun], effort: &Effort) -> Result<Costs, CalibrationError> {
    let work = worked(loads);
    let closed: Vec<&EventRun> = loads.iter().filter(|load| load.rate_per_s.is_none()).collect();
    // With a rate nothing is sent when an answer comes: how long that takes says little.
    let answered = *nearest(&closed, &deployment(load), |load| deployment(load)).ok_or(CalibrationError::Paced)?;
    let wake = searched(answered, effort, &answered.answered, |wake, effort| {
        predict_answers(&Costs { wake, subscriber_wake: wake, ..work.clone() }, &deployment(answered), effort)
    })?;
    let of = |subscriber_wake| Costs { wake, subscriber_wake, ..work.clone() };
    let subscriber_wake =
        searched(load, effort, &load.latency, |subscriber_wake, effort| predict_events(&of(subscriber_wake), &deployment(load), effort))?;
    Ok(of(subscriber_wake))
}

/// The deployment of a run.
pub fn deployment(run: &EventRun) -> Deployment {
    let EventRun { cores, publishers, subscribers, rate_per_s, .. } = *run;
    Deployment { cores, publishers, subscribers, rate_per_s }
}

fn merged(runs: &[EventRun]) -> Result<Vec<EventRun>, CalibrationError> {
    let mut loads: Vec<Vec<&EventRun>> = Vec::new();
    for run in runs {
        let stages = [&run.receive, &run.parse, &run.authorise, &run.execute, &run.send];
        let missing = |what| CalibrationError::Missing { publishers: run.publishers, subscribers: run.subscribers, what };
        if stages.iter().any(|stage| stage.count() == 0) {
            return Err(missing("stages of the Event Handler"));
        }
        if run.latency.count() == 0 || run.stream_reads == 0 {
            return Err(missing("deliveries"));
        }
        if run.answered.count() == 0 {
            return Err(missing("answers"));
        }
        match loads.iter_mut().find(|load| load[0].is_like(run)) {
            Some(load) => load.push(run),
            None => loads.push(vec![run]),
        }
    }
    let loads: Vec<EventRun> = loads.into_iter().map(typical).collect();
    if loads.is_empty() { Err(CalibrationError::Empty) } else { Ok(loads) }
}

/// The middle half of the runs of one load, by mean latency, as one; at least one of them.
fn typical(runs: Vec<&EventRun>) -> EventRun {
    let (first, others) = middle(runs, |run| run.latency.mean_us());
    let mut whole = first.clone();
    others.iter().for_each(|run| whole.add(run));
    whole
}

/// The middle half of some runs: the first of them, and the others.
pub(super) fn middle<T>(mut runs: Vec<&T>, latency_us: impl Fn(&T) -> f64) -> (&T, Vec<&T>) {
    runs.sort_by(|a, b| latency_us(a).total_cmp(&latency_us(b)));
    // As many are left out at either end; of two runs neither is in the middle.
    let apart = if runs.len() == 2 { 0 } else { runs.len().div_ceil(4).min((runs.len() - 1) / 2) };
    let (first, others) = runs[apart..runs.len() - apart].split_first().expect("one is in the middle");
    (*first, others.to_vec())
}

/// Everything but wake-ups.
fn worked(loads: &[EventRun]) -> Costs {
    let rows = |coefficients: fn(&EventRun) -> Vec<f64>, target: fn(&EventRun) -> f64| -> Vec<(Vec<f64>, f64)> {
        loads.iter().map(|load| (coefficients(load), target(load))).collect()
    };
    let receive = regression(&rows(|load| vec![1.0, load.batch()], |load| load.worked(load.receive.mean_us())), &[false, true]);
    let decide = |load: &EventRun| load.worked(load.parse.mean_us() + load.authorise.mean_us() + load.execute.mean_us());
    let execute = regression(&rows(|load| vec![1.0, f64::from(load.subscribers)], decide), &[true, false]);
    let send = |load: &EventRun| vec![f64::from(load.subscribers), load.batch(), 1.0];
    let send = regression(&rows(send, |load| load.worked(load.send.mean_us())), &[true, true, false]);
    let sends = |load: &EventRun| vec![1.0, load.publisher_sleeps as f64 / load.events as f64];
    let publisher = regression(&rows(sends, |load| load.publisher_us / load.events as f64), &[true, false]);
    let reads = |load: &EventRun| {
        let deliveries = load.latency.count() as f64;
        vec![load.stream_reads as f64 / deliveries, load.subscriber_sleeps as f64 / deliveries, 1.0]
    };
    let subscriber = regression(&rows(reads, |load| load.subscriber_us / load.latency.count() as f64), &[true, false, false]);
    let polls = loads.iter().map(EventRun::poll_us).sum::<f64>() / loads.len() as f64;

    // A sum of so many parts varies as much less as it has parts.
    let variation = |of: fn(&EventRun) -> f64| {
        let weight: f64 = loads.iter().map(|load| load.events as f64).sum();
        loads.iter().map(|load| of(load) * load.events as f64).sum::<f64>() / weight
    };
    let work = |mean_us, squared_variation| Work { mean_us, squared_variation };
    let receive_variation = variation(|load| load.receive.squared_variation(USUAL));
    let execute_variation = variation(|load| load.execute.squared_variation(USUAL));
    let send_variation = variation(|load| load.send.squared_variation(USUAL) * (f64::from(load.subscribers) + load.batch()));
    let (least, most) = PUBLISH_PART;
    let publish = send[0].clamp(least * publisher[0], most * publisher[0]);
    let unknown = Wake { usual_us: 0.0, held_up: 0.0, held_up_us: 0.0, held_up_busy: 0.0 };
    Costs {
        publisher_switch: work(publisher[1], send_variation),
        take: work(publisher[0] - publish, send_variation),
        publish: work(publish, send_variation),
        turn: work(receive[0] + polls, receive_variation),
        receive: work(receive[1], receive_variation),
        execute: work(execute[0], execute_variation),
        execute_each_us: execute[1],
        write: work(send[0], send_variation),
        log: work(send[2], send_variation),
        answer: work(send[1], send_variation),
        subscriber_switch: work(subscriber[1], send_variation),
        read: work(subscriber[0], send_variation),
        note: work(subscriber[2], execute_variation),
        wake: unknown,
        subscriber_wake: unknown,
    }
}

impl EventRun {
    fn staged_us(&self) -> f64 {
        [&self.receive, &self.parse, &self.authorise, &self.execute, &self.send].iter().map(|stage| stage.sum_us).sum()
    }

    /// What a stage worked of the time that it took: where all processors are taken a thread is held up in the middle of its work, which
    /// its processor time does not have.
    fn worked(&self, stage_us: f64) -> f64 {
        stage_us * self.broker_us.map_or(1.0, |broker_us| (broker_us / self.staged_us()).min(1.0))
    }

    /// What the broker's thread worked outside of its stages, by turn.
    fn poll_us(&self) -> f64 {
        self.broker_us.map_or(0.0, |broker_us| ((broker_us - self.staged_us()) / self.send.count() as f64).max(0.0))
    }
}

/// The wake-ups under which what is predicted of a load comes nearest to what was measured.
fn searched(
    load: &EventRun,
    effort: &Effort,
    measured: &Durations,
    predict: impl Fn(Wake, &Effort) -> Result<Prediction, PredictionError>,
) -> Result<Wake, PredictionError> {
    let event_us = load.elapsed_us / load.events as f64;
    nearest_wake(&[measured], event_us, effort, Search::AllEvents, |wake, effort| Ok(vec![predict(wake, effort)?]))
}

/// How wake-ups are searched: some hundred are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// Each with all events.
    AllEvents,
    /// With few events, and with all of them only near the end: where a simulation takes long.
    FewEventsFirst,
}

/// The wake-ups under which what is predicted comes nearest to what was measured: median, mean and 99th percentile of all that was, by the squares of the
/// logarithms of their ratios. An event takes `event_us` of a simulation's time at least.
pub(super) fn nearest_wake(
    measured: &[&Durations],
    event_us: f64,
    effort: &Effort,
    search: Search,
    predict: impl Fn(Wake, &Effort) -> Result<Vec<Prediction>, PredictionError>,
) -> Result<Wake, PredictionError> {
    // Nobody was held up for longer than the longest response took.
    let longest_us = measured.iter().map(|durations| durations.quantile_us(1.0)).fold(0.0, f64::max);
    let wake = |point, effort: &Effort| at(point, longest_us.min(HELD_UP_PART * (event_us * effort.events_of_run())));
    let residuals = |point: [f64; 4], effort: &Effort| -> Result<Vec<f64>, PredictionError> {
        let mut residuals = Vec::new();
        for (predicted, measured) in predict(wake(point, effort), effort)?.iter().zip(measured) {
            residuals.push((predicted.mean_us.value / measured.mean_us()).ln());
            residuals.extend([0.5, 0.99].map(|share| (predicted.quantile_us(share) / measured.quantile_us(share)).ln()));
        }
        Ok(residuals)
    };
    let lightest = measured.iter().min_by(|a, b| a.mean_us().total_cmp(&b.mean_us())).expect("something was measured");
    let latest_us = measured.iter().map(|durations| durations.quantile_us(0.99)).fold(0.0, f64::max);
    let few_events = ((FEW_EVENTS_PART * effort.events as f64) as u64).max(FEW_EVENTS_MIN).min(effort.events);
    let (first_effort, gain_min) = match search {
        Search::AllEvents => (*effort, 0.0),
        Search::FewEventsFirst => (Effort { events: few_events, ..*effort }, FEW_EVENTS_GAIN_MIN),
    };
    // A thread is held up often for a short while or seldom for a long one: between the two lies a ridge that a search does not cross.
    let mut best: Option<([f64; 4], f64)> = None;
    for (held_up, held_up_us) in [(HELD_UP_OFTEN, lightest.quantile_us(0.99)), (HELD_UP_SELDOM, latest_us)] {
        // Logarithms: of the usual time, of the probability, of the time of being held up, of the probability where no processor is idle.
        let first = [0.25 * lightest.quantile_us(0.5), held_up, held_up_us, held_up].map(f64::ln);
        let (point, squares) = least_squares(first, STEPS_MAX, gain_min, |point| residuals(point, &first_effort))?;
        if best.is_none_or(|(_, least)| squares < least) {
            best = Some((point, squares));
        }
    }
    let (mut point, _) = best.expect("it was searched from two points");
    if search == Search::FewEventsFirst {
        (point, _) = least_squares(point, REFINING_STEPS_MAX, FEW_EVENTS_GAIN_MIN, |point| residuals(point, effort))?;
    }
    Ok(wake(point, effort))
}

fn at([usual, held_up, held_up_us, busy]: [f64; 4], held_up_us_max: f64) -> Wake {
    Wake {
        usual_us: usual.exp(),
        held_up: held_up.exp().min(HELD_UP_MAX),
        held_up_us: held_up_us.exp().min(held_up_us_max),
        held_up_busy: busy.exp().min(HELD_UP_MAX),
    }
}
