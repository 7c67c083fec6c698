//! The processor time that a process has used, as Linux counts it.

use std::time::Duration;

use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};

/// Fields of /proc/PID/stat behind the name, up to and with the time in the kernel: state is the first.
const USER_FIELD: usize = 11;
const KERNEL_FIELD: usize = 12;

/// What this process has used of the processors, so far or since then.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// Time on them.
    pub processor_ns: u64,
    /// How often a thread had nothing to do.
    pub sleeps: u64,
    /// Time in front of them, where the kernel counts it.
    pub queued_ns: Option<u64>,
}

impl Used {
    /// So far.
    pub fn now() -> Self {
        Self { processor_ns: own().as_nanos() as u64, sleeps: own_sleeps(), queued_ns: own_queued().map(|queued| queued.as_nanos() as u64) }
    }

    /// Since then.
    pub fn since(self) -> Self {
        let now = Self::now();
        Self {
            processor_ns: now.processor_ns - self.processor_ns,
            sleeps: now.sleeps - self.sleeps,
            queued_ns: now.queued_ns.zip(self.queued_ns).map(|(now, before)| now.saturating_sub(before)),
        }
    }
}

/// Of a process, all its threads and those that have ended; in steps of the kernel's tick, 10 ms.
///
/// # Errors
/// The process is gone.
pub fn of(pid: Pid) -> anyhow::Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let ticks = ticks(&stat).with_context(|| format!("{path} has another form"))?;
    let per_second = sysconf(SysconfVar::CLK_TCK)?.context("the kernel does not tell the length of its tick")?;
    Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// Of this process, to the nanosecond.
pub fn own() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from).expect("every process has this clock")
}

/// What all processors of the machine have worked so far for whomever, with what a virtual machine's host has taken of them; in ticks of 10 ms. None where the kernel does not tell.
pub fn of_machine() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    Some(Duration::from_secs_f64(worked_ticks(&stat)? as f64 / per_second as f64))
}

/// Of the first line of /proc/stat: all but what was idle, and without guests, who are in the user's time.
fn worked_ticks(stat: &str) -> Option<u64> {
    let all = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = all.split_whitespace().map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let (idle, guests) = (3..=4, 8..);
    (ticks.len() >= 8)
        .then(|| ticks.iter().enumerate().filter(|(at, _)| !idle.contains(at) && !guests.contains(at)).map(|(_, ticks)| ticks).sum())
}

/// How often this process's threads have given up their processor because they had nothing to do.
pub fn own_sleeps() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("every process has used something");
    u64::try_from(usage.voluntary_context_switches()).unwrap_or(0)
}

/// How long the threads of a process that are there now were ready to run while others had the processors, together; none where the kernel does not count it
/// (it does if it was made with `CONFIG_SCHED_INFO`).
pub fn queued(pid: Pid) -> Option<Duration> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let waited = |thread: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        queued_ns(&text)
    };
    // A thread that ends meanwhile takes its time with it: only if none is known nothing is.
    let known: Vec<u64> = threads.filter_map(waited).collect();
    (!known.is_empty()).then(|| Duration::from_nanos(known.iter().sum()))
}

/// The same of this process.
pub fn own_queued() -> Option<Duration> {
    queued(Pid::this())
}

/// Of a line of /proc: time on a processor, time in front of one, turns.
fn queued_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

/// Of a line of /proc: ticks in user mode and in the kernel. The name may have blanks and brackets in it.
pub fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let field = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(field(USER_FIELD)? + field(KERNEL_FIELD)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_kernel_time_are_read_whatever_the_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 200 3 4 250 50 6 7 20 0 9 0 12345 1 2 3";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(ticks("7 (a"), None);
    }

    #[test]
    fn what_a_machine_works_is_all_but_its_idle_time() {
        assert_eq!(worked_ticks("cpu  1 2 3 1000 2000 4 5 6 7 8\ncpu0 1 1 1 1 1 1 1 1 0 0"), Some(21));
        assert_eq!((worked_ticks("cpu  1 2 3"), worked_ticks("cpu  1 2 3 4 5 x 7 8 9"), worked_ticks("")), (None, None, None));
        let Some(before) = of_machine() else { return };
        let own_before = own();
        while own() < own_before + Duration::from_millis(50) {
            std::hint::black_box((0..1000u64).sum::<u64>());
        }
        assert!(of_machine().unwrap() >= before + Duration::from_millis(20), "it worked for this process");
    }

    #[test]
    fn both_clocks_count_what_was_worked() {
        let (own_before, before) = (own(), of(Pid::this()).unwrap());
        while own() < own_before + Duration::from_millis(50) {
            std::hint::black_box((0..1000u64).sum::<u64>());
        }
        let counted = of(Pid::this()).unwrap() - before;
        assert!(counted >= Duration::from_millis(20), "{counted:?}");
    }

    #[test]
    fn who_shares_a_processor_waits_in_front_of_it() {
        assert_eq!((queued_ns("123 456 7"), queued_ns("123"), queued_ns("1 x 2")), (Some(456), None, None));
        let Some(before) = own_queued() else { return };
        // Twice as many as there are processors: half of them wait at any time.
        let threads = 2 * std::thread::available_parallelism().unwrap().get();
        let work = || {
            let begun = std::time::Instant::now();
            while begun.elapsed() < Duration::from_millis(100) {
                std::hint::black_box((0..1000u64).sum::<u64>());
            }
            // Before the thread ends, and its time with it.
            own_queued().unwrap()
        };
        let seen = std::thread::scope(|scope| {
            let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).max().unwrap()
        });
        assert!(seen >= before + Duration::from_millis(20), "{before:?} and then {seen:?}");
    }

    #[test]
    fn who_waits_for_another_sleeps() {
        let before = own_sleeps();
        let (ask, asked) = std::sync::mpsc::channel::<std::sync::mpsc::Sender<()>>();
        let other = std::thread::spawn(move || asked.iter().for_each(|answer| answer.send(()).unwrap()));
        for _ in 0..100 {
            let (answer, answered) = std::sync::mpsc::channel();
            ask.send(answer).unwrap();
            answered.recv().unwrap();
        }
        drop(ask);
        other.join().unwrap();
        assert!(own_sleeps() > before, "one of the two waits for the other each time");
    }
}
