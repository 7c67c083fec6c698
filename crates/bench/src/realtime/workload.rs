//! Which topics there are, who publishes them when, and who hears them.
//!
//! A publisher is a proxy of several topics, as in Wang 2019, section 3.6: once a period it sends one event of each of its topics, all in one burst. Everything
//! follows from the workload and the start, so that whoever hears it knows what should have come without being told.

use serde::{Deserialize, Serialize};

use crate::draws::Draws;

/// Topics alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// What the topics are called in front of their number.
    pub name: String,
    /// How many.
    pub topics: u32,
    /// How many of them one publisher sends.
    pub topics_per_proxy: u32,
    /// T.
    pub period_ns: u64,
    /// D; `None`: there is none.
    pub deadline_ns: Option<u64>,
    /// L; `None`: any number of losses.
    pub loss_tolerance: Option<u32>,
    /// N.
    pub retention: u32,
    /// The subscribers that hear them, from 0.
    pub heard_by: Vec<u16>,
}

/// What a time in a payload says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stamp {
    /// When the event was due, whatever held it up.
    Due,
    /// When it was given to the socket: of the way alone, without the sender's timer.
    Sent,
}

/// All topics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Numbered on in this order.
    pub groups: Vec<Group>,
    /// Length of each payload.
    pub payload_bytes: usize,
    /// What stands in them.
    pub stamp: Stamp,
    /// Where in its period each proxy's burst lies is drawn from it.
    pub seed: u64,
}

/// One publisher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Its group.
    pub group: usize,
    /// Number of its first topic among all.
    pub first_topic: u32,
    /// The same among those of its group.
    pub first_in_group: u32,
    /// How many it has, one after the other.
    pub topics: u32,
    /// When its first burst is due, after the start.
    pub phase_ns: u64,
    /// Between two bursts.
    pub period_ns: u64,
}

impl Workload {
    /// How many topics there are.
    pub fn topics(&self) -> u32 {
        self.groups.iter().map(|group| group.topics).sum()
    }

    /// How many subscribers there are.
    pub fn subscribers(&self) -> usize {
        self.groups.iter().flat_map(|group| &group.heard_by).max().map_or(0, |last| usize::from(*last) + 1)
    }

    /// Events a second of all publishers together.
    pub fn events_per_s(&self) -> f64 {
        self.groups.iter().map(|group| f64::from(group.topics) * 1e9 / group.period_ns as f64).sum()
    }

    /// Number of each group's first topic.
    pub fn first_topics(&self) -> Vec<u32> {
        let first = |next: &mut u32, group: &Group| {
            let first = *next;
            *next += group.topics;
            Some(first)
        };
        self.groups.iter().scan(0, first).collect()
    }

    /// The names of all topics, by their numbers.
    pub fn names(&self) -> Vec<String> {
        self.groups.iter().flat_map(|group| (0..group.topics).map(|n| group.topic_name(n))).collect()
    }

    /// Every publisher, with its phase.
    pub fn proxies(&self) -> Vec<Proxy> {
        let mut draws = Draws::new(self.seed);
        let mut proxies = Vec::new();
        for (index, (group, first_topic)) in self.groups.iter().zip(self.first_topics()).enumerate() {
            let per_proxy = group.topics_per_proxy.max(1);
            for first in (0..group.topics).step_by(per_proxy as usize) {
                proxies.push(Proxy {
                    group: index,
                    first_topic: first_topic + first,
                    first_in_group: first,
                    topics: per_proxy.min(group.topics - first),
                    phase_ns: draws.next() % group.period_ns.max(1),
                    period_ns: group.period_ns,
                });
            }
        }
        proxies
    }
}

impl Group {
    /// The name of its topic `n`, from 0, as a topic file's `count` makes it: numbered from 1, a single one by its group's name alone.
    pub fn topic_name(&self, n: u32) -> String {
        if self.topics == 1 { self.name.clone() } else { format!("{}-{}", self.name, n + 1) }
    }
}

impl Proxy {
    /// Its events that are due in `from_ns..to_ns` after the start, by their sequences.
    pub fn due(&self, from_ns: u64, to_ns: u64) -> std::ops::Range<u32> {
        let first_at_or_after = |ns: u64| ns.saturating_sub(self.phase_ns).div_ceil(self.period_ns) as u32;
        first_at_or_after(from_ns)..first_at_or_after(to_ns)
    }

    /// When event `sequence` is due, after the start.
    pub fn due_ns(&self, sequence: u32) -> u64 {
        self.phase_ns + u64::from(sequence) * self.period_ns
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two groups of a few topics, heard by one subscriber each.
    pub fn small() -> Workload {
        let group = |name: &str, topics, topics_per_proxy, period_ms: u64, heard_by| Group {
            name: name.into(),
            topics,
            topics_per_proxy,
            period_ns: period_ms * 1_000_000,
            deadline_ns: Some(period_ms * 1_000_000),
            loss_tolerance: Some(0),
            retention: 1,
            heard_by: vec![heard_by],
        };
        let groups = vec![group("FAST", 7, 3, 20, 0), group("SLOW", 1, 1, 50, 1)];
        Workload { groups, payload_bytes: 16, stamp: Stamp::Due, seed: 1 }
    }

    #[test]
    fn every_topic_has_one_publisher_and_a_name() {
        let workload = small();
        let proxies = workload.proxies();
        let topics: Vec<u32> = proxies.iter().flat_map(|proxy| proxy.first_topic..proxy.first_topic + proxy.topics).collect();
        assert_eq!(topics, Vec::from_iter(0..workload.topics()));
        assert_eq!(proxies.iter().map(|proxy| proxy.topics).collect::<Vec<_>>(), [3, 3, 1, 1]);
        assert!(proxies.iter().all(|proxy| proxy.phase_ns < proxy.period_ns));
        assert_eq!(workload.names()[6..], ["FAST-7", "SLOW"]);
        assert_eq!((workload.subscribers(), workload.events_per_s()), (2, 370.0));
        assert_eq!(workload.proxies(), proxies, "a seed draws the same again");
    }

    #[test]
    fn what_is_due_in_a_window_follows_from_phase_and_period() {
        let proxy = Proxy { group: 0, first_topic: 0, first_in_group: 0, topics: 1, phase_ns: 5, period_ns: 20 };
        for (from, to, due) in [(0, 5, 0..0), (0, 6, 0..1), (5, 25, 0..1), (6, 26, 1..2), (6, 126, 1..7)] {
            assert_eq!(proxy.due(from, to), due, "{from}..{to}");
            assert!(proxy.due(from, to).all(|sequence| (from..to).contains(&proxy.due_ns(sequence))));
        }
    }
}
