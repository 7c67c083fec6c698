//! How many of what a scenario has.

use crate::options::{EventOptions, Scenario};

use super::manner::{Afflictions, Manner};

/// Events a second of scenario E: his 3000 events in ten seconds, which seven slow subscribers can take.
const SLOW_RATE_PER_S: f64 = 300.0;

/// How many of what.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Publishers, each with events of its own.
    pub publishers: u16,
    /// Subscribers, each of which hears all.
    pub subscribers: usize,
    /// Events of each publisher in a round.
    pub events_per_round: u64,
    /// Open loop.
    pub rate_per_s: Option<f64>,
    /// All subscribers pause so many ms after what they read.
    pub pause_ms: Option<u32>,
    /// Connections of each publisher.
    pub connections: u32,
}

impl Shape {
    /// The shape that the options ask for.
    pub fn of(options: &EventOptions, connections: u32) -> Self {
        let (publishers, subscribers, events_per_round) = Self::counts(options.scenario);
        let slow = options.scenario == Scenario::E;
        Self {
            publishers,
            subscribers,
            events_per_round,
            rate_per_s: options.rate.or(slow.then_some(SLOW_RATE_PER_S)),
            pause_ms: slow.then_some(options.pause_ms),
            connections,
        }
    }

    /// Publishers, subscribers, and events of each publisher in a round of a scenario.
    pub fn counts(scenario: Scenario) -> (u16, usize, u64) {
        match scenario {
            Scenario::A => (1, 1, 2000),
            Scenario::B1 => (1, 1, 9000),
            Scenario::B6 => (1, 6, 9000),
            Scenario::C => (10, 10, 1000),
            Scenario::D | Scenario::E => (1, 7, 3000),
        }
    }

    /// The manner of each subscriber.
    pub fn manners(self, afflictions: Afflictions) -> Vec<Manner> {
        match self.pause_ms {
            Some(pause_ms) => vec![Manner::Slow(pause_ms); self.subscribers],
            None => afflictions.manners(self.subscribers),
        }
    }

    /// In words.
    pub fn description(self) -> String {
        let Self { publishers, subscribers, events_per_round, .. } = self;
        let loop_ =
            self.rate_per_s.map_or_else(|| "closed loop".to_string(), |rate| format!("open loop at {rate} events/s of each publisher"));
        let slow = self.pause_ms.map(|pause_ms| format!(", subscribers pause {pause_ms} ms")).unwrap_or_default();
        format!("{publishers} publishers x {subscribers} subscribers x {events_per_round} events, {loop_}{slow}")
    }
}
