//! Under which conditions a report was made.

use std::path::Path;
use std::process::Command;

use serde::Serialize;

/// The machine, the program and the load around a run.
#[derive(Debug, Clone, Serialize)]
pub struct Conditions {
    /// Processor model.
    pub cpu: String,
    /// Processors of the machine.
    pub cores: usize,
    /// Kernel name and release.
    pub kernel: String,
    /// Version of this program.
    pub version: &'static str,
    /// Commit of the source tree around the current directory, or `unknown`.
    pub commit: String,
    /// The command that made the report.
    pub command: String,
    /// Where the processes ran.
    pub placement: String,
    /// The server under load.
    pub server: String,
    /// File system of the own server's data, where there is one.
    pub filesystem: Option<String>,
    /// The named state that runs start from.
    pub state: Option<String>,
    /// What ran before the clock counted.
    pub warm_up: String,
    /// Runs whose figures count.
    pub repeats: u32,
    /// Load average over 1, 5 and 15 minutes before.
    pub load_before: [f64; 3],
    /// The same after.
    pub load_after: [f64; 3],
}

impl Conditions {
    /// The conditions now; [`Conditions::end`] adds those at the end.
    pub fn begin(placement: String, server: String, warm_up: String, repeats: u32) -> Self {
        let load = load_average();
        Self {
            cpu: first_value("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into()),
            cores: cores(),
            kernel: read_trimmed("/proc/sys/kernel/osrelease").map_or_else(|| "unknown".into(), |release| format!("Linux {release}")),
            version: env!("CARGO_PKG_VERSION"),
            commit: commit(),
            command: command_line(std::env::args()),
            placement,
            server,
            filesystem: None,
            state: None,
            warm_up,
            repeats,
            load_before: load,
            load_after: load,
        }
    }

    /// Says on which file system the server's data lies.
    pub fn data_on(&mut self, directory: &Path) {
        self.filesystem = std::fs::read_to_string("/proc/self/mounts").ok().and_then(|mounts| filesystem(&mounts, directory));
    }

    /// Says from which state runs start.
    pub fn start_from(&mut self, state: String) {
        self.state = Some(state);
    }

    /// Reads the load average after the runs.
    pub fn end(&mut self) {
        self.load_after = load_average();
    }
}

fn read_trimmed(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_string())
}

fn first_value(path: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_string()))
}

/// All of them, also when this process was pinned to one.
fn cores() -> usize {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines().filter(|line| line.starts_with("processor")).count().max(1)
}

fn load_average() -> [f64; 3] {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok());
    std::array::from_fn(|_| numbers.next().unwrap_or(0.0))
}

fn commit() -> String {
    let told = Command::new("git").args(["rev-parse", "--short", "HEAD"]).output().ok();
    told.filter(|told| told.status.success())
        .map_or_else(|| "unknown".into(), |told| String::from_utf8_lossy(&told.stdout).trim().to_string())
}

/// The command with the program by its name alone: where it lies is not what made the figures.
fn command_line(mut arguments: impl Iterator<Item = String>) -> String {
    let program = arguments.next().unwrap_or_default();
    let name = Path::new(&program).file_name().map_or_else(|| program.clone(), |name| name.to_string_lossy().into_owned());
    std::iter::once(name).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn filesystem(mounts: &str, directory: &Path) -> Option<String> {
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let around = mounted.filter(|(point, _)| directory.starts_with(point));
    around.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_tells_the_file_system() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\nproc /proc proc rw 0 0\n";
        assert_eq!(filesystem(mounts, Path::new("/tmp/x")).as_deref(), Some("tmpfs"));
        assert_eq!(filesystem(mounts, Path::new("/tmpfoo/x")).as_deref(), Some("ext4"));
    }

    #[test]
    fn conditions_are_found_on_this_machine() {
        let conditions = Conditions::begin("anywhere".into(), "none".into(), "none".into(), 1);
        assert!(conditions.kernel.starts_with("Linux ") && conditions.cores >= 1);
        assert_eq!(command_line(["/a/b/bodkin", "bench", "query"].map(String::from).into_iter()), "bodkin bench query");
    }
}
