//! What the events that a graph holds are caused by, as far as they say so: what a result is made of is what has caused it.
//!
//! The machine says which events a round takes and where its result goes; here the same is noted of their traces, by slot. As long as no event was of a trace nothing is noted.

use bodkin_arrowhead::trace::Cause;
use bodkin_broker::{
    EventId,
    graph::machine::{EventSlot, JobId, Lead, Machine},
};

/// Causes that are noted of one result; of more those of the first inputs are, of each the newest.
pub const CAUSES_MAX: usize = 16;

/// An event of a trace that has come into a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    event: EventId,
    /// When it has come, in nanoseconds since 1970 (UTC).
    came_ns: u64,
    cause: Cause,
}

/// What a result is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Causes, that of the event which the result is named after in front, if it has one; none where no event was of a trace.
    pub causes: Vec<Cause>,
    /// When the first of the events has come, in nanoseconds since 1970 (UTC).
    pub since_ns: u64,
}

/// Of each slot where its event comes from.
#[derive(Debug, Default)]
pub struct Causes {
    /// By slot; it grows.
    origins: Vec<Vec<Origin>>,
    /// What is being put together.
    joined: Vec<Origin>,
}

impl Causes {
    /// Notes what a supplier's event is caused by, in place of what its slot had before.
    pub fn arrive(&mut self, now_ns: u64, slot: EventSlot, event: EventId, cause: Option<Cause>) {
        if cause.is_none() && self.origins.is_empty() {
            return;
        }
        let origins = self.place(slot);
        origins.clear();
        origins.extend(cause.map(|cause| Origin { event, came_ns: now_ns, cause }));
    }

    /// Notes the same of the results of a round that begins, and of those which its worker goes on with.
    pub fn begin(&mut self, machine: &Machine, job: JobId) {
        if self.origins.is_empty() {
            return;
        }
        let round = machine.job(job).expect("a round that begins runs");
        self.join(round.events, round.counts, round.result);
        let mut at = job.operator;
        while let Some(next) = machine.next(at) {
            self.join(&[next.event], &[1], next.result);
            at = next.job.operator;
        }
    }

    /// The result comes from where its events come from, each place once: input by input, of which there are so many events each, the newest of each first.
    fn join(&mut self, mut events: &[EventSlot], counts: &[u16], result: EventSlot) {
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        for count in counts {
            let (of_input, others) = events.split_at(usize::from(*count));
            events = others;
            for origin in of_input.iter().rev().filter_map(|slot| self.origins.get(slot.index())).flatten() {
                if joined.len() < CAUSES_MAX && !joined.contains(origin) {
                    joined.push(origin.clone());
                }
            }
        }
        self.joined = std::mem::replace(self.place(result), joined);
    }

    fn place(&mut self, slot: EventSlot) -> &mut Vec<Origin> {
        if slot.index() >= self.origins.len() {
            self.origins.resize_with(slot.index() + 1, Vec::new);
        }
        &mut self.origins[slot.index()]
    }

