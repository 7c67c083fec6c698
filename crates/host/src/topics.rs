//! Real-time topics: which ones are admitted on this node, and what became of their events.

pub mod asking;
pub mod declaration;
mod latency;
mod loss_runs;
pub mod parties;
mod publisher_list;
pub mod pushed;
mod table;
pub mod wish;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64},
};

use bodkin_arrowhead::name::EventType;
use bodkin_broker::{
    ShardError, Terms,
    timing::{Admission, AdmissionError, Change, Nanos, Reason, Refusal, Wish},
    topic::{Level, Period, Platform, SpecFault, TopicSpec, form::PUBLISHERS_MAX},
};
use bodkin_store::{Store, StoreError};
use serde::Serialize;

use self::parties::Parties;
pub use self::{latency::Latency, loss_runs::LossRuns, publisher_list::PublisherList, table::TopicTable};
use crate::{config::HostConfig, stall::Assumed};

/// Shards of this process: a topic is on one of them.
const SHARDS: NonZeroU32 = NonZeroU32::MIN;

/// Topics of a node whose latencies are kept, 400 bytes each; of those that are declared while there are so many, none is.
pub const LATENCY_TOPICS_MAX: usize = 10_000;

/// A topic as the configuration declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredTopic {
    /// Its event type.
    pub event_type: EventType,
    /// What it promises, shared with those that were declared alike.
    pub spec: Arc<TopicSpec>,
    /// Systems that may publish it.
    pub permitted: PublisherList,
}

/// Who has declared a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Declarer {
    /// The configuration; only there it can be changed.
    Configuration,
    /// The operator, while the cloud ran.
    Operator,
}

/// A topic that was admitted.
#[derive(Clone, Debug)]
pub struct RealTimeTopic {
    /// Its event type, as stored.
    pub event_type: Arc<str>,
    /// What it promises: as much as the strictest asks, of who has declared it and all who subscribe.
    pub spec: Arc<TopicSpec>,
    /// Systems that may publish it.
    pub permitted: PublisherList,
    /// What subscribers ask of it beyond its declaration.
    pub asked: Wish,
    /// Who has declared it.
    pub declarer: Declarer,
    /// Whether its publishers are answered when the event is synced.
    pub is_durable: bool,
    /// What became of its events.
    pub counts: Arc<TopicCounts>,
}

/// What became of a topic's events, written by the shard.
#[derive(Debug, Default)]
pub struct TopicCounts {
    /// Events that were taken.
    pub accepted: AtomicU64,
    /// Of these, those that came faster than the topic's period.
    pub excess: AtomicU64,
    /// Events that were not taken, because too many were kept already or by publishers beyond those that were declared.
    pub refused: AtomicU64,
    /// Of these, events of publishers that the topic's declaration does not name, or for which no slot was free.
    pub publisher_rejected: AtomicU64,
    /// Events handed to their subscribers.
    pub dispatched: AtomicU64,
    /// Of these, those that were due before.
    pub late: AtomicU64,
    /// Events that were taken and dropped in front of their dispatch.
    pub shed: AtomicU64,
    /// Events that a subscriber has not got because its queue was full, once for each subscriber.
    pub lost: AtomicU64,
    /// The most events in a row that a full queue has cost an event stream.
    pub longest_loss_run: AtomicU64,
    /// How often a full queue has cost an event stream so many events in a row.
    pub loss_runs: LossRuns,
    /// From the creation of its events to their dispatch; `None`: there were [`LATENCY_TOPICS_MAX`] topics before it.
    pub latency: Option<Box<Latency>>,
    /// Its publishers.
    pub parties: Parties,
}

/// Why a topic is not served in real time.
#[derive(Debug, thiserror::Error)]
pub enum TopicError {
    /// What topics count on cannot be meant, or does not fit this process.
    #[error("platform: {0}")]
    Platform(String),
    /// There are too many event types.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// The admission test refuses it.
    #[error("topic {event_type} is refused: {}", told(.error))]
    Refused {
        /// Which topic.
        event_type: String,
        /// Why.
        error: Box<AdmissionError>,
    },
}

impl From<SpecFault> for TopicError {
    fn from(fault: SpecFault) -> Self {
        Self::Platform(fault.to_string())
    }
}

impl TopicError {
    /// Why the admission test refuses, and the ways to be admitted, each with all changes of it, as a file of topics has them.
    pub fn refusal(&self) -> Option<(Vec<String>, Vec<Vec<String>>)> {
        let Self::Refused { error, .. } = self else { return None };
        let AdmissionError::Refused(refusal) = &**error else { return None };
        Some((refusal.reasons.iter().map(Reason::to_string).collect(), ways(refusal)))
    }
}

