//! PostgreSQL server of a campaign on a port of this machine, whose processes are killed all at once.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};
use tempfile::TempDir;

use super::tls::{Tls, copy_for};
use crate::ports::held_port;

/// Where Debian has a directory of programs for each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// User of the server where the bench is root's: PostgreSQL refuses root.
const USER: &str = "postgres";
/// Longest wait until the server answers.
const WAIT_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A server with the database `cloud`; killed when dropped.
pub struct Postgres {
    programs: PathBuf,
    place: TempDir,
    port: u16,
    /// Settings of the server besides those of every campaign.
    settings: Vec<String>,
    child: Option<Child>,
}

impl Postgres {
    /// Makes a server of the programs in this directory, and starts it. With `tls` it accepts clients with a certificate only.
    ///
    /// # Errors
    /// Returns an error if there are no programs, or the server does not start.
    pub fn start(programs: Option<&Path>, tls: Option<&Tls>) -> anyhow::Result<Self> {
        let programs = programs.map_or_else(newest, |programs| Ok(programs.to_owned()))?;
        let place = tempfile::Builder::new().prefix("bodkin-outage-pg-").tempdir()?;
        // The server's user has to reach its directory.
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755))?;
        let user = if geteuid().is_root() {
            Some(User::from_name(USER)?.context("there is no user postgres, as whom root starts PostgreSQL")?)
        } else {
            None
        };
        if let Some(user) = &user {
            chown(place.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
        }
        let settings = tls.map_or_else(|| Ok(Vec::new()), |tls| in_tls(tls, user.as_ref(), place.path()))?;
        let mut server = Self { programs, place, port: held_port()?, settings, child: None };
        let mut initdb = server.command("initdb");
        initdb.args(["--no-sync", "--auth=trust", "--username=bodkin", "--encoding=UTF8", "-D"]);
        let made = initdb.arg(server.data()).output().context("cannot start initdb")?;
        ensure!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr).trim());
        server.begin()?;
        let begin = Instant::now();
        while !server.answers() {
            ensure!(begin.elapsed() < WAIT_MAX, "PostgreSQL does not answer within {} s", WAIT_MAX.as_secs());
            thread::sleep(LOOK_EVERY);
        }
        server.sql("CREATE DATABASE cloud")?;
        Ok(server)
    }

    /// Starts the server on the database that is there, and does not wait for it.
    ///
    /// # Errors
    /// Returns an error if the program does not start.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        let log = fs::File::options().create(true).append(true).open(self.log()).context("cannot write PostgreSQL's log")?;
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.place.path());
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", &format!("port={}", self.port)]);
        // Processes are killed, and no power is lost: what the kernel has is kept.
        command.args(["-c", "max_connections=60", "-c", "shared_buffers=16MB", "-c", "fsync=off"]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        self.child = Some(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().context("cannot start postgres")?);
        Ok(())
    }

    /// Kills every process of the server.
    ///
    /// # Errors
    /// Returns an error if the server does not run.
    pub fn crash(&mut self) -> anyhow::Result<()> {
        let mut child = self.child.take().context("PostgreSQL does not run")?;
        let server = i32::try_from(child.id())?;
        // The server's processes are sessions of their own, so there is no group to kill.
        let processes = children_of(server);
        for process in [server].into_iter().chain(processes) {
            // A process may have ended meanwhile.
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
        child.wait()?;
        Ok(())
    }

    /// Starts the server again if it has ended: one that is started while processes of a killed one end is refused.
    ///
    /// # Errors
    /// Returns an error if the program does not start.
    pub fn revive(&mut self) -> anyhow::Result<()> {
        let has_ended = self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)));
        if has_ended { self.begin() } else { Ok(()) }
    }

    /// Returns true if the server answers a query.
    pub fn answers(&self) -> bool {
        self.sql("SELECT 1").is_ok()
    }

    /// Returns the server's port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the file of the server's log.
    pub fn log(&self) -> PathBuf {
        self.place.path().join("postgres.log")
    }

    fn sql(&self, statement: &str) -> anyhow::Result<()> {
        let mut command = Command::new(self.programs.join("psql"));
        command.env("PGCONNECT_TIMEOUT", "5").args(["-X", "-q", "-U", "bodkin", "-p", &self.port.to_string(), "-h"]);
        let output = command
            .arg(self.place.path())
            .args(["-d", "postgres", "-c", statement])
            .stdin(Stdio::null())
            .output()
            .context("cannot start psql")?;
        ensure!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// Returns a program of the server's, as its user.
    fn command(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        let mut command = if geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args([format!("--reuid={USER}"), format!("--regid={USER}"), "--init-groups".to_owned()]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir(self.place.path());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // It fails only if the server does not run.
        let _ = self.crash();
    }
}

/// Settings of a server in TLS, whose files are in `place`. Its socket there takes this machine's users without a certificate.
fn in_tls(tls: &Tls, user: Option<&User>, place: &Path) -> anyhow::Result<Vec<String>> {
    let write = |name: &str, text: &str| {
        let path = place.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        anyhow::Ok(path)
    };
    let access = write("access", "local all all trust\nhostssl all all 127.0.0.1/32 cert map=members\n")?;
    let users = write("users", "members /^.*$ bodkin\n")?;
    let [certificate, key] = tls.server_files();
    let files = [
        ("ssl_cert_file", copy_for(user, &certificate, place)?),
        ("ssl_key_file", copy_for(user, &key, place)?),
        ("ssl_ca_file", copy_for(user, &tls.trust_file(), place)?),
        ("hba_file", access),
        ("ident_file", users),
    ];
    let files = files.into_iter().map(|(name, path)| format!("{name}={}", path.display()));
    Ok(files.chain(["ssl=on".to_owned()]).collect())
}

fn newest() -> anyhow::Result<PathBuf> {
    let versions = fs::read_dir(VERSIONS).with_context(|| format!("no PostgreSQL in {VERSIONS}: name its programs by --postgres"))?;
    let folders = versions.flatten().map(|entry| entry.path().join("bin")).filter(|folder| folder.join("postgres").exists());
    match folders.max() {
        Some(folder) => Ok(folder),
        None => bail!("no PostgreSQL in {VERSIONS}: name its programs by --postgres"),
    }
}

/// Returns the processes whose parent is this one.
fn children_of(parent: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let processes = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |process: &i32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name in parentheses may have spaces; state and parent follow it.
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok()) == Some(parent)
    };
    processes.filter(is_child).collect()
}
