//! Nets of graphs whose answers can be reckoned, and a calibration from runs that a net has made.

use super::*;

const EFFORT: Effort = Effort { events: 20_000, seed: 1, threads: 1 };

fn supplier(topic: &str, period_us: f64) -> GraphSupplier {
    GraphSupplier { topic: topic.to_owned(), period_us }
}

fn operator(name: &str, level: u8, from: &[GraphSource]) -> GraphOperator {
    let inputs = from.iter().map(|from| GraphInput { from: *from, step: 1 }).collect();
    GraphOperator { name: name.to_owned(), level, inputs, is_started_by_any: false }
}

fn output(topic: &str, from: usize, level: u8) -> GraphOutput {
    GraphOutput { topic: topic.to_owned(), from, level }
}

/// Two operators one behind the other, of one supplier.
fn row(period_us: f64, rows: &[&[usize]]) -> Graph {
    let from = |place| [GraphSource::Operator(place)];
    Graph {
        name: "row".to_owned(),
        is_preemptive: true,
        suppliers: vec![supplier("in", period_us)],
        operators: vec![operator("first", 0, &[GraphSource::Supplier(0)]), operator("second", 0, &from(0))],
        rows: rows.iter().map(|row| row.to_vec()).collect(),
        outputs: vec![output("out", 1, 0)],
    }
}

fn cost(mean_us: f64) -> OperatorCost {
    OperatorCost { work: Work { mean_us, squared_variation: 0.0 }, emits: 1.0 }
}

fn costs(operators: &[f64]) -> GraphCosts {
    GraphCosts {
        push_us: 4.0,
        take_us: 6.0,
        finish_us: 3.0,
        publish_us: 5.0,
        read_us: 2.0,
        begin_us: 1.0,
        operators: operators.iter().map(|us| cost(*us)).collect(),
        wake: Wake { usual_us: 10.0, held_up: 0.0, held_up_us: 0.0, held_up_busy: 0.0 },
    }
}

fn deployment(cores: u32, workers: u32, rate: f64) -> GraphDeployment {
    GraphDeployment { cores, workers, rate }
}

fn predict(graph: &Graph, costs: &GraphCosts, deployment: &GraphDeployment) -> Vec<GraphPrediction> {
    predict_graph(graph, costs, deployment, &EFFORT).expect("it can be predicted")
}

fn mean_us(graph: &Graph, costs: &GraphCosts, deployment: &GraphDeployment) -> f64 {
    predict(graph, costs, deployment)[0].response.mean_us.value
}

#[track_caller]
fn assert_near(found: f64, expected: f64, part: f64) {
    assert!((found / expected - 1.0).abs() < part, "{found} instead of {expected}");
}

#[test]
fn where_nothing_waits_a_result_takes_the_sum_of_its_steps() {
    let costs = costs(&[30.0, 40.0]);
    // Push, shard woken, taken, worker woken and begun, run, shard woken, finished and published, consumer woken, read.
    let one_row = 4.0 + 10.0 + 6.0 + 10.0 + 1.0 + 70.0 + 10.0 + 8.0 + 10.0 + 2.0;
    let found = predict(&row(1e4, &[&[0, 1]]), &costs, &deployment(4, 1, 1.0));
    assert_near(found[0].response.mean_us.value, one_row, 0.01);
    assert_near(found[0].response.per_second, 100.0, 0.05);
    assert_near(found[0].expected_per_second, 100.0, 1e-9);
    // Two rounds of their own: the shard finishes the first one, and a worker is woken for the second.
    let two_rows = one_row + 10.0 + 3.0 + 10.0 + 1.0;
    assert_near(mean_us(&row(1e4, &[&[0], &[1]]), &costs, &deployment(4, 1, 1.0)), two_rows, 0.01);
    // On one processor nobody waits until another one wakes up, but for the supplier, whose time has not begun then; and the shard, which is more urgent, goes on before it has slept.
    let on_one = mean_us(&row(1e4, &[&[0, 1]]), &costs, &deployment(1, 1, 1.0));
    assert_near(on_one, one_row - 40.0, 0.02);
}