    /// What the result in a slot is made of, which is named after `lead`.
    pub fn of(&self, slot: EventSlot, lead: Lead) -> Made {
        let Some(origins) = self.origins.get(slot.index()) else { return Made::default() };
        // Of several topics the same publisher may have numbered events alike: then the first input's is meant.
        let is_lead = |origin: &&Origin| {
            let EventId { publisher, incarnation, sequence, .. } = origin.event;
            (publisher, incarnation, sequence) == (lead.publisher, lead.incarnation, lead.sequence)
        };
        let leading = origins.iter().filter(is_lead);
        let causes = leading.chain(origins.iter().filter(|origin| !is_lead(origin))).map(|origin| origin.cause.clone()).collect();
        Made { causes, since_ns: origins.iter().map(|origin| origin.came_ns).min().unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::trace::{SpanId, TraceContext, TraceId};
    use bodkin_broker::{
        Incarnation, PublisherId, Sequence, TopicId,
        graph::{
            Emission, SupplierId,
            machine::{Action, Arrival, Outcome, Policy},
        },
    };

    use super::*;
    use crate::graph::parse;

    const GRAPH: &str = "[graph]\nname = \"pair\"\n[[supplier]]\ntopic = \"left\"\nshape = \"f64\"\nperiod_ms = 1\n\
        [[supplier]]\ntopic = \"right\"\nshape = \"f64\"\nperiod_ms = 1\n\
        [[operator]]\nname = \"mean\"\nkind = \"moving_average\"\ninputs = [\"left\"]\nwindow = 2\n\
        [[operator]]\nname = \"both\"\nkind = \"concatenate\"\ninputs = [\"mean\", \"right\"]\n\
        [[output]]\ntopic = \"pairs\"\nfrom = \"both\"\n[[output]]\ntopic = \"means\"\nfrom = \"mean\"\n";

    fn cause(number: u64) -> Cause {
        let trace = TraceId(u128::from(number).try_into().expect("not 0"));
        TraceContext { trace, span: SpanId(number.try_into().expect("not 0")), is_sampled: true }.into()
    }

    /// A graph whose operators are done at once.
    struct Plant {
        machine: Machine,
        causes: Causes,
    }

    impl Plant {
        fn new() -> Self {
            let policy = Policy { cores: 1, is_preemptive: false, replaces_queued: false };
            Self { machine: Machine::new(parse(GRAPH).expect("it is a graph").graph, policy), causes: Causes::default() }
        }

        /// Takes an event in; gives the topics of the results that it brings, and what they are made of.
        fn arrive(&mut self, now_ns: u64, supplier: usize, sequence: u64, cause: Option<Cause>) -> Vec<(String, Made)> {
            let (publisher, incarnation, sequence) = (PublisherId(7), Incarnation(1), Sequence(sequence));
            let event = EventId { publisher, incarnation, sequence, topic: TopicId(supplier as u64) };
            let arrival = Arrival {
                supplier: SupplierId::of(supplier),
                publisher,
                incarnation,
                sequence,
                created_ns: now_ns,
                bytes: size_of::<f64>(),
            };
            let (mut actions, mut made) = (Vec::new(), Vec::new());
            let slot = self.machine.arrive(now_ns, arrival, &mut actions).expect("it is taken");
            self.causes.arrive(now_ns, slot, event, cause);
            while !actions.is_empty() {
                for action in std::mem::take(&mut actions) {
                    match action {
                        Action::Run(job) => {
                            self.causes.begin(&self.machine, job);
                            let bytes = self.machine.graph().operator(job.operator).shape.bytes_max();
                            self.machine.finish(now_ns, job, Outcome::Done(Emission::Emit, bytes), &mut actions);
                        }
                        Action::Deliver { output, slot, record, .. } => {
                            made.push((self.machine.graph().outputs()[output].topic.clone(), self.causes.of(slot, record.lead)));
                        }
                        Action::Shed { .. } => panic!("nothing is shed"),
                    }
                }
            }
            made
        }
    }

    fn made(numbers: &[u64], since_ns: u64) -> Made {
        Made { causes: numbers.iter().map(|number| cause(*number)).collect(), since_ns }
    }

    #[test]
    fn a_result_is_caused_by_all_that_it_is_made_of_and_first_by_what_it_is_named_after() {
        let mut plant = Plant::new();
        // Nothing is noted before there is a trace.
        assert_eq!(plant.arrive(1, 0, 1, None), [("MEANS".to_owned(), Made::default())]);
        assert!(plant.causes.origins.is_empty());
        assert_eq!(plant.arrive(2, 1, 1, None), [("PAIRS".to_owned(), Made::default())]);
        // The mean is of this event; the pair is named after it, and made of the other one too.
        assert_eq!(plant.arrive(10, 0, 2, Some(cause(3))), [("MEANS".to_owned(), made(&[3], 10))]);
        assert_eq!(plant.arrive(20, 1, 2, Some(cause(4))), [("PAIRS".to_owned(), made(&[3, 4], 10))]);
        // Of a pair one half may be of a trace.
        assert_eq!(plant.arrive(30, 0, 3, None), [("MEANS".to_owned(), Made::default())]);
        assert_eq!(plant.arrive(40, 1, 3, Some(cause(5))), [("PAIRS".to_owned(), made(&[5], 40))]);
        // A slot that is used again has nothing of before.
        assert_eq!(plant.arrive(50, 0, 4, None), [("MEANS".to_owned(), Made::default())]);
        assert_eq!(plant.arrive(60, 1, 4, None), [("PAIRS".to_owned(), Made::default())]);
    }
}
