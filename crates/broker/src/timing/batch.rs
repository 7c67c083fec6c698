//! When a batch of pending replicas has to start, so that each is out in time.

use super::{Nanos, Span};

/// A replica that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingReplica {
    /// Instant at which its last byte has to leave: (A) less `BB` and `eps`.
    pub deadline: Nanos,
    /// Processor time to build and send it.
    pub cost: Nanos,
}

/// What a batch costs apart from what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchCost {
    /// Processor time of the batch itself.
    pub start: Nanos,
    /// Longest section that nothing preempts, in front of it.
    pub blocking: Nanos,
}

impl BatchCost {
    /// Latest start of a batch whose items count as soon as they arrive: `min_j (d_j - C0 - B - sum of C_1 to C_j)`.
    /// Infinite where nothing waits.
    ///
    /// # Panics
    /// If the items are not in the order of their deadlines.
    pub fn latest_start_streamed(self, items: impl IntoIterator<Item = PendingReplica>) -> Span {
        let (mut done_after, mut latest) = (self.start + self.blocking, Span::Infinite);
        for item in ordered(items) {
            done_after = done_after + item.cost;
            latest = latest.min((item.deadline - done_after).into());
        }
        latest
    }

    /// Latest start of one frame with all items, none of which counts before the last byte is there: `d_1 - C0 - B - sum of all C`.
    /// Infinite where nothing waits.
    ///
    /// # Panics
    /// If the items are not in the order of their deadlines.
    pub fn latest_start_atomic(self, items: impl IntoIterator<Item = PendingReplica>) -> Span {
        let (mut first, mut work) = (Span::Infinite, self.start + self.blocking);
        for item in ordered(items) {
            first = first.min(item.deadline.into());
            work = work + item.cost;
        }
        first.less(work)
    }

    /// How many of the first items go into one frame that starts at `now`: as many as leave the first one in time, and one where not even that is.
    /// 0 where nothing waits.
    ///
    /// # Panics
    /// If the items are not in the order of their deadlines.
    pub fn atomic_prefix(self, now: Nanos, items: impl IntoIterator<Item = PendingReplica>) -> usize {
        let mut done_at = now + self.start + self.blocking;
        let mut first = None;
        let mut count = 0;
        for item in ordered(items) {
            done_at = done_at + item.cost;
            if count > 0 && done_at > *first.get_or_insert(item.deadline) {
                break;
            }
            first = first.or(Some(item.deadline));
            count += 1;
        }
        count
    }
}

fn ordered(items: impl IntoIterator<Item = PendingReplica>) -> impl Iterator<Item = PendingReplica> {
    let mut last = None;
    items.into_iter().inspect(move |item| {
        assert!(last <= Some(item.deadline), "replicas wait in the order of their deadlines");
        last = Some(item.deadline);
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COST: BatchCost = BatchCost { start: Nanos::from_micros(200), blocking: Nanos::ZERO };

    fn replicas(deadlines_us: &[i64]) -> Vec<PendingReplica> {
        let cost = Nanos::from_micros(100);
        deadlines_us.iter().map(|micros| PendingReplica { deadline: Nanos::from_micros(*micros), cost }).collect()
    }

    #[test]
    fn the_worked_example() {
        let vector: serde_json::Value = serde_json::from_str(include_str!("../../../../vectors/timing/batch.json")).expect("JSON");
        let us = |value: &serde_json::Value| Nanos::from_micros(value.as_i64().expect("a number"));
        let cost = BatchCost { start: us(&vector["batch_cost_us"]), blocking: us(&vector["blocking_us"]) };
        let deadlines = vector["deadlines_us"].as_array().expect("a list").iter();
        let items: Vec<PendingReplica> =
            deadlines.map(|deadline| PendingReplica { deadline: us(deadline), cost: us(&vector["replica_cost_us"]) }).collect();
        assert_eq!(cost.latest_start_streamed(items.clone()), us(&vector["streamed_us"]).into());
        assert!(us(&vector["naive_us"]) > us(&vector["streamed_us"]), "a naive timer is late");
        let together = vector["atomic"]["items"].as_u64().expect("a number") as usize;
        assert_eq!(cost.latest_start_atomic(items[..together].iter().copied()), us(&vector["atomic"]["latest_start_us"]).into());
        for prefix in vector["prefixes"].as_array().expect("a list") {
            let count = cost.atomic_prefix(us(&prefix["now_us"]), items.clone());
            assert_eq!(Some(count as u64), prefix["items"].as_u64(), "{prefix}");
        }
        let stalled = BatchCost { blocking: Nanos::from_micros(30), ..cost };
        assert_eq!(stalled.latest_start_streamed(items), (us(&vector["streamed_us"]) - Nanos::from_micros(30)).into());
    }

    #[test]
    fn nothing_waits_for_ever() {
        assert_eq!((COST.latest_start_streamed([]), COST.latest_start_atomic([])), (Span::Infinite, Span::Infinite));
        assert_eq!(COST.atomic_prefix(Nanos::ZERO, []), 0);
    }

    #[test]
    #[should_panic(expected = "order of their deadlines")]
    fn the_order_is_the_callers() {
        COST.latest_start_streamed(replicas(&[2, 1]));
    }

    fn waiting() -> impl Strategy<Value = (Vec<PendingReplica>, BatchCost)> {
        let item =
            (0i64..60, 0i64..9).prop_map(|(deadline, cost)| PendingReplica { deadline: Nanos::new(deadline), cost: Nanos::new(cost) });
        (prop::collection::vec(item, 1..8), 0i64..5, 0i64..5).prop_map(|(mut items, start, blocking)| {
            items.sort_by_key(|item| item.deadline);
            (items, BatchCost { start: Nanos::new(start), blocking: Nanos::new(blocking) })
        })
    }

    /// When each item is out, one behind the other, if the batch starts at `start` behind the longest blocking.
    fn ends(items: &[PendingReplica], cost: BatchCost, start: Nanos) -> Vec<Nanos> {
        let mut at = start + cost.blocking + cost.start;
        items
            .iter()
            .map(|item| {
                at = at + item.cost;
                at
            })
            .collect()
    }

    proptest! {
        #[test]
        fn a_streamed_batch_is_in_time_at_its_latest_start_and_late_one_nanosecond_after((items, cost) in waiting()) {
            let latest = cost.latest_start_streamed(items.clone()).finite().expect("something waits");
            let in_time = |start| ends(&items, cost, start).iter().zip(&items).all(|(end, item)| *end <= item.deadline);
            prop_assert!(in_time(latest));
            prop_assert!(!in_time(latest + Nanos::new(1)));
        }

        #[test]
        fn an_atomic_frame_is_in_time_at_its_latest_start_and_late_one_nanosecond_after((items, cost) in waiting()) {
            let latest = cost.latest_start_atomic(items.clone()).finite().expect("something waits");
            let in_time = |start| ends(&items, cost, start).last().is_some_and(|end| *end <= items[0].deadline);
            prop_assert!(in_time(latest));
            prop_assert!(!in_time(latest + Nanos::new(1)));
        }

        #[test]
        fn the_prefix_of_a_frame_is_the_largest_in_time((items, cost) in waiting(), now in 0i64..60) {
            let count = cost.atomic_prefix(Nanos::new(now), items.clone());
            let ends = ends(&items, cost, Nanos::new(now));
            let in_time = ends.iter().filter(|end| **end <= items[0].deadline).count();
            prop_assert_eq!(count, in_time.max(1));
        }
    }
}
