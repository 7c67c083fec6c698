//! Graphs of operators: what is put under load of their files, and what a model takes of them and of recordings.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use bodkin_bench::{
    GraphPlan, PlannedSupplier,
    recording::{self, GraphRecording, Recording},
};
use bodkin_broker::graph::{Count, Element, Shape, Source, Trigger, Use, machine::followers};
use bodkin_operators::{file::GraphFile, text::Form};
use bodkin_petri::{
    deployment::{Graph, GraphDeployment, GraphInput, GraphOperator, GraphOutput, GraphRun, GraphSource, GraphSupplier, OperatorRun},
    random::{Draws, Place},
};

use super::recording::latencies;
use crate::graph_file;

/// Different events that a supplier pushes, one after the other and again.
const VARIANTS: u32 = 16;
/// Points of an event, where the graph leaves it open how many there are.
const POINTS_MAX: usize = 1_024;
/// Numbers of points that have fractions are from 0 to this.
const NUMBER_MAX: f64 = 1_000.0;

/// What is put under load of a graph file; `events` are texts of suppliers, as `TOPIC=TEXT`.
///
/// # Errors
/// It has a mistake, an event is of no supplier, or there is none of a supplier whose events only its publishers know.
pub fn plan(path: &Path, keys: Option<PathBuf>, events: &[String]) -> Result<GraphPlan, String> {
    let (file, text) = graph_file::read_with_text(path).map_err(|mistakes| mistakes.to_string())?;
    let mut told: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for event in events {
        let (topic, text) = event.split_once('=').ok_or_else(|| format!("--graph-event {event}: TOPIC=TEXT is expected"))?;
        let supplier = file.graph.suppliers().iter().find(|supplier| supplier.topic == topic);
        let supplier = supplier.ok_or_else(|| format!("--graph-event {event}: {topic} is no supplier of {}", path.display()))?;
        told.entry(&supplier.topic).or_default().push(text.to_owned());
    }
    let suppliers = file.graph.suppliers().iter().zip(&file.forms.suppliers).enumerate().map(|(at, (supplier, form))| {
        let topic = &supplier.topic;
        let texts = told.get(topic.as_str()).cloned().or_else(|| texts(supplier.shape, *form, at as u32));
        let texts = texts.ok_or_else(|| {
            format!("{}: supplier {topic} takes JSON, and what is in it only its publishers know: tell an event with --graph-event {topic}=TEXT", path.display())
        })?;
        Ok(PlannedSupplier { topic: topic.clone(), period_ns: supplier.period.get().unsigned_abs(), texts })
    });
    let suppliers = suppliers.collect::<Result<_, String>>()?;
    Ok(GraphPlan {
        name: file.graph.name.clone(),
        is_preemptive: file.workers.is_preemptive,
        workers: file.workers.cores.get(),
        keys,
        suppliers,
        outputs: file.graph.outputs().iter().map(|output| output.topic.clone()).collect(),
        file: text,
    })
}

/// Events of a shape; none where nobody can tell what they are.
fn texts(shape: Shape, form: Form, supplier: u32) -> Option<Vec<String>> {
    let points = match shape.count() {
        Count::Exactly(points) => points as usize,
        _ => shape.points_max().min(POINTS_MAX),
    };
    let text = |variant: u32| {
        let mut draws = Draws::at(1, Place { run: u64::from(variant), stream: supplier, draw: 0 });
        let mut payload = Vec::new();
        for _ in 0..points {
            match shape.element() {
                Element::F32 => payload.extend(((NUMBER_MAX * draws.uniform()) as f32).to_le_bytes()),
                Element::F64 => payload.extend((NUMBER_MAX * draws.uniform()).to_le_bytes()),
                Element::Complex128 => (0..2).for_each(|_| payload.extend((NUMBER_MAX * draws.uniform()).to_le_bytes())),
                element => payload.extend((0..element.size_bytes()).map(|_| (256.0 * draws.uniform()) as u8)),
            }
        }
        let mut text = String::new();
        form.write(shape, &payload, &mut text);
        text
    };
    (shape.element() != Element::Json).then(|| (0..VARIANTS).map(text).collect())
}

/// A graph file as a model takes it.
fn graph(file: &GraphFile) -> Graph {
    let us = |ns: i64| ns as f64 / 1e3;
    let source = |source: Source| match source {
        Source::Supplier(id) => GraphSource::Supplier(id.index()),
        Source::Operator(id) => GraphSource::Operator(id.index()),
    };
    let step = |usage: Use| match usage {
        Use::Consume => 1,
        Use::Latest => 0,
        Use::Window { step, .. } => u32::from(step.get()),
    };
    let operators = file.graph.operators().iter().enumerate().map(|(at, operator)| GraphOperator {
        name: operator.name.clone(),
        level: file.graph.level(bodkin_broker::graph::OperatorId::of(at)).get(),
        inputs: operator.inputs.iter().map(|edge| GraphInput { from: source(edge.from), step: step(edge.usage) }).collect(),
        is_started_by_any: operator.trigger == Trigger::Any,
    });
    let outputs = file.graph.outputs().iter().map(|output| GraphOutput {
        topic: output.topic.clone(),
        from: output.from.index(),
        level: output.level.get(),
    });
    let suppliers = file.graph.suppliers().iter();
    Graph {
        name: file.graph.name.clone(),
        is_preemptive: file.workers.is_preemptive,
        suppliers: suppliers
            .map(|supplier| GraphSupplier { topic: supplier.topic.clone(), period_us: us(supplier.period.get()) })
            .collect(),
        operators: operators.collect(),
        rows: rows(file),
        outputs: outputs.collect(),
    }
}

