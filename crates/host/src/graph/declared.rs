//! Graphs that the configuration declares, looked at before anything is started.

use bodkin_arrowhead::name::EventType;
use bodkin_broker::{
    graph::{
        Graph,
        placement::bound::PlacedAnalysis,
        response::{Analysis, Bound},
    },
    timing::{Nanos, Span},
};
use bodkin_operators::{
    Keys,
    catalogue::KINDS,
    file::{self, GraphFile, Mistake},
};

use super::{Carriers, Processors};

/// A graph, and where it was declared.
#[derive(Clone, Debug)]
pub struct DeclaredGraph {
    /// As it is told: the file.
    pub place: String,
    /// What it says.
    pub file: GraphFile,
}

impl DeclaredGraph {
    /// What a file says; of one over several edges what the edge of this name runs of it, if all of it is in time.
    pub fn new(place: String, file: GraphFile, edge: &str) -> Result<Self, GraphError> {
        Self::judged(place, file, edge, Lateness::Refused)
    }

    /// The same where it is said what becomes of what is late.
    pub fn judged(place: String, file: GraphFile, edge: &str, lateness: Lateness) -> Result<Self, GraphError> {
        let Some(placement) = &file.placement else { return Ok(Self { place, file }) };
        let own = placement.hosts.iter().position(|host| host.name == edge);
        let placed = PlacedAnalysis::of(&file.graph, placement);
        let Some(part) = own.and_then(|own| file.part(placement, &placed, own)) else {
            let edges: Vec<&str> = placement.hosts.iter().map(|host| host.name.as_str()).collect();
            return Err(GraphError::Edge { place, edge: edge.to_owned(), edges: edges.join(", ") });
        };
        let links = placement.links.iter().zip(&placed.links).map(|(link, bound)| (&link.topic, link.deadline, bound));
        let outputs = file.graph.outputs().iter().zip(&placed.outputs).map(|(output, bound)| (&output.topic, output.deadline, bound));
        let late_one =
            links.chain(outputs).find_map(|(topic, deadline, bound)| missed(deadline, bound).map(|deadline| (topic, deadline, bound)));
        late_one.map_or(Ok(()), |(topic, deadline, bound)| lateness.judge(late(place.clone(), topic, bound, deadline)))?;
        Ok(Self { place, file: part })
    }
}

/// What becomes of a graph whose results may be late, or whose workers have too few processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lateness {
    /// It is refused.
    Refused,
    /// The log tells it.
    Told,
}

impl Lateness {
    pub(super) fn judge(self, late: GraphError) -> Result<(), GraphError> {
        match self {
            Self::Refused => Err(late),
            Self::Told => {
                tracing::warn!(%late, "a graph runs that may be late");
                Ok(())
            }
        }
    }
}

impl DeclaredGraph {
    /// Whether every edge that it fetches something from can be reached.
    pub fn check_reach(&self, carriers: &Carriers) -> Result<(), GraphError> {
        let fetched = &self.file.fetched;
        match fetched.suppliers.iter().find(|supplier| !carriers.reach(&fetched.edges[supplier.from.index()])) {
            Some(supplier) => Err(GraphError::Unreached {
                place: self.place.clone(),
                topic: self.file.graph.suppliers()[supplier.supplier.index()].topic.clone(),
                edge: fetched.edges[supplier.from.index()].clone(),
            }),
            None => Ok(()),
        }
    }

    /// Whether nothing that is kept for it at another edge is kept there for another graph by the same name: each would acknowledge what the other one lacks.
    pub fn check_kept(&self, other: &GraphFile, carriers: &Carriers) -> Result<(), GraphError> {
        let kept = |file: &GraphFile| -> Vec<(String, String)> {
            let suppliers = file.fetched.suppliers.iter().filter(|supplier| supplier.loss_tolerance.is_some());
            let named = suppliers.map(|supplier| {
                let topic = file.graph.suppliers()[supplier.supplier.index()].topic.clone();
                (file.fetched.edges[supplier.from.index()].clone(), topic)
            });
            named.filter(|(edge, _)| carriers.is_known_by_key(edge)).collect()
        };
        let others = kept(other);
        match kept(&self.file).into_iter().find(|own| others.contains(own)) {
            Some((edge, topic)) => Err(GraphError::KeptTwice { place: self.place.clone(), topic, edge, other: other.graph.name.clone() }),
            None => Ok(()),
        }
    }
}

