//! True time, which no process sees, and the clocks that processes see instead.
//!
//! A clock runs too fast or too slow by a constant drift and starts anywhere; a host's idea of UTC is off by a constant error.
//! Both are bounded by what the platform declares, or deliberately are not.

use bodkin_broker::Instant;

/// A microsecond in nanoseconds.
pub const MICROSECOND_NS: u64 = 1_000;
/// A millisecond in nanoseconds.
pub const MILLISECOND_NS: u64 = 1_000_000;
/// A second in nanoseconds.
pub const SECOND_NS: u64 = 1_000_000_000;

/// UTC at the start of every run: some day of 2026. Only differences matter.
const UTC_AT_START_NS: u64 = 1_790_000_000 * SECOND_NS;

/// True time: nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// A time that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// Later by so many nanoseconds.
    pub fn plus(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }

    /// Earlier by so many nanoseconds; not before the start.
    pub fn minus(self, ns: u64) -> Self {
        Self(self.0.saturating_sub(ns))
    }

    /// Nanoseconds since `earlier`; 0 if that is later.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// What one host's clocks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Clock {
    /// What the monotonic clock shows at the start of the run, in nanoseconds.
    pub offset_ns: u64,
    /// How much too fast it is, in parts of 10^9.
    pub drift_ppb: i64,
    /// How far ahead of UTC the host believes to be, in nanoseconds.
    pub utc_error_ns: i64,
}

impl Clock {
    /// A clock without error.
    #[cfg(test)]
    pub const TRUE: Self = Self { offset_ns: 0, drift_ppb: 0, utc_error_ns: 0 };

    /// What the monotonic clock (that counts pauses) shows.
    pub fn reading(&self, time: Time) -> Instant {
        Instant::from_nanos(self.reading_ns(time))
    }

    fn reading_ns(&self, time: Time) -> u64 {
        let drift_ns = i128::from(time.0) * i128::from(self.drift_ppb) / i128::from(SECOND_NS);
        let reading = i128::from(self.offset_ns) + i128::from(time.0) + drift_ns;
        u64::try_from(reading).expect("a clock shows no time before its start")
    }

    /// The earliest true time at which the clock shows `reading` or more.
    pub fn time_of(&self, reading: Instant) -> Time {
        let reading_ns = reading.nanos();
        let elapsed = i128::from(reading_ns.saturating_sub(self.offset_ns));
        let guess = elapsed * i128::from(SECOND_NS) / i128::from(SECOND_NS as i64 + self.drift_ppb);
        let mut time = u64::try_from(guess).unwrap_or(u64::MAX).saturating_sub(2);
        // The division rounds: a few steps of a nanosecond remain.
        while self.reading_ns(Time(time)) < reading_ns {
            time += 1;
        }
        Time(time)
    }

    /// What the host takes for UTC, in nanoseconds.
    pub fn utc_ns(&self, time: Time) -> u64 {
        (UTC_AT_START_NS + time.0).saturating_add_signed(self.utc_error_ns)
    }

    /// Sets the host's UTC ahead by so much; its monotonic clock goes on as before.
    pub fn set_utc(&mut self, step_ns: i64) {
        self.utc_error_ns += step_ns;
    }

    /// What the host adds to its monotonic clock's reading to get UTC, in nanoseconds.
    pub fn utc_minus_local_ns(&self, time: Time) -> i128 {
        i128::from(self.utc_ns(time)) - i128::from(self.reading_ns(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_comes_back_as_the_earliest_time_that_shows_it() {
        for drift_ppb in [-200_000, -1, 0, 1, 77_777, 200_000] {
            let clock = Clock { offset_ns: 5_000_000_000, drift_ppb, utc_error_ns: 0 };
            for time in [0, 1, 999, 123_456_789, 86_400 * SECOND_NS] {
                let reading = clock.reading(Time(time));
                let found = clock.time_of(reading);
                assert!(found <= Time(time), "{drift_ppb} ppb at {time}");
                assert!(clock.reading(found) >= reading, "{drift_ppb} ppb at {time}");
                assert!(found.0 == 0 || clock.reading(found.minus(1)) < reading, "{drift_ppb} ppb at {time}");
            }
        }
    }

    #[test]
    fn utc_is_the_reading_and_the_difference() {
        let clock = Clock { offset_ns: 77, drift_ppb: 100_000, utc_error_ns: -40 };
        let time = Time(3 * SECOND_NS);
        let reading = i128::from(clock.reading(time).nanos());
        assert_eq!(reading + clock.utc_minus_local_ns(time), i128::from(clock.utc_ns(time)));
        assert_eq!(Clock::TRUE.utc_ns(time) - clock.utc_ns(time), 40);
    }
}
