//! The audit logs of nodes that share a database: shown and verified at any node, also of one that is gone.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::postgres::server::{Server, eventually};
use crate::support::arrowhead::{list, texts};
use crate::support::cloud::{BINARY, Cloud, Launch, System};
use crate::support::conditions::assert_shown;
use crate::support::skip;

fn node(data: &Path, server: &Server) -> Cloud {
    Launch::new().data(data).env("BODKIN_DATABASE", &server.url()).start()
}

fn asked(cloud: &Cloud, target: &str) -> Value {
    cloud.connect(System::Monitor).request("GET", target, &[], None).expect("an answer").expect_status(200).json()
}

/// A change by management, which is in the log of the node that was asked.
fn change(cloud: &Cloud, name: &str) {
    let form = json!({"systemName": name, "address": "192.168.1.7", "port": 9});
    cloud.post("/serviceregistry/mgmt/systems", &form).expect_status(201);
}

/// How many changes of systems all logs tell of.
fn changes(cloud: &Cloud, node: &str) -> usize {
    let told = asked(cloud, &format!("/api/v1/audit?kind=change&node={node}"));
    texts(list(&told, "/data"), "/what").iter().filter(|what| what.contains("mgmt/systems")).count()
}

fn bodkin(line: &str, server: &Server) -> Output {
    Command::new(BINARY).args(line.split(' ')).env("BODKIN_DATABASE", server.url()).output().expect("the binary starts")
}

#[test]
#[ignore = "peer: ./x test --all"]
fn any_node_shows_and_verifies_what_all_were_asked() {
    let Some(server) = Server::start() else {
        return skip::note("any_node_shows_and_verifies_what_all_were_asked", "no PostgreSQL server");
    };
    let places = [(); 2].map(|()| TempDir::new().expect("a temporary directory"));
    let (one, two) = (node(places[0].path(), &server), node(places[1].path(), &server));
    change(&one, "gauge");
    change(&two, "sponge");
    change(&two, "sensor");
    for cloud in [&one, &two] {
        eventually(|| changes(cloud, "all") == 3, || cloud.stderr());
    }
    let name = std::fs::read_to_string(places[1].path().join("node")).expect("a name").trim().to_owned();
    assert_eq!(changes(&one, &name), 2);
    // Who is gone has left its log.
    two.kill();
    assert_eq!(changes(&one, &name), 2);
    let chains = |cloud: &Cloud| asked(cloud, "/api/v1/audit/chains");
    let told = chains(&one);
    assert!(
        list(&told, "/data").len() == 2 && list(&told, "/data").iter().all(|chain| chain["whole"] == true && chain["skipped"] == 0),
        "{told}"
    );
    let verified = bodkin("audit verify --all-nodes", &server);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    let tail = bodkin("audit tail --all-nodes --kind change -n 50", &server);
    let tail = String::from_utf8_lossy(&tail.stdout).into_owned();
    assert!(tail.contains(&format!("{name} ")) && tail.contains("sponge"), "{tail}");

    // What does not get through is told, and comes when it does.
    server.sql("cloud", "ALTER TABLE bodkin.audit_line RENAME TO elsewhere");
    change(&one, "pipe");
    assert_shown(one.address(System::Monitor), "BodkinAuditNotCopied");
    let status = || {
        let told = bodkin(&format!("status --monitor {}", one.address(System::Monitor)), &server);
        String::from_utf8_lossy(&told.stdout).into_owned()
    };
    server.sql("cloud", "ALTER TABLE bodkin.elsewhere RENAME TO audit_line");
    eventually(|| !status().contains("what this one's audit log says"), status);
    eventually(|| changes(&one, "all") == 4, || one.stderr());

    // It comes back, and its log goes on; one that is begun anew is another one.
    let two = node(places[1].path(), &server);
    change(&two, "valve");
    eventually(|| changes(&one, &name) == 3, || two.stderr());
    assert!(two.stop().success());
    eventually(|| list(&chains(&one), "/data").iter().all(|chain| chain["whole"] == true), || chains(&one).to_string());
    std::fs::remove_dir_all(places[1].path().join("audit")).expect("it is there");
    let two = node(places[1].path(), &server);
    change(&two, "pump");
    eventually(|| changes(&one, &name) == 1 && changes(&one, "all") == 6, || chains(&one).to_string());
    assert_eq!(list(&chains(&one), "/data").len(), 3);

    // Whoever changes a copy is found out.
    server.sql("cloud", &format!("UPDATE bodkin.audit_line SET line = replace(line, 'sponge', 'spange') WHERE node LIKE '{name}-%'"));
    let told = chains(&one);
    assert_eq!(list(&told, "/data").iter().filter(|chain| chain["whole"] == false).count(), 1, "{told}");
    let verified = bodkin("audit verify --all-nodes", &server);
    assert!(verified.status.code() == Some(1) && String::from_utf8_lossy(&verified.stderr).contains("was changed"), "{verified:?}");
}
