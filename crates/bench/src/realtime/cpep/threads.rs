//! What the kernel counts of a process's threads: how often they were switched to, how often they moved to another processor.

use std::collections::BTreeMap;

use nix::unistd::Pid;

/// Counts since the threads began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Switches {
    /// A thread has given its processor up, or has lost it.
    pub switches: u64,
    /// A thread has gone on elsewhere. None: the kernel does not count that.
    pub migrations: Option<u64>,
}

impl Switches {
    /// Of all threads that a process has now.
    ///
    /// # Errors
    /// It is gone.
    pub fn of(pid: Pid) -> anyhow::Result<Self> {
        let mut sum = Self::default();
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let place = task?.path();
            // A thread may end while it is looked at.
            let read = |file: &str| std::fs::read_to_string(place.join(file)).unwrap_or_default();
            let (status, sched) = (read("status"), read("sched"));
            sum.switches +=
                value(&status, "voluntary_ctxt_switches").unwrap_or(0) + value(&status, "nonvoluntary_ctxt_switches").unwrap_or(0);
            if let Some(migrations) = value(&sched, "se.nr_migrations") {
                sum.migrations = Some(sum.migrations.unwrap_or(0) + migrations);
            }
        }
        Ok(sum)
    }

    /// What came since `before`.
    pub fn since(self, before: Self) -> Self {
        let migrations = self.migrations.zip(before.migrations).map(|(now, before)| now.saturating_sub(before));
        Self { switches: self.switches.saturating_sub(before.switches), migrations }
    }
}

/// The number of a line `name : number`.
fn value(text: &str, name: &str) -> Option<u64> {
    let of_line = |line: &str| line.split_once(':').filter(|(found, _)| found.trim() == name).map(|(_, value)| value.trim().to_owned());
    text.lines().find_map(of_line)?.parse().ok()
}

/// How long each thread of a process has been on a processor, in ns, by the thread's name; threads of one name together.
///
/// # Errors
/// It is gone, or the kernel counts in ticks alone.
pub fn on_processors(pid: Pid) -> anyhow::Result<BTreeMap<String, u64>> {
    let mut threads = BTreeMap::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let place = task?.path();
        // A thread may end while it is looked at.
        let Ok(name) = std::fs::read_to_string(place.join("comm")) else { continue };
        let Ok(line) = std::fs::read_to_string(place.join("schedstat")) else { continue };
        let ns: u64 = line.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0);
        *threads.entry(name.trim_end().to_owned()).or_insert(0) += ns;
    }
    anyhow::ensure!(!threads.is_empty(), "the kernel does not tell how long threads were on a processor (/proc/PID/task/*/schedstat)");
    Ok(threads)
}

/// Ticks of all processors since the machine was started: those in which one worked, and all.
///
/// # Errors
/// The kernel does not tell.
pub fn machine_ticks() -> anyhow::Result<[u64; 2]> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    let ticks = stat.lines().next().and_then(worked_and_all);
    ticks.ok_or_else(|| anyhow::anyhow!("/proc/stat does not begin with the processors' ticks"))
}

/// Of the line `cpu user nice system idle iowait irq softirq steal ...`. What others had of the machine's processors (steal) was not there for anybody.
fn worked_and_all(line: &str) -> Option<[u64; 2]> {
    let ticks: Vec<u64> = line.strip_prefix("cpu ")?.split_whitespace().map_while(|column| column.parse().ok()).collect();
    let [user, nice, system, idle, waiting, hard, soft, ..] = ticks[..] else { return None };
    let worked = user + nice + system + hard + soft;
    Some([worked, worked + idle + waiting])
}

#[cfg(test)]
mod tests {
    use std::{
        process::Command,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn lines_are_read_by_their_whole_name() {
        let status = "Threads:\t3\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(value(status, "voluntary_ctxt_switches"), Some(150));
        assert_eq!(value("se.nr_migrations      :       12\n", "se.nr_migrations"), Some(12));
        assert_eq!(worked_and_all("cpu  10 1 5 70 4 2 3 9 0 0"), Some([21, 95]));
        assert_eq!(worked_and_all("intr 1"), None);
    }

    #[test]
    fn what_a_thread_works_is_found_by_its_name() {
        let (named, is_named) = std::sync::mpsc::channel();
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let work = move || {
            let begun = crate::processor_time::own();
            while crate::processor_time::own() < begun + Duration::from_millis(20) {}
            named.send(()).is_ok() && receiver.recv().is_err()
        };
        let worker = std::thread::Builder::new().name("a worker (8)".into()).spawn(work).unwrap();
        is_named.recv().unwrap();
        // Other tests' threads end meanwhile, and the system's listing may then pass over one that goes on.
        const READINGS_MAX: usize = 100;
        let found = (0..READINGS_MAX).find_map(|_| on_processors(Pid::this()).unwrap().get("a worker (8)").copied());
        assert!(found.is_some_and(|ns| ns > 0), "{found:?}");
        drop(sender);
        assert!(worker.join().unwrap());
    }

    #[test]
    fn process_that_waits_is_switched_from() {
        const SWITCHES: u64 = 10;
        // A process of its own: in this one, threads of other tests end, and their counts with them.
        let mut shell = Command::new("sh").args(["-c", "while :; do sleep 0.005; done"]).spawn().unwrap();
        let pid = Pid::from_raw(shell.id() as i32);
        let before = Switches::of(pid).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        let mut switches = 0;
        while switches < SWITCHES && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
            switches = Switches::of(pid).unwrap().since(before).switches;
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert!(switches >= SWITCHES, "{switches}");
    }
}
