//! Graph files (TOML): `docs/formats/graphs.md`. Everything that is wrong is found at once, with its place in the text.

mod edges;
mod inputs;
mod moving;
mod operators;
mod part;
mod table;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    ops::Range,
    sync::Arc,
};

use bodkin_broker::{
    graph::{
        Graph, GraphFault, OPERATORS_MAX, OUTPUTS_MAX, OnInvalid, OperatorId, OperatorSpec, Output, SUPPLIERS_MAX, Source, Supplier,
        SupplierId,
        placement::{EDGES_MAX, Placement},
        response::{CORES_MAX, Workers},
    },
    timing::{Nanos, Span},
    topic::Level,
};
use sha2::{Digest, Sha256};
use toml::de::DeTable;

use self::{edges::Places, table::Table};
pub use self::{
    moving::{MoveFault, moved},
    operators::Recipe,
    part::{Fetched, FetchedSupplier},
};
use crate::{
    catalogue::Kind,
    text::{Form, Forms},
};

/// Longest file.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Longest name of a graph or an operator.
pub const NAME_BYTES_MAX: usize = 64;

/// A graph as a file declares it.
#[derive(Clone, Debug)]
pub struct GraphFile {
    /// What is processed. Where operators are not shared, each output has copies of its own.
    pub graph: Graph,
    /// What it runs on.
    pub workers: Workers,
    /// Which part of it is where; none where one host has all of it.
    pub placement: Option<Placement>,
    /// Of one edge's part: what it needs of other edges.
    pub fetched: Fetched,
    /// Whether a supplier's event replaces one of its topic that waits in the queue.
    pub replaces_queued: bool,
    /// How each operator of the graph is made.
    pub recipes: Vec<Recipe>,
    /// How its topics write their events.
    pub forms: Forms,
    /// How each link of the placement writes its events.
    pub link_forms: Vec<Form>,
    /// The text.
    pub text: Arc<str>,
    /// The first eight bytes of the text's SHA-256: files of one digest are one graph.
    pub digest: u64,
    /// Where each output stands in the text.
    pub output_places: Vec<Range<usize>>,
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Bytes of the text.
    pub at: Range<usize>,
    /// What is wrong, with the key.
    pub what: String,
}

/// Judges the name of a topic: gives it as it is known, or says what is wrong.
pub type TopicName = fn(&str) -> Result<String, String>;

/// Reads a file; gives all mistakes if there are any.
pub fn parse(text: &str, kinds: &'static [Kind], topic_name: TopicName) -> Result<GraphFile, Vec<Mistake>> {
    if text.len() > FILE_BYTES_MAX {
        return Err(vec![Mistake { at: 0..0, what: format!("a graph file has at most {FILE_BYTES_MAX} bytes") }]);
    }
    let document =
        DeTable::parse(text).map_err(|error| vec![Mistake { at: error.span().unwrap_or_default(), what: error.message().to_owned() }])?;
    let digest = u64::from_be_bytes(Sha256::digest(text)[..8].try_into().expect("there are 32"));
    let mut reading = Reading {
        topic_name,
        text: text.into(),
        digest,
        found: Vec::new(),
        sources: BTreeMap::new(),
        forms: Forms::default(),
        places: Places::default(),
        link_topics: BTreeSet::new(),
        link_forms: Vec::new(),
        exceeds_limit: false,
    };
    let file = reading.file(Table::new(document.get_ref(), document.span()), kinds);
    match (file, reading.found.is_empty()) {
        (Some(file), true) => Ok(file),
        (_, false) => Err(reading.found),
        (None, true) => unreachable!("what is not read has a mistake"),
    }
}

/// What has been read so far.
struct Reading {
    topic_name: TopicName,
    text: Arc<str>,
    digest: u64,
    found: Vec<Mistake>,
    /// What a name stands for.
    sources: BTreeMap<String, Source>,
    forms: Forms,
    places: Places,
    /// Topics that links have.
    link_topics: BTreeSet<String>,
    link_forms: Vec<Form>,
    /// True if a kind of table exceeds its limit. Such tables are not read, so names of them would be reported as mistakes.
    exceeds_limit: bool,
}

/// The table `[graph]`.
struct Head {
    name: String,
    workers: Workers,
    is_shared: bool,
    replaces_queued: bool,
    on_invalid: OnInvalid,
}

const ON_INVALID: [(&str, OnInvalid); 2] = [("shed", OnInvalid::Shed), ("mark", OnInvalid::Mark)];

