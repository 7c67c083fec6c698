//! What the demo prints: one step a line, with who did it and how long it took.

use std::{
    io::{self, Write},
    time::Duration,
};

use super::report::milliseconds;
use crate::wrap::wrap;

/// Widest line, in characters.
const LINE_WIDTH: usize = 110;
/// Where a step's text begins, in characters: after `  12345.67 ms  consumer  `.
const TEXT_COLUMN: usize = 25;

/// Prints a step: duration, who, what. A long text goes on in further lines under its beginning.
pub fn step(took: Duration, who: &str, text: &str) -> io::Result<()> {
    let mut lines = wrap(text, LINE_WIDTH - TEXT_COLUMN).into_iter();
    let mut out = format!("{:>10.2} ms  {who:<8}  {}\n", milliseconds(took), lines.next().unwrap_or_default());
    for line in lines {
        out.push_str(&format!("{:TEXT_COLUMN$}{line}\n", ""));
    }
    paragraph(&out)
}

/// Prints a text as it is.
pub fn paragraph(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
