//! How long the way to a subscriber in the cloud takes: it swings, and now and then it stands still.
//!
//! In the place of the 24 hours of Wang 2019, section 3.6: what it has there in a day comes here within seconds.

use std::collections::VecDeque;

const MS: u64 = 1_000_000;
/// The way takes so long in the middle, one way: that of the paper's examples.
const MIDDLE_NS: u64 = 20 * MS;
/// It gets longer and shorter by so much.
const SWING_NS: u64 = 15 * MS;
/// From one shortest to the next.
const SWING_PERIOD_NS: u64 = 4_000 * MS;
/// Between two times at which nothing comes through.
const STALL_EVERY_NS: u64 = 10_000 * MS;
/// So long: longer than D of category 5.
const STALL_NS: u64 = 1_000 * MS;
/// The first one begins so long after the start.
const FIRST_STALL_NS: u64 = 6_000 * MS;

/// In words.
pub fn description() -> String {
    format!(
        "{} to {} ms one way, swinging once in {} s, and every {} s nothing for {} ms",
        (MIDDLE_NS - SWING_NS) / MS,
        (MIDDLE_NS + SWING_NS) / MS,
        SWING_PERIOD_NS / MS / 1000,
        STALL_EVERY_NS / MS / 1000,
        STALL_NS / MS
    )
}

/// When what is sent so long after the start arrives, in ns after the start.
pub fn arrival_ns(sent_ns: u64) -> u64 {
    let arrival_ns = sent_ns + way_ns(sent_ns);
    let Some(since_first_ns) = arrival_ns.checked_sub(FIRST_STALL_NS) else { return arrival_ns };
    let into_ns = since_first_ns % STALL_EVERY_NS;
    if into_ns < STALL_NS { arrival_ns + STALL_NS - into_ns } else { arrival_ns }
}

/// A triangle between the shortest and the longest way.
fn way_ns(sent_ns: u64) -> u64 {
    let into_ns = sent_ns % SWING_PERIOD_NS;
    let rise_ns = into_ns.min(SWING_PERIOD_NS - into_ns);
    MIDDLE_NS - SWING_NS + 2 * SWING_NS * rise_ns / (SWING_PERIOD_NS / 2)
}

/// Bytes on their way, in order: what is sent later arrives no earlier.
#[derive(Debug, Default)]
pub struct OnTheWay {
    /// When each piece arrives, and how long it is.
    pieces: VecDeque<(u64, usize)>,
    bytes: VecDeque<u8>,
}

impl OnTheWay {
    /// Sends bytes.
    pub fn send(&mut self, now_ns: u64, bytes: &[u8]) {
        let earliest_ns = self.pieces.back().map_or(0, |(at_ns, _)| *at_ns);
        self.pieces.push_back((arrival_ns(now_ns).max(earliest_ns), bytes.len()));
        self.bytes.extend(bytes);
    }

    /// When the next ones arrive.
    pub fn next_ns(&self) -> Option<u64> {
        self.pieces.front().map(|(at_ns, _)| *at_ns)
    }

    /// How many there are.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Gives what has arrived to `take`, which says how much it took, as long as it takes everything.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn arrive<E>(&mut self, now_ns: u64, mut take: impl FnMut(&[u8]) -> Result<usize, E>) -> Result<(), E> {
        while let Some((_, length)) = self.pieces.front_mut().filter(|(at_ns, _)| *at_ns <= now_ns) {
            let (front, _) = self.bytes.as_slices();
            let offered = (*length).min(front.len());
            let taken = take(&front[..offered])?;
            self.bytes.drain(..taken);
            *length -= taken;
            if *length == 0 {
                self.pieces.pop_front();
            }
            if taken < offered {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_swings_and_stands_still_now_and_then() {
        let way_ms = |sent_ms: u64| (arrival_ns(sent_ms * MS) - sent_ms * MS) / MS;
        let expected =
            [(0, 5), (1_000, 20), (2_000, 35), (3_000, 20), (4_000, 5), (5_990, 1_010), (6_500, 500), (6_999, 20), (16_000, 1_000)];
        for (sent_ms, way) in expected {
            assert_eq!(way_ms(sent_ms), way, "{sent_ms}");
        }
        assert!(description().starts_with("5 to 35 ms one way"), "{}", description());
    }

    #[test]
    fn bytes_arrive_in_order_when_it_is_time_and_as_many_as_are_taken() {
        let mut way = OnTheWay::default();
        for (at_ms, bytes) in [(5_990, "ab"), (6_400, "cd"), (8_000, "ef")] {
            way.send(at_ms * MS, bytes.as_bytes());
        }
        let mut arrived = |now_ms: u64, most: usize| {
            let mut all = Vec::new();
            let take = |bytes: &[u8]| {
                let taken = bytes.len().min(most - all.len());
                all.extend_from_slice(&bytes[..taken]);
                Ok::<_, ()>(taken)
            };
            way.arrive(now_ms * MS, take).unwrap();
            (String::from_utf8(all).unwrap(), way.next_ns().map(|at_ns| at_ns / MS), way.length())
        };
        assert_eq!(arrived(6_999, 10), (String::new(), Some(7_000), 6));
        assert_eq!(arrived(7_000, 3), ("abc".into(), Some(7_000), 3));
        assert_eq!(arrived(7_001, 10), ("d".into(), Some(8_005), 2));
        assert_eq!(arrived(9_000, 10), ("ef".into(), None, 0));
    }
}
