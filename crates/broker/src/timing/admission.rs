//! Which topics are admitted while the broker runs. Every call changes all that it says, or nothing.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Candidate, Deadlines, Nanos, Refusal,
    cores::{Cores, Workload},
};
use crate::topic::{LossTolerance, Platform, SpecFault, TopicSpec};

/// What a subscription asks of its topic beyond what was declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// L: losses in a row that this subscriber tolerates.
    pub loss_tolerance: Option<LossTolerance>,
    /// D: from creation to arrival at this subscriber.
    pub deadline: Option<Nanos>,
}

impl Wish {
    /// As frames have it: losses in a row, and the deadline in nanoseconds.
    pub fn of_wire(loss_tolerance: Option<u32>, deadline_ns: Option<u64>) -> Self {
        Self {
            loss_tolerance: loss_tolerance.map(LossTolerance::AtMost),
            deadline: deadline_ns.map(|deadline_ns| Nanos::new(i64::try_from(deadline_ns).unwrap_or(i64::MAX))),
        }
    }

    /// The inverse of [`Self::of_wire`].
    pub fn to_wire(self) -> (Option<u32>, Option<u64>) {
        let losses = self.loss_tolerance.and_then(|tolerance| match tolerance {
            LossTolerance::AtMost(losses) => Some(losses),
            LossTolerance::Any => None,
        });
        (losses, self.deadline.map(|deadline| deadline.get().unsigned_abs()))
    }

    /// The specification that meets the wish as well: the stricter of both, with marks as close together as it needs.
    fn tighten(self, mut spec: TopicSpec) -> TopicSpec {
        spec.loss_tolerance = spec.loss_tolerance.min(self.loss_tolerance.unwrap_or(LossTolerance::Any));
        spec.deadline = self.deadline.map_or(spec.deadline, |deadline| spec.deadline.min(deadline.into()));
        if let LossTolerance::AtMost(losses) = spec.loss_tolerance {
            spec.shed_max = spec.shed_max.min(losses);
            let losses = losses - spec.shed_max;
            spec.mark_every = spec.mark_every.min(losses.saturating_add(1).try_into().expect("one more than some is some"));
        }
        spec
    }
}

/// An admitted topic. There may be a hundred thousand, so that what is alike is shared and what is seldom is apart.
#[derive(Clone, Debug)]
struct Topic {
    declared: Arc<TopicSpec>,
    /// `None`: no subscription asks for more.
    asked: Option<Box<Asked>>,
    /// Where it is.
    core: usize,
}

/// What subscriptions ask beyond what was declared.
#[derive(Clone, Debug)]
struct Asked {
    /// By subscription.
    wishes: BTreeMap<u64, Wish>,
    /// As strict as the strictest of them.
    spec: TopicSpec,
}

/// What was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The specification, as strict as the strictest of all that was asked.
    pub spec: TopicSpec,
    /// What follows from it.
    pub deadlines: Deadlines,
    /// The shard that has the topic.
    pub core: usize,
}

/// Why a topic or a wish is not admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// A member of the specification, or a wish's deadline, cannot be meant.
    #[error(transparent)]
    Fault(#[from] SpecFault),
    /// It does not fit.
    #[error("{0}")]
    Refused(Refusal),
    /// The topic is there already.
    #[error("the topic is declared already: remove it first")]
    Declared,
    /// A wish needs a topic that was declared.
    #[error("the topic is not declared, so it promises nothing: declare its period, deadline and loss tolerance first")]
    NotDeclared,
}

/// The admitted topics, by name, and the cores that carry them.
#[derive(Clone, Debug)]
pub struct Admission {
    platform: Platform,
    cores: Cores,
    topics: BTreeMap<Box<str>, Topic>,
    /// What was last declared: topics of one category come one after the other.
    declared: Option<Arc<TopicSpec>>,
}

impl Admission {
    /// Without a topic.
    pub fn new(platform: Platform) -> Result<Self, SpecFault> {
        match platform.fault() {
            Some(fault) => Err(fault),
            None => Ok(Self { platform, cores: Cores::new(&platform), topics: BTreeMap::new(), declared: None }),
        }
    }

    /// Admits a topic with its declared promises.
    pub fn admit(&mut self, topic: &str, declared: TopicSpec) -> Result<Admitted, AdmissionError> {
        if self.topics.contains_key(topic) {
            return Err(AdmissionError::Declared);
        }
        let candidate = self.candidate(declared)?;
        let cores = &mut self.cores;
        let mut trial = |candidate: &Candidate| {
            let workload = Workload::from(candidate);
            cores.place(&workload).map(|placement| cores.remove(&workload, &placement))
        };
        if let Some(refusal) = candidate.refusal(&mut trial) {
            return Err(AdmissionError::Refused(refusal));
        }
        let placement = self.cores.place(&(&candidate).into()).expect("there was room a moment ago");
        let [(core, 1)] = placement[..] else { panic!("a topic is on one core: {placement:?}") };
        let shared = self.declared.take().filter(|last| **last == declared).unwrap_or_else(|| Arc::new(declared));
        self.declared = Some(shared.clone());
        self.topics.insert(topic.into(), Topic { declared: shared, asked: None, core });
        Ok(Admitted { spec: declared, deadlines: candidate.deadlines(), core })
    }

