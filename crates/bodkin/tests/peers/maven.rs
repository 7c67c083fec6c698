//! Java programs that are built by Maven, with the libraries that their `pom.xml` names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a readable folder") {
        let entry = entry.expect("a readable folder");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(&from, &to).expect("a file of the project is copied");
        }
    }
}

/// Compiles the project of this name beside this file in `place`; gives its class path, or why there is none.
pub fn build(name: &str, place: &Path) -> Result<String, String> {
    build_with(name, &[], place)
}

/// The same with the sources of these folders.
pub fn build_with(name: &str, shared: &[&str], place: &Path) -> Result<String, String> {
    let project = place.join(name);
    let peers = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/peers");
    for part in shared.iter().chain([&name]) {
        copy(&peers.join(part), &project);
    }
    let goals = ["--quiet", "--batch-mode", "compile", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"];
    let built = Command::new("mvn").args(goals).current_dir(&project).output().map_err(|_| "no Maven is installed".to_owned())?;
    if !built.status.success() {
        let told = String::from_utf8_lossy(&built.stdout).into_owned() + &String::from_utf8_lossy(&built.stderr);
        let is_offline = ["Unknown host", "UnresolvedAddress", "Network is unreachable"].iter().any(|cause| told.contains(cause));
        return if is_offline { Err("Maven reaches no registry".to_owned()) } else { panic!("{name} is not built: {told}") };
    }
    Ok(format!("{}:{}/*", project.join("target/classes").display(), project.join("target/dependency").display()))
}
