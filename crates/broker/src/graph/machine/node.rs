//! An operator at work.

use super::{
    super::spec::{Graph, OperatorId, Source},
    counters::OperatorCounters,
    inputs::{Inputs, Round},
    progress::Progress,
    store::{EventSlot, Store},
};

/// A round that runs, or ran last.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub events: Vec<EventSlot>,
    pub counts: Vec<u16>,
    pub result: EventSlot,
    pub round: Round,
    pub saves: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub level: usize,
    pub inputs: Inputs,
    /// Whether it waits in its level's queue.
    pub is_queued: bool,
    pub running: Option<Running>,
    /// Kept so that nothing is allocated for a round.
    pub spare: (Vec<EventSlot>, Vec<u16>),
    pub rounds: u64,
    pub remaining_ns: u64,
    pub progress: Progress,
    pub counters: OperatorCounters,
    pub readers: Vec<(OperatorId, usize)>,
    pub outputs: Vec<usize>,
    /// Outputs behind it, however far.
    pub behind: Vec<usize>,
}

impl Node {
    pub fn new(graph: &Graph, id: OperatorId, level: usize) -> Self {
        let spec = graph.operator(id);
        let outputs: Vec<usize> = (0..graph.outputs().len()).filter(|output| graph.outputs()[*output].from == id).collect();
        let events = spec.inputs.iter().map(|edge| edge.usage.events()).sum();
        Self {
            level,
            inputs: Inputs::new(spec, &branches(graph, id)),
            is_queued: false,
            running: None,
            spare: (Vec::with_capacity(events), Vec::with_capacity(spec.inputs.len())),
            rounds: 0,
            remaining_ns: graph.remaining(id).get().unsigned_abs(),
            progress: Progress::default(),
            counters: OperatorCounters::default(),
            readers: graph.readers(Source::Operator(id)).collect(),
            outputs,
            behind: behind(graph, id),
        }
    }

    /// Of an operator whose state is saved: the events of a round are in its state.
    pub fn note(&mut self, store: &Store, events: &[EventSlot], counts: &[u16]) {
        if !self.progress.is_kept() {
            return;
        }
        let inputs = counts.iter().enumerate().flat_map(|(input, count)| std::iter::repeat_n(input, usize::from(*count)));
        for (input, slot) in inputs.zip(events) {
            self.progress.advance(input, store.record(*slot).lead);
        }
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
