//! `bodkin audit export`.

use std::io;

use bodkin_arrowhead::audit::{AuditQuery, CSV_HEADER, csv_line};
use bodkin_store::audit::AuditReader;
use clap::{Args, ValueEnum};

use super::Wanted;
use crate::{DONE, FAILED, cli::write_out};

#[derive(Args, Clone, Debug)]
pub struct Exporting {
    #[command(flatten)]
    wanted: Wanted,
    /// How entries are written
    #[arg(long, value_name = "FORM", default_value = "jsonl")]
    format: Format,
}

/// How entries are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The lines of the log as they are.
    Jsonl,
    /// RFC 4180, details as JSON in one field.
    Csv,
}

/// Prints the log; gives the exit code, which is 1 if lines were passed over that are no entries.
pub fn run(reader: &AuditReader, options: Exporting) -> anyhow::Result<u8> {
    let query = AuditQuery::from(options.wanted);
    if options.format == Format::Csv {
        write_out(CSV_HEADER)?;
    }
    let mut cursor = reader.cursor(query.from);
    while let Some(read) = cursor.read()? {
        if !query.wants(&read.entry) {
            continue;
        }
        write_out(&match options.format {
            Format::Csv => csv_line(&read.entry),
            Format::Jsonl => String::from_utf8(read.line).map_err(io::Error::other)? + "\n",
        })?;
    }
    if cursor.unreadable() == 0 {
        return Ok(DONE);
    }
    eprintln!("bodkin: {} lines are no entries and were passed over; `bodkin audit verify` tells which", cursor.unreadable());
    Ok(FAILED)
}
