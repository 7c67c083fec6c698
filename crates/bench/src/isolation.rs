//! Namespaces of the system for experiments that mount disks.
//!
//! [`rerun`] runs the whole bench in a mount namespace and a process namespace of its own. A signal that ends the bench, SIGKILL
//! included, ends every process in them, and the system then unmounts the disks.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use anyhow::Context;

/// Kills the command that follows when the thread that started it ends. That thread waits for the command, so it ends early only
/// with the bench.
const BOUND_TO_BENCH: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];
/// Runs the command that follows as process 1 of new mount and process namespaces. When it ends, so does every process in them.
const ISOLATED: [&str; 6] = ["unshare", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"];
/// Number of the process inside.
const FIRST_PROCESS: u32 = 1;
/// Exit code of a process that a signal ended, minus the signal's number: the convention of shells.
const SIGNAL_CODE: i32 = 128;

/// Runs this program again with its arguments, in namespaces of its own. Returns its exit code, or `None` if this process is in
/// them already, or the system makes none for this user, who can then mount no disks either.
///
/// Blocks until the program has ended.
///
/// # Errors
/// Returns an error if the program cannot be started.
pub fn rerun() -> anyhow::Result<Option<u8>> {
    if std::process::id() == FIRST_PROCESS || !is_possible()? {
        return Ok(None);
    }
    let program = std::env::current_exe().context("cannot tell the path of this program")?;
    let status =
        isolated().arg(program).args(std::env::args_os().skip(1)).status().context("cannot start the bench in namespaces of its own")?;
    let code = status.code().or_else(|| status.signal().map(|signal| SIGNAL_CODE + signal));
    Ok(Some(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)))
}

fn isolated() -> Command {
    let mut command = Command::new(BOUND_TO_BENCH[0]);
    command.args(&BOUND_TO_BENCH[1..]).args(ISOLATED);
    command
}

/// Returns true if the system makes the namespaces for this user.
fn is_possible() -> anyhow::Result<bool> {
    let tried = isolated().arg("true").stdin(Stdio::null()).output();
    match tried {
        Ok(output) if output.status.success() => Ok(true),
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            eprintln!("the system makes no namespaces: {why}; if the bench is ended by a signal, unmount its disks by hand");
            Ok(false)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("`setpriv` of util-linux is missing; if the bench is ended by a signal, unmount its disks by hand");
            Ok(false)
        }
        Err(error) => Err(error).context("cannot run `setpriv`"),
    }
}
