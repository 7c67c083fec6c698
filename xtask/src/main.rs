//! Checks of the tree that cargo does not make: `cargo xtask imports`, `cargo xtask licences`, `cargo xtask tree`.
//!
//! And `cargo xtask reference`, which writes `docs/reference` anew; `cargo xtask sbom`, which prints what is inside the binary; `cargo xtask notices`, which prints the licences of that.
//!
//! And `cargo xtask assertions`, which lists the assertions behind the pair's promises with their reasons.
//!
//! And `cargo xtask mutants [WORDS]`, which breaks each promise-keeping line in turn and simulates until a promise breaks.
//!
//! Each check is a pure function from what was read to the violations it found; only `workspace` and `tree::read` touch
//! the machine. `./x test` runs all three.

mod assertions;
mod boundaries;
mod imports;
mod licence;
mod links;
mod mutants;
mod notices;
mod sbom;
mod tree;
mod workspace;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use assertions::Assertion;
use workspace::Workspace;

const USAGE: &str = "cargo xtask imports|licences|tree|assertions|reference|sbom|notices|mutants [WORDS]";

/// Exit code of a call that names no check.
const EXIT_USAGE: u8 = 2;

fn main() -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let violations = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["imports"] => imports::violations(&Workspace::read(root)?),
        ["licences"] => licence::violations(&Workspace::read(root)?),
        ["tree"] => {
            let files = tree::read(root)?;
            let lost = links::violations(&files, |path| root.join(path).exists());
            let lists = boundaries::violations(&files);
            tree::violations(&files).into_iter().chain(lost).chain(assertions::violations(&files)).chain(lists).collect()
        }
        ["assertions"] => {
            for Assertion { place, reason } in assertions::assertions(&tree::read(root)?) {
                println!("{place}: {}", reason.unwrap_or_default());
            }
            return Ok(ExitCode::SUCCESS);
        }
        ["mutants"] => mutants::survivors(root, "")?,
        ["mutants", filter] => mutants::survivors(root, filter)?,
        ["reference"] => return reference(root),
        ["sbom"] => {
            println!("{:#}", sbom(root)?);
            return Ok(ExitCode::SUCCESS);
        }
        ["notices"] => {
            print!("{}", notices(root)?);
            return Ok(ExitCode::SUCCESS);
        }
        _ => {
            eprintln!("{USAGE}");
            return Ok(ExitCode::from(EXIT_USAGE));
        }
    };
    for violation in &violations {
        println!("{violation}");
    }
    Ok(if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes `docs/reference` out of the binary: the tests that hold it against the binary write it where they are told to.
fn reference(root: &Path) -> Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut tests = Command::new(cargo);
    tests.args(["test", "--quiet", "--locked", "--package", "bodkin", "--test", "cloud", "reference::"]);
    let status = tests.current_dir(root).env("BODKIN_WRITE_REFERENCE", "1").status().context("cargo is started")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is inside the binary, as CycloneDX.
fn sbom(root: &Path) -> Result<serde_json::Value> {
    let read = |name: &str| std::fs::read_to_string(root.join(name)).with_context(|| format!("{name} is read"));
    let (lock, dashboard, dashboard_lock) = (read("Cargo.lock")?, read("web/dist/licences.txt")?, read("web/package-lock.json")?);
    let sources = sbom::Sources { lock: &lock, dashboard: &dashboard, dashboard_lock: &dashboard_lock };
    sbom::document(&Workspace::read(root)?, &sources)
}

/// The licences of what is inside the binary, with their texts.
fn notices(root: &Path) -> Result<String> {
    let parts = notices::parts(&sbom(root)?, &notices::folders(&workspace::metadata(root)?)?)?;
    let dashboard = std::fs::read_to_string(root.join("web/dist/licences.txt")).context("web/dist/licences.txt is read")?;
    Ok(notices::document(&parts, &dashboard))
}
