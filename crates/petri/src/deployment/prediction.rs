//! What a deployment will do: its net, simulated, and what is read from that.

use super::{
    costs::{Costs, Work},
    event_path::{Deployment, EVENT_PATH_SUBSCRIBERS_MAX, EventPath, event_path},
    graph::{Graph, GraphCosts, GraphDeployment},
    graph_path::{GRAPH_OPERATORS_MAX, graph_path},
    orchestration::OrchestrationLaws,
    orchestration_path::{ORCHESTRATION_CORES_MAX, OrchestrationDeployment, orchestration},
};
use crate::{
    distribution::DistributionError,
    net::Net,
    simulate::{self, Estimate, Question, Response, SimulationError, Tag, simulate},
};

/// Runs of a simulation: their spread is what the interval is made from.
const RUNS: u64 = 16;
/// Points of the curve, evenly spaced in the logarithm: neighbours differ by less than 1.6 %.
const POINTS: usize = 1_000;
/// The curve's first point in us.
const FIRST_US: f64 = 0.1;

/// How much is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Events or orchestrations, about, of all runs together; 1,000 or more.
    pub events: u64,
    /// Decides all random numbers.
    pub seed: u64,
    /// Threads to use; answers do not depend on it.
    pub threads: usize,
}

impl Effort {
    /// Events of one of the runs of a simulation.
    pub(super) fn events_of_run(&self) -> f64 {
        self.events as f64 / RUNS as f64
    }
}

/// A predicted response time.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Its mean in us, with the interval that holds the net's mean at 99 %.
    pub mean_us: Estimate,
    /// [`Self::SHARES`] of all responses and what they are not above, in us, with the interval that holds the net's at 99 %; its upper end is infinite where there were
    /// too few responses to tell one.
    pub quantiles_us: Vec<(f64, Estimate)>,
    /// Times in us, and the share of all responses that are not above them.
    pub curve: Vec<(f64, f64)>,
    /// Responses a second: deliveries, or answers.
    pub per_second: f64,
    /// How many responses were simulated.
    pub count: u64,
}

impl Prediction {
    /// Shares whose quantiles are told.
    pub const SHARES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

    /// What `share` of all responses are not above, in us.
    pub fn quantile_us(&self, share: f64) -> f64 {
        quantile(&self.curve, share)
    }

    /// The share of all responses that take longer than this many us.
    pub(super) fn above(&self, us: f64) -> f64 {
        let next = self.curve.partition_point(|(time, _)| *time < us);
        1.0 - self.curve.get(next).map_or(1.0, |(_, share)| *share)
    }

    /// What one of [`Self::SHARES`] of all responses are not above, with its interval.
    ///
    /// # Panics
    /// It is none of them.
    pub fn told_quantile_us(&self, share: f64) -> Estimate {
        self.quantiles_us.iter().find(|(told, _)| *told == share).expect("one of the shares that are told").1
    }
}

/// Why nothing is predicted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PredictionError {
    /// A number that means nothing.
    #[error("{0}")]
    Deployment(String),
    /// A cost that is none.
    #[error(transparent)]
    Law(#[from] DistributionError),
    /// The net cannot be simulated.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// Not one response in the time that was simulated.
    #[error("no response in {0} us: the deployment does not keep up, or --events is too small")]
    Silent(f64),
    /// More comes than can be served.
    #[error("{asked} events a second are asked for, {served} are served: the queue grows without end")]
    Overload {
        /// What was asked.
        asked: f64,
        /// What came out.
        served: f64,
    },
}

/// Threads that an event passes.
const THREADS: u32 = 3;
/// Share of the events that are asked for that have to come out.
const SERVED_MIN: f64 = 0.98;

/// The latencies of a deployment's events, from publisher to subscriber.
///
/// # Errors
/// A deployment that is none, or that does not keep up with its rate.
pub fn predict_events(costs: &Costs, deployment: &Deployment, effort: &Effort) -> Result<Prediction, PredictionError> {
    predicted(costs, deployment, |path| path.delivered, deployment.subscribers, effort)
}

/// How long a deployment's publishers wait for their answers.
///
/// # Errors
/// As of [`predict_events`].
pub fn predict_answers(costs: &Costs, deployment: &Deployment, effort: &Effort) -> Result<Prediction, PredictionError> {
    predicted(costs, deployment, |path| path.answered, 1, effort)
}

