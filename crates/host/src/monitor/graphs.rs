//! What is measured of event-processing graphs.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use super::{Monitor, Number, label, push, told};
use crate::graph::{DeployedGraph, EdgeLink, GraphCounts, LinkState, LinkTopic, OperatorCounts};

impl Monitor {
    /// Graphs that stand still.
    pub(super) fn graphs_suspended(&self) -> Number {
        let count = self.api.graphs.table().all().values().filter(|graph| graph.counts.suspension().is_some()).count();
        ("bodkin_graphs_suspended", "Graphs that stand still because an operator has failed.", count as u64)
    }

    /// Links of graphs over which nothing comes just now.
    pub(super) fn graph_links_down(&self) -> Number {
        let graphs = self.api.graphs.table().all();
        let count = graphs.values().flat_map(|graph| &graph.links).filter(|link| link.state() != LinkState::Up).count();
        ("bodkin_graph_links_down", "Links of graphs to other edges that are not heard.", count as u64)
    }

    /// Rows of missing events that links do not tolerate, of all graphs.
    pub(super) fn graph_links_exceeded(&self) -> Number {
        let graphs = self.api.graphs.table().all();
        let topics = graphs.values().flat_map(|graph| &graph.links).flat_map(|link| &link.topics);
        let count = topics.map(|topic| topic.exceeded.load(Relaxed)).sum();
        (
            "bodkin_graph_links_exceeded_total",
            "Rows of missing events on links of all graphs that were longer than the link tolerates.",
            count,
        )
    }

    /// What became of the events of each graph, and what its operators cost.
    pub(super) fn push_graphs(&self, text: &mut String) {
        type Count = fn(&GraphCounts) -> u64;
        const COUNTS: [(&str, &str, Count); 12] = [
            ("taken", "Events that graphs have taken from their suppliers' topics.", |counts| counts.taken.load(Relaxed)),
            ("refused", "Events that graphs have not taken: of the wrong shape or too old.", |counts| counts.refused.load(Relaxed)),
            ("excess", "Events that arrived faster than their supplier's declared period.", |counts| counts.excess.load(Relaxed)),
            ("replaced", "Events that newer ones replaced before an operator used them.", |counts| counts.replaced.load(Relaxed)),
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
        push_links(&graphs, text);
        type OperatorCount = fn(&OperatorCounts) -> serde_json::Number;
        const OPERATORS: [(&str, &str, OperatorCount); 3] = [
            ("bodkin_operator_rounds_total", "Rounds that an operator of a graph has run.", |counts| counts.rounds.load(Relaxed).into()),
            ("bodkin_operator_restarts_total", "Restarts of an operator whose state was no longer finite.", |counts| {
                counts.restarts.load(Relaxed).into()
            }),
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

/// What comes over the links from other edges. Without links nothing is told of them.
fn push_links(graphs: &[(String, Arc<DeployedGraph>)], text: &mut String) {
    type Count = fn(&EdgeLink, &LinkTopic) -> u64;
    const COUNTS: [(&str, &str, &str, Count); 5] = [
        ("bodkin_graph_link_up", "gauge", "1 while a graph hears this topic of another edge, 0 while it does not.", |link, _| {
            (link.state() == LinkState::Up).into()
        }),
        ("bodkin_graph_link_received_total", "counter", "Events that have come from another edge.", |_, topic| {
            topic.received.load(Relaxed)
        }),
        ("bodkin_graph_link_lost_total", "counter", "Events of another edge that are missing.", |_, topic| topic.lost.load(Relaxed)),
        ("bodkin_graph_link_exceeded_total", "counter", "Rows of missing events that were longer than the link tolerates.", |_, topic| {
            topic.exceeded.load(Relaxed)
        }),
        ("bodkin_graph_link_refused_total", "counter", "Events of another edge that cannot be taken.", |_, topic| {
            topic.refused.load(Relaxed)
        }),
    ];
    for (name, kind, help, count) in COUNTS {
        push(text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        for (graph, deployed) in graphs {
            for (link, topic) in deployed.links.iter().flat_map(|link| link.topics.iter().map(move |topic| (link, topic))) {
                let (edge, topic_name) = (label(&link.edge), label(&topic.topic));
                let labels = format_args!("graph=\"{graph}\",edge=\"{edge}\",topic=\"{topic_name}\"");
                push(text, format_args!("{name}{{{labels}}} {}\n", count(link, topic)));
            }
        }
    }
}
