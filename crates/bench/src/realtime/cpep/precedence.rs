//! Whether suppliers and consumers go in front of the service's threads, as if they had machines of their own: then a result that is there waits for no thread of the service, and the time of a result is the
//! service's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use crate::options::Precedence;
use crate::realtime::peer::find;

/// In front of all real-time threads of Bodkin's (20 at the most), and behind the kernel's own for interrupts (from 50 on).
const PRIORITY: u8 = 30;

/// Starts programs as real-time threads, by `chrt` of util-linux.
#[derive(Debug, Clone)]
pub struct InFront {
    chrt: PathBuf,
}

impl InFront {
    /// What was asked, where it can be had; otherwise why not.
    pub fn of(asked: Precedence) -> anyhow::Result<Option<Self>> {
        match asked {
            Precedence::Beside => Ok(None),
            Precedence::First => Self::new().map(Some),
        }
    }

    fn new() -> anyhow::Result<Self> {
        let in_front = Self { chrt: find("chrt")? };
        let tried = in_front.command(Path::new("true")).stdin(Stdio::null()).output().context("cannot start chrt")?;
        let told = String::from_utf8_lossy(&tried.stderr);
        ensure!(tried.status.success(), "the system refuses real-time threads: {}", told.lines().next().unwrap_or_default());
        Ok(in_front)
    }

    /// This program as a real-time thread.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(&self.chrt);
        command.args(["--fifo", &PRIORITY.to_string()]).arg(program);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_put_in_front_is_a_real_time_thread() {
        assert!(matches!(InFront::of(Precedence::Beside), Ok(None)));
        // Not every machine has the right.
        let Ok(Some(in_front)) = InFront::of(Precedence::First) else { return };
        let stat = in_front.command(Path::new("cat")).arg("/proc/self/stat").output().expect("it starts");
        // Fields 40 and 41 are the priority and the policy, counted behind the name.
        let stat = String::from_utf8(stat.stdout).expect("a text");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split_whitespace().collect();
        assert_eq!(fields[37..39], ["30", "1"], "{stat}");
    }
}