/// Responses of which each event has so many.
fn predicted(
    costs: &Costs,
    deployment: &Deployment,
    tag: fn(&EventPath) -> Tag,
    responses_of_event: u32,
    effort: &Effort,
) -> Result<Prediction, PredictionError> {
    let Deployment { cores, publishers, subscribers, rate_per_s } = *deployment;
    for (what, count, most) in
        [("cores", cores, u32::MAX), ("publishers", publishers, u32::MAX), ("subscribers", subscribers, EVENT_PATH_SUBSCRIBERS_MAX)]
    {
        if count == 0 || count > most {
            return Err(PredictionError::Deployment(format!("{count} {what}; expected 1 to {most}")));
        }
    }
    if rate_per_s.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
        return Err(PredictionError::Deployment("a rate is above 0".to_owned()));
    }
    let path = event_path(costs, deployment)?;
    let event_us = rate_per_s.map_or_else(|| event_us(costs, deployment), |rate| 1e6 / (rate * f64::from(publishers)));
    let prediction = simulated(&path.net, tag(&path), event_us * effort.events_of_run(), effort)?;
    if let Some(rate) = rate_per_s {
        let (asked, served) = (rate * f64::from(publishers), prediction.per_second / f64::from(responses_of_event));
        if served < SERVED_MIN * asked {
            return Err(PredictionError::Overload { asked, served });
        }
    }
    Ok(prediction)
}

/// About the time between two events in closed loop: what the processors need for one, or, where there are few publishers, what passes until each is
/// answered.
fn event_us(costs: &Costs, deployment: &Deployment) -> f64 {
    let sum = |works: &[Work]| works.iter().map(|work| work.mean_us).sum::<f64>();
    let subscribers = f64::from(deployment.subscribers);
    let answered_us = sum(&[costs.take, costs.publish, costs.turn, costs.receive, costs.execute, costs.log, costs.answer])
        + subscribers * (costs.execute_each_us + costs.write.mean_us);
    let worked_us = answered_us + subscribers * sum(&[costs.read, costs.note]);
    let cycle_us = answered_us + costs.publisher_switch.mean_us + 2.0 * costs.wake.mean_us();
    (worked_us / f64::from(deployment.cores.min(THREADS))).max(cycle_us / f64::from(deployment.publishers))
}

/// The response times of orchestrations by so many consumers that ask one after the other, where all share the processors.
///
/// # Errors
/// Numbers that are 0, more than [`ORCHESTRATION_CORES_MAX`] processors, or others who have more than all of them.
pub fn predict_orchestrations(
    laws: &OrchestrationLaws,
    deployment: &OrchestrationDeployment,
    effort: &Effort,
) -> Result<Prediction, PredictionError> {
    let OrchestrationDeployment { cores, others, consumers } = *deployment;
    if consumers == 0 || cores == 0 || cores > ORCHESTRATION_CORES_MAX {
        return Err(PredictionError::Deployment(format!(
            "{consumers} consumers and {cores} processors; expected 1 or more, and {ORCHESTRATION_CORES_MAX} processors at the most"
        )));
    }
    if !(0.0..=f64::from(cores)).contains(&others) {
        return Err(PredictionError::Deployment(format!("others keep {others} of {cores} processors busy; expected 0 to all of them")));
    }
    let (net, tag, between_us) = orchestration(laws, deployment)?;
    simulated(&net, tag, between_us * effort.events_of_run(), effort)
}

/// What a graph's results of a level will do.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphPrediction {
    /// The level; 0 is the most urgent.
    pub level: u8,
    /// From the push of the newest event that a result is made of until it is read.
    pub response: Prediction,
    /// Results a second if every event becomes one that can: of a graph that does not keep up newer events take the place of older ones, and fewer come.
    pub expected_per_second: f64,
}

/// Fewest periods of the supplier that pushes least often, in a run of a simulation.
const PERIODS_MIN: f64 = 20.0;

