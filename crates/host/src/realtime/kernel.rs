//! What is asked of the Linux kernel about threads, memory and the clock.
#![allow(unsafe_code)] // Six calls that no crate of ours has in a safe form; each says what makes it sound.

use std::{fs, io};

use nix::{
    errno::Errno,
    libc,
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    sys::{
        mman::{MlockAllFlags, mlockall, munlockall},
        resource::{RLIM_INFINITY, Resource, getrlimit, rlim_t},
    },
    unistd::{Pid, gettid},
};
use serde::Serialize;

/// How the kernel chooses when a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// In turn with all others (`SCHED_OTHER`).
    Default,
    /// In turn with all others, and in front of them as long as it uses little (`SCHED_OTHER` with a nice value of -20). Threads that it starts are ordinary ones.
    Preferred,
    /// In turn with all others, and behind them (`SCHED_OTHER` with a nice value of 10): a tenth of their share where they want all of it.
    Behind,
    /// When no other thread wants to run (`SCHED_IDLE`).
    Idle,
    /// In front of all that have a lower priority, 1 to 99, until it waits (`SCHED_FIFO`). Threads that it starts are ordinary ones.
    Fifo(u8),
}

impl Policy {
    /// As a real-time thread; 0 of an ordinary one.
    pub fn priority(self) -> u8 {
        match self {
            Self::Default | Self::Preferred | Self::Behind | Self::Idle => 0,
            Self::Fifo(priority) => priority,
        }
    }
}

/// The nice value of threads that go in front of other ordinary ones.
const NICE_FIRST: i32 = -20;

/// That of threads that others go in front of.
const NICE_BEHIND: i32 = 10;

/// A thread of this process, as the kernel names it; another one may have the number when it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(Pid);

impl ThreadId {
    /// The calling thread.
    pub fn current() -> Self {
        Self(gettid())
    }

    /// Has it scheduled so.
    pub fn schedule(self, policy: Policy) -> io::Result<()> {
        let (number, priority) = match policy {
            Policy::Default | Policy::Behind => (libc::SCHED_OTHER, 0),
            Policy::Preferred => (libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0),
            Policy::Idle => (libc::SCHED_IDLE, 0),
            Policy::Fifo(priority) => (libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, i32::from(priority)),
        };
        let parameter = libc::sched_param { sched_priority: priority };
        // SAFETY: the kernel reads the parameter, which lives until the call returns, and writes no memory of ours.
        Errno::result(unsafe { libc::sched_setscheduler(self.0.as_raw(), number, &raw const parameter) })?;
        let nice = match policy {
            Policy::Preferred => NICE_FIRST,
            Policy::Behind => NICE_BEHIND,
            _ => 0,
        };
        // SAFETY: the call takes numbers only. Of a process it would set all threads; a thread's number names that thread.
        Ok(Errno::result(unsafe { libc::setpriority(libc::PRIO_PROCESS, self.0.as_raw().cast_unsigned(), nice) }).map(drop)?)
    }

    /// Lets it run on these cores only.
    pub fn pin(self, cores: &[usize]) -> io::Result<()> {
        let mut set = CpuSet::new();
        cores.iter().try_for_each(|core| set.set(*core))?;
        Ok(sched_setaffinity(self.0, &set)?)
    }
}

/// The cores that this process may run on, ascending.
pub fn cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or_default()).collect())
}

/// Keeps every page of the process in memory from its first use on (`MCL_ONFAULT`), those that it has not yet asked for too.
pub fn lock_memory() -> io::Result<()> {
    let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
    Ok(mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | on_fault)?)
}

/// Buffers of so many bytes and more have pages of their own.
#[cfg(target_env = "gnu")]
const APART_BYTES: libc::c_int = 1 << 20;

/// Has the C library ask the kernel for large tables one by one: what a table has outgrown is given back, and it grows without being copied. Left alone, it moves
/// this limit up to 32 MiB with the first large buffer that is freed, and each table leaves the ones that it has outgrown behind, in memory that is locked. To be
/// called at the start of the process.
pub fn keep_large_tables_apart() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the call takes numbers only, and sets a limit of the allocator's, under its lock.
        let is_taken = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, APART_BYTES) } == 1;
        if !is_taken {
            tracing::debug!("the C library moves its limit for large buffers as it likes: large tables take more memory");
        }
    }
}

/// Returns the bytes that the allocator holds and nothing uses.
pub fn free_memory_bytes() -> usize {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the call takes nothing, and returns numbers that the allocator reads under its locks.
        unsafe { libc::mallinfo2() }.fordblks
    }
    #[cfg(not(target_env = "gnu"))]
    0
}

