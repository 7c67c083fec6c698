//! The cores and their jobs: where a topic goes, and whether it fits there.
//!
//! A topic belongs to one shard, which has a core of its own; so each core is tested by itself. A topic goes to the core with the least load, and
//! if it does not fit there, to the next one on which it does.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Load, Nanos,
    demand::{Class, Job, Overrun, Task, first_overrun},
};
use crate::topic::Platform;

/// The jobs of topics alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Workload {
    /// Of one stream: dispatch, and replicate where there is a bound to keep.
    pub tasks: [Option<Task>; 2],
    /// Streams of one topic; they stay together.
    pub publishers: u32,
    /// Topics; they are spread.
    pub topics: u32,
}

impl Workload {
    fn tasks(&self) -> impl Iterator<Item = Task> {
        self.tasks.into_iter().flatten()
    }

    fn load_of_a_topic(&self) -> Load {
        self.tasks().map(|task| Load::of(task.cost, self.publishers.into(), task.period)).sum()
    }
}

/// How many of a workload's topics each core has; every core at most once, in no order.
pub(super) type Placement = Vec<(usize, u32)>;

/// Why a core does not take more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// More would be asked than may be.
    Load {
        /// Which core.
        core: usize,
        /// What would be asked.
        load: Load,
        /// What may be.
        load_max: Load,
    },
    /// Deadlines could be missed.
    Overrun {
        /// Which core.
        core: usize,
        /// Where first.
        overrun: Overrun,
    },
}

/// What runs on one core.
#[derive(Clone, Debug, Default)]
struct Core {
    /// How many tasks of each kind.
    classes: BTreeMap<Task, u64>,
    load: Load,
    topics: u64,
    /// Loads of the topics, each rounded up by itself: what decides where the next one goes, so that many go where each would.
    height: i128,
}

impl Core {
    /// Adds topics, or with a negative number takes them off that were added.
    fn change(&mut self, workload: &Workload, topics: i64) {
        let changed = |count: u64, by: i64| count.checked_add_signed(by).expect("what is taken off was added");
        self.topics = changed(self.topics, topics);
        self.height += workload.load_of_a_topic().height() * i128::from(topics);
        for task in workload.tasks() {
            let count = self.classes.entry(task).or_default();
            let before = Class { task, count: *count }.load();
            *count = changed(*count, topics * i64::from(workload.publishers));
            self.load = self.load.without(before) + Class { task, count: *count }.load();
            if *count == 0 {
                self.classes.remove(&task);
            }
        }
    }

    fn classes(&self) -> Vec<Class> {
        self.classes.iter().map(|(task, count)| Class { task: *task, count: *count }).collect()
    }
}

/// Steps after which the time of a drain is no longer approached.
const DRAIN_STEPS_MAX: u32 = 100;

/// All cores with what has been placed on them, which passes the test.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    cores: Vec<Core>,
    blocking: Nanos,
    load_max: Load,
}

impl Cores {
    pub fn new(platform: &Platform) -> Self {
        Self {
            cores: vec![Core::default(); platform.cores.get() as usize],
            blocking: platform.blocking,
            load_max: Load::percent(platform.load_max_percent),
        }
    }

    /// Places all topics of a workload, or none: then it says why, and how many in their order would have fitted.
    pub fn place(&mut self, workload: &Workload) -> Result<Placement, (Rejection, u32)> {
        let (placement, rejection) = self.place_run(workload, workload.topics);
        match rejection {
            None => Ok(placement),
            Some(rejection) => {
                let fitted = placement.iter().map(|(_, topics)| topics).sum();
                self.remove(workload, &placement);
                Err((rejection, fitted))
            }
        }
    }

    /// Places workloads one after the other, each whole or not at all, and gives for each what [`Self::place`] would.
    pub fn place_all(&mut self, workloads: &[Workload], placed: &mut Vec<Result<Placement, (Rejection, u32)>>) {
        match workloads {
            [] => {}
            [workload] => placed.push(self.place(workload)),
            _ => match self.spread_all(workloads) {
                // What passes together would have passed one after the other, for fewer tasks ask for less at any time.
                Ok(placements) => placed.extend(placements.into_iter().map(Ok)),
                Err(_) => {
                    let (first, second) = workloads.split_at(workloads.len() / 2);
                    self.place_all(first, placed);
                    self.place_all(second, placed);
                }
            },
        }
    }

