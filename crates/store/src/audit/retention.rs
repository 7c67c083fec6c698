//! How much the log keeps, and which of its files go.

use std::time::Duration;

/// What the log keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditLimits {
    /// Bytes of all files together; beyond, the oldest file goes.
    pub bytes_max: u64,
    /// Age of what is kept; a file that holds nothing younger goes.
    pub age_max: Duration,
}

/// A file as far as its age and size go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileState {
    pub bytes: u64,
    /// When its first record was written, in nanoseconds since 1970.
    pub begun_ns: u64,
}

impl AuditLimits {
    /// Bytes after which a new file is begun: small enough that retention is even, large enough that files are few.
    pub(super) fn segment_bytes(&self) -> u64 {
        (self.bytes_max / 16).clamp(64 * 1024, 16 * 1024 * 1024)
    }

    /// How many of the files, which are in the order of their age, go. The newest one stays.
    pub(super) fn superfluous(&self, files: &[FileState], now_ns: u64) -> usize {
        let age_max_ns = u64::try_from(self.age_max.max(Duration::from_secs(1)).as_nanos()).unwrap_or(u64::MAX);
        let eldest_ns = now_ns.saturating_sub(age_max_ns);
        let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let is_superfluous = |pair: &&[FileState]| {
            let goes = bytes > self.bytes_max || pair[1].begun_ns < eldest_ns;
            bytes -= if goes { pair[0].bytes } else { 0 };
            goes
        };
        files.windows(2).take_while(is_superfluous).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes_max: u64, age_max_s: u64, files: &[(u64, u64)], expected: usize) {
        let second = 1_000_000_000;
        let files: Vec<FileState> = files.iter().map(|(bytes, begun_s)| FileState { bytes: *bytes, begun_ns: begun_s * second }).collect();
        let limits = AuditLimits { bytes_max, age_max: Duration::from_secs(age_max_s) };
        assert_eq!(limits.superfluous(&files, 100 * second), expected, "{bytes_max} {age_max_s} {files:?}");
    }

    #[test]
    fn the_oldest_files_go_while_there_is_too_much_or_all_in_them_is_too_old() {
        check(30, 1000, &[(10, 0), (10, 10), (10, 20)], 0);
        check(29, 1000, &[(10, 0), (10, 10), (10, 20)], 1);
        check(15, 1000, &[(10, 0), (10, 10), (10, 20)], 2);
        check(5, 1000, &[(10, 0), (10, 10), (10, 20)], 2);
        check(99, 85, &[(10, 0), (10, 10), (10, 20)], 1);
        check(99, 1, &[(10, 0), (10, 10), (10, 20)], 2);
        check(1, 0, &[(10, 0)], 0);
        check(1, 0, &[], 0);
    }
}
