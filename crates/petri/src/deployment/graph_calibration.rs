//! Costs of a graph from runs of it under load: what its operators lasted, what each thread worked, and wake-ups from the latencies.

use super::{
    by_load::{GraphCostsByLoad, LeftOut, LoadCosts, each_left_out, nearest},
    calibration::{Search, middle, nearest_wake},
    costs::{Wake, Work},
    durations::Durations,
    graph::{Graph, GraphCosts, GraphRun, GraphSource, OperatorCost},
    least_squares::regression,
    prediction::{Effort, GraphPrediction, PredictionError, predict_graph},
};

/// Variance over squared mean that a round has at most: what is beyond is the scheduler's, and in the latencies.
const SQUARED_VARIATION_MAX: f64 = 1.0;
/// An operator of whose rounds at least this part has a result is one that always has: what is missing was shed, or was under way.
const ALWAYS: f64 = 0.95;

/// What runs of a graph were calibrated to.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphCalibration {
    /// The costs, by load.
    pub costs: GraphCostsByLoad,
    /// The loads, each with what the calibrated net makes of it.
    pub loads: Vec<(GraphRun, Vec<GraphPrediction>)>,
}

/// Runs that nothing can be calibrated from.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GraphCalibrationError {
    /// No runs.
    #[error("there is no run of a graph in the recording")]
    Empty,
    /// Runs of another graph.
    #[error("a run has {found} operators and {outputs} outputs; the graph has others")]
    Another {
        /// Its operators.
        found: usize,
        /// Its outputs.
        outputs: usize,
    },
    /// Nothing came out.
    #[error("with {workers} workers and {percent:.0} % of the declared rate no {what}")]
    Missing {
        /// Its workers.
        workers: u32,
        /// How often its suppliers pushed.
        percent: f64,
        /// What is missing.
        what: String,
    },
    /// The calibrated net cannot be simulated.
    #[error(transparent)]
    Prediction(#[from] PredictionError),
}

/// Estimates the costs of a graph: what is worked by all loads together, wake-ups of each load by itself. Of the runs of one load those in the middle, by their mean latency, are taken together.
///
/// # Errors
/// Runs of another graph, or without results.
pub fn calibrate_graph(graph: &Graph, runs: &[GraphRun], effort: &Effort) -> Result<GraphCalibration, GraphCalibrationError> {
    let loads = merged(graph, runs)?;
    let costs_of = |load: &GraphRun| Ok(LoadCosts { load: load.deployment(), costs: costs_under(graph, load, &loads, effort)? });
    let costs = GraphCostsByLoad::new(loads.iter().map(costs_of).collect::<Result<_, PredictionError>>()?);
    let predicted = |load: &GraphRun| -> Result<_, PredictionError> {
        let asked = load.deployment();
        Ok((load.clone(), predict_graph(graph, &costs.nearest(&asked).costs, &asked, effort)?))
    };
    let loads = loads.iter().map(predicted).collect::<Result<_, _>>()?;
    Ok(GraphCalibration { costs, loads })
}

/// Each load as a net predicts it that was calibrated from the others alone. It takes about as long as the calibration.
///
/// # Errors
/// Runs of another graph, or without results.
pub fn leave_out_of_graph(
    graph: &Graph,
    runs: &[GraphRun],
    effort: &Effort,
) -> Result<Vec<LeftOut<GraphRun, Vec<GraphPrediction>>>, GraphCalibrationError> {
    let by_others = |others: &[GraphRun], load: &GraphRun| {
        let asked = load.deployment();
        let nearest = nearest(others, &asked, GraphRun::deployment).expect("there are others");
        predict_graph(graph, &costs_under(graph, nearest, others, effort)?, &asked, effort)
    };
    Ok(each_left_out(&merged(graph, runs)?, by_others))
}

/// The costs under one of some loads: work from all of them, its own wake-ups.
fn costs_under(graph: &Graph, load: &GraphRun, loads: &[GraphRun], effort: &Effort) -> Result<GraphCosts, PredictionError> {
    let work = worked(graph, loads);
    let measured: Vec<Durations> = graph.levels().into_iter().map(|level| load.of_level(graph, level)).collect();
    let event_us = load.elapsed_us / load.sent as f64;
    let wake = nearest_wake(&measured.iter().collect::<Vec<_>>(), event_us, effort, Search::FewEventsFirst, |wake, effort| {
        let of_levels = predict_graph(graph, &GraphCosts { wake, ..work.clone() }, &load.deployment(), effort)?;
        Ok(of_levels.into_iter().map(|of_level| of_level.response).collect())
    })?;
    Ok(GraphCosts { wake, ..work })
}