fn ways(refusal: &Refusal) -> Vec<Vec<String>> {
    refusal.ways.iter().map(|changes| changes.iter().map(Change::to_string).collect()).collect()
}

/// The reason, and what would have to change.
fn told(error: &AdmissionError) -> String {
    let AdmissionError::Refused(refusal) = error else { return error.to_string() };
    let ways: Vec<String> = ways(refusal).iter().map(|changes| changes.join(" and ")).collect();
    if ways.is_empty() { format!("{refusal}") } else { format!("{refusal}. It would be admitted with {}", ways.join(", or with ")) }
}

/// The admitted topics.
pub struct RealTimeTopics {
    platform: Platform,
    /// Event types that are durable whatever their topic says.
    durable: BTreeSet<Box<str>>,
    admitted: Mutex<Admitted>,
    /// Names of subscriptions that were given.
    askers: AtomicU64,
}

struct Admitted {
    admission: Admission,
    topics: BTreeMap<Arc<str>, Arc<RealTimeTopic>>,
}

impl RealTimeTopics {
    /// Without a topic.
    pub fn new(platform: Platform, durable: BTreeSet<Box<str>>) -> Result<Self, TopicError> {
        if platform.cores != SHARDS {
            let told = format!("cores = {}, and this process has {SHARDS} shard: every topic is on that one", platform.cores);
            return Err(TopicError::Platform(told));
        }
        if let Some(implied) = platform.failover_shortfall() {
            let told = format!("failover is shorter than the {implied} that the lease implies");
            return Err(TopicError::Platform(told));
        }
        let admitted = Admitted { admission: Admission::new(platform)?, topics: BTreeMap::new() };
        Ok(Self { platform, durable, admitted: Mutex::new(admitted), askers: AtomicU64::new(0) })
    }

    /// What all topics count on.
    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// What deadlines were admitted with and is watched.
    pub fn assumed(&self) -> Assumed {
        let nanos = |time: Nanos| u64::try_from(time.get()).expect("a platform without a fault has no negative time");
        Assumed {
            blocking_ns: nanos(self.platform.blocking),
            clock_error_ns: nanos(self.platform.clock_error),
            broker_backup_ns: nanos(self.platform.broker_backup),
        }
    }

    /// Admits a topic beside those that are there, or leaves all as it is. Gives what the shard is to be told.
    pub fn admit(&self, declared: &DeclaredTopic, declarer: Declarer) -> Result<(Arc<RealTimeTopic>, Terms), TopicError> {
        let event_type = declared.event_type.as_str();
        let refused = |error| TopicError::Refused { event_type: event_type.to_owned(), error: Box::new(error) };
        let mut admitted = self.lock();
        let spec = declared.spec.clone();
        admitted.admission.admit(event_type, *spec).map_err(refused)?;
        let is_durable = spec.durable || self.durable.contains(event_type);
        let event_type = Arc::<str>::from(event_type);
        let latency = (admitted.topics.len() < LATENCY_TOPICS_MAX).then(Box::default);
        let (asked, counts) = (Wish::default(), Arc::new(TopicCounts { latency, ..TopicCounts::default() }));
        let permitted = declared.permitted.clone();
        let topic = Arc::new(RealTimeTopic { event_type: event_type.clone(), spec, permitted, asked, declarer, is_durable, counts });
        admitted.topics.insert(event_type, topic.clone());
        Ok((topic.clone(), Terms::of(&topic.spec, &self.platform)))
    }

    /// Takes back what [`Self::admit`] did; a topic that is not there is no error. The shard keeps the event type in its queue, with terms that promise
    /// nothing and ask for nothing, for what it holds still has to go out: they are given.
    pub fn withdraw(&self, event_type: &str) -> Option<(Arc<RealTimeTopic>, Terms)> {
        let mut admitted = self.lock();
        admitted.admission.remove(event_type);
        let topic = admitted.topics.remove(event_type)?;
        // What was declared of publishers ends with the declaration.
        let topic = RealTimeTopic { spec: Arc::new(undeclared()), permitted: PublisherList::default(), ..RealTimeTopic::clone(&topic) };
        Some((Arc::new(topic), Terms::of(&undeclared(), &self.platform)))
    }

    /// An event type that is declared no more and of which a node of a pair still keeps events: it promises nothing.
    pub fn undeclared(&self, event_type: &str) -> (Arc<RealTimeTopic>, Terms) {
        let (spec, counts) = (Arc::new(undeclared()), Arc::default());
        let (permitted, asked, declarer) = (PublisherList::default(), Wish::default(), Declarer::Operator);
        let topic = RealTimeTopic { event_type: event_type.into(), spec, permitted, asked, declarer, is_durable: false, counts };
        let terms = Terms::of(&topic.spec, &self.platform);
        (Arc::new(topic), terms)
    }