/// Returns memory that the allocator holds and nothing uses to the system. Blocks each arena of the allocator while its free memory is
/// returned, for about a millisecond per 16 MiB. Where memory is locked, it is unlocked for that time.
///
/// # Errors
/// The system does not lock the memory again.
pub fn release_free_memory() -> io::Result<()> {
    let is_locked = locked_bytes() > 0;
    if is_locked {
        // The kernel takes no locked page back.
        munlockall()?;
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: the call takes a number, and changes the allocator's own lists under its locks.
    unsafe {
        libc::malloc_trim(0);
    }
    if is_locked { lock_memory() } else { Ok(()) }
}

/// Bytes of this process that are locked in memory; 0 where the system does not say.
fn locked_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    line.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).map_or(0, |kib: u64| kib << 10)
}

/// What this process may do. Every right counts as missing where the system does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The capability `CAP_SYS_NICE`.
    pub has_sys_nice: bool,
    /// The highest real-time priority without it (`RLIMIT_RTPRIO`).
    pub priority_max: rlim_t,
    /// The capability `CAP_IPC_LOCK`.
    pub has_ipc_lock: bool,
    /// Bytes that may be locked without it (`RLIMIT_MEMLOCK`).
    pub locked_bytes_max: rlim_t,
}

/// Bits of the effective capabilities (linux/capability.h).
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;

impl Rights {
    /// Asks the system.
    pub fn of_this_process() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let capabilities = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
        let limit = |resource| getrlimit(resource).map_or(0, |(soft, _)| soft);
        Self::of(capabilities, limit(Resource::RLIMIT_RTPRIO), limit(Resource::RLIMIT_MEMLOCK))
    }

    fn of(capabilities: u64, priority_max: rlim_t, locked_bytes_max: rlim_t) -> Self {
        let has = |bit: u32| capabilities >> bit & 1 == 1;
        Self { has_sys_nice: has(CAP_SYS_NICE), priority_max, has_ipc_lock: has(CAP_IPC_LOCK), locked_bytes_max }
    }

    /// Whether threads may have a real-time priority of up to `priority`.
    pub fn may_schedule(&self, priority: u8) -> bool {
        self.has_sys_nice || self.priority_max >= rlim_t::from(priority)
    }

    /// Whether all memory may be locked. A limit is none to work under: what is asked for beyond it would be refused for ever.
    pub fn may_lock_memory(&self) -> bool {
        self.has_ipc_lock || self.locked_bytes_max == RLIM_INFINITY
    }
}

/// Per cent of a core's time that real-time threads may use before the kernel lets others run for the rest of a second; 100: all of it.
pub fn real_time_percent() -> u32 {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse::<i64>().ok();
    match (read("sched_rt_runtime_us"), read("sched_rt_period_us")) {
        (Some(runtime_us @ 0..), Some(period_us @ 1..)) => u32::try_from(runtime_us * 100 / period_us).unwrap_or(100).min(100),
        _ => 100,
    }
}

/// What the kernel says of the time of day; a time service (chrony, ntpd, systemd-timesyncd) keeps it told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TimeOfDay {
    /// Whether a time service has set it, and not too long ago.
    pub is_synchronised: bool,
    /// How wrong it may be at the most, as that one thinks, in microseconds; grows as long as it does not set it again.
    pub error_max_us: u64,
    /// How wrong it probably is.
    pub error_estimated_us: u64,
}

