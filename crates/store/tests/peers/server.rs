//! A PostgreSQL server of a test's own, on a socket in a temporary directory; killed when dropped.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long the server may take to begin or to end.
const START_TIME_MAX: Duration = Duration::from_secs(120);
/// Who it runs as where the test is root's, which it refuses to be.
const USER: &str = "postgres";

/// Its socket, in its directory.
const SOCKET: &str = ".s.PGSQL.5432";
/// Longest path of a socket (unix(7)).
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// The server.
pub struct Server {
    programs: PathBuf,
    place: TempDir,
    /// What it is configured with beside what all are.
    settings: Vec<String>,
    child: Option<Child>,
}

impl Server {
    /// One with a new database; `None` where it is not installed, or cannot be made on this machine.
    pub fn start() -> Option<Self> {
        let programs = programs()?;
        let account = if is_root() { Some(account()?) } else { None };
        let folders = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into(), "/dev/shm".into()];
        let mut server = folders.iter().find_map(|folder| Self::made_in(folder, &programs, account))?;
        server.begin();
        server.sql("postgres", "CREATE DATABASE cloud");
        Some(server)
    }

    /// A standby of it, which runs, and follows for as long as both do.
    #[allow(dead_code, reason = "not every target that has this module does")]
    pub fn standby(&self) -> Self {
        let folder = self.place.path().parent().expect("it is in a folder");
        let (place, settings) = (Self::place_in(folder, is_root().then(account).flatten()).expect("a place as its own"), Vec::new());
        let mut standby = Self { programs: self.programs.clone(), place, settings, child: None };
        let mut copy = standby.command("pg_basebackup");
        copy.args(["--no-sync", "--checkpoint=fast", "--write-recovery-conf", "--wal-method=stream", "--username=bodkin", "-D"]);
        let copied = copy.arg(standby.data()).arg("-h").arg(self.place.path()).output().expect("pg_basebackup starts");
        assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
        standby.begin();
        standby
    }

    /// Asks a user for a password from then on, which is this one.
    #[allow(dead_code, reason = "not every target that has this module does")]
    pub fn asks_for_a_password_of(&self, user: &str, password: &str) {
        self.sql("postgres", &format!("SET password_encryption = 'scram-sha-256'; ALTER ROLE {user} PASSWORD '{password}'"));
        let file = self.data().join("pg_hba.conf");
        let others = fs::read_to_string(&file).expect("it is there");
        fs::write(&file, format!("local all {user} scram-sha-256\n{others}")).expect("it is written");
        assert_eq!(self.sql("postgres", "SELECT pg_reload_conf()"), "t");
    }

    /// Has a standby take over.
    #[allow(dead_code, reason = "not every target that has this module does")]
    pub fn promote(&self) {
        let promoted = self.command("pg_ctl").args(["promote", "-w", "-t", "60", "-D"]).arg(self.data()).output();
        assert!(promoted.expect("pg_ctl starts").status.success());
    }

    /// One that does not run yet; `None` where its user cannot go, as below a folder of root's, or its socket's path is too long.
    fn made_in(folder: &Path, programs: &Path, account: Option<(u32, u32)>) -> Option<Self> {
        let place = Self::place_in(folder, account)?;
        let server = Self { programs: programs.to_owned(), place, settings: Vec::new(), child: None };
        let mut initdb = server.command("initdb");
        initdb.args(["--no-sync", "--auth=trust", "--username=bodkin", "--encoding=UTF8", "-D"]).arg(server.data());
        let made = initdb.output().ok()?;
        if !made.status.success() {
            println!("no server in {}: {}", folder.display(), String::from_utf8_lossy(&made.stderr));
            return None;
        }
        Some(server)
    }

    /// A place for one; `None` where its user cannot go, or its socket's path is too long.
    fn place_in(folder: &Path, account: Option<(u32, u32)>) -> Option<TempDir> {
        let place = tempfile::Builder::new().prefix("pg").tempdir_in(folder).ok()?;
        if place.path().join(SOCKET).as_os_str().len() > SOCKET_PATH_BYTES_MAX {
            return None;
        }
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).ok()?;
        if let Some((user, group)) = account {
            chown(place.path(), Some(user), Some(group)).ok()?;
        }
        Some(place)
    }

    /// Starts it on the database that is there.
    pub fn begin(&mut self) {
        let log = fs::File::options().create(true).append(true).open(self.place.path().join("log")).expect("a file");
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.place.path());
        command.args(["-c", "listen_addresses=", "-c", "max_connections=60", "-c", "shared_buffers=16MB"]);
        command.args(self.settings.iter().flat_map(|setting| ["-c", setting.as_str()]));
        self.child = Some(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("postgres starts"));
        let ready = || self.client("postgres").args(["-c", "SELECT 1"]).output().is_ok_and(|output| output.status.success());
        eventually(ready, || fs::read_to_string(self.place.path().join("log")).unwrap_or_default());
    }

    /// Restarts it with these settings beside what all servers have.
    #[allow(dead_code, reason = "not every target that has this module does")]
    pub fn restart_with(&mut self, settings: &[String]) {
        self.crash();
        self.settings = settings.to_vec();
        self.begin();
    }

    /// Puts a file of its user's there, which nobody else reads; gives where.
    #[allow(dead_code, reason = "not every target that has this module does")]
    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.place.path().join(name);
        fs::write(&path, content).expect("a file is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("rights are set");
        if let Some((user, group)) = is_root().then(account).flatten() {
            chown(&path, Some(user), Some(group)).expect("it is its user's");
        }
        path
    }

    /// A command of the shell that restarts it, and ends when it serves again; from then on it is no child of this one's, and ends with its directory.
    #[allow(dead_code, reason = "not every target that has this module does")]
    pub fn restarting(&self) -> String {
        let Self { programs, place, .. } = self;
        let as_user = if is_root() { format!("setpriv --reuid={USER} --regid={USER} --init-groups ") } else { String::new() };
        let pg_ctl = format!("{as_user}{}", programs.join("pg_ctl").display());
        format!(
            "cd {} && {pg_ctl} restart -w -t 60 -m fast -D {} -l {}",
            place.path().display(),
            self.data().display(),
            place.path().join("restarted").display()
        )
    }

    /// Ends it at once, as a crash does.
    pub fn crash(&mut self) {
        let mut child = self.child.take().expect("it runs");
        // `pg_ctl stop -m immediate` waits until nothing of it is left.
        let stopped = self.command("pg_ctl").args(["stop", "-w", "-t", "60", "-m", "immediate", "-D"]).arg(self.data()).output();
        assert!(stopped.expect("pg_ctl starts").status.success());
        child.wait().expect("it has ended");
    }

    /// Runs statements.
    #[track_caller]
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let output = self.client(database).args(["-At", "-v", "ON_ERROR_STOP=1", "-c", sql]).output().expect("psql starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text").trim().to_owned()
    }

    /// Dumps a database as `pg_dump` does for an operator; returns the file.
    #[allow(dead_code, reason = "not every target that has this module does")]
    #[track_caller]
    pub fn dump(&self, database: &str) -> PathBuf {
        let file = self.place.path().join("dump");
        let mut command = self.command("pg_dump");
        command.args(["-Fc", "-U", "bodkin", "-p", self.port(), "-h"]).arg(self.place.path()).arg("-f").arg(&file).arg(database);
        let output = command.output().expect("pg_dump starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        file
    }

    /// Puts a dumped database back while it is used.
    #[allow(dead_code, reason = "not every target that has this module does")]
    #[track_caller]
    pub fn restore(&self, database: &str, dump: &Path) {
        let mut command = self.command("pg_restore");
        command.args(["--clean", "--if-exists", "--single-transaction", "-U", "bodkin", "-p", self.port(), "-h"]);
        let output = command.arg(self.place.path()).args(["-d", database]).arg(dump).output().expect("pg_restore starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Where a user finds a database of it.
    pub fn url_of(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@{}/{database}", self.place.path().display().to_string().replace('/', "%2F"))
    }

    /// Where its database is.
    pub fn url(&self) -> String {
        self.url_of("bodkin", "cloud")
    }

    /// Where its database is, or that of its standby once this one is gone.
    #[allow(dead_code, reason = "not every target that has this module does")]
    pub fn url_with(&self, standby: &Self) -> String {
        let encoded = |server: &Self| server.place.path().display().to_string().replace('/', "%2F");
        format!("postgres://bodkin@{},{}/cloud", encoded(self), encoded(standby))
    }

    fn client(&self, database: &str) -> Command {
        let mut command = Command::new(self.programs.join("psql"));
        command.env("PGCONNECT_TIMEOUT", "10").arg("-X").arg("-h").arg(self.place.path()).args(["-U", "bodkin", "-d", database]);
        command.args(["-p", self.port()]);
        command
    }

    /// What its socket is named by.
    fn port(&self) -> &str {
        self.settings.iter().find_map(|setting| setting.strip_prefix("port=")).unwrap_or("5432")
    }

    /// Its socket.
    #[allow(dead_code, reason = "not every target that has this module does")]
    pub fn socket(&self) -> PathBuf {
        self.place.path().join(format!(".s.PGSQL.{}", self.port()))
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// A program of the server's, as its user; it ends with this test however that ends.
    fn command(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).current_dir(self.place.path());
        if is_root() {
            command.args([format!("--reuid={USER}"), format!("--regid={USER}"), "--init-groups".to_owned()]);
        }
        command.arg(program);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Somebody else may have started it anew.
        let _ = self.command("pg_ctl").args(["stop", "-t", "10", "-m", "immediate", "-D"]).arg(self.data()).output();
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until `is_so`, and no longer than [`START_TIME_MAX`].
#[track_caller]
pub fn eventually(mut is_so: impl FnMut() -> bool, why_not: impl Fn() -> String) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < START_TIME_MAX, "{}", why_not());
        sleep(Duration::from_millis(20));
    }
}

/// The newest that Debian has installed.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin"))).filter(|folder| folder.join("postgres").exists());
    folders.max()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Numbers of the server's user and group.
fn account() -> Option<(u32, u32)> {
    let accounts = fs::read_to_string("/etc/passwd").ok()?;
    let fields = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == USER)?;
    Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
}