/// Operators that a worker runs one behind the other, where more urgent ones may stop it: otherwise each is a row.
fn rows(file: &GraphFile) -> Vec<Vec<usize>> {
    let all = file.graph.operators().len();
    let next: Vec<Option<usize>> = if file.workers.is_preemptive {
        followers(&file.graph).into_iter().map(|next| next.map(|next| next.index())).collect()
    } else {
        vec![None; all]
    };
    let is_first = |operator: &usize| !next.contains(&Some(*operator));
    (0..all).filter(is_first).map(|first| std::iter::successors(Some(first), |operator| next[*operator]).collect()).collect()
}

/// The graph of a recording, and its runs; none where there was none.
///
/// # Errors
/// The recording's graph has a mistake.
pub fn runs(recording: &Recording) -> Result<Option<(Graph, Vec<GraphRun>)>, String> {
    let Some(GraphRecording { file, runs }) = &recording.graph else { return Ok(None) };
    let file = bodkin_host::graph::parse(file).map_err(|mistakes| {
        let mistakes: Vec<String> = mistakes.into_iter().map(|mistake| mistake.what).collect();
        format!("the recording's graph: {}", mistakes.join("; "))
    })?;
    let cores = u32::try_from(recording.cores).unwrap_or(u32::MAX);
    Ok(Some((graph(&file), runs.iter().map(|run| of_recorded(run, cores)).collect())))
}

/// Workers that the file of a recording's graph has; without one nobody asks.
pub fn workers(recording: &Recording) -> u32 {
    let file = recording.graph.as_ref().and_then(|graph| bodkin_host::graph::parse(&graph.file).ok());
    file.map_or(1, |file| file.workers.cores.get())
}

fn of_recorded(run: &recording::GraphRun, cores: u32) -> GraphRun {
    let us = |ns: u64| ns as f64 / 1e3;
    let operator =
        |times: &recording::OperatorTimes| OperatorRun { rounds: times.rounds, busy_us: times.busy_us, longest_us: times.longest_us };
    GraphRun {
        cores,
        workers: run.workers,
        rate: f64::from(run.percent) / 100.0,
        elapsed_us: run.seconds * 1e6,
        sent: run.sent,
        operators: run.operators.iter().map(operator).collect(),
        latencies: run.outputs.iter().map(|output| latencies(&output.latency_ns)).collect(),
        shard_us: us(run.shard_ns),
        workers_us: us(run.workers_ns),
        suppliers_us: us(run.suppliers_ns),
        consumers_us: us(run.consumers_ns),
    }
}

/// A load as it is typed.
pub fn load_text(run: &GraphRun) -> String {
    deployment_text(&run.deployment())
}

/// The load of a deployment as it is typed.
pub fn deployment_text(GraphDeployment { workers, rate, .. }: &GraphDeployment) -> String {
    format!("{:.0}:{workers}", 100.0 * rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(preemption: bool) -> GraphFile {
        let text = format!(
            "[graph]\nname = \"g\"\npreemption = {preemption}\n[[supplier]]\ntopic = \"in\"\nshape = \"f64[4]\"\nperiod_ms = 10\n\
            [[operator]]\nname = \"a\"\nkind = \"moving_average\"\ninputs = [\"in\"]\nwindow = 2\ncost_us = 5\n\
            [[operator]]\nname = \"b\"\nkind = \"moving_average\"\ninputs = [\"a\"]\nwindow = 2\ncost_us = 5\n\
            [[output]]\ntopic = \"out\"\nfrom = \"b\"\nlevel = 1\n"
        );
        bodkin_host::graph::parse(&text).expect("it is a graph")
    }

    #[test]
    fn a_file_becomes_the_graph_of_a_model() {
        let found = graph(&file(true));
        assert_eq!(found.mistake(), None);
        assert_eq!((found.suppliers[0].period_us, found.outputs[0].from, found.levels()), (10_000.0, 1, vec![1]));
        assert_eq!(found.rows, [[0, 1]], "one worker runs both");
        assert_eq!(graph(&file(false)).rows, [[0], [1]]);
        assert_eq!(found.operators[1].inputs, [GraphInput { from: GraphSource::Operator(0), step: 1 }]);
    }

    #[test]
    fn suppliers_push_what_their_graph_takes() {
        let file = file(true);
        let (shape, form) = (file.graph.suppliers()[0].shape, file.forms.suppliers[0]);
        let texts = texts(shape, form, 0).expect("numbers can be made");
        assert_eq!(texts.len(), VARIANTS as usize);
        for text in &texts {
            let mut payload = Vec::new();
            form.read(shape, text, &mut payload).expect("it is read");
            assert!(shape.fits(payload.len()), "{text}");
        }
        assert_ne!(texts[0], texts[1]);
    }
}
