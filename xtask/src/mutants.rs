//! Mutants of the promise-keeping lines: each is applied to a copy of the tree, and a seed has to break a promise: of a whole cloud, of an election, or of a leader's
//! shard beside its Backup.
//!
//! `crates/simulator/mutants.txt` lists them. A mutant that survives is a fault of the simulator.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

/// The list, from the root of the workspace.
pub const LIST: &str = "crates/simulator/mutants.txt";
const SOURCES: &str = "crates/broker/src";
/// Clouds that are simulated for each mutant. The first violation ends a campaign, so that most take a few.
const CLOUDS: u32 = 1000;
/// The broker's tests that draw schedules: of elections, of a leader's shard beside its Backup, and of publishers that restart, at the shard and at a subscriber.
const SCHEDULES: [&str; 4] = ["member::schedule", "shard::tests::pair", "shard::tests::slots", "subscriber::tests::schedule"];
/// A mutant that simulates for more processor time hangs, which counts as found.
const RUN_MAX: Duration = Duration::from_secs(180);

/// One change that must break a promise.
#[derive(Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The file, below [`SOURCES`].
    path: String,
    /// What breaks.
    what: String,
    /// Which other line keeps the promise, if one does: then nothing is found.
    covered_by: Option<String>,
    before: String,
    after: String,
}

/// Reads the list.
///
/// # Errors
/// Returns the line that is neither a comment, a head (`@ FILE WHAT`), what covers it (`= REASON`), nor a line of a change.
pub fn parse(text: &str) -> Result<Vec<Mutant>> {
    let mut mutants: Vec<Mutant> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("@ ") {
            let (path, what) = head.split_once(' ').with_context(|| format!("a file and what breaks are expected: {line}"))?;
            let (path, what) = (path.to_owned(), what.to_owned());
            mutants.push(Mutant { path, what, covered_by: None, before: String::new(), after: String::new() });
            continue;
        }
        let mutant = mutants.last_mut().with_context(|| format!("a head is expected first: {line}"))?;
        if let Some(reason) = line.strip_prefix("= ") {
            mutant.covered_by = Some(reason.to_owned());
            continue;
        }
        let (text, line) = match line.split_at_checked(1) {
            Some(("-", line)) => (&mut mutant.before, line),
            Some(("+", line)) => (&mut mutant.after, line),
            _ => bail!("a change begins with - or +: {line}"),
        };
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(line);
    }
    Ok(mutants)
}

impl Mutant {
    /// Returns a file's text with the change.
    fn applied(&self, text: &str) -> Result<String> {
        let found = text.matches(&self.before).count();
        ensure!(found == 1, "{}: {:?} is there {found} times, and once is expected: {}", self.path, self.before, self.what);
        Ok(text.replacen(&self.before, &self.after, 1))
    }
}

/// Applies each mutant whose description contains one of `filters`, separated by `|`, and simulates; returns those that survive.
pub fn survivors(root: &Path, filters: &str) -> Result<Vec<String>> {
    let mutants = parse(&fs::read_to_string(root.join(LIST))?)?;
    let tree = root.join("target/mutants/tree");
    copy(root, &tree)?;
    if let Some(how) = simulate(root, &tree)? {
        bail!("a cloud without any mutant breaks a promise, so nothing would survive: {how}");
    }
    let mut survivors = Vec::new();
    for mutant in mutants.iter().filter(|mutant| filters.split('|').any(|filter| mutant.what.contains(filter))) {
        let path = tree.join(SOURCES).join(&mutant.path);
        let original = fs::read_to_string(&path).with_context(|| mutant.path.clone())?;
        fs::write(&path, mutant.applied(&original)?)?;
        let found = simulate(root, &tree);
        fs::write(&path, original)?;
        match (found.with_context(|| mutant.what.clone())?, &mutant.covered_by) {
            (Some(how), _) => println!("found     {}: {how}", mutant.what),
            (None, Some(reason)) => println!("covered   {}: {reason}", mutant.what),
            (None, None) => {
                println!("SURVIVED  {}", mutant.what);
                survivors.push(mutant.what.clone());
            }
        }
    }
    Ok(survivors)
}

