//! What a calibration found, as tables or as JSON.

use bodkin_petri::{
    deployment::{
        Durations, EventRun, GraphPrediction, LoadCosts, OperatorCost, OrchestrationLaws, OrchestrationStep, Places, Prediction, Wake,
        Whose,
    },
    distribution::Distribution,
};
use serde_json::{Value, json};

use super::{Calibrated, deployment_text, load_text};
use crate::cli::{
    model::{
        calibration::CalibratedGraph,
        graph,
        left_out::{LeftOutLoad, Off},
    },
    printer::Printer,
    table::Table,
};

/// Prints it.
pub fn print(calibrated: &Calibrated, printer: Printer) -> anyhow::Result<()> {
    let Calibrated { file, events, .. } = calibrated;
    if printer.is_json() {
        let document = json!({
            "costs": events.costs, "orchestration": file.orchestration, "intercloud": file.intercloud, "graph": file.graph,
            "loads": event_loads(calibrated), "left_out": file.left_out,
        });
        return Ok(printer.document(&document)?);
    }
    let mut tables = vec![work(calibrated), wake_ups(calibrated)];
    for (laws, title) in [(&file.orchestration, "OF AN ORCHESTRATION"), (&file.intercloud, "OF ONE IN ANOTHER CLOUD")] {
        tables.extend(laws.as_ref().map(|laws| steps(laws, title)).transpose()?);
    }
    tables.extend(file.graph.as_ref().map(operators));
    tables.push(loads(calibrated));
    for (place, table) in tables.iter().enumerate() {
        if place > 0 {
            printer.remark("")?;
        }
        printer.table(table, "none")?;
    }
    Ok(())
}

fn us(value: f64) -> String {
    format!("{value:.1}")
}

/// Loads of events, for programs.
fn event_loads(Calibrated { events, .. }: &Calibrated) -> Vec<Value> {
    let load = |(run, predicted): &(EventRun, Prediction)| {
        json!({
            "load": load_text(run), "events": run.events, "measured_mean_us": run.latency.mean_us(), "net_mean_us": predicted.mean_us.value,
            "measured_p99_us": run.latency.quantile_us(0.99), "net_p99_us": predicted.quantile_us(0.99), "subscribers_queued_us": run.queued_us(),
        })
    };
    events.loads.iter().map(load).collect()
}

/// What is worked for an event; of a calibration it is the same for all loads.
fn work(Calibrated { events, .. }: &Calibrated) -> Table {
    let costs = &events.costs.loads()[0].costs;
    let mut table = Table::new(&["OF AN EVENT", "WORKS US", "FOR EACH"]);
    for (what, works_us, each) in [
        ("publisher takes an answer", costs.take.mean_us, "event"),
        ("publisher publishes", costs.publish.mean_us, "event"),
        ("publishers' thread comes to run", costs.publisher_switch.mean_us, "time it slept"),
        ("broker begins a turn", costs.turn.mean_us, "turn"),
        ("broker receives", costs.receive.mean_us, "event"),
        ("broker decides", costs.execute.mean_us, "event"),
        ("broker decides for a subscriber", costs.execute_each_us, "delivery"),
        ("broker writes to a subscriber", costs.write.mean_us, "turn and subscriber"),
        ("broker writes its log", costs.log.mean_us, "turn"),
        ("broker answers", costs.answer.mean_us, "event"),
        ("subscribers' thread comes to run", costs.subscriber_switch.mean_us, "time it slept"),
        ("subscriber reads", costs.read.mean_us, "read"),
        ("subscriber takes an event", costs.note.mean_us, "delivery"),
    ] {
        table.push([what.to_owned(), format!("{works_us:.2}"), each.to_owned()]);
    }
    table
}

/// How long threads take to come to run, of each load.
fn wake_ups(Calibrated { events, file, .. }: &Calibrated) -> Table {
    let mut table = Table::new(&["LOAD", "WAKE-UPS OF", "USUAL US", "HELD UP", "FOR US", "HELD UP WHERE NO CPU IS IDLE", "QUEUED US"]);
    let mut push = |load: String, whose: &str, wake: Wake, queued_us: Option<f64>| {
        let Wake { usual_us, held_up, held_up_us, held_up_busy } = wake;
        let [idle, busy] = [held_up, held_up_busy].map(|probability| format!("{:.2} %", 100.0 * probability));
        table.push([load, whose.to_owned(), us(usual_us), idle, us(held_up_us), busy, queued_us.map(us).unwrap_or_default()]);
    };
    for (LoadCosts { load, costs }, (run, _)) in events.costs.loads().iter().zip(&events.loads) {
        push(deployment_text(load), "broker, publishers", costs.wake, None);
        push(deployment_text(load), "subscribers", costs.subscriber_wake, run.queued_us());
    }
    for LoadCosts { load, costs } in file.graph.iter().flat_map(|graph| graph.costs.loads()) {
        push(format!("graph {}", graph::deployment_text(load)), "all", costs.wake, None);
    }
    table
}

