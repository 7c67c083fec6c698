//! The limit of open files, which many connections need raised.

use anyhow::{Context, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files that a process needs besides its connections.
const BESIDE: u64 = 64;

/// Allows this process so many connections.
///
/// # Errors
/// The system's limit is lower.
pub fn allow(connections: usize) -> anyhow::Result<()> {
    let needed = connections as u64 + BESIDE;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < needed {
        ensure!(hard >= needed, "{needed} open files are needed and {hard} allowed: raise the limit (ulimit -n)");
        setrlimit(Resource::RLIMIT_NOFILE, needed, hard).context("cannot raise the limit of open files")?;
    }
    Ok(())
}