fn merged(graph: &Graph, runs: &[GraphRun]) -> Result<Vec<GraphRun>, GraphCalibrationError> {
    let mut loads: Vec<Vec<&GraphRun>> = Vec::new();
    for run in runs {
        if (run.operators.len(), run.latencies.len()) != (graph.operators.len(), graph.outputs.len()) {
            return Err(GraphCalibrationError::Another { found: run.operators.len(), outputs: run.latencies.len() });
        }
        let missing = |what: String| GraphCalibrationError::Missing { workers: run.workers, percent: 100.0 * run.rate, what };
        if run.sent == 0 {
            return Err(missing("events were pushed".to_owned()));
        }
        if let Some(level) = graph.levels().into_iter().find(|level| run.of_level(graph, *level).count() == 0) {
            return Err(missing(format!("results of level {level} came")));
        }
        match loads.iter_mut().find(|load| load[0].is_like(run)) {
            Some(load) => load.push(run),
            None => loads.push(vec![run]),
        }
    }
    if loads.is_empty() {
        return Err(GraphCalibrationError::Empty);
    }
    let whole = |runs: Vec<&GraphRun>| {
        let (first, others) = middle(runs, GraphRun::mean_us);
        let mut whole = first.clone();
        others.iter().for_each(|run| whole.add(run));
        whole
    };
    Ok(loads.into_iter().map(whole).collect())
}

/// Everything but wake-ups.
fn worked(graph: &Graph, loads: &[GraphRun]) -> GraphCosts {
    let sum = |of: &dyn Fn(&GraphRun) -> f64| loads.iter().map(of).sum::<f64>();
    let results = |load: &GraphRun| load.latencies.iter().map(Durations::count).sum::<u64>() as f64;
    let (sent, rows) = (|load: &GraphRun| load.sent as f64, |load: &GraphRun| load.rows(graph) as f64);
    // A thread has something to do as time goes, whatever comes.
    let shard = |load: &GraphRun| (vec![sent(load), rows(load), results(load), load.elapsed_us], load.shard_us);
    let shard = regression(&loads.iter().map(shard).collect::<Vec<_>>(), &[true, true, true, false]);
    let each = |count: &dyn Fn(&GraphRun) -> f64, worked: &dyn Fn(&GraphRun) -> f64| {
        let rows: Vec<_> = loads.iter().map(|load| (vec![count(load), load.elapsed_us], worked(load))).collect();
        regression(&rows, &[true, false])[0]
    };
    let busy_us = sum(&|load| load.operators.iter().map(|operator| operator.busy_us).sum());
    // A round lasts longer than it works where its worker is stopped in between, and a worker works beside its rounds.
    let part = if busy_us > 0.0 { (sum(&|load| load.workers_us) / busy_us).min(1.0) } else { 1.0 };
    GraphCosts {
        push_us: each(&sent, &|load| load.suppliers_us),
        take_us: shard[0],
        finish_us: shard[1],
        publish_us: shard[2],
        read_us: each(&results, &|load| load.consumers_us),
        begin_us: ((sum(&|load| load.workers_us) - busy_us) / sum(&rows).max(1.0)).max(0.0),
        operators: (0..graph.operators.len()).map(|operator| operator_cost(graph, loads, operator, part)).collect(),
        wake: Wake { usual_us: 0.0, held_up: 0.0, held_up_us: 0.0, held_up_busy: 0.0 },
    }
}

fn operator_cost(graph: &Graph, loads: &[GraphRun], operator: usize, part: f64) -> OperatorCost {
    let rounds: u64 = loads.iter().map(|load| load.operators[operator].rounds).sum();
    let lasted_us = loads.iter().map(|load| load.operators[operator].busy_us).sum::<f64>() / rounds.max(1) as f64;
    let longest_us = loads.iter().map(|load| load.operators[operator].longest_us).fold(0.0, f64::max);
    // Fewest events are shed where the least comes.
    let lightest = loads.iter().min_by(|a, b| a.rate.total_cmp(&b.rate)).expect("there is a load");
    let of_rounds = |count: f64| count / lightest.operators[operator].rounds.max(1) as f64;
    let taken = graph.readers(GraphSource::Operator(operator)).map(|(reader, input)| {
        let step = graph.operators[reader].inputs[input].step;
        of_rounds(f64::from(step) * lightest.operators[reader].rounds as f64)
    });
    let published = graph.outputs.iter().zip(&lightest.latencies).filter(|(output, _)| output.from == operator);
    let emits = taken.chain(published.map(|(_, latency)| of_rounds(latency.count() as f64))).fold(0.0, f64::max);
    OperatorCost {
        work: Work { mean_us: lasted_us * part, squared_variation: squared_variation(lasted_us, longest_us, rounds) },
        emits: if emits >= ALWAYS { 1.0 } else { emits },
    }
}

/// That of the lognormal law with this mean whose values are above the longest one once in so many: with `z` the normal law's quantile of that, `longest / mean = exp(z s - s^2 / 2)`, and the
/// squared variation is `exp(s^2) - 1`.
fn squared_variation(mean_us: f64, longest_us: f64, rounds: u64) -> f64 {
    if rounds < 2 || mean_us <= 0.0 || longest_us <= mean_us {
        return 0.0;
    }
    let z = crate::special::normal_quantile(1.0 - 1.0 / rounds as f64);
    let spread = z - (z * z - 2.0 * (longest_us / mean_us).ln()).max(0.0).sqrt();
    (spread * spread).exp_m1().clamp(0.0, SQUARED_VARIATION_MAX)
}
