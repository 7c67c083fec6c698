//! Processor time of a process by its threads' names, as Linux counts it in /proc/PID/task.

use std::collections::BTreeMap;

use anyhow::Context;
use nix::unistd::{Pid, SysconfVar, sysconf};

use crate::processor_time;

/// Processor seconds by the name of the thread; threads of one name with different numbers behind it (`tokio-rt-worker`, `shard-0`) as they are.
pub type ByThread = BTreeMap<String, f64>;

/// What every thread of a process has used so far.
///
/// # Errors
/// It is gone.
pub fn by_thread(pid: Pid) -> anyhow::Result<ByThread> {
    let per_second = sysconf(SysconfVar::CLK_TCK)?.context("the kernel does not tell the length of its tick")? as f64;
    let mut threads = ByThread::new();
    let tasks = format!("/proc/{pid}/task");
    for task in std::fs::read_dir(&tasks).with_context(|| format!("cannot read {tasks}"))? {
        // A thread may end while it is looked at.
        let Ok(stat) = std::fs::read_to_string(task?.path().join("stat")) else { continue };
        let name = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(") ")).map(|(name, _)| name.to_string());
        if let (Some(name), Some(ticks)) = (name, processor_time::ticks(&stat)) {
            *threads.entry(name).or_default() += ticks as f64 / per_second;
        }
    }
    Ok(threads)
}

/// What was used between two readings, in percent of one core, by thread.
pub fn percent(before: &ByThread, after: &ByThread, seconds: f64) -> ByThread {
    let used = |(name, after): (&String, &f64)| {
        let percent = (after - before.get(name).unwrap_or(&0.0)).max(0.0) / seconds * 100.0;
        (name.clone(), percent)
    };
    after.iter().map(used).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threads_of_this_process_are_found_by_name() {
        let worker = std::thread::Builder::new().name("a worker (7)".into());
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let (named, is_named) = std::sync::mpsc::channel();
        let work = move || named.send(()).is_ok() && receiver.recv().is_err();
        let worker = worker.spawn(work).unwrap();
        is_named.recv().unwrap();
        // Other tests' threads end meanwhile, and the system's listing may then pass over one that goes on.
        const READINGS_MAX: usize = 100;
        let is_found = (0..READINGS_MAX).any(|_| by_thread(Pid::this()).unwrap().contains_key("a worker (7)"));
        assert!(is_found, "{:?}", by_thread(Pid::this()));
        drop(sender);
        assert!(worker.join().unwrap());
    }

    #[test]
    fn percents_are_of_the_time_between() {
        let reading = |shard: f64, log: f64| ByThread::from([("shard-0".to_string(), shard), ("log".to_string(), log)]);
        let percent = percent(&reading(1.0, 2.0), &reading(3.5, 2.0), 10.0);
        assert_eq!(percent, reading(25.0, 0.0));
    }
}
