//! Copies of a graph with three levels: each event is taken in, joined, shared and delivered. The rounds themselves take no time.

use bodkin_broker::{
    Incarnation, PublisherId, Sequence,
    graph::{
        Edge, Emission, Graph, OnInvalid, OperatorId, OperatorSpec, Output, Shape, Source, Supplier, SupplierId, Trigger, Use,
        machine::{Action, Arrival, Machine, Outcome, Policy},
    },
    timing::Nanos,
    topic::Level,
};

/// Rounds that one copy makes of an event of each of its suppliers.
const HOPS: usize = 7;

/// Of each operator of a copy: where its events come from (0 and 1 are the suppliers, 2 the first operator), and the level of its output, if it has one.
const OPERATORS: [(&[usize], Option<u8>); HOPS] =
    [(&[0], None), (&[1], None), (&[2, 3], Some(0)), (&[2], None), (&[5, 3], Some(1)), (&[4], None), (&[6, 7], Some(2))];

/// The graph at work, with a host that carries everything out at once.
pub struct Workload {
    machine: Machine,
    copies: usize,
    round: u64,
    actions: Vec<Action>,
    next: Vec<Action>,
    delivered: usize,
    hops: usize,
}

impl Workload {
    pub fn new(copies: usize) -> Self {
        let mut suppliers = Vec::new();
        let (mut operators, mut outputs) = (Vec::new(), Vec::new());
        for copy in 0..copies {
            let (first_supplier, first_operator) = (suppliers.len(), operators.len());
            suppliers.extend(["A", "B"].map(|name| Supplier {
                topic: format!("{name}{copy}"),
                shape: Shape::NUMBER,
                period: Nanos::from_millis(5),
                validity: Nanos::from_millis(10).into(),
                jitter: Nanos::ZERO,
            }));
            for (at, (inputs, level)) in OPERATORS.iter().enumerate() {
                let source = |number: usize| match number.checked_sub(2) {
                    None => Source::Supplier(SupplierId::of(first_supplier + number)),
                    Some(operator) => Source::Operator(OperatorId::of(first_operator + operator)),
                };
                operators.push(OperatorSpec {
                    name: format!("o{at} of {copy}"),
                    inputs: inputs.iter().map(|number| Edge { from: source(*number), usage: Use::Consume }).collect(),
                    trigger: Trigger::All,
                    shape: Shape::NUMBER,
                    relative: Vec::new(),
                    on_invalid: OnInvalid::Shed,
                    cost: Nanos::ZERO,
                });
                outputs.extend(level.map(|level| Output {
                    topic: format!("T{at} of {copy}"),
                    from: OperatorId::of(first_operator + at),
                    level: Level::new(level).expect("it is one"),
                    deadline: Nanos::from_millis(10).into(),
                }));
            }
        }
        let graph = Graph::new("copies".to_owned(), suppliers, operators, outputs).expect("it is a graph");
        let machine = Machine::new(graph, Policy { cores: 2, is_preemptive: false, replaces_queued: true });
        Self { machine, copies, round: 0, actions: Vec::with_capacity(64), next: Vec::with_capacity(64), delivered: 0, hops: 0 }
    }

    /// An event of each supplier, and everything that comes of it.
    pub fn round(&mut self) {
        self.round += 1;
        let created_ns = self.round * 5_000_000;
        for supplier in 0..self.copies * 2 {
            let arrival = Arrival {
                supplier: SupplierId::of(supplier),
                publisher: PublisherId(1),
                incarnation: Incarnation(1),
                sequence: Sequence(self.round),
                created_ns,
                bytes: 8,
            };
            self.machine.arrive(created_ns, arrival, &mut self.actions).expect("it is taken");
            while !self.actions.is_empty() {
                for action in self.actions.drain(..) {
                    match action {
                        Action::Run(job) => {
                            std::hint::black_box(self.machine.job(job));
                            self.hops += 1;
                            self.machine.finish(created_ns, job, Outcome::Done(Emission::Emit, 8), &mut self.next);
                        }
                        Action::Deliver { .. } => self.delivered += 1,
                        Action::Shed { .. } => panic!("{action:?}"),
                    }
                }
                std::mem::swap(&mut self.actions, &mut self.next);
            }
        }
    }

    /// Every event has come through.
    pub fn check(&self) {
        let rounds = self.round as usize * self.copies;
        assert_eq!((self.hops, self.delivered), (rounds * HOPS, rounds * 3));
    }
}
