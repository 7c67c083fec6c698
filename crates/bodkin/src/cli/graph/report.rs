//! The answer of `bodkin graph check` for programs: `docs/formats/graphs.md`. Times are whole microseconds, rounded up.

use bodkin_broker::{
    graph::{
        OperatorId, Source,
        response::{Analysis, Bound, Change},
    },
    timing::{Nanos, Span},
};
use bodkin_operators::file::GraphFile;
use serde::Serialize;

use super::placed::{Placed, PlacedReport};

/// The whole answer.
#[derive(Serialize)]
pub(super) struct Report {
    graph: String,
    feasible: bool,
    cores: u32,
    suppliers: Vec<SupplierReport>,
    operators: Vec<OperatorReport>,
    levels: Vec<LevelReport>,
    outputs: Vec<OutputReport>,
    changes: Vec<Vec<String>>,
    #[serde(flatten)]
    placed: Option<PlacedReport>,
}

#[derive(Serialize)]
struct SupplierReport {
    topic: String,
    shape: String,
    level: u8,
    period_us: i64,
    validity_us: Option<i64>,
}

#[derive(Serialize)]
struct OperatorReport {
    name: String,
    kind: &'static str,
    inputs: Vec<String>,
    shape: String,
    level: u8,
    cost_us: i64,
    remaining_us: i64,
}

#[derive(Serialize)]
struct LevelReport {
    level: u8,
    operators: usize,
    load_ppm: u64,
    load_above_ppm: u64,
    response_us: Option<i64>,
}

#[derive(Serialize)]
struct OutputReport {
    topic: String,
    from: String,
    level: u8,
    shape: String,
    response_us: Option<i64>,
    deadline_us: Option<i64>,
    feasible: bool,
}

impl Report {
    pub fn of(file: &GraphFile, analysis: &Analysis, ways: &[Vec<Change>]) -> Self {
        let levels = analysis.levels.iter().map(|load| LevelReport {
            level: load.level.get(),
            operators: load.operators,
            load_ppm: load.load_ppm,
            load_above_ppm: load.load_above_ppm,
            response_us: load.response.map(Nanos::micros_up),
        });
        let changes = ways.iter().map(|way| way.iter().map(|change| told(file, change)).collect()).collect();
        Self { levels: levels.collect(), changes, ..Self::without_levels(file, &analysis.outputs) }
    }

    /// The answer about a graph over several edges: it has no levels of its own, and no changes.
    pub fn of_placed(placed: &Placed<'_>) -> Self {
        let feasible = placed.analysis.is_feasible();
        Self { feasible, placed: Some(placed.report()), ..Self::without_levels(placed.file, &placed.analysis.outputs) }
    }

    fn without_levels(file: &GraphFile, bounds: &[Bound]) -> Self {
        let graph = &file.graph;
        let micros = |span: Span| span.finite().map(Nanos::micros_up);
        let suppliers = graph.suppliers().iter().enumerate().map(|(index, supplier)| SupplierReport {
            topic: supplier.topic.clone(),
            shape: supplier.shape.to_string(),
            level: graph.supplier_level(bodkin_broker::graph::SupplierId::of(index)).get(),
            period_us: supplier.period.micros_up(),
            validity_us: micros(supplier.validity),
        });
        let operators = graph.operators().iter().zip(&file.recipes).enumerate().map(|(index, (operator, recipe))| OperatorReport {
            name: operator.name.clone(),
            kind: recipe.kind().name,
            inputs: operator.inputs.iter().map(|edge| source_name(file, edge.from).to_owned()).collect(),
            shape: operator.shape.to_string(),
            level: graph.level(OperatorId::of(index)).get(),
            cost_us: operator.cost.micros_up(),
            remaining_us: graph.remaining(OperatorId::of(index)).micros_up(),
        });
        let outputs = graph.outputs().iter().zip(bounds).map(|(output, bound)| OutputReport {
            topic: output.topic.clone(),
            from: graph.operator(output.from).name.clone(),
            level: output.level.get(),
            shape: graph.operator(output.from).shape.to_string(),
            response_us: bound.response.map(Nanos::micros_up),
            deadline_us: micros(output.deadline),
            feasible: bound.is_feasible,
        });
        Self {
            graph: graph.name.clone(),
            feasible: bounds.iter().all(|bound| bound.is_feasible),
            cores: file.workers.cores.get(),
            suppliers: suppliers.collect(),
            operators: operators.collect(),
            levels: Vec::new(),
            outputs: outputs.collect(),
            changes: Vec::new(),
            placed: None,
        }
    }
}

/// What a source is called.
pub(super) fn source_name(file: &GraphFile, source: Source) -> &str {
    file.graph.source_name(source)
}

/// A change as it would be made.
pub(super) fn told(file: &GraphFile, change: &Change) -> String {
    match change {
        Change::Deadline { output, .. } => format!("{}: {change}", file.graph.outputs()[*output].topic),
        _ => change.to_string(),
    }
}
