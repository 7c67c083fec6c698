//! The turn's time: read once at its begin, so that everything in it happens at one time.

use std::time::{Duration, Instant, SystemTime};

use bodkin_arrowhead::utc::UtcTime;

use crate::{answer::DateText, control};

/// The turn's time in the forms it is needed in.
pub(super) struct Clock {
    start: Instant,
    pub now: Instant,
    pub utc: UtcTime,
    date: DateText,
    system: SystemTime,
    lap: Instant,
}

impl Clock {
    pub fn new() -> Self {
        let now = Instant::now();
        Self { start: now, now, utc: control::now(), date: DateText::default(), system: SystemTime::now(), lap: now }
    }

    pub fn read(&mut self) {
        self.now = Instant::now();
        self.lap = self.now;
        self.system = SystemTime::now();
        self.utc = UtcTime::from_system_time(self.system).expect("the clock shows a year from 1970 to 9999");
    }

    /// Moves on within a turn, where what is due depends on the time that the turn has taken.
    pub fn advance(&mut self) {
        self.now = Instant::now();
    }

    /// How long from now until a time of the broker's.
    pub fn until(&self, time: bodkin_broker::Instant) -> Duration {
        time.since(bodkin_broker::Instant::from_nanos(nanos(self.start.elapsed())))
    }

    /// Ends a stage and begins the next: one reading of the clock for both.
    pub fn lap(&mut self) -> Duration {
        let before = std::mem::replace(&mut self.lap, Instant::now());
        self.lap - before
    }

    pub fn date(&mut self) -> &str {
        self.date.at(self.system)
    }

    pub fn broker(&self) -> bodkin_broker::Instant {
        bodkin_broker::Instant::from_nanos(nanos(self.now - self.start))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