impl Reading {
    fn wrong(&mut self, at: Range<usize>, what: impl Into<String>) {
        self.found.push(Mistake { at, what: what.into() });
    }

    fn file(&mut self, mut document: Table<'_>, kinds: &'static [Kind]) -> Option<GraphFile> {
        let head = self.head(&mut document);
        let edges = document.tables(self, "edge", EDGES_MAX);
        let links = document.tables(self, "link", edges::LINKS_MAX);
        let suppliers = document.tables(self, "supplier", SUPPLIERS_MAX);
        let operators = document.tables(self, "operator", OPERATORS_MAX);
        let outputs = document.tables(self, "output", OUTPUTS_MAX);
        if self.exceeds_limit {
            return None;
        }
        self.edges(edges, &head);
        document.finish(self);
        for (key, tables) in [("supplier", &suppliers), ("operator", &operators), ("output", &outputs)] {
            if tables.is_empty() {
                self.wrong(0..0, format!("there is no [[{key}]]: a graph has suppliers, operators and outputs"));
            }
        }
        let (supplier_places, operator_places) = (places(&suppliers), places(&operators));
        let suppliers: Vec<Option<Supplier>> = suppliers.into_iter().enumerate().map(|(at, table)| self.supplier(at, table)).collect();
        let operators = self.operators(operators, &suppliers, &head, kinds);
        let output_places = places(&outputs);
        let outputs: Vec<Option<Output>> = outputs.into_iter().map(|table| self.output(table)).collect();
        if !self.found.is_empty() {
            return None;
        }
        let (specs, recipes): (Vec<OperatorSpec>, Vec<Recipe>) = operators?.into_iter().unzip();
        let (suppliers, outputs) = (suppliers.into_iter().collect::<Option<_>>()?, outputs.into_iter().collect::<Option<_>>()?);
        let graph = Graph::new(head.name, suppliers, specs, outputs);
        let graph = graph
            .map_err(|faults| faults.into_iter().for_each(|fault| self.fault(fault, [&supplier_places, &operator_places, &output_places])));
        let graph = graph.ok()?;
        let placement = self.placement(&graph, links, &operator_places);
        if !self.found.is_empty() {
            return None;
        }
        let (graph, recipes) = match (graph, head.is_shared) {
            (graph, true) => (graph, recipes),
            (graph, false) => {
                let Some((unshared, origins)) = graph.unshared() else {
                    self.wrong(0..0, format!("sharing = false makes more than {OPERATORS_MAX} operators of these"));
                    return None;
                };
                (unshared, origins.into_iter().map(|origin| recipes[origin.index()].clone()).collect())
            }
        };
        let forms = std::mem::take(&mut self.forms);
        Some(GraphFile {
            graph,
            workers: head.workers,
            placement,
            fetched: Fetched::default(),
            replaces_queued: head.replaces_queued,
            recipes,
            forms,
            link_forms: std::mem::take(&mut self.link_forms),
            text: self.text.clone(),
            digest: self.digest,
            output_places,
        })
    }

    fn head(&mut self, document: &mut Table<'_>) -> Head {
        let mut table = document.table(self, "graph");
        let name = table.text(self, "name").unwrap_or_default();
        if name.len() > NAME_BYTES_MAX {
            self.wrong(table.place("name"), format!("name must have at most {NAME_BYTES_MAX} bytes"));
        }
        let cores = table.whole(self, "cores", 1..=CORES_MAX, Some(1)).and_then(NonZeroU32::new);
        let workers = Workers {
            cores: cores.unwrap_or(NonZeroU32::MIN),
            hop: table.time(self, "hop").and_then(Span::finite).unwrap_or_default(),
            is_preemptive: table.boolean(self, "preemption", false),
        };
        let head = Head {
            name,
            workers,
            is_shared: table.boolean(self, "sharing", true),
            replaces_queued: table.boolean(self, "replace_queued", true),
            on_invalid: table.word(self, "on_invalid", &ON_INVALID).unwrap_or_default(),
        };
        table.finish(self);
        head
    }