/// The latencies of a graph's results, by level.
///
/// # Errors
/// Numbers that mean nothing, a graph with a mistake or too many operators, or no result in the time that was simulated.
pub fn predict_graph(
    graph: &Graph,
    costs: &GraphCosts,
    deployment: &GraphDeployment,
    effort: &Effort,
) -> Result<Vec<GraphPrediction>, PredictionError> {
    let refused = |reason: String| Err(PredictionError::Deployment(reason));
    let GraphDeployment { cores, workers, rate } = *deployment;
    if cores == 0 || workers == 0 {
        return refused(format!("{cores} processors and {workers} workers; expected 1 or more"));
    }
    if !(rate > 0.0 && rate.is_finite()) {
        return refused(format!("suppliers push at {rate} times their rate; expected a number above 0"));
    }
    if let Some(mistake) = graph.mistake() {
        return refused(format!("graph {}: {mistake}", graph.name));
    }
    if costs.operators.len() != graph.operators.len() || graph.operators.len() > GRAPH_OPERATORS_MAX {
        return refused(format!(
            "graph {} has {} operators, and {} costs are known; expected as many, {GRAPH_OPERATORS_MAX} at the most",
            graph.name,
            graph.operators.len(),
            costs.operators.len()
        ));
    }
    let path = graph_path(graph, costs, deployment)?;
    let periods = || graph.suppliers.iter().map(|supplier| supplier.period_us / rate);
    let event_us = 1.0 / periods().map(|period_us| 1.0 / period_us).sum::<f64>();
    let horizon_us = (event_us * effort.events_of_run()).max(PERIODS_MIN * periods().fold(0.0, f64::max));
    let expected = graph.results_per_us(costs, rate);
    let of_level = |(level, tag): &(u8, Tag)| {
        let per_us: f64 = graph.outputs.iter().filter(|output| output.level == *level).map(|output| expected[output.from]).sum();
        let response = simulated(&path.net, *tag, horizon_us, effort)?;
        Ok(GraphPrediction { level: *level, response, expected_per_second: 1e6 * per_us })
    };
    path.levels.iter().map(of_level).collect()
}

fn simulated(net: &Net, tag: Tag, horizon_us: f64, effort: &Effort) -> Result<Prediction, PredictionError> {
    let horizon_us = horizon_us.max(FIRST_US * 10.0);
    let ratio = (horizon_us / FIRST_US).powf(1.0 / (POINTS - 1) as f64);
    let instants: Vec<f64> = (0..POINTS).map(|point| FIRST_US * ratio.powi(point as i32)).collect();
    let question = Question { instants: instants.clone(), measures: Vec::new(), target: None, tag: Some(tag) };
    let options = simulate::Options { seed: effort.seed, runs: RUNS, threads: effort.threads, ..simulate::Options::default() };
    let answer = simulate(net, &question, &options)?;
    let Some(Response { cdf, half_widths, mean, count }) = answer.response else { return Err(PredictionError::Silent(horizon_us)) };
    let curve: Vec<(f64, f64)> = instants.into_iter().zip(cdf.iter().map(|share| share.value)).collect();
    Ok(Prediction {
        mean_us: mean,
        quantiles_us: Prediction::SHARES.into_iter().map(|share| (share, quantile_within(&curve, &half_widths, share))).collect(),
        per_second: count as f64 / (RUNS as f64 * horizon_us) * 1e6,
        curve,
        count,
    })
}

/// The quantile, between those of the shares that are as far below and above as the share itself may be off there (Woodruff, "Confidence intervals for medians and other position measures", Journal of the
/// American Statistical Association 47, 1952); no nearer than the points of the curve around it.
fn quantile_within(curve: &[(f64, f64)], half_widths: &[f64], share: f64) -> Estimate {
    let value = quantile(curve, share);
    let point_of = |share: f64| curve.partition_point(|(_, reached)| *reached < share);
    let above = point_of(share).min(curve.len() - 1);
    let below = above.saturating_sub(1);
    let off = half_widths[above].max(half_widths[below]);
    let low = curve[point_of(share - off).saturating_sub(1)].0.min(curve[below].0);
    let high = match curve.get(point_of(share + off)) {
        Some((time, _)) if share + off < 1.0 => time.max(curve[above].0),
        _ => f64::INFINITY,
    };
    Estimate { value, low: low.min(value), high: high.max(value) }
}

/// Between two points of the curve as far as the share is between theirs.
fn quantile(curve: &[(f64, f64)], share: f64) -> f64 {
    let above = curve.partition_point(|(_, reached)| *reached < share).min(curve.len() - 1);
    let (time, reached) = curve[above];
    let Some((time_below, reached_below)) = above.checked_sub(1).map(|below| curve[below]) else { return time };
    if reached <= reached_below {
        time
    } else {
        time_below + (time - time_below) * ((share - reached_below) / (reached - reached_below)).clamp(0.0, 1.0)
    }
}
