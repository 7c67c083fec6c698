//! Room for threads that are none of ours, beside real-time workers that would use all there is.
//!
//! The kernel lets real-time threads have most of a core's time (95 % as a rule) and then none for the rest of a second: every level stands still for 50 ms. So less urgent levels begin
//! nothing for the rest of a short window in which this process has used nearly as much; what waits meanwhile is replaced or shed, as under any overload.

use std::{
    num::NonZeroUsize,
    time::{Duration, Instant},
};

use nix::time::{ClockId, clock_gettime};

/// Windows are short against the kernel's second, so that nobody waits for long, and long against a round.
const WINDOW: Duration = Duration::from_millis(50);
/// Between two looks at what was used.
const LOOK_EVERY: Duration = Duration::from_micros(500);
/// What is left besides of what may be used, in per cent of a core: rounds that have begun go on.
const SPARE_PERCENT: u32 = 5;

/// What the process has used of a window.
#[derive(Debug)]
pub struct Throttle {
    /// That may be used of a window, by all threads.
    limit: Duration,
    /// Since when, and what was used before.
    window: (Instant, Duration),
    looked: Instant,
    is_over: bool,
}

impl Throttle {
    /// Of a process that has used so much before, on so many cores, of which its real-time threads may have so many per cent.
    pub fn new(now: Instant, used: Duration, cores: usize, percent: u32) -> Self {
        let percent = percent.saturating_sub(SPARE_PERCENT).max(1);
        let limit = WINDOW * u32::try_from(cores).unwrap_or(u32::MAX) * percent / 100;
        Self { limit, window: (now, used), looked: now, is_over: false }
    }

    /// Of this process, on this machine, whose real-time threads may use so many per cent of each core.
    pub fn begin(now: Instant, percent: u32) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self::new(now, used(), cores, percent)
    }

    /// Whether less urgent levels are to wait now; `used` is the process's time so far, which is asked for at intervals.
    pub fn holds(&mut self, now: Instant, used: impl FnOnce() -> Duration) -> bool {
        let (begin, before) = self.window;
        if now >= begin + WINDOW {
            self.window = (now, used());
            (self.looked, self.is_over) = (now, false);
        } else if !self.is_over && now >= self.looked + LOOK_EVERY {
            self.looked = now;
            self.is_over = used().saturating_sub(before) >= self.limit;
        }
        self.is_over
    }

    /// When it is to be asked again, if levels wait.
    pub fn ends(&self) -> Option<Instant> {
        self.is_over.then(|| self.window.0 + WINDOW)
    }
}

/// What all threads of this process have used.
pub fn used() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from).expect("every process has this clock")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_wait_for_the_rest_of_a_window_that_is_used_up() {
        let begin = Instant::now();
        let at = |us: u64| begin + Duration::from_micros(us);
        // Two cores, 90 % of each: 90 ms of 50.
        let mut throttle = Throttle::new(begin, Duration::ZERO, 2, 95);
        let mut holds = |us: u64, used_us: u64| throttle.holds(at(us), || Duration::from_micros(used_us));
        assert!(!holds(10_000, 20_000) && !holds(44_000, 88_000));
        assert!(!holds(44_100, 91_000), "nobody looks so soon");
        assert!(holds(45_500, 91_000) && holds(49_000, 0));
        assert!(!holds(50_000, 95_000), "a new window begins");
        assert!(!holds(90_000, 184_000) && holds(95_500, 185_000));
        assert_eq!(throttle.ends(), Some(at(100_000)));
    }

    #[test]
    fn a_process_has_used_something() {
        assert!(used() > Duration::ZERO);
    }
}
