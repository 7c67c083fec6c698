//! Results on stdout, as tables or as JSON.

use std::io::{self, ErrorKind, IsTerminal, Write};

use serde::Serialize;

use super::{details::Details, table::Table};

/// Widest table on a terminal, in characters; elsewhere (a pipe, a file) nothing is cut.
const TERMINAL_WIDTH: usize = 120;

/// Prints results in the form asked for. A reader that has gone away (`| head`) is no error.
#[derive(Clone, Copy)]
pub struct Printer {
    json: bool,
}

impl Printer {
    /// JSON documents, one a line, or texts for people.
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether programs read the results.
    pub fn is_json(self) -> bool {
        self.json
    }

    /// Prints rows: as a table, or the whole answer as JSON. Without rows people read `none` instead.
    pub fn rows(self, answer: &impl Serialize, table: &Table, none: &str) -> io::Result<()> {
        if self.json { self.document(answer) } else { self.table(table, none) }
    }

    /// Prints a table for people, and nothing for programs.
    pub fn table(self, table: &Table, none: &str) -> io::Result<()> {
        match (self.json, table.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => write_out(&format!("{none}\n")),
            (false, false) if io::stdout().is_terminal() => write_out(&table.cut_to(TERMINAL_WIDTH)),
            (false, false) => write_out(&table.to_string()),
        }
    }

    /// Prints a sentence for people, and nothing for programs.
    pub fn remark(self, sentence: &str) -> io::Result<()> {
        if self.json { Ok(()) } else { write_out(&format!("{sentence}\n")) }
    }

    /// Prints one thing whole.
    pub fn one(self, answer: &impl Serialize, details: &Details) -> io::Result<()> {
        if self.json { self.document(answer) } else { write_out(&details.to_string()) }
    }

    /// Prints what was done: a sentence, or as JSON what it was done to.
    pub fn done(self, answer: &impl Serialize, sentence: &str) -> io::Result<()> {
        if self.json { self.document(answer) } else { write_out(&format!("{sentence}\n")) }
    }

    /// Prints one JSON document, whatever was asked for.
    pub fn document(self, answer: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string(answer)?;
        text.push('\n');
        write_out(&text)
    }
}

/// Writes to stdout; a reader that has gone away ends the process.
pub fn write_out(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        written => written,
    }
}