#[test]
fn a_worker_more_does_what_one_does_not_come_to() {
    let source = |place| [GraphSource::Supplier(place)];
    let graph = Graph {
        name: "beside".to_owned(),
        is_preemptive: true,
        suppliers: vec![supplier("a", 1_000.0), supplier("b", 1_000.0)],
        operators: vec![operator("of a", 0, &source(0)), operator("of b", 0, &source(1))],
        rows: vec![vec![0], vec![1]],
        outputs: vec![output("x", 0, 0), output("y", 1, 0)],
    };
    let costs = costs(&[800.0, 800.0]);
    let (one, two) = (predict(&graph, &costs, &deployment(4, 1, 1.0)), predict(&graph, &costs, &deployment(4, 2, 1.0)));
    assert_near(two[0].response.per_second, 2_000.0, 0.02);
    assert_near(one[0].expected_per_second, 2_000.0, 1e-9);
    // One worker is busy all the time, and newer events take the place of those that wait.
    assert!((1_000.0..1_250.0).contains(&one[0].response.per_second), "{}", one[0].response.per_second);
    assert!(two[0].response.mean_us.value < one[0].response.mean_us.value);
    // Half as often one worker comes to all of it.
    assert_near(predict(&graph, &costs, &deployment(4, 1, 0.5))[0].response.per_second, 1_000.0, 0.02);
}

#[test]
fn urgent_rounds_stop_the_others_only_where_they_may() {
    let source = |place| [GraphSource::Supplier(place)];
    let long = ["one", "two", "three", "four"];
    let graph = |is_preemptive| Graph {
        name: "levels".to_owned(),
        is_preemptive,
        suppliers: std::iter::once(supplier("urgent", 1_000.0)).chain(long.map(|name| supplier(name, 4_500.0))).collect(),
        operators: std::iter::once(operator("urgent", 0, &source(0)))
            .chain((1..).zip(long).map(|(place, name)| operator(name, 1, &source(place))))
            .collect(),
        rows: (0..=long.len()).map(|place| vec![place]).collect(),
        outputs: std::iter::once(output("u", 0, 0)).chain((1..).zip(long).map(|(place, name)| output(name, place, 1))).collect(),
    };
    let costs = costs(&[20.0, 2_000.0, 2_000.0, 2_000.0, 2_000.0]);
    let stopping = predict(&graph(true), &costs, &deployment(2, 5, 1.0));
    let waiting = predict(&graph(false), &costs, &deployment(2, 5, 1.0));
    assert_eq!(stopping.iter().map(|of_level| of_level.level).collect::<Vec<_>>(), [0, 1]);
    // The processor that a supplier gives up is the shard's and then the urgent worker's, or whosever it happens to be.
    let [stopped, waited] = [&stopping[0], &waiting[0]].map(|of_level| of_level.response.mean_us.value);
    assert!(1.2 * stopped < waited, "{stopped} and {waited}");
    assert!(stopping[1].response.mean_us.value > 2_000.0);
    // With a processor for everybody nobody stops anybody.
    let alone = 4.0 + 10.0 + 6.0 + 10.0 + 1.0 + 20.0 + 10.0 + 8.0 + 10.0 + 2.0;
    for graph in [graph(true), graph(false)] {
        let beside = predict(&graph, &costs, &deployment(8, 5, 1.0))[0].response.mean_us.value;
        assert!((0.9 * alone..1.2 * alone).contains(&beside), "{beside}");
    }
}

#[test]
fn what_several_events_make_is_as_old_as_the_newest_and_a_filter_keeps_its_part() {
    let graph = Graph {
        name: "pair".to_owned(),
        is_preemptive: true,
        suppliers: vec![supplier("a", 10_000.0), supplier("b", 10_000.0)],
        operators: vec![
            operator("both", 0, &[GraphSource::Supplier(0), GraphSource::Supplier(1)]),
            GraphOperator { inputs: vec![GraphInput { from: GraphSource::Operator(0), step: 4 }], ..operator("fourth", 0, &[]) },
        ],
        rows: vec![vec![0], vec![1]],
        outputs: vec![output("out", 1, 0)],
    };
    let found = predict(&graph, &costs(&[10.0, 20.0]), &deployment(4, 1, 1.0));
    let steps = 4.0 + 10.0 + 6.0 + 10.0 + 1.0 + 10.0 + 10.0 + 3.0 + 10.0 + 1.0 + 20.0 + 10.0 + 8.0 + 10.0 + 2.0;
    assert_near(found[0].response.mean_us.value, steps, 0.02);
    assert_near(found[0].expected_per_second, 25.0, 1e-9);
    assert_near(found[0].response.per_second, 25.0, 0.05);
    let mut half = costs(&[10.0, 20.0]);
    half.operators[0].emits = 0.5;
    let found = predict(&graph, &half, &deployment(4, 1, 1.0));
    assert_near(found[0].response.per_second, 12.5, 0.1);
}

