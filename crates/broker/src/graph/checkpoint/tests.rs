//! A graph is cut at every instant, and goes on elsewhere: what it makes there is what it would have made here.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{super::*, *};
use crate::{
    graph::{
        machine::{Action, Arrival, JobId, Lead, Outcome, Policy},
        testing::{chain, figure_2_2, operator, output, supplier},
    },
    time::Instant,
};

const DIGEST: u64 = 7;

/// A machine whose operators sum up: what they take, and all that they have ever taken.
struct Cloud {
    machine: Machine,
    cover: Cover,
    payloads: BTreeMap<EventSlot, Vec<u8>>,
    /// By operator, behind its last round.
    states: Vec<u64>,
    jobs: Vec<JobId>,
    made: Vec<(usize, Lead, u64)>,
}

impl Cloud {
    fn new(graph: &Graph, cores: usize) -> Self {
        let policy = Policy { cores, is_preemptive: false, replaces_queued: false };
        Self {
            machine: Machine::new(graph.clone(), policy),
            cover: Cover::new(graph.suppliers().iter().map(|_| 4), 100),
            payloads: BTreeMap::new(),
            states: vec![0; graph.operators().len()],
            jobs: Vec::new(),
            made: Vec::new(),
        }
    }

    fn arrive(&mut self, supplier: usize, sequence: u64) {
        let (supplier, publisher, incarnation) = (SupplierId::of(supplier), PublisherId(1), Incarnation(1));
        let sequence = Sequence(sequence);
        if self.cover.has(supplier, publisher, incarnation, sequence) {
            return;
        }
        self.cover.take(Instant::default(), Taken { supplier, publisher, incarnation, through: sequence });
        let mut actions = Vec::new();
        let arrival = Arrival { supplier, publisher, incarnation, sequence, created_ns: sequence.0, bytes: 8 };
        let slot = self.machine.arrive(0, arrival, &mut actions).expect("it is taken");
        self.payloads.insert(slot, sequence.0.to_be_bytes().to_vec());
        self.carry_out(&actions);
    }

    fn number(&self, slot: EventSlot) -> u64 {
        u64::from_be_bytes(self.payloads[&slot].as_slice().try_into().expect("eight bytes"))
    }

    fn carry_out(&mut self, actions: &[Action]) {
        for action in actions {
            match *action {
                Action::Run(job) => self.jobs.push(job),
                Action::Deliver { output, slot, record, .. } => self.made.push((output, record.lead, self.number(slot))),
                Action::Shed { .. } => panic!("everything is valid"),
            }
        }
    }

    fn finish(&mut self, at: usize) {
        let job = self.jobs.remove(at);
        let round = self.machine.job(job).expect("it runs");
        let state = &mut self.states[job.operator.index()];
        *state = round.events.iter().fold(*state, |sum, slot| {
            sum.wrapping_mul(31).wrapping_add(u64::from_be_bytes(self.payloads[slot].as_slice().try_into().expect("eight bytes")))
        });
        self.payloads.insert(round.result, state.to_be_bytes().to_vec());
        let mut actions = Vec::new();
        self.machine.finish(0, job, Outcome::Done(Emission::Emit, 8), &mut actions);
        self.carry_out(&actions);
    }

    fn checkpoint(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let payload = |slot, out: &mut Vec<u8>| out.extend_from_slice(&self.payloads[&slot]);
        let state = |operator: OperatorId, out: &mut Vec<u8>| out.extend_from_slice(&self.states[operator.index()].to_be_bytes());
        write(DIGEST, (&self.machine, &self.cover), &mut Vec::new(), payload, state, &mut out);
        out
    }

    fn restored(graph: &Graph, cores: usize, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let mut cloud = Self::new(graph, cores);
        let Self { machine, cover, payloads, states, .. } = &mut cloud;
        let fill = |slot, payload: &[u8]| drop(payloads.insert(slot, payload.to_vec()));
        let restore = |operator: OperatorId, state: &[u8]| {
            if let Ok(state) = state.try_into() {
                states[operator.index()] = u64::from_be_bytes(state);
            }
        };
        Checkpoint::read(bytes)?.restore(DIGEST, (machine, cover), fill, restore)?;
        let mut actions = Vec::new();
        cloud.machine.resume(0, &mut actions);
        cloud.carry_out(&actions);
        Ok(cloud)
    }
}

/// Windows, what is latest, two levels, and an operator that any event starts.
fn every_use() -> Graph {
    let number = |number| std::num::NonZeroU16::new(number).expect("it is not 0");
    let of = |number| Source::Supplier(SupplierId::of(number));
    let mut first = operator("first", Shape::NUMBER, &[of(0), of(1)]);
    first.inputs[0].usage = Use::Window { events: number(3), step: number(2) };
    first.inputs[1].usage = Use::Latest;
    let second = operator("second", Shape::NUMBER, &[Source::Operator(OperatorId::of(0)), of(1)]);
    let any = OperatorSpec { trigger: Trigger::Any, ..operator("any", Shape::NUMBER, &[Source::Operator(OperatorId::of(0)), of(0)]) };
    let suppliers = vec![supplier("A", Shape::NUMBER, 10), supplier("B", Shape::NUMBER, 10)];
    let outputs = vec![output("X", 0, 0), output("Y", 1, 2), output("Z", 2, 1)];
    Graph::new("every use".to_owned(), suppliers, vec![first, second, any], outputs).expect("it is a graph")
}