    /// Takes what a subscription asks, in place of what it asked before. The topic stays on its core.
    pub fn ask(&mut self, topic: &str, subscription: u64, wish: Wish) -> Result<Admitted, AdmissionError> {
        let known = self.topics.get(topic).ok_or(AdmissionError::NotDeclared)?;
        let mut wishes = known.wishes();
        wishes.insert(subscription, wish);
        self.candidate(known.tightened(&wishes))?;
        self.replace(topic, wishes)?;
        Ok(self.get(topic).expect("it was there a moment ago"))
    }

    /// Forgets what a subscription asked; the topic is as strict as the others ask. One that has asked nothing is no error.
    pub fn withdraw(&mut self, topic: &str, subscription: u64) {
        let Some(known) = self.topics.get(topic) else { return };
        let mut wishes = known.wishes();
        if wishes.remove(&subscription).is_some() {
            self.replace(topic, wishes).expect("what asks for less fits where more did");
        }
    }

    /// What all that ask something of a topic ask of it together, beyond its declaration.
    pub fn asked(&self, topic: &str) -> Wish {
        let asked = self.topics.get(topic).and_then(|topic| topic.asked.as_ref());
        let wishes = || asked.into_iter().flat_map(|asked| asked.wishes.values());
        Wish {
            loss_tolerance: wishes().filter_map(|wish| wish.loss_tolerance).min(),
            deadline: wishes().filter_map(|wish| wish.deadline).min(),
        }
    }

    /// Removes a topic; one that is not there is no error.
    pub fn remove(&mut self, topic: &str) {
        if let Some(topic) = self.topics.remove(topic) {
            let candidate = self.fitting(topic.spec());
            self.cores.remove(&(&candidate).into(), &vec![(topic.core, 1)]);
        }
    }

    /// What was admitted under this name.
    pub fn get(&self, topic: &str) -> Option<Admitted> {
        let topic = self.topics.get(topic)?;
        Some(Admitted { spec: topic.spec(), deadlines: self.fitting(topic.spec()).deadlines(), core: topic.core })
    }

    /// How long before its deadline a replica on a core has to be begun at the latest: then all deadlines of the core are met, even where
    /// every replication is postponed so long. `None` where there are no replicas. To be asked again when the core's topics have changed.
    pub fn replica_lead(&self, core: usize) -> Option<Nanos> {
        self.cores.replica_lead(core)
    }

    fn candidate(&self, spec: TopicSpec) -> Result<Candidate, SpecFault> {
        spec.fault_on(&self.platform).map_or(Ok(self.fitting(spec)), Err)
    }

    /// One whose specification has no fault.
    fn fitting(&self, spec: TopicSpec) -> Candidate {
        Candidate { spec, topics: 1, platform: self.platform }
    }

    /// Has a topic promise what these wishes ask, or leaves all as it was.
    fn replace(&mut self, topic: &str, wishes: BTreeMap<u64, Wish>) -> Result<(), AdmissionError> {
        let known = &self.topics[topic];
        let (before, candidate) = (self.fitting(known.spec()), self.fitting(known.tightened(&wishes)));
        let (before, placement) = (Workload::from(&before), &vec![(known.core, 1)]);
        self.cores.remove(&before, placement);
        let cores = &mut self.cores;
        let mut trial = |candidate: &Candidate| {
            let workload = Workload::from(candidate);
            cores.put(&workload, placement).map(|()| cores.remove(&workload, placement)).map_err(|rejection| (rejection, 0))
        };
        let refusal = candidate.refusal(&mut trial);
        let kept = if refusal.is_none() { Workload::from(&candidate) } else { before };
        cores.put(&kept, placement).expect("there was room a moment ago");
        match refusal {
            Some(refusal) => Err(AdmissionError::Refused(refusal)),
            None => {
                let known = self.topics.get_mut(topic).expect("it was there a moment ago");
                known.asked = (!wishes.is_empty()).then(|| Box::new(Asked { wishes, spec: candidate.spec }));
                Ok(())
            }
        }
    }
}

impl Topic {
    fn spec(&self) -> TopicSpec {
        self.asked.as_ref().map_or(*self.declared, |asked| asked.spec)
    }

    fn wishes(&self) -> BTreeMap<u64, Wish> {
        self.asked.as_ref().map_or_else(BTreeMap::new, |asked| asked.wishes.clone())
    }

    /// What was declared, and these wishes as well.
    fn tightened(&self, wishes: &BTreeMap<u64, Wish>) -> TopicSpec {
        wishes.values().fold(*self.declared, |spec, wish| wish.tighten(spec))
    }
}

#[cfg(test)]
mod tests;