/// A run of the net itself, with the figures that a recorder has of it.
fn run_of(graph: &Graph, costs: &GraphCosts, deployment: &GraphDeployment, effort: &Effort) -> GraphRun {
    let found = predict_graph(graph, costs, deployment, effort).expect("it can be predicted");
    let response = &found[0].response;
    let rising = |pair: &[(f64, f64)]| (pair[1].0, ((pair[1].1 - pair[0].1) * 1e5).round() as u64);
    let counts: Vec<(f64, u64)> = response.curve.windows(2).map(rising).filter(|(_, count)| *count > 0).collect();
    let results: u64 = counts.iter().map(|(_, count)| count).sum();
    let each = results as f64;
    let lasted = |cost: &OperatorCost| OperatorRun { rounds: results, busy_us: each * cost.work.mean_us, longest_us: cost.work.mean_us };
    let rows = graph.rows.len() as f64;
    GraphRun {
        cores: deployment.cores,
        workers: deployment.workers,
        rate: deployment.rate,
        elapsed_us: each * graph.suppliers[0].period_us / deployment.rate,
        sent: results,
        operators: costs.operators.iter().map(lasted).collect(),
        latencies: vec![Durations { sum_us: response.mean_us.value * each, counts }],
        shard_us: each * (costs.take_us + rows * costs.finish_us + costs.publish_us),
        workers_us: each * (costs.operators.iter().map(|cost| cost.work.mean_us).sum::<f64>() + rows * costs.begin_us),
        suppliers_us: each * costs.push_us,
        consumers_us: each * costs.read_us,
    }
}

#[test]
fn a_calibration_from_runs_of_a_net_predicts_another_load_of_it() {
    let graph = row(400.0, &[&[0], &[1]]);
    let wake = Wake { usual_us: 25.0, held_up: 0.01, held_up_us: 300.0, held_up_busy: 0.0 };
    let truth = GraphCosts { wake, ..costs(&[60.0, 90.0]) };
    let effort = Effort { events: 8_000, ..EFFORT };
    let runs = [0.5, 1.0].map(|rate| run_of(&graph, &truth, &deployment(2, 1, rate), &effort));
    let found = calibrate_graph(&graph, &runs, &effort).expect("there is everything");
    let work = &found.costs.loads()[0].costs;
    assert_near(work.push_us, 4.0, 1e-6);
    assert_near(work.operators[1].work.mean_us, 90.0, 1e-6);
    assert_near(work.begin_us, 1.0, 1e-6);
    assert_near(work.take_us + 2.0 * work.finish_us + work.publish_us, 17.0, 1e-6);
    assert_eq!(found.loads.len(), 2);
    for other in [deployment(2, 2, 1.4), deployment(3, 2, 0.8)] {
        let [told, is] = [&found.costs.nearest(&other).costs, &truth]
            .map(|costs| predict_graph(&graph, costs, &other, &effort).expect("it can be")[0].clone());
        assert_near(told.response.mean_us.value, is.response.mean_us.value, 0.1);
        assert_near(told.response.quantile_us(0.99), is.response.quantile_us(0.99), 0.25);
    }
}

#[test]
fn what_means_nothing_is_refused_with_its_reason() {
    let (graph, costs) = (row(1e4, &[&[0, 1]]), costs(&[30.0, 40.0]));
    let told = |graph: &Graph, deployment| predict_graph(graph, &costs, &deployment, &EFFORT).expect_err("it is refused").to_string();
    assert!(told(&graph, deployment(0, 1, 1.0)).contains("0 processors and 1 workers"));
    assert!(told(&graph, deployment(1, 1, 0.0)).contains("suppliers push at 0 times their rate"));
    let torn = Graph { rows: vec![vec![0]], ..graph.clone() };
    assert!(told(&torn, deployment(1, 1, 1.0)).contains("graph row: each operator is in one row"));
    let mut astray = graph.clone();
    astray.operators[1].inputs[0].from = GraphSource::Operator(7);
    assert!(told(&astray, deployment(1, 1, 1.0)).contains("operator second takes events of what is not there"));
    assert_eq!(calibrate_graph(&graph, &[], &EFFORT), Err(GraphCalibrationError::Empty));
    let mut silent = run_of(&graph, &costs, &deployment(2, 1, 1.0), &EFFORT);
    silent.latencies[0] = Durations::default();
    let error = calibrate_graph(&graph, &[silent], &EFFORT).expect_err("nothing came").to_string();
    assert_eq!(error, "with 1 workers and 100 % of the declared rate no results of level 0 came");
}