    /// Takes what was placed off again.
    pub fn remove(&mut self, workload: &Workload, placement: &Placement) {
        for (core, topics) in placement {
            self.cores[*core].change(workload, -i64::from(*topics));
        }
    }

    /// Puts tasks where similar ones have been, or leaves all as it was.
    pub fn put(&mut self, workload: &Workload, placement: &Placement) -> Result<(), Rejection> {
        for (core, topics) in placement {
            self.cores[*core].change(workload, (*topics).into());
        }
        let rejection = placement.iter().find_map(|(core, _)| self.rejection(*core));
        if rejection.is_some() {
            self.remove(workload, placement);
        }
        rejection.map_or(Ok(()), Err)
    }

    /// The first so many topics, until one fits nowhere.
    fn place_run(&mut self, workload: &Workload, topics: u32) -> (Placement, Option<Rejection>) {
        let run = Workload { topics, ..*workload };
        let rejection = match self.spread_all(&[run]) {
            Ok(mut placements) => return (placements.remove(0), None),
            Err(rejection) => rejection,
        };
        if topics == 1 {
            let mut by_load: Vec<usize> = (0..self.cores.len()).collect();
            by_load.sort_by_key(|core| (self.cores[*core].height, self.cores[*core].topics, *core));
            let fits = by_load.into_iter().skip(1).map(|core| vec![(core, 1)]).find(|placement| self.put(&run, placement).is_ok());
            return fits.map_or((Placement::new(), Some(rejection)), |placement| (placement, None));
        }
        let (mut placement, rejection) = self.place_run(workload, topics / 2);
        if rejection.is_some() {
            return (placement, rejection);
        }
        let (rest, rejection) = self.place_run(workload, topics - topics / 2);
        for (core, more) in rest {
            match placement.iter_mut().find(|(placed, _)| *placed == core) {
                Some((_, topics)) => *topics += more,
                None => placement.push((core, more)),
            }
        }
        (placement, rejection)
    }

    /// Places each topic on the core that has the least load then, and all or none if one core does not pass.
    fn spread_all(&mut self, workloads: &[Workload]) -> Result<Vec<Placement>, Rejection> {
        let placements: Vec<Placement> = workloads
            .iter()
            .map(|workload| {
                let placement = self.spread(workload);
                placement.iter().for_each(|(core, topics)| self.cores[*core].change(workload, (*topics).into()));
                placement
            })
            .collect();
        let touched = placements.iter().flatten().map(|(core, _)| *core).collect::<BTreeSet<_>>();
        match touched.into_iter().find_map(|core| self.rejection(core)) {
            None => Ok(placements),
            Some(rejection) => {
                workloads.iter().zip(&placements).for_each(|(workload, placement)| self.remove(workload, placement));
                Err(rejection)
            }
        }
    }

    /// Each topic to the core that has the least load then, of several the one with fewer topics; where topics ask for nothing, to that with the
    /// fewest topics.
    fn spread(&self, workload: &Workload) -> Placement {
        let (each, heights): (i128, Vec<i128>) = match workload.load_of_a_topic() {
            Load::NONE => (1, self.cores.iter().map(|core| core.topics.into()).collect()),
            load => (load.height(), self.cores.iter().map(|core| core.height).collect()),
        };
        let below = |level: i128| heights.iter().map(move |height| ((level - height).max(0) + each - 1) / each);
        let topics = i128::from(workload.topics);
        // The highest level up to which no more than all topics fill the cores; those that are left would all begin exactly there.
        let (mut level, mut too_high) = (0, heights.iter().max().expect("there is a core") + each * (topics + 1));
        while too_high - level > 1 {
            let tried = level + (too_high - level) / 2;
            if below(tried).sum::<i128>() <= topics { level = tried } else { too_high = tried }
        }
        let mut counts: Vec<u32> = below(level).map(|count| u32::try_from(count).expect("no more than all")).collect();
        let left = workload.topics - counts.iter().sum::<u32>();
        let mut at_the_level: Vec<usize> =
            (0..counts.len()).filter(|core| heights[*core] + i128::from(counts[*core]) * each == level).collect();
        at_the_level.sort_by_key(|core| (self.cores[*core].topics + u64::from(counts[*core]), *core));
        at_the_level.iter().take(left as usize).for_each(|core| counts[*core] += 1);
        counts.into_iter().enumerate().filter(|(_, topics)| *topics > 0).collect()
    }

