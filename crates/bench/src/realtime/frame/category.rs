//! The six categories of Wang 2019, Table 3.2, and how many topics of each a workload has (section 3.6).

use crate::realtime::workload::{Group, Stamp, Workload};

/// Length of a payload.
const PAYLOAD_BYTES: usize = 16;
/// Topics in categories 0, 1 and 5 together; the others are spread over 2 to 4.
const FIXED_TOPICS: u32 = 25;
/// Up to so many topics categories 2 to 4 have the table's period. Beyond the paper's 13,525 they have one of a second.
const TABLE_TOPICS_MAX: u32 = 20_000;
/// The subscriber of category 5, which is in the cloud.
pub const IN_CLOUD: usize = 2;
const MS: u64 = 1_000_000;

/// One row of the table, and how it is published and heard.
pub struct Category {
    /// T and D, in ms.
    pub period_ms: u64,
    /// L; `None`: any number.
    pub loss_tolerance: Option<u32>,
    /// N.
    pub retention: u32,
    /// N of FRAME+.
    pub retention_plus: u32,
    topics_per_proxy: u32,
    subscriber: u16,
}

/// Table 3.2. The subscribers 0 and 1 are at the edge.
pub const CATEGORIES: [Category; 6] = [
    category(50, Some(0), 2, 2, 10, 0),
    category(50, Some(3), 0, 0, 10, 1),
    category(100, Some(0), 1, 2, 50, 0),
    category(100, Some(3), 0, 0, 50, 1),
    category(100, None, 0, 0, 50, 0),
    category(500, Some(0), 1, 2, 1, IN_CLOUD as u16),
];

const fn category(
    period_ms: u64,
    loss_tolerance: Option<u32>,
    retention: u32,
    retention_plus: u32,
    topics_per_proxy: u32,
    subscriber: u16,
) -> Category {
    Category { period_ms, loss_tolerance, retention, retention_plus, topics_per_proxy, subscriber }
}

/// So many topics, at least one in each category.
///
/// Ten topics each are in categories 0 and 1 and five in category 5, as in the paper; the rest is spread over categories 2 to 4. D is T.
pub fn workload(topics: u32, is_plus: bool, seed: u64) -> Workload {
    let rest = topics.saturating_sub(FIXED_TOPICS).max(3);
    let groups = CATEGORIES.iter().enumerate().map(|(number, category)| {
        let is_spread = (2..=4).contains(&number);
        let topics_of = match number {
            0 | 1 => 10,
            5 => 5,
            _ => rest / 3 + u32::from((number as u32 - 2) < rest % 3),
        };
        let period_ms = if is_spread && topics > TABLE_TOPICS_MAX { 1000 } else { category.period_ms };
        Group {
            name: format!("FRAME{number}"),
            topics: topics_of,
            topics_per_proxy: category.topics_per_proxy,
            period_ns: period_ms * MS,
            deadline_ns: Some(period_ms * MS),
            loss_tolerance: category.loss_tolerance,
            retention: if is_plus { category.retention_plus } else { category.retention },
            heard_by: vec![category.subscriber],
        }
    });
    Workload { groups: groups.collect(), payload_bytes: PAYLOAD_BYTES, stamp: Stamp::Due, seed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_workloads_have_the_papers_topics() {
        for (topics, of_each) in [(1525, 500), (4525, 1500), (7525, 2500), (10_525, 3500), (13_525, 4500)] {
            let workload = workload(topics, false, 1);
            assert_eq!(workload.topics(), topics);
            assert_eq!(workload.groups.iter().map(|group| group.topics).collect::<Vec<_>>(), [10, 10, of_each, of_each, of_each, 5]);
            assert_eq!(workload.proxies().len() as u32, 1 + 1 + 3 * of_each / 50 + 5);
        }
        let workload = workload(7525, true, 1);
        assert_eq!(workload.groups.iter().map(|group| group.retention).collect::<Vec<_>>(), [2, 0, 2, 0, 0, 2]);
        assert_eq!((workload.events_per_s(), workload.subscribers()), (75_410.0, 3));
    }

    #[test]
    fn many_topics_have_a_period_of_a_second() {
        let workload = workload(100_000, false, 1);
        assert_eq!((workload.topics(), workload.groups[3].period_ns), (100_000, 1_000_000_000));
        assert_eq!(workload.groups[0].period_ns, 50_000_000);
        assert!(super::workload(26, false, 1).groups.iter().all(|group| group.topics > 0));
    }
}