/// Copies what git knows of the tree, as it is on the disk.
fn copy(root: &Path, tree: &Path) -> Result<()> {
    if tree.exists() {
        fs::remove_dir_all(tree)?;
    }
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--", "Cargo.toml", "Cargo.lock", "crates", "vectors", "xtask"])
        .current_dir(root)
        .output()?;
    ensure!(listed.status.success(), "git does not list the tree");
    for name in String::from_utf8(listed.stdout)?.split('\0').filter(|name| !name.is_empty()) {
        let to = tree.join(name);
        fs::create_dir_all(to.parent().context("a file is in a directory")?)?;
        fs::copy(root.join(name), to).with_context(|| name.to_owned())?;
    }
    Ok(())
}

/// Simulates what is in the tree; returns how the mutant was found, if it was. Clouds have one fault at a time; schedules have many, of one part of the pair.
fn simulate(root: &Path, tree: &Path) -> Result<Option<String>> {
    let target = root.join("target/mutants/build");
    let clouds = built(tree, &target, &["build", "--package", "bodkin-simulator", "--example", "campaign"])?;
    if let Some(how) = run(Command::new(&clouds).arg(CLOUDS.to_string()))? {
        return Ok(Some(how));
    }
    let schedules = built(tree, &target, &["test", "--no-run", "--package", "bodkin-broker", "--lib"])?;
    Ok(run(Command::new(&schedules).args(SCHEDULES))?.map(|how| format!("a schedule: {how}")))
}

/// Builds a program of the tree; returns where it is.
fn built(tree: &Path, target: &Path, arguments: &[&str]) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(arguments)
        .args(["--quiet", "--locked", "--release", "--message-format", "json"])
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", target)
        .env("RUSTFLAGS", "-Awarnings")
        // Each mutant changes one file.
        .envs([("CARGO_INCREMENTAL", "1"), ("CARGO_PROFILE_RELEASE_LTO", "off"), ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "64")])
        .output()?;
    ensure!(output.status.success(), "the mutant does not build: {}", String::from_utf8_lossy(&output.stderr));
    let executable = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?["executable"].as_str().map(PathBuf::from);
    String::from_utf8_lossy(&output.stdout).lines().rev().find_map(executable).context("a program is built")
}

/// Runs a simulation; returns the promise that it found broken, if it did.
fn run(command: &mut Command) -> Result<Option<String>> {
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("the simulation starts")?;
    while running.try_wait()?.is_none() {
        if processor_time(running.id()) >= RUN_MAX {
            running.kill()?;
            running.wait()?;
            return Ok(Some(format!("it hangs for {RUN_MAX:?}")));
        }
        thread::sleep(Duration::from_millis(50));
    }
    let output = running.wait_with_output()?;
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    let mut lines = told.lines().filter(|line| !line.is_empty());
    let found = lines.clone().find(|line| line.contains("seed ")).or_else(|| lines.clone().find(|line| line.contains("panicked at")));
    let found = found.or_else(|| lines.next());
    Ok((!output.status.success()).then(|| found.unwrap_or("it ends without a word").to_owned()))
}

/// Returns the processor time that a process has used, as Linux tells it; nothing if it has ended.
fn processor_time(process: u32) -> Duration {
    let told = fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap_or_default();
    Duration::from_nanos(told.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_has_forty_mutants_that_apply() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
        let mutants = parse(&fs::read_to_string(root.join(LIST)).expect("the list is there")).expect("it is a list");
        assert!(mutants.len() >= 40, "{} mutants", mutants.len());
        for mutant in mutants {
            let text = fs::read_to_string(root.join(SOURCES).join(&mutant.path)).expect("its file is there");
            let applied = mutant.applied(&text).expect("a mutant of the list applies");
            assert_ne!(applied, text, "{}", mutant.what);
        }
    }

    #[test]
    fn change_without_head_is_refused() {
        assert!(parse("-old").is_err());
        assert!(parse("@ file").is_err());
        let (path, what, covered_by) = ("a.rs".into(), "x: y".into(), Some("z".into()));
        let whole = Mutant { path, what, covered_by, before: "  b\nc".into(), after: String::new() };
        assert_eq!(parse("# note\n\n@ a.rs x: y\n= z\n-  b\n-c\n").unwrap(), [whole]);
    }
}
