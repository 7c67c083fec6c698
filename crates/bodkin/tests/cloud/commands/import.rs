//! `bodkin db import-arrowhead`: what it says of a dump, and what a cloud then has. A real MariaDB's dump is among the peers.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use super::text;
use crate::support::arrowhead::{list, texts};
use crate::support::cloud::{BINARY, Launch};

const DUMP: &str = "INSERT INTO system_ (id, system_name, address, port) VALUES (12, 'sensor', '192.0.2.1', 9000), (13, 'bad_name', '192.0.2.2', 9000);\n\
    INSERT INTO choreographer_plan (id) VALUES (1);\n";

fn import(dump: &Path, data: &Path, flags: &[&str]) -> Output {
    Command::new(BINARY).args(["db", "import-arrowhead"]).arg(dump).arg("--data").arg(data).args(flags).output().expect("the binary starts")
}

#[test]
fn a_dump_is_told_row_by_row_and_taken_once() {
    let place = TempDir::new().expect("a temporary directory");
    let (dump, data) = (place.path().join("dump.sql"), place.path().join("data"));
    fs::write(&dump, DUMP).expect("a file");
    for (flags, end) in [(&["--dry-run"][..], "is as it was"), (&[], "is ready for: bodkin up --data")] {
        let output = import(&dump, &data, flags);
        let told = text(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        for part in ["system_  1", "system_    13  1", "'bad_name' has invalid format", "choreographer_plan (1)", end] {
            assert!(told.contains(part), "{part} is not in\n{told}");
        }
    }
    let cloud = Launch::new().data(&data).start();
    let systems = cloud.get("/serviceregistry/mgmt/systems").expect_status(200).json();
    let names = texts(list(&systems, "/data"), "/systemName");
    assert!(names.contains(&"sensor".to_owned()) && !names.contains(&"bad_name".to_owned()), "{names:?}");
    let refused = import(&dump, &data, &[]);
    assert!(refused.status.code() == Some(1) && text(&refused.stderr).contains("in use by another bodkin"), "{refused:?}");
    drop(cloud);
    let refused = import(&dump, &data, &[]);
    assert!(refused.status.code() == Some(1) && text(&refused.stderr).contains("--data"), "{refused:?}");
}

#[test]
fn what_is_no_dump_is_told_with_its_line() {
    let place = TempDir::new().expect("a temporary directory");
    let (dump, data) = (place.path().join("dump.sql"), place.path().join("data"));
    for (bytes, told) in
        [(&b"\nINSERT INTO system_ (id) VALUES (1"[..], "line 2"), (b"-- x\n\xff", "line 2"), (b"", "no rows of Arrowhead's tables")]
    {
        fs::write(&dump, bytes).expect("a file");
        let output = import(&dump, &data, &[]);
        assert!(output.status.code() == Some(1) && text(&output.stderr).contains(told), "{told}: {output:?}");
    }
    assert!(!data.exists());
}
