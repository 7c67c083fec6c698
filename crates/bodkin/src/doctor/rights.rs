//! What this process may do: real-time priorities, locked memory, open files.

use std::fs;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use super::finding::Finding;
use crate::settings::Settings;

/// Bits of the effective capabilities (linux/capability.h).
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;
/// Open files beside connections: the database, the event log, listeners, polls, streams to subscribers by push.
const OTHER_FILES: u64 = 1024;

/// Looks at rights and limits.
pub fn examine(settings: &Settings) -> Vec<Finding> {
    let capabilities = effective_capabilities();
    vec![scheduling(capabilities), memory(capabilities), open_files(settings.connections_max.unwrap_or_default() as u64)]
}

/// Every right counts as missing where the system does not tell.
fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

fn has(capabilities: u64, bit: u32) -> bool {
    capabilities >> bit & 1 == 1
}

fn limit(resource: Resource) -> String {
    match getrlimit(resource) {
        Ok((_, RLIM_INFINITY)) => "unlimited".to_owned(),
        Ok((_, hard)) => hard.to_string(),
        Err(error) => format!("not known ({error})"),
    }
}

fn scheduling(capabilities: u64) -> Finding {
    let right = if has(capabilities, CAP_SYS_NICE) { "CAP_SYS_NICE is granted" } else { "CAP_SYS_NICE is not granted" };
    let told =
        format!("{right}, RLIMIT_RTPRIO {}; this version runs every thread at the ordinary priority", limit(Resource::RLIMIT_RTPRIO));
    Finding::ok("scheduling", told)
}

fn memory(capabilities: u64) -> Finding {
    let right = if has(capabilities, CAP_IPC_LOCK) { "CAP_IPC_LOCK is granted" } else { "CAP_IPC_LOCK is not granted" };
    let told = format!("{right}, RLIMIT_MEMLOCK {} bytes; this version locks no memory", limit(Resource::RLIMIT_MEMLOCK));
    Finding::ok("locked memory", told)
}

/// Connections are limited on the Event Handler's port and on all others, each by `connections_max`.
fn open_files(connections_max: u64) -> Finding {
    let needed = 2 * connections_max + OTHER_FILES;
    let (soft, hard) = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok(limits) => limits,
        Err(error) => return Finding::warning("open files", format!("the limit is not known: {error}"), "see ulimit -n"),
    };
    judge_open_files(soft, hard, connections_max, needed)
}

fn judge_open_files(soft: u64, hard: u64, connections_max: u64, needed: u64) -> Finding {
    let told = format!("{soft} now, {hard} at most, which bodkin up takes; {connections_max} connections of both kinds need {needed}");
    if hard >= needed {
        return Finding::ok("open files", told);
    }
    let advice = format!("raise the hard limit (ulimit -Hn, LimitNOFILE=) to {needed}, or give a smaller --connections-max");
    if hard < OTHER_FILES { Finding::problem("open files", told, advice) } else { Finding::warning("open files", told, advice) }
}

#[cfg(test)]
mod tests {
    use super::{super::Verdict, *};

    #[test]
    fn open_files_must_do_for_all_connections() {
        for (hard, verdict) in [(1 << 20, Verdict::Ok), (33_024, Verdict::Ok), (33_023, Verdict::Warning), (512, Verdict::Problem)] {
            assert_eq!(judge_open_files(256, hard, 16_000, 33_024).verdict, verdict, "{hard}");
        }
    }

    #[test]
    fn a_capability_is_a_bit() {
        assert!(has(0x80_0000, CAP_SYS_NICE) && !has(0x80_0000, CAP_IPC_LOCK) && has(0x4000, CAP_IPC_LOCK));
    }
}
