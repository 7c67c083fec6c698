//! Stalls: by how much a thread that wants to go on at a time goes on later, and for how long a shard's turn keeps everything else waiting.
//!
//! Every deadline is admitted with the longest section that nothing preempts, as the platform states it (`blocking`). Whether that is so is measured after
//! the start, and watched from then on; while it is not, the deadlines' guarantee is suspended, and told.

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

use bodkin_broker::wire;
use serde::Serialize;

use crate::realtime::{Rank, Realtime};

/// How long stalls are measured, from the decision on how threads are scheduled, before anything is said about them.
const MEASURE: Duration = Duration::from_millis(1_500);
/// Between two looks while they are measured.
const MEASURE_PERIOD: Duration = Duration::from_millis(1);
/// Between two looks from then on: a hundred a second cost next to nothing.
const WATCH_PERIOD: Duration = Duration::from_millis(10);
/// A stall counts for so long, in steps of [`STEP`].
const REMEMBERED: usize = 60;
const STEP: Duration = Duration::from_secs(1);

/// Whether what is promised can be relied on: of deadlines as far as the machine is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Guarantee {
    /// Stalls are being measured.
    Pending,
    /// Nobody has stated how long the machine may stall; of losses: there is no pair that could bound them.
    Unstated,
    /// No stall of the last minute was longer than what is stated; the Backup may lead.
    Held,
    /// One was; it may not, or is not there.
    Suspended,
}

impl From<Guarantee> for wire::Guarantee {
    fn from(guarantee: Guarantee) -> Self {
        match guarantee {
            Guarantee::Pending => Self::Pending,
            Guarantee::Unstated => Self::Unstated,
            Guarantee::Held => Self::Held,
            Guarantee::Suspended => Self::Suspended,
        }
    }
}

/// What deadlines were admitted with, in nanoseconds; 0: nobody has stated it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assumed {
    /// The longest section that nothing preempts: the machine's worst stall.
    pub blocking_ns: u64,
    /// The largest difference between the clocks of a publisher and this host.
    pub clock_error_ns: u64,
}

/// What is known of stalls, written by the watching thread, and of other hosts' clocks, written by the shard.
#[derive(Debug)]
pub struct Stalls {
    assumed: Assumed,
    /// Clients whose clocks are known, and by how much one differs from ours at the least.
    clocks: AtomicU64,
    clock_difference_ns: AtomicU64,
    is_measured: AtomicBool,
    machine_ns: AtomicU64,
    shard_ns: AtomicU64,
    turn: Turn,
}

/// A shard's sign of life, in nanoseconds since `start`.
#[derive(Debug)]
struct Turn {
    start: Instant,
    /// When the present turn began; 0 while the shard waits.
    begun_ns: AtomicU64,
    /// The longest turn since the watch looked last.
    longest_ns: AtomicU64,
}

/// What became of the guarantee, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    /// Whether it holds.
    pub guarantee: Guarantee,
    /// The longest stall of the last minute, in microseconds.
    pub worst_us: u64,
    /// How long deadlines were admitted with.
    pub blocking_us: u64,
    /// By how much a client's clock differs from ours for certain, in microseconds.
    pub clock_difference_us: u64,
    /// How much deadlines were admitted with.
    pub clock_error_us: u64,
}

impl Stalls {
    /// For deadlines that were admitted with this.
    pub fn new(assumed: Assumed) -> Self {
        let turn = Turn { start: Instant::now(), begun_ns: AtomicU64::new(0), longest_ns: AtomicU64::new(0) };
        let [clocks, clock_difference_ns, machine_ns, shard_ns] = [0; 4].map(AtomicU64::new);
        Self { assumed, clocks, clock_difference_ns, is_measured: AtomicBool::new(false), machine_ns, shard_ns, turn }
    }

    /// Whether it matters what other clocks show.
    pub fn asks_for_clocks(&self) -> bool {
        self.assumed.clock_error_ns > 0
    }

    /// So many clients' clocks are known, and the farthest differs from ours by so much at the least.
    pub fn clocks_differ(&self, clocks: u64, difference_ns: u64) {
        self.clocks.store(clocks, Relaxed);
        self.clock_difference_ns.store(difference_ns, Relaxed);
    }

