//! Checkpoints of a deployment, from which the same graph goes on at the other node of a pair.

use bodkin_broker::graph::{
    Cover, OperatorId,
    checkpoint::{self, Checkpoint, CheckpointError},
    machine::EventSlot,
};

use super::Deployment;

/// What checkpoints need besides the machine and the payloads.
#[derive(Default)]
pub(super) struct Saved {
    /// By operator: its state behind its last round, for its own is a worker's while the next one runs. Empty where no checkpoints are made.
    states: Vec<Vec<u8>>,
    /// A buffer.
    held: Vec<EventSlot>,
}

impl Deployment {
    /// Notes the states of all operators, of which none runs, so that checkpoints can be made from now on.
    pub fn protect(&mut self) {
        self.saved.states.resize_with(self.graph().operators().len(), Vec::new);
        (0..self.saved.states.len()).for_each(|at| self.note_state(OperatorId::of(at)));
    }

    /// Notes the state of an operator whose round is over, if checkpoints are made.
    pub(super) fn note_state(&mut self, operator: OperatorId) {
        if let Some(state) = self.saved.states.get_mut(operator.index()) {
            state.clear();
            self.plant.save(operator, state);
        }
    }

    /// Appends a checkpoint of what the graph is at this instant.
    pub fn checkpoint(&mut self, cover: &Cover, out: &mut Vec<u8>) {
        let Self { machine, plant, saved: Saved { states, held }, digest, .. } = self;
        let payload = |slot, out: &mut Vec<u8>| out.extend_from_slice(&plant.payload(slot));
        let state = |operator: OperatorId, out: &mut Vec<u8>| out.extend_from_slice(&states[operator.index()]);
        checkpoint::write(*digest, (machine, cover), held, payload, state, out);
    }

    /// Goes on from a checkpoint, before the graph has taken an event. One that does not fit changes nothing.
    pub fn go_on_from(&mut self, now_ns: u64, checkpoint: &Checkpoint<'_>, cover: &mut Cover) -> Result<(), CheckpointError> {
        let Self { machine, plant, digest, .. } = self;
        let mut refused = Vec::new();
        let restore = |operator, state: &[u8]| {
            if let Err(error) = plant.restore(operator, state) {
                refused.push((operator, error));
            }
        };
        checkpoint.restore(*digest, (machine, cover), |slot, payload| plant.fill(slot, payload), restore)?;
        for (operator, error) in refused {
            let graph = self.graph();
            tracing::error!(graph = graph.name, operator = graph.operator(operator).name, %error, "an operator begins anew");
        }
        self.protect();
        self.resume(now_ns);
        Ok(())
    }
}
