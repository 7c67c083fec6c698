//! The turn's time: read once at its begin, so that everything in it happens at one time.

use std::time::{Duration, Instant, SystemTime};

use bodkin_arrowhead::utc::UtcTime;

use super::SYSTEM;
use crate::{
    answer::DateText,
    pair::boot_time,
    stage::{Stage, Stages},
};

/// Two clocks that were read within this time are taken as read at once: far less than any `clock_error`, far more than the reading takes.
const READ_WITHIN_NS: u64 = 5_000;
/// Ends of stages that are counted together.
const TURN_LAPS_MAX: usize = 4096;
/// Readings of which the shortest counts: a thread that is held up in the middle of one reads again.
const READINGS_MAX: usize = 4;

/// The clock that counts pauses, and UTC.
type Reading = (bodkin_broker::Instant, SystemTime);

/// Reads both clocks at once. A thread that is held up between the two would take what was created in its turn for so much older, and the next event for too early.
fn read_together(mut read: impl FnMut() -> Reading, mut boot: impl FnMut() -> bodkin_broker::Instant) -> Reading {
    let mut best: Option<(u64, Reading)> = None;
    for _ in 0..READINGS_MAX {
        let reading = read();
        let lasted_ns = boot().since(reading.0).as_nanos() as u64;
        if best.is_none_or(|(shortest_ns, _)| lasted_ns < shortest_ns) {
            best = Some((lasted_ns, reading));
        }
        if lasted_ns <= READ_WITHIN_NS {
            break;
        }
    }
    best.expect("it was read").1
}

/// Both clocks of this host.
pub(crate) fn boot_and_system_time() -> Reading {
    read_together(|| (boot_time(), SystemTime::now()), boot_time)
}

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
    laps: Vec<(Stage, Duration)>,
}

impl Clock {
    pub fn new() -> Self {
        let now = Instant::now();
        let (boot, system) = boot_and_system_time();
        Self {
            now,
            boot,
            began: boot,
            utc: utc(system),
            date: DateText::default(),
            system,
            lap: now,
            laps: Vec::with_capacity(TURN_LAPS_MAX),
        }
    }

    pub fn read(&mut self) {
        self.now = Instant::now();
        self.lap = self.now;
        (self.boot, self.system) = boot_and_system_time();
        (self.began, self.utc) = (self.boot, utc(self.system));
    }

    /// Moves the broker's time on within a turn, where what is due depends on the time that the turn has taken.
    pub fn advance(&mut self) {
        self.boot = boot_time();
    }

    /// How long from now until a time of the broker's.
    pub fn until(&self, time: bodkin_broker::Instant) -> Duration {
        time.since(boot_time())
    }

    /// Ends a stage and begins the next: one reading of the clock for both. It is counted behind the writes to the Backup and to subscribers: the histograms are
    /// many, and far from the processor when a turn has one event.
    pub fn lap(&mut self, stage: Stage, stages: &Stages) {
        let before = std::mem::replace(&mut self.lap, Instant::now());
        if self.laps.len() == TURN_LAPS_MAX {
            self.record_laps(stages);
        }
        self.laps.push((stage, self.lap - before));
    }

    /// Counts the stages that have ended.
    pub fn record_laps(&mut self, stages: &Stages) {
        self.laps.drain(..).for_each(|(stage, duration)| stages.record(SYSTEM, stage, duration));
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

    /// The same when the turn has begun: in front of what it has read.
    pub fn began(&self) -> bodkin_broker::Instant {
        self.began
    }

    /// What the broker's time was in nanoseconds since 1970 (UTC).
    pub fn utc_ns_of(&self, time: bodkin_broker::Instant) -> u64 {
        (self.utc.unix_nanos() + time.nanos()).saturating_sub(self.began.nanos())
    }
}

fn utc(system: SystemTime) -> UtcTime {
    UtcTime::from_system_time(system).expect("the clock shows a year from 1970 to 9999")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Reads clocks that go on by these steps, each in front of a reading of one clock; gives how far UTC is ahead of what it was read with.
    fn ahead_ns(steps: &[u64]) -> u64 {
        let (now_ns, mut steps) = (Cell::new(0), steps.iter());
        let mut tick = || {
            now_ns.set(now_ns.get() + steps.next().expect("no more readings than these"));
            now_ns.get()
        };
        let mut ticks = || (tick(), tick(), tick());
        let third = Cell::new(0);
        let read = || {
            let (boot, system, behind) = ticks();
            third.set(behind);
            (bodkin_broker::Instant::from_nanos(boot), SystemTime::UNIX_EPOCH + Duration::from_nanos(system))
        };
        let (boot, system) = read_together(read, || bodkin_broker::Instant::from_nanos(third.get()));
        system.duration_since(SystemTime::UNIX_EPOCH).expect("it is later").as_nanos() as u64 - boot.nanos()
    }

    #[test]
    fn a_thread_that_is_held_up_between_its_clocks_reads_them_again() {
        let held_up_ns = 3_000_000;
        let rows: &[(&str, &[u64], u64)] = &[
            ("nothing happens", &[50, 40, 30], 40),
            ("between the clocks", &[50, held_up_ns, 30, 50, 40, 30], 40),
            ("behind them", &[50, 40, held_up_ns, 50, 41, 30], 41),
            ("every time: the shortest counts", &[50, 9_000, 30, 50, 7_000, 30, 50, 8_000, 30, 50, held_up_ns, 30], 7_000),
        ];
        for (what, steps, expect) in rows {
            assert_eq!(ahead_ns(steps), *expect, "{what}");
        }
    }
}
