//! A whole file of topics at once: what would be admitted, in the order of the file, and what a fail-over would cost then.

use super::{
    Candidate, Change, Deadlines, Load, Nanos, Reason, Refusal,
    cores::{Cores, Placement, Workload},
    refusal::reasons,
    way::ways,
};
use crate::topic::{Platform, TopicSpec};

/// What becomes of one entry.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What follows from its specification, admitted or not.
    pub deadlines: Deadlines,
    /// How many of its topics each core has, or why it has none.
    pub placed: Result<Vec<(usize, u32)>, Refusal>,
}

/// One core with all that was admitted.
#[derive(Clone, Copy, Debug)]
pub struct CoreView {
    /// What it is asked for.
    pub load: Load,
    /// Topics on it.
    pub topics: u64,
    /// How long before its deadline a replica has to be begun at the latest; see [`Admission::replica_lead`](super::Admission::replica_lead).
    pub replica_lead: Option<Nanos>,
    /// What is due at once at a new Primary. `None`: no bound, for a topic with a loss bound has no deadline.
    pub recovery: Option<Recovery>,
}

/// The burst at a core of the new Primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Events that publishers send again, and replicas that were not discarded: N and the Backup's entries of every stream.
    pub events: u64,
    /// Time until they, and what comes meanwhile, are dispatched.
    pub drain: Nanos,
}

/// Work of the search for ways, in kinds of tasks that a test of the cores takes: entries that are refused after so much have none.
pub const SEARCH_TASKS_MAX: u64 = 5_000_000;

/// All verdicts and what they come to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One for each entry, in their order.
    pub verdicts: Vec<Verdict>,
    /// All cores.
    pub cores: Vec<CoreView>,
    /// x + promote + drain: how much later than its deadline an event may be because of a fail-over. `None`: no bound.
    pub failover_latency: Option<Nanos>,
    /// Entries that were refused, and for which no ways were sought because of [`SEARCH_TASKS_MAX`].
    pub unsought: usize,
}

impl Plan {
    /// Admits each entry (a specification and how many topics have it) as a whole, one after the other. Platform and specifications have no fault.
    pub fn of(platform: &Platform, entries: &[(TopicSpec, u32)]) -> Self {
        let candidates: Vec<Candidate> =
            entries.iter().map(|(spec, topics)| Candidate { spec: *spec, topics: *topics, platform: *platform }).collect();
        let sound: Vec<&Candidate> = candidates.iter().filter(|candidate| reasons(candidate).is_empty()).collect();
        let workloads: Vec<Workload> = sound.iter().map(|candidate| Workload::from(*candidate)).collect();
        let (mut cores, mut placed) = (Cores::new(platform), Vec::with_capacity(sound.len()));
        cores.place_all(&workloads, &mut placed);
        let (mut placed, mut search) = (placed.into_iter(), Search { cores, tasks: 0, unsought: 0 });
        let verdicts: Vec<Verdict> = candidates
            .iter()
            .map(|candidate| {
                let mut reasons = reasons(candidate);
                let room = reasons.is_empty().then(|| placed.next().expect("each sound entry was tried"));
                let placed = match room {
                    Some(Ok(placement)) => Ok(placement),
                    rejected => {
                        reasons.extend(rejected.and_then(Result::err).map(|(rejection, _)| Reason::from(rejection)));
                        Err(Refusal { reasons, ways: search.ways(candidate) })
                    }
                };
                Verdict { deadlines: candidate.deadlines(), placed }
            })
            .collect();
        let Search { cores, unsought, .. } = search;
        let cores = views(&cores, &candidates, &verdicts);
        let drain = cores.iter().try_fold(Nanos::ZERO, |longest, core| Some(longest.max(core.recovery?.drain)));
        let failover_latency = drain.map(|drain| platform.failover() + platform.promote + drain);
        Self { verdicts, cores, failover_latency, unsought }
    }

    /// Whether every entry was admitted.
    pub fn is_admitted(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.placed.is_ok())
    }
}

/// The search for what would have to change for a place beside all that was admitted.
struct Search {
    cores: Cores,
    tasks: u64,
    unsought: usize,
}

impl Search {
    fn ways(&mut self, candidate: &Candidate) -> Vec<Vec<Change>> {
        if self.tasks >= SEARCH_TASKS_MAX {
            self.unsought += 1;
            return Vec::new();
        }
        ways(candidate, &mut |candidate| {
            self.tasks += self.cores.kinds();
            let workload = Workload::from(candidate);
            self.cores.place(&workload).map(|placement| self.cores.remove(&workload, &placement))
        })
    }
}

fn views(cores: &Cores, candidates: &[Candidate], verdicts: &[Verdict]) -> Vec<CoreView> {
    /// Topics on a core, and what they leave behind at a fail-over.
    #[derive(Clone, Default)]
    struct Backlog {
        topics: u64,
        events: u64,
        work: Nanos,
        is_unbounded: bool,
    }
    let mut backlogs = vec![Backlog::default(); cores.loads().count()];
    for (candidate, verdict) in candidates.iter().zip(verdicts) {
        let placement: &Placement = verdict.placed.as_ref().ok().unwrap_or(const { &Vec::new() });
        for (core, topics) in placement {
            let backlog = &mut backlogs[*core];
            backlog.topics += u64::from(*topics);
            let streams = u64::from(*topics) * u64::from(candidate.spec.publishers.get());
            let each = verdict.deadlines.backup_entries.map(|entries| entries + u64::from(candidate.spec.retention));
            let events = each.map(|each| each.saturating_mul(streams));
            backlog.is_unbounded |= events.is_none();
            backlog.events = backlog.events.saturating_add(events.unwrap_or_default());
            let events = i64::try_from(events.unwrap_or_default()).unwrap_or(i64::MAX);
            backlog.work = backlog.work + candidate.spec.dispatch_cost.times(events);
        }
    }
    let views = cores.loads().zip(backlogs).enumerate().map(|(core, (load, backlog))| CoreView {
        load,
        topics: backlog.topics,
        replica_lead: cores.replica_lead(core),
        recovery: (!backlog.is_unbounded).then(|| Recovery { events: backlog.events, drain: cores.drain(core, backlog.work) }),
    });
    views.collect()
}

#[cfg(test)]
mod tests;