/// The deadline that a bound does not meet.
fn missed(deadline: Span, bound: &Bound) -> Option<Nanos> {
    deadline.finite().filter(|_| !bound.is_feasible)
}

/// A result that would come too late.
fn late(place: String, topic: &str, bound: &Bound, deadline: Nanos) -> GraphError {
    let response = bound.response.map_or_else(|| "more than any bound that can be given".to_owned(), |response| response.to_string());
    GraphError::Late { place, topic: topic.to_owned(), response, deadline }
}

/// Graphs that fit each other, with the keys of their operators.
#[derive(Clone, Debug, Default)]
pub struct DeclaredGraphs {
    graphs: Vec<DeclaredGraph>,
    keys: Keys,
    edge: String,
}

/// Why graphs are not deployed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Two of one name.
    #[error("{place}: there is a graph of the name {name} already")]
    Name {
        /// Where.
        place: String,
        /// Which.
        name: String,
    },
    /// Two graphs write a topic, or one reads what another one writes.
    #[error(
        "{place}: topic {topic} is written by graph {writer}, and a topic of a graph has one writer and no other graph behind it: put both in one graph"
    )]
    Topic {
        /// Where.
        place: String,
        /// Which.
        topic: String,
        /// Whose.
        writer: String,
    },
    /// A result may be longer than an event.
    #[error(
        "{place}: an event of {topic} may have {bytes} bytes, and event_bytes_max is {bytes_max}: let it have fewer points, write it as form = \"base64\", or raise event_bytes_max"
    )]
    TooLong {
        /// Where.
        place: String,
        /// Which topic.
        topic: String,
        /// Its longest text.
        bytes: usize,
        /// What may be.
        bytes_max: usize,
    },
    /// An operator cannot be made with the keys that are there.
    #[error("{place}: operator {operator}: {why}")]
    Operator {
        /// Where.
        place: String,
        /// Which.
        operator: String,
        /// Why.
        why: String,
    },
    /// A graph wants more cores than there are.
    #[error("{place}: cores = {cores}, and this machine has {processors} processors: set cores to at most {processors}")]
    Cores {
        /// Where.
        place: String,
        /// What its file says.
        cores: usize,
        /// What the machine has.
        processors: usize,
    },
    /// The graphs together want more threads than the machine is to run.
    #[error(
        "{place}: the graph needs {workers} worker threads and the other graphs have {others}, and the limit of this machine is {limit} ({per_processor} for each processor): lower cores, leave preemption out, or remove a graph",
        per_processor = super::workers::WORKERS_PER_PROCESSOR
    )]
    Workers {
        /// Where.
        place: String,
        /// Its threads.
        workers: usize,
        /// Those of the other graphs.
        others: usize,
        /// Of all together.
        limit: usize,
    },
    /// A result would come too late.
    #[error(
        "{place}: {topic} takes {response} at the worst, and its deadline is {deadline}: `bodkin graph check` says what would have to change"
    )]
    Late {
        /// Where.
        place: String,
        /// Which topic.
        topic: String,
        /// How long it takes.
        response: String,
        /// How long it may.
        deadline: Nanos,
    },
    /// What comes from another edge cannot be fetched there.
    #[error("{place}: {topic} comes from the edge {edge}, and where that is was not said: --edges {edge}=ADDRESS:PORT")]
    Unreached {
        /// Where.
        place: String,
        /// Which topic.
        topic: String,
        /// Which edge.
        edge: String,
    },
    /// Two graphs fetch a topic that is kept for them, from an edge that cannot tell them apart.
    #[error(
        "{place}: {topic} of the edge {edge} is fetched with a loss_tolerance by graph {other} already, and that edge knows both by the one key of this host, so that what one has taken would count for the other: put both into one graph, or leave loss_tolerance out in one of them"
    )]
    KeptTwice {
        /// Where.
        place: String,
        /// Which topic.
        topic: String,
        /// Of which edge.
        edge: String,
        /// The graph that has it.
        other: String,
    },
    /// A file over several edges of which nothing runs here.
    #[error(
        "{place}: the graph runs on the edges {edges}, and this one is called '{edge}' and has no part of it: start it with --edge NAME"
    )]
    Edge {
        /// Where.
        place: String,
        /// What this one is called.
        edge: String,
        /// What the file names.
        edges: String,
    },
}

