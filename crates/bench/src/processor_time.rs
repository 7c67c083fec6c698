//! The processor time that a process has used, as Linux counts it.

use std::time::Duration;

use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, SysconfVar, sysconf};

/// Fields of /proc/PID/stat behind the name, up to and with the time in the kernel: state is the first.
const USER_FIELD: usize = 11;
const KERNEL_FIELD: usize = 12;

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

/// How often this process's threads have given up their processor because they had nothing to do.
pub fn own_sleeps() -> u64 {
    let usage = getrusage(UsageWho::RUSAGE_SELF).expect("every process has used something");
    usage.voluntary_context_switches().unsigned_abs()
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
    fn both_clocks_count_what_was_worked() {
        let (own_before, before) = (own(), of(Pid::this()).unwrap());
        while own() < own_before + Duration::from_millis(50) {
            std::hint::black_box((0..1000u64).sum::<u64>());
        }
        let counted = of(Pid::this()).unwrap() - before;
        assert!(counted >= Duration::from_millis(20), "{counted:?}");
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
