//! The thread that watches for stalls.

use std::{
    io,
    sync::{
        Arc,
        atomic::{
            AtomicBool,
            Ordering::{Relaxed, Release},
        },
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{Guarantee, Notice, Stalls, memory::Memory, nanos};
use crate::realtime::{Rank, Realtime};

/// How long stalls are measured, from the decision on how threads are scheduled, before anything is said about them.
const MEASURE: Duration = Duration::from_millis(1_500);
/// Between two looks while they are measured.
const MEASURE_PERIOD: Duration = Duration::from_millis(1);
/// Between two looks from then on: a hundred a second cost next to nothing.
const WATCH_PERIOD: Duration = Duration::from_millis(10);

/// The thread that watches; it ends when this is dropped.
pub struct StallWatch {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl StallWatch {
    /// Begins to measure. The thread is scheduled as those that it stands for; `told` hears
    /// whenever a guarantee or the cause of its suspension changes.
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
    let seen = |notice: Notice| (notice.guarantee, notice.causes, stalls.backup_is_far(), stalls.failover_was_long());
    let mut last = seen(stalls.notice());
    let _membership = realtime.enlist(Rank::Detector);
    while !ends.load(Relaxed) && !realtime.is_decided() {
        std::thread::sleep(WATCH_PERIOD);
    }
    let start = Instant::now();
    let [mut machine, mut shard, mut publisher_excess, mut backup_way, mut failover_excess] = [(); 5].map(|()| Memory::default());
    while !ends.load(Relaxed) {
        let is_measured = start.elapsed() >= MEASURE;
        let period = if is_measured { WATCH_PERIOD } else { MEASURE_PERIOD };
        let before = Instant::now();
        std::thread::sleep(period);
        let now = Instant::now();
        stalls.machine_ns.store(machine.take(now - start, nanos((now - before).saturating_sub(period))), Relaxed);
        stalls.shard_ns.store(shard.take(now - start, nanos(stalls.turn.look(now))), Relaxed);
        stalls.publisher_excess.look(&mut publisher_excess, now - start);
        stalls.backup_way.look(&mut backup_way, now - start);
        stalls.failover_excess.look(&mut failover_excess, now - start);
        stalls.is_measured.store(is_measured, Release);
        let notice = stalls.notice();
        let before = std::mem::replace(&mut last, seen(notice));
        if (before.0, before.1) != (last.0, last.1) {
            log(notice);
        }
        if before.2 != last.2 {
            log_backup(last.2, notice);
        }
        if before != last {
            told(notice);
        }
    }
}

fn log_backup(is_far: bool, Notice { broker_backup_us, broker_backup_stated_us, .. }: Notice) {
    if is_far {
        let told = "guarantee suspended: replicas take longer to the Backup than platform.broker_backup states";
        tracing::warn!(broker_backup_us, broker_backup_stated_us, "{told}");
    } else {
        tracing::info!(broker_backup_us, broker_backup_stated_us, "replicas take no longer to the Backup than what is stated");
    }
}

fn log(notice: Notice) {
    let Notice { guarantee, worst_us, blocking_us, .. } = notice;
    match (guarantee, notice.why()) {
        (_, Some(why)) => tracing::warn!("guarantee suspended: {why}"),
        (Guarantee::Held, _) => tracing::info!(worst_us, blocking_us, "deadlines are guaranteed: no stall is longer than what is stated"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stall::Assumed;

    #[test]
    fn a_shard_that_hangs_suspends_the_guarantee_and_is_told_once() {
        let (stalls, (tell, told)) = (Arc::new(Stalls::new(Assumed { blocking_ns: 1, ..Assumed::default() })), std::sync::mpsc::channel());
        stalls.turn_begins(Instant::now());
        let watch = StallWatch::start(stalls.clone(), Realtime::ordinary(), move |notice| tell.send(notice).unwrap()).unwrap();
        let first: Notice = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!((first.guarantee, first.blocking_us), (Guarantee::Suspended, 0));
        assert!(first.worst_us >= MEASURE.as_micros() as u64, "{first:?}");
        drop(watch);
        assert!(told.recv().is_err());
    }
}
