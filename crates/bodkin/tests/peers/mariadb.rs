//! A real MariaDB with the tables of the Java systems, dumped by its own tool and taken over by `bodkin db import-arrowhead`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::arrowhead::list;
use crate::support::cloud::{BINARY, Launch};
use crate::support::patience::eventually;
use crate::support::skip;

const TEST: &str = "a_registry_comes_from_a_real_mariadb";
/// Columns as the Java systems have them, and rows with what a dump has to escape.
const TABLES: &str = include_str!("mariadb/arrowhead.sql");
/// Says how a dump is made.
const PAGE: &str = include_str!("../../../../docs/how-to/move-from-java.md");

/// The server, on a socket of its own; killed when dropped.
struct Server {
    child: Child,
    place: TempDir,
}

/// Where Debian has it: servers are in no user's PATH.
fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&paths).chain(["/usr/sbin".into(), "/usr/bin".into()]);
    folders.map(|folder| folder.join(name)).find(|path| path.exists())
}

#[track_caller]
fn good(output: Output) -> Vec<u8> {
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    output.stdout
}

impl Server {
    /// One with a new database; nothing where it is not installed.
    fn start() -> Option<Self> {
        let (install, server) = (program("mariadb-install-db")?, program("mariadbd")?);
        let place = TempDir::new().expect("a temporary directory");
        let data = place.path().join("data");
        // It runs as root only where it is told to.
        let of_root = (fs::metadata(place.path()).expect("it is there").uid() == 0).then_some("--user=root");
        let installed = Command::new(install)
            .arg("--no-defaults")
            .arg(format!("--datadir={}", data.display()))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(of_root)
            .output();
        good(installed.expect("it starts"));
        let log = fs::File::create(place.path().join("log")).expect("a file");
        let child = Command::new(server)
            .args(["--no-defaults", "--skip-networking", "--innodb-buffer-pool-size=16M"])
            .arg(format!("--datadir={}", data.display()))
            .arg(format!("--socket={}", place.path().join("socket").display()))
            .arg(format!("--pid-file={}", place.path().join("pid").display()))
            .args(of_root)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("it starts");
        let server = Self { child, place };
        let is_there =
            eventually(|| server.client("mariadb").args(["--execute", "SELECT 1"]).output().is_ok_and(|output| output.status.success()));
        assert!(is_there, "{}", fs::read_to_string(server.place.path().join("log")).unwrap_or_default());
        Some(server)
    }

    /// A client's program, which is to speak to this server.
    fn client(&self, name: &str) -> Command {
        let mut command = Command::new(program(name).unwrap_or_else(|| name.into()));
        command.arg("--no-defaults").arg(format!("--socket={}", self.place.path().join("socket").display())).arg("--user=root");
        command
    }

    fn execute(&self, sql: &str) {
        let mut client = self
            .client("mariadb")
            .arg("--default-character-set=utf8mb4")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        client.stdin.take().expect("it is piped").write_all(sql.as_bytes()).expect("it reads");
        good(client.wait_with_output().expect("it ends"));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn import(dump: &Path, data: &Path) -> Value {
    let output = Command::new(BINARY).args(["--output", "json", "db", "import-arrowhead"]).arg(dump).arg("--data").arg(data).output();
    serde_json::from_slice(&good(output.expect("the binary starts"))).expect("JSON")
}

/// The options of the page's own command; who asks, and with which password, is the test's affair.
fn options_of_the_page() -> Vec<&'static str> {
    let command = PAGE.lines().find_map(|line| line.strip_prefix("mysqldump --user root --password ")).expect("the page makes a dump");
    let (options, _) = command.split_once(" arrowhead > arrowhead.sql").expect("of the database that the Java systems have");
    options.split(' ').collect()
}

#[test]
#[ignore = "peer: ./x test --all"]
fn a_registry_comes_from_a_real_mariadb() {
    let Some(server) = Server::start() else {
        return skip::note(TEST, "no MariaDB is installed (Debian: mariadb-server-core, mariadb-client)");
    };
    server.execute(TABLES);
    let complete = ["--default-character-set=utf8mb4", "--complete-insert", "--skip-extended-insert", "--hex-blob"];
    for (name, options) in [("page.sql", options_of_the_page()), ("complete.sql", complete.to_vec())] {
        let dumped = server.client("mariadb-dump").args(options).arg("arrowhead").output();
        let dump = server.place.path().join(name);
        fs::write(&dump, good(dumped.expect("it starts"))).expect("a file");
        let data = server.place.path().join(format!("{name}.data"));
        let imported = import(&dump, &data);
        assert_eq!(imported["refused"], json!([]), "{name}");
        assert_eq!(imported["left"], json!({"choreographer_plan": 1}), "{name}");
        let cloud = Launch::new().data(&data).flags(["--adopt-data"]).start();
        let systems = cloud.get("/serviceregistry/mgmt/systems").expect_status(200).json();
        let sensor = list(&systems, "/data").iter().find(|system| system["systemName"] == "sensor").expect("it is taken");
        let metadata = json!({"note": "it's \"so\", a=b\\c\n\u{fc}", "room": "7"});
        assert_eq!(
            (&sensor["id"], &sensor["metadata"], &sensor["createdAt"]),
            (&json!(41), &metadata, &json!("2020-01-02T03:04:05Z")),
            "{name}"
        );
        let services = cloud.get("/serviceregistry/mgmt/servicedef/temperature").expect_status(200).json();
        let entry = &services["data"][0];
        assert_eq!(
            (&entry["id"], &entry["version"], &entry["serviceUri"]),
            (&json!(70), &json!(3), &json!("/t?a='b'")),
            "{name}: {services}"
        );
        let rules = cloud.get("/authorization/mgmt/intracloud").expect_status(200).json();
        assert_eq!(
            (&rules["data"][0]["id"], &rules["data"][0]["consumerSystem"]["systemName"]),
            (&json!(90), &json!("display")),
            "{name}: {rules}"
        );
        let store = cloud.get("/orchestrator/mgmt/store").expect_status(200).json();
        let priorities: Vec<(&Value, &Value)> = list(&store, "/data").iter().map(|entry| (&entry["id"], &entry["priority"])).collect();
        assert_eq!(priorities, [(&json!(110), &json!(2)), (&json!(111), &json!(1))], "{name}: {store}");
        let subscriptions = cloud.get("/eventhandler/mgmt/subscriptions").expect_status(200).json();
        let subscription = &subscriptions["data"][0];
        assert_eq!(
            (&subscription["id"], &subscription["notifyUri"], &subscription["sources"][0]["systemName"]),
            (&json!(130), &json!("/hot"), &json!("sensor")),
            "{name}: {subscriptions}"
        );
        drop(cloud);
    }
}
