//! The turn's time: read once at its begin, so that everything in it happens at one time.

use std::time::{Duration, Instant, SystemTime};

use bodkin_arrowhead::utc::UtcTime;

use crate::{answer::DateText, control};

/// The turn's time in the forms it is needed in.
pub(super) struct Clock {
    start: Instant,
    /// When the turn has begun, for which `utc` is.
    began: Instant,
    pub now: Instant,
    pub utc: UtcTime,
    date: DateText,
    system: SystemTime,
    lap: Instant,
}

impl Clock {
    pub fn new() -> Self {
        let now = Instant::now();
        Self { start: now, began: now, now, utc: control::now(), date: DateText::default(), system: SystemTime::now(), lap: now }
    }

    pub fn read(&mut self) {
        self.now = Instant::now();
        (self.began, self.lap) = (self.now, self.now);
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

    /// The broker's time of a UTC time, in nanoseconds since 1970, by the readings that the turn has begun with.
    pub fn local_of_utc_ns(&self, utc_ns: u64) -> bodkin_broker::Instant {
        let (began, now_ns) = (bodkin_broker::Instant::from_nanos(nanos(self.began - self.start)), self.utc.unix_nanos());
        if utc_ns <= now_ns { began.minus_nanos(now_ns - utc_ns) } else { began.plus_nanos(utc_ns - now_ns) }
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