impl TimeOfDay {
    /// Asks the kernel, and changes nothing.
    pub fn read() -> io::Result<Self> {
        // SAFETY: `timex` has numbers only, for which zeros are values; no mode is set.
        let mut told: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one `timex` to where there is one, before the call returns.
        let state = Errno::result(unsafe { libc::adjtimex(&raw mut told) })?;
        let micros = |error: libc::c_long| u64::try_from(error).unwrap_or_default();
        Ok(Self {
            is_synchronised: state != libc::TIME_ERROR && told.status & libc::STA_UNSYNC == 0,
            error_max_us: micros(told.maxerror),
            error_estimated_us: micros(told.esterror),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_env = "gnu")]
    #[test]
    fn what_a_large_table_has_taken_is_given_back_whatever_was_freed_before() {
        const MIB: usize = 1 << 20;
        const ALONE: &str = "LARGE_TABLE_ALONE";
        if std::env::var_os(ALONE).is_none() {
            // In a process of its own: the other tests of this one take memory and give it back meanwhile.
            let name = "realtime::kernel::tests::what_a_large_table_has_taken_is_given_back_whatever_was_freed_before";
            let own = std::env::current_exe().unwrap();
            let run = std::process::Command::new(own).args(["--exact", name]).env(ALONE, "1").output().unwrap();
            let told = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success() && told.contains("1 passed"), "{told}");
            return;
        }
        let table = |bytes: usize| std::hint::black_box(vec![1_u8; bytes]);
        let resident_kb = || -> usize {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
            line.trim_end_matches("kB").trim().parse().unwrap()
        };
        keep_large_tables_apart();
        // Left alone, the C library would keep buffers of up to this size from now on.
        drop(table(24 * MIB));
        let (large, behind) = (table(16 * MIB), table(MIB / 16));
        let before_kb = resident_kb();
        drop(large);
        let given_back_kb = before_kb.saturating_sub(resident_kb());
        drop(behind);
        assert!(given_back_kb >= 12 * 1024, "{given_back_kb} kB of 16 MiB");
    }

    /// Policy and priority of the calling thread, as the kernel tells them.
    fn scheduled() -> (u32, u32) {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        // Fields 41 and 40 of the whole line, of which two are cut off (proc_pid_stat(5)).
        (fields[38].parse().unwrap(), fields[37].parse().unwrap())
    }

    /// Its nice value, field 19.
    fn nice() -> i32 {
        let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap().parse().unwrap()
    }

    #[test]
    fn a_preferred_thread_is_an_ordinary_one_in_front_and_its_children_are_not() {
        let (may, own, child) = std::thread::spawn(|| {
            let may = ThreadId::current().schedule(Policy::Preferred);
            (may, (scheduled().0, nice()), std::thread::spawn(nice).join().unwrap())
        })
        .join()
        .unwrap();
        assert_eq!((may.is_ok(), child), (Rights::of_this_process().has_sys_nice, 0));
        assert_eq!(own, (libc::SCHED_OTHER as u32, if may.is_ok() { NICE_FIRST } else { 0 }));
    }

    #[test]
    fn a_thread_may_stand_behind_others_without_any_right() {
        let own = std::thread::spawn(|| {
            ThreadId::current().schedule(Policy::Behind).unwrap();
            (scheduled().0, nice())
        });
        assert_eq!(own.join().unwrap(), (libc::SCHED_OTHER as u32, NICE_BEHIND));
    }

    #[test]
    fn a_thread_has_the_priority_that_it_is_given_and_its_children_have_none() {
        let (may, own, child) = std::thread::spawn(|| {
            let may = ThreadId::current().schedule(Policy::Fifo(7));
            let child = std::thread::spawn(scheduled).join().unwrap();
            let own = scheduled();
            ThreadId::current().schedule(Policy::Default).unwrap();
            assert_eq!(scheduled().0, libc::SCHED_OTHER as u32);
            (may, own, child)
        })
        .join()
        .unwrap();
        match may {
            Ok(()) => assert_eq!((own, child.0), ((libc::SCHED_FIFO as u32, 7), libc::SCHED_OTHER as u32)),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                assert!(!Rights::of_this_process().may_schedule(7));
            }
        }
    }

    #[test]
    fn a_thread_runs_where_it_is_pinned() {
        let core = *cores().unwrap().last().unwrap();
        let left = std::thread::spawn(move || {
            ThreadId::current().pin(&[core]).unwrap();
            cores().unwrap()
        });
        assert_eq!(left.join().unwrap(), [core]);
        assert!(ThreadId::current().pin(&[usize::MAX]).is_err());
    }

    #[test]
    fn a_right_is_a_bit_or_a_limit() {
        let rights = |bits, priority, bytes| {
            let rights = Rights::of(bits, priority, bytes);
            (rights.may_schedule(20), rights.may_lock_memory())
        };
        assert_eq!(rights(0x80_0000, 0, 0), (true, false));
        assert_eq!(rights(0x4000, 0, 0), (false, true));
        assert_eq!(rights(0, 19, 8 << 20), (false, false));
        assert_eq!(rights(0, 20, RLIM_INFINITY), (true, true));
    }

    #[test]
    fn the_kernel_tells_how_well_the_time_of_day_is_kept() {
        let told = TimeOfDay::read().unwrap();
        assert!(told.error_max_us >= told.error_estimated_us, "{told:?}");
        assert!((1..=100).contains(&real_time_percent()));
    }
}
