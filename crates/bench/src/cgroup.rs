//! A limit on processor time and memory of one process, by a control group of the kernel.
//!
//! Version 2 is taken where it governs both, version 1 otherwise. A server that was to be limited never runs without its
//! limit: where the group cannot be made, nothing is started. The group goes when it is dropped; one that a killed bench
//! left behind goes when the next is made.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Length of the interval over which processor time is shared out, in us: the kernel's default.
const PERIOD_US: u64 = 100_000;
/// Before the process id of the bench in a group's name.
const PREFIX: &str = "bodkin-bench-";

/// What a process may use.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ResourceLimits {
    /// Processors, also parts of one.
    pub processors: Option<f64>,
    /// Memory in bytes, page cache included.
    pub memory_bytes: Option<u64>,
}

/// A control group with a limit. Dropping it removes it, which needs that its process has ended.
#[derive(Debug)]
pub struct Cgroup {
    /// One in version 2, one for each controller in version 1.
    directories: Vec<PathBuf>,
    version: u8,
    limits: ResourceLimits,
}

/// How the processor limit was felt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throttled {
    /// Time for which the process was held back, in s.
    pub seconds: f64,
}

/// Where a controller is mounted and the group of this process in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    version: u8,
    parent: PathBuf,
}

impl ResourceLimits {
    fn controllers(self) -> Vec<&'static str> {
        let cpu = self.processors.map(|_| "cpu");
        cpu.into_iter().chain(self.memory_bytes.map(|_| "memory")).collect()
    }

    fn quota_us(self) -> Option<u64> {
        self.processors.map(|share| (share * PERIOD_US as f64).round() as u64)
    }
}

impl Cgroup {
    /// Makes a group with these limits.
    ///
    /// # Errors
    /// This machine, or the rights of this process, do not allow it; the error says which limit could not be had.
    pub fn new(limits: ResourceLimits) -> anyhow::Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").context("cannot tell where control groups are mounted")?;
        let own = fs::read_to_string("/proc/self/cgroup").context("cannot tell this process's control groups")?;
        let controllers = limits.controllers();
        let hierarchies = hierarchies(&mounts, &own, &controllers)?;
        let version = hierarchies.first().map_or(2, |hierarchy| hierarchy.version);
        let mut cgroup = Self { directories: Vec::new(), version, limits };
        let wrong = || format!("no control group for {limits}: a limit that was asked for is never left out");
        for hierarchy in &hierarchies {
            remove_stale(&hierarchy.parent);
            if version == 2 {
                enable(&hierarchy.parent, &controllers).with_context(wrong)?;
            }
            let directory = hierarchy.parent.join(format!("{PREFIX}{}", std::process::id()));
            fs::create_dir(&directory).with_context(wrong)?;
            cgroup.directories.push(directory);
        }
        cgroup.limit().with_context(wrong)?;
        Ok(cgroup)
    }

    fn limit(&self) -> anyhow::Result<()> {
        let quota_us = self.limits.quota_us();
        if self.version == 2 {
            self.set("cpu.max", quota_us.map(|quota_us| format!("{quota_us} {PERIOD_US}")))?;
            self.set("memory.max", self.limits.memory_bytes.map(|bytes| bytes.to_string()))?;
            // Without this the rest would go to the swap space.
            return self.set_if_there("memory.swap.max", "0");
        }
        self.set("cpu.cfs_period_us", quota_us.map(|_| PERIOD_US.to_string()))?;
        self.set("cpu.cfs_quota_us", quota_us.map(|quota_us| quota_us.to_string()))?;
        self.set("memory.limit_in_bytes", self.limits.memory_bytes.map(|bytes| bytes.to_string()))?;
        match self.limits.memory_bytes {
            Some(bytes) => self.set_if_there("memory.memsw.limit_in_bytes", &bytes.to_string()),
            None => Ok(()),
        }
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        self.directories.iter().map(|directory| directory.join(name)).find(|path| path.exists())
    }

    fn set(&self, name: &str, value: Option<String>) -> anyhow::Result<()> {
        let Some(value) = value else { return Ok(()) };
        let path = self.file(name).with_context(|| format!("the kernel has no {name}"))?;
        fs::write(&path, &value).with_context(|| format!("cannot write {value} to {}", path.display()))
    }

    fn set_if_there(&self, name: &str, value: &str) -> anyhow::Result<()> {
        if self.file(name).is_some() { self.set(name, Some(value.to_string())) } else { Ok(()) }
    }

    /// The program as a command that joins the group and only then becomes the program: no instruction of it runs outside.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-ec", "n=$1; shift; while [ $n -gt 0 ]; do echo $$ > \"$1\"; shift; n=$((n - 1)); done; exec \"$@\"", "sh"]);
        command.arg(self.directories.len().to_string());
        command.args(self.directories.iter().map(|directory| directory.join("cgroup.procs")));
        command.arg(program);
        command
    }

    /// How long the processes in the group were held back so far; `None` without a processor limit.
    pub fn throttled(&self) -> Option<Throttled> {
        self.limits.processors?;
        throttled(&fs::read_to_string(self.file("cpu.stat")?).ok()?)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for directory in &self.directories {
            if let Err(error) = fs::remove_dir(directory) {
                eprintln!("bodkin: the control group {} stays: {error}", directory.display());
            }
        }
    }
}

