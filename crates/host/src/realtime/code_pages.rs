//! The program's own pages in memory: those that are used, and not their neighbours (decision 85).
//!
//! Where a thread comes to a page of a file for the first time the kernel maps the fifteen around it as well, or a whole piece of its file cache. Of a program of tens of megabytes that runs what it needs here and there
//! nearly all is in memory in the end, and stays where memory is locked. A mapping that is watched by a `userfaultfd` is mapped page by page (`mm/memory.c`, `should_fault_around`); nothing is ever asked of this one.
#![allow(unsafe_code)] // Three calls that no crate of ours has in a safe form; each says what makes it sound.

use std::{
    fs, io,
    ops::Range,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    path::Path,
    sync::OnceLock,
};

use nix::{errno::Errno, libc};

/// Of linux/userfaultfd.h: the interface's number, and what is asked of it: mappings of any file may be watched for writes, of which the kernel takes note by itself. Since Linux 6.7.
const UFFD_API: u64 = 0xAA;
const UFFD_FEATURE_WP_ASYNC: u64 = 1 << 15;
const UFFDIO_API: libc::c_ulong = 0xC018_AA3F;
const UFFDIO_REGISTER: libc::c_ulong = 0xC020_AA00;
const UFFDIO_REGISTER_MODE_WP: u64 = 1 << 1;
/// Faults of the kernel's own are none of ours to see, so that no right is needed.
const UFFD_USER_MODE_ONLY: libc::c_int = 1;

/// `struct uffdio_api`.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register`.
#[repr(C)]
struct Register {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

/// What watches, as long as the process is there.
static WATCH: OnceLock<OwnedFd> = OnceLock::new();

/// Has the kernel map the program's code and constants page by page from now on, each when it is used; gives how many bytes of addresses these are. To be called at the start of the process, before most of them are used.
/// Where the kernel does not do it (before Linux 6.7, without `userfaultfd`, or where a container denies it) more of the program is in memory, and nothing else differs.
pub fn map_code_by_page() -> io::Result<usize> {
    // SAFETY: the call takes numbers only.
    let number = Errno::result(unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC | UFFD_USER_MODE_ONLY) })?;
    let number = i32::try_from(number).map_err(|_| io::Error::other("a descriptor is a small number"))?;
    // SAFETY: the kernel has just opened it for this call, so that nobody else has it.
    let watch = unsafe { OwnedFd::from_raw_fd(number) };
    let mut api = Api { api: UFFD_API, features: UFFD_FEATURE_WP_ASYNC, ioctls: 0 };
    ask(&watch, UFFDIO_API, &mut api)?;
    let (program, maps) = (fs::read_link("/proc/self/exe")?, fs::read_to_string("/proc/self/maps")?);
    let mut bytes = 0;
    for Range { start, end } in mappings(&maps, &program) {
        let mut register = Register { start, len: end - start, mode: UFFDIO_REGISTER_MODE_WP, ioctls: 0 };
        ask(&watch, UFFDIO_REGISTER, &mut register)?;
        bytes += (end - start) as usize;
    }
    // Closed, it would watch nothing. A second one has found nothing left to watch.
    let _ = WATCH.set(watch);
    Ok(bytes)
}

/// Asks the kernel for something that it answers in the same place.
fn ask<T>(watch: &OwnedFd, what: libc::c_ulong, of: &mut T) -> io::Result<()> {
    // SAFETY: both questions are of the size that is in their numbers (24 and 32 bytes), and the kernel writes nothing else. What is watched is mapped as before: reading it needs nobody's answer, and it is not written.
    Ok(Errno::result(unsafe { libc::ioctl(watch.as_raw_fd(), what, std::ptr::from_mut(of)) }).map(drop)?)
}

/// The mappings of a file, of those in `/proc/PID/maps`, that nobody writes.
fn mappings(maps: &str, file: &Path) -> impl Iterator<Item = Range<u64>> {
    maps.lines().filter_map(move |line| {
        let mut words = line.split_ascii_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        // A path begins with the first slash, and may have spaces.
        let path = &line[line.find('/')?..];
        let (start, end) = range.split_once('-')?;
        let range = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
        (Path::new(path) == file && !rights.contains('w')).then_some(range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_writes_of_a_file_is_found() {
        let maps = "1000-2000 r--p 00000000 fd:01 7     /opt/my programs/it\n2000-4000 r-xp 00001000 fd:01 7     /opt/my programs/it\n\
            4000-5000 rw-p 00003000 fd:01 7     /opt/my programs/it\n6000-7000 r-xp 00000000 00:00 0     [vdso]\n7000-8000 r-xp 00000000 fd:01 9     /opt/my\nnonsense\n";
        let found: Vec<Range<u64>> = mappings(maps, Path::new("/opt/my programs/it")).collect();
        assert_eq!(found, [0x1000..0x2000, 0x2000..0x4000]);
    }

    /// The flags of the mapping that this code is in.
    fn own_flags() -> String {
        let (smaps, here) = (fs::read_to_string("/proc/self/smaps").expect("Linux tells"), own_flags as *const () as u64);
        let mut is_here = false;
        for line in smaps.lines() {
            let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
            if let Some((Ok(start), Ok(end))) = range.map(|(start, end)| (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16))) {
                is_here = (start..end).contains(&here);
            } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| is_here) {
                return flags.to_owned();
            }
        }
        panic!("the code is in a mapping");
    }

    #[test]
    fn the_kernel_watches_the_code_or_says_why_not() {
        match map_code_by_page() {
            Ok(bytes) => assert!(bytes > 0 && own_flags().split_ascii_whitespace().any(|flag| flag == "uw"), "{bytes}, {}", own_flags()),
            // Not built into the kernel, denied in a container, or older than what is asked for.
            Err(error) => assert!(matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EINVAL)), "{error}"),
        }
    }
}
