//! Checks of the tree that cargo does not make: `cargo xtask imports`, `cargo xtask licences`, `cargo xtask tree`.
//!
//! Each check is a pure function from what was read to the violations it found; only `workspace` and `tree::read` touch
//! the machine. `./x test` runs all three.

mod imports;
mod licence;
mod tree;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use workspace::Workspace;

const USAGE: &str = "cargo xtask imports|licences|tree";

/// Exit code of a call that names no check.
const EXIT_USAGE: u8 = 2;

fn main() -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let violations = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["imports"] => imports::violations(&Workspace::read(root)?),
        ["licences"] => licence::violations(&Workspace::read(root)?),
        ["tree"] => tree::violations(&tree::read(root)?),
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