    fn rejection(&self, core: usize) -> Option<Rejection> {
        let load = self.cores[core].load;
        if load > self.load_max {
            return Some(Rejection::Load { core, load, load_max: self.load_max });
        }
        first_overrun(&self.cores[core].classes(), self.blocking).map(|overrun| Rejection::Overrun { core, overrun })
    }

    /// Kinds of tasks on all cores, and one more.
    pub fn kinds(&self) -> u64 {
        1 + self.cores.iter().map(|core| core.classes.len() as u64).sum::<u64>()
    }

    /// What each core is asked for.
    pub fn loads(&self) -> impl Iterator<Item = Load> {
        self.cores.iter().map(|core| core.load)
    }

    /// How long before its deadline a replica on this core has to be begun, so that all deadlines are met even where every replication is
    /// postponed so long: at most a sixteenth more than the least. `None` where there are no replicas.
    ///
    /// The start that a batch alone would allow ([`BatchCost`](super::BatchCost)) leaves no room for dispatches that arrive later and are
    /// due sooner. A replica that is held back is a sporadic job like any other, with this time as its deadline: so the same test tells.
    pub fn replica_lead(&self, core: usize) -> Option<Nanos> {
        let classes = self.cores[core].classes();
        let replicas = classes.iter().filter(|class| class.task.job == Job::Replicate);
        let (mut enough, mut too_short) = (replicas.filter_map(|class| class.task.deadline.finite()).max()?, Nanos::ZERO);
        while (enough - too_short).get() > 1 + enough.get() / 16 {
            let tried = too_short + Nanos::new((enough - too_short).get() / 2);
            let held_back: Vec<Class> = classes.iter().map(|class| class.held_back(tried)).collect();
            match first_overrun(&held_back, self.blocking) {
                None => enough = tried,
                Some(_) => too_short = tried,
            }
        }
        Some(enough)
    }

    /// How long a core takes until a backlog, and all that comes meanwhile, is done; no time where there is no backlog.
    ///
    /// The smallest time in which as much can be done as there is to do: it is approached from below, and where that takes too long the line above
    /// all that may come tells a longer one.
    pub fn drain(&self, core: usize, backlog: Nanos) -> Nanos {
        if backlog == Nanos::ZERO {
            return Nanos::ZERO;
        }
        let Core { classes, load, .. } = &self.cores[core];
        let there = i128::from((backlog + self.blocking).get());
        // What may arrive in a time, and `ahead` jobs of each stream.
        let coming = |time: i128, ahead: i128| -> i128 {
            let of_class = |(task, count): (&Task, &u64)| {
                let arrived = time + i128::from((task.jitter + task.transit_spread).get()) + i128::from(task.period.get()) - 1;
                (arrived / i128::from(task.period.get()) + ahead) * i128::from(*count) * i128::from(task.cost.get())
            };
            classes.iter().map(of_class).sum()
        };
        let mut time = there;
        for _ in 0..DRAIN_STEPS_MAX {
            let work = there + coming(time, 0);
            if work == time {
                return Nanos::saturating(time);
            }
            time = work;
        }
        let burst = there + coming(0, 1);
        Nanos::saturating(burst.saturating_mul(Load::PARTS) / (Load::PARTS - load.parts()) + 1)
    }
}

impl Class {
    /// With replicas that are begun no sooner than so long before their deadline.
    fn held_back(&self, lead: Nanos) -> Self {
        let mut class = *self;
        if class.task.job == Job::Replicate {
            class.task.deadline = class.task.deadline.min(lead.into());
        }
        class
    }
}

#[cfg(test)]
mod tests;
