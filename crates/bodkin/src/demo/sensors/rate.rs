//! Counters that grow, as rates.

use std::{collections::BTreeMap, time::Instant};

use super::Reading;

const BYTES_PER_KIBIBYTE: f64 = 1024.0;

/// Turns byte counters into KiB per second since the call before.
#[derive(Debug, Default)]
pub struct Rate {
    before: Option<(Instant, BTreeMap<String, u64>)>,
}

impl Rate {
    /// The sum and each counter's rate. The first call, and a counter that is new or was reset, count as no change.
    pub fn kibibytes_per_second(&mut self, now: Instant, counters_bytes: BTreeMap<String, u64>) -> Reading {
        let before = self.before.as_ref();
        let elapsed_s = before.map_or(0.0, |(at, _)| now.saturating_duration_since(*at).as_secs_f64());
        let grown =
            |name: &String, count: u64| before.and_then(|(_, counters)| counters.get(name)).map_or(0, |old| count.saturating_sub(*old));
        let rate = |bytes: u64| if elapsed_s > 0.0 { bytes as f64 / BYTES_PER_KIBIBYTE / elapsed_s } else { 0.0 };
        let parts: BTreeMap<String, f64> = counters_bytes.iter().map(|(name, count)| (name.clone(), rate(grown(name, *count)))).collect();
        self.before = Some((now, counters_bytes));
        Reading { value: parts.values().sum(), parts }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn counters_become_rates_and_a_reset_is_no_traffic() {
        let counters = |sent, received| BTreeMap::from([("sent".to_owned(), sent), ("received".to_owned(), received)]);
        let (mut rate, start) = (Rate::default(), Instant::now());
        assert_eq!(rate.kibibytes_per_second(start, counters(5000, 7000)).value, 0.0);
        let reading = rate.kibibytes_per_second(start + Duration::from_millis(500), counters(5000 + 1024, 7000 + 2048));
        assert_eq!((reading.value, reading.parts["sent"], reading.parts["received"]), (6.0, 2.0, 4.0));
        assert_eq!(rate.kibibytes_per_second(start + Duration::from_secs(1), counters(10, 20)).value, 0.0);
        assert_eq!(rate.kibibytes_per_second(start + Duration::from_secs(1), counters(10, 21)).value, 0.0);
    }
}