    /// Whether events of this type are durable.
    pub fn is_durable(&self, event_type: &str) -> bool {
        self.durable.contains(event_type) || self.lock().topics.get(event_type).is_some_and(|topic| topic.is_durable)
    }

    /// The topic of this event type.
    pub fn get(&self, event_type: &str) -> Option<Arc<RealTimeTopic>> {
        self.lock().topics.get(event_type).cloned()
    }

    /// All topics, by event type.
    pub fn all(&self) -> Vec<Arc<RealTimeTopic>> {
        self.lock().topics.values().cloned().collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lock().topics.len()
    }

    /// Every topic with its terms, by event type.
    pub fn with_terms(&self) -> Vec<(Arc<RealTimeTopic>, Terms)> {
        self.all().into_iter().map(|topic| (topic.clone(), Terms::of(&topic.spec, &self.platform))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Admitted> {
        // The tables change together behind the admission test, which changes all or nothing.
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is asked of an event type that is declared no more: nothing, behind all others.
fn undeclared() -> TopicSpec {
    let last = Level::new(Level::COUNT - 1).expect("there is a last level");
    let publishers = NonZeroU32::new(PUBLISHERS_MAX).expect("there is a publisher");
    TopicSpec { level: last, publishers, ..TopicSpec::best_effort(Period::Every(Nanos::new(1))) }
}

/// What was admitted, and what the shard is to be told of it.
pub type AdmittedTopics = (Arc<RealTimeTopics>, Vec<(Arc<RealTimeTopic>, Terms)>);

/// Event types of topics that the operator has declared durable while the cloud ran, as stored: as the database has them, whoever leads.
pub fn declared_durable(store: &Store, platform: &Platform) -> Result<Vec<Box<str>>, StoreError> {
    let declarations = store.read_now(|draft| draft.declared_topics())?;
    let declared = declarations.iter().filter_map(|text| declaration::parse(text, platform).ok());
    Ok(declared.filter(|topic| topic.spec.durable).map(|topic| topic.event_type.as_str().into()).collect())
}

/// Admits the declared topics, one after the other.
pub fn admit_configured(config: &HostConfig) -> Result<AdmittedTopics, TopicError> {
    let topics = RealTimeTopics::new(config.platform, durable_event_types(config).collect())?;
    let admit = |declared| topics.admit(declared, Declarer::Configuration);
    let admitted = config.topics.iter().map(admit).collect::<Result<Vec<_>, _>>()?;
    Ok((Arc::new(topics), admitted))
}

/// Event types that the configuration makes durable, as stored.
pub fn durable_event_types(config: &HostConfig) -> impl Iterator<Item = Box<str>> {
    config.durable_event_types.iter().map(|event_type| event_type.as_str().into())
}

/// Admits what the operator has declared while the cloud ran, beside the configuration's topics. What does not fit beside them any more is served
/// best effort: its declaration stays, until it is removed. A node that has followed has admitted them as they came.
pub async fn restore(topics: &RealTimeTopics, store: &Store) -> Result<Vec<(Arc<RealTimeTopic>, Terms)>, StoreError> {
    let declarations = store.read(|draft| draft.declared_topics()).await?;
    let admit = |declaration: &String| {
        let declared = declaration::parse(declaration, topics.platform())?;
        if let Some(topic) = topics.get(declared.event_type.as_str()).filter(|topic| topic.declarer == Declarer::Operator) {
            return Ok((topic.clone(), Terms::of(&topic.spec, &topics.platform)));
        }
        topics.admit(&declared, Declarer::Operator).map_err(|error| error.to_string())
    };
    let tell = |error: String| tracing::error!(error, "a topic that was declared while the cloud ran is not in force");
    Ok(declarations.iter().filter_map(|declaration| admit(declaration).map_err(tell).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_kept_of_so_many_topics_and_of_none_beyond() {
        let topics = RealTimeTopics::new(Platform::default(), BTreeSet::new()).unwrap();
        let spec = Arc::new(TopicSpec::best_effort(Period::Every(Nanos::from_millis(1_000))));
        let admit = |number: usize| {
            let event_type = EventType::parse(&format!("t{number}")).unwrap();
            let declared = DeclaredTopic { event_type, spec: spec.clone(), permitted: PublisherList::default() };
            topics.admit(&declared, Declarer::Operator).unwrap().0.counts.latency.is_some()
        };
        assert!((0..LATENCY_TOPICS_MAX).all(admit));
        assert!(!admit(LATENCY_TOPICS_MAX));
        for withdrawn in ["T0", "T1"] {
            topics.withdraw(withdrawn).unwrap();
        }
        assert!(admit(LATENCY_TOPICS_MAX + 1), "there is room again");
    }
}
