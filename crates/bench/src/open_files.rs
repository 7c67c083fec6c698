//! The limit of open files, which many connections need raised.

use anyhow::{Context, bail};
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

/// Files that a process needs besides its connections.
const OTHER_FILES: rlim_t = 128;

/// Raises the number of files that this process and its children may open, as far as so many connections need.
///
/// # Errors
/// The system allows fewer.
pub fn allow(connections: usize) -> anyhow::Result<()> {
    let needed = rlim_t::try_from(connections).context("more connections than there can be files")? + OTHER_FILES;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft >= needed {
        return Ok(());
    }
    // Above the hard limit only with the right to raise it.
    if setrlimit(Resource::RLIMIT_NOFILE, needed.max(hard), needed.max(hard)).is_err() {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).context("cannot raise the limit of open files")?;
    }
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < needed {
        bail!("{connections} connections need {needed} open files and the system allows {soft} (raise it with `ulimit -Hn`)");
    }
    Ok(())
}
