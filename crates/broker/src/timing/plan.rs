//! A whole file of topics at once: what would be admitted, in the order of the file, and what a fail-over would cost then.

use super::{
    Candidate, Deadlines, Load, Nanos, Refusal,
    cores::{Cores, Placement, Workload},
    refusal::reasons,
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

/// Refusals for want of room for which ways are sought, which takes some hundred tests of the cores each.
pub const SEARCHES_MAX: usize = 64;

/// All verdicts and what they come to.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One for each entry, in their order.
    pub verdicts: Vec<Verdict>,
    /// All cores.
    pub cores: Vec<CoreView>,
    /// x + promote + drain: how much later than its deadline an event may be because of a fail-over. `None`: no bound.
    pub failover_latency: Option<Nanos>,
    /// Entries that were refused for want of room, and for which no ways were sought because [`SEARCHES_MAX`] others had been.
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
        let (mut placed, mut searches) = (placed.into_iter(), 0);
        let verdicts: Vec<Verdict> = candidates
            .iter()
            .map(|candidate| {
                let is_sound = reasons(candidate).is_empty();
                let room = is_sound.then(|| placed.next().expect("each sound entry was tried"));
                let placed = match room {
                    Some(Ok(placement)) => Ok(placement),
                    Some(Err((rejection, _))) => {
                        searches += 1;
                        let refusal = (searches <= SEARCHES_MAX).then(|| refusal_of(candidate, &mut cores)).flatten();
                        Err(refusal.unwrap_or(Refusal { reasons: vec![rejection.into()], ways: Vec::new() }))
                    }
                    None => Err(refusal_of(candidate, &mut cores).expect("it has a reason")),
                };
                Verdict { deadlines: candidate.deadlines(), placed }
            })
            .collect();
        let cores = views(&cores, &candidates, &verdicts);
        let drain = cores.iter().try_fold(Nanos::ZERO, |longest, core| Some(longest.max(core.recovery?.drain)));
        let failover_latency = drain.map(|drain| platform.failover() + platform.promote + drain);
        Self { verdicts, cores, failover_latency, unsought: searches.saturating_sub(SEARCHES_MAX) }
    }

    /// Whether every entry was admitted.
    pub fn is_admitted(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.placed.is_ok())
    }
}

/// Why there is no room among all that was admitted, and what would have to change.
fn refusal_of(candidate: &Candidate, cores: &mut Cores) -> Option<Refusal> {
    candidate.refusal(&mut |candidate| {
        let workload = Workload::from(candidate);
        cores.place(&workload).map(|placement| cores.remove(&workload, &placement))
    })
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
