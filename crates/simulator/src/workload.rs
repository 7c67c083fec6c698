//! Who publishes what to whom, drawn from a seed: topics of every kind that the platform admits.

use std::num::NonZeroU32;

use bodkin_broker::{
    Terms,
    timing::{Deadlines, Nanos, Span},
    topic::{LeaseTimes, Level, LossTolerance, Period, Platform, TopicSpec},
};

use crate::{random::Random, requester::RequesterProcess};

/// Topics of a cloud.
const TOPICS: u64 = 6;
/// Publishers of a cloud; each publishes on about half of the topics.
pub const PUBLISHERS: u16 = 3;
/// Publishers of a cloud whose events the nodes number. Each publishes on one topic.
pub const REQUESTERS: u16 = 2;
/// Subscribers of a cloud.
pub const SUBSCRIBERS: u16 = 2;
/// Draws of a topic until one is feasible; most are at once.
const DRAWS_MAX: usize = 100;

/// What one cloud of a run is made of.
#[derive(Clone, Debug)]
pub struct Workload {
    /// What machines and network hold to, but for faults.
    pub platform: Platform,
    /// What is published.
    pub topics: Vec<Topic>,
}

/// A topic with its publishers and subscribers.
#[derive(Clone, Debug)]
pub struct Topic {
    /// As the broker stores it.
    pub name: String,
    /// What is promised.
    pub spec: TopicSpec,
    /// Who publishes on it, in ascending order.
    pub publishers: Vec<u16>,
    /// Who hears it, in ascending order, and whether as one that coverage waits for.
    pub subscribers: Vec<(u16, bool)>,
    /// Publishers keep no more than the newest N, whatever is covered: then the bound alone protects.
    pub keeps_newest_only: bool,
}

impl Topic {
    /// L; `None`: any number.
    pub fn tolerance(&self) -> Option<u64> {
        match self.spec.loss_tolerance {
            LossTolerance::AtMost(losses) => Some(losses.into()),
            LossTolerance::Any => None,
        }
    }

    /// D in nanoseconds, if there is one.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.spec.deadline.finite().map(|deadline| deadline.get().unsigned_abs())
    }
}

/// The platform of every run but for its batches: a fail-over within 16 ms.
pub fn platform() -> Platform {
    Platform {
        failover: None,
        lease: LeaseTimes {
            lease: Nanos::from_millis(10),
            heartbeat: Nanos::from_millis(3),
            drift_ppm: 200,
            detect_jitter: Nanos::from_micros(500),
            redirect: Nanos::from_millis(2),
        },
        broker_backup: Nanos::from_micros(300),
        clock_error: Nanos::from_micros(200),
        publisher_broker_min: Nanos::from_micros(50),
        batch_window: Nanos::ZERO,
        batch_cost: Nanos::from_micros(5),
        blocking: Nanos::from_micros(40),
        cores: NonZeroU32::MIN,
        load_max_percent: 95,
        promote: Nanos::from_millis(1),
        ..Platform::default()
    }
}

impl Workload {
    /// Longest time that nobody may lead when a Primary has died: x without the redirection of publishers, in nanoseconds.
    pub fn gap_max_ns(&self) -> u64 {
        (self.platform.failover() - self.platform.lease.redirect).get().unsigned_abs()
    }

    /// The pause of a stream after which its token bucket is full, whatever the clocks showed before, in nanoseconds: T and J, the way to the broker, and
    /// twice the clock error.
    pub fn refill_ns(&self, topic: u16) -> u64 {
        let TopicSpec { period, jitter, publisher_broker, .. } = self.topics[usize::from(topic)].spec;
        let clock_error = self.platform.clock_error;
        (period.gap() + jitter + publisher_broker + clock_error + clock_error).get().unsigned_abs()
    }

    /// Longest time until a publisher knows of a new leader, in nanoseconds.
    pub fn redirect_ns(&self) -> u64 {
        self.platform.lease.redirect.get().unsigned_abs()
    }

    /// The topic on which a requester publishes, with its number. Topics that tolerate no loss come first: only those promise something to it.
    pub fn request_topic(&self, requester: u16) -> (u16, &Topic) {
        let mut topics: Vec<(u16, &Topic)> = (0..).zip(&self.topics).collect();
        topics.sort_by_key(|(_, topic)| topic.tolerance() != Some(0));
        topics[usize::from(requester) % topics.len()]
    }

    /// The terms of a topic. It has no more slots than publishers, so that a run that kept one would be seen.
    pub fn terms(&self, topic: u16) -> Terms {
        let Topic { spec, publishers, .. } = &self.topics[usize::from(topic)];
        let requesters = (0..REQUESTERS).filter(|requester| self.request_topic(*requester).0 == topic);
        Terms { streams_max: (publishers.len() + requesters.count()) as u32, ..Terms::of(spec, &self.platform) }
    }

    /// How long before its arrival an event counts as created whose creation nobody states, in nanoseconds.
    pub fn created_before_ns(&self, topic: u16) -> u64 {
        self.terms(topic).created_before_ns
    }

    /// A requester, which keeps to the period of its topic.
    pub fn requester(&self, requester: u16) -> RequesterProcess {
        let (index, topic) = self.request_topic(requester);
        RequesterProcess::new(requester, index, topic.spec.period.gap().get().unsigned_abs())
    }

