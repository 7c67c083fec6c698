//! The categories of Wang 2019, Table 4.1, and how many topics of each a workload has (section 4.7.1).

use crate::realtime::workload::{Group, Stamp, Workload};

/// Length of a payload.
const PAYLOAD_BYTES: usize = 512;
/// Topics that one publisher has, but of category 5 in a large group.
const TOPICS_PER_PROXY: u32 = 10;
/// Topics in categories 1 to 4; the rest is in category 5.
pub const FIXED_TOPICS: u32 = 300;
const MS: u64 = 1_000_000;

/// Use, T, D, L, N, topics of the categories 1 to 4, and of 5 without its topics. Times in ms.
const CATEGORIES: [(u64, Option<u64>, u32, u32, u32); 5] =
    [(50, None, 0, 1, 50), (100, Some(100), 0, 1, 100), (500, Some(500), 0, 1, 100), (50, Some(50), 3, 0, 50), (100, Some(100), 3, 0, 0)];

/// So many topics in all; those of category 5 have one publisher (a large group) or one for ten of them.
pub fn workload(topics: u32, is_large: bool, seed: u64) -> Workload {
    let rest = topics.saturating_sub(FIXED_TOPICS).max(1);
    let group = |(index, (period_ms, deadline_ms, loss_tolerance, retention, count)): (usize, &(u64, Option<u64>, u32, u32, u32))| {
        let is_last = index + 1 == CATEGORIES.len();
        let topics = if is_last { rest } else { *count };
        Group {
            name: format!("ARREC{}", index + 1),
            topics,
            topics_per_proxy: if is_last && is_large { topics } else { TOPICS_PER_PROXY },
            period_ns: period_ms * MS,
            deadline_ns: deadline_ms.map(|ms| ms * MS),
            loss_tolerance: Some(*loss_tolerance),
            retention: *retention,
            heard_by: vec![0],
        }
    };
    Workload { groups: CATEGORIES.iter().enumerate().map(group).collect(), payload_bytes: PAYLOAD_BYTES, stamp: Stamp::Due, seed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_workloads_have_the_papers_topics() {
        for (topics, last) in [(1200, 900), (1400, 1100), (1600, 1300)] {
            let large = workload(topics, true, 1);
            assert_eq!(large.groups.iter().map(|group| group.topics).collect::<Vec<_>>(), [50, 100, 100, 50, last]);
            assert_eq!((large.topics(), large.subscribers()), (topics, 1));
            assert_eq!(large.proxies().len(), 5 + 10 + 10 + 5 + 1);
            assert_eq!(workload(topics, false, 1).proxies().len() as u32, 30 + last / 10);
        }
        assert_eq!(workload(1200, true, 1).events_per_s(), 12_200.0);
    }
}