/// The steps of an orchestration, in their order, and what is worked beside them.
fn steps(laws: &OrchestrationLaws, title: &'static str) -> anyhow::Result<Table> {
    let mut table = Table::new(&[title, "WHOSE", "WORKS US", "MORE WHERE ALONE US", "WAITS US"]);
    let mut push = |what: &str, whose: &str, work_us: f64, alone_us: f64, waits_us: f64| {
        table.push([what.to_owned(), whose.to_owned(), us(work_us), us(alone_us), us(waits_us)]);
    };
    for OrchestrationStep { name, work_us, alone_us, waits, whose } in &laws.steps {
        let whose = match whose {
            Whose::Cloud => "cloud",
            Whose::Consumers => "consumers",
        };
        push(name, whose, *work_us, *alone_us, Distribution::try_from(waits.clone())?.mean());
    }
    match laws.places {
        Some(Places { between_us, .. }) => push("before the next request", "consumers", between_us, 0.0, 0.0),
        None => push("beside the way", "anybody", laws.beside_us.many, laws.beside_us.alone - laws.beside_us.many, 0.0),
    }
    Ok(table)
}

/// What a graph's operators cost: work of each load's rounds together.
fn operators(CalibratedGraph { graph, costs, .. }: &CalibratedGraph) -> Table {
    let mut table = Table::new(&["OPERATOR", "LEVEL", "WORKS US", "VARIES", "HAS A RESULT"]);
    for (operator, OperatorCost { work, emits }) in graph.operators.iter().zip(&costs.loads()[0].costs.operators) {
        let varies = format!("{:.0} %", 100.0 * work.squared_variation.sqrt());
        table.push([operator.name.clone(), operator.level.to_string(), us(work.mean_us), varies, format!("{:.0} %", 100.0 * emits)]);
    }
    table
}

/// What was measured of each load, beside what the nets make of it.
fn loads(Calibrated { file, events, orchestrations, elsewhere, graph }: &Calibrated) -> Table {
    let mut table = Table::new(&["LOAD", "RESPONSES", "FIGURE", "MEASURED US", "BY ITS NET US", "OFF", "BY THE OTHERS US", "OFF"]);
    let mut push = |load: String, measured: &Durations, predicted: &Prediction, left_out: Option<Result<&Off, &str>>| {
        let off = |by_net: f64, measured: f64| format!("{:+.0} %", 100.0 * (by_net / measured - 1.0));
        for (figure, measured_us, net_us, others_us) in [
            ("mean", measured.mean_us(), predicted.mean_us.value, left_out.map(|off| off.map(|off| off.mean_us))),
            ("p99", measured.quantile_us(0.99), predicted.quantile_us(0.99), left_out.map(|off| off.map(|off| off.p99_us))),
        ] {
            let (others, others_off) = match others_us {
                Some(Ok(others_us)) => (us(others_us), off(others_us, measured_us)),
                Some(Err(_)) => ("nothing".to_owned(), String::new()),
                None => Default::default(),
            };
            let count = measured.count().to_string();
            table.push([load.clone(), count, figure.to_owned(), us(measured_us), us(net_us), off(net_us, measured_us), others, others_off]);
        }
    };
    for (place, (run, predicted)) in events.loads.iter().enumerate() {
        push(load_text(run), &run.latency, predicted, file.left_out.events.get(place).map(LeftOutLoad::furthest));
    }
    for (what, seen, left_out) in
        [("orchestrations", orchestrations, &file.left_out.orchestration), ("intercloud", elsewhere, &file.left_out.intercloud)]
    {
        for (place, (run, predicted)) in seen.iter().enumerate() {
            push(format!("{what} x{}", run.consumers), &run.latency, predicted, left_out.get(place).map(LeftOutLoad::furthest));
        }
    }
    let Some(CalibratedGraph { graph: described, .. }) = &file.graph else { return table };
    for (place, (run, of_levels)) in graph.iter().enumerate() {
        for (number, GraphPrediction { level, response, .. }) in of_levels.iter().enumerate() {
            let left_out = file.left_out.graph.get(place).map(|load| load.figure(number));
            push(format!("graph {}, level {level}", graph::load_text(run)), &run.of_level(described, *level), response, left_out);
        }
    }
    table
}
