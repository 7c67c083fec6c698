//! A timer that rings at a time, to the microsecond: the timeout of epoll counts in milliseconds.

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use anyhow::Context;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// One timer on CLOCK_MONOTONIC.
pub struct Timer {
    timer: TimerFd,
    /// When it rings; `None`: it does not.
    at_ns: Option<u64>,
}

impl Timer {
    /// One that wakes this poll under this token.
    ///
    /// # Errors
    /// The system gives none.
    pub fn new(registry: &Registry, token: Token) -> anyhow::Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK).context("no timer")?;
        registry.register(&mut SourceFd(&timer.as_fd().as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { timer, at_ns: None })
    }

    /// Lets it ring at this time, or at once when that is over.
    ///
    /// # Errors
    /// The system refuses.
    pub fn ring_at(&mut self, at_ns: u64) -> anyhow::Result<()> {
        if self.at_ns.replace(at_ns) != Some(at_ns) {
            let spec = TimeSpec::from_duration(Duration::from_nanos(at_ns));
            self.timer.set(Expiration::OneShot(spec), TimerSetTimeFlags::TFD_TIMER_ABSTIME).context("the timer cannot be set")?;
        }
        Ok(())
    }
}
