//! A machine, and workers that end when a test says so.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::*;

/// What is to happen, in this order at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Happening {
    /// A round has had its time.
    End { operator: usize, round: u64 },
    /// A supplier's event comes.
    Arrival { supplier: usize, sequence: u64 },
}

/// What is to happen when, in nanoseconds.
pub type Agenda = BinaryHeap<Reverse<(u64, Happening)>>;

/// A machine on the bench. Its time is what the test says.
pub struct Rig {
    pub machine: Machine,
    pub now_ns: u64,
    /// Rounds that run, in the order in which they began.
    pub jobs: Vec<JobId>,
    pub delivered: Vec<(Record, Sequence, u32)>,
    /// By output, the names of what was delivered.
    pub delivered_by: Vec<(usize, Lead)>,
    pub shed: Vec<(usize, u64, Invalid)>,
    /// Events of each input of the rounds that have begun.
    pub ran: Vec<Vec<u16>>,
}

impl Rig {
    pub fn new(graph: Graph, cores: usize) -> Self {
        Self::with(graph, Policy { cores, is_preemptive: false, replaces_queued: false })
    }

    pub fn with(graph: Graph, policy: Policy) -> Self {
        let machine = Machine::new(graph, policy);
        Self { machine, now_ns: 0, jobs: Vec::new(), delivered: Vec::new(), delivered_by: Vec::new(), shed: Vec::new(), ran: Vec::new() }
    }

    /// An event of eight bytes, made now by publisher 1.
    pub fn arrival(&self, supplier: usize, sequence: u64) -> Arrival {
        Arrival {
            supplier: SupplierId::of(supplier),
            publisher: PublisherId(1),
            incarnation: Incarnation(1),
            sequence: Sequence(sequence),
            created_ns: self.now_ns,
            bytes: 8,
        }
    }

    pub fn arrive(&mut self, supplier: usize, sequence: u64) {
        self.arrive_of(supplier, sequence, self.now_ns).expect("it is taken");
    }

    /// An event that was made before.
    pub fn arrive_of(&mut self, supplier: usize, sequence: u64, created_ns: u64) -> Result<(), Refused> {
        let arrival = Arrival { created_ns, ..self.arrival(supplier, sequence) };
        let mut out = Vec::new();
        let taken = self.machine.arrive(self.now_ns, arrival, &mut out).map(drop);
        self.carry_out(&out);
        taken
    }

    /// Goes on after a restore.
    pub fn resume(&mut self) {
        let mut out = Vec::new();
        self.machine.resume(self.now_ns, &mut out);
        self.carry_out(&out);
    }

    fn carry_out(&mut self, actions: &[Action]) {
        for action in actions {
            match *action {
                Action::Run(job) => {
                    self.ran.push(self.machine.job(job).expect("it runs").counts.to_vec());
                    self.jobs.push(job);
                }
                Action::Deliver { output, record, follows, shed, .. } => {
                    self.delivered.push((record, follows, shed));
                    self.delivered_by.push((output, record.lead));
                }
                Action::Shed { operator, lead, why } => self.shed.push((operator.index(), lead.sequence.0, why)),
            }
        }
    }

    pub fn report(&mut self, job: JobId, outcome: Outcome) {
        let mut out = Vec::new();
        self.machine.finish(self.now_ns, job, outcome, &mut out);
        self.carry_out(&out);
    }

    /// The round of an operator that runs ends with a result.
    pub fn finish(&mut self, operator: usize) {
        let at = self.jobs.iter().position(|job| job.operator.index() == operator).expect("it runs");
        let mut job = self.jobs.remove(at);
        while let Some(next) = self.end(job, Outcome::Done(Emission::Emit, 8)) {
            if self.now_ns >= next.too_late_ns {
                return self.report(next.job, Outcome::TooLate);
            }
            job = next.job;
        }
    }

    /// A round ends; gives the one that its worker goes on with if there is a result.
    pub fn end(&mut self, job: JobId, outcome: Outcome) -> Option<Next> {
        let next = self.machine.next(job.operator);
        self.report(job, outcome);
        next
    }

    /// Those rounds end that run now.
    pub fn finish_all_once(&mut self) {
        self.running().into_iter().for_each(|operator| self.finish(operator));
    }

    /// All rounds end, and all that begin then.
    pub fn finish_all(&mut self) {
        while let Some(job) = self.jobs.first() {
            self.finish(job.operator.index());
        }
    }

    /// Operators that run, by their places.
    pub fn running(&self) -> Vec<usize> {
        let mut running: Vec<usize> = self.jobs.iter().map(|job| job.operator.index()).collect();
        running.sort_unstable();
        running
    }

    /// Sequences of what was delivered.
    pub fn sequences(&self) -> Vec<u64> {
        self.delivered.iter().map(|(record, ..)| record.lead.sequence.0).collect()
    }

    /// Plays what is on the agenda, each operator taking its cost; `see` sees what is done and when.
    pub fn play(&mut self, mut agenda: Agenda, mut see: impl FnMut(u64, &Action)) {
        while let Some(Reverse((now_ns, what))) = agenda.pop() {
            self.now_ns = now_ns;
            let mut out = Vec::new();
            match what {
                Happening::End { operator, round } => {
                    let job = JobId { operator: OperatorId::of(operator), round };
                    self.machine.finish(now_ns, job, Outcome::Done(Emission::Emit, 8), &mut out);
                }
                Happening::Arrival { supplier, sequence } => {
                    let arrival = self.arrival(supplier, sequence);
                    self.machine.arrive(now_ns, arrival, &mut out).expect("it is taken");
                }
            }
            for action in out {
                if let Action::Run(JobId { operator, round }) = action {
                    let cost_ns = self.machine.graph().operator(operator).cost.get().unsigned_abs();
                    agenda.push(Reverse((now_ns + cost_ns, Happening::End { operator: operator.index(), round })));
                }
                see(now_ns, &action);
            }
        }
    }
}

pub fn edge(from: Source, usage: Use) -> super::super::super::Edge {
    super::super::super::Edge { from, usage }
}

/// Operators of one level on suppliers A and B (every 10 ms), each with its inputs and an output.
pub fn one_level(operators: &[&[(usize, Use)]]) -> Graph {
    let specs = operators.iter().enumerate().map(|(at, inputs)| {
        let inputs = inputs.iter().map(|(supplier, usage)| edge(source(*supplier), *usage)).collect();
        OperatorSpec { inputs, ..operator(&format!("o{at}"), Shape::NUMBER, &[]) }
    });
    let specs: Vec<OperatorSpec> = specs.collect();
    let outputs: Vec<Output> = (0..specs.len()).map(|at| output(&format!("X{at}"), at, 0)).collect();
    let is_read = |supplier: usize| operators.iter().any(|inputs| inputs.iter().any(|(other, _)| *other == supplier));
    let suppliers = (0..2).filter(|at| is_read(*at)).map(|at| supplier(["A", "B"][at], Shape::NUMBER, 10)).collect();
    Graph::new("g".to_owned(), suppliers, specs, outputs).expect("it is a graph")
}
