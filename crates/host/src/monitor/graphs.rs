//! What is measured of event-processing graphs.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use super::{Monitor, Number, label, push, told};
use crate::graph::{DeployedGraph, GraphCounts, OperatorCounts};

impl Monitor {
    /// Graphs that stand still.
    pub(super) fn graphs_suspended(&self) -> Number {
        let count = self.api.graphs.table().all().values().filter(|graph| graph.counts.suspension().is_some()).count();
        ("bodkin_graphs_suspended", "Graphs that stand still because an operator has failed.", count as u64)
    }

    /// What became of the events of each graph, and what its operators cost.
    pub(super) fn push_graphs(&self, text: &mut String) {
        type Count = fn(&GraphCounts) -> u64;
        const COUNTS: [(&str, &str, Count); 10] = [
            ("taken", "Events that graphs have taken from their suppliers' topics.", |counts| counts.taken.load(Relaxed)),
            ("refused", "Events that graphs have not taken: of the wrong shape or too old.", |counts| counts.refused.load(Relaxed)),
            ("rounds", "Rounds that operators of graphs have run.", |counts| counts.rounds.load(Relaxed)),
            ("failed", "Of these, rounds in which an operator refused its events.", |counts| counts.failed.load(Relaxed)),
            ("shed", "Results that were not made because their events were not valid.", |counts| counts.shed.load(Relaxed)),
            ("published", "Results of graphs that were published.", |counts| counts.published.load(Relaxed)),
            ("marked", "Of these, results of events that were not valid.", |counts| counts.marked.load(Relaxed)),
            ("late", "Of these, results later than their output's deadline.", |counts| counts.late.load(Relaxed)),
            ("lost", "Results of graphs that could not be published.", |counts| counts.lost.load(Relaxed)),
            ("checkpoints", "Checkpoints of graphs that the Backup has got.", |counts| counts.checkpoints.load(Relaxed)),
        ];
        let graphs: Vec<(String, Arc<DeployedGraph>)> =
            self.api.graphs.table().all().into_iter().map(|(name, graph)| (label(&name), graph)).collect();
        for (name, help, count) in COUNTS {
            push(text, format_args!("# HELP bodkin_graph_{name}_total {help}\n# TYPE bodkin_graph_{name}_total counter\n"));
            for (graph, DeployedGraph { counts, .. }) in graphs.iter().map(|(name, graph)| (name, &**graph)) {
                push(text, format_args!("bodkin_graph_{name}_total{{graph=\"{graph}\"}} {}\n", count(counts)));
            }
        }
        const SUSPENDED: &str = "bodkin_graph_suspended";
        push(
            text,
            format_args!("# HELP {SUSPENDED} 1 while a graph stands still because an operator has failed.\n# TYPE {SUSPENDED} gauge\n"),
        );
        for (graph, DeployedGraph { counts, .. }) in graphs.iter().map(|(name, graph)| (name, &**graph)) {
            push(text, format_args!("{SUSPENDED}{{graph=\"{graph}\"}} {}\n", u64::from(counts.suspension().is_some())));
        }
        type OperatorCount = fn(&OperatorCounts) -> serde_json::Number;
        const OPERATORS: [(&str, &str, OperatorCount); 2] = [
            ("bodkin_operator_rounds_total", "Rounds that an operator of a graph has run.", |counts| counts.rounds.load(Relaxed).into()),
            ("bodkin_operator_busy_seconds_total", "What these rounds have lasted.", |counts| {
                told("_seconds", counts.busy_ns.load(Relaxed))
            }),
        ];
        for (name, help, count) in OPERATORS {
            push(text, format_args!("# HELP {name} {help}\n# TYPE {name} counter\n"));
            for (graph, deployed) in &graphs {
                for (operator, counts) in deployed.file.graph.operators().iter().zip(&deployed.counts.operators) {
                    let operator = label(&operator.name);
                    push(text, format_args!("{name}{{graph=\"{graph}\",operator=\"{operator}\"}} {}\n", count(counts)));
                }
            }
        }
    }
}
