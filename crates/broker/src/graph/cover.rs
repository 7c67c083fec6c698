//! How far the events of a graph's suppliers are safe: a graph is a required subscriber of its real-time suppliers, and what it acknowledges is what the Backup has of it.
//!
//! The Backup has a *checkpoint*: everything that the graph held at an instant. What was taken before that instant need not be handed over again; what was taken behind it is kept by the broker like any
//! event that a subscriber has not acknowledged, so that it is replicated when it is due, and goes to the graph again at the node that leads next. So no event's own deadline hangs on the checkpoints; they
//! only bound how much is kept and done again. Where no Backup can have one, an event is acknowledged when it is taken.

use super::SupplierId;
use crate::{
    event::{Incarnation, PublisherId, Sequence},
    time::Instant,
};

/// Runs of publishers that are told apart for each supplier. Events of one more are acknowledged when they are taken.
pub const RUNS_MAX: usize = 256;

/// Up to where the graph needs nothing of a publisher's run any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taken {
    /// On which supplier's topic.
    pub supplier: SupplierId,
    /// Whose.
    pub publisher: PublisherId,
    /// In which numbering.
    pub incarnation: Incarnation,
    /// The last event.
    pub through: Sequence,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    publisher: PublisherId,
    incarnation: Incarnation,
    /// The last event that the graph has taken.
    taken: Sequence,
    /// The last one in the checkpoint that is under way.
    under_way: Sequence,
    /// The last one that is acknowledged.
    safe: Sequence,
    /// The last one that another node's graph had taken.
    inherited: Sequence,
}

#[derive(Clone, Debug)]
struct SupplierRuns {
    /// Events of one run that may be taken behind a checkpoint before the next one is due; 0: nothing of this supplier is kept.
    held_max: u64,
    runs: Vec<Run>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Cover {
    suppliers: Vec<SupplierRuns>,
    /// A checkpoint is due so long behind the first event that is in none.
    within_ns: u64,
    due_at: Option<Instant>,
    is_under_way: bool,
}

impl Cover {
    /// Of a graph whose next checkpoint is due `within_ns` behind an event that is in none, or with `held_max` events of a supplier's publisher; with 0 of them nothing of that supplier is kept.
    pub fn new(held_max: impl IntoIterator<Item = u64>, within_ns: u64) -> Self {
        let suppliers = held_max.into_iter().map(|held_max| SupplierRuns { held_max, runs: Vec::new() }).collect();
        Self { suppliers, within_ns, due_at: None, is_under_way: false }
    }

    /// Whether events of a supplier are kept for the graph.
    pub fn keeps(&self, supplier: SupplierId) -> bool {
        self.suppliers[supplier.index()].held_max > 0
    }

    /// Whether another node's graph has taken an event, so that what came of it is here.
    pub fn has(&self, supplier: SupplierId, publisher: PublisherId, incarnation: Incarnation, sequence: Sequence) -> bool {
        self.run(supplier, publisher, incarnation).is_some_and(|run| sequence <= run.inherited)
    }

    fn run(&self, supplier: SupplierId, publisher: PublisherId, incarnation: Incarnation) -> Option<&Run> {
        self.suppliers[supplier.index()].runs.iter().rfind(|run| run.publisher == publisher && run.incarnation == incarnation)
    }

    /// Whether the graph has taken an event that is not acknowledged yet.
    pub fn owes(&self, event: &Taken) -> bool {
        let run = self.run(event.supplier, event.publisher, event.incarnation);
        run.is_some_and(|run| run.safe < event.through && event.through <= run.taken)
    }

    /// Notes that the graph has taken an event; false if it is not kept track of, so that it is acknowledged at once.
    pub fn take(&mut self, now: Instant, event: Taken) -> bool {
        let due_at = self.due_at.get_or_insert(now.plus_nanos(self.within_ns));
        let SupplierRuns { held_max, runs } = &mut self.suppliers[event.supplier.index()];
        if *held_max == 0 {
            return false;
        }
        let Taken { publisher, incarnation, through, .. } = event;
        let at = match runs.iter().rposition(|run| run.publisher == publisher && run.incarnation == incarnation) {
            Some(at) => at,
            None => {
                // Of runs that are over and safe nothing is to be known any more.
                runs.retain(|run| run.publisher != publisher || run.incarnation > incarnation || run.safe < run.taken);
                if runs.len() >= RUNS_MAX {
                    return false;
                }
                let nothing = Sequence(0);
                let before = Sequence(through.0.saturating_sub(1));
                runs.push(Run { publisher, incarnation, taken: before, under_way: before, safe: before, inherited: nothing });
                runs.len() - 1
            }
        };
        let run = &mut runs[at];
        run.taken = run.taken.max(through);
        if run.taken.0 - run.under_way.max(run.safe).0 >= *held_max {
            *due_at = now;
        }
        true
    }

