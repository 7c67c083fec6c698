//! An operator at work.

use super::{
    super::spec::{Graph, OperatorId, Source},
    chain::Reserved,
    counters::OperatorCounters,
    inputs::{Inputs, Round},
    store::EventSlot,
};

/// A round that runs, or ran last.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub events: Vec<EventSlot>,
    pub counts: Vec<u16>,
    pub result: EventSlot,
    pub round: Round,
    /// The first operator of the chain that it belongs to: itself where it is in none.
    pub first: OperatorId,
}

/// A round that another node had begun, and that is to be run here.
#[derive(Clone, Debug)]
pub(super) struct Redo {
    pub round: Round,
    pub events: Vec<EventSlot>,
    pub counts: Vec<u16>,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub level: usize,
    pub inputs: Inputs,
    /// Whether it waits in its level's queue.
    pub is_queued: bool,
    pub running: Option<Running>,
    pub redo: Option<Redo>,
    /// The operator that a worker may go on with behind this one.
    pub follower: Option<OperatorId>,
    /// The round that a worker is to go on with here.
    pub reserved: Option<Reserved>,
    /// Kept so that nothing is allocated for a round.
    pub spare: (Vec<EventSlot>, Vec<u16>),
    pub rounds: u64,
    pub remaining_ns: u64,
    pub counters: OperatorCounters,
    pub readers: Vec<(OperatorId, usize)>,
    pub outputs: Vec<usize>,
    /// Outputs behind it, however far.
    pub behind: Vec<usize>,
}

impl Node {
    pub fn new(graph: &Graph, id: OperatorId, level: usize, follower: Option<OperatorId>) -> Self {
        let spec = graph.operator(id);
        let outputs: Vec<usize> = (0..graph.outputs().len()).filter(|output| graph.outputs()[*output].from == id).collect();
        let events = spec.inputs.iter().map(|edge| edge.usage.events()).sum();
        Self {
            level,
            inputs: Inputs::new(spec, &branches(graph, id)),
            is_queued: false,
            running: None,
            redo: None,
            follower,
            reserved: None,
            spare: (Vec::with_capacity(events), Vec::with_capacity(spec.inputs.len())),
            rounds: 0,
            remaining_ns: graph.remaining(id).get().unsigned_abs(),
            counters: OperatorCounters::default(),
            readers: graph.readers(Source::Operator(id)).collect(),
            outputs,
            behind: behind(graph, id),
        }
    }

    /// The round that runs, or is to be run: what it is made of, its events, and how many of each input.
    pub fn round_to_run(&self) -> Option<(&Round, &[EventSlot], &[u16])> {
        let runs = self.running.as_ref().map(|running| (&running.round, &*running.events, &*running.counts));
        runs.or_else(|| self.redo.as_ref().map(|redo| (&redo.round, &*redo.events, &*redo.counts)))
    }

    /// Whether nothing waits here, and no round runs or is to run.
    pub fn is_at_rest(&self) -> bool {
        self.running.is_none() && self.redo.is_none() && self.reserved.is_none() && self.inputs.events().next().is_none()
    }

    /// Whether a round could begin.
    pub fn has_round(&self) -> bool {
        self.redo.is_some() || self.inputs.is_ready()
    }
}

/// The first stream of each input among those of an operator's results.
fn branches(graph: &Graph, id: OperatorId) -> Vec<u8> {
    let spec = graph.operator(id);
    let leading = spec.leading();
    let mut next = 0;
    let leads = |source| match source {
        Source::Supplier(_) => 1,
        Source::Operator(upstream) => graph.leads(upstream),
    };
    let leading: Vec<usize> = leading.collect();
    spec.inputs
        .iter()
        .enumerate()
        .map(|(input, edge)| match leading.contains(&input) {
            true => {
                next += leads(edge.from);
                next - leads(edge.from)
            }
            false => 0,
        })
        .collect()
}

/// Outputs of an operator and of all behind it.
fn behind(graph: &Graph, id: OperatorId) -> Vec<usize> {
    let mut is_behind = vec![false; graph.operators().len()];
    is_behind[id.index()] = true;
    for operator in graph.order() {
        let from = |source: Source| matches!(source, Source::Operator(upstream) if is_behind[upstream.index()]);
        let reads = graph.operator(*operator).inputs.iter().any(|edge| from(edge.from));
        is_behind[operator.index()] |= reads;
    }
    (0..graph.outputs().len()).filter(|output| is_behind[graph.outputs()[*output].from.index()]).collect()
}
