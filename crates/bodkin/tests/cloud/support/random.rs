//! A small reproducible source of randomness whose seed is printed, so that a failing run can be repeated.

use std::time::{SystemTime, UNIX_EPOCH};

/// The environment variable that repeats a run: a decimal seed.
const SEED_VARIABLE: &str = "BODKIN_TEST_SEED";

/// SplitMix64.
pub struct Random(u64);

impl Random {
    /// Seeded by `BODKIN_TEST_SEED` or else by the clock; prints the seed under `what`.
    pub fn from_environment(what: &str) -> Self {
        let seed = match std::env::var(SEED_VARIABLE) {
            Ok(text) => text.parse().expect("BODKIN_TEST_SEED is a decimal number"),
            Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_nanos() as u64,
        };
        println!("{what}: {SEED_VARIABLE}={seed}");
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `from..to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from)
    }

    /// Puts `items` in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.between(0, last as u64 + 1) as usize);
        }
    }
}