    /// The subscribers that must receive what a requester is answered.
    pub fn required_of(&self, requester: u16) -> Vec<u16> {
        let (_, topic) = self.request_topic(requester);
        topic.subscribers.iter().filter(|(_, is_required)| *is_required).map(|(subscriber, _)| *subscriber).collect()
    }

    /// The workload that `random` gives.
    pub fn draw(random: &mut Random) -> Self {
        let batch_window = random.pick(&[Nanos::ZERO, Nanos::from_micros(100), Nanos::from_millis(2)]);
        let platform = Platform { batch_window, ..platform() };
        let topics = (0..TOPICS).map(|index| topic(index, &platform, random)).collect();
        Self { platform, topics }
    }
}

fn topic(index: u64, platform: &Platform, random: &mut Random) -> Topic {
    let spec = (0..DRAWS_MAX).find_map(|_| feasible(draw_spec(random), platform)).expect("one of so many topics is feasible");
    let mut publishers: Vec<u16> = (0..PUBLISHERS).filter(|_| random.chance(1, 2)).collect();
    if publishers.is_empty() {
        publishers.push(random.below(PUBLISHERS.into()) as u16);
    }
    let all = random.chance(2, 3);
    let alone = random.below(SUBSCRIBERS.into()) as u16;
    let hearing = (0..SUBSCRIBERS).filter(|subscriber| all || *subscriber == alone);
    // Who does not count for coverage may lose what only it has not got: such a subscription is of those who tolerate any loss.
    let subscribers = hearing.map(|subscriber| (subscriber, spec.loss_tolerance != LossTolerance::Any)).collect();
    let publishing = NonZeroU32::new(publishers.len() as u32).expect("somebody publishes");
    Topic {
        name: format!("TOPIC-{index}"),
        spec: TopicSpec { publishers: publishing, ..spec },
        publishers,
        subscribers,
        keeps_newest_only: random.chance(1, 3),
    }
}

fn draw_spec(random: &mut Random) -> TopicSpec {
    let period = Nanos::from_millis(random.pick(&[4, 5, 8, 10, 20]));
    let loss_tolerance = random.pick(&[
        LossTolerance::AtMost(0),
        LossTolerance::AtMost(0),
        LossTolerance::AtMost(1),
        LossTolerance::AtMost(3),
        LossTolerance::Any,
    ]);
    // What is late may be dropped, and what may be lost in a crash is what is left of L.
    let shed_max = match loss_tolerance {
        LossTolerance::AtMost(losses) => random.between(0, losses.into()) as u32,
        LossTolerance::Any => random.pick(&[0, 2]),
    };
    let mark_every = match loss_tolerance {
        LossTolerance::AtMost(losses) => random.between(1, u64::from(losses - shed_max) + 1) as u32,
        LossTolerance::Any => 1,
    };
    let deadline = random.pick(&[Span::Infinite, period.into(), Nanos::from_millis(20).into(), Nanos::from_millis(60).into()]);
    TopicSpec {
        deadline,
        loss_tolerance,
        shed_max,
        mark_every: NonZeroU32::new(mark_every).expect("at least 1"),
        jitter: random.pick(&[Nanos::ZERO, Nanos::from_millis(1), period]),
        level: Level::new(random.below(3) as u8).expect("one of the first levels"),
        publisher_broker: Nanos::from_micros(400),
        broker_subscriber_min: Nanos::from_micros(50),
        broker_subscriber_max: Nanos::from_micros(500),
        replica_cost: Nanos::from_micros(3),
        dispatch_cost: Nanos::from_micros(4),
        ..TopicSpec::best_effort(Period::Every(period))
    }
}

/// The topic with the smallest N that the platform admits, if there is one.
fn feasible(spec: TopicSpec, platform: &Platform) -> Option<TopicSpec> {
    let retention = Deadlines::of(&spec, platform).retention_min?;
    let spec = TopicSpec { retention, ..spec };
    let deadlines = Deadlines::of(&spec, platform);
    (deadlines.dispatch_feasible() && deadlines.replicate_feasible()).then_some(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_feasible_and_has_publishers_and_subscribers() {
        let (mut tolerances, mut shares, mut windows) = (Vec::new(), Vec::new(), Vec::new());
        for seed in 0..50 {
            let Workload { platform, topics } = Workload::draw(&mut Random::new(seed));
            windows.push(platform.batch_window);
            for topic in topics {
                assert!(feasible(topic.spec, &platform).is_some());
                assert!(!topic.publishers.is_empty() && !topic.subscribers.is_empty());
                tolerances.push(topic.spec.loss_tolerance);
                shares.push((topic.spec.loss_tolerance, topic.spec.shed_max));
            }
        }
        for shed_max in 0..=3 {
            assert!(shares.contains(&(LossTolerance::AtMost(3), shed_max)), "{shed_max} of 3 was never drawn");
        }
        assert!(windows.contains(&Nanos::ZERO) && windows.contains(&Nanos::from_millis(2)), "{windows:?}");
        for tolerance in [LossTolerance::AtMost(0), LossTolerance::AtMost(3), LossTolerance::Any] {
            assert!(tolerances.contains(&tolerance), "{tolerance:?} was never drawn");
        }
    }
}