impl DeclaredGraphs {
    /// Takes graphs that fit each other, whose results are in time, and whose keys are there. Results are events of at most so many bytes.
    pub fn new(graphs: Vec<DeclaredGraph>, keys: Keys, event_bytes_max: usize) -> Result<Self, GraphError> {
        for (at, declared) in graphs.iter().enumerate() {
            graphs[..at].iter().try_for_each(|other| check_beside(declared, &other.file.graph))?;
            declared.check(&keys, event_bytes_max, Lateness::Refused)?;
            let processors = Processors::available();
            let others = graphs[..at].iter().map(|other| processors.workers(&other.file)).sum();
            processors.check(&declared.place, &declared.file, others, Lateness::Refused)?;
        }
        Ok(Self { graphs, keys, edge: String::new() })
    }

    /// The same where this host is called so in graphs over several.
    pub fn called(self, edge: String) -> Self {
        Self { edge, ..self }
    }

    /// What this host is called in graphs over several; empty: it has no part in any.
    pub fn edge(&self) -> &str {
        &self.edge
    }

    /// All of them.
    pub fn graphs(&self) -> &[DeclaredGraph] {
        &self.graphs
    }

    /// The keys of their operators, and of others.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }
}

/// Reads a graph file; gives all mistakes if there are any.
pub fn parse(text: &str) -> Result<GraphFile, Vec<Mistake>> {
    file::parse(text, KINDS, topic_name)
}

fn topic_name(text: &str) -> Result<String, String> {
    let name = EventType::parse(text).map_err(|error| error.to_string().trim_end_matches('.').to_owned())?;
    Ok(name.as_str().to_owned())
}

/// Whether a graph can run beside another one: neither writes what the other one writes or reads.
pub(super) fn check_beside(declared: &DeclaredGraph, other: &Graph) -> Result<(), GraphError> {
    let (own, place) = (&declared.file.graph, || declared.place.clone());
    if own.name == other.name {
        return Err(GraphError::Name { place: place(), name: own.name.clone() });
    }
    let writes = |graph: &Graph, topic: &str| graph.outputs().iter().any(|output| output.topic == topic);
    let taken = |topic: &str, writer: &Graph| GraphError::Topic { place: place(), topic: topic.to_owned(), writer: writer.name.clone() };
    let own_topics = own.outputs().iter().map(|output| &output.topic).chain(own.suppliers().iter().map(|supplier| &supplier.topic));
    if let Some(topic) = own_topics.into_iter().find(|topic| writes(other, topic)) {
        return Err(taken(topic, other));
    }
    match other.suppliers().iter().find(|supplier| writes(own, &supplier.topic)) {
        Some(supplier) => Err(taken(&supplier.topic, own)),
        None => Ok(()),
    }
}

impl DeclaredGraph {
    /// Whether its results are in time and no longer than events may be, and its keys are there.
    pub(super) fn check(&self, keys: &Keys, event_bytes_max: usize, lateness: Lateness) -> Result<(), GraphError> {
        let GraphFile { graph, recipes, forms, workers, .. } = &self.file;
        for (output, form) in graph.outputs().iter().zip(&forms.outputs) {
            let bytes = form.bytes_max(graph.operator(output.from).shape);
            if bytes > event_bytes_max {
                let (place, topic) = (self.place.clone(), output.topic.clone());
                return Err(GraphError::TooLong { place, topic, bytes, bytes_max: event_bytes_max });
            }
        }
        for (operator, recipe) in graph.operators().iter().zip(recipes) {
            recipe.make(Some(keys)).map_err(|misfit| GraphError::Operator {
                place: self.place.clone(),
                operator: operator.name.clone(),
                why: misfit.to_string(),
            })?;
        }
        let analysis = Analysis::of(graph, workers);
        let outputs = graph.outputs().iter().zip(&analysis.outputs);
        match outputs.filter_map(|(output, bound)| Some((output, bound, missed(output.deadline, bound)?))).next() {
            Some((output, bound, deadline)) => lateness.judge(late(self.place.clone(), &output.topic, bound, deadline)),
            None => Ok(()),
        }
    }
}
