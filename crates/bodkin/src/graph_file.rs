//! A graph file, read with the names that this cloud would have.

use std::path::Path;

use bodkin_host::graph::parse;
use bodkin_operators::file::{FILE_BYTES_MAX, GraphFile};

use crate::topic_file::{Mistakes, read_text};

/// Reads a file.
pub fn read(path: &Path) -> Result<GraphFile, Mistakes> {
    read_with_text(path).map(|(file, _)| file)
}

/// Reads a file; gives its text as well.
pub fn read_with_text(path: &Path) -> Result<(GraphFile, String), Mistakes> {
    let text = read_text(path, FILE_BYTES_MAX as u64)?;
    match parse(&text) {
        Ok(file) => Ok((file, text)),
        Err(found) => Err(Mistakes::of(path, text, found.into_iter().map(|mistake| (mistake.at, mistake.what)))),
    }
}
