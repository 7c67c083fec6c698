//! What this process may do: real-time priorities, locked memory, open files.

use bodkin_host::{
    Limits,
    quotas::{FittedLimits, QuotaLimits},
    realtime::{Rank, RealtimeConfig, Rights, Scheduling, real_time_percent},
};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, rlim_t};

use super::finding::Finding;
use crate::settings::Settings;

/// Hard limit on open files below which a cloud has hardly any connections.
const OPEN_FILES_MIN: rlim_t = 1024;

/// Looks at rights and limits.
pub fn examine(settings: &Settings) -> Vec<Finding> {
    let (rights, config) = (Rights::of_this_process(), settings.realtime());
    let mut limits = Limits::default();
    limits.connections_max = settings.connections_max.unwrap_or(limits.connections_max);
    limits.client_connections_max = settings.client_connections_max.unwrap_or(limits.client_connections_max);
    vec![scheduling(rights, &config), memory(rights, &config), open_files(&limits, settings.insecure != Some(true))]
}

fn limit(resource: Resource) -> String {
    match getrlimit(resource) {
        Ok((_, RLIM_INFINITY)) => "unlimited".to_owned(),
        Ok((_, hard)) => hard.to_string(),
        Err(error) => format!("not known ({error})"),
    }
}

/// Whether a capability is granted.
fn granted(name: &str, is_granted: bool) -> String {
    format!("{name} {} granted", if is_granted { "is" } else { "is not" })
}

fn scheduling(rights: Rights, config: &RealtimeConfig) -> Finding {
    let right = granted("CAP_SYS_NICE", rights.has_sys_nice);
    let told = format!("{right}, RLIMIT_RTPRIO {}", limit(Resource::RLIMIT_RTPRIO));
    let percent = real_time_percent();
    if config.scheduling == Scheduling::Default {
        Finding::ok("scheduling", format!("{told}; every thread runs at the ordinary priority, as configured"))
    } else if !rights.may_schedule(Rank::HIGHEST) {
        let advice = format!(
            "grant CAP_SYS_NICE or LimitRTPRIO={} for real-time threads; without them events wait for other processes",
            Rank::HIGHEST
        );
        Finding::warning("scheduling", format!("{told}: no real-time threads"), advice)
    } else if config.load_max_percent > percent {
        let told = format!(
            "{told}; topics may ask for {} % of a core, and the kernel grants real-time threads {percent} %",
            config.load_max_percent
        );
        Finding::warning(
            "scheduling",
            told,
            "lower load_max_percent in [platform], or raise kernel.sched_rt_runtime_us: no real-time threads else",
        )
    } else {
        Finding::ok("scheduling", format!("{told}; the kernel grants real-time threads {percent} % of a core"))
    }
}

fn memory(rights: Rights, config: &RealtimeConfig) -> Finding {
    let told = format!("{}, RLIMIT_MEMLOCK {} bytes", granted("CAP_IPC_LOCK", rights.has_ipc_lock), limit(Resource::RLIMIT_MEMLOCK));
    if !config.lock_memory {
        Finding::ok("locked memory", format!("{told}; none is locked, as configured"))
    } else if rights.may_lock_memory() {
        Finding::ok("locked memory", format!("{told}; all is locked that is used"))
    } else {
        let advice = "grant CAP_IPC_LOCK or LimitMEMLOCK=infinity: where memory is short an event may wait for a page";
        Finding::warning("locked memory", format!("{told}: none is locked"), advice)
    }
}

/// Compares the limit on open files with the limits of connections, and lists the quotas of clients that result.
fn open_files(limits: &Limits, is_secure: bool) -> Finding {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) => judge_open_files(soft, hard, limits, is_secure),
        Err(error) => Finding::warning("open files", format!("the limit is not known: {error}"), "see ulimit -n"),
    }
}

fn judge_open_files(soft: rlim_t, hard: rlim_t, limits: &Limits, is_secure: bool) -> Finding {
    let fitted = FittedLimits::new(limits, is_secure, usize::try_from(hard).unwrap_or(usize::MAX));
    let needed = FittedLimits::files_needed(limits, is_secure);
    let QuotaLimits { connections_max, client_connections_max, buffer_bytes_max, client_buffer_bytes_max } = fitted.group;
    let told = format!(
        "{soft} now, {hard} at most, which bodkin up takes; quotas: {} connections, {connections_max} in each of three groups, \
         {client_connections_max} of one client in each; {} MiB of incomplete requests in each, {} MiB of one client",
        fitted.connections_max,
        buffer_bytes_max >> 20,
        client_buffer_bytes_max >> 20,
    );
    if hard >= needed as rlim_t {
        return Finding::ok("open files", told);
    }
    let advice = format!("raise the hard limit (ulimit -Hn, LimitNOFILE=) to {needed}, or give a smaller --connections-max");
    if hard < OPEN_FILES_MIN { Finding::problem("open files", told, advice) } else { Finding::warning("open files", told, advice) }
}

#[cfg(test)]
mod tests {
    use super::{super::Verdict, *};

    #[test]
    fn open_files_are_judged_by_all_groups() {
        let limits = Limits { connections_max: 16_000, ..Limits::default() };
        for is_secure in [false, true] {
            let needed = FittedLimits::files_needed(&limits, is_secure) as rlim_t;
            assert!(needed > 48_000, "three groups of 16,000 connections");
            for (hard, verdict) in [(needed, Verdict::Ok), (needed - 1, Verdict::Warning), (512, Verdict::Problem)] {
                assert_eq!(judge_open_files(256, hard, &limits, is_secure).verdict, verdict, "{hard}");
            }
        }
    }

    #[test]
    fn a_missing_right_is_told_unless_nobody_wants_it() {
        let none = Rights { has_sys_nice: false, priority_max: 0, has_ipc_lock: false, locked_bytes_max: 8 << 20 };
        let all = Rights { has_sys_nice: true, has_ipc_lock: true, ..none };
        let auto = RealtimeConfig { scheduling: Scheduling::Auto, lock_memory: true, ..RealtimeConfig::default() };
        let verdicts = |rights, config| (scheduling(rights, config).verdict, memory(rights, config).verdict);
        assert_eq!(verdicts(none, &auto), (Verdict::Warning, Verdict::Warning));
        assert_eq!(verdicts(all, &auto), (Verdict::Ok, Verdict::Ok));
        assert_eq!(verdicts(none, &RealtimeConfig::default()), (Verdict::Ok, Verdict::Ok));
        if real_time_percent() < 100 {
            assert_eq!(scheduling(all, &RealtimeConfig { load_max_percent: 100, ..auto }).verdict, Verdict::Warning);
        }
    }
}
