//! The memory that a process keeps resident, as Linux counts it.

use anyhow::Context;
use nix::unistd::Pid;

/// The resident memory of one process.
#[derive(Debug, Clone, Copy)]
pub struct Resident {
    pid: Pid,
}

impl Resident {
    /// Of the process with this id.
    pub fn of(pid: Pid) -> Self {
        Self { pid }
    }

    /// Lets the peak start again at what is resident now.
    ///
    /// # Errors
    /// The process is gone or belongs to someone else.
    pub fn reset_peak(self) -> anyhow::Result<()> {
        let path = format!("/proc/{}/clear_refs", self.pid);
        std::fs::write(&path, "5").with_context(|| format!("cannot reset the peak of resident memory by {path}"))
    }

    /// Greatest resident memory since the last reset, in MB of 10^6 bytes.
    ///
    /// # Errors
    /// The process is gone.
    pub fn peak_mb(self) -> anyhow::Result<f64> {
        self.line_mb("VmHWM:")
    }

    /// Resident memory now, in MB of 10^6 bytes.
    ///
    /// # Errors
    /// The process is gone.
    pub fn now_mb(self) -> anyhow::Result<f64> {
        self.line_mb("VmRSS:")
    }

    /// Address space now, in MB of 10^6 bytes.
    ///
    /// # Errors
    /// The process is gone.
    pub fn virtual_mb(self) -> anyhow::Result<f64> {
        self.line_mb("VmSize:")
    }

    fn line_mb(self, name: &str) -> anyhow::Result<f64> {
        let path = format!("/proc/{}/status", self.pid);
        let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        kib_of(&status, name).map(|kib| kib * 1024.0 / 1e6).with_context(|| format!("{path} has no {name}"))
    }
}

fn kib_of(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_follows_what_was_touched() {
        let own = Resident::of(Pid::this());
        own.reset_peak().unwrap();
        let before = own.peak_mb().unwrap();
        let touched = vec![1u8; 32 << 20];
        assert!(own.now_mb().unwrap() > before + 20.0);
        drop(std::hint::black_box(touched));
        assert!(own.peak_mb().unwrap() > before + 20.0);
    }

    #[test]
    fn a_line_is_read_in_kib() {
        assert_eq!(kib_of("VmPeak:\t 9 kB\nVmHWM:\t  2048 kB\n", "VmHWM:"), Some(2048.0));
        assert_eq!(kib_of("VmHWM: x kB", "VmHWM:"), None);
    }
}
