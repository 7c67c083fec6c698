//! What `bodkin graph check` says of a graph over several edges: what each of them runs, what goes over, and where operators would better run.

use std::io;

use bodkin_broker::{
    graph::{
        OperatorId, Source,
        placement::{
            EdgeId, Placement,
            bound::PlacedAnalysis,
            suggestion::{Price, better},
        },
    },
    timing::{Nanos, Span},
};
use bodkin_operators::file::GraphFile;
use serde::Serialize;

use super::{
    super::{printer::Printer, table::Table, write_out},
    report::source_name,
    sheet::bound,
};

/// Everything that is known of a placed graph.
pub(super) struct Placed<'f> {
    pub file: &'f GraphFile,
    pub placement: &'f Placement,
    pub analysis: PlacedAnalysis,
    price: Price,
    better: Option<(Placement, Price)>,
}

/// The part of the answer for programs that a placed graph has besides.
#[derive(Serialize)]
pub(super) struct PlacedReport {
    edges: Vec<EdgeReport>,
    links: Vec<LinkReport>,
    suggestion: Option<Suggestion>,
}

#[derive(Serialize)]
struct EdgeReport {
    edge: String,
    cores: u32,
    way_us: i64,
    operators: Vec<String>,
    load_ppm: u64,
}

#[derive(Serialize)]
struct LinkReport {
    topic: String,
    from: String,
    edge: String,
    to: Vec<String>,
    response_us: Option<i64>,
    deadline_us: Option<i64>,
    feasible: bool,
}

#[derive(Serialize)]
struct Suggestion {
    moves: Vec<Move>,
    late: usize,
    events_per_s: f64,
}

#[derive(Serialize)]
struct Move {
    operator: String,
    to: String,
}

impl<'f> Placed<'f> {
    /// Looks at a graph; none if it has no edges.
    pub fn of(file: &'f GraphFile) -> Option<Self> {
        let placement = file.placement.as_ref()?;
        let graph = &file.graph;
        let topic = |from: Source| source_name(file, from).to_uppercase();
        Some(Self {
            file,
            placement,
            analysis: PlacedAnalysis::of(graph, placement),
            price: Price::of(graph, placement),
            better: better(graph, placement, topic),
        })
    }

    /// Prints it.
    pub fn print(&self, printer: Printer) -> io::Result<()> {
        write_out("\n")?;
        printer.table(&self.edges(), "no edges")?;
        if !self.placement.links.is_empty() {
            write_out("\n")?;
            printer.table(&self.links(), "no links")?;
        }
        let Some((placement, price)) = &self.better else { return Ok(()) };
        let moves: Vec<String> = self.moves(placement).iter().map(|each| format!("{} to {}", each.operator, each.to)).collect();
        write_out(&format!("\nbetter: {}\n", moves.join(", ")))?;
        write_out(&format!(
            "  {} would be late instead of {}, {:.0} events/s go from edge to edge instead of {:.0}\n",
            price.late, self.price.late, price.events_per_s, self.price.events_per_s
        ))
    }

    /// The same for programs.
    pub fn report(&self) -> PlacedReport {
        let edges = self.placement.hosts.iter().enumerate().map(|(at, host)| EdgeReport {
            edge: host.name.clone(),
            cores: host.workers.cores.get(),
            way_us: host.way.micros_up(),
            operators: self.operators(EdgeId::of(at)),
            load_ppm: self.load_ppm(EdgeId::of(at)),
        });
        let links = self.placement.links.iter().zip(&self.analysis.links).map(|(link, found)| LinkReport {
            topic: link.topic.clone(),
            from: source_name(self.file, link.from).to_owned(),
            edge: self.name(self.placement.edge(link.from)).to_owned(),
            to: self.readers(link.from),
            response_us: found.response.map(Nanos::micros_up),
            deadline_us: link.deadline.finite().map(Nanos::micros_up),
            feasible: found.is_feasible,
        });
        let suggestion = self.better.as_ref().map(|(placement, price)| Suggestion {
            moves: self.moves(placement),
            late: price.late,
            events_per_s: price.events_per_s,
        });
        PlacedReport { edges: edges.collect(), links: links.collect(), suggestion }
    }

    fn name(&self, edge: EdgeId) -> &str {
        &self.placement.hosts[edge.index()].name
    }

    fn operators(&self, edge: EdgeId) -> Vec<String> {
        let all = self.file.graph.operators().iter().zip(&self.placement.operators);
        all.filter(|(_, at)| **at == edge).map(|(operator, _)| operator.name.clone()).collect()
    }

    fn load_ppm(&self, edge: EdgeId) -> u64 {
        let part = self.analysis.parts.iter().position(|part| part.edge == edge);
        part.and_then(|part| self.analysis.analyses[part].levels.last()).map_or(0, |level| level.load_above_ppm)
    }

    /// Edges that need what is made elsewhere.
    fn readers(&self, from: Source) -> Vec<String> {
        let readers = self.file.graph.readers(from).map(|(reader, _)| self.placement.operators[reader.index()]);
        let mut edges: Vec<EdgeId> = readers.filter(|edge| *edge != self.placement.edge(from)).collect();
        edges.sort_unstable();
        edges.dedup();
        edges.into_iter().map(|edge| self.name(edge).to_owned()).collect()
    }

    fn moves(&self, to: &Placement) -> Vec<Move> {
        let ids = (0..to.operators.len()).map(OperatorId::of);
        let moved = ids.filter(|id| to.operators[id.index()] != self.placement.operators[id.index()]);
        moved
            .map(|id| Move { operator: self.file.graph.operator(id).name.clone(), to: self.name(to.operators[id.index()]).to_owned() })
            .collect()
    }

    fn edges(&self) -> Table {
        let mut table = Table::new(&["EDGE", "CORES", "LOAD", "WAY TO OTHERS", "OPERATORS"]);
        for (at, host) in self.placement.hosts.iter().enumerate() {
            let edge = EdgeId::of(at);
            table.push([
                host.name.clone(),
                host.workers.cores.to_string(),
                format!("{:.2} %", self.load_ppm(edge) as f64 / 1e4),
                host.way.to_string(),
                self.operators(edge).join(", "),
            ]);
        }
        table
    }

    fn links(&self) -> Table {
        let mut table = Table::new(&["LINK", "FROM", "EDGE", "TO", "WORST CASE", "DEADLINE", ""]);
        for (link, found) in self.placement.links.iter().zip(&self.analysis.links) {
            let to = self.readers(link.from).join(", ");
            let verdict = match (to.is_empty(), found.is_feasible) {
                // It is there for an operator that moves.
                (true, _) => "not needed now",
                (false, true) => "in time",
                (false, false) => "may be late",
            };
            table.push([
                link.topic.clone(),
                source_name(self.file, link.from).to_owned(),
                self.name(self.placement.edge(link.from)).to_owned(),
                to,
                bound(found.response),
                if link.deadline == Span::Infinite { "none".to_owned() } else { link.deadline.to_string() },
                verdict.to_owned(),
            ]);
        }
        table
    }
}