impl std::fmt::Display for ResourceLimits {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let processors = self.processors.map(|share| format!("{share} processors"));
        let memory = self.memory_bytes.map(|bytes| format!("{} MiB of memory", bytes as f64 / f64::from(1 << 20)));
        out.write_str(&processors.into_iter().chain(memory).collect::<Vec<_>>().join(" and "))
    }
}

/// Where groups for the controllers are made: below the group of this process, in version 2 if it has them all.
fn hierarchies(mounts: &str, own: &str, controllers: &[&str]) -> anyhow::Result<Vec<Hierarchy>> {
    if let Some(root) = mount(mounts, "cgroup2", |_| true) {
        let offered = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        if controllers.iter().all(|controller| offered.split_whitespace().any(|name| name == *controller)) {
            return Ok(vec![Hierarchy { version: 2, parent: root }]);
        }
    }
    let mut found = Vec::new();
    for controller in controllers {
        let Some(root) = mount(mounts, "cgroup", |options| options.split(',').any(|option| option == *controller)) else {
            bail!("this machine has no control group for `{controller}`, so that the server cannot be limited; run without the limit");
        };
        let path = own_path(own, controller).unwrap_or("/");
        let inside = root.join(path.trim_start_matches('/'));
        // In a container the path may be that of the host, and then is not there.
        let parent = if inside.is_dir() { inside } else { root };
        let hierarchy = Hierarchy { version: 1, parent };
        if !found.contains(&hierarchy) {
            found.push(hierarchy);
        }
    }
    Ok(found)
}

/// The first mount point of this kind whose options please.
fn mount(mounts: &str, kind: &str, pleases: impl Fn(&str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (point, of_kind, options) = (words.next()?, words.next()?, words.next()?);
        (of_kind == kind && pleases(options)).then(|| PathBuf::from(point))
    })
}

/// The group of this process for a controller of version 1, from lines like `4:memory:/some/group`.
fn own_path<'a>(own: &'a str, controller: &str) -> Option<&'a str> {
    own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        controllers.split(',').any(|name| name == controller).then_some(path)
    })
}

/// Lets the groups below `parent` have the controllers.
fn enable(parent: &Path, controllers: &[&str]) -> anyhow::Result<()> {
    let path = parent.join("cgroup.subtree_control");
    let wanted: Vec<String> = controllers.iter().map(|controller| format!("+{controller}")).collect();
    fs::write(&path, wanted.join(" ")).with_context(|| format!("cannot write {}", path.display()))
}

/// Removes the groups of benches that are gone.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // One whose processes still run stays, and its name is free again only with the process id.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Version 1 counts ns, version 2 us.
fn throttled(stat: &str) -> Option<Throttled> {
    let value = |key: &str| stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<f64>().ok());
    let seconds = value("throttled_usec ").map(|us| us / 1e6).or_else(|| value("throttled_time ").map(|ns| ns / 1e9))?;
    Some(Throttled { seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
        cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0\n\
        cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n";

    #[test]
    fn a_controller_of_version_1_is_found_by_its_name() {
        let own = "4:memory:/some/group\n1:cpu,cpuacct:/\n";
        let found = hierarchies(MOUNTS, own, &["cpu", "memory"]).unwrap();
        let parents: Vec<_> = found.iter().map(|hierarchy| hierarchy.parent.to_str().unwrap()).collect();
        assert_eq!(parents, ["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory"], "a group that is not there is not used");
        assert_eq!((own_path(own, "memory"), own_path(own, "cpuacct"), own_path(own, "cp")), (Some("/some/group"), Some("/"), None));
    }

    #[test]
    fn a_machine_without_control_groups_is_told() {
        for mounts in ["", "proc /proc proc rw 0 0\n", "cgroup2 /nonexistent cgroup2 rw 0 0\n"] {
            let error = hierarchies(mounts, "", &["cpu", "memory"]).unwrap_err().to_string();
            assert!(error.contains("no control group for `cpu`"), "{error}");
        }
    }

    #[test]
    fn both_versions_tell_what_was_throttled() {
        assert_eq!(throttled("nr_throttled 3\nthrottled_time 2500000000\n"), Some(Throttled { seconds: 2.5 }));
        assert_eq!(throttled("usage_usec 9\nthrottled_usec 1500000\n"), Some(Throttled { seconds: 1.5 }));
        assert_eq!(throttled("usage_usec 9\n"), None);
    }

    #[test]
    fn limits_are_told_in_words() {
        let both = ResourceLimits { processors: Some(0.25), memory_bytes: Some(64 << 20) };
        assert_eq!(both.to_string(), "0.25 processors and 64 MiB of memory");
        assert_eq!((both.quota_us(), both.controllers().len()), (Some(25_000), 2));
        assert_eq!(ResourceLimits { processors: Some(2.0), memory_bytes: None }.to_string(), "2 processors");
    }
}
