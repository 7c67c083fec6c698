//! Which relays have shown in a test that they carry everything to another cloud.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use bodkin_arrowhead::record::CloudId;

use crate::relay::RelayPlace;

/// Tests that are remembered, one of each cloud and relay; the oldest goes for the next.
const TESTS_MAX: usize = 1_024;
/// For how long a test says something of its relay.
const TEST_LIFE: Duration = Duration::from_secs(3600);

/// The last test of each relay with each cloud.
#[derive(Debug, Default)]
pub struct RelayTests {
    last: Mutex<BTreeMap<(CloudId, RelayPlace), (Instant, bool)>>,
}

impl RelayTests {
    /// Takes note of a test that has ended at `now`, of which so many messages were lost.
    pub fn note(&self, cloud: CloudId, relay: RelayPlace, lost: u32, now: Instant) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.insert((cloud, relay), (now, lost == 0));
        if last.len() > TESTS_MAX {
            let oldest = last.iter().min_by_key(|(_, (at, _))| *at).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| last.remove(&oldest));
        }
    }

    /// Whether the last test with the cloud has lost nothing, and is no older than an hour.
    pub fn have_verified(&self, cloud: CloudId, relay: &RelayPlace, now: Instant) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.get(&(cloud, relay.clone())).is_some_and(|(at, has_passed)| *has_passed && now.duration_since(*at) <= TEST_LIFE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(port: u16) -> RelayPlace {
        RelayPlace { address: "relay".into(), port, secure: true, authentication_info: None }
    }

    #[test]
    fn a_relay_is_verified_by_its_last_test_for_an_hour() {
        let (tests, begin) = (RelayTests::default(), Instant::now());
        let verified = |cloud, port, after| tests.have_verified(CloudId(cloud), &place(port), begin + after);
        tests.note(CloudId(1), place(1), 0, begin);
        tests.note(CloudId(1), place(2), 1, begin);
        assert!(verified(1, 1, TEST_LIFE) && !verified(1, 1, TEST_LIFE + Duration::from_secs(1)));
        assert!(!verified(1, 2, Duration::ZERO) && !verified(2, 1, Duration::ZERO) && !verified(1, 3, Duration::ZERO));
        tests.note(CloudId(1), place(1), 2, begin);
        assert!(!verified(1, 1, Duration::ZERO), "the last one counts");
    }

    #[test]
    fn the_oldest_test_goes() {
        let (tests, begin) = (RelayTests::default(), Instant::now());
        for cloud in 0..=TESTS_MAX as i64 {
            tests.note(CloudId(cloud), place(1), 0, begin + Duration::from_millis(cloud as u64));
        }
        let verified = |cloud| tests.have_verified(CloudId(cloud), &place(1), begin + Duration::from_secs(10));
        assert!(!verified(0) && verified(1) && verified(TESTS_MAX as i64));
    }
}