/// What comes at a supplier, or the end of a round: numbers are taken modulo what there is.
fn drive(cloud: &mut Cloud, sequences: &mut [u64], (choice, which): (u8, usize)) {
    match choice {
        0 | 1 => {
            let supplier = which % sequences.len();
            sequences[supplier] += 1;
            cloud.arrive(supplier, sequences[supplier]);
        }
        _ if cloud.jobs.is_empty() => {}
        _ => cloud.finish(which % cloud.jobs.len()),
    }
}

proptest! {
    /// Wherever a graph is cut: when all rounds are over, the one that goes on from the checkpoint has held, made and learned the same.
    #[test]
    fn a_graph_goes_on_from_a_checkpoint_as_if_nothing_had_happened(
        which in 0usize..3, script in prop::collection::vec((0u8..4, 0usize..8), 0..60),
    ) {
        let graph = [chain(&[1, 1, 1], &[(2, 0), (0, 1)]), figure_2_2(), every_use()][which].clone();
        // Of one way the order is the same with one core, too; of several it is where nobody waits for a core.
        let cores = if which == 0 { 1 } else { 64 };
        let (mut here, mut sequences) = (Cloud::new(&graph, cores), vec![0; graph.suppliers().len()]);
        script.iter().for_each(|step| drive(&mut here, &mut sequences, *step));
        let bytes = here.checkpoint();
        let mut there = Cloud::restored(&graph, cores, &bytes).expect("it is a checkpoint of this graph");
        prop_assert_eq!(there.cover.taken().collect::<Vec<_>>(), here.cover.taken().collect::<Vec<_>>());
        here.made.clear();
        // What was taken before is known.
        (0..sequences.len()).filter(|supplier| sequences[*supplier] > 0).for_each(|supplier| there.arrive(supplier, sequences[supplier]));
        for cloud in [&mut here, &mut there] {
            // Rounds of one operator are in one order; operators that run at once are looked at in that of their numbers.
            while let Some(at) = (0..cloud.jobs.len()).min_by_key(|at| cloud.jobs[*at].operator) {
                cloud.finish(at);
            }
        }
        here.made.sort_unstable();
        there.made.sort_unstable();
        prop_assert_eq!(&here.made, &there.made);
        prop_assert_eq!(&here.states, &there.states);
        prop_assert_eq!(here.machine.slots_held(), there.machine.slots_held());
    }

    /// Whatever comes instead of a checkpoint is refused, or a graph goes on from it without breaking.
    #[test]
    fn garbled_checkpoints_break_nothing(
        script in prop::collection::vec((0u8..4, 0usize..8), 0..40), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        after in prop::collection::vec((0u8..4, 0usize..8), 0..40),
    ) {
        let graph = every_use();
        let (mut here, mut sequences) = (Cloud::new(&graph, 2), vec![0; graph.suppliers().len()]);
        script.iter().for_each(|step| drive(&mut here, &mut sequences, *step));
        let mut bytes = here.checkpoint();
        for (place, byte) in changes {
            *place.get_mut(&mut bytes) = byte;
        }
        if let Ok(mut there) = Cloud::restored(&graph, 2, &bytes) {
            after.iter().for_each(|step| drive(&mut there, &mut sequences, *step));
        }
    }
}

#[test]
fn a_checkpoint_of_another_graph_or_a_cut_one_is_refused() {
    let graph = every_use();
    let mut cloud = Cloud::new(&graph, 2);
    (1..=4).for_each(|sequence| cloud.arrive(0, sequence));
    let bytes = cloud.checkpoint();
    let checkpoint = Checkpoint::read(&bytes).expect("it is one");
    assert_eq!(checkpoint.topics(), ["A", "B"]);
    for cut in 0..bytes.len() {
        assert!(Cloud::restored(&graph, 2, &bytes[..cut]).is_err(), "cut to {cut} bytes");
    }
    let mut other = Cloud::new(&graph, 2);
    let refused = checkpoint.restore(DIGEST + 1, (&mut other.machine, &mut other.cover), |_, _| {}, |_, _| {});
    assert_eq!(refused, Err(CheckpointError::OtherGraph));
    let misfit = Cloud::restored(&chain(&[1], &[(0, 0)]), 2, &bytes);
    assert!(matches!(misfit.err(), Some(CheckpointError::Held(_))), "it holds what that graph has no room for");
}