    /// When the next checkpoint is due; `None`: nothing was taken since the last one, or one is under way.
    pub fn due_at(&self) -> Option<Instant> {
        self.due_at.filter(|_| !self.is_under_way)
    }

    /// A checkpoint is due as soon as it can be.
    pub fn hasten(&mut self) {
        self.due_at = Some(Instant::default());
    }

    /// The checkpoint that is due cannot be sent before.
    pub fn postpone(&mut self, until: Instant) {
        self.due_at = self.due_at.map(|due_at| due_at.max(until));
    }

    /// A checkpoint is sent: it has everything that was taken until now.
    pub fn sent(&mut self) {
        (self.is_under_way, self.due_at) = (true, None);
        self.all_runs().for_each(|(_, run)| run.under_way = run.taken);
    }

    /// The Backup has it; what is acknowledged by that is appended.
    pub fn arrived(&mut self, told: &mut Vec<Taken>) {
        if std::mem::take(&mut self.is_under_way) {
            self.acknowledge(|run| run.under_way, told);
        }
    }

    /// Whether it will arrive is not known any more: the next one begins anew.
    pub fn lost(&mut self) {
        if std::mem::take(&mut self.is_under_way) {
            self.hasten();
        }
        self.all_runs().for_each(|(_, run)| run.under_way = run.safe);
    }

    /// There is no Backup that could have a checkpoint: what was taken is acknowledged by that.
    pub fn let_go(&mut self, told: &mut Vec<Taken>) {
        self.lost();
        self.acknowledge(|run| run.taken, told);
    }

    fn acknowledge(&mut self, through: impl Fn(&Run) -> Sequence, told: &mut Vec<Taken>) {
        for (supplier, run) in self.all_runs() {
            let through = through(run);
            if through > run.safe {
                run.safe = through;
                told.push(Taken { supplier, publisher: run.publisher, incarnation: run.incarnation, through });
            }
        }
    }

    fn all_runs(&mut self) -> impl Iterator<Item = (SupplierId, &mut Run)> {
        self.suppliers.iter_mut().enumerate().flat_map(|(at, supplier)| supplier.runs.iter_mut().map(move |run| (SupplierId::of(at), run)))
    }

    /// Up to where the graph has taken each run.
    pub fn taken(&self) -> impl Iterator<Item = Taken> {
        let of = |supplier, run: &Run| Taken { supplier, publisher: run.publisher, incarnation: run.incarnation, through: run.taken };
        let runs = self.suppliers.iter().enumerate();
        runs.flat_map(move |(at, supplier)| supplier.runs.iter().map(move |run| of(SupplierId::of(at), run)))
    }

    /// Goes on where the deployment before had come to, whose suppliers are these here: what it had taken and nobody has acknowledged is acknowledged by the next checkpoint.
    pub fn succeed(&mut self, before: &Self, place: impl Fn(SupplierId) -> Option<SupplierId>) {
        for (at, supplier) in before.suppliers.iter().enumerate() {
            let Some(own) = place(SupplierId::of(at)).filter(|own| self.keeps(*own)) else { continue };
            self.suppliers[own.index()].runs.extend(supplier.runs.iter().map(|run| Run { under_way: run.safe, ..*run }));
        }
    }

