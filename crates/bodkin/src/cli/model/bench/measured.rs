//! What a process takes.

use std::{
    fs::{self, File},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::sys::resource::{UsageWho, getrusage};

/// Between two looks at whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Processor time of a process and of its threads, and how long it was there.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub cpu_s: f64,
    pub wall_s: f64,
}

/// Runs a program to its end; gives what it took and what it wrote. `place` is a directory for that meanwhile.
///
/// # Errors
/// That it does not start, has failed, with its last words, or was stopped at the limit.
pub fn measured(command: &mut Command, place: &Path, limit: Duration) -> Result<(Used, String), String> {
    let (out, told) = (place.join("out"), place.join("told"));
    let open = |path: &Path| File::create(path).map_err(|error| format!("{}: {error}", path.display()));
    let before = children_cpu_s();
    let started = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(open(&out)?).stderr(open(&told)?).spawn();
    let mut child = child.map_err(|error| format!("it does not start: {error}"))?;
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if started.elapsed() > limit => {
                // Both fail only when it has just ended by itself.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no answer within {} s", limit.as_secs()));
            }
            None => thread::sleep(LOOK_EVERY),
        }
    };
    let used = Used { cpu_s: children_cpu_s() - before, wall_s: started.elapsed().as_secs_f64() };
    if !status.success() {
        let told = fs::read_to_string(&told).unwrap_or_default();
        return Err(told.lines().rfind(|line| !line.trim().is_empty()).map_or_else(|| status.to_string(), str::to_owned));
    }
    fs::read_to_string(&out).map(|text| (used, text)).map_err(|error| error.to_string())
}

/// Of all processes that this one has started and that have ended.
fn children_cpu_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("every process has used something");
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// The memory of the one of them that had the most.
pub fn largest_child_mb() -> f64 {
    // Linux counts it in KiB.
    getrusage(UsageWho::RUSAGE_CHILDREN).expect("every process has used something").max_rss() as f64 * 1_024.0 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_measured_and_stopped_at_the_limit() {
        let place = tempfile::tempdir().expect("a directory");
        let run = |script: &str, limit| measured(Command::new("sh").args(["-c", script]), place.path(), limit);
        let (used, text) =
            run("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done", Duration::from_secs(60)).expect("it ends by itself");
        assert!(used.cpu_s > 0.0 && used.wall_s > 0.0 && text == "done\n", "{used:?} {text}");
        assert_eq!(run("sleep 30", Duration::from_millis(50)).expect_err("stopped"), "no answer within 0 s");
        assert_eq!(run("echo why >&2; exit 3", Duration::from_secs(60)).expect_err("failed"), "why");
        assert!(largest_child_mb() > 0.1, "{}", largest_child_mb());
    }
}
