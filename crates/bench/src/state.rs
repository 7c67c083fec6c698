//! The named state from which a run starts.

use std::fmt;
use std::str::FromStr;

use crate::data::{self, Data};

/// What a cloud holds before a run: `empty`, or `data:SEED:SERVICES` of [`Data`], with the rules for them where the load
/// asks whether it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Seed of the services, those that a load adds included.
    pub seed: u64,
    /// How many there are before.
    pub services: u32,
}

impl State {
    /// The seed where none is named.
    pub const SEED: u64 = 1;

    /// A seed that no earlier run had: a foreign cloud refuses what it was given before.
    pub fn fresh_seed() -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// The services and those that come after them.
    pub fn data(self) -> Data {
        Data::of_seed(self.seed)
    }
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.services {
            0 => write!(out, "empty (what comes is data:{})", self.seed),
            services => write!(out, "data:{}:{services}", self.seed),
        }
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "empty" {
            return Ok(Self { seed: Self::SEED, services: 0 });
        }
        let wrong = || format!("`{text}` is no state: empty, data:SEED or data:SEED:SERVICES");
        let mut parts = text.strip_prefix("data:").ok_or_else(wrong)?.split(':');
        let seed = parts.next().and_then(|seed| seed.parse().ok()).ok_or_else(wrong)?;
        let services = match parts.next() {
            None => data::SERVICES,
            Some(services) => services.parse().ok().filter(|services| (1..=10_000_000).contains(services)).ok_or_else(wrong)?,
        };
        if parts.next().is_some() {
            return Err(wrong());
        }
        Ok(Self { seed, services })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_is_told() {
        for (text, seed, services) in [("data:7:300", 7, 300), ("data:0:1", 0, 1)] {
            let state: State = text.parse().unwrap();
            assert_eq!((state, state.to_string().as_str()), (State { seed, services }, text));
        }
        assert_eq!("data:9".parse(), Ok(State { seed: 9, services: 10_000 }));
        assert_eq!("empty".parse(), Ok(State { seed: 1, services: 0 }));
        for text in ["", "full", "data", "data:", "data:x", "data:1:0", "data:1:2:3", "data:-1"] {
            assert!(text.parse::<State>().is_err(), "{text}");
        }
    }
}
