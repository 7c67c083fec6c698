//! What goes in and what comes out: suppliers that push together, and consumers by level.

use serde::{Deserialize, Serialize};

use crate::draws::Draws;

/// Priority levels, the most urgent first.
pub const LEVELS: [&str; 3] = ["high", "middle", "low"];

/// A topic that a graph takes events of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supplier {
    /// Its name.
    pub topic: String,
    /// One-byte points in an event.
    pub points: u32,
    /// Between two events.
    pub period_ns: u64,
    /// Events that are pushed one after the other and again; none: points of any value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<String>,
}

/// Suppliers that push in the same moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer {
    /// Which, by their places.
    pub suppliers: Vec<usize>,
    /// Between two moments.
    pub period_ns: u64,
    /// When the first one is, behind the start.
    pub phase_ns: u64,
}

/// A topic that a graph writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumer {
    /// Its name, which begins with that of its level.
    pub topic: String,
    /// 0 is the most urgent; of those that have names there are three.
    pub level: usize,
    /// Between two results.
    pub period_ns: u64,
}

/// How suppliers push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrivals {
    /// Whether those of a stream push together. Otherwise each has a phase of its own.
    pub are_together: bool,
    /// What the time between two events is longer or shorter by at the most, each time drawn anew.
    pub jitter_ns: u64,
    /// What phases and times are drawn from.
    pub seed: u64,
}

impl Arrivals {
    /// In the same moment, period by period.
    pub const TOGETHER: Self = Self { are_together: true, jitter_ns: 0, seed: 1 };
}

/// All of them, as both sides of a run are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    /// Topics that go in.
    pub suppliers: Vec<Supplier>,
    /// When their events are pushed.
    pub timers: Vec<Timer>,
    /// See [`Arrivals::jitter_ns`].
    pub jitter_ns: u64,
    /// See [`Arrivals::seed`].
    pub seed: u64,
    /// Topics that come out.
    pub consumers: Vec<Consumer>,
    /// A result that comes later than this behind its newest input is late; none: later than its period.
    pub validity_ns: Option<u64>,
}

impl Streams {
    /// None yet.
    pub fn new(arrivals: Arrivals, validity_ns: Option<u64>) -> Self {
        let Arrivals { jitter_ns, seed, .. } = arrivals;
        Self { suppliers: Vec::new(), timers: Vec::new(), jitter_ns, seed, consumers: Vec::new(), validity_ns }
    }

    /// Adds a stream's suppliers, which have one period; gives their topics.
    pub fn supply(&mut self, topics: &[(String, u32)], period_ns: u64, arrivals: Arrivals, draws: &mut Draws) -> Vec<String> {
        let first = self.suppliers.len();
        self.suppliers.extend(topics.iter().map(|(topic, points)| Supplier {
            topic: topic.clone(),
            points: *points,
            period_ns,
            texts: Vec::new(),
        }));
        let places: Vec<usize> = (first..self.suppliers.len()).collect();
        let sets = if arrivals.are_together { vec![places] } else { places.into_iter().map(|place| vec![place]).collect() };
        for suppliers in sets {
            self.timers.push(Timer { suppliers, period_ns, phase_ns: draws.below(period_ns) });
        }
        topics.iter().map(|(topic, _)| topic.clone()).collect()
    }

    /// Adds a consumer; gives its topic.
    pub fn consume(&mut self, level: usize, copy: u32, period_ns: u64) -> String {
        let topic = format!("{}{copy}", prefix(level));
        self.consumers.push(Consumer { topic: topic.clone(), level, period_ns });
        topic
    }

    /// Results a second of a level, if every event becomes one in time.
    pub fn results_per_s(&self, level: usize) -> f64 {
        self.consumers.iter().filter(|consumer| consumer.level == level).map(|consumer| 1e9 / consumer.period_ns as f64).sum()
    }

    /// What each line of the consumers subscribes to: one for each level, whose topics begin alike, or one for all topics where they do not.
    pub fn subscriptions(&self) -> Vec<Vec<String>> {
        let begins = |consumer: &Consumer| consumer.level < LEVELS.len() && consumer.topic.starts_with(&prefix(consumer.level));
        if self.consumers.iter().all(begins) {
            (0..LEVELS.len()).map(|level| vec![prefix(level)]).collect()
        } else {
            vec![self.consumers.iter().map(|consumer| consumer.topic.clone()).collect()]
        }
    }

    /// Levels that results are told by: those that have a name at least.
    pub fn levels(&self) -> usize {
        self.consumers.iter().map(|consumer| consumer.level + 1).fold(LEVELS.len(), usize::max)
    }

    /// When a result of a consumer is late.
    pub fn late_ns(&self, consumer: &Consumer) -> u64 {
        self.validity_ns.unwrap_or(consumer.period_ns)
    }
}

/// What the topics of a level's results begin with, and no other topic does.
pub fn prefix(level: usize) -> String {
    format!("OUT-{}-", LEVELS[level].to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suppliers_of_a_stream_share_a_timer_only_where_they_push_together() {
        for (are_together, timers) in [(true, 1), (false, 2)] {
            let arrivals = Arrivals { are_together, ..Arrivals::TOGETHER };
            let mut streams = Streams::new(arrivals, None);
            let topics = streams.supply(&[("A".into(), 4), ("B".into(), 8)], 1000, arrivals, &mut Draws::new(1));
            assert_eq!((topics, streams.timers.len()), (vec!["A".to_owned(), "B".to_owned()], timers));
            assert!(streams.timers.iter().all(|timer| timer.phase_ns < 1000 && timer.period_ns == 1000));
            let served: Vec<usize> = streams.timers.iter().flat_map(|timer| timer.suppliers.clone()).collect();
            assert_eq!(served, [0, 1]);
        }
    }

    #[test]
    fn late_is_behind_the_validity_or_else_the_period() {
        let mut streams = Streams::new(Arrivals::TOGETHER, None);
        assert_eq!(streams.consume(1, 3, 10_000_000), "OUT-MIDDLE-3");
        assert_eq!((streams.late_ns(&streams.consumers[0]), streams.results_per_s(1), streams.results_per_s(0)), (10_000_000, 100.0, 0.0));
        streams.validity_ns = Some(5);
        assert_eq!(streams.late_ns(&streams.consumers[0]), 5);
    }
}
