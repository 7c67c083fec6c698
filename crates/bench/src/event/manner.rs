//! How a subscriber behaves: most take what comes at once, some are slow, and some are there and take nothing.

use serde::{Deserialize, Serialize};

/// How one subscriber takes its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manner {
    /// Takes what comes as it comes.
    Prompt,
    /// Takes a little and pauses so many ms.
    Slow(u32),
    /// Keeps its connection and takes nothing.
    Dead,
}

/// What share of the subscribers is slow or dead.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Afflictions {
    /// Percent that take nothing.
    pub dead_percent: f64,
    /// Percent that pause.
    pub slow_percent: f64,
    /// How long they pause, in ms.
    pub pause_ms: u32,
}

impl Afflictions {
    /// Nobody is slow or dead.
    pub const NONE: Self = Self { dead_percent: 0.0, slow_percent: 0.0, pause_ms: 0 };

    /// The manner of each of so many subscribers: the dead first, then the slow. A share above 0 is at least one of them.
    pub fn manners(self, subscribers: usize) -> Vec<Manner> {
        let count = |percent: f64| (subscribers as f64 * percent / 100.0).round().max(f64::from(u8::from(percent > 0.0))) as usize;
        let dead = vec![Manner::Dead; count(self.dead_percent)];
        let slow = vec![Manner::Slow(self.pause_ms); count(self.slow_percent)];
        let mut manners: Vec<Manner> = dead.into_iter().chain(slow).take(subscribers).collect();
        manners.resize(subscribers, Manner::Prompt);
        manners
    }

    /// In words.
    pub fn description(self) -> String {
        format!("{} % dead, {} % slow (pause {} ms)", self.dead_percent, self.slow_percent, self.pause_ms)
    }
}

impl Manner {
    /// Which of the subscribers are measured: the prompt ones, or where there are none the slow ones.
    pub fn measured(manners: &[Self]) -> Vec<bool> {
        let prompt = manners.contains(&Self::Prompt);
        manners.iter().map(|manner| if prompt { *manner == Self::Prompt } else { *manner != Self::Dead }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_become_subscribers() {
        let of = |dead_percent, slow_percent, subscribers| Afflictions { dead_percent, slow_percent, pause_ms: 5 }.manners(subscribers);
        let count = |manners: &[Manner], manner| manners.iter().filter(|other| **other == manner).count();
        for (subscribers, dead, slow) in [(10, 1, 1), (100, 10, 10), (3, 1, 1), (1, 1, 0)] {
            let manners = of(10.0, 10.0, subscribers);
            assert_eq!((manners.len(), count(&manners, Manner::Dead), count(&manners, Manner::Slow(5))), (subscribers, dead, slow));
        }
        assert_eq!(Afflictions::NONE.manners(2), [Manner::Prompt; 2]);
    }

    #[test]
    fn the_prompt_ones_are_measured_where_there_are_any() {
        use Manner::*;
        assert_eq!(Manner::measured(&[Dead, Slow(1), Prompt]), [false, false, true]);
        assert_eq!(Manner::measured(&[Slow(1), Slow(1)]), [true, true]);
    }
}
