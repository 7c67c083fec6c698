//! `bodkin audit verify`.

use std::path::Path;

use anyhow::Context;
use bodkin_store::audit::{Verification, checkpoint_of, verify};
use serde_json::json;

use crate::{
    DONE, FAILED,
    cli::{details::Details, printer::Printer},
};

/// Verifies the log and says what was found; gives the exit code.
pub fn run(data: &Path, directory: &Path, from: Option<u64>, printer: Printer) -> anyhow::Result<u8> {
    // In front of the files, which may grow meanwhile: what the database knows of is in them.
    let checkpoint = checkpoint_of(data).context("the database, which knows where the log should end, cannot be read")?;
    let found = verify(directory, from, checkpoint)?;
    let wrong = found.wrong.as_ref().map(|(place, fault)| (format!("{}:{}", place.file.display(), place.line), fault.to_string()));
    let document = json!({
        "whole": wrong.is_none(),
        "entries": found.entries,
        "files": found.files,
        "first": found.first,
        "head": {"number": found.head.number, "hash": found.head.hash},
        "checkpoint": checkpoint.map(|head| json!({"number": head.number, "hash": head.hash})),
        "lost": found.lost,
        "tornBytes": found.torn_bytes,
        "wrong": wrong.as_ref().map(|(place, fault)| json!({"place": place, "fault": fault})),
    });
    printer.one(&document, &details(&found, checkpoint.map(|head| head.number)))?;
    match wrong {
        None => Ok(DONE),
        Some((place, fault)) => {
            eprintln!("bodkin: the audit log is not as it was written. {place}: {fault}");
            Ok(FAILED)
        }
    }
}

fn details(found: &Verification, checkpoint: Option<u64>) -> Details {
    Details::default()
        .with("whole", if found.wrong.is_none() { "yes" } else { "no" })
        .with("entries", found.entries)
        .with("files", found.files)
        .with_some("first entry", found.first)
        .with("last entry", format!("{} ({})", found.head.number, found.head.hash))
        .with("known to the database", checkpoint.map_or("none".to_owned(), |number| format!("entry {number}")))
        .with("told as lost", found.lost)
        .with("torn bytes", found.torn_bytes)
}
