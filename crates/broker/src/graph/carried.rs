//! How far a graph has taken what comes over links, so that what is brought again to the deployment behind it is known.

use std::collections::BTreeMap;

use super::{Cover, Graph, SupplierId, Taken};
use crate::{
    event::{Incarnation, PublisherId, Sequence},
    time::Instant,
};

/// Runs of publishers that are told apart for each supplier; of one more the oldest is forgotten.
const RUNS_MAX: usize = 256;

type Run = (SupplierId, Incarnation, PublisherId);

/// The last event of each run that was taken, and that which the deployment before had taken.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    taken: BTreeMap<Run, Sequence>,
    inherited: BTreeMap<Run, Sequence>,
}

/// What becomes of an event that has come over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The graph is to take it; otherwise it has had it before.
    pub is_new: bool,
    /// Nobody needs it any more where it was made, so that it is acknowledged at once. Otherwise a checkpoint that has arrived does that.
    pub is_safe: bool,
}

impl Carried {
    /// Notes an event that has come over a link, and says what becomes of it. In a pair (`cover`) it is safe when the Backup has it in a checkpoint, whether this deployment has taken it, the one before,
    /// or the leader before; where there is no pair it is when it has come.
    pub fn arrive(&mut self, cover: Option<&mut Cover>, now: Instant, event: &Taken) -> Arrival {
        let Taken { supplier, publisher, incarnation, through } = *event;
        let was_taken = self.has(event) || cover.as_ref().is_some_and(|cover| cover.has(supplier, publisher, incarnation, through));
        if !was_taken {
            self.take(event);
        }
        let waits = match cover {
            // The checkpoint that is due has it, if none that has arrived does.
            Some(cover) if was_taken => cover.owes(event),
            Some(cover) => cover.take(now, *event),
            None => false,
        };
        Arrival { is_new: !was_taken, is_safe: !waits }
    }

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
    fn what_has_come_is_safe_at_once_without_a_pair_and_by_a_checkpoint_that_has_arrived_in_one() {
        let (mut carried, mut cover, now) = (Carried::default(), Cover::new([8], 100), Instant::default());
        assert_eq!(carried.arrive(None, now, &event(0, 1, 1)), Arrival { is_new: true, is_safe: true });
        assert_eq!(carried.arrive(Some(&mut cover), now, &event(0, 1, 2)), Arrival { is_new: true, is_safe: false });
        let mut next = Carried::default();
        next.inherit(&graph(["A", "B"]), &graph(["A", "B"]), &carried);
        let again = |next: &mut Carried, cover: &mut Cover| next.arrive(Some(cover), now, &event(0, 1, 2));
        assert_eq!(again(&mut next, &mut cover), Arrival { is_new: false, is_safe: false }, "the checkpoint that has it is due");
        cover.sent();
        assert_eq!(again(&mut next, &mut cover), Arrival { is_new: false, is_safe: false }, "and under way");
        let mut told = Vec::new();
        cover.arrived(&mut told);
        assert_eq!(told, [event(0, 1, 2)]);
        assert_eq!(again(&mut next, &mut cover), Arrival { is_new: false, is_safe: true });
    }

    #[test]
    fn what_the_leader_before_had_in_its_checkpoint_is_passed_over_and_safe() {
        let (mut carried, mut cover) = (Carried::default(), Cover::new([8], 100));
        cover.inherit(&[event(0, 1, 5)]);
        let mut arrive = |through| carried.arrive(Some(&mut cover), Instant::default(), &event(0, 1, through));
        assert_eq!(arrive(5), Arrival { is_new: false, is_safe: true });
        assert_eq!(arrive(6), Arrival { is_new: true, is_safe: false });
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