    /// How many clients' clocks are known.
    pub fn clocks(&self) -> u64 {
        self.clocks.load(Relaxed)
    }

    /// By how much the farthest of them differs from ours at the least, in nanoseconds.
    pub fn clock_difference_ns(&self) -> u64 {
        self.clock_difference_ns.load(Relaxed)
    }

    /// The longest stall of the machine in the last minute, in nanoseconds; `None` while it is being measured.
    pub fn machine_ns(&self) -> Option<u64> {
        self.is_measured.load(Acquire).then(|| self.machine_ns.load(Relaxed))
    }

    /// The longest turn of a shard in the last minute, likewise: nothing that comes meanwhile is looked at.
    pub fn shard_ns(&self) -> Option<u64> {
        self.is_measured.load(Acquire).then(|| self.shard_ns.load(Relaxed))
    }

    /// What all that means for deadlines.
    pub fn guarantee(&self) -> Guarantee {
        let Assumed { blocking_ns, clock_error_ns } = self.assumed;
        match self.machine_ns().max(self.shard_ns()) {
            _ if self.asks_for_clocks() && self.clock_difference_ns() > clock_error_ns => Guarantee::Suspended,
            _ if blocking_ns == 0 => Guarantee::Unstated,
            None => Guarantee::Pending,
            Some(worst_ns) if worst_ns > blocking_ns => Guarantee::Suspended,
            Some(_) => Guarantee::Held,
        }
    }

    /// The same with the figures.
    pub fn notice(&self) -> Notice {
        let Assumed { blocking_ns, clock_error_ns } = self.assumed;
        let worst_ns = self.machine_ns().max(self.shard_ns()).unwrap_or_default();
        Notice {
            guarantee: self.guarantee(),
            worst_us: worst_ns / 1_000,
            blocking_us: blocking_ns / 1_000,
            clock_difference_us: self.clock_difference_ns() / 1_000,
            clock_error_us: clock_error_ns / 1_000,
        }
    }

    /// The shard begins a turn.
    pub fn turn_begins(&self, now: Instant) {
        self.turn.begun_ns.store(self.turn.at(now).max(1), Relaxed);
    }

    /// It has ended it, and waits.
    pub fn turn_ends(&self, now: Instant) {
        let begun_ns = self.turn.begun_ns.swap(0, Relaxed);
        self.turn.longest_ns.fetch_max(self.turn.at(now).saturating_sub(begun_ns), Relaxed);
    }
}

impl Turn {
    fn at(&self, now: Instant) -> u64 {
        nanos(now.saturating_duration_since(self.start))
    }