    fn supplier(&mut self, index: usize, mut table: Table<'_>) -> Option<Supplier> {
        let topic = table.topic(self, "topic");
        if let Some(topic) = &topic {
            self.named(topic, Source::Supplier(SupplierId::of(index)), table.place("topic"));
        }
        let shape = table
            .text(self, "shape")
            .and_then(|shape| shape.parse().map_err(|error| self.wrong(table.place("shape"), format!("shape {error}"))).ok());
        let period = table.needed_time(self, "period").and_then(|period| self.positive(&table, "period", period));
        let validity = table.time(self, "validity").unwrap_or(Span::Infinite);
        let validity =
            if validity == Span::Infinite { Some(validity) } else { self.positive(&table, "validity", validity).map(Span::Finite) };
        let jitter = self.finite_time(&mut table, "jitter");
        let edge = self.edge_of(&mut table);
        self.places.suppliers.push(edge);
        let form = table.word(self, "form", &Form::NAMES).unwrap_or_default();
        self.forms.suppliers.push(form);
        table.finish(self);
        Some(Supplier { topic: topic?, shape: shape?, period: period?, validity: validity?, jitter })
    }

    /// A time that is finite; without one there is none.
    fn finite_time(&mut self, table: &mut Table<'_>, key: &str) -> Nanos {
        match table.time(self, key).unwrap_or(Nanos::ZERO.into()) {
            Span::Finite(time) => time,
            Span::Infinite => {
                self.wrong(table.time_place(key), format!("{key} must be finite"));
                Nanos::ZERO
            }
        }
    }

    /// A time that is finite and greater than 0.
    fn positive(&mut self, table: &Table<'_>, key: &str, time: Span) -> Option<Nanos> {
        let found = time.finite().filter(|time| *time > Nanos::ZERO);
        if found.is_none() {
            self.wrong(table.time_place(key), format!("{key} must be finite and greater than 0"));
        }
        found
    }

    /// Takes a name.
    fn named(&mut self, name: &str, source: Source, at: Range<usize>) {
        if self.sources.insert(name.to_owned(), source).is_some() {
            self.wrong(at, format!("{name} is a topic or an operator already"));
        }
    }

    fn output(&mut self, mut table: Table<'_>) -> Option<Output> {
        let topic = table.topic(self, "topic");
        let from = table.text(self, "from").and_then(|from| match self.source(&from, table.place("from")) {
            Some(Source::Operator(operator)) => Some(operator),
            Some(Source::Supplier(_)) => {
                self.wrong(table.place("from"), format!("from must be an operator, and {from} is a topic: who wants it subscribes to it"));
                None
            }
            None => None,
        });
        let level = table.whole(self, "level", 0..=u32::from(Level::COUNT) - 1, Some(0)).and_then(|level| Level::new(level as u8));
        let deadline = table.time(self, "deadline").unwrap_or(Span::Infinite);
        let form = table.word(self, "form", &Form::NAMES).unwrap_or_default();
        self.forms.outputs.push(form);
        table.finish(self);
        Some(Output { topic: topic?, from: from?, level: level?, deadline })
    }

    /// What a name stands for.
    fn source(&mut self, name: &str, at: Range<usize>) -> Option<Source> {
        let found = self.sources.get(name).or_else(|| self.sources.get(&(self.topic_name)(name).ok()?)).copied();
        if found.is_none() {
            self.wrong(at, format!("{name} is no supplier's topic and no operator"));
        }
        found
    }

    fn fault(&mut self, fault: GraphFault, [suppliers, operators, outputs]: [&[Range<usize>]; 3]) {
        let at = |operator: OperatorId| operators[operator.index()].clone();
        match fault {
            GraphFault::Cycle(_) => unreachable!("cycles are found before operators are made"),
            GraphFault::LeadsNowhere(operator) => self.wrong(at(operator), "no output needs this operator"),
            GraphFault::Unheard(supplier) => self.wrong(suppliers[supplier.index()].clone(), "no operator takes events from this supplier"),
            GraphFault::TopicTaken(output) => {
                self.wrong(outputs[output].clone(), "topic is a supplier's or another output's: each topic of a graph has one writer");
            }
            GraphFault::TooManyEvents(operator) => {
                self.wrong(at(operator), format!("a round takes more than {} events", bodkin_broker::graph::EVENTS_MAX));
            }
            GraphFault::TooManyLeads(operator) => {
                self.wrong(
                    at(operator),
                    format!("there are more than {} ways to this operator on which any event starts it", bodkin_broker::graph::LEADS_MAX),
                );
            }
        }
    }
}

fn places(tables: &[Table<'_>]) -> Vec<Range<usize>> {
    tables.iter().map(Table::head).collect()
}

#[cfg(test)]
mod tests;
