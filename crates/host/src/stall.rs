//! The machine's stalls: by how much a thread that wants to go on at a time goes on later.
//!
//! Every deadline is admitted with the longest stall that the platform states (`blocking`). Whether that is so is measured after the start, and watched
//! from then on; while it is not, the deadlines' guarantee is suspended, and told.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde::Serialize;

/// How long stalls are measured before anything is said about them.
const MEASURE: Duration = Duration::from_secs(3);
/// Between two looks while they are measured.
const MEASURE_PERIOD: Duration = Duration::from_millis(1);
/// Between two looks from then on: a hundred a second cost next to nothing.
const WATCH_PERIOD: Duration = Duration::from_millis(10);
/// A stall counts for so long, in steps of [`STEP`].
const REMEMBERED: usize = 60;
const STEP: Duration = Duration::from_secs(1);

/// Whether deadlines are kept as far as the machine is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Guarantee {
    /// Stalls are being measured.
    Pending,
    /// Nobody has stated how long the machine may stall.
    Unstated,
    /// No stall of the last minute was longer than what is stated.
    Held,
    /// One was.
    Suspended,
}

/// What is known of stalls, written by the watching thread.
#[derive(Debug, Default)]
pub struct Stalls {
    is_measured: AtomicBool,
    worst_ns: AtomicU64,
}

impl Stalls {
    /// The longest stall of the last minute, in nanoseconds; `None` while it is being measured.
    pub fn worst_ns(&self) -> Option<u64> {
        self.is_measured.load(Acquire).then(|| self.worst_ns.load(Relaxed))
    }

    /// What that means for deadlines that were admitted with stalls of at most `blocking_ns`.
    pub fn guarantee(&self, blocking_ns: u64) -> Guarantee {
        match self.worst_ns() {
            _ if blocking_ns == 0 => Guarantee::Unstated,
            None => Guarantee::Pending,
            Some(worst_ns) if worst_ns > blocking_ns => Guarantee::Suspended,
            Some(_) => Guarantee::Held,
        }
    }
}

/// The longest stall of each of the last seconds.
#[derive(Debug, Default)]
struct Memory {
    /// The newest last.
    steps: VecDeque<u64>,
    begun: Duration,
}

impl Memory {
    /// Takes a stall at a time since the start; gives the longest one that is remembered.
    fn take(&mut self, at: Duration, stall: Duration) -> u64 {
        let passed = at.saturating_sub(self.begun).as_secs() / STEP.as_secs();
        for _ in 0..passed.min(REMEMBERED as u64) {
            self.steps.push_back(0);
        }
        self.begun += STEP * u32::try_from(passed).unwrap_or(u32::MAX);
        if self.steps.is_empty() {
            self.steps.push_back(0);
        }
        self.steps.drain(..self.steps.len().saturating_sub(REMEMBERED));
        let stall_ns = u64::try_from(stall.as_nanos()).unwrap_or(u64::MAX);
        let newest = self.steps.back_mut().expect("there is a step");
        *newest = stall_ns.max(*newest);
        self.steps.iter().copied().max().unwrap_or_default()
    }
}

/// The thread that watches; it ends when this is dropped.
pub struct StallWatch {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl StallWatch {
    /// Begins to measure, for deadlines that were admitted with stalls of at most `blocking_ns`.
    pub fn start(stalls: Arc<Stalls>, blocking_ns: u64) -> io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let ended = ends.clone();
        let thread = std::thread::Builder::new().name("stall-watch".into()).spawn(move || watch(&stalls, blocking_ns, &ended))?;
        Ok(Self { ends, thread: Some(thread) })
    }
}

impl Drop for StallWatch {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
    }
}

fn watch(stalls: &Stalls, blocking_ns: u64, ends: &AtomicBool) {
    let (start, mut memory, mut told) = (Instant::now(), Memory::default(), Guarantee::Pending);
    while !ends.load(Relaxed) {
        let is_measured = start.elapsed() >= MEASURE;
        let period = if is_measured { WATCH_PERIOD } else { MEASURE_PERIOD };
        let before = Instant::now();
        std::thread::sleep(period);
        let stall = before.elapsed().saturating_sub(period);
        stalls.worst_ns.store(memory.take(start.elapsed(), stall), Relaxed);
        stalls.is_measured.store(is_measured, Release);
        let guarantee = stalls.guarantee(blocking_ns);
        if guarantee != std::mem::replace(&mut told, guarantee) {
            tell(guarantee, stalls.worst_ns.load(Relaxed), blocking_ns);
        }
    }
}

fn tell(guarantee: Guarantee, worst_ns: u64, blocking_ns: u64) {
    let (worst_us, blocking_us) = (worst_ns / 1_000, blocking_ns / 1_000);
    match guarantee {
        Guarantee::Suspended => {
            tracing::warn!(worst_us, blocking_us, "guarantee suspended: the machine stalls for longer than platform.blocking states");
        }
        Guarantee::Held => tracing::info!(worst_us, blocking_us, "deadlines are guaranteed: no stall is longer than what is stated"),
        Guarantee::Pending | Guarantee::Unstated => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_counts_for_a_minute() {
        let mut memory = Memory::default();
        let script: [(u64, u64, u64); 8] =
            [(0, 5, 5), (500, 9, 9), (999, 1, 9), (1_000, 3, 9), (59_999, 2, 9), (60_000, 2, 3), (61_000, 0, 2), (10_000_000, 1, 1)];
        for (at_ms, stall_ns, worst_ns) in script {
            assert_eq!(memory.take(Duration::from_millis(at_ms), Duration::from_nanos(stall_ns)), worst_ns, "{at_ms}");
            assert!(memory.steps.len() <= REMEMBERED);
        }
    }

    #[test]
    fn a_guarantee_is_pending_until_stalls_are_measured_and_suspended_by_a_longer_one() {
        let stalls = Stalls::default();
        assert_eq!([0, 10].map(|blocking_ns| stalls.guarantee(blocking_ns)), [Guarantee::Unstated, Guarantee::Pending]);
        stalls.worst_ns.store(10, Relaxed);
        stalls.is_measured.store(true, Release);
        let guarantees = [0, 9, 10].map(|blocking_ns| stalls.guarantee(blocking_ns));
        assert_eq!(guarantees, [Guarantee::Unstated, Guarantee::Suspended, Guarantee::Held]);
    }
}
