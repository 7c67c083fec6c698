//! The turn's time: read once at its begin, so that everything in it happens at one time.

use std::time::{Duration, Instant, SystemTime};

use bodkin_arrowhead::utc::UtcTime;

use crate::{answer::DateText, control, pair::boot_time};

/// The turn's time in the forms it is needed in.
pub(super) struct Clock {
    /// The broker's time when the turn has begun, for which `utc` is.
    began: bodkin_broker::Instant,
    pub now: Instant,
    /// By the clock that counts pauses: a machine that was stopped must not believe its lease, nor its deadlines.
    boot: bodkin_broker::Instant,
    pub utc: UtcTime,
    date: DateText,
    system: SystemTime,
    lap: Instant,
}

impl Clock {
    pub fn new() -> Self {
        let now = Instant::now();
        let boot = boot_time();
        Self { now, boot, began: boot, utc: control::now(), date: DateText::default(), system: SystemTime::now(), lap: now }
    }

    pub fn read(&mut self) {
        self.now = Instant::now();
        (self.boot, self.lap) = (boot_time(), self.now);
        self.began = self.boot;
        self.system = SystemTime::now();
        self.utc = UtcTime::from_system_time(self.system).expect("the clock shows a year from 1970 to 9999");
    }

    /// Moves on within a turn, where what is due depends on the time that the turn has taken.
    pub fn advance(&mut self) {
        self.now = Instant::now();
        self.boot = boot_time();
    }

    /// How long from now until a time of the broker's.
    pub fn until(&self, time: bodkin_broker::Instant) -> Duration {
        time.since(boot_time())
    }

    /// Ends a stage and begins the next: one reading of the clock for both.
    pub fn lap(&mut self) -> Duration {
        let before = std::mem::replace(&mut self.lap, Instant::now());
        self.lap - before
    }

    /// The broker's time of a UTC time, in nanoseconds since 1970, by the readings that the turn has begun with.
    pub fn local_of_utc_ns(&self, utc_ns: u64) -> bodkin_broker::Instant {
        let (began, now_ns) = (self.began, self.utc.unix_nanos());
        if utc_ns <= now_ns { began.minus_nanos(now_ns - utc_ns) } else { began.plus_nanos(utc_ns - now_ns) }
    }

    pub fn date(&mut self) -> &str {
        self.date.at(self.system)
    }

    pub fn broker(&self) -> bodkin_broker::Instant {
        self.boot
    }

    /// What the broker's time was in nanoseconds since 1970 (UTC).
    pub fn utc_ns_of(&self, time: bodkin_broker::Instant) -> u64 {
        (self.utc.unix_nanos() + time.nanos()).saturating_sub(self.began.nanos())
    }
}
