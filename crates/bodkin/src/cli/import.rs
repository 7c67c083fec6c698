//! `bodkin db import-arrowhead`: the registry of a cloud of the Java systems, from a dump of its database.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use bodkin_store::import::{Imported, Refused, import};
use clap::Args;
use serde_json::{Value, json};

use super::{printer::Printer, table::Table};
use crate::DONE;

/// Longest dump that is read, in bytes: it is held in memory.
const DUMP_BYTES_MAX: u64 = 4 << 30;

/// Options of `bodkin db import-arrowhead`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "The dump is that of mysqldump or mariadb-dump, with the tables' definitions or by --complete-insert. Taken are systems, services, rules, the orchestration \
    stores, subscriptions, clouds and relays, all with their ids, into a directory without a registry. What cannot be taken is told row by row, and is no failure.\n\
    How to move a cloud: docs/how-to/move-from-java.md."
)]
pub struct ImportOptions {
    /// The dump (SQL)
    #[arg(value_name = "DUMP")]
    dump: PathBuf,
    /// Tell what would be taken, and take nothing
    #[arg(long)]
    dry_run: bool,
}

/// Takes the dump over into the data directory; gives the exit code.
pub fn run(options: &ImportOptions, data: &Path, printer: Printer) -> anyhow::Result<u8> {
    let dump = read(&options.dump)?;
    let imported = import(data, &dump, !options.dry_run)?;
    if printer.is_json() {
        printer.document(&document(&imported, data, options.dry_run))?;
        return Ok(DONE);
    }
    let mut taken = Table::new(&["TABLE", "TAKEN"]);
    imported.taken.iter().for_each(|(table, rows)| taken.push([(*table).to_owned(), rows.to_string()]));
    printer.table(&taken, "nothing could be taken")?;
    if !imported.refused.is_empty() {
        let mut refused = Table::new(&["NOT TAKEN", "ID", "LINE", "WHY"]);
        for Refused { table, line, id, why } in &imported.refused {
            refused.push([table.clone(), id.clone().unwrap_or_else(|| "-".into()), line.to_string(), why.clone()]);
        }
        printer.remark("")?;
        printer.table(&refused, "")?;
        let untold = imported.refused_count - imported.refused.len();
        if untold > 0 {
            printer.remark(&format!("and {untold} further rows"))?;
        }
    }
    if !imported.left.is_empty() {
        let left: Vec<String> = imported.left.iter().map(|(table, rows)| format!("{table} ({rows})")).collect();
        printer.remark(&format!("\nTables of which Bodkin has none, with their rows: {}", left.join(", ")))?;
    }
    let place = data.display();
    printer.remark(&if options.dry_run {
        format!("\n{place} is as it was")
    } else {
        format!("\n{place} is ready for: bodkin up --data {place}")
    })?;
    Ok(DONE)
}

fn read(file: &Path) -> anyhow::Result<String> {
    let shown = file.display();
    let bytes = fs::metadata(file).with_context(|| format!("the dump {shown} cannot be read"))?.len();
    if bytes > DUMP_BYTES_MAX {
        bail!(
            "the dump {shown} has {bytes} bytes, {DUMP_BYTES_MAX} are allowed; dump the tables that are taken only (mysqldump arrowhead TABLE ...)"
        );
    }
    let bytes = fs::read(file).with_context(|| format!("the dump {shown} cannot be read"))?;
    String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        anyhow::anyhow!("the dump {shown} is no UTF-8 text in line {line}; dump with --default-character-set=utf8mb4")
    })
}

fn document(imported: &Imported, data: &Path, is_trial: bool) -> Value {
    let refused = imported.refused.iter().map(|row| json!({"table": row.table, "id": row.id, "line": row.line, "why": row.why}));
    json!({
        "data": data,
        "dryRun": is_trial,
        "taken": imported.taken,
        "refused": refused.collect::<Vec<_>>(),
        "refusedCount": imported.refused_count,
        "left": imported.left,
    })
}
