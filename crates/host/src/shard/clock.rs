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

    /// Ends a stage and begins the next: one reading of the clock for both.
    pub fn lap(&mut self) -> Duration {
        let before = std::mem::replace(&mut self.lap, Instant::now());
        self.lap - before
    }

    pub fn date(&mut self) -> &str {
        self.date.at(self.system)
    }

    pub fn broker(&self) -> bodkin_broker::Instant {
        bodkin_broker::Instant::from_nanos(u64::try_from((self.now - self.start).as_nanos()).unwrap_or(u64::MAX))
    }
}