    /// The longest turn since the last look, or the one that goes on.
    fn look(&self, now: Instant) -> Duration {
        let going_on_ns = match self.begun_ns.load(Relaxed) {
            0 => 0,
            begun_ns => self.at(now).saturating_sub(begun_ns),
        };
        Duration::from_nanos(self.longest_ns.swap(0, Relaxed).max(going_on_ns))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
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
        let stall_ns = nanos(stall);
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
    /// Begins to measure. The thread is scheduled as those that it stands for; `told` hears
    /// whenever the guarantee changes.
    pub fn start(stalls: Arc<Stalls>, realtime: Arc<Realtime>, told: impl Fn(Notice) + Send + 'static) -> io::Result<Self> {
        let ends = Arc::new(AtomicBool::new(false));
        let ended = ends.clone();
        let watch = move || watch(&stalls, &realtime, told, &ended);
        let thread = std::thread::Builder::new().name("stall-watch".into()).spawn(watch)?;
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

fn watch(stalls: &Stalls, realtime: &Arc<Realtime>, told: impl Fn(Notice), ends: &AtomicBool) {
    let mut last = stalls.guarantee();
    let _membership = realtime.enlist(Rank::Detector);
    while !ends.load(Relaxed) && !realtime.is_decided() {
        std::thread::sleep(WATCH_PERIOD);
    }
    let (start, mut machine, mut shard) = (Instant::now(), Memory::default(), Memory::default());
    while !ends.load(Relaxed) {
        let is_measured = start.elapsed() >= MEASURE;
        let period = if is_measured { WATCH_PERIOD } else { MEASURE_PERIOD };
        let before = Instant::now();
        std::thread::sleep(period);
        let now = Instant::now();
        stalls.machine_ns.store(machine.take(now - start, (now - before).saturating_sub(period)), Relaxed);
        stalls.shard_ns.store(shard.take(now - start, stalls.turn.look(now)), Relaxed);
        stalls.is_measured.store(is_measured, Release);
        let notice = stalls.notice();
        if std::mem::replace(&mut last, notice.guarantee) != notice.guarantee {
            log(notice);
            told(notice);
        }
    }
}

fn log(Notice { guarantee, worst_us, blocking_us, clock_difference_us, clock_error_us }: Notice) {
    match guarantee {
        Guarantee::Suspended if clock_difference_us > clock_error_us => {
            let told = "guarantee suspended: a client's clock differs from ours by more than platform.clock_error states";
            tracing::warn!(clock_difference_us, clock_error_us, "{told}");
        }
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

    fn stalls(blocking_ns: u64, clock_error_ns: u64) -> Stalls {
        Stalls::new(Assumed { blocking_ns, clock_error_ns })
    }

    #[test]
    fn a_guarantee_is_pending_until_stalls_are_measured_and_suspended_by_a_longer_one() {
        assert_eq!([0, 10].map(|blocking_ns| stalls(blocking_ns, 0).guarantee()), [Guarantee::Unstated, Guarantee::Pending]);
        for (machine_ns, shard_ns) in [(10, 3), (3, 10)] {
            let guarantees = [0, 9, 10].map(|blocking_ns| {
                let stalls = stalls(blocking_ns, 0);
                stalls.is_measured.store(true, Release);
                stalls.machine_ns.store(machine_ns, Relaxed);
                stalls.shard_ns.store(shard_ns, Relaxed);
                stalls.guarantee()
            });
            assert_eq!(guarantees, [Guarantee::Unstated, Guarantee::Suspended, Guarantee::Held]);
        }
    }

    #[test]
    fn a_clock_that_differs_by_more_than_stated_suspends_it_as_well() {
        for (blocking_ns, clock_error_ns, expected) in [
            (10, 0, [Guarantee::Held; 2]),
            (10, 50, [Guarantee::Held, Guarantee::Suspended]),
            (0, 50, [Guarantee::Unstated, Guarantee::Suspended]),
        ] {
            let stalls = stalls(blocking_ns, clock_error_ns);
            stalls.is_measured.store(true, Release);
            let guarantees = [50, 51].map(|difference_ns| {
                stalls.clocks_differ(1, difference_ns);
                stalls.guarantee()
            });
            assert_eq!(guarantees, expected, "{blocking_ns} {clock_error_ns}");
        }
    }

    #[test]
    fn the_longest_turn_counts_once_and_one_that_does_not_end_counts_while_it_lasts() {
        let stalls = stalls(0, 0);
        let at = |ms| stalls.turn.start + Duration::from_millis(ms);
        for (begun, ended) in [(1, 2), (3, 8), (9, 10)] {
            stalls.turn_begins(at(begun));
            stalls.turn_ends(at(ended));
        }
        let looked = [11, 12].map(|now| stalls.turn.look(at(now)));
        assert_eq!(looked, [Duration::from_millis(5), Duration::ZERO]);
        stalls.turn_begins(at(20));
        assert_eq!([21, 520].map(|now| stalls.turn.look(at(now))), [Duration::from_millis(1), Duration::from_millis(500)]);
        stalls.turn_ends(at(521));
        assert_eq!(stalls.turn.look(at(600)), Duration::from_millis(501));
    }

    #[test]
    fn a_shard_that_hangs_suspends_the_guarantee_and_is_told_once() {
        let (stalls, (tell, told)) = (Arc::new(stalls(1, 0)), std::sync::mpsc::channel());
        stalls.turn_begins(Instant::now());
        let watch = StallWatch::start(stalls.clone(), Realtime::ordinary(), move |notice| tell.send(notice).unwrap()).unwrap();
        let first: Notice = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!((first.guarantee, first.blocking_us), (Guarantee::Suspended, 0));
        assert!(first.worst_us >= MEASURE.as_micros() as u64, "{first:?}");
        drop(watch);
        assert!(told.recv().is_err());
    }
}
