//! Where a file places suppliers and operators, and what goes from one edge to another.

use std::{num::NonZeroU32, ops::Range};

use bodkin_broker::{
    graph::{
        Graph, Source,
        placement::{EdgeId, Host, Link, Placement, ways::nameless},
        response::{CORES_MAX, Workers},
    },
    timing::Span,
};

use super::{Form, Head, NAME_BYTES_MAX, Reading, table::Table};

/// Links that a graph may have.
pub(super) const LINKS_MAX: usize = 256;

/// Largest bound on losses in a row of a link.
const LOSSES_MAX: u32 = 1_000_000;

/// What a file says of places; empty where it says nothing.
#[derive(Default)]
pub(super) struct Places {
    names: Vec<String>,
    hosts: Vec<Host>,
    /// Of each supplier, as it is written.
    pub suppliers: Vec<Option<EdgeId>>,
    /// Of each operator, as it is written.
    pub operators: Vec<Option<EdgeId>>,
}

impl Reading {
    /// The tables `[[edge]]`.
    pub(super) fn edges(&mut self, tables: Vec<Table<'_>>, head: &Head) {
        for mut table in tables {
            let name = table.text(self, "name").unwrap_or_default();
            if name.len() > NAME_BYTES_MAX {
                self.wrong(table.place("name"), format!("name must have at most {NAME_BYTES_MAX} bytes"));
            }
            if !name.is_empty() && self.places.names.contains(&name) {
                self.wrong(table.place("name"), format!("there is an edge {name} already"));
            }
            let cores = table.whole(self, "cores", 1..=CORES_MAX, Some(head.workers.cores.get())).and_then(NonZeroU32::new);
            let way = self.finite_time(&mut table, "way");
            table.finish(self);
            let workers = Workers { cores: cores.unwrap_or(NonZeroU32::MIN), ..head.workers };
            self.places.hosts.push(Host { name: name.clone(), workers, way });
            self.places.names.push(name);
        }
        if !self.places.hosts.is_empty() && !head.is_shared {
            self.wrong(0..0, "sharing = false shows what sharing saves on one host: leave [[edge]] out");
        }
    }

    /// The key `edge` of a supplier or an operator.
    pub(super) fn edge_of(&mut self, table: &mut Table<'_>) -> Option<EdgeId> {
        if !table.has("edge") {
            return None;
        }
        let (name, at) = (table.text(self, "edge")?, table.place("edge"));
        let found = self.places.names.iter().position(|known| *known == name).map(EdgeId::of);
        if found.is_none() {
            let known = self.places.names.join(", ");
            self.wrong(at, if known.is_empty() { "there is no [[edge]]".to_owned() } else { format!("edge must be one of {known}") });
        }
        found
    }

    /// Where everything is, if there are edges. A supplier without an edge is on the first one, and an operator where its first input is made.
    pub(super) fn placement(&mut self, graph: &Graph, links: Vec<Table<'_>>, operator_places: &[Range<usize>]) -> Option<Placement> {
        if self.places.hosts.is_empty() {
            if let Some(link) = links.first() {
                self.wrong(link.head(), "a link goes from one [[edge]] to another, and there is none");
            }
            return None;
        }
        let places = std::mem::take(&mut self.places);
        let first = EdgeId::of(0);
        let mut placement = Placement {
            hosts: places.hosts,
            suppliers: places.suppliers.into_iter().map(|edge| edge.unwrap_or(first)).collect(),
            operators: vec![first; graph.operators().len()],
            links: Vec::new(),
        };
        for id in graph.order() {
            let beside = placement.edge(graph.operator(*id).inputs[0].from);
            placement.operators[id.index()] = places.operators[id.index()].unwrap_or(beside);
        }
        let crossing = placement.crossing(graph);
        let before = self.found.len();
        let (links, forms): (Vec<Link>, Vec<Form>) = links.into_iter().filter_map(|table| self.link(table, graph)).unzip();
        (placement.links, self.link_forms) = (links, forms);
        if self.found.len() > before {
            // What a link with a mistake was for is not missing besides.
            return None;
        }
        for from in crossing {
            match from {
                from if placement.links.iter().any(|link| link.from == from) => {}
                // A topic is there already.
                Source::Supplier(id) => {
                    self.link_forms.push(self.forms.suppliers[id.index()]);
                    placement.links.push(Link {
                        from,
                        topic: graph.suppliers()[id.index()].topic.clone(),
                        deadline: Span::Infinite,
                        loss_tolerance: None,
                    });
                }
                Source::Operator(id) => {
                    let (name, edge) = (&graph.operator(id).name, &placement.hosts[placement.edge(from).index()].name);
                    let what =
                        format!("{name} is needed on another edge than {edge}: a [[link]] with from = \"{name}\" and a topic is missing");
                    self.wrong(operator_places[id.index()].clone(), what);
                }
            }
        }
        if let Some(id) = nameless(graph, &placement) {
            let name = &graph.operator(id).name;
            let what = format!(
                "{name} is needed on another edge, and operators that any event starts are on the way to it on more than one: of results like these it could not be told there which they are; place those operators on one edge"
            );
            self.wrong(operator_places[id.index()].clone(), what);
        }
        self.found.is_empty().then_some(placement)
    }

    fn link(&mut self, mut table: Table<'_>, graph: &Graph) -> Option<(Link, Form)> {
        let name = table.text(self, "from");
        let from = name.as_ref().and_then(|name| self.source(name, table.place("from")));
        let (from_place, topic_place) = (table.place("from"), table.place("topic"));
        let deadline = table.time(self, "deadline").unwrap_or(Span::Infinite);
        let loss_tolerance = if table.has("loss_tolerance") { table.whole(self, "loss_tolerance", 0..=LOSSES_MAX, None) } else { None };
        let topic = match from {
            Some(Source::Supplier(id)) if !table.has("topic") => Some(graph.suppliers()[id.index()].topic.clone()),
            Some(Source::Supplier(_)) => {
                self.wrong(table.place("topic"), "a supplier goes over as the topic that it is: leave topic out");
                None
            }
            _ => table.topic(self, "topic"),
        };
        let form = match from {
            Some(Source::Supplier(id)) => self.forms.suppliers[id.index()],
            _ => table.word(self, "form", &Form::NAMES).unwrap_or_default(),
        };
        table.finish(self);
        let (from, topic) = (from?, topic?);
        // One that nobody on another edge needs now may be there for an operator that moves.
        if graph.readers(from).next().is_none() {
            self.wrong(from_place, format!("no operator needs {}", name.unwrap_or_default()));
            return None;
        }
        if let Source::Operator(_) = from {
            self.is_free(&topic, graph, topic_place)?;
        }
        Some((Link { from, topic, deadline, loss_tolerance }, form))
    }

    /// Whether nobody else writes a link's topic.
    fn is_free(&mut self, topic: &str, graph: &Graph, at: Range<usize>) -> Option<()> {
        let is_supplier = graph.suppliers().iter().any(|supplier| supplier.topic == topic);
        let is_output = graph.outputs().iter().any(|output| output.topic == topic);
        if is_supplier || is_output || !self.link_topics.insert(topic.to_owned()) {
            self.wrong(at, format!("topic {topic} is a supplier's, an output's or another link's: each topic has one writer"));
            return None;
        }
        Some(())
    }
}