    /// Goes on where another node's graph had come to: that of the leader before, or of the edge that an operator has come from.
    pub fn inherit(&mut self, taken: &[Taken]) {
        for Taken { supplier, publisher, incarnation, through } in
            taken.iter().copied().filter(|taken| self.keeps(taken.supplier)).collect::<Vec<_>>()
        {
            let run = Run { publisher, incarnation, taken: through, under_way: through, safe: through, inherited: through };
            self.suppliers[supplier.index()].runs.push(run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> SupplierId {
        SupplierId::of(0)
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn event(supplier: SupplierId, publisher: u64, incarnation: u64, through: u64) -> Taken {
        Taken { supplier, publisher: PublisherId(publisher), incarnation: Incarnation(incarnation), through: Sequence(through) }
    }

    fn told(what: impl FnOnce(&mut Vec<Taken>)) -> Vec<Taken> {
        let mut told = Vec::new();
        what(&mut told);
        told
    }

    #[test]
    fn a_checkpoint_acknowledges_what_was_taken_before_it_was_sent() {
        let mut cover = Cover::new([3, 0], 100);
        assert_eq!(cover.due_at(), None);
        assert!(cover.take(at(10), event(kept(), 1, 1, 5)));
        assert!(!cover.take(at(20), event(SupplierId::of(1), 1, 1, 5)), "nothing of it is kept");
        assert_eq!(cover.due_at(), Some(at(110)));
        cover.sent();
        assert!(cover.take(at(30), event(kept(), 1, 1, 6)) && cover.take(at(40), event(kept(), 2, 1, 9)));
        assert_eq!(cover.due_at(), None, "one is under way");
        assert_eq!(told(|told| cover.arrived(told)), [event(kept(), 1, 1, 5)]);
        assert_eq!(cover.due_at(), Some(at(130)));
        cover.sent();
        assert_eq!(told(|told| cover.arrived(told)), [event(kept(), 1, 1, 6), event(kept(), 2, 1, 9)]);
        assert_eq!((told(|told| cover.arrived(told)), cover.due_at()), (vec![], None));
    }

    #[test]
    fn many_events_of_a_run_hasten_the_next_one() {
        let mut cover = Cover::new([3], 100);
        for sequence in 1..=2 {
            cover.take(at(sequence), event(kept(), 1, 1, sequence));
            cover.take(at(sequence), event(kept(), 2, 1, sequence));
            assert_eq!(cover.due_at(), Some(at(101)));
        }
        cover.take(at(7), event(kept(), 1, 1, 3));
        assert_eq!(cover.due_at(), Some(at(7)));
    }

    #[test]
    fn a_checkpoint_that_is_lost_acknowledges_nothing_and_without_a_backup_everything_is() {
        let mut cover = Cover::new([3], 100);
        cover.take(at(1), event(kept(), 1, 1, 1));
        cover.sent();
        cover.lost();
        assert_eq!((told(|told| cover.arrived(told)), cover.due_at()), (vec![], Some(at(0))));
        cover.take(at(1), event(kept(), 1, 1, 2));
        cover.sent();
        assert_eq!(told(|told| cover.let_go(told)), [event(kept(), 1, 1, 2)]);
        assert_eq!(told(|told| cover.arrived(told)), []);
    }

    #[test]
    fn what_another_node_had_taken_is_known_and_newer_events_are_not() {
        let mut cover = Cover::new([3, 0], 100);
        cover.inherit(&[event(kept(), 1, 1, 5), event(SupplierId::of(1), 1, 1, 5)]);
        let has = |cover: &Cover, supplier, sequence| cover.has(supplier, PublisherId(1), Incarnation(1), Sequence(sequence));
        assert_eq!([has(&cover, kept(), 5), has(&cover, kept(), 6), has(&cover, SupplierId::of(1), 5)], [true, false, false]);
        cover.take(at(1), event(kept(), 1, 1, 7));
        assert!(!has(&cover, kept(), 6), "what this one has taken may be behind what it has not");
        assert_eq!(cover.taken().collect::<Vec<_>>(), [event(kept(), 1, 1, 7)]);
    }

    #[test]
    fn what_the_deployment_before_had_taken_is_acknowledged_by_a_checkpoint_of_the_next_one() {
        let mut before = Cover::new([0, 3], 100);
        let (first, second) = (event(SupplierId::of(1), 1, 1, 1), event(SupplierId::of(1), 1, 1, 2));
        before.take(at(1), first);
        before.sent();
        told(|told| before.arrived(told));
        before.take(at(2), second);
        before.sent();
        let mut next = Cover::new([3], 100);
        next.succeed(&before, |supplier| (supplier.index() == 1).then_some(kept()));
        let here = |event: Taken| Taken { supplier: kept(), ..event };
        assert_eq!([next.owes(&here(first)), next.owes(&here(second)), next.owes(&event(kept(), 1, 1, 3))], [false, true, false]);
        assert_eq!(told(|told| next.arrived(told)), [], "the checkpoint that was under way is of another graph");
        next.sent();
        assert_eq!(told(|told| next.arrived(told)), [here(second)]);
        assert!(!next.owes(&here(second)));
    }

    #[test]
    fn runs_that_are_over_are_forgotten_and_there_are_no_more_than_may_be() {
        let mut cover = Cover::new([3], 100);
        cover.take(at(1), event(kept(), 1, 1, 1));
        cover.take(at(1), event(kept(), 1, 2, 1));
        assert_eq!(cover.taken().count(), 2, "the first run's event is not safe yet");
        told(|told| cover.let_go(told));
        cover.take(at(1), event(kept(), 1, 3, 1));
        assert_eq!(cover.taken().collect::<Vec<_>>(), [event(kept(), 1, 3, 1)]);
        for publisher in 2..=RUNS_MAX as u64 {
            assert!(cover.take(at(1), event(kept(), publisher, 1, 1)));
        }
        assert!(!cover.take(at(1), event(kept(), 0, 1, 1)) && cover.take(at(1), event(kept(), 1, 3, 2)));
    }
}
