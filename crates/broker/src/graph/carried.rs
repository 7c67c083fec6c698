//! How far a graph has taken what comes over links, so that what is brought again to the deployment behind it is known.

use std::collections::BTreeMap;

use super::{Graph, SupplierId, Taken};
use crate::event::{Incarnation, PublisherId, Sequence};

/// Runs of publishers that are told apart for each supplier; of one more the oldest is forgotten.
const RUNS_MAX: usize = 256;

type Run = (SupplierId, Incarnation, PublisherId);

/// The last event of each run that was taken, and that which the deployment before had taken.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    taken: BTreeMap<Run, Sequence>,
    inherited: BTreeMap<Run, Sequence>,
}

impl Carried {
    /// Whether the deployment before has taken an event.
    pub fn has(&self, event: &Taken) -> bool {
        self.inherited.get(&run(event)).is_some_and(|through| event.through <= *through)
    }

    /// Notes that an event is taken.
    pub fn take(&mut self, event: &Taken) {
        let through = self.taken.entry(run(event)).or_insert(event.through);
        *through = event.through.max(*through);
        let of_supplier = (event.supplier, Incarnation(0), PublisherId(0))..=(event.supplier, Incarnation(u64::MAX), PublisherId(u64::MAX));
        if self.taken.range(of_supplier.clone()).count() > RUNS_MAX {
            let oldest = self.taken.range(of_supplier).next().map(|(run, _)| *run).expect("there are more than none");
            self.taken.remove(&oldest);
        }
    }

    /// The last event of each run of a supplier that was taken.
    pub fn taken(&self, supplier: SupplierId) -> impl Iterator<Item = Taken> {
        let of_supplier = (supplier, Incarnation(0), PublisherId(0))..=(supplier, Incarnation(u64::MAX), PublisherId(u64::MAX));
        let taken = |((supplier, incarnation, publisher), through): (&Run, &Sequence)| Taken {
            supplier: *supplier,
            publisher: *publisher,
            incarnation: *incarnation,
            through: *through,
        };
        self.taken.range(of_supplier).map(taken)
    }

    /// Passes over what was taken elsewhere.
    pub fn pass_over(&mut self, event: &Taken) {
        let through = self.inherited.entry(run(event)).or_insert(event.through);
        *through = event.through.max(*through);
        self.take(event);
    }

    /// Goes on where the deployment of `before` was, with those of its suppliers that this graph has too.
    pub fn inherit(&mut self, own: &Graph, before: &Graph, had: &Self) {
        for ((supplier, incarnation, publisher), through) in &had.taken {
            let topic = &before.suppliers()[supplier.index()].topic;
            if let Some(at) = own.suppliers().iter().position(|supplier| supplier.topic == *topic) {
                let run = (SupplierId::of(at), *incarnation, *publisher);
                self.inherited.insert(run, *through);
                self.taken.insert(run, *through);
            }
        }
    }
}

fn run(event: &Taken) -> Run {
    (event.supplier, event.incarnation, event.publisher)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Shape, Source, testing::*};

    fn event(supplier: usize, incarnation: u64, through: u64) -> Taken {
        Taken {
            supplier: SupplierId::of(supplier),
            publisher: PublisherId(7),
            incarnation: Incarnation(incarnation),
            through: Sequence(through),
        }
    }

    /// A graph of two suppliers of these topics.
    fn graph(topics: [&str; 2]) -> Graph {
        let suppliers = topics.map(|topic| supplier(topic, Shape::NUMBER, 10));
        let sources = [0, 1].map(|at| Source::Supplier(SupplierId::of(at)));
        Graph::new("g".to_owned(), suppliers.into(), vec![operator("o", Shape::NUMBER, &sources)], vec![output("T", 0, 0)])
            .expect("it is a graph")
    }

    #[test]
    fn the_next_deployment_knows_what_was_taken_by_its_topic_and_new_runs_are_new() {
        let (mut before, mut own) = (Carried::default(), Carried::default());
        before.take(&event(1, 1, 5));
        before.take(&event(1, 1, 4));
        assert!(!before.has(&event(1, 1, 5)), "what is brought again within a connection its subscriber knows");
        own.inherit(&graph(["B", "C"]), &graph(["A", "B"]), &before);
        assert!(own.has(&event(0, 1, 5)) && own.has(&event(0, 1, 1)));
        assert!(!own.has(&event(0, 1, 6)) && !own.has(&event(0, 2, 1)) && !own.has(&event(1, 1, 5)));
    }

    #[test]
    fn the_oldest_runs_are_forgotten() {
        let mut carried = Carried::default();
        for incarnation in 1..=300 {
            carried.take(&event(0, incarnation, 1));
        }
        assert_eq!(carried.taken.len(), RUNS_MAX);
        assert!(carried.taken.keys().all(|(_, incarnation, _)| *incarnation > Incarnation(300 - RUNS_MAX as u64)));
    }
}
