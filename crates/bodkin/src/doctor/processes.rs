//! Which process has a file or a socket open, as /proc tells it.

use std::{fmt, fs, path::Path};

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its command's name.
    pub name: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// The first process that has `target` open: a path, or `socket:[inode]`. `None` when there is none, or it is another
/// user's and not told.
pub fn holder(target: &Path) -> Option<Process> {
    let pids = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.into_iter().find(|pid| has_open(*pid, target)).map(|pid| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Process { pid, name: name.trim().to_owned() }
    })
}

fn has_open(pid: u32, target: &Path) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    descriptors.into_iter().any(|entry| fs::read_link(entry.path()).is_ok_and(|open| open == target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_that_has_a_file_open_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let found = holder(&file.path().canonicalize().unwrap()).unwrap();
        assert_eq!(found.pid, std::process::id());
        assert_eq!(holder(Path::new("/nobody/has/this")), None);
    }
}
